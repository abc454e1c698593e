package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// serverBytesMax is what the server, without its engine, may have in memory while it
// takes in a transaction of any size.
const serverBytesMax = 512 << 20

// TestHugeTransaction takes in one transaction over two tables that is many times the
// size of a part. Whoever reads meanwhile sees nothing of it, and then all of it (T1);
// killed several times in its midst, the server has it whole in the end; and its memory
// is bounded. SKIPPRD_HUGE_ROWS says how many rows it inserts.
func TestHugeTransaction(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	rows, seed := number("SKIPPRD_HUGE_ROWS", 300_000), uint64(number("SKIPPRD_SEED", 1))
	harness.Exec(t, source,
		"CREATE TABLE big_a (id bigint PRIMARY KEY, n int NOT NULL, note text, at timestamptz)",
		"CREATE TABLE big_b (id bigint PRIMARY KEY, n int NOT NULL, note text)",
		"INSERT INTO big_a SELECT i, 0, 'before', now() FROM generate_series(1, 5000) i",
		"INSERT INTO big_b SELECT i, 0, 'before' FROM generate_series(1, 5000) i")
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "8MiB",
		"--buffer-threshold-bytes", fmt.Sprint(max(64<<10, rows*2/8))) // about fifteen parts, or more
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE h FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	drain(t, s.DSN, "h")

	w := watchHuge(s.DSN)
	if !harness.Until(harness.Patience, func() bool { return w.before.Load() > 0 }) {
		t.Fatal("nothing can be read")
	}
	harness.Exec(t, s.DSN, "PAUSE PIPELINE h") // what comes then meets its first death in its midst
	half := rows / 2
	began := time.Now()
	harness.Exec(t, source, "BEGIN; "+
		fmt.Sprintf("INSERT INTO big_a SELECT i, 1, repeat(md5(i::text), 2), now() FROM generate_series(10001, %d) i; ", 10000+half)+
		"UPDATE big_a SET n = 2 WHERE id % 10 = 0; DELETE FROM big_a WHERE id % 10 = 1; "+
		fmt.Sprintf("INSERT INTO big_b SELECT i, 1, repeat(md5(i::text), 2) FROM generate_series(10001, %d) i; ", 10000+half)+
		"UPDATE big_b SET n = 2 WHERE id % 10 = 0; DELETE FROM big_b WHERE id % 10 = 1; "+
		"INSERT INTO big_a VALUES (0, 3, 'last', now()); INSERT INTO big_b VALUES (0, 3, 'last'); COMMIT")
	t.Logf("the source took %v", time.Since(began))

	r := rand.New(rand.NewPCG(seed, 5))
	s.Kill()
	s.Setenv("SKIPPRD_FAILPOINT=AfterPublish:5")
	s.Start()
	s.Unsetenv()
	resumed := make(chan struct{})
	go func() { // its session may go with the server
		defer close(resumed)
		_, _ = harness.Text(s.DSN, "RESUME PIPELINE h")
	}()
	if !s.WaitFailpoint(harness.Patience) {
		t.Fatalf("not dead in the midst of it:\n%s", s.Log(40))
	}
	<-resumed
	s.Start()
	kills := 1
	for _, point := range []string{"AfterPublish", "AfterBody", "", "BeforeAck"} {
		if !awaitPending(s.DSN) {
			break
		}
		how, _ := dieOnce(s, r, point)
		t.Logf("died %s", how)
		kills++
		s.Start()
	}
	began = time.Now()
	drain(t, s.DSN, "h")
	t.Logf("killed %d times; then it took %v", kills, time.Since(began))
	own, all := harness.OwnPeakBytes(s.PID()), harness.PeakBytes(s.PID())
	t.Logf("peak %d MiB, with the engine %d MiB", own>>20, all>>20)
	if own > serverBytesMax {
		t.Errorf("the server had %d MiB in memory", own>>20)
	}
	harness.Until(harness.Patience, func() bool { return w.after.Load() > 0 })
	before, after, broken := w.end()
	if broken != "" || before == 0 || after == 0 {
		t.Errorf("readers saw %q; %d reads came before, %d after", broken, before, after)
	}
	if n, err := harness.Text(s.DSN, "SELECT count(*) FROM skippr.slices WHERE pending"); err != nil || n != "0" {
		t.Errorf("%s slices are pending, %v", n, err)
	}
	harness.CompareTables(t, source, s.DSN, "h", map[string]string{"big_a": "id", "big_b": "id"})
	harness.Exec(t, s.DSN, "DROP PIPELINE h")
	s.Stop()
}

// awaitPending waits until parts of a transaction are in the log; false if it is done
// before.
func awaitPending(dsn string) bool {
	done := false
	pending := harness.Until(harness.Patience, func() bool {
		n, err := harness.Text(dsn, "SELECT pending_rows FROM pg_stat_pipeline")
		if err == nil && n != "0" {
			return true
		}
		n, err = harness.Text(dsn, "SELECT count(*) FROM h.big_b WHERE id = 0")
		done = err == nil && n == "1"
		return done
	})
	return pending && !done
}

// hugeWatch reads both tables until it is ended.
type hugeWatch struct {
	cancel        context.CancelFunc
	done          chan struct{}
	before, after atomic.Int64
	broken        string // after done
}

func watchHuge(dsn string) *hugeWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &hugeWatch{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil && w.broken == "" {
			w.run(ctx, dsn)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return w
}

// run reads until the server is gone, or what it reads is not whole: each pair is of one
// statement, and so of one moment.
func (w *hugeWatch) run(ctx context.Context, dsn string) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for ctx.Err() == nil {
		var a, b, last, updated int64
		err := c.QueryRow(ctx, `SELECT (SELECT count(*) FROM h.big_a), (SELECT count(*) FROM h.big_b),
			(SELECT count(*) FROM h.big_a WHERE id = 0) + (SELECT count(*) FROM h.big_b WHERE id = 0),
			(SELECT count(*) FROM h.big_a WHERE n > 0 AND id <= 5000)`).Scan(&a, &b, &last, &updated)
		switch {
		case err != nil:
			return
		case a == 5000 && b == 5000 && last == 0 && updated == 0:
			if w.after.Load() > 0 {
				w.broken = "gone again"
				return
			}
			w.before.Add(1)
		case a == b && a > 5000 && last == 2 && updated == 501:
			w.after.Add(1)
		default:
			w.broken = fmt.Sprintf("%d and %d rows, %d last, %d updated", a, b, last, updated)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *hugeWatch) end() (before, after int64, broken string) {
	w.cancel()
	<-w.done
	return w.before.Load(), w.after.Load(), w.broken
}

// TestTransactionLargerThanQuota: a transaction that the log's quota has no room for
// stops the pipeline with a reason, and what it has of it goes; with more room the
// transaction comes whole.
func TestTransactionLargerThanQuota(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE wide (id int PRIMARY KEY, v text)", "INSERT INTO wide VALUES (0, 'before')")
	dir := dataDir(t)
	flags := []string{"--commit-interval", "100ms", "--wal-segment-bytes", "1MiB", "--buffer-threshold-bytes", "256KiB"}
	s := harness.New(t, dir, append(flags, "--wal-quota-bytes", "8MiB")...)
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE q FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	drain(t, s.DSN, "q")
	harness.Exec(t, source, "INSERT INTO wide SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i")
	var reason, pending string
	stopped := harness.Until(harness.Patience, func() bool {
		reason, _ = harness.Text(s.DSN, "SELECT reason FROM pg_stat_pipeline WHERE state = 'error'")
		pending, _ = harness.Text(s.DSN, "SELECT pending_rows FROM pg_stat_pipeline")
		return reason != "" && pending == "0"
	})
	if !stopped || !strings.Contains(reason, "log is full") {
		t.Fatalf("reason %q, %s rows are pending", reason, pending)
	}
	if n, err := harness.Text(s.DSN, "SELECT count(*) FROM q.wide"); n != "1" {
		t.Errorf("%s rows, %v", n, err)
	}
	s.Stop()
	s = harness.New(t, dir, flags...)
	s.Start()
	drain(t, s.DSN, "q")
	harness.CompareTables(t, source, s.DSN, "q", map[string]string{"wide": "id"})
	harness.Exec(t, s.DSN, "DROP PIPELINE q")
	s.Stop()
}

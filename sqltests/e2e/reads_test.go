package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// readsTables are tables of which every read must hold an invariant: two balances with
// a constant sum, and an event log that is only added to, numbered without a gap, with
// a tally that each transaction keeps equal to the newest event.
var readsTables = append([]string{
	"CREATE TABLE events (id bigint PRIMARY KEY, payload text NOT NULL)",
	"CREATE TABLE tally (id int PRIMARY KEY, events bigint NOT NULL)",
	"INSERT INTO tally VALUES (1, 0)",
}, transferTables...)

// appendEvents adds events, 1 to 40 in a transaction, until ctx ends: the last transaction
// is whole when it returns.
func appendEvents(ctx context.Context, dsn string, perSecond int) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	r := rand.New(rand.NewPCG(3, 1))
	began, last := time.Now(), 0
	for ctx.Err() == nil {
		n := 1 + r.IntN(40)
		sql := fmt.Sprintf(`BEGIN; INSERT INTO events SELECT i, repeat('x', (i %% 60)::int) FROM generate_series(%d, %d) i;
			UPDATE tally SET events = %d; COMMIT`, last+1, last+n, last+n)
		// A statement that is cancelled may yet be committed, after appendEvents has returned.
		if _, err := c.PgConn().Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil {
			return err
		}
		last += n
		if ahead := time.Duration(last)*time.Second/time.Duration(perSecond) - time.Since(began); ahead > 0 {
			select {
			case <-time.After(ahead):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// reader holds one session to the invariants.
type reader struct {
	conn   *pgx.Conn
	r      *rand.Rand
	events int64 // seen by an earlier read of the session
	reads  *atomic.Int64
	tooOld *atomic.Int64
}

const (
	readBalances = `SELECT (SELECT sum(amount) FROM reads.balance_a)::bigint + (SELECT sum(amount) FROM reads.balance_b)::bigint,
		(SELECT count(*) FROM reads.balance_a)::bigint + (SELECT count(*) FROM reads.balance_b)::bigint`
	readEvents = `SELECT count(*), coalesce(min(id), 1), coalesce(max(id), 0), count(DISTINCT id),
		(SELECT events FROM reads.tally WHERE id = 1) FROM reads.events`
)

// balances reads the sum that never changes.
func (r *reader) balances(ctx context.Context) error {
	var sum, rows int64
	if err := r.conn.QueryRow(ctx, readBalances).Scan(&sum, &rows); err != nil {
		return err
	}
	if strconv.FormatInt(sum, 10) != totalBalance || rows != 200 {
		return fmt.Errorf("the sum of %d balances is %d", rows, sum)
	}
	return nil
}

// count reads the events: all of them up to the newest, each once, and not fewer than
// before. It returns how many there are.
func (r *reader) count(ctx context.Context) (int64, error) {
	var n, low, high, distinct, tally int64
	if err := r.conn.QueryRow(ctx, readEvents).Scan(&n, &low, &high, &distinct, &tally); err != nil {
		return 0, err
	}
	if low != 1 || high != n || distinct != n || tally != n {
		return 0, fmt.Errorf("%d events from %d to %d, %d different, the tally says %d", n, low, high, distinct, tally)
	}
	if n < r.events {
		return 0, fmt.Errorf("%d events, after a read of %d in the same session", n, r.events)
	}
	r.events = n
	return n, nil
}

// repeatable reads the same for a while, in one transaction.
func (r *reader) repeatable(ctx context.Context) error {
	tx, err := r.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	first, err := r.count(ctx)
	if err != nil {
		return err
	}
	for end := time.Now().Add(time.Duration(r.r.IntN(4000)) * time.Millisecond); time.Now().Before(end); {
		if err := r.balances(ctx); err != nil {
			return fmt.Errorf("repeatable read: %w", err)
		}
		n, err := r.count(ctx)
		if err == nil && n != first {
			err = fmt.Errorf("%d events, %d before", n, first)
		}
		if err != nil {
			return fmt.Errorf("repeatable read: %w", err)
		}
	}
	return tx.Commit(ctx)
}

// cursor fetches all events slowly, in the order of their ids or as they come, and
// compares with what a read of the same transaction said.
func (r *reader) cursor(ctx context.Context) error {
	order := []string{"", " ORDER BY id"}[r.r.IntN(2)]
	tx, err := r.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	n, err := r.count(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DECLARE c NO SCROLL CURSOR FOR SELECT id, payload FROM reads.events"+order); err != nil {
		return err
	}
	seen, total := make(map[int64]bool, n), int64(0)
	step := max(1, int(n)/(1+r.r.IntN(12)))
	for {
		rows, err := tx.Query(ctx, fmt.Sprintf("FETCH %d FROM c", step))
		if err != nil {
			return err
		}
		got := 0
		for rows.Next() {
			var id int64
			var payload string
			if err := rows.Scan(&id, &payload); err != nil {
				return err
			}
			got, total, seen[id] = got+1, total+1, true
			if int64(len(payload)) != id%60 || order != "" && id != total {
				return fmt.Errorf("row %d of the cursor is event %d with %d bytes", total, id, len(payload))
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if got < step {
			break
		}
		time.Sleep(time.Duration(r.r.IntN(200)) * time.Millisecond)
	}
	if total != n || int64(len(seen)) != n {
		return fmt.Errorf("the cursor has %d rows of %d events, a read of its transaction %d", total, len(seen), n)
	}
	return tx.Commit(ctx)
}

// read does one random read. A pin that is lost inside a transaction is an answer.
func (r *reader) read(ctx context.Context) error {
	var err error
	switch k := r.r.IntN(20); {
	case k == 0:
		err = r.repeatable(ctx)
	case k == 1:
		err = r.cursor(ctx)
	case k < 10:
		_, err = r.count(ctx)
	default:
		err = r.balances(ctx)
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == "40001" {
		r.tooOld.Add(1)
		err = nil
	}
	r.reads.Add(1)
	return err
}

// TestReads holds every read to the invariants while the source writes and small
// segments are compacted and reclaimed all the time: short reads, transactions that
// read the same for seconds, and slow cursors.
func TestReads(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, readsTables...)
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE reads FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	drain(t, s.DSN, "reads")
	load, stopLoad := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	writers.Go(func() {
		if err := appendEvents(load, source, number("SKIPPRD_READS_RATE", 2000)); err != nil && load.Err() == nil {
			t.Errorf("append events: %v", err)
		}
	})
	for w := range 2 {
		writers.Go(func() {
			if err := transfer(load, source, w+1); err != nil && load.Err() == nil {
				t.Errorf("transfer: %v", err)
			}
		})
	}
	var reads, tooOld atomic.Int64
	end := time.Now().Add(time.Duration(number("SKIPPRD_READS_SECONDS", 15)) * time.Second)
	for i := range number("SKIPPRD_READERS", 4) {
		readers.Go(func() {
			c, err := pgx.Connect(t.Context(), s.DSN)
			if err != nil {
				t.Errorf("connect: %v", err)
				return
			}
			defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
			r := &reader{conn: c, r: rand.New(rand.NewPCG(uint64(i), 5)), reads: &reads, tooOld: &tooOld}
			for time.Now().Before(end) && !t.Failed() {
				if err := r.read(t.Context()); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
			}
		})
	}
	readers.Wait()
	stopLoad()
	writers.Wait()
	t.Logf("%d reads held, %d of them gave up with 40001", reads.Load(), tooOld.Load())
	drain(t, s.DSN, "reads")
	harness.CompareTables(t, source, s.DSN, "reads",
		map[string]string{"events": "id", "tally": "id", "balance_a": "id", "balance_b": "id"})
	harness.Exec(t, s.DSN, "DROP PIPELINE reads")
	s.Stop()
}

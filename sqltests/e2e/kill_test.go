package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// killSchema is what the load of the kill loop writes to: a table with every common
// change, one without a key, one that is truncated, and the two balances.
var killSchema = append([]string{
	"CREATE TABLE items (id bigint PRIMARY KEY, n int NOT NULL, v numeric(12,2), note text, at timestamptz, tags text[])",
	"CREATE TABLE ledger (at timestamptz NOT NULL, who int NOT NULL, what text)",
	"CREATE TABLE pairs (a int, b text, v int, PRIMARY KEY (a, b))",
	"CREATE TABLE scratch (id int PRIMARY KEY, v text)",
	"INSERT INTO items SELECT i, 0, i * 1.25, repeat('x', i % 50), now(), ARRAY['a', NULL, i::text] FROM generate_series(1, 20000) i",
}, transferTables...)

var killTables = map[string]string{
	"items": "id", "ledger": "at, who, what", "pairs": "a, b", "scratch": "id", "balance_a": "id", "balance_b": "id",
}

// load writes to the source until it is closed; Pause waits until nothing is open.
type load struct {
	t      testing.TB
	dsn    string
	gate   sync.RWMutex
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func startLoad(t testing.TB, dsn string, writers int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t, dsn: dsn, cancel: cancel}
	for w := range writers {
		l.wg.Go(func() {
			if err := l.write(ctx, w); err != nil && ctx.Err() == nil {
				t.Errorf("load: %v", err)
			}
		})
	}
	return l
}

func (l *load) Pause()  { l.gate.Lock() }
func (l *load) Resume() { l.gate.Unlock() }
func (l *load) Close()  { l.cancel(); l.wg.Wait() }

func (l *load) write(ctx context.Context, w int) error {
	c, err := pgx.Connect(ctx, l.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	r := rand.New(rand.NewPCG(uint64(w), 7))
	for i := 0; ctx.Err() == nil; i++ {
		l.gate.RLock()
		_, err := c.PgConn().Exec(ctx, l.transaction(r, w, i)).ReadAll()
		if err != nil {
			_, _ = c.PgConn().Exec(ctx, "ROLLBACK").ReadAll() // a deadlock's loser
		}
		l.gate.RUnlock()
		if c.IsClosed() {
			return err
		}
	}
	return nil
}

// transaction is one transaction of writer w; writers own disjoint new keys.
func (l *load) transaction(r *rand.Rand, w, i int) string {
	id := 1_000_000*(w+1) + i
	old := r.IntN(20000) + 1
	amount := r.IntN(100)
	statements := []string{
		fmt.Sprintf("INSERT INTO items VALUES (%d, %d, %d.25, 'n', now(), '{x,y}')", id, i, i),
		fmt.Sprintf("UPDATE items SET n = n + 1, v = v * 1.01, note = note || 'é' WHERE id = %d", old),
		fmt.Sprintf("DELETE FROM items WHERE id = %d", r.IntN(20000)+1),
		fmt.Sprintf("UPDATE items SET id = id + 100000000 WHERE id = %d", old),
		fmt.Sprintf("INSERT INTO ledger VALUES (clock_timestamp(), %d, 'i%d')", w, i),
		fmt.Sprintf("INSERT INTO pairs VALUES (%d, 'k%d', %d) ON CONFLICT (a, b) DO UPDATE SET v = pairs.v + 1", old%50, old%7, i),
		fmt.Sprintf("DELETE FROM pairs WHERE a = %d", old%50),
		fmt.Sprintf("UPDATE balance_a SET amount = amount - %d WHERE id = %d; UPDATE balance_b SET amount = amount + %d WHERE id = %d", amount, old%100+1, amount, i%100+1),
		fmt.Sprintf("INSERT INTO scratch VALUES (%d, 'v') ON CONFLICT DO NOTHING", old),
	}
	if i%97 == 0 {
		statements = append(statements, fmt.Sprintf("TRUNCATE scratch; INSERT INTO scratch VALUES (%d, 'after')", w))
	}
	var b strings.Builder
	b.WriteString("BEGIN; ")
	for range 1 + r.IntN(4) {
		b.WriteString(statements[r.IntN(len(statements))] + "; ")
	}
	b.WriteString("COMMIT")
	return b.String()
}

// failpoints are the places at which some rounds die, besides random moments.
var failpoints = []string{
	"", "", "", "BeforeBody", "AfterBody", "AfterMarker", "AfterPublish", "BeforeSeal", "AfterSealMarker",
	"BeforeLakeCommit", "AfterLakeCommit", "AfterMark", "BeforeReclaim", "BetweenMarkerAndBodyDelete", "BeforeAck",
}

// TestKill kills the server with SIGKILL, at random moments and at named failpoints,
// under load: while it copies, streams, compacts and reclaims. After each death the
// restarted server must have every row of the source once, at a drained moment.
func TestKill(t *testing.T) {
	source := pgtest.Start(t).CreateDatabase(t)
	rounds, seed := number("SKIPPRD_KILL_ROUNDS", 8), uint64(number("SKIPPRD_SEED", 1))
	harness.Exec(t, source, killSchema...)
	r := rand.New(rand.NewPCG(seed, 1))
	l := startLoad(t, source, 3)
	defer l.Close()
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE k FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (commit_bytes = 262144)")
	for round := range rounds {
		point := failpoints[r.IntN(len(failpoints))]
		every := number("SKIPPRD_KILL_RESET_EVERY", 7)
		reset := round%every == every/2
		if reset {
			harness.Exec(t, s.DSN, "ALTER PIPELINE k RESET")
		}
		how := dieOnce(s, r, point)
		if !reset { // a slot made anew begins at the source's position, ahead of the old log
			checkPositions(t, s, source)
		}
		s.Start()
		l.Pause()
		drain(t, s.DSN, "k")
		harness.CompareTables(t, source, s.DSN, "k", killTables)
		l.Resume()
		if t.Failed() {
			t.Fatalf("round %d of seed %d, died %s", round, seed, how)
		}
		t.Logf("round %d: died %s", round, how)
	}
	harness.Exec(t, s.DSN, "DROP PIPELINE k")
	s.Stop()
}

// dataDir is a temporary directory, or the one that SKIPPRD_KEEP names, which stays for
// a look at what went wrong.
func dataDir(t *testing.T) string {
	if dir := os.Getenv("SKIPPRD_KEEP"); dir != "" {
		return dir
	}
	return t.TempDir()
}

// dieOnce lets the server run on for a while and then die, at a failpoint if one is
// named and reached.
func dieOnce(s *harness.Server, r *rand.Rand, point string) string {
	if point != "" {
		s.Kill()
		s.Setenv(fmt.Sprintf("SKIPPRD_FAILPOINT=%s:%d", point, 1+r.IntN(6)))
		s.Launch()
		s.Unsetenv()
		if s.WaitDead(6 * time.Second) {
			return "at " + point
		}
		point = " (" + point + " not reached)"
	}
	s.WaitDead(time.Duration(50+r.IntN(2500)) * time.Millisecond)
	s.Kill()
	return "by SIGKILL" + point
}

// checkPositions asserts that the slot's confirmed position is not ahead of the log
// that the dead server left.
func checkPositions(t *testing.T, s *harness.Server, source string) {
	t.Helper()
	confirmed, err := harness.Text(source, "SELECT coalesce(max(confirmed_flush_lsn)::text, '0/0') FROM pg_replication_slots WHERE slot_name = 'skippr_k'")
	if err != nil {
		t.Fatal(err)
	}
	durable, err := s.LogPosition()
	if err != nil {
		t.Fatal(err)
	}
	if durable == "" {
		return // nothing streamed yet
	}
	ahead, err := harness.Text(source, fmt.Sprintf("SELECT '%s'::pg_lsn > '%s'::pg_lsn", confirmed, durable))
	if err != nil || ahead != "f" {
		t.Errorf("the slot's confirmed position %s is ahead of the log's %s (%v)", confirmed, durable, err)
	}
}

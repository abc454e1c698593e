package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// LoadSchema is what a Load writes to: a table with every common change, one without a
// key, one of equal rows that are told apart by nothing, one that is truncated, and two balances with a constant sum.
var LoadSchema = []string{
	"CREATE TABLE items (id bigint PRIMARY KEY, n int NOT NULL, v numeric(12,2), note text, at timestamptz, tags text[])",
	"CREATE TABLE ledger (at timestamptz NOT NULL, who int NOT NULL, what text)",
	"CREATE TABLE pairs (a int, b text, v int, PRIMARY KEY (a, b))",
	"CREATE TABLE bag (n int, what text); ALTER TABLE bag REPLICA IDENTITY FULL",
	"INSERT INTO bag SELECT i % 20, CASE WHEN i % 3 > 0 THEN 'w' || i % 5 END FROM generate_series(1, 2000) i",
	"CREATE TABLE scratch (id int PRIMARY KEY, v text)",
	"INSERT INTO items SELECT i, 0, i * 1.25, repeat('x', i % 50), now(), ARRAY['a', NULL, i::text] FROM generate_series(1, 20000) i",
	"CREATE TABLE balance_a (id int PRIMARY KEY, amount bigint NOT NULL)",
	"CREATE TABLE balance_b (id int PRIMARY KEY, amount bigint NOT NULL)",
	"INSERT INTO balance_a SELECT i, 1000 FROM generate_series(1, 100) i",
	"INSERT INTO balance_b SELECT i, 1000 FROM generate_series(1, 100) i",
}

// LoadTables are the tables of LoadSchema with a total order of their rows.
var LoadTables = map[string]string{
	"items": "id", "ledger": "at, who, what", "pairs": "a, b", "bag": "n, what", "scratch": "id", "balance_a": "id", "balance_b": "id",
}

// awayMax is how long the source may be away before a Load fails the test: longer than a
// test waits for anything else.
const awayMax = 2 * Patience

// Load writes to the tables of LoadSchema until it is closed. It connects again when
// the source has been away.
type Load struct {
	// Written counts the transactions that the source has committed.
	Written atomic.Int64

	t      testing.TB
	dsn    string
	pace   time.Duration
	gate   sync.RWMutex
	paused atomic.Bool
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// StartLoad starts writers, each as fast as the source allows.
func StartLoad(t testing.TB, dsn string, writers int) *Load {
	return StartPacedLoad(t, dsn, writers, 0)
}

// StartPacedLoad starts writers that rest for pace after each transaction, for a test
// that is about something slow.
func StartPacedLoad(t testing.TB, dsn string, writers int, pace time.Duration) *Load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{t: t, dsn: dsn, pace: pace, cancel: cancel}
	for w := range writers {
		l.wg.Go(func() { l.run(ctx, w) })
	}
	return l
}

// Pause waits until no transaction is open and keeps new ones from beginning.
func (l *Load) Pause() {
	l.gate.Lock()
	l.paused.Store(true)
}

// Resume ends a Pause.
func (l *Load) Resume() {
	if l.paused.Swap(false) {
		l.gate.Unlock()
	}
}

// Close ends the load and waits for it, also where a test has failed during a Pause.
func (l *Load) Close() {
	l.cancel()
	l.Resume()
	l.wg.Wait()
}

// run keeps writer w connected.
func (l *Load) run(ctx context.Context, w int) {
	r := rand.New(rand.NewPCG(uint64(w), 7))
	next, away := 0, time.Now()
	for ctx.Err() == nil {
		wrote, err := l.write(ctx, w, &next, r)
		if ctx.Err() != nil {
			return
		}
		if wrote {
			away = time.Now()
		}
		if time.Since(away) > awayMax {
			l.t.Errorf("load: %v", err)
			return
		}
		rest(ctx, 50*time.Millisecond)
	}
}

// write writes until the connection breaks and says whether it wrote anything.
func (l *Load) write(ctx context.Context, w int, next *int, r *rand.Rand) (wrote bool, err error) {
	c, err := pgx.Connect(ctx, l.dsn)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for ; ctx.Err() == nil; *next++ {
		l.gate.RLock()
		// A statement that is cancelled may yet be committed, after Close has returned.
		whole := context.WithoutCancel(ctx)
		_, err := c.PgConn().Exec(whole, l.transaction(r, w, *next)).ReadAll()
		if err != nil {
			_, _ = c.PgConn().Exec(whole, "ROLLBACK").ReadAll() // a deadlock's loser
		} else {
			l.Written.Add(1)
			wrote = true
		}
		l.gate.RUnlock()
		if c.IsClosed() {
			return wrote, err
		}
		if l.pace > 0 {
			rest(ctx, l.pace)
		}
	}
	return wrote, nil
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// transaction is one transaction of writer w; writers own disjoint new keys.
func (*Load) transaction(r *rand.Rand, w, i int) string {
	id := 1_000_000*(w+1) + i
	old := r.IntN(20000) + 1
	amount := r.IntN(100)
	statements := []string{
		fmt.Sprintf("INSERT INTO items VALUES (%d, %d, %d.25, 'n', now(), '{x,y}') ON CONFLICT DO NOTHING", id, i, i),
		fmt.Sprintf("UPDATE items SET n = n + 1, v = v * 1.01, note = note || 'é' WHERE id = %d", old),
		fmt.Sprintf("DELETE FROM items WHERE id = %d", r.IntN(20000)+1),
		fmt.Sprintf("UPDATE items SET id = id + 100000000 WHERE id = %d", old),
		fmt.Sprintf("INSERT INTO ledger VALUES (clock_timestamp(), %d, 'i%d')", w, i),
		fmt.Sprintf("INSERT INTO pairs VALUES (%d, 'k%d', %d) ON CONFLICT (a, b) DO UPDATE SET v = pairs.v + 1", old%50, old%7, i),
		fmt.Sprintf("DELETE FROM pairs WHERE a = %d", old%50),
		fmt.Sprintf("UPDATE balance_a SET amount = amount - %d WHERE id = %d; UPDATE balance_b SET amount = amount + %d WHERE id = %d", amount, old%100+1, amount, i%100+1),
		fmt.Sprintf("INSERT INTO bag VALUES (%[1]d, 'w%[2]d'), (%[1]d, 'w%[2]d'), (%[1]d, NULL)", old%20, i%5),
		fmt.Sprintf("DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE n = %d LIMIT 2)", old%20),
		fmt.Sprintf("UPDATE bag SET what = 'w%d' WHERE ctid = (SELECT ctid FROM bag WHERE n = %d LIMIT 1)", i%5, old%20),
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

package operate

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// endless is a query that does not end, and says nothing before it does.
const endless = "SELECT count(*) FROM generate_series(1, 1000000) AS a (x), generate_series(1, 1000000) AS b (y) WHERE (x + y) % 7 = 3"

// TestEngineDies kills the engine under statements of all kinds: each ends with a clear error,
// and its session goes on; whoever did not use the engine meanwhile does not notice.
func TestEngineDies(t *testing.T) {
	s := harness.New(t, t.TempDir(), "--engine-memory", "1GiB", "--engine-query-memory", "128MiB") // five at once, on any machine
	s.Start()
	watch := connect(t, s.DSN, "watch")
	exec(t, watch, "CREATE TABLE kept (id int PRIMARY KEY, v text); INSERT INTO kept SELECT i, 'v' || i FROM generate_series(1, 1000) AS g (i)")
	exec(t, watch, "CREATE TABLE filled (n bigint)")

	// Sessions that have something, and run nothing when the engine dies.
	writer, temporary, holder := connect(t, s.DSN, "writer"), connect(t, s.DSN, "temporary"), connect(t, s.DSN, "holder")
	exec(t, writer, "BEGIN; UPDATE kept SET v = 'changed' WHERE id <= 10; DELETE FROM kept WHERE id > 990; SELECT pg_advisory_lock(1)")
	exec(t, temporary, "CREATE TEMP TABLE mine AS SELECT i FROM generate_series(1, 500) AS g (i); PREPARE p AS SELECT count(*) FROM mine WHERE i > $1")
	exec(t, holder, "BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id FROM kept ORDER BY id; COMMIT; FETCH 3 FROM h")

	kinds := map[string]string{
		"select": endless, "fetch": "BEGIN; DECLARE c CURSOR FOR " + endless + "; FETCH 1 FROM c", "copy": "COPY (" + endless + ") TO STDOUT",
		"insert": "INSERT INTO filled " + endless, "explain": "EXPLAIN ANALYZE " + endless,
	}
	conns, done := map[string]*pgx.Conn{}, map[string]<-chan error{}
	for kind, sql := range kinds {
		conns[kind] = connect(t, s.DSN, kind)
		outcome := make(chan error, 1)
		c := conns[kind]
		go func() {
			if kind == "copy" {
				_, err := c.PgConn().CopyTo(t.Context(), io.Discard, sql)
				outcome <- err
				return
			}
			outcome <- try(t, c, sql)
		}()
		done[kind] = outcome
	}
	becomes(t, watch, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event IS NULL AND pid <> pg_backend_pid()", "5")
	killed := time.Time{}
	for kind, outcome := range done {
		var err error
		if !harness.Until(harness.Patience, func() bool {
			select {
			case err = <-outcome:
				return true
			default:
			}
			if time.Since(killed) > 2*time.Second { // one that had not come to the engine yet meets the next
				for _, pid := range harness.Children(s.PID()) {
					_ = syscall.Kill(pid, syscall.SIGKILL) // may have ended
				}
				killed = time.Now()
			}
			return false
		}) {
			t.Fatalf("%s: does not end", kind)
		}
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "58000" || e.Severity != "ERROR" || e.Detail == "" || e.Hint == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if !harness.Until(harness.Patience, func() bool { return try(t, watch, "SELECT count(*) FROM generate_series(1, 10)") == nil }) {
		t.Fatal("no engine came up")
	}
	for kind, want := range map[string]byte{"select": 'I', "fetch": 'E', "copy": 'I', "insert": 'I', "explain": 'I'} {
		if got := conns[kind].PgConn().TxStatus(); got != want {
			t.Errorf("%s: its transaction is %c", kind, got)
		}
		if got := rows(t, conns[kind], "ROLLBACK; SELECT count(*) FROM kept"); strings.Join(got, "") != "1000" {
			t.Errorf("%s: behind it %v", kind, got)
		}
	}
	if got := rows(t, watch, "SELECT count(*) FROM filled"); got[0] != "0" {
		t.Errorf("an INSERT whose query died wrote %v rows", got)
	}
	if got := rows(t, writer, "SELECT count(*), count(*) FILTER (WHERE v = 'changed') FROM kept"); got[0] != "990|10" {
		t.Errorf("an open transaction sees %v", got)
	}
	exec(t, writer, "COMMIT")
	if got := rows(t, watch, "SELECT count(*), count(*) FILTER (WHERE v = 'changed') FROM kept"); got[0] != "990|10" {
		t.Errorf("what was committed is %v", got)
	}
	if got := rows(t, writer, "SELECT pg_advisory_unlock(1)"); got[0] != "t" {
		t.Error("its advisory lock is gone")
	}
	if got := rows(t, temporary, "EXECUTE p(100)"); got[0] != "400" {
		t.Errorf("a temporary table has %v", got)
	}
	if got := rows(t, holder, "FETCH ALL FROM h"); len(got) != 997 || got[0] != "4" {
		t.Errorf("a cursor that was held has %d rows, from %v", len(got), got[:min(len(got), 1)])
	}
	s.Stop()
}

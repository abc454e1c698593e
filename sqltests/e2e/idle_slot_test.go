package e2e

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// retainedMax is what the source may keep of its log for a pipeline whose tables rest.
const retainedMax = 32 << 20

// TestIdleSlot: the one table of a pipeline rests, and others write in another database
// of the same server. What the server keeps for the pipeline stays small.
//
// By default some hundred MB are written at once, and what is kept must go down again.
// SKIPPRD_IDLE_SLOT=10m writes half a MB a second for so long, and looks each time: the
// server moves a slot on only when it notes which transactions run, every 15 to 25 s.
func TestIdleSlot(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	source, noisy := pg.CreateDatabase(t), pg.CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE quiet (id int PRIMARY KEY)", "INSERT INTO quiet VALUES (1)")
	harness.Exec(t, noisy, "CREATE TABLE noise (v text)", "ALTER TABLE noise ALTER v SET STORAGE EXTERNAL")
	s := harness.New(t, t.TempDir())
	s.Start()
	defer s.Stop()
	harness.Exec(t, s.DSN, "CREATE PIPELINE idle FROM POSTGRES "+quoted(source)+" FOR ALL TABLES", "SYNC PIPELINE idle")

	conn := harness.Connect(t, noisy)
	write := func(mb int) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "INSERT INTO noise SELECT repeat('x', 1048576) FROM generate_series(1, $1)", mb); err != nil {
			t.Fatal(err)
		}
	}
	began := position(t, conn)
	if long, err := time.ParseDuration(os.Getenv("SKIPPRD_IDLE_SLOT")); err == nil {
		most := writeSlowly(t, long, source, func() { write(1) })
		t.Logf("%d MB written in %v elsewhere; at most %.1f MB were kept for the idle pipeline", (position(t, conn)-began)>>20, long, float64(most)/(1<<20))
		if most > retainedMax {
			t.Errorf("%d MB were kept", most>>20)
		}
	} else {
		write(300)
		var last int64
		if !harness.Until(harness.Patience, func() bool {
			harness.Exec(t, noisy, "CHECKPOINT") // which notes the running transactions
			last = retained(t, source)
			return last < retainedMax
		}) {
			t.Errorf("%d MB are kept", last>>20)
		}
		t.Logf("%d MB written elsewhere; then %.1f MB are kept", (position(t, conn)-began)>>20, float64(last)/(1<<20))
	}
	becomes(t, s.DSN, "SELECT state FROM pg_stat_pipeline", "running")
	harness.Exec(t, source, "INSERT INTO quiet VALUES (2)")
	drain(t, s.DSN, "idle")
	if n, err := harness.Text(s.DSN, "SELECT count(*) FROM idle.quiet"); err != nil || n != "2" {
		t.Errorf("%s rows, %v", n, err)
	}
	harness.Exec(t, s.DSN, "DROP PIPELINE idle")
}

// writeSlowly writes every two seconds and returns the most that was kept meanwhile.
func writeSlowly(t *testing.T, long time.Duration, source string, write func()) (most int64) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for end := time.Now().Add(long); time.Now().Before(end); <-tick.C {
		write()
		most = max(most, retained(t, source))
	}
	return most
}

// retained is how much the server keeps for the database's slot.
func retained(t *testing.T, source string) int64 {
	t.Helper()
	text, err := harness.Text(source, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8 FROM pg_replication_slots WHERE database = current_database() AND NOT temporary")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// position is how much the server has written.
func position(t *testing.T, conn *pgx.Conn) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

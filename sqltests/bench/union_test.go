package bench

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/sqltests/harness"
)

// unionQueries name their relation %s.
var unionQueries = []struct{ name, sql string }{
	{"sum of a column", "SELECT sum(amount) FROM %s"},
	{"filter", "SELECT count(*), sum(amount) FROM %s WHERE qty < 50"},
	{"group", "SELECT status, count(*), sum(amount) FROM %s GROUP BY status ORDER BY status"},
	{"point", "SELECT status, amount FROM %s WHERE id = 1234567"},
}

// TestBenchUnion compares queries with those of the engine alone over the same files,
// as live changes pile up.
func TestBenchUnion(t *testing.T) {
	pg := begin(t)
	rows := number("SKIPPRD_BENCH_UNION_ROWS", 20_000_000)
	dsn := pg.CreateDatabase(t)
	harness.Exec(t, dsn, fmt.Sprintf(`CREATE TABLE t AS SELECT i::bigint AS id, 'status ' || (i * 7919 %% 5) AS status, (i %% 1000) / 8.0::float8 AS amount,
		(i * 31 %% 100)::int AS qty FROM generate_series(1::bigint, %d) i`, rows), "ALTER TABLE t ADD PRIMARY KEY (id)", "VACUUM ANALYZE t")
	s := server(t, "--commit-interval", "1h")
	create(t, s, dsn)
	harness.Exec(t, s.DSN, "ALTER PIPELINE p COMPACT")
	files := lakeFiles(t, s)
	direct := openDirect(t)
	// The rows changed at each step are spread over the whole table. A million live rows
	// would start a compaction.
	for i, live := range []int{0, rows / 200, rows / 25} {
		if live > 0 {
			harness.Exec(t, dsn, fmt.Sprintf("UPDATE t SET amount = amount + 1 WHERE id %% %d = %d", rows/live, i), "VACUUM t")
			harness.Exec(t, s.DSN, "SYNC PIPELINE p UNTIL CAUGHT UP")
		}
		pending, err := harness.Text(s.DSN, "SELECT live_rows FROM skippr.tables WHERE table_schema = 'p'")
		if err != nil {
			t.Fatal(err)
		}
		compareQueries(t, s, direct, files, fmt.Sprintf("%dM rows, %s live", rows/1e6, pending))
	}
	harness.Exec(t, s.DSN, "ALTER PIPELINE p COMPACT")
	compareQueries(t, s, direct, files, fmt.Sprintf("%dM rows, 0 live after changes were compacted", rows/1e6))
	finish(t, s)
}

// compareQueries prints a row for each query on the table and on its files as they were
// before it changed.
func compareQueries(t *testing.T, s *harness.Server, direct *engine, files, state string) {
	t.Helper()
	defer profile(t, s, "union "+state)()
	conn := harness.Connect(t, s.DSN)
	for _, q := range unionQueries {
		base := func() { direct.run(t, fmt.Sprintf(q.sql, files)) }
		ours := func() { drain(t, conn, fmt.Sprintf(q.sql, "p.t")) }
		base()
		ours()
		theirs, our := sideBySide(subject{base, ownCPU}, subject{ours, func() float64 { return cpu(t, s.PID()) }})
		row(t, q.name+", "+state, "%.1f ms, engine alone %.1f ms: %.2f times; CPU %.0f ms, %.0f ms: %.2f times",
			our.wall, theirs.wall, our.wall/theirs.wall, our.cpu, theirs.cpu, our.cpu/theirs.cpu)
	}
}

// subject is something to measure: what to run, and the CPU-seconds it has used.
type subject struct {
	run func()
	cpu func() float64
}

// cost is in milliseconds: the median of the times, the mean of the CPU.
type cost struct{ wall, cpu float64 }

// sideBySide runs both in turn, since a shared machine drifts.
func sideBySide(a, b subject) (cost, cost) {
	both := [2]subject{a, b}
	var walls [2][]float64
	var used [2]float64
	runs := 0
	for began := time.Now(); runs < 9 || runs < 200 && time.Since(began) < 4*time.Second; runs++ {
		for i, x := range both {
			before, at := x.cpu(), time.Now()
			x.run()
			walls[i] = append(walls[i], float64(time.Since(at).Microseconds())/1000)
			used[i] += x.cpu() - before
		}
	}
	of := func(i int) cost { return cost{median(walls[i]), used[i] * 1000 / float64(runs)} }
	return of(0), of(1)
}

// ownCPU is the CPU-seconds of this process alone.
func ownCPU() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // of ourselves: it cannot fail
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

// lakeFiles is the table function over the files of the table's snapshot.
func lakeFiles(t *testing.T, s *harness.Server) string {
	t.Helper()
	list, err := harness.Text(s.DSN, "SELECT string_agg('''' || path || '''', ',') FROM skippr.files WHERE table_schema = 'p' AND kind = 'data'")
	if err != nil || list == "" {
		t.Fatalf("files: %q, %v", list, err)
	}
	return "read_parquet([" + list + "])"
}

// engine is the query engine in this process, without us.
type engine struct{ conn *driver.Conn }

func openDirect(t *testing.T) *engine {
	t.Helper()
	db, err := driver.Open(map[string]string{"threads": fmt.Sprint(runtime.NumCPU())})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); db.Close() })
	if err := conn.Exec("SET GLOBAL parquet_metadata_cache = true"); err != nil {
		t.Fatal(err)
	}
	return &engine{conn}
}

func (e *engine) run(t *testing.T, sql string) {
	t.Helper()
	stream, err := e.conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		chunk, err := stream.Next()
		if err != nil {
			t.Fatalf("%s: %v", strings.SplitN(sql, "read_parquet", 2)[0], err)
		}
		if chunk == nil {
			return
		}
	}
}

func drain(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().ExecParams(t.Context(), sql, nil, nil, nil, nil).Close(); err != nil {
		t.Fatal(err)
	}
}

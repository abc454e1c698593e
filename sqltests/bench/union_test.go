package bench

import (
	"fmt"
	"runtime"
	"strings"
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
	for i, live := range []int{0, rows / 200, rows / 20} {
		if live > 0 { // spread over the whole table; the live side holds the newest of each key
			harness.Exec(t, dsn, fmt.Sprintf("UPDATE t SET amount = amount + 1 WHERE id %% %d = %d", rows/live, i), "VACUUM t")
			harness.Exec(t, s.DSN, "SYNC PIPELINE p UNTIL CAUGHT UP")
		}
		pending, err := harness.Text(s.DSN, "SELECT live_rows FROM skippr.tables WHERE table_schema = 'p'")
		if err != nil {
			t.Fatal(err)
		}
		stop := profile(t, s, fmt.Sprintf("union%d", live))
		for _, q := range unionQueries {
			base := func() { direct.run(t, fmt.Sprintf(q.sql, files)) }
			base()
			conn := harness.Connect(t, s.DSN)
			ours := func() { drain(t, conn, fmt.Sprintf(q.sql, "p.t")) }
			ours()
			theirTime, ourTime := sideBySide(base, ours)
			row(t, fmt.Sprintf("%s, %dM rows, %s live", q.name, rows/1e6, pending), "%.1f ms, engine alone %.1f ms: %.2f times", ourTime, theirTime, ourTime/theirTime)
		}
		stop()
	}
	finish(t, s)
}

// sideBySide runs both in turn and returns the medians in milliseconds.
func sideBySide(a, b func()) (float64, float64) {
	var as, bs []float64
	for began := time.Now(); len(as) < 7 || len(as) < 100 && time.Since(began) < 2*time.Second; {
		for _, x := range []struct {
			run  func()
			into *[]float64
		}{{a, &as}, {b, &bs}} {
			at := time.Now()
			x.run()
			*x.into = append(*x.into, float64(time.Since(at).Microseconds())/1000)
		}
	}
	return median(as), median(bs)
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

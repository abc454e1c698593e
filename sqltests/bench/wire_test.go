package bench

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
)

const wireColumns = `i::bigint AS id, (i % 1000)::int AS k, i * 0.5::float8 AS f, (i * 1.01)::numeric(18,4) AS n,
	'2026-01-01 00:00:00+00'::timestamptz + i * interval '1 ms' AS at, '2026-01-01'::date + (i % 365)::int AS d, 'some text ' || i AS s, i % 2 = 0 AS b`

// TestBenchWire reads a whole table over the wire from us and from PostgreSQL.
func TestBenchWire(t *testing.T) {
	pg := begin(t)
	rows := number("SKIPPRD_BENCH_ROWS", 2_000_000)
	dsn := pg.CreateDatabase(t)
	harness.Exec(t, dsn, fmt.Sprintf("CREATE TABLE t AS SELECT %s FROM generate_series(1, %d) i", wireColumns, rows),
		"ALTER TABLE t ADD PRIMARY KEY (id)", "VACUUM ANALYZE t")
	s := server(t)
	create(t, s, dsn)
	harness.Exec(t, s.DSN, "ALTER PIPELINE p COMPACT")
	for _, format := range []int16{0, 1} {
		name := []string{"text", "binary"}[format]
		theirs := wireCost(t, dsn, "SELECT * FROM t", format, rows, 0)
		stop := profile(t, s, "wire-"+name)
		ours := wireCost(t, s.DSN, "SELECT * FROM p.t", format, rows, s.PID())
		stop()
		row(t, "wire, "+name, "%.2fM rows per CPU-second, PostgreSQL %.2fM: %.1f times", float64(rows)/ours/1e6, float64(rows)/theirs/1e6, theirs/ours)
	}
	finish(t, s)
}

// wireCost reads a query whole and returns the server's CPU-seconds: of pid, or of the
// session's PostgreSQL backend.
func wireCost(t *testing.T, dsn, sql string, format int16, rows, pid int) float64 {
	t.Helper()
	best := 0.0
	for range 3 {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		p := pid
		if p == 0 {
			p = int(conn.PgConn().PID())
		}
		before := cpu(t, p)
		rr := conn.PgConn().ExecParams(t.Context(), sql, nil, nil, nil, []int16{format})
		n := 0
		for rr.NextRow() {
			n++
		}
		if _, err := rr.Close(); err != nil || n != rows {
			t.Fatalf("%s: %d rows, %v", sql, n, err)
		}
		if used := cpu(t, p) - before; best == 0 || used < best {
			best = used
		}
		_ = conn.Close(t.Context()) // read to the end
	}
	return best
}

package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestBenchBackfill copies one table whole.
func TestBenchBackfill(t *testing.T) {
	pg := begin(t)
	rows := number("SKIPPRD_BENCH_ROWS", 2_000_000)
	for i, c := range []struct{ name, create string }{
		{"4 columns (pgbench_accounts)", `CREATE TABLE t AS SELECT i::int AS id, (i %% 10)::int AS bid, 0::int AS balance, repeat(' ', 84)::char(84) AS filler FROM generate_series(1, %d) i`},
		{"8 columns of mixed types", `CREATE TABLE t AS SELECT i::bigint AS id, (i %% 1000)::int AS k, i * 0.5::float8 AS f, (i * 1.01)::numeric(18,4) AS n,
			now() + i * interval '1 ms' AS at, current_date AS d, 'some text ' || i AS s, i %% 2 = 0 AS b FROM generate_series(1, %d) i`},
	} {
		dsn := pg.CreateDatabase(t)
		harness.Exec(t, dsn, fmt.Sprintf(c.create, rows), "ALTER TABLE t ADD PRIMARY KEY (id)", "VACUUM ANALYZE t")
		s := server(t, "--commit-interval", "1h")
		stop := profile(t, s, fmt.Sprintf("backfill%d", i))
		before, began := cpu(t, s.PID()), time.Now()
		create(t, s, dsn)
		used, wall := cpu(t, s.PID())-before, time.Since(began).Seconds()
		row(t, "backfill into the log, "+c.name, "%.0fk rows per CPU-second, %.0fk rows/s, peak %d MB",
			float64(rows)/used/1e3, float64(rows)/wall/1e3, harness.PeakBytes(s.PID())>>20)
		stop()
		stop = profile(t, s, fmt.Sprintf("compact%d", i))
		harness.Exec(t, s.DSN, "ALTER PIPELINE p COMPACT")
		stop()
		used, wall = cpu(t, s.PID())-before, time.Since(began).Seconds()
		row(t, "… and into Iceberg", "%.0fk rows per CPU-second, %.0fk rows/s, peak %d MB",
			float64(rows)/used/1e3, float64(rows)/wall/1e3, harness.PeakBytes(s.PID())>>20)
		finish(t, s)
	}
}

// TestBenchCatchUp streams changes that piled up while the pipeline was paused.
func TestBenchCatchUp(t *testing.T) {
	pg := begin(t)
	changes := number("SKIPPRD_BENCH_CHANGES", 300_000)
	for _, perTx := range []int{1, 10, 1000} {
		n := changes
		if perTx == 1 {
			n = changes / 3
		}
		dsn := pg.CreateDatabase(t)
		harness.Exec(t, dsn, "CREATE TABLE t (id bigint PRIMARY KEY, k int, v text, at timestamptz)")
		s := server(t, "--commit-interval", "1h")
		create(t, s, dsn)
		harness.Exec(t, s.DSN, "ALTER PIPELINE p PAUSE")
		harness.Exec(t, dsn, fmt.Sprintf(`DO $$ BEGIN FOR i IN 0..%d LOOP
			INSERT INTO t SELECT i * %d + g, g, 'value ' || g, now() FROM generate_series(1, %d) g; COMMIT; END LOOP; END $$`, n/perTx-1, perTx, perTx))
		stop := profile(t, s, fmt.Sprintf("catchup%d", perTx))
		before, began := cpu(t, s.PID()), time.Now()
		harness.Exec(t, s.DSN, "ALTER PIPELINE p RESUME", "SYNC PIPELINE p UNTIL CAUGHT UP")
		used, wall := cpu(t, s.PID())-before, time.Since(began).Seconds()
		stop()
		if got, err := harness.Text(s.DSN, "SELECT count(*) FROM p.t"); err != nil || got != fmt.Sprint(n) {
			t.Fatalf("%s rows arrived, %v; want %d", got, err, n)
		}
		row(t, fmt.Sprintf("catch-up, %d rows a transaction", perTx), "%.0fk changes per CPU-second, %.0fk changes/s, peak %d MB",
			float64(n)/used/1e3, float64(n)/wall/1e3, harness.PeakBytes(s.PID())>>20)
		finish(t, s)
	}
}

// TestBenchLatency measures from a commit at the source to the first SELECT that sees
// it, while changes come at a steady rate. The reader rests pollPause between queries:
// one that never did would measure how it takes the processors from the server.
func TestBenchLatency(t *testing.T) {
	pg := begin(t)
	for _, rate := range []int{1000, 5000} {
		dsn := pg.CreateDatabase(t)
		harness.Exec(t, dsn, "CREATE TABLE t (id bigint PRIMARY KEY, v text)", "CREATE TABLE mark (id bigint PRIMARY KEY)")
		s := server(t, "--commit-interval", "10s")
		create(t, s, dsn)
		stop := profile(t, s, fmt.Sprintf("latency%d", rate))
		before := cpu(t, s.PID())
		lat, polls := latencies(t, s, dsn, rate, time.Duration(number("SKIPPRD_BENCH_SECONDS", 20))*time.Second)
		stop()
		used := cpu(t, s.PID()) - before
		if len(lat) == 0 {
			t.Fatal("no commit was seen")
		}
		slices.Sort(lat)
		at := func(q float64) time.Duration { return lat[int(q*float64(len(lat)-1))].Round(time.Millisecond / 10) }
		row(t, fmt.Sprintf("commit to visible at %d changes/s", rate), "p50 %v, p90 %v, p99 %v, max %v over %d commits; the server used %.1f CPU-seconds, %d queries included",
			at(.5), at(.9), at(.99), at(1), len(lat), used, polls)
		finish(t, s)
	}
}

const pollPause = 5 * time.Millisecond

// latencies writes at rate in transactions of ten and, beside it, a mark every 50 ms
// whose commit time is noted; a reader polls for the newest mark.
func latencies(t *testing.T, s *harness.Server, dsn string, rate int, d time.Duration) (out []time.Duration, polls int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	committed := map[int64]time.Time{}
	var wg sync.WaitGroup
	wg.Go(func() { writeAtRate(ctx, t, dsn, rate) })
	wg.Go(func() {
		conn := synchronous(t, dsn)
		for id := int64(1); ctx.Err() == nil; id++ {
			if _, err := conn.Exec(ctx, "INSERT INTO mark VALUES ($1)", id); err != nil {
				return
			}
			mu.Lock()
			committed[id] = time.Now()
			mu.Unlock()
			wait(ctx, 50*time.Millisecond)
		}
	})
	conn := harness.Connect(t, s.DSN)
	for seen := int64(0); ctx.Err() == nil; polls++ {
		wait(ctx, pollPause)
		var newest int64
		if err := conn.QueryRow(ctx, "SELECT coalesce(max(id), 0) FROM p.mark").Scan(&newest); err != nil {
			break
		}
		now := time.Now()
		mu.Lock()
		for ; seen < newest; seen++ {
			if at, ok := committed[seen+1]; ok {
				out = append(out, max(0, now.Sub(at)))
			}
		}
		mu.Unlock()
	}
	wg.Wait()
	return out, polls
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// synchronous connects to the source with commits as production has them: those that
// pgtest's server makes wait up to 200 ms before replication may see them.
func synchronous(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn := harness.Connect(t, dsn)
	if _, err := conn.Exec(t.Context(), "SET synchronous_commit = on"); err != nil {
		t.Error(err)
	}
	return conn
}

func writeAtRate(ctx context.Context, t *testing.T, dsn string, rate int) {
	conn := synchronous(t, dsn)
	const perTx = 10
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(i) * perTx * time.Second / time.Duration(rate))
		if d := time.Until(due); d > 0 {
			wait(ctx, d)
		}
		sql := fmt.Sprintf("INSERT INTO t SELECT %d + g, 'value' FROM generate_series(1, %d) g ON CONFLICT (id) DO UPDATE SET v = 'again'", i%20000*perTx, perTx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			return
		}
	}
}

// Package e2e runs the shipped binary against a real PostgreSQL.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// number reads a size of the test from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// pgbench runs the pgbench program on a database.
func pgbench(ctx context.Context, t testing.TB, dsn string, args ...string) *exec.Cmd {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	bin := "pgbench"
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(found) > 0 {
		bin = found[len(found)-1]
	}
	all := append(args, "-h", cfg.Host, "-p", fmt.Sprint(cfg.Port), "-U", cfg.User, cfg.Database)
	return exec.CommandContext(ctx, bin, all...)
}

// pgbenchTables are pgbench's tables with a total order of their rows.
var pgbenchTables = map[string]string{
	"pgbench_accounts": "aid",
	"pgbench_branches": "bid",
	"pgbench_tellers":  "tid",
	"pgbench_history":  "tid, bid, aid, delta, mtime",
}

// transferTables make two balance tables whose sum never changes.
var transferTables = []string{
	"CREATE TABLE balance_a (id int PRIMARY KEY, amount bigint NOT NULL)",
	"CREATE TABLE balance_b (id int PRIMARY KEY, amount bigint NOT NULL)",
	"INSERT INTO balance_a SELECT i, 1000 FROM generate_series(1, 100) i",
	"INSERT INTO balance_b SELECT i, 1000 FROM generate_series(1, 100) i",
}

const totalBalance = "200000"

// transfer moves money between the two tables until ctx ends: the last transfer is whole
// when it returns.
func transfer(ctx context.Context, dsn string, seed int) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for i := seed; ctx.Err() == nil; i++ {
		amount, from, to := i%50, i*7%100+1, i*13%100+1
		a, b := "balance_a", "balance_b"
		if i%2 == 0 {
			a, b = b, a
		}
		sql := fmt.Sprintf("BEGIN; UPDATE %s SET amount = amount - %d WHERE id = %d; UPDATE %s SET amount = amount + %d WHERE id = %d; COMMIT",
			a, amount, from, b, amount, to)
		// A statement that is cancelled may yet be committed, after transfer has returned.
		if _, err := c.PgConn().Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil {
			// Two transfers may deadlock; PostgreSQL rolls one back whole.
			if _, err := c.PgConn().Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll(); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain stops until the pipeline has everything that the source has committed.
func drain(t testing.TB, dsn, pipeline string) {
	t.Helper()
	harness.Exec(t, dsn, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
}

func quoted(dsn string) string { return "'" + strings.ReplaceAll(dsn, "'", "''") + "'" }

// TestPgbench creates a pipeline on a pgbench database while pgbench runs, reads the
// balance sum all the time, and compares every table at a drained moment.
func TestPgbench(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	scale, seconds, reads := number("SKIPPRD_PGBENCH_SCALE", 1), number("SKIPPRD_PGBENCH_SECONDS", 10), number("SKIPPRD_READS", 300)
	if out, err := pgbench(t.Context(), t, source, "-i", "-q", "-s", fmt.Sprint(scale)).CombinedOutput(); err != nil {
		t.Fatalf("pgbench -i: %v\n%s", err, out)
	}
	harness.Exec(t, source, transferTables...)
	ctx, stop := context.WithCancel(t.Context())
	load := pgbench(ctx, t, source, "-n", "-c", "4", "-T", fmt.Sprint(seconds), "--rate", fmt.Sprint(number("SKIPPRD_PGBENCH_RATE", 300)))
	var out strings.Builder
	load.Stdout, load.Stderr = &out, &out
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	writers.Go(func() {
		if err := transfer(ctx, source, 1); err != nil {
			t.Errorf("transfer: %v", err)
		}
	})
	s := harness.New(t, t.TempDir(), "--commit-interval", "2s")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE bench FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	drain(t, s.DSN, "bench")
	var done atomic.Int64
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() { readSums(t, s.DSN, &done, int64(reads)) })
	}
	readers.Wait()
	if err := load.Wait(); err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out.String())
	}
	stop()
	writers.Wait()
	t.Logf("%d reads had the constant sum", done.Load())
	drain(t, s.DSN, "bench")
	tables := map[string]string{"balance_a": "id", "balance_b": "id"}
	for k, v := range pgbenchTables {
		tables[k] = v
	}
	harness.CompareTables(t, source, s.DSN, "bench", tables)
	harness.Exec(t, s.DSN, "ALTER PIPELINE bench COMPACT")
	harness.CompareTables(t, source, s.DSN, "bench", tables)
	harness.Exec(t, s.DSN, "DROP PIPELINE bench")
	if n, err := harness.Text(source, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'skippr_bench'"); err != nil || n != "0" {
		t.Errorf("slots left after DROP PIPELINE: %s, %v", n, err)
	}
	s.Stop()
}

// readSums reads the sum of both tables in one statement until limit reads are done.
func readSums(t testing.TB, dsn string, done *atomic.Int64, limit int64) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Errorf("connect: %v", err)
		return
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for done.Add(1) <= limit {
		var sum string
		err := c.QueryRow(ctx, "SELECT ((SELECT sum(amount) FROM bench.balance_a) + (SELECT sum(amount) FROM bench.balance_b))::text").Scan(&sum)
		if harness.TooOld(err) {
			done.Add(-1) // it is read again
			continue
		}
		if err != nil || sum != totalBalance {
			t.Errorf("sum is %s, %v", sum, err)
			return
		}
	}
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// migration is a transaction that makes, fills, alters, rewrites, empties and drops tables, and
// gives a right: definitions and rows of tables old and new.
var migration = []string{
	"BEGIN", "CREATE TABLE next AS SELECT a, b FROM old", "UPDATE old SET b = b + 1 WHERE a > 2", "ALTER TABLE old ADD z int DEFAULT 7",
	"INSERT INTO old VALUES (11, 11, 11)", "DELETE FROM old WHERE a = 1", "TRUNCATE bag", "INSERT INTO bag VALUES (1), (1)",
	"INSERT INTO gone VALUES (2)", "DROP TABLE gone", "GRANT SELECT ON bag TO public", "COMMIT",
}

// migrated says what there is of it: all of it, or nothing.
const migrated = `SELECT concat_ws('|', (SELECT count(*) FROM pg_class WHERE relname = 'next'), (SELECT sum(a) || ',' || sum(b) || ',' || count(*) FROM old),
	(SELECT count(*) FROM pg_attribute WHERE attname = 'z' AND attrelid = 'old'::regclass), (SELECT string_agg(n::text, ',' ORDER BY n) FROM bag),
	(SELECT count(*) FROM pg_class WHERE relname = 'gone'), (SELECT count(*) FROM information_schema.table_privileges WHERE grantee = 'PUBLIC' AND table_name = 'bag'))`

const (
	notMigrated = "0|55,55,10|0|1,2,2|1|0"
	allMigrated = "1|65,73,10|1|1,1|0|1"
)

// TestMigrateKills: such a transaction takes place whole or not at all, wherever the server
// dies in it; who was told that it is committed finds it, also when the catalog is lost then.
func TestMigrateKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := harness.New(t, dir)
	s.Start()
	before := []string{
		"CREATE TABLE old (a int PRIMARY KEY, b int)", "INSERT INTO old SELECT i, i FROM generate_series(1, 10) AS g(i)",
		"CREATE TABLE gone (a int)", "INSERT INTO gone VALUES (1)", "CREATE TABLE bag (n int)", "INSERT INTO bag VALUES (1), (2), (2)",
	}
	harness.Exec(t, s.DSN, before...)
	points := []string{"AfterBody:1", "BeforeAck:1", "BeforeUpdate:9", "AfterUpdate:9", ""}
	if number("SKIPPRD_KILL_ROUNDS", len(points)) > len(points) {
		for n := 1; n <= 16; n++ {
			points = append(points, fmt.Sprintf("BeforeUpdate:%d", n), fmt.Sprintf("AfterUpdate:%d", n))
		}
	}
	done := 0
	for _, point := range points {
		s.Kill()
		if point != "" {
			s.Setenv("SKIPPRD_FAILPOINT=" + point)
		}
		s.Launch()
		s.Unsetenv()
		if !harness.Until(harness.Patience, func() bool { return s.Dead() || s.TryReady(harness.Patience) == nil || s.Dead() }) {
			t.Fatalf("%s: neither ready nor dead", point)
		}
		told := migrate(t, s.DSN)
		s.Kill()
		if point == "" { // what the log says of it would make it void
			if err := os.RemoveAll(filepath.Join(dir, "catalog")); err != nil {
				t.Fatal(err)
			}
		}
		s.Launch()
		s.WaitReady(harness.Patience)
		state, err := harness.Text(s.DSN, migrated)
		t.Logf("%s: %s, told %v", point, state, told)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case state == allMigrated:
			done++
			rows, err := harness.Text(s.DSN, "SELECT concat_ws('|', (SELECT sum(a) + sum(b) FROM next), (SELECT sum(z) FROM old))")
			if err != nil || rows != "110|74" {
				t.Fatalf("%s: rows %s, %v", point, rows, err)
			}
			harness.Exec(t, s.DSN, "ALTER PIPELINE skippr_own COMPACT")
			if again, err := harness.Text(s.DSN, migrated); err != nil || again != state {
				t.Fatalf("%s: %s in the lake, %v", point, again, err)
			}
			harness.Exec(t, s.DSN, "DROP TABLE next, old, bag")
			harness.Exec(t, s.DSN, before...)
		case state != notMigrated, told:
			t.Fatalf("%s: %s is there, told %v", point, state, told)
		}
	}
	if done == 0 {
		t.Error("it never took place")
	}
}

// migrate runs it, and says whether it was told that it is committed.
func migrate(t *testing.T, dsn string) bool {
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range migration {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			return false
		}
	}
	return true
}

// TestMigrateBeside: while one session alters a table and moves its rows, time after time, others
// commit rows, and define tables of their own. Nobody loses anything.
func TestMigrateBeside(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE m (id int PRIMARY KEY, n int)", "INSERT INTO m VALUES (1, 0)", "CREATE TABLE other (i int)", "CREATE TABLE pages (i int)")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var committed, defined atomic.Int64
	work := func(each func(*pgx.Conn) error) <-chan error {
		c, ended := harness.Connect(t, s.DSN), make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				if err := each(c); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
		return ended
	}
	rows := work(func(c *pgx.Conn) error {
		if _, err := c.Exec(context.Background(), "INSERT INTO other VALUES (1)"); err != nil {
			return err
		}
		committed.Add(1)
		return nil
	})
	tables := work(func(c *pgx.Conn) error {
		n := defined.Add(1)
		_, err := c.Exec(context.Background(), fmt.Sprintf("BEGIN; CREATE TABLE made%d AS SELECT %d AS i; INSERT INTO pages SELECT i FROM made%d; DROP TABLE made%d; COMMIT", n, n, n, n))
		var e *pgconn.PgError
		if errors.As(err, &e) && e.Code == "40001" { // interrupted too often
			defined.Add(-1)
			_, err = c.Exec(context.Background(), "ROLLBACK")
		}
		return err
	})
	c := harness.Connect(t, s.DSN)
	const rounds = 12
	for i := range rounds {
		for _, sql := range []string{
			"BEGIN", fmt.Sprintf("ALTER TABLE m ADD COLUMN c%d int DEFAULT %d", i, i), fmt.Sprintf("UPDATE m SET n = n + 1, c%d = c%d + 1", i, i),
			fmt.Sprintf("INSERT INTO m (id, n) VALUES (%d, 0)", i+2), "COMMIT",
		} {
			if _, err := c.Exec(t.Context(), sql); err != nil {
				t.Fatalf("round %d: %s: %v", i, sql, err)
			}
		}
	}
	stop()
	for what, ended := range map[string]<-chan error{"rows": rows, "tables": tables} {
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	check := func() {
		t.Helper()
		want := fmt.Sprintf("%d|%d|%d|%d|%d", rounds+1, rounds*(rounds+1)/2, rounds, committed.Load(), defined.Load())
		got, err := harness.Text(s.DSN, fmt.Sprintf("SELECT concat_ws('|', (SELECT count(*) FROM m), (SELECT sum(n) FROM m), (SELECT max(c%d) FROM m), (SELECT count(*) FROM other), (SELECT count(*) FROM pages))", rounds-1))
		if err != nil || got != want {
			t.Fatalf("%s, want %s, %v", got, want, err)
		}
	}
	check()
	s.Kill()
	s.Launch()
	s.WaitReady(harness.Patience)
	check()
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// rekeying gives a table a primary key, or takes it away, between changes of its rows in the same
// transaction and after it. Rows of the log that were written under the other rule are those which
// a death could read by the wrong one.
var rekeying = map[bool][]string{
	false: {
		"INSERT INTO k VALUES (1, 100), (11, 0)", "DELETE FROM k WHERE a = 11", "DELETE FROM k WHERE n = 100",
		"BEGIN", "INSERT INTO k VALUES (11, 0)", "ALTER TABLE k ADD PRIMARY KEY (a)", "UPDATE k SET n = n + 1", "DELETE FROM k WHERE a = 11", "COMMIT",
	},
	true: {
		"INSERT INTO k VALUES (11, 0)", "UPDATE k SET a = 12 WHERE a = 11", "DELETE FROM k WHERE a = 12",
		"BEGIN", "INSERT INTO k VALUES (11, 0)", "ALTER TABLE k DROP CONSTRAINT k_pkey", "INSERT INTO k VALUES (11, 0)", "UPDATE k SET n = n + 1",
		"DELETE FROM k WHERE a = 11", "COMMIT",
	},
}

// rekeyed says whether the table has a key, how many rows and which keys it has, and what they add
// up to.
const rekeyed = `SELECT concat_ws('|', (SELECT count(*) FROM pg_constraint WHERE conname = 'k_pkey'),
	(SELECT count(*) || ',' || count(DISTINCT a) || ',' || min(a) || ',' || max(a) FROM k WHERE n < 100 AND a <= 10), (SELECT sum(n) FROM k WHERE n < 100 AND a <= 10))`

// TestRekeyKills: a table has all its rows, once, and a key or none as it was told, wherever the
// server dies while it gets a primary key or loses it.
func TestRekeyKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := harness.New(t, dir)
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE k (a int, n int)", "INSERT INTO k SELECT i, 0 FROM generate_series(1, 10) AS g(i)")
	points := []string{"BeforeLakeCommit:1", "AfterLakeCommit:1", "BeforeUpdate:6", "AfterUpdate:6", "", "lost"}
	if number("SKIPPRD_KILL_ROUNDS", len(points)) > len(points) {
		for n := 1; n <= 9; n++ {
			points = append(points, fmt.Sprintf("BeforeUpdate:%d", n), fmt.Sprintf("AfterUpdate:%d", n))
		}
	}
	key, sum := false, 0
	for _, point := range points {
		s.Kill()
		if strings.Contains(point, ":") {
			s.Setenv("SKIPPRD_FAILPOINT=" + point)
		}
		s.Launch()
		s.Unsetenv()
		if !harness.Until(harness.Patience, func() bool { return s.Dead() || s.TryReady(harness.Patience) == nil || s.Dead() }) {
			t.Fatalf("%s: neither ready nor dead", point)
		}
		told := rekey(t, s.DSN, rekeying[key])
		s.Kill()
		if point == "lost" {
			if err := os.RemoveAll(filepath.Join(dir, "catalog")); err != nil {
				t.Fatal(err)
			}
		}
		s.Launch()
		s.WaitReady(harness.Patience)
		state, err := harness.Text(s.DSN, rekeyed)
		if err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprintf("%d|10,10,1,10|%d", digit(key), sum)
		after := fmt.Sprintf("%d|10,10,1,10|%d", digit(!key), sum+10)
		t.Logf("%s: %s, told %v", point, state, told)
		switch {
		case state == after:
			key, sum = !key, sum+10
		case state != before, told:
			t.Fatalf("%s: %s is there instead of %s or %s, told %v", point, state, before, after, told)
		}
		harness.Exec(t, s.DSN, "DELETE FROM k WHERE a > 10 OR n >= 100")
		if again, err := harness.Text(s.DSN, rekeyed); err != nil || again != state {
			t.Fatalf("%s: %s without the rows of before, %v", point, again, err)
		}
		if err := enforced(t, s.DSN); key != (err != nil) {
			t.Fatalf("%s: a second row of a key: %v", point, err)
		}
		harness.Exec(t, s.DSN, "ALTER PIPELINE skippr_own COMPACT")
		if again, err := harness.Text(s.DSN, rekeyed); err != nil || again != state {
			t.Fatalf("%s: %s in the lake, %v", point, again, err)
		}
	}
	if sum < 20 {
		t.Errorf("it took place %d times", sum/10)
	}
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rekey runs statements, and says whether all were told to be done.
func rekey(t *testing.T, dsn string, statements []string) bool {
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Logf("%s: %v", sql, err)
			return false
		}
	}
	return true
}

// enforced is the error of a second row with a key that there is; the row does not stay.
func enforced(t *testing.T, dsn string) error {
	conn := harness.Connect(t, dsn)
	_, err := conn.Exec(t.Context(), "INSERT INTO k VALUES (5, 100)")
	var told *pgconn.PgError
	switch {
	case err == nil:
		_, err := conn.Exec(t.Context(), "DELETE FROM k WHERE n = 100")
		if err != nil {
			t.Fatal(err)
		}
		return nil
	case !errors.As(err, &told) || told.Code != "23505":
		t.Fatal(err)
	}
	return err
}

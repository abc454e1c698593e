package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// orphans counts rows that refer to one that is not there.
const orphans = "SELECT count(*) FROM kid WHERE mom IS NOT NULL AND NOT EXISTS (SELECT 1 FROM mom WHERE mom.id = kid.mom)"

// TestForeignConcurrent: some give rows a parent while others take parents away, in one statement
// and in several. Each is told that it is done, that the foreign key forbids it, or that it met
// others in a circle; never is there a row without its parent, nor is one lost.
func TestForeignConcurrent(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE mom (id int PRIMARY KEY, n int)", "CREATE TABLE kid (id int PRIMARY KEY, mom int REFERENCES mom, kin int)",
		"CREATE TABLE pet (kid int REFERENCES kid ON DELETE CASCADE)")
	const moms, rounds = 4, 5
	var wg sync.WaitGroup
	kids := make([]int, 3)
	failed := make([]error, 6)
	run := func(who int, f func(*pgx.Conn, int) error) {
		conn := harness.Connect(t, s.DSN)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for round := range rounds {
				err := f(conn, round)
				var told *pgconn.PgError
				if err != nil && (!errors.As(err, &told) || told.Code != "23503" && told.Code != "40P01" && told.Code != "23505") {
					failed[who] = err
					return
				}
			}
		}()
	}
	for w := range 3 {
		run(w, func(c *pgx.Conn, round int) error {
			id := w*rounds + round
			_, err := c.Exec(context.Background(), fmt.Sprintf("BEGIN; INSERT INTO kid VALUES (%d, %d); INSERT INTO pet VALUES (%[1]d); COMMIT", id, round%moms))
			if err == nil {
				kids[w]++
				return nil
			}
			_, undone := c.Exec(context.Background(), "ROLLBACK")
			return errors.Join(err, undone)
		})
	}
	run(3, func(c *pgx.Conn, round int) error {
		_, err := c.Exec(context.Background(), "DELETE FROM mom WHERE id = $1", round%moms)
		return err
	})
	run(4, func(c *pgx.Conn, round int) error {
		_, err := c.Exec(context.Background(), "INSERT INTO mom VALUES ($1, 0) ON CONFLICT (id) DO UPDATE SET n = mom.n + 1", round%moms)
		return err
	})
	run(5, func(c *pgx.Conn, round int) error {
		_, err := c.Exec(context.Background(), "UPDATE mom SET id = id + 100 WHERE id = $1", round%moms)
		return err
	})
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	if n, err := harness.Text(s.DSN, orphans); n != "0" || err != nil {
		t.Errorf("%s rows without a parent, %v", n, err)
	}
	want := fmt.Sprint(kids[0] + kids[1] + kids[2])
	if n, err := harness.Text(s.DSN, "SELECT count(*) FROM pet"); n != want || err != nil {
		t.Errorf("%s rows, %s committed, %v", n, want, err)
	}
}

// TestForeignKills: wherever the server dies while rows and their parents come and go together, by
// cascades too, no row is without its parent afterwards, and what was told to be done is done.
func TestForeignKills(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE TABLE mom (id int PRIMARY KEY)",
		"CREATE TABLE kid (id int PRIMARY KEY, mom int REFERENCES mom ON DELETE CASCADE ON UPDATE CASCADE)", "INSERT INTO mom VALUES (0)", "INSERT INTO kid VALUES (0, 0)")
	points := []string{"AfterBody:3", "AfterMarker:2"}
	if number("SKIPPRD_KILL_ROUNDS", len(points)) > len(points) {
		for n := 1; n <= 8; n++ {
			points = append(points, fmt.Sprintf("AfterBody:%d", n), fmt.Sprintf("AfterMarker:%d", n), fmt.Sprintf("BeforeUpdate:%d", n))
		}
	}
	at := 0 // the parent's number
	for _, point := range points {
		s.Kill()
		s.Setenv("SKIPPRD_FAILPOINT=" + point)
		s.Launch()
		s.Unsetenv()
		if !harness.Until(harness.Patience, func() bool { return s.Dead() || s.TryReady(harness.Patience) == nil || s.Dead() }) {
			t.Fatalf("%s: neither ready nor dead", point)
		}
		told, tried := at, at
		conn, err := pgx.Connect(t.Context(), s.DSN)
		for ; err == nil && tried < at+6; told = tried {
			tried++
			_, err = conn.Exec(t.Context(), fmt.Sprintf("BEGIN; INSERT INTO mom VALUES (-1); INSERT INTO kid VALUES (-1, -1); UPDATE mom SET id = %d WHERE id >= 0; DELETE FROM mom WHERE id < 0; COMMIT", tried))
		}
		if conn != nil {
			_ = conn.Close(context.Background())
		}
		s.Kill()
		s.Launch()
		s.WaitReady(harness.Patience)
		state, err := harness.Text(s.DSN, "SELECT concat_ws('|', (SELECT string_agg(id::text, ',') FROM mom), (SELECT string_agg(id || '-' || mom, ',') FROM kid))")
		if err != nil {
			t.Fatal(err)
		}
		last := fmt.Sprintf("%d|0-%[1]d", told)
		open := fmt.Sprintf("%d|0-%[1]d", tried)
		if state != last && state != open {
			t.Fatalf("%s: %s, told %d, tried %d", point, state, told, tried)
		}
		if at = told; state == open {
			at = tried
		}
	}
	if at == 0 {
		t.Error("nothing took place")
	}
}

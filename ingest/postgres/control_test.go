package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestDescriptionLendsControl: a description, and an expression, that wait for the lock of a
// table leave the control connection to the copy, for whose end that lock may wait.
func TestDescriptionLendsControl(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED)")
	r.begin()
	table := r.table("a")
	locker := r.connect()
	lock := func(sql string) {
		t.Helper()
		if _, err := locker.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	lent := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.src.withControl(ctx, func(conn *pgx.Conn) error { return run(ctx, conn.PgConn(), "SELECT 1") }); err != nil {
			t.Errorf("while %s waits for a lock: %v", what, err)
		}
	}

	lock("BEGIN; LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
	known := make(chan error, 1)
	go func() {
		_, err := r.src.renamed(context.Background(), table.OID, newSchema(t, table))
		known <- err
	}()
	r.awaitBlocked()
	lent("an expression")
	lock("COMMIT")
	if err := <-known; err != nil {
		t.Error(err)
	}

	sink := r.stream(r.setup.Start, nil)
	r.awaitStream()
	lock("BEGIN; ALTER TABLE a ADD x int; INSERT INTO a VALUES (2)")
	next := r.connect() // has the lock when the description is in the log
	locked := make(chan error, 1)
	go func() {
		_, err := next.Exec(context.Background(), "BEGIN; LOCK TABLE a IN ACCESS EXCLUSIVE MODE")
		locked <- err
	}()
	r.awaitBlocked()
	lock("COMMIT")
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	r.awaitBlocked()
	lent("a description")
	if _, err := next.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	sink.await("the row that was described", func() bool {
		return slices.ContainsFunc(sink.mu.lines, func(line string) bool { return strings.HasPrefix(line, "a insert 2|") })
	})
}

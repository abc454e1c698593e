package visible

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/env"
)

// hasty is a clock that does not wait.
type hasty struct {
	env.Clock
	slept time.Duration
}

func (h *hasty) Sleep(ctx context.Context, d time.Duration) error {
	h.slept += d
	return context.Cause(ctx)
}

// TestDoubt: a row that a statement which runs for long has changed is of doubt, as are those with a mark of others, after the
// bound, and the next time at once. All others are settled, and a table that was rewritten
// tells nothing.
func TestDoubt(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.CreateDatabase(t)
	server.Exec(t, dsn, "CREATE TABLE a (id int PRIMARY KEY, v int)", "INSERT INTO a SELECT i, i FROM generate_series(1, 3000) i", "DELETE FROM a WHERE id = 2900")
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	ours, theirs, clock := connect(), connect(), &hasty{}
	rows := &Rows{Source: Source{Clock: clock, Lend: func(_ context.Context, use func(*pgx.Conn) error) error { return use(ours) }}}
	table := Table{Name: "a"}
	if err := ours.QueryRow(t.Context(), "SELECT 'a'::regclass::oid, pg_relation_filenode('a')").Scan(&table.OID, &table.File); err != nil {
		t.Fatal(err)
	}
	var seen []Row
	got, err := ours.Query(t.Context(), "SELECT ctid::text, xmin::text FROM a ORDER BY id")
	if err == nil {
		seen, err = pgx.CollectRows(got, pgx.RowToStructByPos[Row])
	}
	if err != nil || len(seen) != 2999 {
		t.Fatal(len(seen), err)
	}
	want := func(what, want string) {
		t.Helper()
		changed, doubt, err := rows.Changed(t.Context(), table, seen)
		if got := fmt.Sprint(changed, doubt, err); got != want {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	want("nothing has happened", "[] [] <nil>")
	server.Exec(t, dsn, "DELETE FROM a WHERE id IN (2, 2999)", "BEGIN; DELETE FROM a WHERE id = 5; ROLLBACK")
	want("rows are gone", "[1 2997] [] <nil>")
	if clock.slept != 0 {
		t.Errorf("%s waited, and nobody writes", clock.slept)
	}
	if _, err := theirs.Exec(t.Context(), "BEGIN; UPDATE a SET v = 0 WHERE id = 3"); err != nil {
		t.Fatal(err)
	}
	want("somebody thinks", "[1 2997] [] <nil>")
	theirs.PgConn().Frontend().SendQuery(&pgproto3.Query{String: "SELECT pg_sleep(3600)"})
	if err := theirs.PgConn().Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	for state := ""; state != "active"; {
		if err := ours.QueryRow(t.Context(), "SELECT state FROM pg_stat_activity WHERE pid = $1", theirs.PgConn().PID()).Scan(&state); err != nil {
			t.Fatal(err)
		}
	}
	want("somebody works", "[1 2997] [2 4] <nil>")
	if clock.slept < waitMost {
		t.Errorf("%s waited", clock.slept)
	}
	clock.slept = 0
	want("he works still", "[1 2997] [2 4] <nil>")
	if clock.slept != 0 {
		t.Errorf("%s waited again", clock.slept)
	}
	server.Exec(t, dsn, fmt.Sprintf("SELECT pg_terminate_backend(%d, 30000)", theirs.PgConn().PID()))
	want("he is gone", "[1 2997] [] <nil>")
	server.Exec(t, dsn, "VACUUM FULL a")
	want("rewritten", "[] [] look at rows of a: "+ErrRewritten.Error())
	server.Exec(t, dsn, "DROP TABLE a")
	want("dropped", "[] [] look at rows of a: "+ErrRewritten.Error())
}

// TestNoteOpen: what was waited for in vain is remembered as long as it is alive.
func TestNoteOpen(t *testing.T) {
	rows := &Rows{}
	rows.noteOpen([]string{"3/1", "4/7"}, []string{"3/1", "4/7", "5/1"})
	rows.noteOpen([]string{"6/2"}, []string{"3/1", "6/2"})
	rows.noteOpen([]string{"7/1"}, []string{"3/1", "6/2"}) // it has ended just now
	if len(rows.mu.open) != 2 || !rows.isOpen("3/1") || !rows.isOpen("6/2") {
		t.Errorf("open: %v", rows.mu.open)
	}
}

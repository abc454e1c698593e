package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// wireTalk sends messages and writes down the answer up to ReadyForQuery.
func wireTalk(t *testing.T, f *pgproto3.Frontend, ms ...pgproto3.FrontendMessage) string {
	t.Helper()
	for _, m := range append(ms, &pgproto3.Sync{}) {
		f.Send(m)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			got = append(got, string(m.Values[0]))
		case *pgproto3.CommandComplete:
			got = append(got, string(m.CommandTag))
		case *pgproto3.ErrorResponse:
			got = append(got, m.Code)
		case *pgproto3.PortalSuspended:
			got = append(got, "more")
		case *pgproto3.RowDescription:
			got = append(got, fmt.Sprintf("%d columns", len(m.Fields)))
		case *pgproto3.ReadyForQuery:
			return strings.Join(got, ", ")
		}
	}
}

// FETCH, MOVE and CLOSE take a bound portal as a cursor, and Describe, Execute and Close
// a cursor as a portal; each goes on where the other stopped.
func TestCursorsArePortals(t *testing.T) {
	w := newWorld(t)
	w.put("1 ada 10.50", "2 bob 20.00", "3 cy 1.00", "4 di 2.00")
	f := w.connect().PgConn().Frontend()
	const ids = "SELECT id FROM shop.orders ORDER BY id"
	run := func(sql string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{}}
	}
	bound := func(name string, rows uint32) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{
			&pgproto3.Parse{Query: ids}, &pgproto3.Bind{DestinationPortal: name}, &pgproto3.Execute{Portal: name, MaxRows: rows},
		}
	}
	execute := func(name string, rows uint32) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{&pgproto3.Execute{Portal: name, MaxRows: rows}}
	}
	for _, c := range []struct {
		send []pgproto3.FrontendMessage
		want string
	}{
		{run("BEGIN"), "BEGIN"},
		{run("DECLARE c CURSOR FOR " + ids), "DECLARE CURSOR"},
		{[]pgproto3.FrontendMessage{&pgproto3.Describe{ObjectType: 'P', Name: "c"}}, "1 columns"},
		{execute("c", 1), "1, more"},
		{run("FETCH 1 FROM c"), "2, FETCH 1"},
		{execute("c", 0), "3, 4, SELECT 2"},
		{[]pgproto3.FrontendMessage{&pgproto3.Close{ObjectType: 'P', Name: "c"}}, ""},
		{run("SAVEPOINT a"), "SAVEPOINT"},
		{run("FETCH 1 FROM c"), "34000"},
		{run("ROLLBACK TO a"), "ROLLBACK"},
		{bound("p", 1), "1, more"},
		{run("FETCH 1 FROM p"), "2, FETCH 1"},
		{run("MOVE 1 FROM p"), "MOVE 1"},
		{execute("p", 0), "4, SELECT 1"},
		{run("FETCH 1 FROM p"), "FETCH 0"},
		{run("DECLARE p CURSOR FOR " + ids), "42P03"},
		{run("ROLLBACK TO a"), "ROLLBACK"},
		{bound("q", 1), "1, more"},
		{run("CLOSE q"), "CLOSE CURSOR"},
		{execute("q", 0), "34000"},
		{run("ROLLBACK TO a"), "ROLLBACK"},
		{run("DECLARE d CURSOR FOR " + ids), "DECLARE CURSOR"},
		{run("SELECT nothing"), "42703"},
		{run("ROLLBACK"), "ROLLBACK"},
		{execute("d", 0), "34000"},
	} {
		if got := wireTalk(t, f, c.send...); got != c.want {
			t.Errorf("%v: got %s, want %s", c.send[0], got, c.want)
		}
	}
}

// A cursor whose query fails is gone, with its stream, also one WITH HOLD: another FETCH
// must not say that the rows are at their end. One that shall outlive its transaction fails
// with it.
func TestFailedCursorIsGone(t *testing.T) {
	for _, declare := range []string{
		"DECLARE c CURSOR WITH HOLD FOR SELECT 'x'", "DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 'x'",
	} {
		r := &frames{sizes: []int{2}, fail: errors.New("test: the rows broke off")}
		s := openSession(t, r)
		exec := func(sql string) error {
			_, _, err := bind(t, s, sql).Execute(t.Context(), &recorder{}, 0)
			return err
		}
		if err := errors.Join(exec("BEGIN"), exec(declare)); err != nil {
			t.Fatal(err)
		}
		if err := exec("FETCH 2 FROM c"); err != nil || r.open != 1 {
			t.Fatalf("first rows: %v, %d streams open", err, r.open)
		}
		if err := exec("FETCH 1 FROM c"); err == nil {
			t.Fatal("the query did not fail")
		}
		if r.open != 0 {
			t.Errorf("%d streams open after the failure", r.open)
		}
		_, err := s.Prepare(t.Context(), "FETCH 1 FROM c", nil)
		if e, ok := pgerr.As(err); !ok || e.Code != "34000" {
			t.Errorf("%s: after the failure: %v, want 34000", declare, err)
		}
		if err := errors.Join(exec("ROLLBACK"), exec("BEGIN"), exec(declare)); err != nil {
			t.Fatal(err)
		}
		if err := exec("COMMIT"); err == nil || r.open != 0 || s.Status() != pgwire.Idle {
			t.Errorf("%s: commit: %v, %d streams open", declare, err, r.open)
		}
		if err := exec(declare); err == nil || r.open != 0 {
			t.Errorf("%s: outside of a transaction: %v, %d streams open", declare, err, r.open)
		}
	}
}

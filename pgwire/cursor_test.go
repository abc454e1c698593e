package pgwire_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
)

// Cursors of the engine and bound portals share their names: Describe, Execute and Close
// find both, and so does the engine.
func TestCursorsArePortals(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{})
	c := login(t, addr)
	run := func(sql string) messages { return messages{parse("", sql), bind("", ""), execute("", 0)} }
	for _, s := range []step{
		{"begin", append(run("begin"), syncMessage), "ParseComplete BindComplete C:BEGIN Z:T"},
		{"no cursor", messages{&pgproto3.Close{ObjectType: 'P', Name: "c"}, syncMessage}, "CloseComplete Z:T"},
		{"declare", append(run("declare c"), syncMessage), "ParseComplete BindComplete C:DECLARE_CURSOR Z:T"},
		{"describe", messages{describe('P', "c"), syncMessage}, "T:/0/0:/0/0 Z:T"},
		{
			"execute",
			messages{execute("c", 2), execute("c", 0), syncMessage},
			"D[0,row 0] D[1,row 1] PortalSuspended D[2,row 2] D[3,row 3] D[4,row 4] C:SELECT_3 Z:T",
		},
		{
			"close",
			messages{&pgproto3.Close{ObjectType: 'P', Name: "c"}, parse("", "rows 2"), bind("c", ""), syncMessage},
			"CloseComplete ParseComplete BindComplete Z:T",
		},
		{"bound", append(run("fetched c"), syncMessage), "ParseComplete BindComplete C:FOUND_true Z:T"},
		{"at its end", append(append(messages{execute("c", 0)}, run("fetched c")...), syncMessage), "D[0,row 0] D[1,row 1] C:SELECT_2 ParseComplete BindComplete C:FOUND_true Z:T"},
		{"closed", append(append(run("closed c"), run("fetched c")...), syncMessage), "ParseComplete BindComplete C:CLOSE_CURSOR ParseComplete BindComplete C:FOUND_false Z:T"},
		{"declared anew", append(run("declare c"), syncMessage), "ParseComplete BindComplete C:DECLARE_CURSOR Z:T"},
		{"bind to its name", messages{parse("", "rows 2"), bind("c", ""), syncMessage}, "ParseComplete E:42P03 Z:E"},
		{"aborted", messages{execute("c", 1), syncMessage}, "E:25P02 Z:E"},
	} {
		c.send(s.send...)
		if got := c.until("Z"); got != s.want {
			t.Errorf("%s: %s\nwant %s", s.name, got, s.want)
		}
	}
}

// Parameters are told in PostgreSQL's order, which is blind to case.
func TestParametersInOrder(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{})
	c := dialRaw(t, addr)
	c.send(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "postgres", "database": "lake"}})
	var names []string
	for {
		m, err := c.f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := m.(*pgproto3.ParameterStatus); ok {
			names = append(names, p.Name)
		}
		if _, ok := m.(*pgproto3.ReadyForQuery); ok {
			break
		}
	}
	want := []string{
		"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby", "integer_datetimes",
		"IntervalStyle", "is_superuser", "server_encoding", "server_version", "session_authorization", "standard_conforming_strings", "TimeZone",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got  %v\nwant %v", names, want)
	}
}

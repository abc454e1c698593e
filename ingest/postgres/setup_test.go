package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// ask runs a query and returns its only value as text.
func (r *rig) ask(query string, args ...any) string {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var out string
	if err := conn.QueryRow(r.Context(), query, args...).Scan(&out); err != nil {
		r.Fatalf("%s: %v", query, err)
	}
	return out
}

// A crash after the slot was made and before the state was durable: set up anew.
func TestSetupAfterCrashWithoutState(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	first := r.setup
	r.reopen()
	r.exec("INSERT INTO a VALUES (1)")
	r.setup.State = nil
	r.begin()
	if !r.setup.Created || r.src.Compare(r.setup.Start, first.Start) <= 0 {
		t.Fatalf("created %v, start %s after %s", r.setup.Created, r.setup.Start, first.Start)
	}
	if rows := r.copy(r.backfill(), "a"); !slices.Equal(rows, []string{"1"}) {
		t.Fatalf("got %v", rows)
	}
}

// A slot that somebody has read from is not ours to drop.
func TestSetupSparesSlotInUse(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	other := r.openAs(r.dsn)
	if _, err := other.Setup(t.Context(), nil, r.tables); !errors.Is(err, ErrSlotInUse) {
		t.Fatalf("active slot: %v", err)
	}
	known := r.openAs(r.dsn)
	known.others = func() [][]byte { return [][]byte{r.setup.State} }
	if _, err := known.Setup(t.Context(), nil, r.tables); err == nil || !strings.Contains(err.Error(), "of another pipeline here") {
		t.Fatalf("active slot of a pipeline that is known here: %v", err)
	}
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	r.exec(`DO $$ BEGIN FOR i IN 1..3600 LOOP EXIT WHEN NOT (SELECT active FROM pg_replication_slots WHERE slot_name = 'skippr_` + r.name + `');
		PERFORM pg_sleep(0.05); END LOOP; END $$`)
	var setup *SetupError
	if _, err := other.Setup(t.Context(), nil, r.tables); !errors.As(err, &setup) || !strings.Contains(err.Error(), "pg_drop_replication_slot") {
		t.Fatalf("slot read from: %v", err)
	}
}

// A slot that is gone is an error, never a start from now.
func TestSetupSlotDropped(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	r.reopen()
	r.exec("SELECT pg_drop_replication_slot('skippr_" + r.name + "')")
	if _, err := r.src.Setup(t.Context(), r.setup.State, r.tables); !errors.Is(err, ErrSlotLost) {
		t.Fatalf("got %v", err)
	}
}

func TestSetupOtherServer(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	other := r.openAs(r.server.CreateDatabase(t))
	if _, err := other.Setup(t.Context(), r.setup.State, r.tables); !errors.Is(err, ErrOtherServer) {
		t.Fatalf("got %v", err)
	}
}

// A table added later joins the publication, and the stream and a later copy share
// out its changes.
func TestSetupAddsTable(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.sel.AllTables, r.sel.Tables = false, selected("a")
	r.begin()
	_ = r.backfill().Close()
	r.exec("CREATE TABLE b (id int)", "INSERT INTO b VALUES (1)")
	r.sel.Tables = selected("a", "b")
	r.begin()
	if r.setup.Created {
		t.Fatal("the slot was made again")
	}
	r.exec("INSERT INTO b VALUES (2)")
	b := r.backfill()
	rows := r.copy(b, "b")
	if !slices.Equal(rows, []string{"1", "2"}) {
		t.Fatalf("got %v", rows)
	}
	k := r.stream(r.setup.Start, map[string]changePosition{"b": b.Horizon()})
	r.exec("INSERT INTO b VALUES (3)", "INSERT INTO a VALUES (1)")
	k.expect("b insert 3", "a insert 1")
}

// A table that is dropped or renamed at the source keeps no other from being streamed,
// by the slot that there is or by a new one.
func TestSetupWithoutDroppedTable(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)", "CREATE TABLE c (id int PRIMARY KEY)")
	r.begin()
	_ = r.backfill().Close()
	r.exec("DROP TABLE b", "ALTER TABLE c RENAME TO d")
	for _, prior := range [][]byte{r.setup.State, nil} {
		r.reopen()
		var err error
		if r.setup, err = r.src.Setup(t.Context(), prior, r.tables); err != nil {
			t.Fatalf("with %d bytes of state: %v", len(prior), err)
		}
		if !slices.ContainsFunc(r.setup.Warnings, func(w string) bool { return strings.Contains(w, "public.b was dropped") }) {
			t.Errorf("warnings %q", r.setup.Warnings)
		}
		if n := r.ask("SELECT count(*)::text FROM pg_publication_tables WHERE pubname = 'skippr_" + r.name + "'"); n != "2" {
			t.Errorf("%s tables are published", n)
		}
	}
	b := r.backfill()
	for _, table := range r.tables {
		_, err := b.Plan(t.Context(), table)
		var stopped *ingest.TableError
		if gone := table.Name == "b"; errors.As(err, &stopped) != gone || !gone && err != nil {
			t.Errorf("plan %s: %v", table.Name, err)
		}
	}
}

// Publishing must not break the user's own statements on a table without a key.
func TestPublicationSparesTablesWithoutKey(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int)", "CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET id = 3 WHERE id = 1", "DELETE FROM a WHERE id = 3", "INSERT INTO a VALUES (4)", "TRUNCATE a")
	k.expect("a insert 4", "a truncate")
	if !slices.ContainsFunc(r.setup.Warnings, func(w string) bool { return strings.Contains(w, "public.a has no key") }) {
		t.Fatalf("warnings %q", r.setup.Warnings)
	}
}

// Nor those on a table whose key is deferrable, which is none in the source's log.
func TestPublicationSparesDeferrableKeys(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY DEFERRABLE)", "INSERT INTO a VALUES (1), (2)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET id = 3 - id", "DELETE FROM a WHERE id = 1", "INSERT INTO a VALUES (4)")
	k.expect("a insert 4")
}

func TestDiscover(t *testing.T) {
	r := newRig(t,
		"CREATE SCHEMA s", "CREATE TABLE s.a (id int PRIMARY KEY, x int)", "CREATE TABLE b (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED)",
		"CREATE UNLOGGED TABLE u (id int PRIMARY KEY)", "CREATE VIEW v AS SELECT 1 AS one", "CREATE TABLE n (id int PRIMARY KEY)",
		"ALTER TABLE n REPLICA IDENTITY NOTHING", "CREATE DOMAIN positive AS int CHECK (VALUE > 0)", "CREATE TYPE mood AS ENUM ('sad', 'ok')",
		"CREATE TABLE d (id positive PRIMARY KEY, m mood, n numeric(10,2), a positive[], big numeric)",
		"CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)", "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)")
	cases := []struct {
		name string
		sel  catalog.TableSelection
		want []string
	}{
		{"all", catalog.TableSelection{AllTables: true}, []string{"public.b", "public.d", "public.n: its replica identity is NOTHING, so updates and deletes are not in the source's log", "public.p", "public.u: the table is unlogged", "s.a"}},
		{"schema", catalog.TableSelection{Schemas: []string{"s"}}, []string{"s.a"}},
		{"except", catalog.TableSelection{AllTables: true, Except: []string{"public.n", "u", "s.a", "d"}}, []string{"public.b", "public.p"}},
		{
			"tables",
			catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "s", Name: "a", Columns: []string{"id"}}, {Name: "v"}, {Name: "none"}, {Name: "p1"}}},
			[]string{"public.p1", "public.v: it is a view", "s.a", "public.none: the table does not exist at the source"},
		},
		{
			"columns",
			catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "s", Name: "a", Columns: []string{"x"}}, {Name: "d", Columns: []string{"id", "y"}}}},
			[]string{`public.d: column "y" does not exist, or is generated and left out`, `s.a: key column "id" is not selected`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tables, err := r.src.Discover(t.Context(), c.sel)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, st := range tables {
				line := st.Schema + "." + st.Name
				if st.Unsupported != "" {
					line += ": " + st.Unsupported
				}
				got = append(got, line)
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	tables, err := r.src.Discover(t.Context(), catalog.TableSelection{AllTables: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range tables {
		if st.Name == "d" || st.Name == "b" {
			for _, c := range st.Columns {
				got = append(got, fmt.Sprintf("%s.%s %d %s %d (%s)", st.Name, c.Name, c.OID, c.TypeName, c.Type.Kind, c.Note))
			}
		}
	}
	want := []string{
		"b.id 23 integer 2 ()", "b.g 23 integer 2 ()", "d.id 23 integer 2 (domain public.positive)", "d.m %d public.mood 11 (exact text)",
		"d.n 1700 numeric(10,2) 6 ()", "d.a %d public.positive[] 11 (exact text)", "d.big 1700 numeric 11 (exact text)",
	}
	for i := range want {
		if strings.Contains(want[i], "%d") {
			want[i] = fmt.Sprintf(want[i], tables[1].Columns[i-2].OID)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A role with nothing but LOGIN hears of everything at once, and with what it was
// told everything works, without a superuser.
func TestValidate(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE n (id int)", "INSERT INTO a VALUES (1)")
	r.src = r.openAs(r.loginOnly())
	if got := r.mend(); !slices.Equal(got, []string{"replication right", "table public.a", "table public.n", "publication"}) {
		t.Fatalf("missing: %v", got)
	}
	if got := r.mend(); len(got) > 0 {
		t.Fatalf("still missing: %v", got)
	}
	r.begin()
	if rows := r.copy(r.backfill(), "a"); !slices.Equal(rows, []string{"1"}) {
		t.Fatalf("got %v", rows)
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET id = 2", "INSERT INTO n VALUES (1)", "DELETE FROM n")
	k.expect("a delete 1", "a insert 2", "n insert 1")
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	left, err := r.src.Teardown(t.Context(), r.setup.State)
	if err != nil || len(left) != 0 {
		t.Fatalf("left %q, %v", left, err)
	}
	if n := r.ask("SELECT count(*)::text FROM pg_publication"); n != "2" {
		t.Fatalf("%s publications of somebody else's were left", n)
	}
}

func TestTeardown(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	away := r.openAs("host=127.0.0.1 port=1 user=postgres dbname=gone password=secret connect_timeout=2")
	left, err := away.Teardown(t.Context(), r.setup.State)
	if !errors.Is(err, ingest.ErrSourceUnavailable) || len(left) != 1 ||
		!strings.Contains(left[0], "pg_drop_replication_slot('skippr_"+r.name+"')") || strings.Contains(left[0], "secret") {
		t.Fatalf("left %q, %v", left, err)
	}
	for range 2 {
		left, err = r.src.Teardown(t.Context(), r.setup.State)
		if err != nil || len(left) != 0 {
			t.Fatalf("left %q, %v", left, err)
		}
	}
	n := r.ask("SELECT ((SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()))::text")
	if n != "0" {
		t.Fatalf("%s objects are left", n)
	}
}

// TestResetAgain: a reset that was killed after it removed the source's side finds
// nothing there, says that it must be repeated, and can be.
func TestResetAgain(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
	r.begin()
	state, tables := r.setup.State, r.tables
	for range 2 {
		if left, err := r.src.Teardown(t.Context(), state); err != nil || len(left) != 0 {
			t.Fatalf("left %q, %v", left, err)
		}
		r.reopen()
		_, err := r.src.Setup(t.Context(), state, tables)
		if !errors.Is(err, ErrSlotLost) || !strings.Contains(err.Error(), "RESET") {
			t.Fatalf("set up after the slot is gone: %v", err)
		}
	}
	r.reopen()
	r.setup = ingest.SetupResult{}
	r.begin()
	if rows := r.copy(r.backfill(), "a"); !slices.Equal(rows, []string{"1"}) {
		t.Fatalf("got %v", rows)
	}
}

// TestTeardownElsewhere: another server has nothing of ours in the way.
func TestTeardownElsewhere(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	state := []byte(strings.Replace(string(r.setup.State), `"system_id":"`, `"system_id":"9`, 1))
	left, err := r.src.Teardown(t.Context(), state)
	if err != nil || len(left) != 1 || !strings.Contains(left[0], "another server") {
		t.Fatalf("left %q, %v", left, err)
	}
}

func TestTeardownWithoutState(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	r.reopen()
	left, err := r.src.Teardown(t.Context(), nil)
	if err != nil || len(left) != 0 {
		t.Fatalf("left %q, %v", left, err)
	}
	if n := r.ask("SELECT count(*)::text FROM pg_replication_slots WHERE database = current_database()"); n != "0" {
		t.Fatalf("%s slots are left", n)
	}
}

// What is wrong with options is said before anything is connected to, and never with
// a password.
func TestOptions(t *testing.T) {
	cases := []struct {
		name          string
		conn, options map[string]string
		want          string
	}{
		{"unknown", map[string]string{"HOTS": "x"}, nil, "unknown connection option HOTS"},
		{"sslmode", map[string]string{"HOST": "h", "SSLMODE": "maybe", "PASSWORD": "hunter2"}, nil, "sslmode is invalid"},
		{"url", map[string]string{"URL": "postgres://u:hunter2@h:port/d"}, nil, "URL"},
		{"parallel", map[string]string{"HOST": "h"}, map[string]string{"backfill_parallel": "0"}, "backfill_parallel"},
		{"slot", map[string]string{"HOST": "h"}, map[string]string{"slot_name": "Big Slot"}, "slot_name"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(t.Context(), ingest.ResolvedConnection{Name: "c", Options: c.conn}, &catalog.Pipeline{Name: "p", Options: c.options}, ingest.SourceDeps{})
			if !errors.Is(err, ingest.ErrBadSource) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("got %v", err)
			}
		})
	}
	cfg, err := connConfig(map[string]string{"URL": "postgres://u@h:7/d?sslmode=require", "PASSWORD": `p'\ w&@`, "SSLMODE": "disable", "PORT": "8"})
	if err != nil || cfg.Host != "h" || cfg.Port != 8 || cfg.User != "u" || cfg.Password != `p'\ w&@` || cfg.Database != "d" || cfg.TLSConfig != nil {
		t.Fatalf("%v", err)
	}
	cfg, err = connConfig(map[string]string{"HOST": "h", "DATABASE": "d", "USER": "u", "PASSWORD": `p'\ w&@`, "SSLMODE": "require"})
	if err != nil || cfg.Host != "h" || cfg.Password != `p'\ w&@` || cfg.Database != "d" || cfg.TLSConfig == nil {
		t.Fatalf("%v", err)
	}
}

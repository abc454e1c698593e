package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// where selects one table by a filter.
func where(name, filter string) catalog.TableSelection {
	return catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "public", Name: name, Where: filter}}}
}

// A filter is for the copy and for the stream; a row that comes to satisfy it is
// inserted, one that ceases to is deleted.
func TestRowFilter(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int, region text, v int, PRIMARY KEY (id, region))",
		"INSERT INTO a SELECT i, CASE WHEN i % 2 = 0 THEN 'eu' ELSE 'us' END, i FROM generate_series(1, 6) i")
	r.sel = where("a", "region = 'eu' AND id < 100 -- of Europe")
	r.reopen()
	r.begin()
	if rows := r.copy(r.backfill(), "a"); !slices.Equal(rows, []string{"2|eu|2", "4|eu|4", "6|eu|6"}) {
		t.Fatalf("copied %q", rows)
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (7, 'us', 7), (8, 'eu', 8)", "UPDATE a SET v = 0 WHERE id IN (1, 2)",
		"UPDATE a SET region = 'eu' WHERE id = 1", "UPDATE a SET region = 'us' WHERE id = 2", "UPDATE a SET id = id + 100 WHERE id = 4",
		"DELETE FROM a WHERE id IN (3, 6)")
	k.expect("a insert 8|eu|8", "a update 2|eu|0", "a insert 1|eu|0", "a delete 2|eu|-", "a delete 4|eu|-", "a delete 6|eu|-")
}

// Partitions are filtered as their table is, by names that it has, and a column that is
// renamed takes its filter along.
func TestRowFilterOfPartitions(t *testing.T) {
	r := newRig(t, "CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)", "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)", "INSERT INTO p SELECT i, i FROM generate_series(3, 16) i")
	r.sel = where("p", "p.id > 5 AND p.id < 14")
	r.reopen()
	r.begin()
	b := r.backfill()
	if rows := r.copy(b, "p"); len(rows) != 8 {
		t.Fatalf("copied %q", rows)
	}
	_ = b.Close()
	r.exec("ALTER TABLE p RENAME id TO number")
	b = r.backfill()
	rows := r.table("p")
	rows.Columns, rows.Key = slices.Clone(rows.Columns), []string{"number"}
	rows.Columns[0].Name = "number"
	r.tables = []ingest.SourceTable{rows}
	if rows := r.copy(b, "p"); len(rows) != 8 {
		t.Fatalf("copied %q after the rename", rows)
	}
	_ = b.Close()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO p VALUES (2, 2), (7+12, 19)", "UPDATE p SET number = 17 WHERE number = 12", "UPDATE p SET v = 0 WHERE number = 7")
	k.expect("p delete 12|-", "p update 7|0")
}

// A filter that the server would refuse, or with which it would refuse the user's own
// updates, is refused with the reason.
func TestRowFilterRefused(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v int)", "CREATE TABLE f (id int PRIMARY KEY, v int)", "ALTER TABLE f REPLICA IDENTITY FULL",
		"CREATE TABLE n (v int)", "CREATE FUNCTION public.mine(int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 > 0'")
	for _, c := range []struct{ table, filter, reason, hint string }{
		{"a", "id > 0", "", ""},
		{"a", "a.id > 0", "", ""},
		{"f", "v > 0", "", ""},
		{"n", "v > 0", "", ""},
		{"a", "nosuch > 0", "does not exist", "own columns"},
		{"a", "v > 0", "replica identity", "ALTER TABLE \"public\".\"a\" REPLICA IDENTITY FULL;"},
		{"a", "random() > 0.5", "invalid publication WHERE expression. User-defined or built-in mutable functions are not allowed", "immutable"},
		{"a", "public.mine(id)", "invalid publication WHERE expression", "immutable"},
		{"n", "ctid = '(0,1)'", "System columns are not allowed", "immutable"},
		{"a", "id", "must be type boolean", "own columns"},
		{"a", "id >", "syntax error", "own columns"},
		{"a", "true); DROP TABLE a; SELECT (1", "cannot insert multiple commands", "own columns"},
	} {
		tables, err := r.src.Discover(t.Context(), where(c.table, c.filter))
		if err != nil || len(tables) != 1 {
			t.Fatalf("%s: %d tables, %v", c.filter, len(tables), err)
		}
		got := tables[0]
		if (got.Unsupported == "") != (c.reason == "") || !strings.Contains(got.Unsupported, c.reason) || !strings.Contains(got.Hint, c.hint) {
			t.Errorf("%s WHERE (%s): %q, hint %q", c.table, c.filter, got.Unsupported, got.Hint)
		}
		if got.Unsupported == "" && (got.Filter != c.filter || !strings.Contains(strings.Join(got.Notes, " "), "("+c.filter+")")) {
			t.Errorf("%s WHERE (%s): filter %q, notes %q", c.table, c.filter, got.Filter, got.Notes)
		}
	}
	// What only the making of a publication tells, when somebody else makes it.
	tables, err := r.src.Discover(t.Context(), where("a", "id > 0"))
	if err != nil {
		t.Fatal(err)
	}
	tables[0].Filter = "public.mine(id)"
	_, err = r.src.Setup(t.Context(), nil, tables)
	var setup *SetupError
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "WHERE expression") {
		t.Errorf("a function of the user's: %v", err)
	}
}

// VALIDATE has the SQL that helps a filter where its SQL belongs, and nothing of what was
// tried stays at the source.
func TestRowFilterValidated(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v int)", "CREATE TABLE b (id int PRIMARY KEY)")
	for filter, want := range map[string]ingest.Finding{
		"v > 0": {
			Detail: "its row filter looks at columns outside of its replica identity, with which updates of the table would fail at the source",
			Fix:    `ALTER TABLE "public"."a" REPLICA IDENTITY FULL;`,
		},
		"now() > '2026-01-01'": {
			Detail: "the source does not publish by its row filter: invalid publication WHERE expression. " +
				"User-defined or built-in mutable functions are not allowed. " + filterHint,
		},
	} {
		r.sel = where("a", filter)
		r.reopen()
		found := r.findings()
		want.Check = "table public.a"
		if !slices.Contains(found, want) {
			t.Errorf("WHERE (%s): %+v", filter, found)
		}
	}
	if n := r.ask("SELECT count(*)::text FROM pg_publication"); n != "0" {
		t.Errorf("%s publications are left", n)
	}
}

// A table that is taken in again with another filter is streamed by that one, also by
// a set-up that was killed before its state was durable.
func TestRowFilterChanges(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1), (11)")
	r.sel = where("a", "id > 10")
	r.reopen()
	r.begin()
	_ = r.backfill().Close()
	from := r.setup.Start
	for _, filter := range []string{"id < 10", "", "id > 20", "id > 20"} {
		r.sel = where("a", filter)
		r.reopen()
		old := r.setup.State
		r.begin()
		r.reopen()
		r.setup.State = old // as if it had been killed
		r.begin()
		if r.setup.Created {
			t.Fatal("the slot was made again")
		}
		b := r.backfill()
		rows := r.copy(b, "a")
		k := r.stream(from, map[string]changePosition{"a": b.Horizon()})
		r.exec("INSERT INTO a VALUES (5), (15), (25)", "DELETE FROM a WHERE id IN (5, 15, 25)")
		want := map[string][]string{
			"id < 10": {"1", "a insert 5", "a delete 5"}, "id > 20": {"a insert 25", "a delete 25"},
			"": {"1", "11", "a insert 5", "a insert 15", "a insert 25", "a delete 5", "a delete 15", "a delete 25"},
		}[filter]
		n := len(rows)
		if !slices.Equal(rows, want[:n]) {
			t.Errorf("%q: copied %q", filter, rows)
		}
		k.expect(want[n:]...)
		if err := k.stop(); err != nil {
			t.Fatal(err)
		}
		for _, at := range []changePosition{k.position(), k.mu.idle} {
			if r.src.Compare(at, from) > 0 {
				from = at
			}
		}
	}
}

// A publication that somebody made for us may send only the columns that are wanted: what
// is left out never leaves the source.
func TestColumnListOfGivenPublication(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, ssn text, v int)", "INSERT INTO a VALUES (1, 'secret', 2)")
	r.exec("CREATE PUBLICATION skippr_"+r.name+" FOR TABLE a (id, v) WHERE (id < 10)",
		"CREATE PUBLICATION skippr_"+r.name+"_other FOR TABLE a")
	r.sel = catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "public", Name: "a", Columns: []string{"id", "v"}, Where: "id < 10"}}}
	r.exec("ALTER PUBLICATION skippr_" + r.name + " SET (publish_via_partition_root = true)")
	r.reopen()
	r.begin()
	b := r.backfill()
	if rows := r.copy(b, "a"); !slices.Equal(rows, []string{"1|2"}) {
		t.Fatalf("copied %q", rows)
	}
	_ = b.Close()
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET ssn = 'other', v = 3", "INSERT INTO a VALUES (2, 'x', 2), (20, 'x', 2)", "ALTER TABLE a ADD COLUMN w int", "UPDATE a SET id = 3, w = 1 WHERE id = 2")
	k.expect("a update 1|3", "a insert 2|2", "a delete 2|-", "a insert 3|2")
	if n := r.ask("SELECT count(*)::text FROM pg_publication WHERE obj_description(oid, 'pg_publication') IS NOT NULL"); n != "0" {
		t.Errorf("%s publications are ours", n)
	}
}

// Columns that are excepted stay out, also of the stream, and others may come.
func TestExceptColumns(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, ssn text, v int)", "INSERT INTO a VALUES (1, 'secret', 2)")
	r.sel = catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "public", Name: "a", Except: []string{"ssn", "later"}}}}
	r.reopen()
	r.begin()
	b := r.backfill()
	if rows := r.copy(b, "a"); !slices.Equal(rows, []string{"1|2"}) {
		t.Fatalf("copied %q", rows)
	}
	_ = b.Close() // it locks the table
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET ssn = 'other', v = 3", "ALTER TABLE a ADD COLUMN later text, ADD COLUMN w int", "UPDATE a SET later = 'secret', w = 4")
	k.expect("a update 1|3", "a is now 1 id integer, 2 v integer, 3 w integer", "a update 1|3|4")
	tables, err := r.src.Discover(t.Context(), catalog.TableSelection{Tables: []catalog.SelectedTable{{Name: "a", Except: []string{"id"}}}})
	if err != nil || !strings.Contains(tables[0].Unsupported, "key column") {
		t.Errorf("the key excepted: %+v, %v", tables, err)
	}
}

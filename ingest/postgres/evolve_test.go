package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// Each change arrives in its place among the rows, under the columns that it was made with.
func TestStreamEvolves(t *testing.T) {
	for name, tc := range map[string]struct {
		create string
		change []string
		want   []string
	}{
		"add": {
			"id int PRIMARY KEY",
			[]string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v int", "INSERT INTO a VALUES (2, 2)"},
			[]string{"a insert 1", "a is now 1 id integer, 2 v integer", "a insert 2|2"},
		},
		"add with a default": {
			"id int PRIMARY KEY",
			[]string{"ALTER TABLE a ADD v text NOT NULL DEFAULT 'it''s {1,2}', ADD w int[] DEFAULT '{1,NULL}'", "INSERT INTO a VALUES (2, 'x')"},
			[]string{`a is now 1 id integer, 2 v text = it's {1,2}, 3 w integer[] = ["1",null]`, "a insert 2|x|[1,null]"},
		},
		"add with a default of the moment": {
			"id int PRIMARY KEY",
			[]string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v timestamptz DEFAULT '2026-01-02 03:04:05.5+09'", "INSERT INTO a VALUES (2)"},
			[]string{"a insert 1", "a is now 1 id integer, 2 v timestamp with time zone = 1767290645500000", "a insert 2|2026-01-01T18:04:05.5Z"},
		},
		"add, and a default that is for new rows only": {
			"id int PRIMARY KEY",
			[]string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v int", "ALTER TABLE a ALTER v SET DEFAULT 7", "INSERT INTO a VALUES (2)"},
			[]string{"a insert 1", "a is now 1 id integer, 2 v integer", "a insert 2|7"},
		},
		"drop": {
			"id int PRIMARY KEY, v int, w text",
			[]string{"INSERT INTO a VALUES (1, 1, 'x')", "ALTER TABLE a DROP v", "INSERT INTO a VALUES (2, 'y')"},
			[]string{"a insert 1|1|x", "a is now 1 id integer, 3 w text", "a insert 2|y"},
		},
		"drop, and another of the same name": {
			"id int PRIMARY KEY, v int, w text",
			[]string{"INSERT INTO a VALUES (1, 1, 'x')", "ALTER TABLE a DROP v", "ALTER TABLE a ADD v int", "INSERT INTO a VALUES (2, 'y', 2)"},
			[]string{"a insert 1|1|x", "a is now 1 id integer, 3 w text, 4 v integer", "a insert 2|y|2"},
		},
		"rename": {
			"id int PRIMARY KEY, v int",
			[]string{"INSERT INTO a VALUES (1, 1)", "ALTER TABLE a RENAME v TO w", "INSERT INTO a VALUES (2, 2)", "ALTER TABLE a RENAME id TO k", "UPDATE a SET k = 3 WHERE k = 2"},
			[]string{"a insert 1|1", "a is now 1 id integer, 2 w integer", "a insert 2|2", "a is now 1 k integer, 2 w integer", "a delete 2|-", "a insert 3|2"},
		},
		"swap names": {
			"id int PRIMARY KEY, v int, w int",
			[]string{"INSERT INTO a VALUES (1, 1, 10)", "ALTER TABLE a RENAME v TO t; ALTER TABLE a RENAME w TO v; ALTER TABLE a RENAME t TO w", "INSERT INTO a VALUES (2, 2, 20)"},
			[]string{"a insert 1|1|10", "a is now 1 id integer, 2 w integer, 3 v integer", "a insert 2|2|20"},
		},
		"widen": {
			"id int PRIMARY KEY, v smallint, n numeric(8,2), f float4, s varchar(3)",
			[]string{"INSERT INTO a VALUES (1, 1, 1.5, 0.5, 'abc')", "ALTER TABLE a ALTER id TYPE bigint, ALTER v TYPE bigint, ALTER n TYPE numeric(20,2), ALTER f TYPE float8, ALTER s TYPE text", "INSERT INTO a VALUES (8000000000, 2, 2.5, 1.5, 'abcd')"},
			[]string{
				"a insert 1|1|1.5|0.5|abc", "a is now 1 id bigint, 2 v bigint, 3 n numeric(20,2), 4 f double precision, 5 s text",
				"a insert 8000000000|2|2.5|1.5|abcd",
			},
		},
		"several in one transaction, with rows between": {
			"id int PRIMARY KEY, v int",
			[]string{
				"BEGIN; INSERT INTO a VALUES (1, 1); ALTER TABLE a ADD w text DEFAULT 'w'; INSERT INTO a VALUES (2, 2, 'x'); ALTER TABLE a DROP v; INSERT INTO a VALUES (3, 'y'); COMMIT",
				"INSERT INTO a VALUES (4, 'z')",
			},
			[]string{"a insert 1|1", "a is now 1 id integer, 2 v integer, 3 w text = w", "a insert 2|2|x", "a is now 1 id integer, 3 w text = w", "a insert 3|y", "a insert 4|z"},
		},
		"a savepoint rolled back": {
			"id int PRIMARY KEY, v int",
			[]string{
				"BEGIN; INSERT INTO a VALUES (1, 1); SAVEPOINT s; ALTER TABLE a ADD w text; INSERT INTO a VALUES (2, 2, 'x'); ROLLBACK TO s; INSERT INTO a VALUES (3, 3); COMMIT",
			},
			[]string{"a insert 1|1", "a insert 3|3"},
		},
		"a schema move and a rename of the table": {
			"id int PRIMARY KEY",
			[]string{"CREATE SCHEMA s", "ALTER TABLE a SET SCHEMA s", "INSERT INTO s.a VALUES (1)", "ALTER TABLE s.a RENAME TO b", "INSERT INTO s.b VALUES (2)"},
			[]string{"a insert 1", "a insert 2"},
		},
		"identity FULL": {
			"id int PRIMARY KEY, v int",
			[]string{"ALTER TABLE a REPLICA IDENTITY FULL", "INSERT INTO a VALUES (1, 1)", "ALTER TABLE a RENAME id TO k", "UPDATE a SET k = 2", "ALTER TABLE a ADD w int", "DELETE FROM a"},
			[]string{"a insert 1|1", "a is now 1 k integer, 2 v integer", "a delete 1|-", "a insert 2|1", "a is now 1 k integer, 2 v integer, 3 w integer", "a delete 2|-|-"},
		},
		"an enum of its own, then of the table": {
			"id int PRIMARY KEY",
			[]string{"CREATE TYPE mood AS ENUM ('sad', 'ok')", "ALTER TABLE a ADD m mood DEFAULT 'ok'", "INSERT INTO a VALUES (1)"},
			[]string{"a is now 1 id integer, 2 m public.mood = ok", "a insert 1|ok"},
		},
		"defaults that an array writes in its own way": {
			"id int PRIMARY KEY",
			[]string{`ALTER TABLE a ADD b box DEFAULT '(0,0),(1,1)', ADD l int[] DEFAULT '{1,NULL}', ADD e text DEFAULT '', ADD q text DEFAULT '"NULL", {'`, "INSERT INTO a VALUES (1, '(2,2),(3,3)')"},
			[]string{`a is now 1 id integer, 2 b box = (1,1),(0,0), 3 l integer[] = ["1",null], 4 e text = , 5 q text = "NULL", {`, `a insert 1|(3,3),(2,2)|[1,null]||"NULL", {`},
		},
		"a domain": {
			"id int PRIMARY KEY",
			[]string{"CREATE DOMAIN positive AS numeric(6,2)", "ALTER TABLE a ADD p positive DEFAULT 1.5", "INSERT INTO a VALUES (1)"},
			[]string{"a is now 1 id integer, 2 p numeric(6,2) = 1.50", "a insert 1|1.5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "CREATE TABLE a ("+tc.create+")")
			r.begin()
			k := r.stream(r.setup.Start, nil)
			r.awaitStream() // it has looked at the tables as they were
			r.exec(tc.change...)
			k.expect(tc.want...)
		})
	}
}

// A change that a description says nothing of is in the catalog.
func TestStreamEvolvesUnsaid(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v int)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (1, 1)")
	k.expect("a insert 1|1")
	r.exec("ALTER TABLE a ALTER v SET NOT NULL", "INSERT INTO a VALUES (2, 2)")
	k.expect("a insert 1|1", "a is now 1 id integer, 2 v integer", "a insert 2|2")
	r.exec("ALTER TABLE a DROP v; ALTER TABLE a ADD v int", "INSERT INTO a VALUES (3, 3)") // another of the same name and place
	k.expect("a insert 1|1", "a is now 1 id integer, 2 v integer", "a insert 2|2", "a is now 1 id integer, 3 v integer", "a insert 3|3")
	if s := k.schemas[1]; s.Fields[1].NotNull || s.Version != 3 {
		t.Errorf("columns %+v", s.Fields)
	}
}

// What is not seen by the stream until much later is put in its place all the same: here
// the catalog is as it is at the end when the first description arrives.
func TestStreamEvolvesLate(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v int)")
	r.begin()
	r.exec("INSERT INTO a VALUES (1, 1)", "ALTER TABLE a ADD w text DEFAULT 'w'", "INSERT INTO a VALUES (2, 2, 'x')", "ALTER TABLE a RENAME v TO u",
		"INSERT INTO a VALUES (3, 3, 'y')", "ALTER TABLE a ADD n int", "INSERT INTO a VALUES (4, 4, 'z', 44)", "ALTER TABLE a DROP u", "INSERT INTO a VALUES (5, 'q', 55)")
	k := r.stream(r.setup.Start, nil)
	k.expect("a insert 1|1", "a is now 1 id integer, 2 v integer, 3 w text = w", "a insert 2|2|x", "a is now 1 id integer, 2 u integer, 3 w text = w",
		"a insert 3|3|y", "a is now 1 id integer, 2 u integer, 3 w text = w, 4 n integer", "a insert 4|4|z|44", "a is now 1 id integer, 3 w text = w, 4 n integer", "a insert 5|q|55")
}

// What old rows cannot follow, or what cannot be told apart, stops the table, and no other:
// for good, or until a new copy takes its place.
func TestStreamStopsOnChange(t *testing.T) {
	for name, tc := range map[string]struct {
		create string
		change []string
		reason string // with its verb
	}{
		"another type":           {"id int PRIMARY KEY, v int", []string{"ALTER TABLE a ALTER v TYPE text", "INSERT INTO a VALUES (1, 'x')"}, `stopped: the type of column "v" was changed`},
		"narrowed":               {"id int PRIMARY KEY, v timestamp(6)", []string{"ALTER TABLE a ALTER v TYPE timestamp(0)", "INSERT INTO a VALUES (1)"}, `stopped: the type of column "v" was changed`},
		"rewritten text":         {"id int PRIMARY KEY, v text", []string{"ALTER TABLE a ALTER v TYPE jsonb USING v::jsonb", "INSERT INTO a VALUES (1)"}, `stopped: the type of column "v" was changed`},
		"volatile default":       {"id int PRIMARY KEY", []string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v float8 DEFAULT random()", "INSERT INTO a VALUES (2)"}, `stopped: column "v" was added with a default`},
		"serial":                 {"id int PRIMARY KEY", []string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v serial", "INSERT INTO a VALUES (2)"}, `stopped: column "v" was added with a default`},
		"domain's default":       {"id int PRIMARY KEY", []string{"CREATE DOMAIN one AS int DEFAULT 1", "CREATE DOMAIN uno AS one CHECK (VALUE > 0)", "INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v uno", "INSERT INTO a VALUES (2)"}, `is copied anew: column "v" was added`},
		"a default that is gone": {"id int PRIMARY KEY, w int", []string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v int DEFAULT 5; ALTER TABLE a ALTER v DROP DEFAULT, ALTER w TYPE bigint", "INSERT INTO a VALUES (2)"}, `is copied anew: column "v" was added`},
		"values by USING":        {"id int PRIMARY KEY", []string{"INSERT INTO a VALUES (1)", "ALTER TABLE a ADD v int; ALTER TABLE a ALTER v TYPE int USING id + 1", "INSERT INTO a VALUES (2)"}, `is copied anew: column "v" was added`},
		"the key dropped":        {"id int PRIMARY KEY, v int", []string{"ALTER TABLE a REPLICA IDENTITY FULL", "ALTER TABLE a DROP CONSTRAINT a_pkey", "INSERT INTO a VALUES (1)"}, "is copied anew: no index keeps rows apart"},
		"the key's column":       {"id int PRIMARY KEY, v int", []string{"ALTER TABLE a DROP id", "ALTER TABLE a ADD PRIMARY KEY (v)", "INSERT INTO a VALUES (1)"}, "is copied anew: the key, or the replica identity"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "CREATE TABLE a ("+tc.create+")", "CREATE TABLE zz (id int PRIMARY KEY)")
			r.begin()
			k := r.stream(r.setup.Start, nil)
			r.exec(append(tc.change, "INSERT INTO zz VALUES (1)")...)
			last := func() string { return k.mu.lines[len(k.mu.lines)-1] }
			k.await("the other table", func() bool { return len(k.mu.lines) > 0 && last() == "zz insert 1" })
			k.mu.Lock()
			defer k.mu.Unlock()
			if n := len(k.mu.lines); n < 2 || !strings.HasPrefix(k.mu.lines[n-2], "a "+tc.reason) {
				t.Fatalf("lines:\n%s", strings.Join(k.mu.lines, "\n"))
			}
		})
	}
}

// A partitioned table's defaults are those of its partitions.
func TestStreamEvolvesPartitions(t *testing.T) {
	r := newRig(t, "CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
		"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100)", "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO p VALUES (1, 1), (101, 1)", "ALTER TABLE p ADD w int DEFAULT 7", "CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300)",
		"INSERT INTO p VALUES (2, 2, DEFAULT), (201, 3, 4)")
	k.expect("p insert 1|1", "p insert 101|1", "p is now 1 id integer, 2 v integer, 3 w integer = 7", "p insert 2|2|7", "p insert 201|3|4")
}

// Columns that were not selected come and go unseen.
func TestStreamEvolvesSelected(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, x int, v int)")
	r.sel.AllTables, r.sel.Tables = false, selected("a")
	r.sel.Tables[0].Columns = []string{"id", "v"}
	r.reopen()
	r.begin()
	k := r.stream(r.setup.Start, nil)
	var want []string
	for _, step := range [][]string{
		{"INSERT INTO a VALUES (1, 1, 1)", "a insert 1|1"},
		{"ALTER TABLE a ADD w int; INSERT INTO a VALUES (2, 2, 2, 2)", "a insert 2|2"},
		{"ALTER TABLE a DROP x; INSERT INTO a VALUES (3, 3, 3)", "a insert 3|3"},
		{"ALTER TABLE a RENAME v TO vv; INSERT INTO a VALUES (4, 4)", "a is now 1 id integer, 2 vv integer", "a insert 4|4"},
	} {
		r.exec(step[0])
		want = append(want, step[1:]...)
		k.expect(want...)
	}
}

// A commit that waits for a synchronous standby is streamed long before others see it, the
// catalog included.
func TestStreamEvolvesBeforeItIsVisible(t *testing.T) {
	p := pgtest.StartPrivate(t, "synchronous_standby_names = 'nobody'", "synchronous_commit = local")
	r := privateRig(t, p, "CREATE TABLE a (id int PRIMARY KEY, n int)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.awaitStream()
	done := make(chan error, 1)
	go func() {
		conn, err := pgx.Connect(context.Background(), r.dsn)
		if err == nil {
			_, err = conn.Exec(context.Background(), "SET synchronous_commit = on; ALTER TABLE a ALTER n TYPE bigint; INSERT INTO a VALUES (1, 2)")
			_ = conn.Close(context.Background())
		}
		done <- err
	}()
	awaitThat(t, "a commit that waits, and is streamed", func() bool {
		return r.ask(`SELECT (EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep') AND
			EXISTS (SELECT FROM pg_stat_replication WHERE sent_lsn >= pg_current_wal_lsn()))::text`) == "true"
	})
	r.exec("SELECT pg_sleep(0.3)", "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	k.expect("a is now 1 id integer, 2 n bigint", "a insert 1|2")
}

package postgres

import (
	"slices"
	"strings"
	"testing"
)

// Without a key and with identity FULL a change carries the whole row that it was of,
// large values that it left unchanged too.
func TestStreamWholeRows(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (n int, v text, w text)", "ALTER TABLE a ALTER w SET STORAGE EXTERNAL",
		"ALTER TABLE a REPLICA IDENTITY FULL", "INSERT INTO a VALUES (1, 'x', NULL), (1, 'x', NULL)")
	r.begin()
	if a := r.table("a"); !a.WholeRow || len(a.Key) > 0 || len(a.Notes) > 0 {
		t.Fatalf("table: %+v", a)
	}
	b := r.backfill()
	rows := r.copy(b, "a")
	_ = b.Close() // it holds a lock
	if want := []string{"1|x|-", "1|x|-"}; !slices.Equal(rows, want) {
		t.Fatalf("copied %v", rows)
	}
	large := strings.Repeat("y", 3000)
	k := r.stream(r.setup.Start, nil)
	r.exec("DELETE FROM a WHERE ctid = (SELECT min(ctid) FROM a)", "UPDATE a SET w = '"+large+"'", "UPDATE a SET n = 2",
		"TRUNCATE a")
	k.expect("a delete 1|x|-", "a delete 1|x|-", "a insert 1|x|"+large, "a delete 1|x|"+large, "a insert 2|x|"+large, "a truncate")
}

// The identity may change under the stream. Where PostgreSQL sends whole rows still, or
// refuses the changes that it could not send, the table goes on; else it stops before one
// is lost.
func TestStreamWholeRowsIdentityChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		change []string
		want   []string // a prefix each
	}{
		{"default", []string{"ALTER TABLE a REPLICA IDENTITY DEFAULT", "INSERT INTO a VALUES (2)"}, []string{"a insert 2"}},
		{"nothing", []string{"ALTER TABLE a REPLICA IDENTITY NOTHING", "INSERT INTO a VALUES (2)"}, []string{"a insert 2"}},
		{
			"and back",
			[]string{"ALTER TABLE a REPLICA IDENTITY NOTHING; INSERT INTO a VALUES (2); ALTER TABLE a REPLICA IDENTITY FULL; DELETE FROM a WHERE n = 2"},
			[]string{"a insert 2", "a delete 2"},
		},
		{"key, still full", []string{"ALTER TABLE a ADD PRIMARY KEY (n)", "UPDATE a SET n = 2"}, []string{"a delete 1", "a insert 2"}},
		{
			"key, default",
			[]string{"ALTER TABLE a ADD PRIMARY KEY (n), REPLICA IDENTITY DEFAULT", "UPDATE a SET n = 2"},
			[]string{"a is copied anew: its replica identity is no longer FULL"},
		},
		{
			"index, in one transaction with rows",
			[]string{"INSERT INTO a VALUES (3); ALTER TABLE a ALTER n SET NOT NULL; CREATE UNIQUE INDEX i ON a (n); ALTER TABLE a REPLICA IDENTITY USING INDEX i; DELETE FROM a WHERE n = 3"},
			[]string{"a is copied anew: its replica identity is no longer FULL"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "CREATE TABLE a (n int); ALTER TABLE a REPLICA IDENTITY FULL; INSERT INTO a VALUES (1)", "CREATE TABLE zz (id int PRIMARY KEY)")
			r.begin()
			k := r.stream(r.setup.Start, nil)
			r.exec(append(c.change, "INSERT INTO zz VALUES (1)")...)
			k.await("the last change", func() bool {
				return len(k.mu.lines) > 0 && k.mu.lines[len(k.mu.lines)-1] == "zz insert 1"
			})
			k.mu.Lock()
			defer k.mu.Unlock()
			got := slices.DeleteFunc(slices.Clone(k.mu.lines), func(s string) bool {
				return s == "zz insert 1" || strings.HasPrefix(s, "a is now")
			})
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A partitioned table has whole rows when each of its partitions sends them; partitions
// have a replica identity of their own.
func TestWholeRowsOfPartitions(t *testing.T) {
	r := newRig(t, "CREATE TABLE p (n int, v text) PARTITION BY RANGE (n)", "ALTER TABLE p REPLICA IDENTITY FULL",
		"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)", "CREATE TABLE zz (id int PRIMARY KEY)")
	r.begin()
	if p := r.table("p"); p.WholeRow || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "each of its partitions") {
		t.Fatalf("table: %+v", p)
	}
	r.exec("INSERT INTO p VALUES (1, 'a')", "UPDATE p SET v = 'b'") // nobody's statement fails
	r = newRig(t, "CREATE TABLE p (n int, v text) PARTITION BY RANGE (n)", "ALTER TABLE p REPLICA IDENTITY FULL",
		"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)", "ALTER TABLE p1 REPLICA IDENTITY FULL",
		"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)", "ALTER TABLE p2 REPLICA IDENTITY FULL",
		"INSERT INTO p VALUES (1, 'a'), (1, 'a')", "CREATE TABLE zz (id int PRIMARY KEY)")
	r.begin()
	if !r.table("p").WholeRow {
		t.Fatalf("table: %+v", r.table("p"))
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE p SET n = 11 WHERE ctid = (SELECT min(ctid) FROM p1)", "DELETE FROM p")
	k.expect("p delete 1|a", "p insert 11|a", "p delete 1|a", "p delete 11|a")
	r.exec("CREATE TABLE p3 (n int PRIMARY KEY, v text)", "INSERT INTO p3 VALUES (21, 'c')",
		"ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30)", "DELETE FROM p", "INSERT INTO zz VALUES (1)")
	k.await("the table to stop", func() bool {
		return slices.ContainsFunc(k.mu.lines, func(s string) bool {
			return strings.HasPrefix(s, "p stopped: the replica identity of partition public.p3 is not FULL")
		})
	})
}

// A publication of somebody else's may send changes of a table without a key: those of
// partitions that have one. A copy would be without a key too, and the next change would stop it
// again, so that it is copied only when there is one by now.
func TestChangesOfTablesWithoutKey(t *testing.T) {
	for change, want := range map[string]string{
		"UPDATE p SET v = 'b'": "p stopped: a row was updated or deleted, and",
		"DELETE FROM p":        "p stopped: a row was updated or deleted, and",
		"ALTER TABLE p1 DROP CONSTRAINT p1_pkey; ALTER TABLE p ADD PRIMARY KEY (n); UPDATE p SET v = 'b'": "p is copied anew: ",
	} {
		t.Run(change, func(t *testing.T) {
			r := newRig(t, "CREATE TABLE p (n int, v text) PARTITION BY RANGE (n)",
				"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)", "ALTER TABLE p1 ADD PRIMARY KEY (n)",
				"INSERT INTO p VALUES (1, 'a')", "CREATE TABLE zz (id int PRIMARY KEY)",
				"CREATE PUBLICATION others FOR TABLE p, zz WITH (publish_via_partition_root)")
			r.opts["publication"] = "others"
			r.reopen()
			r.begin()
			k := r.stream(r.setup.Start, nil)
			r.exec(change, "INSERT INTO zz VALUES (1)")
			k.await("the last change", func() bool {
				return slices.Contains(k.mu.lines, "zz insert 1")
			})
			k.mu.Lock()
			defer k.mu.Unlock()
			if !slices.ContainsFunc(k.mu.lines, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("got %q, want %q", k.mu.lines, want)
			}
		})
	}
}

// What is not in the log, or not as the key says, is refused with what helps.
func TestDiscoverRefusesOddIdentities(t *testing.T) {
	r := newRig(t, "CREATE TABLE p (n int, m int NOT NULL, PRIMARY KEY (n, m)) PARTITION BY RANGE (n)",
		"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
		"CREATE UNIQUE INDEX i ON p (m, n)", "ALTER TABLE p REPLICA IDENTITY USING INDEX i",
		"CREATE TABLE deferred (n int PRIMARY KEY DEFERRABLE); ALTER TABLE deferred REPLICA IDENTITY FULL",
		"CREATE MATERIALIZED VIEW m AS SELECT 1 AS one")
	r.sel.AllTables, r.sel.Tables = false, selected("p", "deferred", "m")
	r.reopen()
	r.begin()
	if p := r.table("p"); !strings.Contains(p.Unsupported, "another replica identity") || !strings.Contains(p.Hint, "FULL") {
		t.Errorf("partitioned table: %+v", p)
	}
	if d := r.table("deferred"); !d.WholeRow || d.Unsupported != "" {
		t.Errorf("table with a deferrable key: %+v", d)
	}
	if m := r.table("m"); !strings.Contains(m.Unsupported, "view") {
		t.Errorf("materialized view: %+v", m)
	}
}

package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// publishedRig has the looks of a rig as a pipeline does, whose tables are copied at once.
type publishedRig struct {
	*rig
	known map[uint32]string
	mark  string
}

// look returns the tables with gaps, "name: reason", or "same" when nothing has changed.
func (r *publishedRig) look() []string {
	r.Helper()
	var here []watch.Here
	for _, t := range r.tables {
		here = append(here, watch.Here{OID: t.OID, Schema: t.Schema, Name: t.Name, Keyless: len(t.Key) == 0 && !t.WholeRow, Published: r.known[t.OID], Parts: t.Parts, Marks: t.PartMarks})
	}
	l, err := r.src.Look(r.Context(), r.sel, here, r.mark)
	if err != nil {
		r.Fatal(err)
	}
	if l.Mark == r.mark {
		return []string{"same"}
	}
	r.mark = l.Mark
	maps.Copy(r.known, l.Published)
	var out []string
	for _, h := range here {
		if gap := l.Known[h.OID].Gap; gap != nil {
			out = append(out, strings.TrimSpace(h.Name+": "+gap.Reason+" "+gap.Hint))
		}
	}
	slices.Sort(out)
	return out
}

// again begins anew, as a session does, and has the tables with gaps copied.
func (r *publishedRig) again(gaps []string) {
	r.Helper()
	r.reopen()
	r.begin()
	for _, t := range r.tables {
		had := slices.ContainsFunc(gaps, func(g string) bool { return strings.HasPrefix(g, t.Name+":") })
		if _, ok := r.known[t.OID]; !ok || had {
			r.known[t.OID] = r.setup.Published[t.OID]
		}
	}
	r.mark = ""
}

// TestPublicationAltered: whatever takes changes of a table out of our publications is found, also
// when it is as it was again by then, and when nobody looked; the next session has them whole again.
func TestPublicationAltered(t *testing.T) {
	for _, version := range pgtest.Versions([]int{15}, 14, 16, 17, 18) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { publicationAltered(t, version) })
	}
}

func publicationAltered(t *testing.T, version int) {
	notShort(t)
	r := &publishedRig{rig: privateRig(t, pgtest.StartVersion(t, version),
		"CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE b (id int PRIMARY KEY, v text)", "CREATE TABLE log (v text)",
		"CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)", "CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (10)",
		"CREATE SCHEMA other", "CREATE ROLE heir SUPERUSER",
	), known: map[uint32]string{}}
	r.begin()
	r.again(nil)
	if got := r.look(); len(got) > 0 {
		t.Fatalf("at the beginning: %q", got)
	}
	const altered = ": publication skippr_slots was altered at the source, and changes may have been left out meanwhile"
	lacks := func(table, what string) string {
		return fmt.Sprintf("%s: publication skippr_slots does not %s any more", table, what)
	}
	for _, step := range []struct {
		sql  []string
		want []string
		not  int // the first server version that does otherwise, or cannot
	}{
		{sql: []string{"CREATE TABLE apart (id int)", "DROP TABLE apart"}},
		{sql: []string{"COMMENT ON PUBLICATION skippr_slots IS 'ours'"}},
		{sql: []string{"ALTER PUBLICATION skippr_slots OWNER TO heir", "ALTER PUBLICATION skippr_slots OWNER TO postgres"}, want: []string{"a" + altered, "b" + altered, "part" + altered}},
		{sql: []string{"CREATE PUBLICATION others FOR ALL TABLES", "DROP PUBLICATION others", "ALTER TABLE b SET SCHEMA other", "ALTER TABLE other.b SET SCHEMA public", "VACUUM FULL pg_publication"}},
		{sql: []string{"ALTER PUBLICATION skippr_slots DROP TABLE a"}, want: []string{lacks("a", "have the table")}},
		{sql: []string{"ALTER PUBLICATION skippr_slots DROP TABLE a", "ALTER PUBLICATION skippr_slots ADD TABLE a"}, want: []string{"a" + altered}},
		{sql: []string{"ALTER PUBLICATION skippr_slots SET TABLE b"}, want: []string{lacks("a", "have the table"), lacks("part", "have the table")}},
		{sql: []string{"ALTER PUBLICATION skippr_slots SET (publish = 'insert')"}, want: []string{
			lacks("a", "publish all operations"), lacks("b", "publish all operations"), lacks("part", "publish all operations"),
		}},
		{sql: []string{"ALTER PUBLICATION skippr_slots SET (publish = 'insert, update')", "ALTER PUBLICATION skippr_slots SET (publish = 'insert, update, delete, truncate')"}, want: []string{
			"a" + altered, "b" + altered, "part" + altered,
		}},
		{sql: []string{"ALTER PUBLICATION skippr_slots SET (publish_via_partition_root = false)"}, want: []string{
			"a" + altered, "b" + altered, "part: publication skippr_slots sends changes of the table as those of its partitions",
		}},
		{sql: []string{"ALTER PUBLICATION skippr_slots_append DROP TABLE log"}, want: []string{"log: publication skippr_slots_append does not have the table any more"}},
		{sql: []string{"ALTER PUBLICATION skippr_slots_append SET (publish = 'truncate')"}, want: []string{"log: publication skippr_slots_append does not publish all operations any more"}},
		{sql: []string{"ALTER PUBLICATION skippr_slots DROP TABLE a", "ALTER PUBLICATION skippr_slots ADD TABLE a (id)"}, want: []string{lacks("a", "have all columns of the table")}, not: 14},
		{
			sql:  []string{"ALTER PUBLICATION skippr_slots DROP TABLE a", "ALTER PUBLICATION skippr_slots ADD TABLE a WHERE (id > 3)"},
			want: []string{"a: publication skippr_slots has other rows of the table than it is to have"}, not: 14,
		},
	} {
		if step.not == version {
			continue
		}
		for _, away := range []bool{false, true} { // with a look before the next session, and without
			r.exec(step.sql...)
			if away {
				r.again(nil)
			}
			want := step.want
			if away { // all is there again, and what was left out is not
				want = nil
				for _, w := range step.want {
					table, _, _ := strings.Cut(w, ":")
					from := altered
					if table == "log" {
						from = strings.Replace(altered, "skippr_slots", "skippr_slots_append", 1)
					}
					want = append(want, table+from)
				}
			}
			got := r.look()
			if !slices.Equal(got, want) && !(len(want) == 0 && slices.Equal(got, []string{"same"})) {
				t.Errorf("%q, away %t:\n got %q\nwant %q", step.sql, away, got, want)
			}
			r.again(got)
			if got := r.look(); len(got) > 0 {
				t.Fatalf("%q: copied anew, and %q", step.sql, got)
			}
			if got := r.look(); !slices.Equal(got, []string{"same"}) {
				t.Errorf("%q: %q without a change", step.sql, got)
			}
		}
	}
}

// TestPublicationOfOthersAltered: of a publication that somebody else has made the table says what is
// missing, and nothing is copied until it is there.
func TestPublicationOfOthersAltered(t *testing.T) {
	notShort(t)
	r := &publishedRig{rig: privateRig(t, pgtest.StartPrivate(t),
		"CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE b (id int PRIMARY KEY, v text)", "CREATE TABLE log (v text)",
		"CREATE ROLE reader LOGIN REPLICATION", "GRANT SELECT ON a, b, log TO reader",
		"CREATE PUBLICATION skippr_slots FOR TABLE a, b WITH (publish_via_partition_root = true)",
		"CREATE PUBLICATION skippr_slots_append FOR TABLE log WITH (publish = 'insert, truncate', publish_via_partition_root = true)",
	), known: map[uint32]string{}}
	r.dsn = strings.Replace(r.dsn, "user=postgres", "user=reader", 1)
	admin := strings.Replace(r.dsn, "user=reader", "user=postgres", 1)
	at := func(sql ...string) {
		t.Helper()
		r.server.Exec(t, admin, sql...)
	}
	r.again(nil)
	if got := r.look(); len(got) > 0 {
		t.Fatalf("at the beginning: %q", got)
	}
	for _, step := range []struct{ sql, want, refused string }{
		{
			"ALTER PUBLICATION skippr_slots DROP TABLE a", `ALTER PUBLICATION "skippr_slots" ADD TABLE ONLY "public"."a";`, "may not publish the table",
		},
		{
			"ALTER PUBLICATION skippr_slots SET (publish = 'insert')",
			`ALTER PUBLICATION "skippr_slots" SET (publish = 'insert, update, delete, truncate');`, "does not publish all operations",
		},
		{
			"ALTER PUBLICATION skippr_slots SET TABLE a (id), b",
			`ALTER PUBLICATION "skippr_slots" DROP TABLE ONLY "public"."a"; ALTER PUBLICATION "skippr_slots" ADD TABLE ONLY "public"."a";`, "does not have all columns",
		},
		{
			"ALTER PUBLICATION skippr_slots_append SET (publish = 'truncate')",
			`ALTER PUBLICATION "skippr_slots_append" SET (publish = 'insert, truncate');`, "does not publish all operations",
		},
	} {
		at(step.sql)
		gaps := r.look()
		if len(gaps) == 0 || !strings.Contains(gaps[0], step.want) {
			t.Errorf("%s: %q", step.sql, gaps)
		}
		r.reopen()
		r.begin()
		if len(r.setup.Refused) != len(gaps) {
			t.Errorf("%s: refused %v, gaps %q", step.sql, r.setup.Refused, gaps)
		}
		for _, why := range r.setup.Refused {
			if !strings.Contains(why.Reason, step.refused) || !strings.Contains(why.Hint, step.want) {
				t.Errorf("%s: refused: %+v", step.sql, why)
			}
		}
		at(splitSQL(strings.TrimSuffix(step.want, ";"))...)
		if got := r.look(); len(got) == 0 || !strings.Contains(got[0], "altered") {
			t.Errorf("%s, mended: %q", step.sql, got)
		}
		r.again(gaps)
		if got := r.look(); len(got) > 0 {
			t.Errorf("%s, copied anew: %q", step.sql, got)
		}
	}
}

// TestPublishedLoosely: tables that somebody's publication has by their schema, or as all: that they
// leave it for a while, or what can be streamed at all, is found.
func TestPublishedLoosely(t *testing.T) {
	notShort(t)
	r := &publishedRig{rig: privateRig(t, pgtest.StartPrivate(t),
		"CREATE SCHEMA sa; CREATE SCHEMA sb", "CREATE TABLE sa.a (id int PRIMARY KEY, v text)", "CREATE TABLE sa.b (id int PRIMARY KEY, v text)",
		"CREATE PUBLICATION skippr_slots FOR TABLES IN SCHEMA sa WITH (publish_via_partition_root = true)",
	), known: map[uint32]string{}}
	r.sel = catalog.TableSelection{Schemas: []string{"sa"}}
	r.reopen()
	r.again(nil)
	tables := r.tables // also those that leave the selection
	if got := r.look(); len(got) > 0 {
		t.Fatalf("at the beginning: %q", got)
	}
	const altered = "a: publication skippr_slots was altered at the source, and changes may have been left out meanwhile"
	const out = `a: publication skippr_slots does not have the table any more At the source (at its primary, if it is a standby), as the publication's owner: ` +
		`ALTER PUBLICATION "skippr_slots" ADD TABLE ONLY "sb"."a"; Then it is copied anew by itself.`
	const unlogged = `a: the table is unlogged at the source: what is written to it cannot be streamed At the source: ALTER TABLE "sa"."a" SET LOGGED; then it is copied anew by itself.`
	for _, step := range []struct {
		sql  []string
		want []string
	}{
		{[]string{"ALTER TABLE sa.a ADD w int; CREATE INDEX ON sa.a (w); GRANT SELECT ON sa.a TO public; VACUUM sa.a; ANALYZE sa.a"}, nil},
		{[]string{"ALTER TABLE sa.a SET SCHEMA sb"}, []string{out}},
		{[]string{"ALTER TABLE sb.a SET SCHEMA sa"}, []string{altered}},
		{[]string{"ALTER TABLE sa.a SET SCHEMA sb", "ALTER TABLE sb.a SET SCHEMA sa"}, []string{altered}},
		{[]string{"ALTER TABLE sa.a SET UNLOGGED"}, []string{unlogged}},
	} {
		r.exec(splitSQL(strings.Join(step.sql, "; "))...)
		got := r.look()
		if !slices.Equal(got, step.want) {
			t.Errorf("%q:\n got %q\nwant %q", step.sql, got, step.want)
		}
		if len(got) > 0 && !strings.Contains(got[0], "as the publication's owner") {
			r.again(got)
		}
		r.tables = tables
	}
}

// TestUnloggedForAWhile: a table that was unlogged between two looks counts as one whose rows may have other
// values, where the server allows that: it is published, and not by its name. TRUNCATE that
// the stream has told of does not.
func TestUnloggedForAWhile(t *testing.T) {
	for _, c := range []struct {
		of, sql string
		want    uint32
	}{
		{"ALL TABLES", "ALTER TABLE a SET UNLOGGED; ALTER TABLE a SET LOGGED", 1},
		{"ALL TABLES", "INSERT INTO a VALUES (1)", 0},
		{"TABLE a", "VACUUM FULL a", 0},
	} {
		r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)")
		r.exec("CREATE PUBLICATION skippr_" + r.name + " FOR " + c.of + " WITH (publish_via_partition_root = true)")
		r.begin()
		at := r.table("a").OID
		start, err := r.src.AtStart(t.Context(), []uint32{at})
		if err != nil {
			t.Fatal(err)
		}
		r.exec(splitSQL(c.sql)...)
		files := start.Files[at]
		l, err := r.src.Look(t.Context(), r.sel, []watch.Here{{OID: at, Schema: "public", Name: "a", Files: &files}}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Files[at].Reworked; (got > 0) != (c.want > 0) {
			t.Errorf("%s, %s: reworked %d", c.of, c.sql, got)
		}
	}
}

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/watch"
)

// TestLook sees which partitions came with rows, and when nothing has changed.
func TestLook(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)",
		"CREATE TABLE p0 PARTITION OF part FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE plain (id int PRIMARY KEY)",
	)
	all := catalog.TableSelection{AllTables: true}
	found, err := r.src.Discover(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	var here []watch.Here
	for _, f := range found {
		here = append(here, watch.Here{OID: f.OID, Schema: f.Schema, Name: f.Name, Parts: f.Parts})
	}
	mark := ""
	// look returns the partitions that are new, born or not, and the tables found.
	look := func() (out []string) {
		t.Helper()
		l, err := r.src.Look(context.Background(), all, here, mark)
		if err != nil {
			t.Fatal(err)
		}
		if l.Mark == mark {
			return []string{"same"}
		}
		mark = l.Mark
		for _, f := range l.Found {
			out = append(out, f.Name)
		}
		for i := range here {
			h := &here[i]
			for _, p := range l.Known[h.OID].Parts {
				if !slices.Contains(h.Parts, p.OID) {
					out = append(out, fmt.Sprintf("%s+%v", h.Name, p.Born))
					h.Parts = append(h.Parts, p.OID)
				}
			}
			slices.Sort(h.Parts)
		}
		return out
	}
	for _, step := range []struct {
		sql  string
		want []string
	}{
		{"", []string{"part", "plain"}},
		{"INSERT INTO part VALUES (1); ANALYZE; VACUUM part", []string{"same"}},
		{"CREATE TABLE p1 PARTITION OF part FOR VALUES FROM (10) TO (20)", []string{"part", "plain", "part+true"}},
		{"ALTER TABLE p1 ADD CHECK (id > 0)", []string{"same"}},
		{"VACUUM FULL p1", []string{"part", "plain"}},
		{
			"BEGIN; CREATE TABLE p2 PARTITION OF part FOR VALUES FROM (20) TO (30); INSERT INTO part VALUES (21); COMMIT",
			[]string{"part", "plain", "part+true"},
		},
		{
			"BEGIN; CREATE TABLE p3 (id int PRIMARY KEY); INSERT INTO p3 VALUES (31); " +
				"ALTER TABLE part ATTACH PARTITION p3 FOR VALUES FROM (30) TO (40); COMMIT",
			[]string{"part", "plain", "part+false"},
		},
		{"CREATE TABLE p4 (id int PRIMARY KEY) PARTITION BY RANGE (id)", []string{"p4", "part", "plain"}},
		{"CREATE TABLE p41 PARTITION OF p4 FOR VALUES FROM (40) TO (45)", []string{"p4", "part", "plain"}},
		{
			"ALTER TABLE part ATTACH PARTITION p4 FOR VALUES FROM (40) TO (50)",
			[]string{"part", "plain", "part+false", "part+true"},
		},
		{"CREATE TEMP TABLE passing (id int)", []string{"same"}},
		{"DROP TABLE plain", []string{"part"}},
	} {
		for _, sql := range splitSQL(step.sql) {
			r.exec(sql)
		}
		if got := look(); !slices.Equal(got, step.want) {
			t.Errorf("%s:\n got %v\nwant %v", step.sql, got, step.want)
		}
	}
}

// splitSQL cuts statements that must not be one transaction; a transaction stays whole.
func splitSQL(sql string) []string {
	switch {
	case sql == "":
		return nil
	case strings.HasPrefix(sql, "BEGIN"):
		return []string{sql}
	}
	return strings.Split(sql, "; ")
}

// TestRefusedTable publishes what the role may publish, and says how the rest is.
func TestRefusedTable(t *testing.T) {
	r := newRig(t, "CREATE TABLE mine (id int PRIMARY KEY)")
	role := "maker_" + r.name
	r.exec(
		`DROP ROLE IF EXISTS "`+role+`"`, `CREATE ROLE "`+role+`" LOGIN REPLICATION`, `ALTER TABLE mine OWNER TO "`+role+`"`,
		`GRANT CREATE ON SCHEMA public TO "`+role+`"`,
		`DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO "`+role+`"', current_database()); END $$`,
	)
	t.Cleanup(func() { r.exec(`DROP OWNED BY "`+role+`"`, `DROP ROLE "`+role+`"`) })
	r.src = r.openAs(strings.Replace(r.dsn, "user=postgres", "user="+role, 1))
	r.begin()
	r.exec(
		"CREATE TABLE other (id int PRIMARY KEY)", `CREATE TABLE own (id int PRIMARY KEY); ALTER TABLE own OWNER TO "`+role+`"`,
		`GRANT SELECT ON other TO "`+role+`"`,
	)
	r.begin()
	other, own := r.table("other"), r.table("own")
	why := r.setup.Refused[other.OID]
	if len(r.setup.Refused) != 1 || why == nil {
		t.Fatalf("refused %v", r.setup.Refused)
	}
	want := `ALTER PUBLICATION "skippr_` + r.name + `" ADD TABLE ONLY "public"."other";`
	if !strings.Contains(why.Hint, want) {
		t.Errorf("hint %q lacks %s", why.Hint, want)
	}
	if own.OID == 0 {
		t.Error("own was not found")
	}
	r.exec(want)
	r.begin()
	if len(r.setup.Refused) != 0 {
		t.Errorf("refused still: %v", r.setup.Refused)
	}
}

// TestReworkedLook: a look counts the rewrites by which rows may have got other values, also when
// nothing but the look before is known of an earlier process.
func TestReworkedLook(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE t (id int PRIMARY KEY, v int, w varchar(10) NOT NULL DEFAULT 'w')",
		"CREATE TABLE part (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
		"CREATE TABLE p0 PARTITION OF part FOR VALUES FROM (0) TO (10)", "CREATE TABLE p1 PARTITION OF part FOR VALUES FROM (10) TO (20)",
	)
	found, err := r.src.Discover(t.Context(), r.sel)
	if err != nil {
		t.Fatal(err)
	}
	oids := make([]uint32, len(found))
	for i, f := range found {
		oids[i] = f.OID
	}
	start, err := r.src.AtStart(t.Context(), oids)
	if err != nil {
		t.Fatal(err)
	}
	here := make([]watch.Here, len(found))
	for i, f := range found {
		files := start.Files[f.OID]
		here[i] = watch.Here{OID: f.OID, Schema: f.Schema, Name: f.Name, Parts: f.Parts, Files: &files}
	}
	look := func() (out string) {
		t.Helper()
		l, err := r.src.Look(t.Context(), r.sel, here, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range here {
			files := l.Files[h.OID]
			out += fmt.Sprintf("%s %d ", h.Name, files.Reworked)
			here[i].Files = &files
		}
		return strings.TrimSpace(out)
	}
	for _, step := range []struct{ sql, want string }{
		{"ALTER TABLE t ALTER v TYPE bigint USING v * 2", "part 0 t 1"}, // the first look since the start
		{"ALTER TABLE t ALTER v TYPE bigint USING v * 2", "part 0 t 2"},
		{"VACUUM FULL t; CLUSTER t USING t_pkey; TRUNCATE t", "part 0 t 2"},
		{"ALTER TABLE t ALTER w TYPE varchar(20); ALTER TABLE t ALTER v SET NOT NULL; ALTER TABLE t RENAME w TO x; ANALYZE t", "part 0 t 2"},
		{"VACUUM FULL t", "part 0 t 2"},
		{"ALTER TABLE t ALTER x TYPE varchar(20) USING upper(x)", "part 0 t 3"},
		{"ALTER TABLE t ADD y int DEFAULT 1; ALTER TABLE t DROP y", "part 0 t 3"},
		{"VACUUM FULL t", "part 0 t 3"},
		{"ALTER TABLE part ALTER v TYPE int USING v + 1", "part 1 t 3"},
		{"CREATE TABLE p2 PARTITION OF part FOR VALUES FROM (20) TO (30); VACUUM FULL p1; ALTER TABLE part DETACH PARTITION p0", "part 1 t 3"},
		{"ALTER TABLE part ALTER v TYPE bigint", "part 2 t 3"},
		{"", "part 2 t 3"},
	} {
		r.exec(splitSQL(step.sql)...)
		if got := look(); got != step.want {
			t.Errorf("%s:\n got %s\nwant %s", step.sql, got, step.want)
		}
		r.reopen() // what is known is in here
	}
}

// TestLookBesideALock: a look does not wait for who has locked a partition, and what it sees of
// files and columns is of one moment: a column that came with values, by a rewrite that commits
// while the look is under way, would be taken for one without.
func TestLookBesideALock(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)",
		"CREATE TABLE p0 PARTITION OF part FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE keyless (id int) PARTITION BY RANGE (id)",
		"CREATE TABLE k0 PARTITION OF keyless FOR VALUES FROM (0) TO (10)",
	)
	found, err := r.src.Discover(t.Context(), r.sel)
	if err != nil {
		t.Fatal(err)
	}
	here := make([]watch.Here, len(found))
	for i, f := range found {
		here[i] = watch.Here{OID: f.OID, Schema: f.Schema, Name: f.Name, Parts: f.Parts, Keyless: len(f.Key) == 0}
	}
	mark := ""
	look := func() (out string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		l, err := r.src.Look(ctx, r.sel, here, mark)
		if err != nil {
			t.Fatal(err)
		}
		mark = l.Mark
		for _, h := range here {
			files := l.Files[h.OID]
			out += fmt.Sprintf("%s: columns %d, plain %v, reworked %d, counted %d; ",
				h.Name, files.Newest, files.Plain, files.Reworked, len(l.Counters[h.OID].Of))
		}
		return out
	}
	const before = "keyless: columns 1, plain [], reworked 0, counted 2; part: columns 1, plain [], reworked 0, counted 0; "
	if got := look(); got != before {
		t.Fatalf("got %s", got)
	}
	conn, err := pgx.Connect(t.Context(), r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{"BEGIN", "ALTER TABLE part ADD x float DEFAULT random()", "LOCK TABLE keyless"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if got := look(); got != before {
		t.Errorf("beside the locks: %s", got)
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != strings.Replace(before, "part: columns 1, plain [], reworked 0", "part: columns 2, plain [], reworked 1", 1) {
		t.Errorf("afterwards: %s", got)
	}
}

// TestDiscoverBesideALock: tables are found while somebody has one for himself, which may take him
// hours, and with the size that it had.
func TestDiscoverBesideALock(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE plain (id int PRIMARY KEY)", "INSERT INTO plain SELECT generate_series(1, 1000)", "ANALYZE plain",
		"CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)",
		"CREATE TABLE p0 PARTITION OF part FOR VALUES FROM (0) TO (1000) PARTITION BY RANGE (id)",
		"CREATE TABLE p00 PARTITION OF p0 FOR VALUES FROM (0) TO (1000)", "INSERT INTO part SELECT generate_series(1, 999)", "ANALYZE part",
	)
	discover := func() (out string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		found, err := r.src.Discover(ctx, r.sel)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			out += fmt.Sprintf("%s: %d rows, %d bytes; ", f.Name, f.EstimatedRows, f.EstimatedBytes)
		}
		return out
	}
	before := discover()
	if !strings.Contains(before, "part: 999 rows") || !strings.Contains(before, "plain: 1000 rows") || strings.Contains(before, ", 0 bytes") {
		t.Errorf("got %s", before)
	}
	conn, err := pgx.Connect(t.Context(), r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE plain"); err != nil {
		t.Fatal(err)
	}
	if got := discover(); got != before {
		t.Errorf("beside the locks %s, before %s", got, before)
	}
}

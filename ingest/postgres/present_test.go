package postgres

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/watch"
)

// TestLookRefilled tells partitions whose rows came or went beside the stream from those that
// were only written anew.
func TestLookRefilled(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE part (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)",
		"CREATE TABLE p0 PARTITION OF part FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE p1 PARTITION OF part FOR VALUES FROM (10) TO (20)",
		"CREATE TABLE p2 PARTITION OF part FOR VALUES FROM (20) TO (30)",
		"INSERT INTO part VALUES (1), (2), (11)",
	)
	all := catalog.TableSelection{AllTables: true}
	found, err := r.src.Discover(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	here := watch.Here{ID: 1, OID: found[0].OID, Schema: "public", Name: "part", Parts: found[0].Parts, Marks: found[0].PartMarks, Forms: found[0].Forms}
	mark := ""
	look := func() []watch.Action {
		t.Helper()
		l, err := r.src.Look(t.Context(), all, []watch.Here{here}, mark)
		if err != nil {
			t.Fatal(err)
		}
		if l.Mark == mark {
			return nil
		}
		mark = l.Mark
		return watch.Decide([]watch.Here{here}, []watch.There{{OID: here.OID, Schema: "public", Name: "part"}}, l.Known)
	}
	const noted, refilled = watch.Noted, watch.Repartitioned
	for _, step := range []struct {
		sql  []string
		want watch.Kind
	}{
		{nil, 0},
		{[]string{"INSERT INTO part VALUES (3)", "VACUUM ANALYZE part"}, 0},
		{[]string{"VACUUM FULL part"}, noted},
		{[]string{"CLUSTER p0 USING p0_pkey"}, noted},
		{[]string{"TRUNCATE p0"}, refilled},
		{[]string{"INSERT INTO part VALUES (4)", "TRUNCATE p1", "INSERT INTO part VALUES (12)", "VACUUM ANALYZE p1"}, refilled},
		{[]string{"VACUUM FULL part"}, noted},
		{[]string{"TRUNCATE p2"}, refilled}, // nothing says that it was empty
		{[]string{"TRUNCATE p2", "ANALYZE p2"}, refilled},
		{[]string{"ALTER TABLE part DETACH PARTITION p0", "DELETE FROM p0", "ALTER TABLE part ATTACH PARTITION p0 FOR VALUES FROM (0) TO (10)"}, refilled},
		{[]string{"ALTER TABLE part ADD COLUMN w int", "INSERT INTO part VALUES (5, 6, 7)"}, 0},
		{[]string{"ALTER TABLE part ALTER COLUMN v TYPE bigint"}, refilled}, // its rows are all of that transaction
	} {
		var kind watch.Kind
		var actions []watch.Action
		for range 20 { // a transaction that somebody has open makes a rewrite doubtful
			r.exec(step.sql...)
			actions, kind = look(), 0
			if len(actions) > 0 {
				kind = actions[0].Kind
				here.Parts, here.Marks = actions[0].Parts, actions[0].Marks
			}
			if kind == step.want || step.want != noted {
				break
			}
		}
		if kind != step.want {
			t.Errorf("%q: %d, want %d: %+v", step.sql, kind, step.want, actions)
		}
	}

	// What the stream told of is no news, unless the partition was detached as well.
	r.exec("TRUNCATE part")
	conn, err := pgx.Connect(t.Context(), r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var xid uint32
	if err := conn.QueryRow(t.Context(), "SELECT xmin::text::int8 FROM pg_class WHERE relname = 'p0'").Scan(&xid); err != nil {
		t.Fatal(err)
	}
	r.src.truncated.add(here.OID, xid)
	if got := look(); len(got) != 1 || got[0].Kind != noted {
		t.Errorf("truncated as a whole: %+v", got)
	}
	marks := slices.Clone(here.Marks)
	marks[0] += 1 << 32
	here.Marks, mark = marks, ""
	if got := look(); len(got) != 1 || got[0].Refilled != 1 {
		t.Errorf("truncated, and attached again: %+v", got)
	}
}

// TestPublishedPartition: a table that is published, and becomes a partition of another one
// that is, stays so, also when it is none any more.
func TestPublishedPartition(t *testing.T) {
	r := newRig(t, "CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id)", "CREATE TABLE alone (id int PRIMARY KEY)")
	r.begin()
	tables := r.tables
	for _, sql := range []string{"ALTER TABLE part ATTACH PARTITION alone FOR VALUES FROM (0) TO (10)", "ALTER TABLE part DETACH PARTITION alone"} {
		r.exec(sql)
		r.reopen()
		if _, err := r.src.Setup(t.Context(), r.setup.State, tables); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

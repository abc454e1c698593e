package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal/change"
)

// TestForms sees which changes of types make the source write rows in another way that it
// has sent before, wherever the type is.
func TestForms(t *testing.T) {
	r := newRig(t,
		"CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE other AS ENUM ('sad', 'ok')",
		"CREATE TYPE point3 AS (x int, y int, m mood)", "CREATE TYPE plain AS (a int, b int)",
		"CREATE DOMAIN mooded AS mood", "CREATE TYPE moods AS RANGE (subtype = mood)",
		"CREATE TABLE shape (id int, m mood)",
		`CREATE TABLE t (id int PRIMARY KEY, alone mood, list mood[], dom mooded, comp point3, rng moods, multi moods_multirange,
		   deep point3[], row shape, p plain, n int, other other)`,
		"CREATE TABLE untouched (id int PRIMARY KEY, v text)",
	)
	const moody = "alone comp deep dom list multi rng row"
	for _, step := range []struct{ sql, want string }{
		{"INSERT INTO t VALUES (1, 'sad'); ANALYZE; VACUUM FULL t", "same"},
		{"ALTER TYPE mood ADD VALUE 'glad' AFTER 'sad'", "noted"},
		{"ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'", moody},
		{"ALTER TYPE mood RENAME VALUE 'happy' TO 'glad'; ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'", moody},
		{"ALTER TYPE mood RENAME TO feeling; ALTER DOMAIN mooded RENAME TO felt", "nothing"}, // which its types are followed by
		{"ALTER TYPE plain RENAME ATTRIBUTE b TO c", "same"},
		{"ALTER TYPE plain ADD ATTRIBUTE d int", "p"},
		{"ALTER TYPE plain DROP ATTRIBUTE a", "p"},
		{"ALTER TABLE shape ADD COLUMN v text", "row"},
		{"ALTER TYPE other RENAME VALUE 'ok' TO 'fine'", "other"},
		{"CREATE TYPE new AS ENUM ('sad', 'fine'); ALTER TABLE t ALTER other TYPE new USING other::text::new; DROP TYPE other; ALTER TYPE new RENAME TO other", "other"},
		{"ALTER TABLE t ADD COLUMN fresh other", "noted"},
		{"ALTER TABLE t DROP COLUMN fresh", "noted"},
		{"ALTER TABLE t ADD COLUMN fresh other; ALTER TYPE other RENAME VALUE 'sad' TO 'blue'", "fresh other"},
		{"ALTER TABLE t ADD COLUMN again other", "noted"},
		{"CREATE TYPE late AS ENUM ('a'); ALTER TABLE t ADD COLUMN once late", "noted"},
		{"DROP TYPE late CASCADE; CREATE TYPE late AS ENUM ('b'); ALTER TABLE t ADD COLUMN once late", "noted"},
		{"ALTER TABLE t ALTER n TYPE mooded USING 'sad'", "error"},
	} {
		t.Run(step.sql, func(t *testing.T) {
			found, err := r.src.Discover(t.Context(), r.sel)
			if err != nil {
				t.Fatal(err)
			}
			here := hereOf(found)
			before, err := r.src.Look(t.Context(), r.sel, here, "")
			if err != nil {
				t.Fatal(err)
			}
			if step.want == "error" { // the look must not mind what it finds
				r.exec("DROP TABLE t")
			} else {
				for _, sql := range strings.Split(step.sql, "; ") {
					r.exec(sql)
				}
			}
			after, err := r.src.Look(t.Context(), r.sel, here, before.Mark)
			if err != nil {
				t.Fatal(err)
			}
			if got := reworded(t, r, here, before.Mark, after); got != step.want && step.want != "error" {
				t.Errorf("got %q, want %q", got, step.want)
			}
		})
	}
}

func hereOf(found []ingest.SourceTable) []watch.Here {
	var here []watch.Here
	for i, f := range found {
		h := watch.Here{ID: change.TableID(i + 1), OID: f.OID, Schema: f.Schema, Name: f.Name, Parts: f.Parts, Forms: f.Forms}
		for n := range int16(40) {
			h.Columns = append(h.Columns, n)
		}
		here = append(here, h)
	}
	return here
}

// reworded says what a look says of table t: its columns that are reworded, in order.
func reworded(t *testing.T, r *rig, here []watch.Here, mark string, look ingest.Look) string {
	t.Helper()
	if look.Mark == mark {
		return "same"
	}
	out := "nothing"
	for _, a := range watch.Decide(here, nil, look.Known) {
		h := here[a.Table-1]
		if h.Name != "t" {
			if a.Kind == watch.Reworded && h.Name != "shape" {
				t.Errorf("table %s is reworded: %v", h.Name, a.Columns)
			}
			continue
		}
		switch a.Kind {
		case watch.Worded:
			out = "noted"
		case watch.Reworded:
			found, err := r.src.Discover(t.Context(), catalog.TableSelection{Tables: []catalog.SelectedTable{{Name: "t"}}})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range found[0].Columns {
				if slices.Contains(a.Columns, c.AttNum) {
					names = append(names, c.Name)
				}
			}
			slices.Sort(names)
			out = strings.Join(names, " ")
		default:
			out = fmt.Sprintf("kind %d", a.Kind)
		}
	}
	return out
}

// TestDescribedAtMoment: what the copy's moment does not have is not in the description,
// but in the stream, under whatever name the table has by then.
func TestDescribedAtMoment(t *testing.T) {
	r := newRig(t, "CREATE TABLE t (id int PRIMARY KEY, v text, old int)", "INSERT INTO t VALUES (1, 'a', 7)")
	r.begin()
	b := r.backfill()
	r.exec("INSERT INTO t VALUES (2, 'b', 8)", "ALTER TABLE t ADD COLUMN n int DEFAULT 5", "ALTER TABLE t RENAME TO u",
		"ALTER TABLE u DROP COLUMN old", "INSERT INTO u VALUES (3, 'c', 6)")
	was := r.table("t")
	found, err := b.Describe(t.Context(), map[uint32]catalog.SelectedTable{was.OID: {AsText: []string{"old"}}, 1: {}}, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range found[was.OID].Columns {
		names = append(names, c.Name+" "+c.TypeName)
	}
	if got := strings.Join(names, ", "); got != "id integer, v text, old integer" || len(found) != 1 {
		t.Fatalf("described as %s, of %d tables", got, len(found))
	}
	if f := found[was.OID]; f.Name != "t" || f.Numbers["old"] != 3 {
		t.Errorf("described as %s with numbers %v", f.Name, f.Numbers)
	}
	if _, err := b.Plan(t.Context(), was); err != nil { // the moment is still there
		t.Fatal(err)
	}
	r.tables = []ingest.SourceTable{found[was.OID]}
	r.stream("", nil).expect(
		"t insert 2|b|8", "t is now 1 id integer, 2 v text, 4 n integer = 5", "t insert 3|c|6",
	)
}

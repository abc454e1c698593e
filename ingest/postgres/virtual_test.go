package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// A server of 18 refuses UPDATE and DELETE of a published table that has REPLICA IDENTITY
// FULL and a generated column which is not sent. No statement of a user's own fails because
// of us: such a table comes with its inserts only, or is refused where it has a key.
func TestVirtualColumnsUnderFullIdentity(t *testing.T) {
	notShort(t)
	server := pgtest.StartVersion(t, 18)
	tables := []string{
		"CREATE TABLE plain (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) VIRTUAL)",
		"CREATE TABLE stored (a int, g int GENERATED ALWAYS AS (a * 2) STORED); ALTER TABLE stored REPLICA IDENTITY FULL",
		"CREATE TABLE keyless (a int, g int GENERATED ALWAYS AS (a * 2) VIRTUAL); ALTER TABLE keyless REPLICA IDENTITY FULL",
		"CREATE TABLE keyed (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) VIRTUAL); ALTER TABLE keyed REPLICA IDENTITY FULL",
		"CREATE TABLE part (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) VIRTUAL) PARTITION BY RANGE (id)",
		"CREATE TABLE leaf PARTITION OF part FOR VALUES FROM (0) TO (100); ALTER TABLE leaf REPLICA IDENTITY FULL",
	}
	all := []string{"plain", "stored", "keyless", "keyed", "part"}
	write := func(r *rig) {
		t.Helper()
		for _, name := range all {
			column := strings.TrimSpace(r.ask("SELECT attname::text FROM pg_attribute WHERE attrelid = '" + name + "'::regclass AND attnum = 1"))
			r.exec("INSERT INTO "+name+" VALUES (1), (2)", "UPDATE "+name+" SET "+column+" = 3 WHERE "+column+" = 1", "DELETE FROM "+name+" WHERE "+column+" = 2")
		}
	}
	for _, option := range []string{"compute", "skip"} {
		t.Run(option, func(t *testing.T) {
			r := privateRig(t, server, tables...)
			r.opts = map[string]string{"generated_columns": option}
			r.reopen()
			r.begin()
			write(r)
			for _, name := range []string{"keyed", "part"} {
				fix := `ALTER TABLE "public"."` + name + `" REPLICA IDENTITY DEFAULT;`
				if got := r.table(name); got.Fix != fix || !strings.Contains(got.Hint, fix) || !strings.Contains(got.Unsupported, "VIRTUAL") {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if got := r.table("keyless"); got.WholeRow || len(got.Notes) == 0 || !strings.Contains(strings.Join(got.Notes, " "), "updates and deletes cannot be followed") {
				t.Errorf("keyless: %+v", got)
			}
			if got := r.table("stored"); !got.WholeRow {
				t.Errorf("stored: %+v", got)
			}
			r.sel = catalog.TableSelection{Tables: []catalog.SelectedTable{{Name: "keyed"}}}
			r.reopen()
			if failed := r.mend(); !slices.Contains(failed, "table public.keyed") || len(r.mend()) > 0 {
				t.Errorf("mended %q", failed)
			}
			r.exec("UPDATE keyed SET id = 5 WHERE id = 3")
			if left, err := r.src.Teardown(t.Context(), r.setup.State); err != nil || len(left) > 0 {
				t.Errorf("%q, %v", left, err)
			}
		})
	}
}

// Whether the publication of somebody else sends stored columns or not, their values are
// right, and it is completed so that nobody's statement fails.
func TestPublishedGeneratedColumns(t *testing.T) {
	notShort(t)
	server := pgtest.StartVersion(t, 18)
	for _, with := range []string{"publish_generated_columns = none", "publish_generated_columns = stored"} {
		t.Run(with, func(t *testing.T) {
			r := privateRig(t, server, "CREATE TABLE k (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED, v int GENERATED ALWAYS AS (a * 3) VIRTUAL)",
				"INSERT INTO k VALUES (1, 1)", "CREATE PUBLICATION skippr_slots FOR TABLE k WITH ("+with+")")
			r.begin()
			sends := strings.Contains(with, "stored")
			for _, c := range r.table("k").Columns {
				if c.Computed != nil && c.Computed.Sent != (sends && c.Name == "g") {
					t.Errorf("column %s is sent: %t", c.Name, c.Computed.Sent)
				}
			}
			b := r.backfill()
			if rows := r.copy(b, "k"); !slices.Equal(rows, []string{"1|1|2|3"}) {
				t.Errorf("copied %q", rows)
			}
			_ = b.Close()
			k := r.stream(r.setup.Start, nil)
			r.exec("UPDATE k SET a = 4 WHERE id = 1", "ALTER PUBLICATION skippr_slots SET (publish_generated_columns = stored)", "UPDATE k SET a = 5 WHERE id = 1",
				"ALTER PUBLICATION skippr_slots SET (publish_generated_columns = none)", "UPDATE k SET a = 6 WHERE id = 1")
			if sends {
				k.expect("k update 1|4|8|-", "k update 1|5|10|-", "k is now 1 id integer, 2 a integer, 3 g integer, 4 v integer", "k update 1|6|-|-")
			} else {
				k.expect("k update 1|4|-|-", "k is now 1 id integer, 2 a integer, 3 g integer, 4 v integer", "k update 1|5|10|-",
					"k is now 1 id integer, 2 a integer, 3 g integer, 4 v integer", "k update 1|6|-|-")
			}
			if err := k.stop(); err != nil {
				t.Fatal(err)
			}
			if left, err := r.src.Teardown(t.Context(), r.setup.State); err != nil || len(left) > 0 {
				t.Fatalf("%q, %v", left, err)
			}
			r.exec("CREATE TABLE w (a int, g int GENERATED ALWAYS AS (a + 1) STORED); ALTER TABLE w REPLICA IDENTITY FULL; INSERT INTO w VALUES (1)")
			r.exec("ALTER PUBLICATION skippr_slots SET (" + with + ")")
			if failed := r.mend(); !slices.Equal(failed, []string{"publication"}) {
				t.Errorf("mended %q", failed)
			}
			r.exec("UPDATE w SET a = 2")
			r.setup.State = nil
			r.begin()
			r.exec("UPDATE w SET a = 3")
			if _, err := r.src.Teardown(t.Context(), r.setup.State); err != nil {
				t.Fatal(err)
			}
		})
	}
}

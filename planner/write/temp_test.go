package write_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// tempTable is table, of one session, with an id.
func tempTable(t *testing.T, id change.TableID, key ...string) *write.Table {
	t.Helper()
	s := table(t, key...).Current
	return write.Of(&catalog.Table{ID: id, Schema: "pg_temp_1", Name: "t", Current: s, Temp: catalog.TempKeep})
}

// Transactions change two temporary tables, are kept or taken back, whole or to a mark: what
// is read is what a plain list of rows has, nothing is lost when batches are made one, and in
// the end the budget has all back.
func TestTempRandom(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 7))
		budget := write.NewBudget(1 << 30)
		c := write.NewTemp(budget)
		keyed, bag := tempTable(t, 1, "id"), tempTable(t, 2)
		tables := map[change.TableID]*write.Table{1: keyed, 2: bag}
		keys, rows := map[int]string{}, map[string]int{} // what there is
		for range 12 {
			kept := c.Mark()
			keysBefore, rowsBefore := clone(keys), clone(rows)
			for range r.IntN(120) {
				id, note := r.IntN(40), fmt.Sprintf("n%d", r.IntN(5))
				row := fmt.Sprintf("%d %s", id, note)
				switch r.IntN(8) {
				case 0:
					if _, there := keys[id]; there {
						must(t, c.Delete(keyed, keyed.NewKey(columns(row))))
						delete(keys, id)
					}
				case 1:
					if rows[row] > 0 {
						must(t, c.Delete(bag, columns(row)))
						if rows[row]--; rows[row] == 0 {
							delete(rows, row)
						}
					}
				case 2:
					if r.IntN(20) == 0 {
						must(t, c.Truncate(bag))
						rows = map[string]int{}
					}
				case 3, 4:
					must(t, c.Put(bag, change.Insert, columns(row, row)))
					rows[row] += 2
				default:
					must(t, c.Put(keyed, change.Update, columns(row)))
					keys[id] = note
				}
			}
			if r.IntN(3) == 0 {
				c.Rollback(kept)
				keys, rows = keysBefore, rowsBefore
			} else {
				c.Keep(tables)
			}
			var wantKeyed, wantBag []string
			for id, note := range keys {
				wantKeyed = append(wantKeyed, fmt.Sprintf("%d %s", id, note))
			}
			for row, n := range rows {
				for range n {
					wantBag = append(wantBag, row)
				}
			}
			sameRows(t, seed, c, keyed, wantKeyed)
			sameRows(t, seed, c, bag, wantBag)
		}
		c.Keep(nil)
		if budget.Used() != 0 || !c.Empty() {
			t.Fatalf("seed %d: %d bytes are left", seed, budget.Used())
		}
	}
}

func clone[K comparable, V any](m map[K]V) map[K]V {
	out := map[K]V{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sameRows compares what queries get of a temporary table, whatever the order: a delete would be
// of a row that it has not got.
func sameRows(t *testing.T, seed uint64, c *write.Changes, tbl *write.Table, want []string) {
	t.Helper()
	own, err := c.Own(tbl)
	must(t, err)
	var got []string
	for _, row := range rowsOf(t, own) {
		if op, values, _ := strings.Cut(row, ": "); op != fmt.Sprint(uint8(change.Delete)) {
			got = append(got, values)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("seed %d, table %d: %v, want %v", seed, tbl.ID, got, want)
	}
	if own != nil && !own.Truncated {
		t.Fatalf("seed %d: a temporary table is read beside others' rows", seed)
	}
}

// Single rows by the thousand do not pile up in batches.
func TestTempFolds(t *testing.T) {
	c := write.NewTemp(write.NewBudget(1 << 30))
	tbl := tempTable(t, 1, "id")
	most := 0
	for i := range 2200 {
		must(t, c.Put(tbl, change.Insert, columns(fmt.Sprintf("%d x", i))))
		c.Keep(map[change.TableID]*write.Table{1: tbl})
		most = max(most, c.Mark())
	}
	if most > 1100 {
		t.Errorf("%d batches", most)
	}
	own, err := c.Own(tbl)
	must(t, err)
	if n := len(rowsOf(t, own)); n != 2200 {
		t.Errorf("%d rows", n)
	}
}

// Too much is refused, by a session's own bound and by that of all.
func TestTempBounds(t *testing.T) {
	budget := write.NewBudget(64 << 10)
	c, other := write.NewTemp(budget), write.NewTemp(budget)
	tbl := tempTable(t, 1)
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf("%d a-note-of-some-length", i))
	}
	must(t, c.Put(tbl, change.Insert, columns(rows...)))
	err := other.Put(tbl, change.Insert, columns(rows...))
	if e, ok := pgerr.As(err); !ok || e.Code != "53200" {
		t.Fatalf("%v, want 53200", err)
	}
	c.Release()
	must(t, other.Put(tbl, change.Insert, columns(rows...)))
	other.Release()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are left", budget.Used())
	}
}

// altered is a table with another column in front, the id wider, and another name for note.
func altered(t *testing.T, of *write.Table) *write.Table {
	t.Helper()
	initial := "7"
	next, err := schema.Evolve(of.Current, []schema.NewField{
		{Name: "note", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1},
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, NotNull: true},
		{Name: "more", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1, Initial: &initial},
		{Name: "none", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1},
	}, nil)
	must(t, err)
	next.WholeRow = true
	return write.Of(&catalog.Table{ID: of.ID, Schema: of.Schema, Name: of.Name, Current: next})
}

// Rows that were written before their table was altered have what older rows have in new
// columns; a rollback of the alteration gives them back as they were.
func TestAlteredBetween(t *testing.T) {
	tbl := table(t)
	c := &write.Changes{}
	must(t, c.Put(tbl, change.Insert, columns("1 a", "2 -")))
	own, err := c.Own(tbl)
	must(t, err)
	equalRows(t, "before", rowsOf(t, own), "1: 1 a", "1: 2 -")
	next := altered(t, tbl)
	own, err = c.Own(next)
	must(t, err)
	if len(own.Fields) != 4 || len(own.Rows) == 0 {
		t.Fatalf("fields %v", own.Fields)
	}
	own, err = c.Own(tbl) // rolled back
	must(t, err)
	equalRows(t, "after a rollback", rowsOf(t, own), "1: 1 a", "1: 2 -")

	must(t, c.Settle(func(change.TableID) *schema.Table { return next.Current }))
	n := 0
	must(t, c.Each(func(b *change.Batch) error {
		n++
		if b.SchemaVersion != next.Current.Version || !b.Record.Schema().Equal(next.Current.Arrow()) {
			t.Errorf("batch of version %d: %v", b.SchemaVersion, b.Record.Schema())
		}
		more, none := b.Record.Column(change.SystemColumns+2), b.Record.Column(change.SystemColumns+3)
		if more.ValueStr(0) != "7" || more.ValueStr(1) != "7" || none.NullN() != 2 {
			t.Errorf("new columns %v %v", more, none)
		}
		if id := b.Record.Column(change.SystemColumns + 1); id.DataType().ID() != arrow.INT64 || id.ValueStr(1) != "2" {
			t.Errorf("ids %v", id)
		}
		return nil
	}))
	if n != 1 {
		t.Errorf("%d batches", n)
	}
	must(t, c.Settle(func(change.TableID) *schema.Table { return nil })) // it was dropped
	if !c.Empty() {
		t.Error("changes of a table that was dropped are left")
	}
}

func equalRows(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

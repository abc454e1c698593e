package write_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

func table(t *testing.T, key ...string) *write.Table {
	t.Helper()
	s, err := schema.New([]schema.NewField{
		{Name: "note", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1},
		{Name: "id", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1, NotNull: true},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	s.WholeRow = len(key) == 0
	return write.Of(&catalog.Table{ID: 7, Schema: "public", Name: "t", Current: s})
}

// columns are rows "id note"; a note of - is null.
func columns(rows ...string) []arrow.Array {
	notes, ids := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt32Builder(memory.DefaultAllocator)
	for _, r := range rows {
		var id int32
		var note string
		if _, err := fmt.Sscanf(r, "%d %s", &id, &note); err != nil {
			panic(err)
		}
		ids.Append(id)
		if note == "-" {
			notes.AppendNull()
		} else {
			notes.Append(note)
		}
	}
	return []arrow.Array{notes.NewArray(), ids.NewArray()}
}

// rowsOf reads what queries get.
func rowsOf(t *testing.T, own *duckdb.Own) []string {
	t.Helper()
	var out []string
	if own == nil || len(own.Rows) == 0 {
		return out
	}
	r, err := ipc.NewReader(strings.NewReader(string(own.Rows)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			note := rec.Column(1).ValueStr(i)
			if rec.Column(1).IsNull(i) {
				note = "-"
			}
			out = append(out, fmt.Sprintf("%s: %s %s", rec.Column(0).ValueStr(i), rec.Column(2).ValueStr(i), note))
		}
	}
	sort.Strings(out)
	return out
}

// Queries of a transaction see, of each key, its last change; a rollback to a savepoint
// takes what came after it back.
func TestOwnOfKeys(t *testing.T) {
	tab := table(t, "id")
	c := &write.Changes{}
	defer c.Release()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, truncated bool, rows ...string) {
		t.Helper()
		own, err := c.Own(tab)
		must(err)
		got := rowsOf(t, own)
		deletes := slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, "3") })
		if !slices.Equal(got, rows) || own.Truncated != truncated || own.Deletes != deletes || !slices.Equal(own.Fields, []int32{1, 2}) {
			t.Errorf("%s: %q, truncated %t, deletes %t; want %q, %t", what, got, own.Truncated, own.Deletes, rows, truncated)
		}
	}
	if own, err := c.Own(tab); err != nil || own != nil || !c.Empty() {
		t.Errorf("before any change: %v, %v", own, err)
	}
	must(c.Put(tab, change.Insert, columns("1 a", "2 b")))
	want("inserted", false, "1: 1 a", "1: 2 b")
	mark := c.Mark()
	must(c.Put(tab, change.Update, columns("2 c")))
	must(c.Delete(tab, columns("1 x")[1:]))
	want("changed", false, "2: 2 c", "3: 1 -")
	must(c.Put(tab, change.Insert, columns("1 again")))
	want("inserted again", false, "1: 1 again", "2: 2 c")
	must(c.Truncate(tab))
	want("truncated", true)
	must(c.Put(tab, change.Insert, columns("3 d")))
	want("after it", true, "1: 3 d")
	c.Rollback(mark)
	want("rolled back", false, "1: 1 a", "1: 2 b")
	c.Rollback(0)
	if own, err := c.Own(tab); err != nil || own != nil || !c.Empty() {
		t.Errorf("all rolled back: %v, %v", own, err)
	}
}

// Of a table without a key equal inserts and deletes cancel out, and what is left are
// rows of before.
func TestOwnOfWholeRows(t *testing.T) {
	tab := table(t)
	c := &write.Changes{}
	defer c.Release()
	for _, step := range []error{
		c.Put(tab, change.Insert, columns("1 a", "1 a", "2 -")),
		c.Delete(tab, columns("1 a", "9 old", "2 -")),
		c.Delete(tab, columns("9 old")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	own, err := c.Own(tab)
	if err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, own); !slices.Equal(got, []string{"1: 1 a", "3: 9 old", "3: 9 old"}) || !own.Deletes {
		t.Errorf("own changes are %q", got)
	}
}

// What the log gets is every batch, in order.
func TestEach(t *testing.T) {
	tab := table(t, "id")
	c := &write.Changes{}
	defer c.Release()
	_ = c.Put(tab, change.Insert, columns("1 a", "2 b"))
	_ = c.Truncate(tab)
	_ = c.Delete(tab, columns("5 x")[1:])
	for range 2 {
		var got []string
		err := c.Each(func(b *change.Batch) error {
			got = append(got, fmt.Sprint(b.Table, b.SchemaVersion, b.Truncate, b.Rows(), b.Counts.Inserts, b.Counts.Deletes))
			return nil
		})
		if want := []string{"7 1 false 2 2 0", "7 1 true 0 0 0", "7 1 false 1 0 1"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// Keys are sorted by what a transaction knows of them, against a map, over random changes.
func TestKeys(t *testing.T) {
	tab := table(t, "id")
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := &write.Changes{}
		there, truncated := map[int]bool{}, false
		for range 30 {
			id := r.IntN(8)
			var err error
			switch r.IntN(9) {
			case 0:
				err = c.Truncate(tab)
				clear(there)
				truncated = true
			case 1, 2:
				err = c.Delete(tab, columns(fmt.Sprintf("%d x", id))[1:])
				there[id] = false
			default:
				err = c.Put(tab, change.Update, columns(fmt.Sprintf("%d x", id)))
				there[id] = true
			}
			if err != nil {
				t.Fatal(err)
			}
			rows := []string{fmt.Sprintf("%d a", r.IntN(8)), fmt.Sprintf("%d a", r.IntN(8)), fmt.Sprintf("%d a", r.IntN(8))}
			got, err := c.Keys(tab, columns(rows...)[1:])
			if err != nil {
				t.Fatal(err)
			}
			var want write.KeyKinds
			seen := map[int]bool{}
			for i, row := range rows {
				var id int
				_, _ = fmt.Sscan(row, &id)
				left, known := there[id]
				switch {
				case seen[id]:
					want.Twice = append(want.Twice, int32(i))
				case left:
					want.Left = append(want.Left, int32(i))
				case !known && !truncated:
					want.Open = append(want.Open, int32(i))
				}
				seen[id] = true
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: keys of %q are %+v, want %+v", seed, rows, got, want)
			}
		}
		c.Release()
	}
}

// A row without a value that it must have is told with the row.
func TestCheckNulls(t *testing.T) {
	tab := table(t, "id")
	all := columns("1 a", "2 -")
	if err := tab.CheckNulls(all, encode.DefaultFormat()); err != nil {
		t.Error(err)
	}
	ids := array.NewInt32Builder(memory.DefaultAllocator)
	ids.Append(1)
	ids.AppendNull()
	err := tab.CheckNulls([]arrow.Array{all[0], ids.NewArray()}, encode.DefaultFormat())
	e, ok := pgerr.As(err)
	if !ok || e.Code != "23502" || e.Detail != "Failing row contains (null, null)." ||
		e.Schema != "public" || e.Table != "t" || e.Column != "id" {
		t.Errorf("%v: %+v", err, e)
	}
	e, ok = pgerr.As(tab.Duplicate(columns("2 a")[1:], 0, encode.DefaultFormat()))
	if !ok || e.Code != "23505" || e.Schema != "public" || e.Table != "t" || e.Constraint != "t_pkey" {
		t.Errorf("%+v", e)
	}
}

// Rows that a join finds several times are changed once; those whose key changes move.
func TestRows(t *testing.T) {
	tab := table(t, "id")
	r := write.Rows{Old: columns("1 x", "2 x", "1 x")[1:], New: columns("1 a", "5 b", "1 c")}
	first, err := tab.FirstOfEach(r, []int{1})
	if err != nil || !slices.Equal(first, []int32{0, 1}) {
		t.Errorf("first %v, %v", first, err)
	}
	taken, err := r.Take(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := tab.Moved(taken, []int{1})
	if err != nil || !slices.Equal(moved, []int32{1}) || taken.Len() != 2 {
		t.Errorf("moved %v of %d, %v", moved, taken.Len(), err)
	}
	if got := write.Without(5, []int32{0, 3}); !slices.Equal(got, []int32{1, 2, 4}) {
		t.Errorf("without: %v", got)
	}
}

// TestGather: what a statement reads to write it is refused before it fills the memory.
func TestGather(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append(strings.Repeat("x", 32<<20))
	note := b.NewArray()
	var g write.Gather
	n := 0
	for ; n < 1000; n++ {
		note.Retain()
		if err := g.Add(write.Rows{New: []arrow.Array{note}}); err != nil {
			if e, ok := pgerr.As(err); !ok || e.Code != "54000" {
				t.Fatal(err)
			}
			break
		}
	}
	if n < write.BytesMax>>25 || n > 2*write.BytesMax>>25 {
		t.Fatalf("%d times 32 MiB were taken", n)
	}
	g.Reset()
	if rows, err := g.Rows(); err != nil || rows.Len() != 0 {
		t.Fatalf("%d rows of none: %v", rows.Len(), err)
	}
	for _, id := range []string{"1 a", "2 b", "3 -"} {
		if err := g.Add(write.Rows{New: columns(id)}); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := g.Rows(); err != nil || rows.Len() != 3 {
		t.Fatalf("%d rows of 3: %v", rows.Len(), err)
	}
}

// What has become of the row with key 1 since a mark: another that takes its key is not it.
func TestFateOf(t *testing.T) {
	key := func(id string) []arrow.Array { return columns(id + " -")[1:] }
	for name, c := range map[string]struct {
		do   func(c *write.Changes, of *write.Table) error
		want write.Fate
		none write.Fate // of a row that is not there
	}{
		"nothing": {func(*write.Changes, *write.Table) error { return nil }, write.Here, write.Here},
		"updated": {func(c *write.Changes, of *write.Table) error { return c.Put(of, change.Update, columns("1 b", "2 b")) }, write.Here, write.Here},
		"another": {func(c *write.Changes, of *write.Table) error { return c.Delete(of, key("2")) }, write.Here, write.Here},
		"deleted": {func(c *write.Changes, of *write.Table) error { return c.Delete(of, key("1")) }, write.Gone, write.Here},
		"in its place": {func(c *write.Changes, of *write.Table) error {
			return errors.Join(c.Delete(of, key("1")), c.Put(of, change.Insert, columns("1 c")))
		}, write.Gone, write.Here},
		"moved": {func(c *write.Changes, of *write.Table) error {
			return errors.Join(c.Leave(of, key("1")), c.Put(of, change.Insert, columns("5 c")))
		}, write.Moved, write.Moved},
		"another moved": {func(c *write.Changes, of *write.Table) error {
			return errors.Join(c.Leave(of, key("2")), c.Put(of, change.Insert, columns("5 c")))
		}, write.Here, write.Moved},
		"truncated": {func(c *write.Changes, of *write.Table) error { return c.Truncate(of) }, write.Gone, write.Gone},
	} {
		of, changes := table(t, "id"), &write.Changes{}
		if err := errors.Join(changes.Delete(of, key("1")), changes.Put(of, change.Insert, columns("1 a"))); err != nil {
			t.Fatal(err)
		}
		mark := changes.Mark() // what was before does not count
		if err := c.do(changes, of); err != nil {
			t.Fatal(name, err)
		}
		for asked, want := range map[string]write.Fate{"1": c.want, "": c.none} {
			var of1 []arrow.Array
			if asked != "" {
				of1 = key(asked)
			}
			if got, err := changes.FateOf(of, mark, of1); err != nil || got != want {
				t.Errorf("%s: fate of %q is %d, %v", name, asked, got, err)
			}
		}
		changes.Release()
	}
}

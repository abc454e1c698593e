package fill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// row is a row of the tests' table in the columns of a version: name → value; a text is
// one value, a list the texts between its commas.
type row map[string]string

// value is what a row has in a field: what it had before the field came, if it is older.
func (r row) value(id int32) (string, bool) {
	v, ok := r[fmt.Sprint(id)]
	if made := int(id) - 2; !ok && id > 3 && r.version() < made {
		return "before", true
	}
	return v, ok
}

// version is the schema version that the row was written in.
func (r row) version() int {
	n, _ := strconv.Atoi(r["version"])
	return max(n, 1)
}

// now is the row in the newest version.
func (r row) now(s *schema.Table) row {
	out := row{}
	for _, f := range s.Fields {
		if v, ok := r.value(f.ID); ok && f.Name != "id" {
			out[fmt.Sprint(f.ID)] = v
		}
	}
	return out
}

// state is rows by key.
type state map[int64]row

// world is a table with what a source has of it, and what the changes before the group
// made visible.
type world struct {
	t        testing.TB
	versions []*schema.Table
	source   state
	visible  state
	pending  state // of the parts of the group's transaction
	copied   state
	asked    []string // which look-ups were made
	tell     func(where string) error
}

func text(name string) schema.NewField {
	return schema.NewField{Name: name, Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1}
}

func newWorld(t testing.TB) *world {
	id := schema.NewField{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20, TypMod: -1, AttNum: 1}
	list := schema.NewField{
		Name: "list", Type: schema.Type{Kind: schema.List, Elem: &schema.Type{Kind: schema.String}}, OID: 1009, TypMod: -1, AttNum: 3,
	}
	doc := text("doc")
	doc.AttNum = 2
	first, err := schema.New([]schema.NewField{doc, id, list}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, versions: []*schema.Table{first}, source: state{}, visible: state{}, pending: state{}}
}

// rename gives the table a version in which doc has another name, and another column.
func (w *world) rename(name string) {
	w.t.Helper()
	old := w.versions[len(w.versions)-1]
	cols := make([]schema.NewField, 0, len(old.Fields)+1)
	for _, f := range old.Fields {
		c := schema.NewField{Name: f.Name, Type: f.Type, OID: f.OID, TypMod: f.TypMod, AttNum: f.AttNum, Initial: f.Initial}
		if f.AttNum == 2 {
			c.Name = name
		}
		cols = append(cols, c)
	}
	more := text(fmt.Sprintf("more%d", len(w.versions)))
	more.AttNum = int16(10 + len(w.versions))
	initial := "before"
	more.Initial = &initial
	next, err := schema.Evolve(old, append(cols, more), []string{"id"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.versions = append(w.versions, next)
}

func (w *world) now() *schema.Table { return w.versions[len(w.versions)-1] }

// put appends a row as the version has it; of the fields in left the source sends nothing.
func put(b *change.Builder, s *schema.Table, op change.Op, token, id int64, r row, left []int32, moved bool) {
	b.Add(op, token, 0)
	for i, f := range s.Fields {
		switch {
		case f.Name == "id":
			b.Column(i).(*array.Int64Builder).Append(id)
		case slices.Contains(left, f.ID):
			b.LeaveOut(i, moved)
		default:
			value, ok := r[fmt.Sprint(f.ID)]
			if op == change.Delete || !ok {
				b.Column(i).AppendNull()
				continue
			}
			switch c := b.Column(i).(type) {
			case *array.StringBuilder:
				c.Append(value)
			case *array.ListBuilder:
				c.Append(true)
				for _, e := range strings.Split(value, ",") {
					c.ValueBuilder().(*array.StringBuilder).Append(e)
				}
			}
		}
	}
}

// get reads a row of a record whose columns are named as in fields.
func get(rec arrow.RecordBatch, first int, ids []int32, at int) row {
	r := row{}
	for i, id := range ids {
		switch c := rec.Column(first + i).(type) {
		case *array.String:
			if c.IsValid(at) {
				r[fmt.Sprint(id)] = c.Value(at)
			}
		case *array.List:
			if c.IsNull(at) {
				continue
			}
			from, to := c.ValueOffsets(at)
			var parts []string
			for j := from; j < to; j++ {
				parts = append(parts, c.ListValues().(*array.String).Value(int(j)))
			}
			r[fmt.Sprint(id)] = strings.Join(parts, ",")
		}
	}
	return r
}

func (w *world) Pending(_ context.Context, q *Query, found Found) error {
	return w.answer("pending", w.pending, q, found)
}

func (w *world) Visible(_ context.Context, q *Query, found Found) error {
	return w.answer("visible", w.visible, q, found)
}

// answer answers from rows, in records of two.
func (w *world) answer(where string, from state, q *Query, found Found) error {
	w.asked = append(w.asked, where)
	if w.tell != nil {
		if err := w.tell(where); err != nil {
			return err
		}
	}
	fields := []schema.Field{q.Schema.KeyFields()[0]}
	for _, id := range q.Fields {
		f, ok := q.Schema.Field(id)
		if ok && (where == "pending" || id <= w.versions[0].LastFieldID) { // the catalog has the first version
			fields = append(fields, f)
		}
	}
	arrowFields := make([]arrow.Field, len(fields))
	for i, f := range fields {
		arrowFields[i] = arrow.Field{Name: FieldName(f.ID), Type: schema.ArrowType(f.Type), Nullable: true}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(arrowFields, nil))
	defer b.Release()
	flush := func() error {
		rec := b.NewRecordBatch()
		defer rec.Release()
		return found(rec)
	}
	keys := q.Keys.Column(0).(*array.Int64)
	for i := range keys.Len() {
		r, ok := from[keys.Value(i)]
		if !ok {
			continue
		}
		b.Field(0).(*array.Int64Builder).Append(keys.Value(i))
		for i, f := range fields[1:] {
			value, ok := r.value(f.ID)
			if !ok {
				b.Field(i + 1).AppendNull()
				continue
			}
			switch c := b.Field(i + 1).(type) {
			case *array.StringBuilder:
				c.Append(value)
			case *array.ListBuilder:
				c.Append(true)
				for _, e := range strings.Split(value, ",") {
					c.ValueBuilder().(*array.StringBuilder).Append(e)
				}
			}
		}
		if b.Field(0).Len() == 2 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func (w *world) table(exact bool) func(change.TableID) (*Table, error) {
	t := &Table{
		Exact: exact,
		Version: func(n uint32) *schema.Table {
			i := slices.IndexFunc(w.versions, func(s *schema.Table) bool { return s.Version == n })
			if i < 0 {
				return nil
			}
			return w.versions[i]
		},
	}
	if w.copied != nil {
		t.Copied = func(_ context.Context, q *Query, found Found) (bool, error) {
			return true, w.answer("copied", w.copied, q, found)
		}
	}
	return func(change.TableID) (*Table, error) { return t, nil }
}

// apply folds filled changes into rows, and checks that nothing is left out.
func (w *world) apply(into state, b *change.Batch) {
	w.t.Helper()
	if len(b.Unchanged) > 0 {
		w.t.Fatalf("%d cells are left out", len(b.Unchanged))
	}
	if b.Truncate {
		clear(into)
	}
	var s *schema.Table
	for _, v := range w.versions {
		if v.Version == b.SchemaVersion {
			s = v
		}
	}
	ids := make([]int32, len(s.Fields))
	key := 0
	for i, f := range s.Fields {
		ids[i] = f.ID
		if f.Name == "id" {
			key = change.SystemColumns + i
		}
	}
	ops := b.Record.Column(0).(*array.Uint8)
	for i := range int(b.Rows()) {
		id := b.Record.Column(key).(*array.Int64).Value(i)
		delete(into, id)
		if change.Op(ops.Value(i)) != change.Delete {
			into[id] = get(b.Record, change.SystemColumns, ids, i)
			into[id]["version"] = fmt.Sprint(s.Version)
		}
	}
}

// script draws a group's changes.
type script struct {
	w     *world
	r     *rand.Rand
	b     *change.Builder
	out   []*change.Batch
	token int64
}

func (s *script) close() {
	if s.b != nil && (s.b.Rows() > 0 || s.b.Truncate) {
		s.out = append(s.out, s.b.Batch())
	}
}

func (s *script) begin() {
	s.close()
	if s.b != nil {
		s.b.Release()
	}
	v := s.w.now()
	s.b = change.NewBuilder(memory.DefaultAllocator, 7, v.Version, v.Arrow())
}

func (s *script) values() row {
	r := row{}
	for _, f := range s.w.now().Fields {
		if f.Name != "id" && s.r.IntN(5) > 0 {
			r[fmt.Sprint(f.ID)] = fmt.Sprintf("%d,%s", s.r.IntN(1000), strings.Repeat("x", s.r.IntN(40)))
		}
	}
	return r
}

// change draws one.
func (s *script) change() {
	s.token++
	w, v := s.w, s.w.now()
	ids := slices.Sorted(maps.Keys(w.source))
	if kind := s.r.IntN(12); kind < 2 || len(ids) == 0 {
		id := int64(s.r.IntN(30))
		if _, taken := w.source[id]; !taken {
			w.source[id] = s.values()
			put(s.b, v, change.Insert, s.token, id, w.source[id], nil, false)
		}
		return
	}
	id := ids[s.r.IntN(len(ids))]
	switch kind := s.r.IntN(30); {
	case kind == 0:
		s.close()
		s.b.Truncate = true
		clear(w.source)
		return
	case kind == 1 && len(w.versions) < 4:
		for _, r := range w.source { // of what rows older than the column have in it
			r[fmt.Sprint(v.LastFieldID+1)] = "before"
		}
		w.rename(fmt.Sprintf("doc%d", len(w.versions)))
		s.begin()
		return
	case kind < 5:
		put(s.b, v, change.Delete, s.token, id, nil, nil, false)
		delete(w.source, id)
		return
	}
	old := w.source[id]
	next := s.values()
	var left []int32
	for _, f := range v.Fields {
		if f.Name == "id" || s.r.IntN(2) == 0 {
			continue
		}
		left = append(left, f.ID)
		name := fmt.Sprint(f.ID)
		delete(next, name)
		if value, ok := old[name]; ok {
			next[name] = value
		}
	}
	to := int64(s.r.IntN(30))
	if _, taken := w.source[to]; taken || s.r.IntN(3) > 0 {
		w.source[id] = next
		put(s.b, v, change.Update, s.token, id, next, left, false)
		return
	}
	delete(w.source, id)
	w.source[to] = next
	put(s.b, v, change.Delete, s.token, id, nil, nil, false)
	put(s.b, v, change.Insert, s.token, to, next, left, true)
}

func clone(s state) state {
	out := state{}
	for id, r := range s {
		out[id] = maps.Clone(r)
	}
	return out
}

// TestAgainstModel fills groups of random changes, in pieces of random size, and compares
// every row with the source's.
func TestAgainstModel(t *testing.T) {
	pieces, cells := 0, 0
	for seed := range uint64(1500) {
		w := newWorld(t)
		s := &script{w: w, r: rand.New(rand.NewPCG(seed, 1))}
		for id := range int64(s.r.IntN(20)) {
			w.source[id] = s.values()
		}
		w.visible = clone(w.source)
		s.begin()
		for range s.r.IntN(60) {
			s.change()
		}
		s.close()
		sizes := &Sizes{piece: 1 + s.r.Int64N(1500)}
		f := New(w, w.table(true), sizes, s.out, false)
		end := clone(w.visible)
		for more := true; more; {
			var batches []*change.Batch
			var err error
			if batches, more, err = f.Next(t.Context()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			pieces++
			for _, b := range batches {
				w.apply(end, b)
				w.apply(w.pending, b)
				b.Release()
			}
		}
		f.Close()
		for _, b := range s.out {
			cells += len(b.Unchanged)
			b.Release()
		}
		s.b.Release()
		for id, r := range end {
			end[id] = r.now(w.now())
		}
		if !equalStates(end, w.source) {
			t.Fatalf("seed %d: rows are\n%v\nnot\n%v", seed, end, w.source)
		}
	}
	if pieces < 3500 || cells < 10_000 {
		t.Errorf("only %d pieces and %d cells: nothing was tried", pieces, cells)
	}
}

func equalStates(a, b state) bool {
	return maps.EqualFunc(a, b, func(a, b row) bool { return maps.Equal(a, b) })
}

// one is a world with row 1, and a group with one change of it that leaves doc out.
func one(t *testing.T, moved bool) (*world, []*change.Batch) {
	w := newWorld(t)
	w.visible[1] = row{"1": "a,b"}
	v := w.now()
	b := change.NewBuilder(memory.DefaultAllocator, 7, v.Version, v.Arrow())
	defer b.Release()
	if moved {
		put(b, v, change.Delete, 5, 1, nil, nil, false)
		put(b, v, change.Insert, 5, 2, nil, []int32{1}, true)
	} else {
		put(b, v, change.Update, 5, 1, nil, []int32{1}, false)
	}
	batch := b.Batch()
	t.Cleanup(batch.Release)
	return w, []*change.Batch{batch}
}

func TestWhereItLooks(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(*world)
		parts   bool
		exact   bool
		asked   string
		want    string // value, or the error's text
	}{
		{name: "visible", exact: true, asked: "visible", want: "a,b"},
		{name: "parts first", parts: true, exact: true, prepare: func(w *world) { w.pending[1] = row{"1": "p"} }, asked: "pending", want: "p"},
		{name: "parts without it", parts: true, exact: true, asked: "pending visible", want: "a,b"},
		{name: "not copied yet", exact: true, prepare: func(w *world) { w.visible, w.copied = state{}, state{1: {"1": "c"}} }, asked: "visible copied", want: "c"},
		{name: "nowhere", exact: true, prepare: func(w *world) { w.visible = state{} }, asked: "visible", want: `column "doc"`},
		{name: "not at the source either", exact: true, prepare: func(w *world) { w.visible, w.copied = state{}, state{} }, asked: "visible copied", want: `column "doc"`},
		{name: "not exact", asked: "", want: ErrNotExact.Error()},
		{name: "not exact, in a part", parts: true, prepare: func(w *world) { w.pending[1] = row{"1": "p"} }, asked: "pending", want: "p"},
		{name: "look-up fails", exact: true, prepare: func(w *world) { w.tell = func(string) error { return errors.New("engine is down") } }, asked: "visible", want: "engine is down"},
	} {
		for _, moved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s moved=%v", c.name, moved), func(t *testing.T) {
				w, group := one(t, moved)
				if c.prepare != nil {
					c.prepare(w)
				}
				f := New(w, w.table(c.exact), &Sizes{}, group, c.parts)
				defer f.Close()
				batches, more, err := f.Next(t.Context())
				if asked := strings.Join(w.asked, " "); asked != c.asked {
					t.Errorf("asked %q, not %q", asked, c.asked)
				}
				if err != nil {
					if !strings.Contains(err.Error(), c.want) {
						t.Errorf("error %v does not say %s", err, c.want)
					}
					return
				}
				defer batches[0].Release()
				last := int(batches[0].Rows()) - 1
				if got := batches[0].Record.Column(change.SystemColumns).(*array.String).Value(last); got != c.want || more {
					t.Errorf("value %q, not %q; more %v", got, c.want, more)
				}
			})
		}
	}
}

// TestNoKeyTwiceAsked: however many cells want a row, it is asked for once.
func TestNoKeyTwiceAsked(t *testing.T) {
	w := newWorld(t)
	w.visible[1] = row{"1": "a", "3": "b,c"}
	v := w.now()
	b := change.NewBuilder(memory.DefaultAllocator, 7, v.Version, v.Arrow())
	defer b.Release()
	for range 5 {
		put(b, v, change.Update, 5, 1, nil, []int32{1, 3}, false)
	}
	batch := b.Batch()
	defer batch.Release()
	f := New(keyCount{w, t}, w.table(true), &Sizes{}, []*change.Batch{batch}, false)
	defer f.Close()
	batches, _, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer batches[0].Release()
	if !batches[0].Record.Column(change.SystemColumns + 2).IsValid(4) {
		t.Error("the list of the last row is null")
	}
}

type keyCount struct {
	*world
	t *testing.T
}

func (k keyCount) Visible(ctx context.Context, q *Query, found Found) error {
	if q.Keys.NumRows() != 1 {
		k.t.Errorf("%d keys", q.Keys.NumRows())
	}
	return k.world.Visible(ctx, q, found)
}

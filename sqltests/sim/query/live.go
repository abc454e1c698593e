package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// liveSide is the winners of a relation's live slices.
type liveSide struct {
	truncated bool
	groups    []liveGroup
	// winners by key, for relations with one.
	winners map[string]*winner
	// less counts the rows of the lake that go, by their contents, for relations whose rows
	// are told apart by all columns.
	less map[string]int
	// ints are the winners' keys, sorted, when the key is one integer.
	ints   []int64
	intKey bool
}

// liveGroup is the winners of one slice.
type liveGroup struct {
	batch   arrow.RecordBatch
	arrays  []arrow.Array
	columns []appender
	won     merge.Selection
	winners []*winner // of won, for relations with a key
}

// winner is the newest live change of a key.
type winner struct {
	token int64
	// stale says that the lake has a newer row.
	stale bool
}

// liveSlice is a slice as read.
type liveSlice struct {
	batch arrow.RecordBatch
	index []int // of the relation's columns in the batch; -1: not there
}

// live reads and collapses the relation's slices, as a worker that has nothing cached
// does.
func (e *Executor) live(ctx context.Context, r *duckdb.Relation) (*liveSide, error) {
	l := &liveSide{intKey: len(r.Key) == 1}
	if r.Live == nil {
		return l, nil
	}
	slicesRead, x, err := e.collapse(ctx, r)
	if err != nil {
		releaseAll(slicesRead)
		return nil, err
	}
	pin, truncated := x.Effective(x.Held())
	l.truncated = truncated
	if len(r.Key) > 0 {
		l.winners = map[string]*winner{}
	}
	for i, s := range slicesRead {
		ordinal := merge.Ordinal(i + 1)
		if s.batch == nil {
			continue
		}
		if ordinal <= pin.Lo {
			s.batch.Release()
			continue
		}
		from, to := x.Range(ordinal)
		won, all := x.Winners(nil, pin, from, to)
		if all {
			won = everyRow(s.batch)
		}
		if len(won) == 0 {
			s.batch.Release()
			continue
		}
		e.add(l, r, s, won)
	}
	slices.Sort(l.ints)
	return l, nil
}

// collapse reads the slices into an index, in log order.
func (e *Executor) collapse(ctx context.Context, r *duckdb.Relation) ([]liveSlice, *merge.Index, error) {
	x := merge.NewIndex()
	if r.WholeRow {
		x = merge.NewCounted()
	}
	out := make([]liveSlice, 0, len(r.Live.Slices))
	for _, s := range r.Live.Slices {
		s.Table = r.Live.Table
		read, key, err := e.read(ctx, r, s)
		if err == nil {
			out = append(out, read)
			err = appendSlice(x, r, read, key, s)
		}
		if err != nil {
			return out, nil, fmt.Errorf("read slice %d:%d of table %d: %w", s.Seq, s.Start, s.Table, err)
		}
	}
	return out, x, nil
}

func appendSlice(x *merge.Index, r *duckdb.Relation, read liveSlice, key []int, s duckdb.LiveSlice) error {
	if !r.WholeRow {
		_, err := x.Append(read.batch, key, s.Truncate)
		return err
	}
	columns := make([]merge.Column, len(read.index))
	for i, at := range read.index {
		columns[i] = merge.Column{Index: at, Initial: merge.NullContent()} // no column of a world has another
	}
	_, err := x.AppendRows(read.batch, columns, merge.SliceKind{Truncate: s.Truncate, Copied: s.Backfill})
	return err
}

func (e *Executor) read(ctx context.Context, r *duckdb.Relation, s duckdb.LiveSlice) (out liveSlice, key []int,
	err error,
) {
	if s.Rows == 0 {
		return out, nil, nil
	}
	rec, err := e.Slices.ReadSlice(ctx, s, r.Live.Dir)
	if err != nil || rec == nil {
		return out, nil, err
	}
	ids, ok := r.Live.Fields[s.SchemaVersion]
	if !ok || len(ids) != int(rec.NumCols())-change.SystemColumns {
		rec.Release()
		return out, nil, fmt.Errorf("schema version %d with %d columns: %w", s.SchemaVersion, rec.NumCols(), duckdb.ErrPlan)
	}
	out = liveSlice{batch: rec, index: make([]int, len(r.Columns))}
	for i, c := range r.Columns {
		out.index[i] = slices.Index(ids, c.FieldID)
		if out.index[i] >= 0 {
			out.index[i] += change.SystemColumns
		}
	}
	for _, name := range r.Key {
		i := slices.IndexFunc(r.Columns, func(c duckdb.Column) bool { return c.Name == name })
		if i < 0 || out.index[i] < 0 {
			rec.Release()
			return liveSlice{}, nil, fmt.Errorf("key column %q: %w", name, duckdb.ErrPlan)
		}
		key = append(key, out.index[i])
	}
	return out, key, nil
}

// add adds the winners of a slice.
func (e *Executor) add(l *liveSide, r *duckdb.Relation, s liveSlice, won merge.Selection) {
	g := liveGroup{batch: s.batch, won: won, arrays: make([]arrow.Array, len(r.Columns))}
	for i, at := range s.index {
		if at >= 0 {
			g.arrays[i] = s.batch.Column(at)
		}
	}
	g.columns, _ = appendersOf(r, g.arrays)
	if len(r.Key) > 0 {
		key := keyAppenders(r, g.columns)
		tokens := s.batch.Column(1).(*array.Int64)
		g.winners = make([]*winner, len(won))
		for n, row := range won {
			w := &winner{token: tokens.Value(int(row))}
			g.winners[n] = w
			l.winners[string(e.keyOf(key, int(row)))] = w
		}
		l.addInts(r, s, won)
	}
	if r.WholeRow {
		e.addLess(l, &g)
	}
	l.groups = append(l.groups, g)
}

// addLess counts the deletes among the winners.
func (e *Executor) addLess(l *liveSide, g *liveGroup) {
	ops := g.batch.Column(0).(*array.Uint8)
	for _, row := range g.won {
		if change.Op(ops.Value(int(row))) != change.Delete {
			continue
		}
		if l.less == nil {
			l.less = map[string]int{}
		}
		l.less[string(e.keyOf(g.columns, int(row)))]++
	}
}

// addInts notes the winners' keys when they are single integers.
func (l *liveSide) addInts(r *duckdb.Relation, s liveSlice, won merge.Selection) {
	if !l.intKey {
		return
	}
	at := slices.IndexFunc(r.Columns, func(c duckdb.Column) bool { return c.Name == r.Key[0] })
	switch a := s.batch.Column(s.index[at]).(type) {
	case *array.Int64:
		for _, row := range won {
			l.ints = append(l.ints, a.Value(int(row)))
		}
	case *array.Int32:
		for _, row := range won {
			l.ints = append(l.ints, int64(a.Value(int(row))))
		}
	default:
		l.intKey = false
	}
}

// mayHold says whether a winner's key may be in a file.
func (l *liveSide) mayHold(f *duckdb.File) bool {
	if !l.intKey || !f.KeyBounds {
		return true
	}
	at, _ := slices.BinarySearch(l.ints, f.KeyMin)
	return at < len(l.ints) && l.ints[at] <= f.KeyMax
}

func everyRow(b arrow.RecordBatch) merge.Selection {
	out := make(merge.Selection, b.NumRows())
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func releaseAll(read []liveSlice) {
	for _, s := range read {
		if s.batch != nil {
			s.batch.Release()
		}
	}
}

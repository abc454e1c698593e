package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/wal/change"
)

// Files reads the files of a lake. memlake.Warehouse is one.
type Files interface {
	// File returns the rows of a data file: the fields of its schema, then the token.
	File(path string) ([]arrow.RecordBatch, error)
	FileSchema(path string) (*schema.Table, error)
	Deletes(path string) ([]lake.Position, error)
}

// Executor answers plans. Not safe for concurrent use.
type Executor struct {
	// Slices reads the log; duckdb.LogReader is the worker's.
	Slices duckdb.SliceReader
	Files  Files

	key []byte // scratch
}

// Run answers with the rows of a relation. It wraps duckdb.ErrSliceLost when a slice of
// the plan is gone, and never answers with fewer rows than the plan has (P3).
func (e *Executor) Run(ctx context.Context, r *duckdb.Relation) (*Result, error) {
	live, err := e.live(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &Result{}
	if err := e.lake(r, live, out); err != nil {
		return nil, err
	}
	live.rows(r, out)
	return out, nil
}

// sink takes the rows of an answer: row of the arrays, nil for columns that are not there,
// which columns render.
type sink interface {
	add(arrays []arrow.Array, columns []appender, row int)
}

// lake adds the rows of the pinned files that no live change supersedes.
func (e *Executor) lake(r *duckdb.Relation, live *liveSide, out sink) error {
	if live.truncated {
		return nil
	}
	gone, err := e.deleted(r)
	if err != nil {
		return err
	}
	for i := range r.Files {
		if err := e.file(r, &r.Files[i], gone, live, out); err != nil {
			return fmt.Errorf("read data file %s: %w", r.Files[i].Path, err)
		}
	}
	return nil
}

func (e *Executor) file(r *duckdb.Relation, f *duckdb.File, gone map[lake.Position]bool, live *liveSide,
	out sink,
) error {
	batches, err := e.Files.File(f.Path)
	if err != nil {
		return err
	}
	s, err := e.Files.FileSchema(f.Path)
	if err != nil {
		return err
	}
	if !f.HasDeletes {
		gone = nil
	}
	competes := len(live.winners) > 0 && (r.Live.CompareTokens || live.mayHold(f))
	at := int64(0)
	for _, b := range batches {
		arrays := lakeArrays(r, b, s)
		columns, key := appendersOf(r, arrays)
		tokens := b.Column(int(b.NumCols()) - 1).(*array.Int64)
		for i := range int(b.NumRows()) {
			row := at + int64(i)
			if gone[lake.Position{File: f.Path, Row: row}] {
				continue
			}
			if live.takes(e, columns, i) {
				continue
			}
			if competes && live.beats(e.keyOf(key, i), tokens, i, r.Live.CompareTokens) {
				continue
			}
			out.add(arrays, columns, i)
		}
		at += b.NumRows()
	}
	return nil
}

// lakeColumns finds the relation's columns and its key in a batch of a file.
func lakeColumns(r *duckdb.Relation, b arrow.RecordBatch, s *schema.Table) (columns, key []appender) {
	return appendersOf(r, lakeArrays(r, b, s))
}

// lakeArrays finds the relation's columns in a batch of a file, by field id.
func lakeArrays(r *duckdb.Relation, b arrow.RecordBatch, s *schema.Table) []arrow.Array {
	arrays := make([]arrow.Array, len(r.Columns))
	for i, c := range r.Columns {
		if at := s.Index(c.FieldID); at >= 0 {
			arrays[i] = b.Column(at)
		}
	}
	return arrays
}

func appendersOf(r *duckdb.Relation, arrays []arrow.Array) (columns, key []appender) {
	columns = make([]appender, len(arrays))
	for i, a := range arrays {
		columns[i] = column(a)
	}
	return columns, keyAppenders(r, columns)
}

func keyAppenders(r *duckdb.Relation, columns []appender) []appender {
	key := make([]appender, len(r.Key))
	for i, name := range r.Key {
		key[i] = columns[slices.IndexFunc(r.Columns, func(c duckdb.Column) bool { return c.Name == name })]
	}
	return key
}

// keyOf renders a row's key. It is valid until the next call.
func (e *Executor) keyOf(key []appender, row int) []byte {
	e.key = e.key[:0]
	for _, k := range key {
		e.key = append(k(e.key, row), separator)
	}
	return e.key
}

// deleted are the deleted positions of the relation's files.
func (e *Executor) deleted(r *duckdb.Relation) (map[lake.Position]bool, error) {
	if len(r.PositionDeletes) == 0 {
		return nil, nil
	}
	gone := map[lake.Position]bool{}
	for _, path := range r.PositionDeletes {
		positions, err := e.Files.Deletes(path)
		if err != nil {
			return nil, fmt.Errorf("read delete file %s: %w", path, err)
		}
		for _, p := range positions {
			gone[p] = true
		}
	}
	return gone, nil
}

func (r *Result) add(_ []arrow.Array, columns []appender, row int) {
	start := len(r.text)
	for i, c := range columns {
		if i > 0 {
			r.text = append(r.text, separator)
		}
		r.text = c(r.text, row)
	}
	r.end(start)
}

// takes says whether a delete of an equal row takes the row away.
func (l *liveSide) takes(e *Executor, columns []appender, row int) bool {
	if len(l.less) == 0 {
		return false
	}
	content := string(e.keyOf(columns, row))
	if l.less[content] == 0 {
		return false
	}
	l.less[content]--
	return true
}

// beats says whether the live change of a lake row's key supersedes the row. Where
// tokens are compared, a newer lake row wins over the change, and is remembered as
// having done so (M2).
func (l *liveSide) beats(key []byte, tokens *array.Int64, row int, compare bool) bool {
	w := l.winners[string(key)]
	if w == nil {
		return false
	}
	if compare && !tokens.IsNull(row) && tokens.Value(row) > w.token {
		w.stale = true
		return false
	}
	return true
}

// rows adds the winners that are not deletes, nor older than a row of the lake.
func (l *liveSide) rows(r *duckdb.Relation, out sink) {
	for i := range l.groups {
		g := &l.groups[i]
		ops := g.batch.Column(0).(*array.Uint8)
		for n, row := range g.won {
			if len(r.Key) > 0 && g.winners[n].stale || change.Op(ops.Value(int(row))) == change.Delete {
				continue
			}
			out.add(g.arrays, g.columns, int(row))
		}
		g.batch.Release()
	}
}

package compute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

const (
	// rowsMax and bytesMax bound what is asked for at once.
	rowsMax, bytesMax = 2000, 1 << 20
	// pieceBytes is how many bytes a piece has, but for what is asked for at once.
	pieceBytes = 16 << 20
)

// Source computes columns.
type Source interface {
	// Compute gives the values of the columns of s that are not sent (schema.Field.Unsent),
	// in the order of s.Fields, for the rows of a record, system columns first. Rows that
	// delete by a key have nulls. The arrays are the caller's. It wraps *RefusedError when
	// values of rows cannot be taken in. Calls do not overlap.
	Compute(ctx context.Context, t change.TableID, s *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error)
}

// Refusal says why a row cannot be taken in.
type Refusal struct{ Column, Reason, Hint, Code string }

// RefusedError names rows, by their places in the record.
type RefusedError struct{ Rows map[int]Refusal }

// Error counts them.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%d rows have a computed value that cannot be taken in", len(e.Rows))
}

// Any says whether a batch has columns to compute.
func Any(batches []*change.Batch) bool {
	return slices.ContainsFunc(batches, func(b *change.Batch) bool { return b.Computes })
}

// Group computes the columns of batches, which it takes over, error or not. version gives
// the schema of a batch. It returns the batches in pieces of bounded size, at least one. Rows
// that are refused are all named in one *GroupError.
func Group(ctx context.Context, src Source, version func(*change.Batch) (*schema.Table, error), batches []*change.Batch,
) (pieces [][]*change.Batch, err error) {
	g := &group{ctx: ctx, source: src, refused: map[change.TableID]map[RowID]Refusal{}}
	defer func() {
		for _, b := range g.rest {
			b.Release()
		}
		if err != nil {
			g.release()
		}
	}()
	g.rest = batches
	for len(g.rest) > 0 {
		b := g.rest[0]
		if !b.Computes || b.Rows() == 0 { // it may still truncate
			b.Computes = false
			g.add(b, 0)
			g.rest = g.rest[1:]
			continue
		}
		s, err := version(b)
		if err != nil {
			return nil, err
		}
		if err := g.batch(b, s); err != nil {
			return nil, fmt.Errorf("compute columns of table %d: %w", b.Table, err)
		}
		g.rest = g.rest[1:]
		b.Release()
	}
	if len(g.refused) > 0 {
		return nil, &GroupError{Refused: g.refused}
	}
	if len(g.piece) > 0 || len(g.pieces) == 0 {
		g.pieces = append(g.pieces, g.piece)
	}
	return g.pieces, nil
}

// One computes the columns of a small batch in place. Rows that are refused are a
// *RefusedError: then the batch is as it was.
func One(ctx context.Context, src Source, s *schema.Table, b *change.Batch) error {
	columns, err := src.Compute(ctx, b.Table, s, b.Record)
	if err != nil {
		return err
	}
	defer release(columns)
	whole, err := filled(b, 0, int(b.Rows()), unsent(s), [][]arrow.Array{columns})
	if err != nil {
		return err
	}
	b.Release()
	*b = *whole
	return nil
}

// unsent are the places of columns to compute in a record.
func unsent(s *schema.Table) []int {
	var places []int
	for i, f := range s.Fields {
		if f.Unsent() {
			places = append(places, change.SystemColumns+i)
		}
	}
	return places
}

// group is a group being computed.
type group struct {
	ctx     context.Context
	source  Source
	rest    []*change.Batch
	pieces  [][]*change.Batch
	piece   []*change.Batch
	bytes   int64 // computed, of piece
	refused map[change.TableID]map[RowID]Refusal
}

func (g *group) release() {
	for _, p := range append(g.pieces, g.piece) {
		for _, b := range p {
			b.Release()
		}
	}
}

// add adds a batch to the piece, with so many computed bytes.
func (g *group) add(b *change.Batch, bytes int64) {
	g.piece, g.bytes = append(g.piece, b), g.bytes+bytes
	if g.bytes >= pieceBytes {
		g.pieces, g.piece, g.bytes = append(g.pieces, g.piece), nil, 0
	}
}

// batch computes one batch.
func (g *group) batch(b *change.Batch, s *schema.Table) error {
	rows, step, places := int(b.Rows()), stepOf(b), unsent(s)
	done := make([][]arrow.Array, 0, rows/step+1) // since from
	defer func() {
		for _, columns := range done {
			release(columns)
		}
	}()
	from, bytes := 0, int64(0)
	for at := 0; at < rows; at += step {
		to := min(at+step, rows)
		columns, err := g.rows(b, s, at, to)
		if err != nil {
			return err
		}
		done = append(done, columns)
		for _, c := range columns {
			bytes += change.DataBytes(c.Data())
		}
		if to < rows && g.bytes+bytes < pieceBytes {
			continue
		}
		part, err := filled(b, from, to, places, done)
		if err != nil {
			return err
		}
		g.add(part, bytes)
		for _, columns := range done {
			release(columns)
		}
		done, from, bytes = done[:0], to, 0
	}
	return nil
}

// rows computes some rows of a batch. What is refused of them is null.
func (g *group) rows(b *change.Batch, s *schema.Table, from, to int) ([]arrow.Array, error) {
	if mutant.On(mutant.ComputedNull) {
		return nulls(s, to-from), nil
	}
	rec := b.Record.NewSlice(int64(from), int64(to))
	defer rec.Release()
	columns, err := g.source.Compute(g.ctx, b.Table, s, rec)
	var refused *RefusedError
	if errors.As(err, &refused) {
		tokens, ordinals := rec.Column(1).(*array.Int64), rec.Column(2).(*array.Int32)
		known := g.refused[b.Table]
		if known == nil {
			known = map[RowID]Refusal{}
			g.refused[b.Table] = known
		}
		for row, why := range refused.Rows {
			known[RowID{tokens.Value(row), ordinals.Value(row)}] = why
		}
		return nulls(s, to-from), nil
	}
	return columns, err
}

// nulls stand for the computed columns of rows that will not be appended.
func nulls(s *schema.Table, rows int) []arrow.Array {
	var out []arrow.Array
	for _, f := range s.Fields {
		if f.Unsent() {
			out = append(out, array.MakeArrayOfNull(memory.DefaultAllocator, schema.ArrowType(f.Type), rows))
		}
	}
	return out
}

// stepOf is how many rows of a batch are asked for at once.
func stepOf(b *change.Batch) int {
	each := change.RecordBytes(b.Record)/max(b.Rows(), 1) + 1
	return int(min(max(bytesMax/each, 1), rowsMax))
}

// filled are rows [from, to) of a batch with their computed columns, which come in runs.
func filled(b *change.Batch, from, to int, places []int, runs [][]arrow.Array) (*change.Batch, error) {
	rec := b.Record.NewSlice(int64(from), int64(to))
	defer rec.Release()
	columns := slices.Clone(rec.Columns())
	var made []arrow.Array
	defer func() { release(made) }()
	for n, at := range places {
		parts := make([]arrow.Array, len(runs))
		for i, r := range runs {
			parts[i] = r[n]
		}
		whole, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		made = append(made, whole)
		columns[at] = whole
	}
	part := *b
	part.Record = array.NewRecordBatch(rec.Schema(), columns, rec.NumRows())
	part.Computes, part.Truncate = false, b.Truncate && from == 0
	part.Recount()
	return &part, nil
}

func release(all []arrow.Array) {
	for _, a := range all {
		a.Release()
	}
}

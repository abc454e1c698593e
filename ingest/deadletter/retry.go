package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// RefusedError says that a row still cannot be taken in. Reason is a clause.
type RefusedError struct{ Reason string }

// Error is the reason.
func (e *RefusedError) Error() string { return e.Reason }

// Retry applies open letters again. No stream of the pipeline runs meanwhile, and its log
// is open.
type Retry struct {
	Catalog  *catalog.Catalog
	Pipeline change.PipelineID
	// Decode appends the values of a row, by the names of s, each to its column; a value
	// that is not in row was never sent. A *RefusedError says that the row stays a letter.
	Decode func(s *schema.Table, row map[string]*string, columns []array.Builder) error
	// Append makes a group durable, with what it says of letters.
	Append func(ctx context.Context, batches []*change.Batch, letters *Records) error
	// Before is of before the stream ended, for a deliberate bug; nil: none.
	Before *catalog.Snapshot
	// Only are the letters to try, by their ids; nil: all.
	Only map[uint64]bool
	// Tell is told of each table that is done, and of letters that stay.
	Tell func(message string)
}

// Result counts what became of the letters that were asked for.
type Result struct {
	Retried int64
	// Superseded are those that a later change has made obsolete, or a copy of their table.
	Superseded int64
	Failing    int64 // that stay open
}

const (
	// retryRows and retryBytes bound a group.
	retryRows  = 10_000
	retryBytes = 4 << 20
	// toldMost is how many letters that stay are told of.
	toldMost = 10
)

// Run applies them, table by table in the order of their changes. A row goes in with the
// order token of its change, so that it is older than whatever came after; what has been
// superseded is left alone. Each group holds rows and the end of their letters: after a
// crash both are there, or none.
func (r *Retry) Run(ctx context.Context) (res Result, err error) {
	snap := r.Before
	if snap == nil || !mutant.On(mutant.LetterRetriedLate) {
		snap = r.Catalog.Snapshot()
		defer snap.Close()
	}
	for _, t := range snap.Tables(r.Pipeline) {
		letters, err := snap.DeadLetters(t.ID)
		if err != nil {
			return res, err
		}
		letters = slices.DeleteFunc(letters, func(l *catalog.DeadLetter) bool { return r.Only != nil && !r.Only[l.ID] })
		if err := r.table(ctx, t, letters, &res); err != nil {
			return res, fmt.Errorf("retry dead letters of %s.%s: %w", t.Schema, t.Name, err)
		}
	}
	return res, nil
}

// table retries the letters of one table.
func (r *Retry) table(ctx context.Context, t *catalog.Table, letters []*catalog.DeadLetter, res *Result) error {
	before := *res
	g := &retryGroup{table: t}
	for _, l := range letters {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		switch l.State {
		case catalog.DeadLetterSuperseded, catalog.DeadLetterDiscarded:
			res.Superseded++
			continue
		case catalog.DeadLetterRetried:
			continue
		}
		err := r.decode(t, l)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused):
			res.Failing++
			if res.Failing <= toldMost {
				r.Tell(fmt.Sprintf("dead letter %d of %s.%s stays: %s", l.ID, t.Schema, t.Name, refused.Reason))
			}
			continue
		case err != nil:
			return err
		}
		g.letters, g.bytes = append(g.letters, l), g.bytes+len(l.Row)
		if len(g.letters) >= retryRows || g.bytes >= retryBytes {
			if err := r.append(ctx, g, res); err != nil {
				return err
			}
		}
	}
	if err := r.append(ctx, g, res); err != nil {
		return err
	}
	switch n := res.Retried - before.Retried; {
	case n == 1:
		r.Tell(fmt.Sprintf("one dead letter of %s.%s is retried", t.Schema, t.Name))
	case n > 1:
		r.Tell(fmt.Sprintf("%d dead letters of %s.%s are retried", n, t.Schema, t.Name))
	}
	return nil
}

// decode says whether a letter's row can be taken in now.
func (r *Retry) decode(t *catalog.Table, l *catalog.DeadLetter) error {
	if t.State != catalog.TableReady && t.State != catalog.TableStopped {
		return &RefusedError{"the table is being copied; try again when it is ready"}
	}
	b := change.NewBuilder(memory.DefaultAllocator, t.ID, t.Current.Version, t.Current.Arrow())
	defer b.Release()
	return r.add(b, t, l)
}

// add adds a letter's row to a builder.
func (r *Retry) add(b *change.Builder, t *catalog.Table, l *catalog.DeadLetter) error {
	switch {
	case l.Row == "":
		return &RefusedError{"its row was not kept, being too large, or not sent whole; change it at the source, or RESYNC the table"}
	case l.Doubtful:
		return &RefusedError{"it may have changed while it was copied, in a transaction that was open for long; change it at the source, or RESYNC the table"}
	case l.Code == CodeEncoding:
		return &RefusedError{"its text is not UTF-8, and was kept as far as it is"}
	}
	then, ok := version(t, l.SchemaVersion)
	if !ok {
		return &RefusedError{fmt.Sprintf("schema version %d, which its row has, is not known any more", l.SchemaVersion)}
	}
	row, err := ParseRow(l.Row)
	if err != nil {
		return err
	}
	now := make(map[string]*string, len(row))
	for _, f := range t.Current.Fields {
		old, ok := then.Field(f.ID)
		if !ok {
			now[f.Name] = nil // of a later version: see build
			continue
		}
		text, sent := row[old.Name]
		if !sent {
			return &RefusedError{fmt.Sprintf("column %s did not change and was not sent; RESYNC the table", quote.Name(f.Name))}
		}
		now[f.Name] = text
	}
	op := change.Update // whatever the key has goes
	if !t.Current.HasKey() {
		op = change.Insert
	}
	b.Add(op, l.Token, l.Ordinal)
	columns := make([]array.Builder, len(t.Current.Fields))
	for i := range columns {
		columns[i] = b.Column(i)
	}
	return r.Decode(t.Current, now, columns)
}

func version(t *catalog.Table, n uint32) (*schema.Table, bool) {
	for _, v := range t.Versions {
		if v.Version == n {
			return v, true
		}
	}
	return nil, false
}

// retryGroup are letters that are applied together.
type retryGroup struct {
	table   *catalog.Table
	letters []*catalog.DeadLetter
	bytes   int
}

// append makes a group durable and empties it.
func (r *Retry) append(ctx context.Context, g *retryGroup, res *Result) error {
	if len(g.letters) == 0 {
		return nil
	}
	batches, err := r.build(g)
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	if err != nil {
		return err
	}
	closed := &Records{}
	for _, l := range g.letters {
		closed.Closed = append(closed.Closed, Closed{Table: g.table.ID, Ref: l.DeadLetterRef, State: catalog.DeadLetterRetried})
	}
	if mutant.On(mutant.LetterClosedFirst) {
		if err := r.Append(ctx, nil, closed); err != nil {
			return err
		}
		closed = &Records{}
	}
	if err := r.Append(ctx, batches, closed); err != nil {
		return err
	}
	res.Retried += int64(len(g.letters))
	g.letters, g.bytes = nil, 0
	return nil
}

// build makes batches of letters, one for each run of one schema version.
func (r *Retry) build(g *retryGroup) (batches []*change.Batch, err error) {
	t := g.table
	for rest := g.letters; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(l *catalog.DeadLetter) bool { return l.SchemaVersion != rest[0].SchemaVersion })
		if n < 0 {
			n = len(rest)
		}
		b := change.NewBuilder(memory.DefaultAllocator, t.ID, t.Current.Version, t.Current.Arrow())
		for _, l := range rest[:n] {
			if err = r.add(b, t, l); err != nil {
				break
			}
		}
		if err != nil {
			b.Release()
			return batches, err
		}
		batch := b.Batch()
		b.Release()
		batches = append(batches, batch)
		then, _ := version(t, rest[0].SchemaVersion)
		if err := fillInitial(batch, then, t.Current); err != nil {
			return batches, err
		}
		rest = rest[n:]
	}
	return batches, nil
}

// fillInitial gives rows of an older version what such rows have in columns that came
// later.
func fillInitial(b *change.Batch, then, now *schema.Table) error {
	columns := slices.Clone(b.Record.Columns())
	var made []arrow.Array
	defer func() {
		for _, a := range made {
			a.Release()
		}
	}()
	for i, f := range now.Fields {
		if _, ok := then.Field(f.ID); ok || f.Initial == nil {
			continue
		}
		a, err := schema.InitialColumn(f, int(b.Rows()))
		if err != nil {
			return fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		made = append(made, a)
		columns[change.SystemColumns+i] = a
	}
	if len(made) == 0 {
		return nil
	}
	rec := array.NewRecordBatch(b.Record.Schema(), columns, b.Rows())
	b.Record.Release()
	b.Record = rec
	return nil
}

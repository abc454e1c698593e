package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// RefusedError says that a row still cannot be taken in. Reason is a clause; Hint is what
// helps, sentences, "" for what does with a value as its letter's code says.
type RefusedError struct{ Reason, Hint string }

func again(reason string) *RefusedError { return &RefusedError{Reason: reason, Hint: HintAgain} }

// Error is the reason.
func (e *RefusedError) Error() string { return e.Reason }

// HintAgain is what helps where the letter itself has not enough: a row that is written again at
// the source comes again, and supersedes it; a copy has all rows as they are there.
const HintAgain = "UPDATE the row at the source, or copy its table anew: ALTER PIPELINE … RESYNC TABLE …;"

// What helps with others.
const (
	hintText = "Correct the text at the source, where raw_row says which bytes it has, as \\x…; or leave the column out: " +
		"ALTER PIPELINE … RESYNC TABLE … EXCEPT (COLUMN);"
	hintRange = "Say what becomes of such values, ALTER PIPELINE … SET (out_of_range = 'null'); and run RETRY DEAD LETTERS again; " +
		"or keep them as text: ALTER PIPELINE … RESYNC TABLE … (*, COLUMN AS text);"
	hintArray = "Keep the column as text: ALTER PIPELINE … RESYNC TABLE … (*, COLUMN AS text);"
	hintLater = "Run RETRY DEAD LETTERS again when pg_stat_pipeline_table has the table as ready."
)

// hint is what helps with a letter.
func (e *RefusedError) hint(l *catalog.DeadLetter) string {
	column := "…"
	if l.Column != "" {
		column = quote.NameIfNeeded(l.Column)
	}
	return strings.ReplaceAll(cmp.Or(e.Hint, hintOf(l.Code)), "COLUMN", column)
}

// hintOf is what helps with a value that was refused with a code; COLUMN is its column's name.
func hintOf(code string) string {
	switch code {
	case CodeOutOfRange, CodeDateTime:
		return hintRange
	case CodeArray:
		return hintArray
	case CodeEncoding, CodeNoUTF8:
		return hintText
	}
	return HintAgain
}

// Retry applies open letters again. No stream of the pipeline runs meanwhile, and its log
// is open.
type Retry struct {
	Catalog  *catalog.Catalog
	Pipeline change.PipelineID
	// Decode appends the values of a row, by the names of s, each to its column; a value
	// that is not in row was never sent. A *RefusedError says that the row stays a letter.
	Decode func(s *schema.Table, row map[string]*string, columns []array.Builder) error
	// Fill gives rows the values that their updates left out, of the rows before them, which
	// the table has; the batches stay the caller's, those returned are, too. A *RefusedError
	// says that one is not known. nil: such letters stay.
	Fill func(ctx context.Context, t *catalog.Table, batches []*change.Batch) ([]*change.Batch, error)
	// Compute gives the columns of a batch that the source computes and does not send
	// (change.Batch.Computes), and wraps *RefusedError when they cannot be taken in.
	Compute func(ctx context.Context, t *catalog.Table, b *change.Batch) error
	// Append makes a group durable, with what it says of letters.
	Append func(ctx context.Context, batches []*change.Batch, letters *Records) error
	// Before is of before the stream ended, for a deliberate bug; nil: none.
	Before *catalog.Snapshot
	// Only are the letters to try, by their ids; nil: all.
	Only map[uint64]bool
	// Tell is told of each table that is done, and of letters that stay: why, with the
	// letter's code, and what helps.
	Tell func(message string)

	name string // the pipeline's
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
	p, err := snap.PipelineByID(r.Pipeline)
	if err != nil {
		return res, err
	}
	r.name = p.Name
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
		partly, err := r.decode(t, l)
		partly = partly || t.Current.Computes()
		if err == nil && partly {
			err = r.fill(ctx, t, l, res)
		}
		var refused *RefusedError
		switch {
		case errors.As(err, &refused):
			res.Failing++
			if res.Failing <= toldMost {
				r.Tell(fmt.Sprintf("dead letter %d of %s.%s stays (%s): %s. %s", l.ID, t.Schema, t.Name,
					l.Code, refused.Reason, t.Exact(refused.hint(l), r.name)))
			}
			continue
		case err != nil:
			return err
		}
		if partly {
			continue
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

// fill applies one letter whose update left values out, or of a table with columns that the
// source computes. A letter that is open is newer than
// what the table has of its key, and nothing has come between them.
func (r *Retry) fill(ctx context.Context, t *catalog.Table, l *catalog.DeadLetter, res *Result) error {
	whole, err := r.build(t, []*catalog.DeadLetter{l})
	defer func() { release(whole) }()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(whole, func(b *change.Batch) bool { return len(b.Unchanged) > 0 }) {
		if r.Fill == nil {
			return again("values that did not change were not sent")
		}
		batches := whole
		defer release(batches)
		if whole, err = r.Fill(ctx, t, batches); err != nil {
			return err
		}
	}
	for _, b := range whole {
		if !t.Current.Computes() {
			break
		}
		if err := r.Compute(ctx, t, b); err != nil {
			return err
		}
	}
	return r.appendAll(ctx, t, whole, []*catalog.DeadLetter{l}, res)
}

func release(batches []*change.Batch) {
	for _, b := range batches {
		b.Release()
	}
}

// decode says whether a letter's row can be taken in now; partly, that values of it are to be
// filled in.
func (r *Retry) decode(t *catalog.Table, l *catalog.DeadLetter) (partly bool, err error) {
	if t.State != catalog.TableReady && t.State != catalog.TableStopped {
		return false, &RefusedError{Reason: "the table is being copied", Hint: hintLater}
	}
	b := change.NewBuilder(memory.DefaultAllocator, t.ID, t.Current.Version, t.Current.Arrow())
	defer b.Release()
	left, err := r.add(b, t, l)
	return len(left) > 0, err
}

// add adds a letter's row to a builder; left are the columns whose values are to be filled
// in, null meanwhile.
func (r *Retry) add(b *change.Builder, t *catalog.Table, l *catalog.DeadLetter) (left []int, err error) {
	switch {
	case l.Row == "":
		return nil, again(fmt.Sprintf("its row was not kept: it is longer than %d MiB, or there was no room for it, or it was not sent whole", RowBytesMax>>20))
	case l.Doubtful:
		return nil, again("it may have changed while it was copied, in a transaction that was open for long")
	case l.Code == CodeEncoding:
		return nil, &RefusedError{Reason: "its text is not UTF-8", Hint: hintText}
	case l.Code == CodeNoUTF8:
		return nil, &RefusedError{Reason: "its text has no equivalent in UTF-8", Hint: hintText}
	}
	then, ok := version(t, l.SchemaVersion)
	if !ok {
		return nil, again(fmt.Sprintf("schema version %d, which its row has, is not known any more", l.SchemaVersion))
	}
	row, err := ParseRow(l.Row)
	if err != nil {
		return nil, err
	}
	now := make(map[string]*string, len(row))
	for i, f := range t.Current.Fields {
		if f.Unsent() {
			continue
		}
		old, ok := then.Field(f.ID)
		if !ok {
			now[f.Name] = nil // of a later version: see build
			continue
		}
		text, sent := row[old.Name]
		if !sent && l.Op == change.Update && t.Current.HasKey() {
			left = append(left, i)
		} else if !sent {
			return nil, again(fmt.Sprintf("column %s did not change and was not sent", quote.Name(f.Name)))
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
	return left, r.Decode(t.Current, now, columns)
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
	batches, err := r.build(g.table, g.letters)
	defer release(batches)
	if err != nil {
		return err
	}
	if err := r.appendAll(ctx, g.table, batches, g.letters, res); err != nil {
		return err
	}
	g.letters, g.bytes = nil, 0
	return nil
}

// appendAll makes rows durable, with the end of their letters.
func (r *Retry) appendAll(ctx context.Context, t *catalog.Table, batches []*change.Batch, letters []*catalog.DeadLetter, res *Result) error {
	closed := &Records{}
	for _, l := range letters {
		closed.Closed = append(closed.Closed, Closed{Table: t.ID, Ref: l.DeadLetterRef, State: catalog.DeadLetterRetried})
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
	res.Retried += int64(len(letters))
	return nil
}

// build makes batches of letters, one for each run of one schema version.
func (r *Retry) build(t *catalog.Table, letters []*catalog.DeadLetter) (batches []*change.Batch, err error) {
	for rest := letters; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(l *catalog.DeadLetter) bool { return l.SchemaVersion != rest[0].SchemaVersion })
		if n < 0 {
			n = len(rest)
		}
		b := change.NewBuilder(memory.DefaultAllocator, t.ID, t.Current.Version, t.Current.Arrow())
		var cells []change.Unchanged
		for i, l := range rest[:n] {
			left, addErr := r.add(b, t, l)
			if err = addErr; err != nil {
				break
			}
			for _, column := range left {
				cells = append(cells, change.Unchanged{Row: int32(i), Column: int32(column)})
			}
		}
		if err != nil {
			b.Release()
			return batches, err
		}
		batch := b.Batch()
		b.Release()
		batch.Unchanged = cells
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

package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Refuser is what a Sink can do beside taking changes in: set them aside. A source that
// finds it uses it instead of stopping a table for a value. Calls are as those of Sink,
// within a transaction.
type Refuser interface {
	// OpenLetters are the letters of a table that are open, nil when there are never any.
	// While it has Any, Passed must be told of every change.
	OpenLetters(t change.TableID) *deadletter.Table
	// Refuse takes the row that was begun last out of the table's builder, which must have
	// a value in each column, and makes it a dead letter. A delete takes the letters of its
	// key away, for nothing else here can have that key; without a key it has the whole row,
	// and takes away one letter of an equal row, which may come with the table's copy; when
	// none can, the table stops. With on_error = stop, or when the table has too many,
	// the table stops, as StopTable does, and the error is ErrTableStopped.
	Refuse(t change.TableID, r deadletter.Refused) error
	// Passed says that a change was added which leaves nothing of what the key had before.
	// A table of which one transaction supersedes too many letters stops, as with Refuse.
	Passed(t change.TableID, key string) error
	// PassedRow says that the row begun last is the delete of a whole row, of a table without
	// a key. If a letter has that row, set aside when it could not be taken in, the letter is
	// taken away instead.
	PassedRow(t change.TableID, row string) error
}

// CopyRefuser is a Backfill that does not fail for a row that cannot be taken in.
type CopyRefuser interface {
	// OnRefused is told what to do with such rows, before the first Read.
	OnRefused(to CopyRefusals)
}

// CopyRefusals takes the rows that Read refuses, of the chunk that is being read. Safe for
// concurrent use.
type CopyRefusals interface {
	// Refused sets a row aside; an error ends Read. version is the schema version of its
	// columns. Of a table with a key, the source then looks whether the row is still what
	// was read.
	Refused(t SourceTable, chunk string, version uint32, r deadletter.Refused) error
	// Changed says that it no longer is: what it became is in the stream.
	Changed(t SourceTable, chunk string, key string)
	// Doubtful says that the source could not tell: the letter cannot be retried.
	Doubtful(t SourceTable, chunk string, key string)
}

var _ Refuser = (*batcher)(nil)

// letterRecord is what happened to letters of a table in a transaction of a group.
type letterRecord struct {
	table  change.TableID
	txn    uint64
	added  *catalog.DeadLetter
	closed []catalog.DeadLetterRef
	undo   func()
}

// OpenLetters implements Refuser.
func (b *batcher) OpenLetters(id change.TableID) *deadletter.Table { return b.letters.Table(id) }

// Refuse implements Refuser.
func (b *batcher) Refuse(id change.TableID, r deadletter.Refused) error {
	t, ok := b.tables[id]
	if !ok {
		return errTable(ErrUnknownTable, id)
	}
	if t.stopped {
		return errTable(ErrTableStopped, id)
	}
	open := b.letters.Table(id)
	if b.onErrorStop || open == nil {
		return b.stopFor(id, r.Reason, r.Hint)
	}
	t.drop()
	if r.Op == change.Delete && r.Key == "" {
		closes, undo := open.PassRow(r.Row, t.schema)
		if len(closes) == 0 && open.MayOwe(r.Row) && b.letterBytes < deadletter.GroupBytesMax {
			b.owing = append(b.owing, owing{table: id, row: r.Row, schema: t.schema})
			b.letterBytes += int64(len(r.Row)) + owingBytes
			return nil
		}
		if len(closes) == 0 {
			return b.stopFor(id, "a row was deleted that cannot be found, since it cannot be taken in: "+r.Reason, hintResync)
		}
		b.closeLetters(id, closes, undo)
		return nil
	}
	if r.Op == change.Delete {
		return b.Passed(id, r.Key)
	}
	if full := open.Full(); full != "" {
		return b.stopFor(id, full+"; the last: "+r.Reason, hintLetters)
	}
	l := open.Letter(&r, t.schema.Version, false, 0)
	l.Position = b.mu.last // open: ours
	l.FirstSeen = b.clock.Now().UTC()
	size, err := open.Fit(l, deadletter.GroupBytesMax-b.letterBytes)
	if err != nil {
		return errTable(err, id)
	}
	if b.letterBytes += size; b.letterBytes > deadletter.GroupBytesMax {
		return b.stopFor(id, fmt.Sprintf("one transaction has more than %d MiB of rows that cannot be taken in; the last: %s",
			deadletter.GroupBytesMax>>20, r.Reason), hintLetters)
	}
	closes, undo := open.Add(l)
	b.mu.filling.letters = append(b.mu.filling.letters, letterRecord{
		table: id, txn: b.txn, added: l, closed: closes, undo: undo,
	})
	return nil
}

// owing is a row of a table without a key that the open transaction has deleted and that no
// letter had: the copy is yet to come to it, or sets it aside right now.
type owing struct {
	table  change.TableID
	row    string
	schema *schema.Table // whose columns row has
	// truncated says that it is all rows.
	truncated bool
}

// owingBytes is what one of them has in memory but for its row.
const owingBytes = 64

// pay closes the letters of rows that are owing, now that their transaction is whole, with
// its commit at at.
func (b *batcher) pay(at change.Position) {
	for _, o := range b.owing {
		var closes []catalog.DeadLetterRef
		var undo func()
		if o.truncated {
			if closes, undo = b.letters.Table(o.table).Truncated(at); undo == nil {
				continue
			}
		} else {
			closes, undo = b.letters.Table(o.table).PassRowOrOwe(o.row, o.schema, at)
		}
		if len(closes) == 0 { // of no interest to the log
			b.mu.filling.letters = append(b.mu.filling.letters, letterRecord{table: o.table, txn: b.txn, undo: undo})
			continue
		}
		b.closeLetters(o.table, closes, undo)
	}
	b.owing = nil // they may be many
}

// stopFor stops a table and says so.
func (b *batcher) stopFor(id change.TableID, reason, hint string) error {
	if err := b.StopTable(id, &TableError{Reason: reason, Hint: hint}); err != nil {
		return err
	}
	return errTable(ErrTableStopped, id)
}

const hintLetters = "See skippr.dead_letters; with out_of_range = 'text', or AS text for a column, RESYNC TABLE takes all values in."

// Passed implements Refuser.
func (b *batcher) Passed(id change.TableID, key string) error {
	closes, undo := b.letters.Table(id).Pass(key)
	b.closeLetters(id, closes, undo)
	if b.letterBytes <= deadletter.GroupBytesMax {
		return nil
	}
	return b.stopFor(id, "one transaction supersedes more of its dead letters than a group can name", hintResync)
}

// PassedRow implements Refuser.
func (b *batcher) PassedRow(id change.TableID, row string) error {
	t, ok := b.tables[id]
	if !ok {
		return errTable(ErrUnknownTable, id)
	}
	if closes, undo := b.letters.Table(id).PassRow(row, t.schema); len(closes) > 0 {
		t.drop()
		b.closeLetters(id, closes, undo)
	}
	return nil
}

// closeLetters notes that the open transaction has superseded letters.
func (b *batcher) closeLetters(id change.TableID, closes []catalog.DeadLetterRef, undo func()) {
	if len(closes) == 0 {
		return
	}
	b.letterBytes += deadletter.ClosedSize(len(closes))
	b.mu.filling.letters = append(b.mu.filling.letters, letterRecord{
		table: id, txn: b.txn, closed: closes, undo: undo,
	})
}

// takeLettersLocked takes back what the open transaction did with letters: of one table,
// or of all with 0.
func (b *batcher) takeLettersLocked(id change.TableID) {
	all := b.mu.filling.letters
	kept := all[:0]
	for i := len(all) - 1; i >= 0; i-- { // the last first
		if r := &all[i]; r.txn == b.txn && (id == 0 || r.table == id) {
			r.undo()
		}
	}
	for _, r := range all {
		if r.txn != b.txn || id != 0 && r.table != id {
			kept = append(kept, r)
		}
	}
	b.mu.filling.letters = kept
}

// takeLetters takes back what was done with letters and is not durable: by g, and by all that
// came after it, the last first. The stream and the appender have ended.
func (b *batcher) takeLetters(g *group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(g.letters)
	for _, o := range b.mu.sealed {
		all = append(all, o.letters...)
	}
	for _, r := range slices.Backward(append(all, b.mu.filling.letters...)) {
		r.undo()
	}
	b.mu.filling.letters = nil
	for _, o := range b.mu.sealed {
		o.letters = nil
	}
}

// splitLetters are those of transactions before the open one, and its own.
func splitLetters(all []letterRecord, txn uint64) (before, within []letterRecord) {
	for _, r := range all {
		if r.txn == txn {
			within = append(within, r)
		} else {
			before = append(before, r)
		}
	}
	return before, within
}

// sealLetters are those that go with a group: its own.
func (b *batcher) sealLetters(own []letterRecord) []letterRecord {
	if mutant.On(mutant.LetterLate) {
		own, b.lateLetters = b.lateLetters, own
	}
	return own
}

// letterRecords is what a group says of letters, nil for nothing.
func letterRecords(all []letterRecord) *deadletter.Records {
	if len(all) == 0 {
		return nil
	}
	r := &deadletter.Records{}
	for i := range all {
		if all[i].added != nil {
			r.Added = append(r.Added, all[i].added)
		}
		r.Close(all[i].table, all[i].closed, catalog.DeadLetterSuperseded)
	}
	return r
}

// drop takes the row that was begun last out of the batch being built.
func (t *sinkTable) drop() {
	rows := t.builder.Rows() - 1
	if rows < 0 {
		return
	}
	t.doneBytes += t.size.bytes(rows)
	b := t.builder.Batch()
	if rows == 0 && !b.Truncate {
		b.Release()
		return
	}
	t.done = append(t.done, head(b, rows))
}

// Redecoder is a Source that reads rows which were kept as text.
type Redecoder interface {
	// Redecode appends the values of a row, in the source's text and by their names, each
	// to its column. It wraps *deadletter.RefusedError when one cannot be taken in, and
	// may be called before the source has connected.
	Redecode(s *schema.Table, row map[string]*string, columns []array.Builder) error
}

// RetryDeadLetters applies open dead letters of a pipeline again; only are their ids, nil
// for all. The pipeline stands still meanwhile, so that nothing overtakes them.
func (s *Supervisor) RetryDeadLetters(ctx context.Context, name string, only map[uint64]bool, tell func(string),
) (res deadletter.Result, err error) {
	before := s.deps.Catalog.Snapshot() // see deadletter.Retry.Before
	defer before.Close()
	err = s.still(ctx, name, func(p *catalog.Pipeline, h *hosted) error {
		if err := h.openLog(ctx); err != nil {
			return err
		}
		snap := s.deps.Catalog.Snapshot()
		c, err := snap.Connection(p.Connection)
		snap.Close()
		if err != nil {
			return err
		}
		source, err := newSource(ctx, s.deps, c, p, "")
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }() // nothing is pending on its connections
		decoder, ok := source.(Redecoder)
		if !ok {
			return nil // it never refuses a row
		}
		r := &deadletter.Retry{
			Catalog: s.deps.Catalog, Pipeline: p.ID, Decode: decoder.Redecode, Only: only, Tell: tell, Append: h.appendLetters,
			Before: before, Fill: s.fillLetters,
		}
		r.Compute = lettersComputer(source)
		res, err = r.Run(ctx)
		return err
	})
	return res, err
}

// fillLetters gives retried rows the values that their updates left out: those that the
// table has.
func (s *Supervisor) fillLetters(ctx context.Context, t *catalog.Table, batches []*change.Batch) ([]*change.Batch, error) {
	if s.deps.Rows == nil {
		return nil, &deadletter.RefusedError{Reason: "values that did not change were not sent", Hint: deadletter.HintAgain}
	}
	table := func(change.TableID) (*fill.Table, error) {
		return &fill.Table{Exact: true, Version: func(n uint32) *schema.Table {
			for _, v := range append(slices.Clone(t.Versions), t.Current) {
				if v.Version == n {
					return v
				}
			}
			return nil
		}}, nil
	}
	f := fill.New(s.deps.Rows, table, &fill.Sizes{}, batches, false)
	defer f.Close()
	filled, more, err := f.Next(ctx)
	var unknown *fill.UnknownError
	switch {
	case errors.As(err, &unknown):
		return nil, &deadletter.RefusedError{Reason: fmt.Sprintf(
			"column %s did not change and was not sent, and the row before is not here",
			quote.Name(unknown.Column)), Hint: deadletter.HintAgain}
	case err != nil:
		return nil, fmt.Errorf("look up values that an update left unchanged: %w", err)
	case more:
		return filled, errors.New("look up values that an update left unchanged: one row is several pieces")
	}
	return filled, nil
}

// appendLetters makes retried letters durable. Nothing else appends.
func (h *host) appendLetters(ctx context.Context, batches []*change.Batch, letters *deadletter.Records) error {
	state := &groupState{Letters: letters}
	encoded, err := state.encode()
	if err != nil {
		return err
	}
	h.mu.Lock()
	log := h.mu.log
	h.mu.Unlock()
	if log == nil {
		return wal.ErrClosed
	}
	_, err = log.Append(context.WithoutCancel(ctx), &change.Group{Batches: batches, State: encoded})
	if err != nil && !errors.Is(err, wal.ErrFull) {
		h.closeLog() // opening it reads what is durable
	}
	if err != nil {
		return fmt.Errorf("append retried dead letters: %w", err)
	}
	return nil
}

// loadLetters reads the open letters, which the session then keeps.
func (s *session) loadLetters() (*deadletter.Open, error) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	open, err := deadletter.Load(snap, s.pipeline.ID, deadletter.MostOf(s.pipeline.Options))
	if err != nil {
		return nil, err
	}
	s.refusals = &copyLetters{
		open: open, stop: onErrorStop(s.pipeline), chunks: map[chunkName]*chunkLetters{},
		now: func() time.Time { return s.deps.Clock.Now().UTC() },
	}
	return open, nil
}

// trimLetters forgets letters that are of no interest any more. No stream runs.
func trimLetters(txn *catalog.Txn, p change.PipelineID) error {
	for _, t := range txn.EveryTableOf(p) {
		if err := txn.TrimDeadLetters(t.ID, deadletter.ClosedKept); err != nil {
			return err
		}
	}
	return nil
}

// onErrorStop says whether a pipeline stops tables instead of setting changes aside.
func onErrorStop(p *catalog.Pipeline) bool { return p.Options["on_error"] == "stop" }

// copyLetters are the dead letters of the chunks that are being read. Safe for concurrent
// use.
type copyLetters struct {
	open *deadletter.Open
	stop bool // on_error = stop
	now  func() time.Time

	mu     sync.Mutex
	chunks map[chunkName]*chunkLetters
}

var _ CopyRefusals = (*copyLetters)(nil)

// chunkName names a chunk as the source knows it.
type chunkName struct {
	table uint32
	chunk string
}

// chunkLetters are those of one chunk, which become durable with the fact that it is done.
type chunkLetters struct {
	table *deadletter.Table
	added []*catalog.DeadLetter
	undos []func()
	// overtaken are those of rows that are another by now: they are superseded when they
	// come, and tell that the copy did not take such rows in.
	overtaken []*catalog.DeadLetter
	paid      []func() // what takes that back, if the chunk does not become durable
	// owedAt is the transaction that must be durable before: it deleted rows of overtaken.
	owedAt change.Position
	equal  map[string]int // rows that were there before, by content
	bytes  int64
}

// begin opens a chunk: what is refused of it belongs to the table.
func (c *copyLetters) begin(ch chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chunks[chunkName{ch.source.OID, ch.text}] = &chunkLetters{
		table: c.open.Table(ch.table.ID), equal: map[string]int{},
	}
}

// records are the letters of a chunk that is about to become durable.
func (c *copyLetters) records(ch chunk) *deadletter.Records {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.chunks[chunkName{ch.source.OID, ch.text}]
	if l == nil || len(l.added)+len(l.overtaken) == 0 {
		return nil
	}
	r := &deadletter.Records{Added: slices.Concat(l.added, l.overtaken)}
	over := l.overtaken
	if l.table.Gone() {
		over = r.Added
	}
	for _, o := range over {
		r.Closed = append(r.Closed, deadletter.Closed{Table: o.Table, Ref: o.DeadLetterRef, State: catalog.DeadLetterSuperseded})
	}
	return r
}

// owedAt is the transaction that must be durable before a chunk, "" for none.
func (c *copyLetters) owedAt(ch chunk) change.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.chunks[chunkName{ch.source.OID, ch.text}]
	switch {
	case l == nil:
		return ""
	case l.table.Gone():
		return l.table.OwedUntil()
	}
	return l.owedAt
}

// end closes a chunk. Letters that did not become durable are forgotten.
func (c *copyLetters) end(ch chunk, durable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := chunkName{ch.source.OID, ch.text}
	switch l := c.chunks[name]; {
	case l == nil:
	case durable:
		for _, letter := range l.added {
			l.table.Settle(letter)
		}
	default:
		for _, undo := range slices.Backward(slices.Concat(l.undos, l.paid)) {
			undo()
		}
	}
	delete(c.chunks, name)
}

// Refused implements CopyRefusals.
func (c *copyLetters) Refused(t SourceTable, chunk string, version uint32, r deadletter.Refused) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.chunks[chunkName{t.OID, chunk}]
	if c.stop || l == nil || l.table == nil {
		return &TableError{Reason: r.Reason, Hint: r.Hint}
	}
	if full := l.table.Full(); full != "" {
		return &TableError{Reason: full + "; the last: " + r.Reason, Hint: hintLetters}
	}
	if r.Key == "" {
		r.Chunk = chunk
	}
	content := r.Key + r.Row
	letter := l.table.Letter(&r, version, true, l.equal[content])
	letter.FirstSeen = c.now()
	l.equal[content]++
	size, err := l.table.Fit(letter, deadletter.GroupBytesMax-l.bytes-deadletter.ClosedSize(1))
	if err != nil {
		return err
	}
	if l.bytes += size + deadletter.ClosedSize(1); l.bytes > deadletter.GroupBytesMax {
		return &TableError{
			Reason: fmt.Sprintf("one piece of its copy has more than %d MiB of rows that cannot be taken in; the last: %s",
				deadletter.GroupBytesMax>>20, r.Reason),
			Hint: hintLetters,
		}
	}
	closes, undo := l.table.Add(letter)
	if slices.Contains(closes, letter.DeadLetterRef) {
		// The stream has a newer one, or has deleted it.
		l.overtaken, l.paid = append(l.overtaken, letter), append(l.paid, undo)
		if letter.Key == "" {
			l.owedAt = l.table.OwedUntil()
		}
		return nil
	}
	l.added, l.undos = append(l.added, letter), append(l.undos, undo)
	return nil
}

// Changed implements CopyRefusals.
func (c *copyLetters) Changed(t SourceTable, chunk, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.chunks[chunkName{t.OID, chunk}]
	if l == nil || mutant.On(mutant.CopyLetterKept) {
		return
	}
	for i := len(l.added) - 1; i >= 0; i-- {
		if l.added[i].Key == key {
			l.undos[i]()
			l.overtaken = append(l.overtaken, l.added[i])
			l.added, l.undos = slices.Delete(l.added, i, i+1), slices.Delete(l.undos, i, i+1)
		}
	}
}

// Doubtful implements CopyRefusals.
func (c *copyLetters) Doubtful(t SourceTable, chunk, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.chunks[chunkName{t.OID, chunk}]
	if l == nil {
		return
	}
	for _, letter := range l.added {
		if letter.Key == key {
			l.table.Doubt(letter)
		}
	}
}

// owes says whether rows of a table were deleted that neither its copy nor letters of it have
// brought so far.
func (c *copyLetters) owes(id change.TableID) bool { return c.open.Table(id).Owes() }

// owed says how many rows of a table whose copy has ended were deleted and never found.
func (c *copyLetters) owed(id change.TableID) int { return c.open.Table(id).Copied() }

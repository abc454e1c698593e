package ingest

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

// RowBytesMax bounds a row: with a part beside it, it stays below what the log takes in
// one group, 512 MiB.
const RowBytesMax = 400 << 20

const hintSmallerRow = "Make the row smaller at the source, then copy the table anew: ALTER PIPELINE … RESYNC TABLE …;"

func rowReason(limit int64) string {
	return fmt.Sprintf("a row has more than the %d MiB that can be made durable at once", limit>>20)
}

// Abort implements Sink.
func (b *batcher) Abort() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tables { // one may have had its changes in an earlier part
		t.discard(b.txn)
		b.mu.filling.schemas = withoutSchemas(b.mu.filling.schemas, t.id, b.txn)
	}
	b.takeLettersLocked(0)
	b.mu.filling.voids = b.mu.filling.voids || b.mu.parts > 0
	b.mu.open, b.mu.parts = false, 0
	signal(b.wake)
	return b.mu.err
}

// measure looks at the change that was added last. A table whose row is too large for
// the log stops.
func (b *batcher) measure() error {
	t := b.current
	if t == nil {
		return nil
	}
	b.current = nil
	now := t.now()
	row := now - t.seen
	t.seen = now
	b.openBytes += row
	if row <= b.rowMax || t.stopped {
		return nil
	}
	return b.StopTable(t.id, &TableError{Reason: rowReason(b.rowMax), Hint: hintSmallerRow})
}

// makeRoom hands over what the open transaction has so far when that is a part, and
// waits until the appender has taken it.
func (b *batcher) makeRoom() error {
	if err := b.measure(); err != nil {
		return err
	}
	if b.part == 0 || b.openBytes < b.part {
		return nil
	}
	if err := b.waitTaken(); err != nil { // Begin may have closed a group
		return err
	}
	b.sealPart()
	return b.waitTaken()
}

// sealPart closes what the open transaction has so far, and before its first part what
// came before it. Facts that the transaction brings about tables stay, to go with its
// commit.
func (b *batcher) sealPart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := &b.mu.filling
	part := &group{part: b.partID(), oldest: b.committed}
	if b.mu.parts == 0 {
		whole := b.splitLocked(part)
		if whole.txns > 0 || len(whole.stops) > 0 || whole.voids {
			b.mu.sealed = append(b.mu.sealed, whole)
		}
	} else {
		for _, t := range f.touched {
			part.batches = t.seal(part.batches)
		}
		f.touched = f.touched[:0]
	}
	part.known = slices.Clone(b.mu.filling.schemas)
	b.mu.sealed = append(b.mu.sealed, part)
	b.mu.parts++
	b.openBytes = 0
	b.mu.closed = b.clock.Now()
	signal(b.wake)
}

// splitLocked closes the group being filled and gives part what it has of the open
// transaction.
func (b *batcher) splitLocked(part *group) (whole *group) {
	f := &b.mu.filling
	var before, within []tableSchema
	for _, s := range f.schemas {
		if s.txn == b.txn {
			within = append(within, s)
		} else {
			before = append(before, s)
		}
	}
	letters, own := splitLetters(f.letters, b.txn)
	whole = &group{
		position: b.mu.last, txns: f.txns, oldest: f.oldest, newest: f.newest,
		stops: f.stops, schemas: before, letters: letters, completes: f.completes, voids: f.voids,
	}
	for _, t := range f.touched {
		whole.batches, part.batches = t.split(b.txn, whole.batches, part.batches)
	}
	*f = filling{touched: f.touched[:0], schemas: within, letters: own}
	return whole
}

// Adopt implements Holder.
func (b *batcher) Adopt(id change.TableID, s *schema.Table) error {
	t, ok := b.tables[id]
	if !ok {
		return errTable(ErrUnknownTable, id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.schema.Version != s.Version {
		t.evolve(s)
	}
	return b.mu.err
}

// Hold implements Holder.
func (b *batcher) Hold() (id string, parts int, err error) {
	if err := b.measure(); err != nil {
		return "", 0, err
	}
	if err := b.waitTaken(); err != nil { // Begin may have closed a group
		return "", 0, err
	}
	b.sealPart()
	for {
		b.mu.Lock()
		waits, parts, err := len(b.mu.sealed) > 0 || b.mu.inFlight, b.mu.parts, b.mu.err
		b.mu.Unlock()
		if err != nil || !waits {
			return b.partID(), parts, err
		}
		if err := b.tasks.Wait(b.ctx, 0, b.room); err != nil {
			return "", 0, err
		}
	}
}

// waitTaken waits until no closed group waits for the appender.
func (b *batcher) waitTaken() error {
	for {
		b.mu.Lock()
		waits, err := len(b.mu.sealed) > 0, b.mu.err
		b.mu.Unlock()
		if err != nil || !waits {
			return err
		}
		if err := b.tasks.Wait(b.ctx, 0, b.room); err != nil {
			return err
		}
	}
}

// partID names the open transaction.
func (b *batcher) partID() string { return fmt.Sprintf("%s-%d", b.session, b.txn) }

// split is seal for a group of which transaction txn goes elsewhere.
func (t *sinkTable) split(txn uint64, whole, part []*change.Batch) (w, p []*change.Batch) {
	if t.txn != txn {
		return t.seal(whole), part
	}
	begin := t.begin
	all := t.seal(nil)
	whole, all = append(whole, all[:begin.batches]...), all[begin.batches:]
	if begin.rows == 0 && !begin.truncate {
		return whole, append(part, all...)
	}
	first := all[0] // being built when the transaction began
	if first.Rows() > int64(begin.rows) {
		part = append(part, tail(first, begin.rows))
		head(first, begin.rows)
	}
	return append(whole, first), append(part, all[1:]...)
}

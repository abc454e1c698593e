package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
)

// target is a table of a stream.
type target struct {
	id      change.TableID
	after   int64
	version *Version
	places  []int
	stopped bool
	letters *deadletter.Table
	// uncomputed are its changes with computed values that are known to be refused.
	uncomputed map[compute.RowID]compute.Refusal
}

// Stream implements ingest.Source.
func (c *Conn) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	d := c.db
	if err := c.point("start stream"); err != nil {
		return err
	}
	number := d.slot.number
	if number == 0 {
		return errors.New("replication slot is gone")
	}
	if c.inUse() {
		return errInUse
	}
	// What lies below is forgotten: another host may have made the slot anew.
	if LSN(from) < d.slot.confirmed {
		return fmt.Errorf("replication slot is gone: this one was acknowledged up to %d, and only what precedes %d is durable here",
			d.slot.confirmed, LSN(from))
	}
	d.slot.active = c
	at := LSN(from)
	next := 0
	for next < len(d.items) && d.items[next].LSN <= at {
		next++
	}
	targets := map[uint32][]*target{} // two may follow one table
	for _, t := range tables {
		to := &target{id: t.ID, after: LSN(t.After), uncomputed: t.Uncomputed}
		if r, ok := sink.(ingest.Refuser); ok {
			to.letters = r.OpenLetters(t.ID)
		}
		targets[t.Source.OID] = append(targets[t.Source.OID], to)
	}
	idle := int64(0)
	for {
		c.tell()
		switch {
		case c.closed:
			return errors.New("connection was ended by the server")
		case number != d.slot.number:
			return errors.New("replication slot is gone")
		case next < len(d.items):
			it := d.items[next]
			next++
			if err := c.send(it, targets, sink); err != nil {
				return err
			}
		case idle != d.LSN:
			idle = d.LSN
			if err := sink.Idle(Position(idle)); err != nil {
				return err
			}
		}
		told := c.acked
		ready := func() bool {
			c.seen = d.now() // it answers keepalives while it waits
			return next < len(d.items) || idle != d.LSN || c.acked != told || number != d.slot.number
		}
		if err := c.hooks.Wait(ctx, ready); err != nil {
			return err
		}
		if err := c.point("stream"); err != nil {
			return err
		}
	}
}

// hugeEvery is after how many changes of a huge transaction others may go on.
const hugeEvery = 4

func (c *Conn) send(it item, targets map[uint32][]*target, sink ingest.Sink) error {
	d := c.db
	if err := sink.Begin(it.LSN, it.CommittedAt); err != nil {
		return err
	}
	ordinal := int32(0)
	for i := range it.Changes {
		if it.Huge && i%hugeEvery == hugeEvery-1 {
			if err := c.point("stream part"); err != nil {
				return err
			}
		}
		ch := &it.Changes[i]
		if since, ok := d.published[ch.Table.OID]; !ok || it.LSN <= since {
			continue
		}
		for _, t := range targets[ch.Table.OID] {
			if t.stopped || it.LSN <= t.after {
				continue
			}
			err := c.change(ch, t, it.LSN, &ordinal, sink)
			if errors.Is(err, ingest.ErrTableStopped) {
				t.stopped = true
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	if it.aborted {
		for _, both := range targets {
			for _, t := range both { // what it told of a table's columns goes with it
				t.version = nil
			}
		}
		return sink.Abort()
	}
	return sink.Commit(Position(it.LSN))
}

func (c *Conn) change(ch *Change, t *target, lsn int64, ordinal *int32, sink ingest.Sink) error {
	if ch.Truncate {
		return sink.Truncate(t.id)
	}
	if len(ch.Version.Key) == 0 && ch.Op != change.Insert && !ch.Version.WholeRow {
		t.stopped = true
		return sink.StopTable(t.id, &ingest.TableError{Reason: "it has no key, and a row was changed", Hint: "Give it a key, then RESUME."})
	}
	if err := t.evolve(ch, sink); err != nil {
		return err
	}
	b, err := sink.Builder(t.id)
	if err != nil {
		return err
	}
	moved := ch.Op == change.Update && keyOf(ch.Version, ch.Old) != keyOf(ch.Version, ch.New)
	kept := t.kept(ch)
	add := func(op change.Op, r Row) error {
		b.Add(op, lsn, *ordinal)
		*ordinal++
		if op == change.Delete {
			appendRow(b, t.places, r, t.unsent(ch.Version, b, nil))
			if ch.Version.WholeRow {
				return t.gone(c.db, sink, ch.Version, r, lsn, *ordinal-1)
			}
			return t.passed(sink, ch.Version, r)
		}
		appendRow(b, t.places, r, t.unsent(ch.Version, b, func(i int) bool {
			if !kept && slices.Contains(ch.Left, t.places[i]) {
				b.LeaveOut(i, moved)
				return true
			}
			return false
		}))
		if r2, ok := sink.(ingest.Refuser); ok && t.letters != nil && t.refuses(c.db, ch.Version, r, lsn, *ordinal-1) {
			return r2.Refuse(t.id, c.db.refusal(ch.Version, r, op, lsn, *ordinal-1))
		}
		return t.passed(sink, ch.Version, r)
	}
	switch {
	case ch.Version.WholeRow:
		var err error
		if ch.Old != nil {
			err = add(change.Delete, ch.Old)
		}
		if ch.New != nil && err == nil {
			err = add(change.Insert, ch.New)
		}
		return err
	case ch.Op == change.Delete:
		return add(change.Delete, keyOnly(ch.Version, ch.Old))
	case moved:
		if err := add(change.Delete, keyOnly(ch.Version, ch.Old)); err != nil {
			return err
		}
		return add(change.Insert, ch.New)
	}
	return add(ch.Op, ch.New)
}

// evolve tells of the columns of a change, if they are others than before.
func (t *target) evolve(ch *Change, sink ingest.Sink) error {
	if t.version == ch.Version {
		return nil
	}
	s, err := sink.Evolve(t.id, ingest.SchemaChange{
		Schema: ch.Table.Schema, Name: ch.Table.Name, Columns: columns(ch.Version), Key: ch.Version.Key,
	})
	if err != nil {
		return err
	}
	places, ok := placesOf(ch.Version, s)
	if !ok {
		return fmt.Errorf("table %s: version %d does not have the columns of %d", ch.Table.Name, s.Version, ch.Version.Number)
	}
	t.version, t.places = ch.Version, places
	return nil
}

// kept says that what a change left out is in the letter before it, which is as the row was.
func (t *target) kept(ch *Change) bool {
	if !t.letters.Any() || ch.Old == nil || len(ch.Version.Key) == 0 {
		return false
	}
	prior, open := t.letters.Prior(keyText(ch.Version, ch.Old))
	return open && !prior.Pending
}

func keyOnly(v *Version, r Row) Row {
	out := make(Row, len(r))
	for _, i := range v.KeyIndexes() {
		out[i] = r[i]
	}
	return out
}

// placesOf maps the fields of a schema to the columns of a version, which must be the same.
func placesOf(v *Version, s *schema.Table) ([]int, bool) {
	out := make([]int, len(s.Fields))
	for i, f := range s.Fields {
		out[i] = -1
		for j, c := range v.Columns {
			if c.AttNum == f.AttNum {
				out[i] = j
			}
		}
	}
	seen := 0
	for i, j := range out {
		if j >= 0 {
			if v.Columns[j].Type.Kind != s.Fields[i].Type.Kind {
				return nil, false
			}
			seen++
		}
	}
	return out, seen == len(v.Columns)
}

// copiedPlaces maps the fields of a schema to the columns that a copy reads: all that the
// schema has, by their names.
func copiedPlaces(v *Version, s *schema.Table) ([]int, bool) {
	out := make([]int, len(s.Fields))
	for i, f := range s.Fields {
		out[i] = -1
		for j, c := range v.Columns {
			if c.Name == f.Name && c.AttNum == f.AttNum && c.Type.Kind == f.Type.Kind {
				out[i] = j
			}
		}
		if out[i] < 0 {
			return nil, false
		}
	}
	return out, true
}

func newBuilder(s *schema.Table) *change.Builder {
	return change.NewBuilder(memory.DefaultAllocator, 0, s.Version, s.Arrow())
}

// appendRow appends a row's values to the fields at their places, but for those that left
// says are left out; nil: none.
func appendRow(b *change.Builder, places []int, r Row, left func(field int) bool) {
	for i, p := range places {
		if left != nil && left(i) {
			continue
		}
		col := b.Column(i)
		if p < 0 || r[p] == nil {
			col.AppendNull()
			continue
		}
		switch v := r[p].(type) {
		case bool:
			col.(*array.BooleanBuilder).Append(v)
		case int64:
			if b32, ok := col.(*array.Int32Builder); ok {
				b32.Append(int32(v))
				continue
			}
			col.(*array.Int64Builder).Append(v)
		case float64:
			if b32, ok := col.(*array.Float32Builder); ok {
				b32.Append(float32(v))
				continue
			}
			col.(*array.Float64Builder).Append(v)
		case string:
			col.(*array.StringBuilder).Append(v)
		case []byte:
			col.(*array.BinaryBuilder).Append(v)
		}
	}
}

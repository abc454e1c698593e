package own

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// target is a table as the stream writes it.
type target struct {
	after   int64 // the token up to which it has everything
	version uint32
}

// Stream delivers transactions as they are committed, until ctx ends.
func (s *source) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable, sink ingest.Sink) error {
	at, err := parsePosition(from)
	if err != nil {
		return err
	}
	s.tables = make(map[change.TableID]*schema.Table, len(tables))
	targets := make(map[change.TableID]target, len(tables))
	for _, t := range tables {
		after, err := parsePosition(t.After)
		if err != nil {
			return err
		}
		targets[t.ID], s.tables[t.ID] = target{after: after, version: t.Schema.Version}, t.Schema
	}
	s.store.resume(at)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if settled := s.store.deps.Settled; settled != nil { // what waits can be taken back until it is handed over
			if err := settled(ctx); err != nil {
				return fmt.Errorf("settle definitions: %w", err)
			}
		}
		e := s.store.next()
		if e == nil {
			if err := s.store.deps.Tasks.Wait(ctx, 0, s.store.wake); err != nil {
				return err
			}
			continue
		}
		if e.hold != nil {
			err = s.deliverHeld(ctx, e, targets, sink)
		} else {
			err = s.deliver(e, targets, sink)
		}
		if err != nil {
			return err
		}
	}
}

// deliver gives a transaction to the sink. One whose tables are not there any more is
// refused, and the stream goes on.
func (s *source) deliver(e *entry, targets map[change.TableID]target, sink ingest.Sink) error {
	if err := sink.Begin(e.token, s.store.deps.Clock.Now()); err != nil {
		return err
	}
	d := delivery{token: e.token, targets: targets, sink: sink}
	err := e.changes.Each(d.batch)
	switch {
	case err == nil:
		return sink.Commit(position(e.token))
	case !errors.Is(err, errRefused):
		return err
	}
	if err := sink.Abort(); err != nil {
		return err
	}
	s.store.refuse(e, err)
	return nil
}

// errRefused means that one transaction cannot be delivered, while others can.
var errRefused = errors.New("transaction cannot be committed")

// delivery is one transaction on its way into the sink.
type delivery struct {
	token   int64
	ordinal int32
	targets map[change.TableID]target
	sink    ingest.Sink
}

// batch delivers the changes of a table.
func (d *delivery) batch(b *change.Batch) error {
	t, ok := d.targets[b.Table]
	switch {
	case !ok:
		return fmt.Errorf("%w: table %d: %w", errRefused, b.Table, ErrTableGone)
	case d.token <= t.after:
		return nil // it has them
	case b.SchemaVersion != t.version:
		return fmt.Errorf("%w: table %d has schema version %d, its changes have %d: %w", errRefused, b.Table, t.version,
			b.SchemaVersion, ErrTableGone)
	}
	if b.Truncate {
		if err := d.sink.Truncate(b.Table); err != nil {
			return refused(err)
		}
	}
	if b.Rows() == 0 {
		return nil
	}
	return d.rows(b)
}

// rows appends the rows of a batch. The sink measures a row when it is asked for the
// builder again.
func (d *delivery) rows(b *change.Batch) error {
	ops, ok := b.Record.Column(0).(*array.Uint8)
	if !ok {
		return fmt.Errorf("changes of table %d have no operations", b.Table)
	}
	copies := make([]copyFunc, b.Record.NumCols()-change.SystemColumns)
	for i := range copies {
		f, err := copier(b.Record.Column(i + change.SystemColumns))
		if err != nil {
			return fmt.Errorf("column %s: %w", quote.Name(b.Record.ColumnName(i+change.SystemColumns)), err)
		}
		copies[i] = f
	}
	for row := range ops.Len() {
		builder, err := d.sink.Builder(b.Table)
		if err != nil {
			return refused(err)
		}
		builder.Add(change.Op(ops.Value(row)), d.token, d.ordinal)
		if d.ordinal < math.MaxInt32 {
			d.ordinal++
		}
		for i, f := range copies {
			f(builder.Column(i), row)
		}
	}
	return nil
}

// refused makes the loss of a table that of one transaction.
func refused(err error) error {
	if errors.Is(err, ingest.ErrTableStopped) || errors.Is(err, ingest.ErrUnknownTable) {
		return fmt.Errorf("%w: %w: %w", errRefused, ErrTableGone, err)
	}
	return err
}

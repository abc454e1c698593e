package generate

import (
	"context"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

const (
	// tick is how long a paced stream rests between bursts at least.
	tick = 5 * time.Millisecond
	// burst is how many transactions are made between looks at the context.
	burst = 256
)

// target is a table as the stream writes it.
type target struct {
	id    change.TableID
	after int64
	// columns maps the fields of the schema to the row's values.
	columns []int
	// also is another table that gets the same changes.
	also *target
}

// Stream makes transactions after from, at the configured rate, until ctx ends.
func (s *Source) Stream(ctx context.Context, from change.Position, tables []ingest.StreamTable,
	sink ingest.Sink,
) error {
	n, err := parsePosition(from)
	if err != nil {
		return err
	}
	if from == "" {
		n = s.start
	}
	targets, err := newTargets(tables)
	if err != nil {
		return err
	}
	first, begun := n, s.clock.Now()
	var changes []Change
	for {
		due := s.due(n, first, begun)
		for ; n < due; n++ {
			changes = s.shop.Transaction(changes[:0], n+1)
			if err := s.transaction(n+1, changes, targets, sink); err != nil {
				return err
			}
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		finished := s.cfg.Transactions > 0 && n >= s.cfg.Transactions
		if s.cfg.Rate == 0 && !finished {
			continue
		}
		if err := sink.Idle(position(n)); err != nil {
			return err
		}
		if finished {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if err := s.clock.Sleep(ctx, max(tick, time.Duration(float64(time.Second)/s.cfg.Rate))); err != nil {
			return err
		}
	}
}

// due is the transaction that the stream should have reached by now.
func (s *Source) due(n, first int64, begun time.Time) int64 {
	due := n + burst
	if s.cfg.Rate > 0 {
		due = min(due, first+int64(s.clock.Since(begun).Seconds()*s.cfg.Rate))
	}
	if s.cfg.Transactions > 0 {
		due = min(due, s.cfg.Transactions)
	}
	return due
}

func (s *Source) transaction(n int64, changes []Change, targets *[tableCount]*target, sink ingest.Sink) error {
	for old := s.newest.Load(); n > old && !s.newest.CompareAndSwap(old, n); old = s.newest.Load() {
	}
	if err := sink.Begin(n, s.clock.Now()); err != nil {
		return err
	}
	for i, c := range changes {
		for t := targets[c.Table]; t != nil; t = t.also {
			if n <= t.after {
				continue
			}
			b, err := sink.Builder(t.id)
			if err != nil {
				return err
			}
			if err := appendRow(b, c.Op, n, int32(i), c.Row, t.columns); err != nil {
				return fmt.Errorf("table %s: %w", c.Table, err)
			}
		}
	}
	return sink.Commit(position(n))
}

func newTargets(tables []ingest.StreamTable) (*[tableCount]*target, error) {
	var targets [tableCount]*target
	for _, st := range tables {
		t, columns, err := fields(st.Source, st.Schema)
		if err != nil {
			return nil, err
		}
		after, err := parsePosition(st.After)
		if err != nil {
			return nil, err
		}
		targets[t] = &target{id: st.ID, after: after, columns: columns, also: targets[t]}
	}
	return &targets, nil
}

func appendRow(b *change.Builder, op change.Op, token int64, ordinal int32, row Row, columns []int) error {
	b.Add(op, token, ordinal)
	for field, value := range columns {
		if err := appendValue(b.Column(field), row[value]); err != nil {
			return err
		}
	}
	return nil
}

package wal

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// reclaim is a call of Log.Reclaim on its way through the owner.
type reclaim struct {
	seqs  []segment.Seq
	reply chan reply
}

// reclaim asks the protocol whether the segments are sealed, and has them deleted in
// the background.
func (o *owner) reclaim(r *reclaim) {
	if o.store != nil {
		o.reclaimStore(r)
		return
	}
	machine, err := protocol.NewReclaim(r.seqs, o.writer.(*protocol.Writer).Unsealed())
	if err != nil || o.closing {
		if err == nil {
			err = fmt.Errorf("reclaim: %w", ErrClosed)
		}
		o.l.answerReclaim(r, err)
		return
	}
	o.submit(o.l.background, func(context.Context) protocol.Event {
		err := o.l.disk.reclaim(machine)
		for _, seq := range r.seqs {
			if err == nil {
				o.l.deps.Log.Info("segment reclaimed", env.KeySeq, uint64(seq))
			}
		}
		o.l.answerReclaim(r, err)
		return protocol.Settle{}
	})
}

func (d *disk) reclaim(machine *protocol.Reclaim) error {
	ev := protocol.Event(protocol.Start{})
	for {
		switch e := machine.Step(ev).(type) {
		case protocol.DeleteMarkers:
			ev = d.deleteMarkers(e)
		case protocol.RecycleBodies:
			ev = d.recycleBodies(e)
		case protocol.Finished:
			return nil
		case protocol.Refused:
			return fmt.Errorf("reclaim: %w", e.Err)
		}
	}
}

func sliceOf(seq segment.Seq, s *segment.Slice) Slice {
	return Slice{
		Ref: segment.SliceRef{Seq: seq, Start: s.Start}, Length: s.Length, Table: s.Table,
		SchemaVersion: s.SchemaVersion, Rows: s.Rows, Counts: s.Counts,
		Truncate: s.Truncate, Backfill: s.Backfill,
	}
}

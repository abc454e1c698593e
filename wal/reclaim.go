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
	w := o.writer.(*protocol.Writer)
	unsealed, next := w.Unsealed(), w.Tail()
	if o.closing {
		o.l.answerReclaim(r, fmt.Errorf("reclaim: %w", ErrClosed))
		return
	}
	o.submit(o.l.background, func(context.Context) protocol.Event {
		err := o.l.disk.reclaim(r.seqs, unsealed, next)
		for _, seq := range r.seqs {
			if err == nil {
				o.l.deps.Log.Info("segment reclaimed", env.KeySeq, uint64(seq))
			}
		}
		o.l.answerReclaim(r, err)
		return protocol.Settle{}
	})
}

func (d *disk) reclaim(seqs []segment.Seq, unsealed segment.Seq, next protocol.Tail) error {
	c := protocol.CheckpointAfter(d.checkpointNow(), d.segments(), seqs, next)
	machine, err := protocol.NewReclaim(seqs, unsealed, c)
	if err != nil {
		return err
	}
	ev := protocol.Event(protocol.Start{})
	for {
		switch e := machine.Step(ev).(type) {
		case protocol.WriteCheckpoint:
			ev = d.writeCheckpoint(e)
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

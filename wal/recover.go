package wal

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
)

// recoverLog runs a recovery of the directory to its end.
func recoverLog(ctx context.Context, d *disk, cfg Config, deps Deps) (protocol.Tail, error) {
	seq, end, err := deps.Publisher.Published(ctx, cfg.Pipeline)
	if err != nil {
		return protocol.Tail{}, fmt.Errorf("look up published groups: %w", err)
	}
	c, rebuild, err := d.findCheckpoint(seq, deps)
	if err != nil {
		return protocol.Tail{}, err
	}
	d.setCheckpoint(c)
	machine := protocol.NewRecovery(protocol.RecoveryConfig{
		Pipeline: cfg.Pipeline, Epoch: epochDisk, Published: seq, PublishedEnd: end,
		Checkpoint: c, Rebuild: rebuild,
	})
	published := 0
	ev := protocol.Event(protocol.Start{})
	for {
		if err := context.Cause(ctx); err != nil {
			return protocol.Tail{}, err
		}
		switch e := machine.Step(ev).(type) {
		case protocol.List:
			ev = d.list()
		case protocol.ReadMarker:
			ev = d.readMarker(e)
		case protocol.ReadBody:
			ev = d.readBody(e)
		case protocol.DeleteMarkers:
			ev = d.deleteMarkers(e)
		case protocol.RecycleBodies:
			ev = d.recycleBodies(e)
		case protocol.Publish:
			published += len(e.Groups)
			ev = protocol.Published{
				Err: deps.Publisher.Publish(ctx, cfg.Pipeline, committedGroups(e.Groups)),
			}
		case protocol.Seal:
			ev = d.seal(e)
		case protocol.Discard:
			ev = d.discard(e)
		case protocol.Recovered:
			count, bytes := d.live()
			deps.Log.Info("log recovered", env.KeySeq, uint64(e.Tail.Seq), env.KeyCount, count,
				env.KeyBytes, bytes, "published", published)
			return e.Tail, nil
		case protocol.Refused:
			return protocol.Tail{}, e.Err
		}
	}
}

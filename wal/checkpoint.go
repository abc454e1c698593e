package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

const checkpointName = "checkpoint"

// findCheckpoint reads the checkpoint. rebuild says that there is one and that the
// catalog has published nothing: it begins with what the log still has.
func (d *disk) findCheckpoint(published segment.Seq, deps Deps) (c segment.Checkpoint, rebuild bool, err error) {
	b, err := d.read(filepath.Join(d.cfg.Dir, checkpointName), segment.CheckpointBytesMax, ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err == nil {
		c, err = segment.ParseCheckpoint(b)
	}
	if err == nil && c.Pipeline != d.cfg.Pipeline {
		err = fmt.Errorf("of pipeline %d: %w", c.Pipeline, segment.ErrIdentity)
	}
	switch {
	case err != nil && published > 0:
		// The catalog knows all that is in it; the next reclaim writes it anew.
		deps.Log.Warn("checkpoint not read", env.KeyError, err)
		return segment.Checkpoint{}, false, nil
	case err != nil:
		return c, false, fmt.Errorf("read checkpoint: %w", err)
	case published > 0:
		return c, false, nil
	}
	return c, true, nil
}

func (d *disk) setCheckpoint(c segment.Checkpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.checkpoint = c
}

// checkpointNow is the checkpoint in force. What it has room for of a catalog's facts is
// not used: the catalog's backup has them.
func (d *disk) checkpointNow() segment.Checkpoint {
	d.mu.Lock()
	c := d.mu.checkpoint
	d.mu.Unlock()
	c.Epoch, c.Pipeline = d.epoch, d.cfg.Pipeline
	c.Facts, c.Position = nil, ""
	return c
}

// writeCheckpoint replaces the file, durably.
func (d *disk) writeCheckpoint(e protocol.WriteCheckpoint) protocol.CheckpointWritten {
	b, err := e.Checkpoint.Encode()
	if err == nil {
		err = ReplaceFile(d.fs, filepath.Join(d.cfg.Dir, checkpointName), b)
	}
	if err != nil {
		return protocol.CheckpointWritten{Err: err}
	}
	d.setCheckpoint(e.Checkpoint)
	return protocol.CheckpointWritten{}
}

func (d *disk) setHead(h segment.Header) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.heads[h.Seq] = protocol.LiveSegment{
		Seq: h.Seq, Epoch: h.Epoch, Group: h.FirstGroup, Previous: h.Previous,
	}
}

// segments are those that have a file, in order.
func (d *disk) segments() []protocol.LiveSegment {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]protocol.LiveSegment, 0, len(d.mu.heads))
	for _, s := range d.mu.heads {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b protocol.LiveSegment) int {
		if a.Seq < b.Seq {
			return -1
		}
		return 1
	})
	return out
}

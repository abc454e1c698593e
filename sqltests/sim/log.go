package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// openLog is a pipeline's log of a process, moved by tasks: one for each of its parts.
type openLog struct {
	p        *process
	pipeline change.PipelineID
	stepped  *wal.Stepped
	wake     map[wal.Part]chan struct{}
	parts    int // that have not ended
	closing  bool
	closed   bool
}

var (
	_ ingest.Log  = (*openLog)(nil)
	_ compact.Log = (*openLog)(nil)
)

// retryInterval is how often a log's owner looks by itself.
const retryInterval = 200 * time.Millisecond

// open opens a pipeline's log.
func (p *process) open(ctx context.Context, pipeline change.PipelineID) (ingest.Log, error) {
	w := p.world
	cfg := wal.Config{
		Dir: p.logDir(pipeline), Pipeline: pipeline, SegmentBytes: w.cfg.segmentBytes(), Spares: 1,
		GroupBytes: w.cfg.segmentBytes(),
	}
	deps := wal.Deps{
		Publisher: publisher{p}, Clock: clock{p}, IDs: p.ids, Log: w.logger(), Failpoints: failpoints{p},
		FS: disk{p, p.host.disk}, SegmentBytesMin: segmentBytesMin,
	}
	parts := diskParts
	if p.store != nil {
		if p.ending {
			return nil, wal.ErrFenced // another host has it
		}
		cfg, parts = p.storeConfig(pipeline), storeParts
		deps.Store, deps.FenceLake = p.store, p.fenceLake
	}
	st, err := wal.OpenStepped(ctx, cfg, deps)
	if p.dead {
		return nil, errDead
	}
	w.emit(check.Opened{Host: p.host.name, Incarnation: p.incarnation, Epoch: p.epoch, Err: err})
	if err != nil {
		w.mark("log not opened")
		p.fenced(err)
		return nil, err
	}
	w.mark("log opened")
	p.durableOwn()
	if p.store != nil {
		p.tookOver()
	}
	l := &openLog{p: p, pipeline: pipeline, stepped: st, wake: map[wal.Part]chan struct{}{}}
	for _, part := range parts {
		if l.wake[part] == nil {
			l.wake[part] = make(chan struct{}, 1)
		}
		l.parts++
		w.spawn(p, fmt.Sprintf("log %v", part), func() { l.run(ctx, part) })
	}
	p.logs[pipeline] = l
	return l, nil
}

const segmentBytesMin = 4 << 10

// The parts of logs that run beside each other.
var (
	diskParts  = []wal.Part{wal.Owner, wal.Commits, wal.Background}
	storeParts = []wal.Part{wal.Owner, wal.Commits, wal.Background, wal.Bodies, wal.Bodies, wal.Lease}
)

// run steps a part of the log until the log ends.
func (l *openLog) run(ctx context.Context, part wal.Part) {
	ctx = context.WithoutCancel(ctx)
	defer func() {
		l.parts--
		if l.closing { // two parts may wait at one channel
			l.poke()
		}
	}()
	for !l.closing && !l.p.dead {
		did, err := l.stepped.Step(ctx, part)
		if err != nil {
			l.p.fenced(err)
			return
		}
		if part == wal.Owner && l.p.store != nil {
			l.p.fenced(l.stepped.Log().Settled())
		}
		if did {
			l.poke()
			continue
		}
		var limit time.Duration
		switch {
		case part == wal.Owner && (l.p.faulted || l.p.store != nil):
			limit = retryInterval
		case part == wal.Lease:
			limit = leaseTTL / 4
		}
		if err := (tasks{l.p}).Wait(ctx, limit, l.wake[part]); err != nil {
			return
		}
	}
}

// poke wakes all parts.
func (l *openLog) poke() {
	for _, ch := range l.wake { // each once, in any order
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// outcome waits for the answer to something that was started.
func (l *openLog) outcome(pending *wal.Pending) (wal.CommittedGroup, error) {
	l.poke()
	answered := func() bool {
		_, _, done := pending.Outcome()
		return done
	}
	if err := l.p.wait(context.Background(), answered); err != nil {
		return wal.CommittedGroup{}, err
	}
	g, err, _ := pending.Outcome()
	return g, err
}

// Append implements ingest.Log.
func (l *openLog) Append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error) {
	w := l.p.world
	if _, err := l.p.at(atQuery, "append"); err != nil {
		return wal.CommittedGroup{}, err
	}
	for {
		pending, err := l.stepped.Log().Start(ctx, g)
		if errors.Is(err, wal.ErrBusy) {
			w.mark("log busy")
			if err := (clock{l.p}).Sleep(ctx, time.Millisecond); err != nil {
				return wal.CommittedGroup{}, err
			}
			continue
		}
		if err != nil {
			return wal.CommittedGroup{}, err
		}
		out, err := l.outcome(pending)
		switch {
		case err == nil:
			w.mark("group committed")
			w.emit(check.Committed{Host: l.p.host.name, Pipeline: l.pipeline, Group: out})
		case errors.Is(err, wal.ErrFull):
			w.mark("log full")
		case errors.Is(err, wal.ErrPoisoned):
			w.mark("log poisoned")
		case errors.Is(err, wal.ErrUnpublished):
			w.mark("group unpublished")
		}
		l.p.fenced(err)
		return out, err
	}
}

// Reclaim implements compact.Log.
func (l *openLog) Reclaim(_ context.Context, seqs []segment.Seq) error {
	w := l.p.world
	w.emit(check.ReclaimAsked{Host: l.p.host.name, Pipeline: l.pipeline, Seqs: seqs})
	pending, err := l.stepped.Log().StartReclaim(seqs)
	if err == nil {
		_, err = l.outcome(pending)
	}
	if err == nil {
		w.mark("segments reclaimed")
	}
	return err
}

// Seal ends the active segment.
func (l *openLog) Seal() error {
	pending, err := l.stepped.Log().StartSeal()
	if err != nil {
		return err
	}
	l.p.world.mark("seal asked")
	_, err = l.outcome(pending)
	return err
}

// Close implements ingest.Log. The parts end first, so that none is within a step when the
// log moves itself to its end.
func (l *openLog) Close() error {
	if l.closed {
		return nil
	}
	l.closed, l.closing = true, true
	if l.p.logs[l.pipeline] == l {
		delete(l.p.logs, l.pipeline)
	}
	l.poke()
	if err := l.p.wait(context.Background(), func() bool { return l.parts == 0 }); err != nil {
		return err
	}
	return l.stepped.Log().Close()
}

// remove deletes a dropped pipeline's log.
func (p *process) remove(pipeline change.PipelineID) error {
	d := disk{p, p.host.disk}
	dir := p.logDir(pipeline)
	files, err := d.List(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := d.Remove(filepath.Join(dir, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) logDir(pipeline change.PipelineID) string {
	return wal.PipelineDir("/data", pipeline)
}

// publisher is a process's catalog as its logs see it.
type publisher struct{ p *process }

var _ wal.Publisher = publisher{}

// Publish implements wal.Publisher.
func (b publisher) Publish(ctx context.Context, pipeline change.PipelineID, groups []wal.CommittedGroup) error {
	return b.p.exchange(atPublish, "publish", func() error {
		if err := b.p.catalog.Publish(ctx, pipeline, groups); err != nil {
			return err
		}
		b.p.durableOwn()
		b.p.world.emit(check.Published{Host: b.p.host.name, Pipeline: pipeline, Groups: groups})
		return nil
	})
}

// Published implements wal.Publisher.
func (b publisher) Published(ctx context.Context, pipeline change.PipelineID) (segment.Seq, uint32, error) {
	if b.p.dead {
		return 0, 0, errDead
	}
	return b.p.catalog.Published(ctx, pipeline)
}

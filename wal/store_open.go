package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

const (
	// takeoverWindow is how many bodies are read at a time.
	takeoverWindow = 8
	// bodiesMax is how many bodies are on their way at a time.
	bodiesMax = 4
	// readTries is how often a read of a takeover or a reclaim is repeated.
	readTries = 6
	// pauseMax bounds the pause between attempts, which doubles from retryInterval.
	pauseMax = 5 * time.Second
)

// openStore takes the log over and goes on where it ends.
func (l *Log) openStore(ctx context.Context) error {
	l.cfg.Spares = 0
	l.disk = newDisk(l.cfg, l.deps, 0)
	r := newRemote(l.cfg, l.deps, &mirror{d: l.disk, log: l.deps.Log})
	if err := r.mirror.list(); err != nil {
		return err
	}
	tail, err := takeOver(ctx, r, l.cfg, l.deps, l.stepped)
	if err != nil {
		return err
	}
	r.epoch = tail.Fence.Epoch
	l.remote, l.lease = r, newLease(l, r, tail)
	w := protocol.NewStoreWriter(protocol.StoreWriterConfig{
		Pipeline: l.cfg.Pipeline, Writer: l.disk.writerID, CommitBytes: l.cfg.GroupBytes, Bodies: bodiesMax,
	}, tail)
	l.owner.init(l, w)
	l.owner.store = &storeOwner{
		writer: w, checkpoint: tail.Checkpoint, version: tail.CheckpointVersion,
	}
	return nil
}

// takeOver makes this host the writer of the log and publishes what the catalog has
// not.
func takeOver(ctx context.Context, r *remote, cfg Config, deps Deps, stepped bool) (protocol.StoreTail, error) {
	seq, end, err := deps.Publisher.Published(ctx, cfg.Pipeline)
	if err != nil {
		return protocol.StoreTail{}, fmt.Errorf("look up published groups: %w", err)
	}
	machine := protocol.NewTakeover(protocol.TakeoverConfig{
		Pipeline: cfg.Pipeline, Writer: r.mirror.d.writerID, Host: cfg.Owner,
		Published: seq, PublishedEnd: end, Window: takeoverWindow,
	})
	t := taking{r: r, cfg: cfg, deps: deps}
	events := []protocol.Event{protocol.Start{}}
	for {
		var effects []protocol.Effect
		for _, ev := range events {
			effects = append(effects, machine.Step(ev)...)
		}
		for _, e := range effects {
			switch e := e.(type) {
			case protocol.Recovered:
				tail := machine.Result()
				deps.Log.Info("log taken over", env.KeySeq, uint64(tail.Seq), env.KeyEpoch, uint32(tail.Fence.Epoch),
					env.KeyCount, len(tail.Live), "published", t.published)
				return tail, r.mirror.keepOnly(tail.Live)
			case protocol.Refused:
				return protocol.StoreTail{}, e.Err
			}
		}
		if err := context.Cause(ctx); err != nil {
			return protocol.StoreTail{}, err
		}
		events = sideBySide(effects, stepped, func(e protocol.Effect) protocol.Event { return t.execute(ctx, e) })
	}
}

// taking executes the effects of a takeover.
type taking struct {
	r         *remote
	cfg       Config
	deps      Deps
	published int
}

func (t *taking) execute(ctx context.Context, e protocol.Effect) protocol.Event {
	switch e := e.(type) {
	case protocol.Publish:
		t.published += len(e.Groups)
		return protocol.Published{Err: t.deps.Publisher.Publish(ctx, t.cfg.Pipeline, committedGroups(e.Groups))}
	case protocol.FenceLake:
		if t.deps.FenceLake == nil {
			return protocol.LakeFenced{}
		}
		return protocol.LakeFenced{Err: t.deps.FenceLake(ctx, e.Epoch)}
	}
	return t.r.execute(ctx, e)
}

// execute executes an effect that asks for nothing but the store. What only reads is
// repeated while the store does not answer.
func (r *remote) execute(ctx context.Context, e protocol.Effect) (ev protocol.Event) {
	for try := 1; ; try++ {
		var err error
		switch e := e.(type) {
		case protocol.WriteFence:
			return r.writeFence(ctx, e)
		case protocol.WriteCheckpoint:
			return r.writeCheckpoint(ctx, e)
		case protocol.PutMarker:
			return r.putMarker(ctx, e)
		case protocol.Wait:
			_ = r.clock.Sleep(ctx, pause(e.Attempt)) // whoever runs the machine looks at ctx
			return protocol.Retry{}
		case protocol.ReadFence:
			out := r.readFence(ctx)
			_, parse := segment.ParseFence(out.Data)
			ev, err = out, damaged(out.Err, out.Data, parse)
		case protocol.ReadCheckpoint:
			out := r.readCheckpoint(ctx)
			_, parse := segment.ParseCheckpoint(out.Data)
			ev, err = out, damaged(out.Err, out.Data, parse)
		case protocol.ListPage:
			out := r.listPage(ctx, e)
			ev, err = out, out.Err
		case protocol.ReadMarker:
			out := r.readMarker(ctx, e)
			_, parse := segment.ParseMarker(out.Data, e.Seq)
			ev, err = out, damaged(out.Err, out.Data, parse)
		case protocol.FetchBody:
			out, wrong := r.fetchBody(ctx, e)
			ev, err = out, damaged(out.Err, out.Data, wrong)
		case protocol.DeleteMarkers:
			out := r.deleteMarkers(ctx, e)
			ev, err = out, out.Err
		case protocol.DeleteBodies:
			out := r.deleteBodies(ctx, e)
			ev, err = out, out.Err
		}
		if err == nil || try == readTries || !again(err) || r.clock.Sleep(ctx, pause(try)) != nil {
			return ev
		}
	}
}

// damaged is err, or that what was read is not what was stored: that may be the way's
// fault. When it stays so, the protocol finds it in the data.
func damaged(err error, data []byte, parse error) error {
	if err != nil || data == nil || parse == nil {
		return err
	}
	return fmt.Errorf("%w: %w", objstore.ErrDamaged, parse)
}

// again says whether a read or a deletion may succeed when it is repeated.
func again(err error) bool {
	return objstore.IsRetryable(err) || errors.Is(err, objstore.ErrDamaged)
}

// pause is how long to wait after the given number of attempts.
func pause(attempts int) time.Duration {
	return min(retryInterval<<min(attempts-1, 10), pauseMax)
}

package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// Log is the log of one pipeline, open for writing. Safe for concurrent use.
type Log struct {
	cfg     Config
	deps    Deps
	lock    io.Closer
	disk    *disk // of a log on an object store: the mirror's
	encoder *segment.Encoder
	owner   owner
	// commits runs Open and Write, background the rest; at most one of the first and
	// three of the second are under way (a seal, a cut, a reclaim).
	commits, background *executor
	// On an object store commits puts markers and bodies puts bodies, several at a time.
	bodies *executor
	remote *remote // nil on a disk
	lease  *lease

	pendings   sync.Pool     // of *Pending, for Append
	reclaiming chan struct{} // held by the Reclaim under way
	stop       func(cause error)
	group      *errgroup.Group // nil in a stepped log
	stepped    bool            // has no goroutines
	ended      bool            // of a stepped log: the owner has finished

	mu struct {
		sync.Mutex
		inbox  inbox
		next   uint64
		since  time.Time     // when the first of the inbox's appends came
		queued int64         // bytes of the inbox's appends
		bytes  int64         // of the groups not answered
		room   chan struct{} // closed when bytes has shrunk, if anyone waits for it
		wanted bool          // someone waits for room
		closed bool
		// abandoned: dropped without a close, as by the death of the process.
		abandoned bool
		stats     Stats
		health    health
	}
	wake chan struct{}
	// lingering is signalled when an append comes to an empty inbox.
	lingering chan struct{}
}

// inbox is what the owner has not seen yet.
type inbox struct {
	appends  []request
	controls []request
	events   []protocol.Event
	reclaims []*reclaim
	// superseded says that another host has the log.
	superseded error
}

// request is an Append, or a SealActive when it has no group.
type request struct {
	id    uint64
	group *segment.Encoded
	reply chan reply
}

type reply struct {
	group CommittedGroup
	err   error
}

// health is why appends are refused, with a channel closed at the next change.
type health struct {
	refuses error
	changed chan struct{}
}

// Stats is a log as of a moment.
type Stats struct {
	Active   segment.Seq // being written, or next
	Segments int
	// LiveBytes is the length of the segments' files.
	LiveBytes int64
	Spares    int
	// Commits is how many writes became durable since Open, Groups and Bytes what was
	// in them.
	Commits, Groups, Bytes uint64
	// Full says that the last attempt to open a segment found no space.
	Full bool
	// Refuses is why appends fail now; nil in health.
	Refuses error
	// Stalled is why appends wait, on an object store that does not answer.
	Stalled error
	// Epoch is that of the writer of a log on an object store, else 0.
	Epoch segment.Epoch
}

// epochDisk is the epoch of a log on a disk: a lock keeps a second writer out, so
// there is only one.
const epochDisk segment.Epoch = 1

// Open recovers the log in cfg.Dir and opens it for writing. It publishes groups
// that the catalog has not; it deletes nothing that is committed. It fails on damage
// that is not a torn tail (*segment.CorruptError, ErrBehind) and when another
// process has the log (ErrLocked). Opening again after an error is safe.
func Open(ctx context.Context, cfg Config, deps Deps) (*Log, error) {
	l, err := open(ctx, cfg, deps, false)
	if err != nil {
		return nil, err
	}
	l.run(context.WithoutCancel(ctx))
	return l, nil
}

// open recovers a log that nobody moves yet.
func open(ctx context.Context, cfg Config, deps Deps, stepped bool) (*Log, error) {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	if err := errors.Join(cfg.validate(deps.SegmentBytesMin), deps.validate()); err != nil {
		return nil, err
	}
	deps.Log = deps.Log.With(env.KeyPipeline, uint32(cfg.Pipeline))
	if err := deps.FS.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	lock, err := deps.FS.Lock(filepath.Join(cfg.Dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{
		cfg: cfg, deps: deps, lock: lock, encoder: segment.NewEncoder(), stepped: stepped,
		reclaiming: make(chan struct{}, 1), wake: make(chan struct{}, 1), lingering: make(chan struct{}, 1),
	}
	l.mu.room = make(chan struct{})
	l.mu.health.changed = make(chan struct{})
	l.commits, l.bodies = newExecutor(l, nil), newExecutor(l, nil)
	if deps.Store == nil {
		l.background = newExecutor(l, l.fillSpares)
		err = l.openDisk(ctx)
	} else {
		l.background = newExecutor(l, nil)
		err = l.openStore(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", cfg.Dir, err), l.disk.close(), lock.Close())
	}
	return l, nil
}

func (l *Log) openDisk(ctx context.Context) error {
	l.disk = newDisk(l.cfg, l.deps, epochDisk)
	tail, err := recoverLog(ctx, l.disk, l.cfg, l.deps)
	if err != nil {
		return err
	}
	l.owner.init(l, protocol.NewWriter(protocol.WriterConfig{
		Epoch: epochDisk, SegmentBytes: l.cfg.SegmentBytes, CommitBytes: l.cfg.GroupBytes,
	}, tail))
	return nil
}

// Append makes g durable, publishes it and returns its place. All appends that wait
// share the next commit.
//
// The commit point is the sync of the group end. ctx counts until g is queued; from
// then on Append waits for the outcome. A nil error means durable and published.
// ErrFull: nothing was written. ErrPoisoned, ErrUnpublished, ErrClosed: see there.
//
// It keeps neither g nor its batches.
func (l *Log) Append(ctx context.Context, g *change.Group) (CommittedGroup, error) {
	if err := context.Cause(ctx); err != nil {
		return CommittedGroup{}, err
	}
	x, err := l.encoder.Encode(g)
	if err != nil {
		return CommittedGroup{}, fmt.Errorf("append: %w", err)
	}
	p, _ := l.pendings.Get().(*Pending)
	if p == nil {
		p = &Pending{answer: make(chan reply, 1)}
	}
	for {
		room, err := l.enqueue(p, x)
		if err != nil {
			return CommittedGroup{}, fmt.Errorf("append: %w", err)
		}
		if room == nil {
			break
		}
		select {
		case <-ctx.Done():
			return CommittedGroup{}, fmt.Errorf("append: %w", context.Cause(ctx))
		case <-room:
		}
	}
	out := p.wait()
	p.out = reply{}
	l.pendings.Put(p) // its channel is empty: a request is answered once
	if out.err != nil {
		return CommittedGroup{}, fmt.Errorf("append: %w", out.err)
	}
	return out.group, nil
}

// SealActive ends the segment being written, so that it can be reclaimed once its
// slices are compacted. It returns when the marker is durable; at once when there is
// nothing to seal.
func (l *Log) SealActive(ctx context.Context) error {
	p, err := l.StartSeal()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case out := <-p.answer:
		return out.err
	}
}

// Reclaim deletes sealed segments whose slices nobody needs any more (R1, known to
// the caller): markers first, durably, then bodies (R2). Segments that are gone
// already are no error, so it can be repeated. ErrActive: one is not sealed.
func (l *Log) Reclaim(ctx context.Context, seqs []segment.Seq) error {
	select {
	case l.reclaiming <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p, err := l.startReclaim(seqs)
	if err != nil {
		return err
	}
	// Not ctx: the next Reclaim must find this one finished.
	return p.wait().err
}

// Settle waits until the log takes appends: what an append failed on (ErrPoisoned,
// ErrUnpublished) is decided and everything durable is published. Afterwards the
// catalog's position is where the source goes on. A log that is fenced never does.
func (l *Log) Settle(ctx context.Context) error {
	for {
		l.mu.Lock()
		refuses, changed, closed := l.mu.health.refuses, l.mu.health.changed, l.mu.closed
		l.mu.Unlock()
		if closed {
			return fmt.Errorf("settle: %w", ErrClosed)
		}
		if refuses == nil {
			return nil
		}
		if errors.Is(refuses, ErrFenced) {
			return fmt.Errorf("settle: %w", refuses)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("settle: %w: %w", context.Cause(ctx), refuses)
		case <-changed:
		}
	}
}

// Stats is the log as of now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	s := l.mu.stats
	l.mu.Unlock()
	s.Segments, s.LiveBytes = l.disk.live()
	s.Spares = l.disk.spares.count()
	if l.remote != nil {
		s.Epoch = l.remote.epoch
	}
	return s
}

// Close finishes the commit under way, fails the appends that wait behind it with
// ErrClosed, and gives up the lock. The next Open seals what was active.
func (l *Log) Close() error {
	l.mu.Lock()
	closed := l.mu.closed
	l.closeLocked()
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.signal()
	err := l.await()
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	if l.lease != nil && !l.isAbandoned() {
		err = errors.Join(err, l.lease.release(context.Background()))
	}
	return errors.Join(err, l.disk.close(), l.lock.Close())
}

// closeLocked refuses what comes from now on.
func (l *Log) closeLocked() {
	if l.mu.closed {
		return
	}
	l.mu.closed = true
	close(l.mu.health.changed) // Settle sees closed
	l.mu.health.changed = make(chan struct{})
	close(l.mu.room) // so does an Append that waits
	l.mu.room = make(chan struct{})
}

// signal wakes the owner.
func (l *Log) signal() { poke(l.wake) }

// poke signals without waiting.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

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
	disk    *disk
	encoder *segment.Encoder
	owner   owner
	// commits runs Open and Write, background the rest; at most one of the first and
	// three of the second are under way (a seal, a cut, a reclaim).
	commits, background *executor

	answers    sync.Pool     // of chan reply, for Append
	reclaiming chan struct{} // held by the Reclaim under way
	stop       context.CancelCauseFunc
	group      *errgroup.Group

	mu struct {
		sync.Mutex
		inbox  inbox
		next   uint64
		bytes  int64         // of the groups not answered
		room   chan struct{} // closed when bytes has shrunk, if anyone waits for it
		wanted bool          // someone waits for room
		closed bool
		stats  Stats
		health health
	}
	wake chan struct{}
}

// inbox is what the owner has not seen yet.
type inbox struct {
	appends  []request
	controls []request
	events   []protocol.Event
	reclaims []*reclaim
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
}

// epochDisk is the epoch of a log on a disk: a lock keeps a second writer out, so
// there is only one.
const epochDisk segment.Epoch = 1

// Open recovers the log in cfg.Dir and opens it for writing. It publishes groups
// that the catalog has not; it deletes nothing that is committed. It fails on damage
// that is not a torn tail (*segment.CorruptError, ErrBehind) and when another
// process has the log (ErrLocked). Opening again after an error is safe.
func Open(ctx context.Context, cfg Config, deps Deps) (*Log, error) {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Publisher == nil || deps.Clock == nil || deps.IDs == nil {
		return nil, errors.New("wal: Publisher, Clock and IDs are required")
	}
	deps.Log = deps.Log.With(env.KeyPipeline, uint32(cfg.Pipeline))
	if err := deps.FS.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	lock, err := deps.FS.Lock(filepath.Join(cfg.Dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	d := newDisk(cfg, deps, epochDisk)
	tail, err := recoverLog(ctx, d, cfg, deps)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log %s: %w", cfg.Dir, err), d.close(), lock.Close())
	}
	l := &Log{
		cfg: cfg, deps: deps, lock: lock, disk: d, encoder: segment.NewEncoder(),
		reclaiming: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	l.mu.room = make(chan struct{})
	l.mu.health.changed = make(chan struct{})
	l.owner.init(l, tail)
	l.run(context.WithoutCancel(ctx))
	return l, nil
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
	answer, _ := l.answers.Get().(chan reply)
	if answer == nil {
		answer = make(chan reply, 1)
	}
	if err := l.enqueue(ctx, request{group: x, reply: answer}); err != nil {
		return CommittedGroup{}, fmt.Errorf("append: %w", err)
	}
	out := <-answer
	l.answers.Put(answer) // empty: a request is answered once
	l.dequeued(x)
	if out.err != nil {
		return CommittedGroup{}, fmt.Errorf("append: %w", out.err)
	}
	return out.group, nil
}

// enqueue hands r to the owner, waiting while too much is queued.
func (l *Log) enqueue(ctx context.Context, r request) error {
	n := int64(r.group.Bytes())
	for {
		l.mu.Lock()
		if l.mu.closed {
			l.mu.Unlock()
			return ErrClosed
		}
		if l.mu.bytes == 0 || l.mu.bytes+n <= queuedCommits*l.cfg.GroupBytes {
			l.mu.bytes += n
			l.mu.next++
			r.id = l.mu.next
			l.mu.inbox.appends = append(l.mu.inbox.appends, r)
			l.mu.Unlock()
			l.signal()
			return nil
		}
		room := l.mu.room
		l.mu.wanted = true
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-room:
		}
	}
}

// dequeued gives back what an answered append held.
func (l *Log) dequeued(x *segment.Encoded) {
	l.mu.Lock()
	l.mu.bytes -= int64(x.Bytes())
	if l.mu.wanted {
		close(l.mu.room)
		l.mu.room, l.mu.wanted = make(chan struct{}), false
	}
	l.mu.Unlock()
	l.encoder.Release(x)
}

// SealActive ends the segment being written, so that it can be reclaimed once its
// slices are compacted. It returns when the marker is durable; at once when there is
// nothing to seal.
func (l *Log) SealActive(ctx context.Context) error {
	r := request{reply: make(chan reply, 1)}
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		return fmt.Errorf("seal: %w", ErrClosed)
	}
	l.mu.next++
	r.id = l.mu.next
	l.mu.inbox.controls = append(l.mu.inbox.controls, r)
	l.mu.Unlock()
	l.signal()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case out := <-r.reply:
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
	r := &reclaim{seqs: seqs, done: make(chan error, 1)}
	l.mu.Lock()
	closed := l.mu.closed
	if !closed {
		l.mu.inbox.reclaims = append(l.mu.inbox.reclaims, r)
	}
	l.mu.Unlock()
	if closed {
		<-l.reclaiming
		return fmt.Errorf("reclaim: %w", ErrClosed)
	}
	l.signal()
	// Not ctx: the next Reclaim must find this one finished.
	err := <-r.done
	<-l.reclaiming
	return err
}

// Settle waits until the log takes appends: what an append failed on (ErrPoisoned,
// ErrUnpublished) is decided and everything durable is published. Afterwards the
// catalog's position is where the source goes on.
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
	return s
}

// Close finishes the commit under way, fails the appends that wait behind it with
// ErrClosed, and gives up the lock. The next Open seals what was active.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.mu.closed {
		l.mu.Unlock()
		return nil
	}
	l.mu.closed = true
	close(l.mu.health.changed) // Settle sees closed
	l.mu.health.changed = make(chan struct{})
	close(l.mu.room) // so does enqueue
	l.mu.room = make(chan struct{})
	l.mu.Unlock()
	l.signal()
	err := l.group.Wait()
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	return errors.Join(err, l.disk.close(), l.lock.Close())
}

// signal wakes the owner.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

package protocol

import (
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// WriterConfig is what a writer is told once.
type WriterConfig struct {
	Epoch segment.Epoch
	// SegmentBytes is the length of a segment, except for one made for a single
	// larger group.
	SegmentBytes int64
	// CommitBytes is how much goes into one commit, unless one group is larger.
	CommitBytes int64
}

// Writer commits groups to a log. See the package comment. Not safe for concurrent
// use.
type Writer struct {
	producers
	cfg   WriterConfig
	state writerState
	tail  Tail

	flight commit // being written
	active active
	// cause is why the writer is poisoned.
	cause error

	sealing sealing
	wanted  []uint64 // SealWanted not yet answered, waiting for the active segment
	waiting []uint64 // SealWanted waiting for the seal under way
}

type writerState uint8

const (
	// closed: there is no active segment; one is opened when it is needed.
	closed writerState = iota
	// opening: Open is under way.
	opening
	// ready: the active segment takes a write.
	ready
	// writing: Write is under way.
	writing
	// poisoned: Inspect is under way or to be repeated.
	poisoned
	// cutting: the marker that ends the poisoned segment is under way or waits for
	// the seal of the segment before it.
	cutting
)

// commit is the groups of one Write.
type commit struct {
	ids    []uint64
	groups []Placed
}

// active is the segment that is being written.
type active struct {
	builder *segment.Builder
	room    int64 // how long its body may become
	durable uint32
	groups  int // durable ones
	digest  hash.Hash
	// unhashed is the header or the last write, not yet in digest.
	unhashed []byte
	buffers  [2][]byte
	turn     int
}

// NewWriter makes a writer that goes on at tail. It opens a segment when it has a
// group to write.
func NewWriter(cfg WriterConfig, tail Tail) *Writer {
	return &Writer{cfg: cfg, tail: tail}
}

// Step takes an event and returns what is to be done about it, in this order. The
// slice is valid until the next Step; Write.Data until the next but one Written.
func (w *Writer) Step(ev Event) []Effect {
	w.out = w.out[:0]
	switch ev := ev.(type) {
	case Start:
	case Append:
		w.append(ev.Items)
	case SealWanted:
		w.wanted = append(w.wanted, ev.ID)
	case Opened:
		w.opened(ev)
	case Written:
		w.written(ev.Err)
	case Published:
		w.published(ev.Err)
	case Sealed:
		w.sealed(ev)
	case Inspected:
		w.inspected(ev)
	case Discarded:
		w.discarded(ev)
	case Retry:
		w.retry()
	case Settle:
		w.active.settle()
		return w.out
	}
	w.advance()
	return w.out
}

// Idle says that nothing is under way or owed: all that is durable is published.
func (w *Writer) Idle() bool {
	return (w.state == ready || w.state == closed) && len(w.queue) == 0 && !w.publish.owed() &&
		w.sealing.phase == sealNone
}

// Busy says that an Open or a Write is under way: what is appended now waits.
func (w *Writer) Busy() bool { return w.state == opening || w.state == writing }

// Refuses is why an append would fail now, nil when it would not.
func (w *Writer) Refuses() error {
	switch {
	case w.publish.failed != nil:
		return fmt.Errorf("%w: %w", ErrUnpublished, w.publish.failed)
	case w.state == poisoned || w.state == cutting:
		return fmt.Errorf("%w: %w", ErrPoisoned, w.cause)
	}
	return nil
}

// Unsealed is the lowest seq whose marker is not durable; it may not exist yet.
func (w *Writer) Unsealed() segment.Seq {
	if w.sealing.phase != sealNone {
		return w.sealing.seq
	}
	return w.tail.Seq
}

// Tail is where the segment being written, or the next one, begins.
func (w *Writer) Tail() Tail { return w.tail }

// Active is the seq of the segment that is being written or comes next.
func (w *Writer) Active() segment.Seq { return w.tail.Seq }

// NeedsRetry says that something failed that only Retry moves on.
func (w *Writer) NeedsRetry() bool {
	return w.publish.failed != nil && !w.publish.underway ||
		w.sealing.cut == cutUninspected || w.sealing.cut == cutFailed ||
		w.sealing.phase == sealFailed
}

func (w *Writer) append(items []Item) {
	if err := w.Refuses(); err != nil {
		for _, it := range items {
			w.emit(Failed{ID: it.ID, Err: err})
		}
		return
	}
	w.queue = append(w.queue, items...)
}

// advance moves on whatever can move: first the disk, which is slow, then the rest.
func (w *Writer) advance() {
	switch w.state {
	case closed:
		if len(w.queue) > 0 {
			w.open(w.need())
		}
	case ready:
		w.commit()
	case cutting:
		w.cut()
	}
	w.advancePublish()
	w.answerSeals()
}

// need is how long the body of a fresh segment must be for the next group.
func (w *Writer) need() int64 {
	return segment.NewBuilder(segment.Header{Seq: w.tail.Seq}).Room(w.queue[0].Group)
}

func (w *Writer) open(need int64) {
	w.state = opening
	w.active.room = max(w.cfg.SegmentBytes, need)
	w.emit(Open{
		Seq: w.tail.Seq, FirstGroup: w.tail.Group, Previous: w.tail.Previous, Bytes: w.active.room,
	})
}

func (w *Writer) opened(ev Opened) {
	if ev.Err != nil {
		// Nothing was in that segment: the appends fail, the log is whole.
		w.state = closed
		w.failQueue(ev.Err)
		return
	}
	w.state = ready
	header := ev.Header.Encode()
	a := &w.active
	a.builder = segment.NewBuilder(ev.Header)
	a.durable, a.groups = segment.HeaderBytes, 0
	a.digest = sha256.New()
	a.unhashed = append([]byte(nil), header[:]...)
}

// commit starts the next write, or makes room for it.
func (w *Writer) commit() {
	a := &w.active
	if len(w.wanted) > 0 && a.groups > 0 && w.sealing.phase == sealNone {
		w.rotate()
		return
	}
	if len(w.queue) == 0 {
		return
	}
	if a.builder.Room(w.queue[0].Group) > a.room {
		w.makeRoom()
		return
	}
	a.settle()
	data, start := a.buffers[a.turn][:0], a.builder.End()
	n := 0
	for ; n < len(w.queue); n++ {
		x := w.queue[n].Group
		if a.builder.Room(x) > a.room ||
			n > 0 && int64(len(data)+x.Bytes()) > w.cfg.CommitBytes {
			break
		}
		var g segment.Group
		data, g = a.builder.Append(data, x, a.durable)
		w.flight.ids = append(w.flight.ids, w.queue[n].ID)
		w.flight.groups = append(w.flight.groups, Placed{Seq: w.tail.Seq, Group: g})
	}
	w.takeQueue(n)
	a.keep(data, w.cfg.CommitBytes)
	w.state = writing
	if mutant.On(mutant.AckBeforeCommit) {
		w.ackEarly()
	}
	if mutant.On(mutant.PublishBeforeDurable) {
		w.publish.add(commit{groups: w.flight.groups})
	}
	w.emit(Write{Seq: w.tail.Seq, Start: start, Data: data})
}

// makeRoom replaces the active segment by one that the next group fits into.
func (w *Writer) makeRoom() {
	switch {
	case w.active.groups == 0:
		// A group larger than a segment meets an empty one: open the same seq anew,
		// larger. Open replaces the file.
		w.open(w.need())
	case w.sealing.phase == sealFailed:
		w.failQueue(fmt.Errorf("seal segment %s: %w", w.sealing.seq.ID(), w.sealing.err))
	case w.sealing.phase == sealNone:
		w.rotate()
	}
}

// rotate seals the active segment, off the path of the appends, and opens the next.
func (w *Writer) rotate() {
	a := &w.active
	a.settle()
	chain := [sha256.Size]byte(a.digest.Sum(nil))
	footer := a.builder.Footer(chain)
	a.digest.Write(footer)
	m := segment.Marker{
		Groups: uint16(a.groups), Epoch: w.cfg.Epoch, Seq: w.tail.Seq,
		Length: a.durable + uint32(len(footer)), Digest: [sha256.Size]byte(a.digest.Sum(nil)),
	}
	w.sealing = sealing{phase: sealRunning, seq: w.tail.Seq, end: a.durable, groups: a.groups}
	w.waiting, w.wanted = append(w.waiting, w.wanted...), w.wanted[:0]
	w.emit(Seal{Seq: w.tail.Seq, Start: a.durable, Footer: footer, Marker: m})
	w.next(chain)
	w.state = closed
	if len(w.queue) > 0 {
		w.open(w.need())
	}
}

// next moves the tail behind the active segment, whose digest is chain.
func (w *Writer) next(chain [sha256.Size]byte) {
	w.tail = Tail{Seq: w.tail.Seq + 1, Group: w.tail.Group + uint64(w.active.groups), Previous: chain}
	w.active.builder = nil
}

func (w *Writer) written(err error) {
	done := w.flight
	w.flight = commit{}
	if err != nil {
		w.poison(err, done.ids)
		return
	}
	w.state = ready
	w.active.durable = w.active.builder.End()
	w.active.groups = w.active.builder.Groups()
	if mutant.On(mutant.AckBeforePublish) || mutant.On(mutant.PublishBeforeDurable) {
		w.flight = done
		w.ackEarly()
		done, w.flight = w.flight, commit{}
	}
	if mutant.On(mutant.PublishBeforeDurable) {
		return // published already
	}
	w.publish.add(done)
}

// ackEarly is for the mutants.
func (w *Writer) ackEarly() {
	for i, id := range w.flight.ids {
		w.emit(Done{ID: id, Placed: w.flight.groups[i]})
	}
	w.flight.ids = nil
}

func (w *Writer) poison(err error, ids []uint64) {
	w.state, w.cause = poisoned, err
	w.sealing.cut = cutInspecting
	cause := fmt.Errorf("%w: %w", ErrPoisoned, err)
	for _, id := range ids {
		w.emit(Failed{ID: id, Err: cause})
	}
	w.failQueue(cause)
	w.emit(Inspect{Seq: w.tail.Seq, End: w.active.durable})
}

func (w *Writer) retry() {
	if w.publish.failed != nil && !w.publish.underway {
		w.publish.again = true
	}
	switch w.sealing.cut {
	case cutUninspected:
		w.sealing.cut = cutInspecting
		w.emit(Inspect{Seq: w.tail.Seq, End: w.active.durable})
	case cutFailed:
		w.sealing.cut = cutWaiting
	}
	if w.sealing.phase == sealFailed {
		w.sealing.phase = sealInspecting
		w.emit(Inspect{Seq: w.sealing.seq, End: w.sealing.end})
	}
}

// keep remembers what is being written, and its memory for the next but one write
// unless it was exceptionally large.
func (a *active) keep(data []byte, commitBytes int64) {
	a.unhashed = data
	a.buffers[a.turn] = data
	if int64(cap(data)) > 2*commitBytes {
		a.buffers[a.turn] = nil
	}
	a.turn = 1 - a.turn
}

// settle brings the digest up to date with what was written.
func (a *active) settle() {
	if len(a.unhashed) > 0 {
		a.digest.Write(a.unhashed)
		a.unhashed = nil
	}
}

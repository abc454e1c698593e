package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// StoreWriterConfig is what a writer on an object store is told once.
type StoreWriterConfig struct {
	Pipeline change.PipelineID
	// Writer is random, one per opening.
	Writer [16]byte
	// CommitBytes is how much goes into one segment, unless one group is larger.
	CommitBytes int64
	// Bodies is how many may be on their way at a time.
	Bodies int
}

// StoreWriter commits groups to a log on an object store. Each commit is a segment of
// its own: a body, put under a key that no other writer uses, then its marker, put
// under the seq if that is absent. The marker is the commit point.
//
//	         build             done              head of the line
//	queue ──────────▶ putting ──────▶ waiting ───────────────────▶ marking ──▶ committed
//	                                                             unknown │ ▲       ▲
//	                                                             refused ▼ │absent │
//	                                                                reading ─┤     │ epoch is
//	                                                      another's │   mine │slow │ still mine
//	                                                                ▼        ▼     │
//	                                                             fenced ◀── asking ┘
//
// Bodies go up side by side, markers strictly in order, one at a time. Nothing is lost
// by a failed write: the same bytes are put again, under a condition that lets them be
// stored once. So appends wait while the store does not answer, and they fail only when
// another writer has the log, which is for good (F1). Not safe for concurrent use.
type StoreWriter struct {
	producers
	cfg    StoreWriterConfig
	epoch  segment.Epoch
	tail   Tail        // of what is built
	flight []*outgoing // in order of seq
	fenced error

	live     []LiveSegment // committed, from the log's low seq
	position change.Position
	seals    []sealWish
	nanos    int64 // of the last Append
}

// outgoing is a segment on its way.
type outgoing struct {
	commit
	marker segment.Marker
	data   []byte
	live   LiveSegment
	next   Tail
	phase  sendPhase
	failed bool  // waits for Retry, then does again what its phase says
	err    error // why
	// unsure: the marker was put at an unknown moment; the epoch must be looked at.
	unsure bool
	// differs is how often the body was read and was another one.
	differs int
}

// comparesMax is how often a body must differ before that is believed.
const comparesMax = 3

type sendPhase uint8

const (
	// bodyPutting: PutBody is under way.
	bodyPutting sendPhase = iota
	// bodyComparing: the key is taken, or may be; CompareBody is under way.
	bodyComparing
	// bodyStored: waits for the markers before its own.
	bodyStored
	// marking: PutMarker is under way.
	marking
	// markerReading: ReadMarker is under way.
	markerReading
	// fenceReading: the marker is there; ReadFence is under way.
	fenceReading
)

// sealWish is a SealWanted, answered when the groups below its number are committed.
type sealWish struct {
	id    uint64
	group uint64
}

// NewStoreWriter makes a writer that goes on where a takeover ended.
func NewStoreWriter(cfg StoreWriterConfig, at StoreTail) *StoreWriter {
	return &StoreWriter{
		cfg: cfg, epoch: at.Fence.Epoch, tail: at.Tail, live: slices.Clone(at.Live), position: at.Position,
	}
}

// Step takes an event and returns what is to be done about it, in this order. The
// slice is valid until the next Step; the bytes of bodies are never written again.
func (w *StoreWriter) Step(ev Event) []Effect {
	w.out = w.out[:0]
	switch ev := ev.(type) {
	case Append:
		w.nanos = ev.Nanos
		w.append(ev.Items)
	case SealWanted:
		w.seals = append(w.seals, sealWish{id: ev.ID, group: w.tail.Group + uint64(len(w.queue))})
	case BodyPut:
		w.bodyPut(ev)
	case BodyCompared:
		w.bodyCompared(ev)
	case MarkerPut:
		w.markerPut(ev)
	case MarkerRead:
		w.markerRead(ev)
	case FenceRead:
		w.fenceRead(ev)
	case Superseded:
		w.fence(ev.Err)
	case Published:
		w.published(ev.Err)
	case Retry:
		w.retry()
	}
	w.advance()
	return w.out
}

// Idle says that nothing is under way or owed.
func (w *StoreWriter) Idle() bool {
	return len(w.queue) == 0 && len(w.flight) == 0 && !w.publish.owed()
}

// Busy says that what is appended now waits.
func (w *StoreWriter) Busy() bool { return len(w.flight) >= w.cfg.Bodies }

// Refuses is why an append would fail now, nil when it would not.
func (w *StoreWriter) Refuses() error {
	switch {
	case w.fenced != nil:
		return w.fenced
	case w.publish.failed != nil:
		return fmt.Errorf("%w: %w", ErrUnpublished, w.publish.failed)
	}
	return nil
}

// Stalled is why appends wait longer than they should; nil when they do not.
func (w *StoreWriter) Stalled() error {
	for _, o := range w.flight {
		if o.failed {
			return o.err
		}
	}
	return nil
}

// Unsealed is the lowest seq that is not committed.
func (w *StoreWriter) Unsealed() segment.Seq {
	if len(w.flight) > 0 {
		return w.flight[0].marker.Seq
	}
	return w.tail.Seq
}

// Active is the seq that is built next.
func (w *StoreWriter) Active() segment.Seq { return w.tail.Seq }

// NeedsRetry says that something failed that only Retry moves on.
func (w *StoreWriter) NeedsRetry() bool {
	if w.fenced != nil {
		return false
	}
	return w.publish.failed != nil && !w.publish.underway || w.Stalled() != nil
}

// Ledger is what is committed, from the log's low seq, and the position of the last
// group. The slice is not changed any more.
func (w *StoreWriter) Ledger() ([]LiveSegment, change.Position) {
	return slices.Clip(w.live), w.position
}

// Next is where the log goes on behind what is committed.
func (w *StoreWriter) Next() Tail {
	if len(w.flight) == 0 {
		return w.tail
	}
	o := w.flight[0]
	return Tail{Seq: o.marker.Seq, Group: o.live.Group, Previous: o.live.Previous}
}

// Forget drops segments that are deleted from the ledger.
func (w *StoreWriter) Forget(below segment.Seq) {
	i := 0
	for i < len(w.live) && w.live[i].Seq < below {
		i++
	}
	w.live = w.live[i:]
}

func (w *StoreWriter) append(items []Item) {
	if err := w.Refuses(); err != nil {
		for _, it := range items {
			w.emit(Failed{ID: it.ID, Err: err})
		}
		return
	}
	w.queue = append(w.queue, items...)
}

func (w *StoreWriter) advance() {
	if w.fenced == nil {
		for len(w.queue) > 0 && len(w.flight) < w.cfg.Bodies {
			w.build()
		}
		if len(w.flight) > 0 && w.flight[0].phase == bodyStored {
			o := w.flight[0]
			o.phase = marking
			w.emit(PutMarker{Marker: o.marker})
		}
		w.advancePublish()
	}
	w.answerSeals()
}

// build makes a segment of what waits and sends its body.
func (w *StoreWriter) build() {
	h := segment.Header{
		Epoch: w.epoch, Pipeline: w.cfg.Pipeline, Seq: w.tail.Seq, Writer: w.cfg.Writer,
		FirstGroup: w.tail.Group, Previous: w.tail.Previous, Salt: w.salt(),
		CreatedNanos: w.nanos,
	}
	b := segment.NewBuilder(h)
	if b.Room(w.queue[0].Group) > segment.BodyBytesMax {
		w.emit(Failed{ID: w.queue[0].ID, Err: segment.ErrTooLarge})
		w.takeQueue(1)
		return
	}
	o := &outgoing{live: LiveSegment{
		Seq: h.Seq, Epoch: h.Epoch, Group: h.FirstGroup, Previous: h.Previous,
	}}
	// Not reused: the store may be sending it long after it has answered.
	header := h.Encode()
	data := append(make([]byte, 0, b.Room(w.queue[0].Group)), header[:]...)
	n := 0
	for ; n < len(w.queue); n++ {
		x := w.queue[n].Group
		if n > 0 && int64(len(data)+x.Bytes()) > w.cfg.CommitBytes || b.Room(x) > segment.BodyBytesMax {
			break
		}
		var g segment.Group
		data, g = b.Append(data, x, 0)
		o.ids = append(o.ids, w.queue[n].ID)
		o.groups = append(o.groups, Placed{Seq: h.Seq, Group: g})
	}
	w.takeQueue(n)
	w.close(o, b, data)
	w.flight = append(w.flight, o)
	w.emit(PutBody{Seq: h.Seq, Data: o.data, Marker: o.marker})
}

// close ends the segment with its footer and computes the digests.
func (w *StoreWriter) close(o *outgoing, b *segment.Builder, data []byte) {
	digest := sha256.New()
	digest.Write(data)
	chain := [sha256.Size]byte(digest.Sum(nil))
	footer := b.Footer(chain)
	digest.Write(footer)
	o.data = append(data, footer...)
	o.marker = segment.Marker{
		Groups: uint16(len(o.groups)), Epoch: w.epoch, Length: uint32(len(o.data)),
		Seq: w.tail.Seq, Digest: [sha256.Size]byte(digest.Sum(nil)),
	}
	w.tail = Tail{Seq: w.tail.Seq + 1, Group: w.tail.Group + uint64(len(o.groups)), Previous: chain}
	o.next = w.tail
}

// salt differs for every segment of every writer.
func (w *StoreWriter) salt() uint64 {
	b := binary.LittleEndian.AppendUint64(slices.Clone(w.cfg.Writer[:]), uint64(w.tail.Seq))
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// sent is the segment of that seq, if it is in the given phase.
func (w *StoreWriter) sent(seq segment.Seq, phase sendPhase) *outgoing {
	for _, o := range w.flight {
		if o.marker.Seq == seq && o.phase == phase {
			return o
		}
	}
	return nil
}

func (w *StoreWriter) bodyPut(ev BodyPut) {
	o := w.sent(ev.Seq, bodyPutting)
	if o == nil {
		return
	}
	switch ev.Outcome {
	case PutDone:
		o.phase = bodyStored
	case PutRefused:
		// An earlier attempt of this very body, and nothing else, may be there.
		o.phase = bodyComparing
		w.emit(CompareBody{Seq: ev.Seq, Data: o.data})
	case PutUnknown:
		// Read back first: a store may refuse a body that is there by cutting the
		// connection, which is unknown each time.
		o.phase = bodyComparing
		fallthrough
	default:
		o.fail(fmt.Errorf("put body of segment %s: %w", ev.Seq.ID(), ev.Err))
	}
}

func (w *StoreWriter) bodyCompared(ev BodyCompared) {
	o := w.sent(ev.Seq, bodyComparing)
	switch {
	case o == nil:
	case ev.Err != nil:
		o.fail(fmt.Errorf("compare body of segment %s: %w", ev.Seq.ID(), ev.Err))
	case ev.Missing:
		o.phase = bodyPutting
		o.fail(fmt.Errorf("put body of segment %s: outcome unknown, not found", ev.Seq.ID()))
	case ev.Same:
		o.phase = bodyStored
	case o.differs < comparesMax:
		o.differs++ // the reading may be at fault
		o.fail(fmt.Errorf("compare body of segment %s: %w", ev.Seq.ID(), segment.ErrDigest))
	default:
		w.fence(fmt.Errorf("%w: epoch %d has another body of segment %s", ErrFenced, w.epoch, ev.Seq.ID()))
	}
}

func (w *StoreWriter) markerPut(ev MarkerPut) {
	o := w.sent(ev.Seq, marking)
	if o == nil {
		return
	}
	o.unsure = o.unsure || ev.Slow || ev.Outcome != PutDone
	switch {
	case ev.Outcome == PutDone && !o.unsure:
		w.commit(o)
	case ev.Outcome == PutDone:
		w.askFence(o)
	case ev.Outcome == PutNot:
		o.fail(fmt.Errorf("put marker of segment %s: %w", ev.Seq.ID(), ev.Err))
	case mutant.On(mutant.NoEpochCheck):
		w.commit(o)
	default:
		// Before anything else: what is under the marker's name?
		o.phase = markerReading
		w.emit(ReadMarker{Seq: ev.Seq})
	}
}

func (w *StoreWriter) markerRead(ev MarkerRead) {
	o := w.sent(ev.Seq, markerReading)
	if o == nil {
		return
	}
	mine := o.marker.Encode()
	switch {
	case ev.Err != nil:
		o.fail(fmt.Errorf("read marker of segment %s: %w", ev.Seq.ID(), ev.Err))
	case ev.Data == nil:
		o.phase = marking
		o.fail(fmt.Errorf("put marker of segment %s: outcome unknown, not found", ev.Seq.ID()))
	case string(ev.Data) == string(mine[:]):
		w.askFence(o)
	default:
		m, err := segment.ParseMarker(ev.Data, ev.Seq)
		if err != nil { // the reading may be at fault
			o.fail(fmt.Errorf("read marker of segment %s: %w", ev.Seq.ID(), err))
			return
		}
		w.fence(fmt.Errorf("%w: segment %s is of epoch %d", ErrFenced, ev.Seq.ID(), m.Epoch))
	}
}

// askFence has the epoch looked at before the ack: the marker is there, and it may
// have been written into a log that was another's by then, and be gone again.
func (w *StoreWriter) askFence(o *outgoing) {
	o.phase = fenceReading
	w.emit(ReadFence{})
}

func (w *StoreWriter) fenceRead(ev FenceRead) {
	if len(w.flight) == 0 || w.flight[0].phase != fenceReading {
		return
	}
	o := w.flight[0]
	f, err := readFence(ev, w.cfg.Pipeline)
	switch {
	case err != nil:
		o.fail(err)
	case f.Epoch != w.epoch:
		w.fence(fencedBy(f))
	default:
		w.commit(o)
	}
}

// readFence is a whole fence of the pipeline, or why there is none to believe.
func readFence(ev FenceRead, pipeline change.PipelineID) (segment.Fence, error) {
	if ev.Err != nil {
		return segment.Fence{}, fmt.Errorf("read fence: %w", ev.Err)
	}
	f, err := segment.ParseFence(ev.Data)
	if err == nil && f.Pipeline != pipeline {
		err = fmt.Errorf("fence of pipeline %d: %w", f.Pipeline, segment.ErrIdentity)
	}
	return f, err
}

// fencedBy says who has the log.
func fencedBy(f segment.Fence) error {
	return fmt.Errorf("%w: %s, epoch %d", ErrFenced, f.Host, f.Epoch)
}

// commit: the head of the line is past its commit point, and the log is ours (A1).
func (w *StoreWriter) commit(o *outgoing) {
	w.flight[0] = nil
	w.flight = w.flight[1:]
	o.live.Groups = len(o.groups)
	w.live = append(w.live, o.live)
	if p := lastPosition(o.groups); p != "" {
		w.position = p
	}
	w.publish.add(o.commit)
}

// lastPosition is that of the last group that has one.
func lastPosition(groups []Placed) change.Position {
	for _, g := range slices.Backward(groups) {
		if g.Group.Position != "" {
			return g.Group.Position
		}
	}
	return ""
}

func (o *outgoing) fail(err error) { o.failed, o.err = true, err }

func (w *StoreWriter) retry() {
	if w.publish.failed != nil && !w.publish.underway {
		w.publish.again = true
	}
	for _, o := range w.flight {
		if !o.failed || w.fenced != nil {
			continue
		}
		o.failed, o.err = false, nil
		seq := o.marker.Seq
		switch o.phase {
		case bodyPutting:
			w.emit(PutBody{Seq: seq, Data: o.data, Marker: o.marker})
		case bodyComparing:
			w.emit(CompareBody{Seq: seq, Data: o.data})
		case marking:
			w.emit(PutMarker{Marker: o.marker})
		case markerReading:
			w.emit(ReadMarker{Seq: seq})
		case fenceReading:
			w.emit(ReadFence{})
		}
	}
}

// fence ends the writer: nothing that is not answered yet is acknowledged (F1).
func (w *StoreWriter) fence(err error) {
	if w.fenced != nil {
		return
	}
	w.fenced = err
	for _, o := range w.flight {
		w.answer(o.ids, err)
	}
	w.flight = nil
	w.answer(w.publish.pending.ids, err)
	w.publish.pending = commit{}
	w.failQueue(err)
	w.emit(Fenced{Err: err})
}

func (w *StoreWriter) answerSeals() {
	done := w.Next().Group
	rest := w.seals[:0]
	for _, s := range w.seals {
		switch {
		case w.fenced != nil:
			w.emit(Failed{ID: s.id, Err: w.fenced})
		case done >= s.group || len(w.flight) == 0 && len(w.queue) == 0:
			w.emit(Done{ID: s.id})
		default:
			rest = append(rest, s)
		}
	}
	w.seals = rest
}

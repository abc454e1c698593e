package protocol

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// RecoveryConfig is what a recovery knows beforehand.
type RecoveryConfig struct {
	Pipeline change.PipelineID
	Epoch    segment.Epoch
	// Published and PublishedEnd are the catalog's watermark: the place of the last
	// group it has.
	Published    segment.Seq
	PublishedEnd uint32
	// Checkpoint is the one found beside the log; serial 0: none.
	Checkpoint segment.Checkpoint
	// Rebuild says that the catalog knew nothing, so that the checkpoint alone says
	// which segments are gone.
	Rebuild bool
}

// Recovery reads what a dead writer left on a disk, segment by segment, in order.
// It publishes what the catalog has not, ends the segments that have no marker at
// their last whole group, finishes what a reclaim began, and deletes nothing that
// is committed. One effect is under way at a time. It fails closed: damage that is
// not a torn tail ends in Refused.
type Recovery struct {
	cfg     RecoveryConfig
	bodies  []segment.Seq // still to look at
	markers map[segment.Seq]bool
	marked  segment.Seq // the highest marker

	now  recovering
	held *walked  // waits for the next body's header
	last previous // the segment before, as read
	tail Tail     // where the log goes on behind what was read; Seq unused
	then Effect   // follows the effect under way
}

// recovering is the segment being looked at.
type recovering struct {
	marker segment.Marker
	sealed bool
}

// walked is a body as far as it has whole groups.
type walked struct {
	header segment.Header
	groups []Placed
	digest [sha256.Size]byte // of the body up to end
	end    uint32
}

// previous is what is known of the segment before.
type previous struct {
	seq    segment.Seq
	group  uint64 // the next one
	digest [sha256.Size]byte
	known  bool // digest is that of the body's groups
}

// NewRecovery makes a recovery.
func NewRecovery(cfg RecoveryConfig) *Recovery { return &Recovery{cfg: cfg} }

// Step takes an event and returns the next effect. Recovered or Refused is the last.
func (r *Recovery) Step(ev Event) Effect {
	e, err := r.step(ev)
	if err != nil {
		return Refused{Err: err}
	}
	return e
}

func (r *Recovery) step(ev Event) (Effect, error) {
	switch ev := ev.(type) {
	case Start:
		return List{}, nil
	case Listed:
		if ev.Err != nil {
			return nil, ev.Err
		}
		return r.listed(ev)
	case Deleted:
		if ev.Err != nil {
			return nil, ev.Err
		}
		return r.followUp()
	case MarkerRead:
		if ev.Err != nil {
			return nil, ev.Err
		}
		return r.markerRead(ev)
	case BodyRead:
		if ev.Err != nil {
			return nil, ev.Err
		}
		return r.bodyRead(ev)
	case Published:
		if ev.Err != nil {
			return nil, fmt.Errorf("publish recovered groups: %w", ev.Err)
		}
		return r.followUp()
	case Sealed:
		if ev.Err != nil {
			return nil, fmt.Errorf("seal segment %s: %w", ev.Seq.ID(), ev.Err)
		}
		return r.nextSegment()
	case Discarded:
		if ev.Err != nil {
			return nil, fmt.Errorf("discard segment %s: %w", ev.Seq.ID(), ev.Err)
		}
		return r.nextSegment()
	}
	return nil, fmt.Errorf("recovery: unexpected event %T", ev)
}

// listed sorts the names. A body without a marker below a marked one lost its
// marker to a reclaim, which deletes it first (R2).
//
// In a rebuild, what the checkpoint has let go was about to be deleted, and is.
func (r *Recovery) listed(ev Listed) (Effect, error) {
	r.markers = make(map[segment.Seq]bool, len(ev.Markers))
	var marked, leftover []segment.Seq
	for _, seq := range ev.Markers {
		if r.gone(seq) {
			marked = append(marked, seq)
			continue
		}
		r.markers[seq] = true
		r.marked = max(r.marked, seq)
	}
	for _, seq := range ev.Bodies {
		if !r.gone(seq) && (r.markers[seq] || seq > r.marked) {
			r.bodies = append(r.bodies, seq)
			continue
		}
		if !r.gone(seq) && seq > r.cfg.Published {
			return nil, &segment.CorruptError{Seq: seq, Cause: errors.New("marker is missing")}
		}
		leftover = append(leftover, seq)
	}
	for _, seq := range ev.Markers {
		if r.markers[seq] && !slices.Contains(r.bodies, seq) {
			return nil, &segment.CorruptError{Seq: seq, Cause: errors.New("body is missing")}
		}
	}
	if err := r.checkDensity(); err != nil {
		return nil, err
	}
	if len(leftover) > 0 {
		r.then = RecycleBodies{Seqs: leftover}
	}
	if len(marked) > 0 {
		return DeleteMarkers{Seqs: marked}, nil
	}
	return r.followUp()
}

// gone says whether the checkpoint has let a segment go that the catalog does not know:
// in a rebuild any, and else those above the watermark, since a rebuild may have ended
// in its midst.
func (r *Recovery) gone(seq segment.Seq) bool {
	c := r.cfg.Checkpoint
	if !r.cfg.Rebuild && seq <= r.cfg.Published {
		return false
	}
	_, found := slices.BinarySearch(c.Gone, seq)
	return found || seq < c.Low
}

// checkDensity: only what was published can have been reclaimed, so above the
// watermark nothing may be missing (W3).
func (r *Recovery) checkDensity() error {
	want := r.cfg.Published + 1
	if r.cfg.Rebuild {
		want = r.cfg.Checkpoint.Low
	}
	for _, seq := range r.bodies {
		if seq <= r.cfg.Published && !r.cfg.Rebuild {
			continue
		}
		if r.cfg.Published == 0 && want == 1 && r.cfg.Checkpoint.Serial == 0 {
			want = seq // a log whose catalog is new begins where it begins
		}
		for r.gone(want) {
			want++
		}
		if seq != want {
			return &segment.CorruptError{Seq: want, Cause: errors.New("segment is missing")}
		}
		want++
	}
	return nil
}

// end is the tail behind everything that was ever in the log, as far as is known.
func (r *Recovery) end() Tail {
	c := r.cfg.Checkpoint
	last := max(r.last.seq, r.cfg.Published)
	if n := len(c.Gone); n > 0 {
		last = max(last, c.Gone[n-1]) // a seq is never used again
	}
	if mutant.On(mutant.ReuseSeq) && c.Low > 1 {
		last = c.Low - 2 // so that the next is one that has been let go
		c.Low = 1
	}
	if c.Low > last {
		return Tail{Seq: c.Low, Group: c.Group, Previous: c.Previous}
	}
	r.tail.Seq = last + 1
	r.tail.Group = max(r.tail.Group, 1)
	return r.tail
}

func (r *Recovery) nextSegment() (Effect, error) {
	if len(r.bodies) == 0 {
		return Recovered{Tail: r.end()}, nil
	}
	seq := r.bodies[0]
	r.bodies = r.bodies[1:]
	r.now = recovering{sealed: r.markers[seq]}
	if r.now.sealed {
		return ReadMarker{Seq: seq}, nil
	}
	return ReadBody{Seq: seq}, nil
}

func (r *Recovery) markerRead(ev MarkerRead) (Effect, error) {
	m, err := segment.ParseMarker(ev.Data, ev.Seq)
	if err != nil {
		return nil, &segment.CorruptError{Seq: ev.Seq, Cause: err}
	}
	if m.Flags&(segment.Takeover|segment.Encrypted) != 0 {
		return nil, &segment.CorruptError{Seq: ev.Seq, Cause: segment.ErrReserved}
	}
	r.now.marker = m
	if ev.Seq < r.cfg.Published && len(r.bodies) > 0 {
		return ReadBody{Seq: ev.Seq, Bytes: segment.HeaderBytes}, nil
	}
	return ReadBody{Seq: ev.Seq, Bytes: m.Length}, nil
}

func (r *Recovery) bodyRead(ev BodyRead) (Effect, error) {
	h, err := segment.ParseHeader(ev.Data)
	if err != nil {
		return nil, &segment.CorruptError{Seq: ev.Seq, Cause: err}
	}
	if h.Seq != ev.Seq || h.Pipeline != r.cfg.Pipeline {
		return nil, &segment.CorruptError{Seq: ev.Seq, Cause: segment.ErrIdentity}
	}
	if r.held != nil {
		return r.heldUp(h)
	}
	if err := checkChain(r.last, h); err != nil {
		return nil, err
	}
	if r.now.sealed && len(ev.Data) == segment.HeaderBytes && r.now.marker.Length > segment.HeaderBytes {
		r.read(previous{seq: h.Seq, group: h.FirstGroup + uint64(r.now.marker.Groups)})
		return r.nextSegment()
	}
	var groups []Placed
	add := func(g segment.Group) error {
		groups = append(groups, Placed{Seq: h.Seq, Group: g})
		return nil
	}
	var end uint32
	if r.now.sealed {
		end, err = segment.WalkSealed(h, r.now.marker, ev.Data, add)
		if err == nil && sha256.Sum256(ev.Data) != r.now.marker.Digest && !mutant.On(mutant.NoDigest) {
			err = &segment.CorruptError{Seq: ev.Seq, Cause: segment.ErrDigest}
		}
	} else {
		end, err = segment.WalkGroups(h, ev.Data, add)
	}
	if err != nil {
		return nil, err
	}
	w := walked{header: h, groups: groups, digest: sha256.Sum256(ev.Data[:end]), end: end}
	if !r.now.sealed && len(r.bodies) > 0 && r.bodies[0] == h.Seq+1 {
		r.held = &w
		return ReadBody{Seq: r.bodies[0], Bytes: segment.HeaderBytes}, nil
	}
	return r.walked(w)
}

// heldUp goes on with a body without marker once the next one's header h agrees with it:
// where it was damaged it looks torn, and only that header knows that more was in it.
func (r *Recovery) heldUp(h segment.Header) (Effect, error) {
	w := *r.held
	r.held = nil
	if err := checkChain(w.previous(), h); err != nil {
		return nil, err
	}
	return r.walked(w)
}

// checkChain: the header h repeats the digest and the numbers of the body before.
func checkChain(last previous, h segment.Header) error {
	if last.seq == 0 || last.seq+1 != h.Seq {
		return nil
	}
	if h.FirstGroup != last.group {
		return &segment.CorruptError{Seq: last.seq, Cause: fmt.Errorf(
			"has groups up to %d, the next segment begins with %d", last.group-1, h.FirstGroup)}
	}
	if last.known && h.Previous != last.digest && !mutant.On(mutant.NoDigest) {
		return &segment.CorruptError{Seq: last.seq, Cause: fmt.Errorf(
			"the next segment's header has another: %w", segment.ErrDigest)}
	}
	return nil
}

func (w *walked) previous() previous {
	return previous{
		seq: w.header.Seq, group: w.header.FirstGroup + uint64(len(w.groups)), digest: w.digest, known: true,
	}
}

// walked publishes what the catalog has not, and ends the segment if nothing has.
func (r *Recovery) walked(w walked) (Effect, error) {
	h, groups := w.header, w.groups
	r.then = nil
	if len(groups) == 0 && !r.now.sealed {
		// Nothing in it was ever committed: the seq is free, the name goes.
		r.tail = Tail{Group: h.FirstGroup, Previous: h.Previous}
		r.then = Discard{Seq: h.Seq}
	} else {
		r.read(w.previous())
	}
	if len(groups) > 0 && !r.now.sealed {
		r.then = Seal{Seq: h.Seq, Marker: segment.Marker{
			Flags: segment.SealedByRecovery, Groups: uint16(len(groups)), Epoch: r.cfg.Epoch,
			Length: w.end, Seq: h.Seq, Digest: w.digest,
		}}
	}
	fresh, err := unpublished(h.Seq, groups, r.cfg.Published, r.cfg.PublishedEnd)
	if err != nil {
		return nil, err
	}
	if len(fresh) > 0 {
		return Publish{Groups: fresh}, nil
	}
	return r.followUp()
}

// read notes what the next segment must fit to.
func (r *Recovery) read(p previous) {
	r.last = p
	r.tail = Tail{Group: p.group, Previous: p.digest}
}

func (r *Recovery) followUp() (Effect, error) {
	if e := r.then; e != nil {
		r.then = nil
		return e, nil
	}
	return r.nextSegment()
}

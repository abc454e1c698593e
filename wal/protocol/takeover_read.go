package protocol

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/segment"
)

// reading is the part of a takeover that reads the log. Markers and bodies come in any
// order, up to a window ahead, and are looked at in order.
type reading struct {
	asked segment.Seq // the next to ask for
	seq   segment.Seq // the next to look at
	got   map[segment.Seq]*fetched
	epoch segment.Epoch // of the segment before
	// publishing: the groups of the segment before are on their way to the catalog.
	publishing bool
}

// fetched is a segment as far as it is read.
type fetched struct {
	marker segment.Marker
	body   []byte
	whole  bool
}

func (t *Takeover) readLog() {
	t.phase = readingLog
	low := t.checkpoint.Low
	t.unlisted = 0
	t.read = reading{asked: low, seq: low, got: map[segment.Seq]*fetched{}}
	t.tail = StoreTail{
		Tail:     Tail{Group: t.checkpoint.Group, Previous: t.checkpoint.Previous},
		Position: t.checkpoint.Position,
	}
	if err := t.advance(); err != nil {
		t.phase = ended
		t.out = []Effect{Refused{Err: err}}
	}
}

// advance asks for what fits the window and ends when all is read.
func (t *Takeover) advance() error {
	r := &t.read
	for r.asked <= t.next && r.asked < r.seq+segment.Seq(t.cfg.Window) {
		r.got[r.asked] = &fetched{}
		t.emit(ReadMarker{Seq: r.asked})
		r.asked++
	}
	if r.seq <= t.next || r.publishing {
		return nil
	}
	if t.cfg.Published > t.next {
		return &segment.CorruptError{Seq: t.cfg.Published, Offset: t.cfg.PublishedEnd, Cause: ErrBehind}
	}
	t.tail.Seq = t.next + 1
	t.tail.Fence, t.tail.FenceVersion = t.fence, t.fenceVersion
	t.tail.Checkpoint, t.tail.CheckpointVersion = t.checkpoint, t.version
	t.sweep()
	return nil
}

func (t *Takeover) markerRead(ev MarkerRead) error {
	f := t.read.got[ev.Seq]
	switch {
	case ev.Err != nil:
		return fmt.Errorf("read marker of segment %s: %w", ev.Seq.ID(), ev.Err)
	case t.phase != readingLog || f == nil:
		return fmt.Errorf("takeover: unexpected marker of segment %s", ev.Seq.ID())
	case ev.Data == nil:
		t.missing(ev.Seq, "marker")
		return nil
	}
	m, err := segment.ParseMarker(ev.Data, ev.Seq)
	if err == nil && m.Flags&^segment.Takeover != 0 {
		err = segment.ErrReserved
	}
	if err != nil {
		return &segment.CorruptError{Seq: ev.Seq, Cause: err}
	}
	f.marker = m
	if m.Flags&segment.Takeover == 0 {
		t.emit(FetchBody{Marker: m})
		return nil
	}
	f.whole = true
	return t.lookInOrder()
}

func (t *Takeover) bodyFetched(ev BodyFetched) error {
	f := t.read.got[ev.Seq]
	switch {
	case ev.Err != nil:
		return fmt.Errorf("read body of segment %s: %w", ev.Seq.ID(), ev.Err)
	case t.phase != readingLog || f == nil:
		return fmt.Errorf("takeover: unexpected body of segment %s", ev.Seq.ID())
	case ev.Data == nil:
		t.missing(ev.Seq, "body")
		return nil
	}
	f.body, f.whole = ev.Data, true
	return t.lookInOrder()
}

// lookInOrder looks at the segments that are whole, up to one whose groups are to be
// published.
func (t *Takeover) lookInOrder() error {
	r := &t.read
	for !r.publishing {
		f := r.got[r.seq]
		if f == nil || !f.whole {
			break
		}
		delete(r.got, r.seq)
		groups, err := t.look(f)
		if err != nil {
			return err
		}
		r.seq++
		if len(groups) > 0 {
			r.publishing = true
			t.emit(Publish{Groups: groups})
		}
	}
	return t.advance()
}

// look verifies a segment and returns the groups that the catalog has not.
func (t *Takeover) look(f *fetched) ([]Placed, error) {
	m := f.marker
	// A takeover marker may come late, and its writer then learns that it is fenced.
	if m.Epoch < t.read.epoch && m.Flags&segment.Takeover == 0 {
		return nil, &segment.CorruptError{Seq: m.Seq, Cause: fmt.Errorf(
			"epoch %d after %d: %w", m.Epoch, t.read.epoch, segment.ErrIdentity)}
	}
	t.read.epoch = max(t.read.epoch, m.Epoch)
	live := LiveSegment{Seq: m.Seq, Epoch: m.Epoch, Group: t.tail.Group, Previous: t.tail.Previous}
	if m.Flags&segment.Takeover != 0 {
		live.Takeover = true
		t.tail.Live = append(t.tail.Live, live)
		if m.Seq == t.cfg.Published {
			return nil, &segment.CorruptError{Seq: m.Seq, Offset: t.cfg.PublishedEnd, Cause: ErrBehind}
		}
		return nil, nil
	}
	groups, chain, err := t.walk(m, f.body)
	if err != nil {
		return nil, err
	}
	live.Groups = len(groups)
	t.tail.Live = append(t.tail.Live, live)
	t.tail.Group += uint64(len(groups))
	t.tail.Previous = chain
	if p := lastPosition(groups); p != "" {
		t.tail.Position = p
	}
	return unpublished(m.Seq, groups, t.cfg.Published, t.cfg.PublishedEnd)
}

// walk reads the groups of a body whose digest, identity and place are right.
func (t *Takeover) walk(m segment.Marker, body []byte) (groups []Placed, chain [32]byte, err error) {
	if len(body) != int(m.Length) {
		return nil, chain, &segment.CorruptError{Seq: m.Seq, Cause: segment.ErrLength}
	}
	if sha256.Sum256(body) != m.Digest && !mutant.On(mutant.NoDigest) {
		return nil, chain, &segment.CorruptError{Seq: m.Seq, Cause: segment.ErrDigest}
	}
	h, err := segment.ParseHeader(body)
	switch {
	case err != nil:
	case h.Seq != m.Seq || h.Pipeline != t.cfg.Pipeline || h.Epoch != m.Epoch:
		err = segment.ErrIdentity
	case h.FirstGroup != t.tail.Group:
		err = fmt.Errorf("begins with group %d, want %d: %w", h.FirstGroup, t.tail.Group, segment.ErrGroup)
	case h.Previous != t.tail.Previous:
		err = fmt.Errorf("of the segment before: %w", segment.ErrDigest)
	}
	if err != nil {
		return nil, chain, &segment.CorruptError{Seq: m.Seq, Cause: err}
	}
	end, err := segment.WalkSealed(h, m, body, func(g segment.Group) error {
		groups = append(groups, Placed{Seq: h.Seq, Group: g})
		return nil
	})
	if err != nil {
		return nil, chain, err
	}
	return groups, sha256.Sum256(body[:end]), nil
}

// unpublished are the groups of a segment behind the catalog's watermark, which must be
// the end of a group when it is in this segment.
func unpublished(seq segment.Seq, groups []Placed, published segment.Seq, end uint32) ([]Placed, error) {
	if seq < published {
		return nil, nil
	}
	if seq > published {
		return groups, nil
	}
	for i, g := range groups {
		if g.Group.End == end {
			return groups[i+1:], nil
		}
	}
	return nil, &segment.CorruptError{Seq: seq, Offset: end, Cause: ErrBehind}
}

func (t *Takeover) published(ev Published) error {
	if ev.Err != nil {
		return fmt.Errorf("publish recovered groups: %w", ev.Err)
	}
	t.read.publishing = false
	return t.lookInOrder()
}

// sweepMax bounds how many leftover markers one takeover deletes.
const sweepMax = 256

// sweep deletes what nobody can need any more: below the low seq, what a reclaim left;
// anywhere, bodies that lost their seq to another writer. A marker below the low seq is
// looked at before it goes: a takeover marker, which stays for ever, may stand beside
// the body that it kept from being committed.
func (t *Takeover) sweep() {
	t.phase = sweeping
	epochs := map[segment.Seq]segment.Epoch{}
	for _, s := range t.tail.Live {
		if !s.Takeover {
			epochs[s.Seq] = s.Epoch
		}
	}
	var bodies []BodyKey
	for _, b := range t.bodies {
		switch {
		case b.Seq < t.checkpoint.Low:
			bodies = append(bodies, b)
			if t.markers[b.Seq] && len(t.doubtful) < sweepMax {
				t.doubtful = append(t.doubtful, b.Seq)
				t.markers[b.Seq] = false // looked at once
			}
		case b.Seq <= t.next && b.Epoch < t.fence.Epoch && epochs[b.Seq] != b.Epoch:
			bodies = append(bodies, b)
		}
	}
	// What was left out for being too much waits for the next takeover, bodies too.
	t.bodies = slices.DeleteFunc(bodies, func(b BodyKey) bool { return t.markers[b.Seq] && b.Seq < t.checkpoint.Low })
	t.lookForSweep()
	t.sweepOn()
}

// lookForSweep asks for the markers that are to be looked at, a window of them at a time.
func (t *Takeover) lookForSweep() {
	for len(t.doubtful) > 0 && t.looking < t.cfg.Window {
		t.emit(ReadMarker{Seq: t.doubtful[0]})
		t.doubtful = t.doubtful[1:]
		t.looking++
	}
}

// sweepFound says what a marker below the low seq is.
func (t *Takeover) sweepFound(ev MarkerRead) {
	m, err := segment.ParseMarker(ev.Data, ev.Seq)
	switch {
	case ev.Err != nil || err != nil && ev.Data != nil:
		t.bodies = slices.DeleteFunc(t.bodies, func(b BodyKey) bool { return b.Seq == ev.Seq })
	case ev.Data != nil && m.Flags&segment.Takeover == 0:
		t.leftover = append(t.leftover, ev.Seq)
	}
	t.looking--
	t.lookForSweep()
	t.sweepOn()
}

// sweepOn deletes when all markers are looked at: markers, then bodies (R2).
func (t *Takeover) sweepOn() {
	switch {
	case t.looking > 0:
	case len(t.leftover) > 0:
		t.emit(DeleteMarkers{Seqs: t.leftover})
		t.leftover = nil
	case len(t.bodies) > 0:
		t.emit(DeleteBodies{Bodies: t.bodies})
		t.bodies = nil
	default:
		t.finish()
	}
}

// swept goes on after a deletion. What failed is left for the next takeover; no body
// goes before its marker.
func (t *Takeover) swept(err error) {
	if err != nil {
		t.finish()
		return
	}
	t.sweepOn()
}

func (t *Takeover) finish() {
	t.phase = ended
	t.emit(Recovered{Tail: t.tail.Tail})
}

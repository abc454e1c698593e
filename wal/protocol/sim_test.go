package protocol_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// sim runs the machines over a disk in memory: it completes effects in seeded order,
// some with failures, and crashes at seeded moments. Groups are named by their
// position, a number.
type sim struct {
	rng    *rand.Rand
	faults int // one in so many effects fails; 0: none

	bodies  map[segment.Seq]*body
	markers map[segment.Seq][]byte

	writer  *protocol.Writer
	pending []protocol.Effect
	trace   []byte

	nextID    uint64
	opened    uint64 // makes headers differ
	published []protocol.Placed
	done      map[uint64]bool
	failed    map[uint64]bool // and the log has not taken appends since
	never     map[uint64]bool // failed, and the log has healed: must not turn up
	spilt     map[uint64]bool // failed unpublished: must turn up
}

// body is a file: data is durable, loose is a write whose fate is not known.
type body struct {
	data  []byte
	loose []byte
	at    uint32
}

var errInjected = errors.New("injected")

func newSim(seed uint64) *sim {
	s := &sim{
		rng: rand.New(rand.NewPCG(seed, 3)), faults: 8,
		bodies: map[segment.Seq]*body{}, markers: map[segment.Seq][]byte{},
		done: map[uint64]bool{}, failed: map[uint64]bool{}, never: map[uint64]bool{},
		spilt: map[uint64]bool{},
	}
	if s.rng.IntN(3) == 0 {
		s.faults = 0
	}
	return s
}

func (s *sim) start(tail protocol.Tail) error {
	s.writer = protocol.NewWriter(protocol.WriterConfig{
		Epoch: 1, SegmentBytes: 2048, CommitBytes: 600,
	}, tail)
	s.pending = nil
	return s.feed(protocol.Start{})
}

// feed steps the writer and keeps its effects; answers are checked at once.
func (s *sim) feed(ev protocol.Event) error {
	for _, e := range s.writer.Step(ev) {
		s.trace = fmt.Appendf(s.trace, "%T ", e)
		switch e := e.(type) {
		case protocol.Done:
			if e.Placed.Seq == 0 {
				continue // a seal
			}
			if !s.isPublished(e.ID) {
				return fmt.Errorf("A1: %d done before it was published", e.ID)
			}
			s.done[e.ID] = true
		case protocol.Failed:
			if errors.Is(e.Err, protocol.ErrUnpublished) && s.onDisk(e.ID) {
				s.spilt[e.ID] = true
			} else {
				s.failed[e.ID] = true
			}
		default:
			s.pending = append(s.pending, e)
		}
	}
	if s.rng.IntN(2) == 0 {
		s.writer.Step(protocol.Settle{})
	}
	if s.writer.Refuses() == nil {
		for id := range s.failed {
			s.never[id] = true
		}
		clear(s.failed)
	}
	return nil
}

func (s *sim) isPublished(id uint64) bool {
	return slices.ContainsFunc(s.published, func(p protocol.Placed) bool {
		return idOf(p) == id
	})
}

// onDisk says whether a group is durable in some body.
func (s *sim) onDisk(id uint64) bool {
	for seq, b := range s.bodies {
		h, err := segment.ParseHeader(b.data)
		if err != nil || h.Seq != seq {
			continue
		}
		found := false
		_, _ = segment.WalkGroups(h, b.data, func(g segment.Group) error {
			found = found || idOf(protocol.Placed{Group: g}) == id
			return nil
		})
		if found {
			return true
		}
	}
	return false
}

func idOf(p protocol.Placed) uint64 {
	id, _ := strconv.ParseUint(string(p.Group.Position), 10, 64)
	return id
}

// act does one seeded thing.
func (s *sim) act(t *testing.T) error {
	switch n := s.rng.IntN(10); {
	case n < 3:
		return s.append(t)
	case n == 3 && s.rng.IntN(4) == 0:
		s.nextID++
		return s.feed(protocol.SealWanted{ID: s.nextID})
	case n == 4 && s.writer.NeedsRetry():
		return s.feed(protocol.Retry{})
	case len(s.pending) > 0:
		i := s.rng.IntN(len(s.pending))
		e := s.pending[i]
		s.pending = slices.Delete(s.pending, i, i+1)
		return s.feed(s.complete(e))
	}
	return nil
}

func (s *sim) append(t *testing.T) error {
	enc := segment.NewEncoder()
	var items []protocol.Item
	for range 1 + s.rng.IntN(4) {
		s.nextID++
		x, err := enc.Encode(&change.Group{
			Position: change.Position(strconv.FormatUint(s.nextID, 10)),
			State:    make([]byte, s.rng.IntN(300)+2500*(s.rng.IntN(20)/19)),
		})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, protocol.Item{ID: s.nextID, Group: x})
	}
	return s.feed(protocol.Append{Items: items})
}

func (s *sim) fault() error {
	if s.faults > 0 && s.rng.IntN(s.faults) == 0 {
		return errInjected
	}
	return nil
}

// complete executes an effect on the disk in memory.
func (s *sim) complete(e protocol.Effect) protocol.Event {
	err := s.fault()
	switch e := e.(type) {
	case protocol.Open:
		s.opened++
		h := segment.Header{
			Epoch: 1, Pipeline: 1, Seq: e.Seq, FirstGroup: e.FirstGroup, Previous: e.Previous,
			Salt: s.opened,
		}
		if err == nil || s.rng.IntN(2) == 0 {
			head := h.Encode()
			s.bodies[e.Seq] = &body{data: slices.Clone(head[:])}
		}
		return protocol.Opened{Header: h, Err: err}
	case protocol.Write:
		b := s.bodies[e.Seq]
		if err != nil {
			b.loose, b.at = slices.Clone(e.Data), e.Start
		} else {
			b.put(e.Start, e.Data)
		}
		return protocol.Written{Err: err}
	case protocol.Publish:
		if err == nil {
			s.published = append(s.published, e.Groups...)
		}
		return protocol.Published{Err: err}
	case protocol.Seal:
		s.seal(e, err)
		return protocol.Sealed{Seq: e.Seq, Err: err}
	case protocol.Inspect:
		out := protocol.Inspected{Seq: e.Seq, Err: err}
		if err == nil {
			out.Digest = sha256.Sum256(s.bodies[e.Seq].data[:e.End])
		}
		return out
	case protocol.Discard:
		if err == nil || s.rng.IntN(2) == 0 {
			delete(s.bodies, e.Seq)
		}
		return protocol.Discarded{Seq: e.Seq, Err: err}
	}
	panic(fmt.Sprintf("unexpected effect %T", e))
}

// seal fails after a seeded part of its work.
func (s *sim) seal(e protocol.Seal, err error) {
	b := s.bodies[e.Seq]
	parts := 3
	if err != nil {
		parts = s.rng.IntN(3)
	}
	if parts > 0 {
		if len(e.Footer) > 0 {
			b.put(e.Start, e.Footer)
		} else {
			b.data, b.loose = b.data[:e.Marker.Length], nil
		}
	}
	if parts > 1 {
		m := e.Marker.Encode()
		s.markers[e.Seq] = m[:]
	}
}

func (b *body) put(at uint32, data []byte) {
	b.data = append(b.data[:at], data...)
}

// crash lets the writes of unknown fate land or not, loses a part of what the catalog
// was not asked to keep, and recovers.
func (s *sim) crash() error {
	for _, e := range s.pending { // what was under way may have happened
		if s.rng.IntN(2) == 0 {
			continue
		}
		switch e := e.(type) {
		case protocol.Write:
			s.bodies[e.Seq].loose, s.bodies[e.Seq].at = slices.Clone(e.Data), e.Start
		case protocol.Seal:
			s.seal(e, errInjected)
		case protocol.Open:
			s.complete(e)
		}
	}
	for _, seq := range s.seqs() {
		if b := s.bodies[seq]; b.loose != nil {
			n := s.rng.IntN(len(b.loose) + 1)
			if s.rng.IntN(2) == 0 {
				n = len(b.loose)
			}
			if s.rng.IntN(2) == 0 && n > 0 { // a hole, as sectors land in any order
				from := s.rng.IntN(n)
				clear(b.loose[from:min(from+64, n)])
			}
			b.put(b.at, b.loose[:n])
			b.loose = nil
		}
	}
	s.published = s.published[:s.rng.IntN(len(s.published)+1)]
	return s.recover()
}

func (s *sim) seqs() []segment.Seq {
	var out []segment.Seq
	for seq := range s.bodies {
		out = append(out, seq)
	}
	slices.Sort(out)
	return out
}

func (s *sim) recover() error {
	cfg := protocol.RecoveryConfig{Pipeline: 1, Epoch: 1}
	if n := len(s.published); n > 0 {
		last := s.published[n-1]
		cfg.Published, cfg.PublishedEnd = last.Seq, last.Group.End
	}
	faults := s.faults
	s.faults = 0
	defer func() { s.faults = faults }()
	r := protocol.NewRecovery(cfg)
	ev := protocol.Event(protocol.Start{})
	for {
		switch e := r.Step(ev).(type) {
		case protocol.List:
			var marked []segment.Seq
			for seq := range s.markers {
				marked = append(marked, seq)
			}
			slices.Sort(marked)
			ev = protocol.Listed{Bodies: s.seqs(), Markers: marked}
		case protocol.ReadMarker:
			ev = protocol.MarkerRead{Seq: e.Seq, Data: s.markers[e.Seq]}
		case protocol.ReadBody:
			data := s.bodies[e.Seq].data
			if e.Bytes > 0 {
				data = data[:e.Bytes]
			}
			ev = protocol.BodyRead{Seq: e.Seq, Data: data}
		case protocol.Recovered:
			if err := s.check(); err != nil {
				return err
			}
			return s.start(e.Tail)
		case protocol.Refused:
			return fmt.Errorf("recovery refused: %w", e.Err)
		default:
			ev = s.complete(e)
		}
	}
}

// check compares what recovery left published with what was promised.
func (s *sim) check() error {
	seen := map[uint64]bool{}
	last := protocol.Placed{}
	for _, p := range s.published {
		if p.Seq < last.Seq || p.Seq == last.Seq && p.Group.End <= last.Group.End {
			return fmt.Errorf("W3: group at %d:%d after %d:%d", p.Seq, p.Group.End, last.Seq, last.Group.End)
		}
		last = p
		id := idOf(p)
		if seen[id] {
			return fmt.Errorf("group %d is there twice", id)
		}
		if s.never[id] {
			return fmt.Errorf("W2: group %d failed, the log healed, and it is there", id)
		}
		seen[id] = true
	}
	for _, promised := range []map[uint64]bool{s.done, s.spilt} {
		for id := range promised {
			if !seen[id] {
				return fmt.Errorf("W1: group %d is lost", id)
			}
		}
	}
	// What was not decided when the machine went down is now.
	clear(s.failed)
	return nil
}

// drain stops the faults and lets everything finish (L1).
func (s *sim) drain() error {
	s.faults = 0
	for range 1000 {
		if len(s.pending) > 0 {
			e := s.pending[0]
			s.pending = s.pending[1:]
			if err := s.feed(s.complete(e)); err != nil {
				return err
			}
			continue
		}
		if s.writer.NeedsRetry() {
			if err := s.feed(protocol.Retry{}); err != nil {
				return err
			}
			continue
		}
		if s.writer.Idle() && s.writer.Refuses() == nil {
			return nil
		}
		return fmt.Errorf("L1: stuck with nothing under way: %+v", s.writer)
	}
	return errors.New("L1: does not come to rest")
}

func schedule(t *testing.T, seed uint64) (trace []byte, err error) {
	s := newSim(seed)
	if err := s.start(protocol.Tail{Seq: 1, Group: 1}); err != nil {
		return nil, err
	}
	for range 1 + s.rng.IntN(4) {
		for range s.rng.IntN(150) {
			if err := s.act(t); err != nil {
				return s.trace, err
			}
		}
		if s.rng.IntN(4) == 0 {
			if err := s.drain(); err != nil {
				return s.trace, err
			}
			s.faults = 8
		}
		if err := s.crash(); err != nil {
			return s.trace, err
		}
	}
	return s.trace, s.drain()
}

// Whatever fails and whenever the machine goes down: nothing that was answered with
// Done is lost, nothing that failed turns up once the log has healed, and the log
// comes to rest when the faults stop.
func TestSchedules(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 400
	}
	for seed := range n {
		if trace, err := schedule(t, uint64(seed)); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, trace)
		}
	}
}

func TestScheduleRepeats(t *testing.T) {
	for seed := range uint64(20) {
		a, _ := schedule(t, seed)
		b, _ := schedule(t, seed)
		if string(a) != string(b) {
			t.Fatalf("seed %d ran differently", seed)
		}
	}
}

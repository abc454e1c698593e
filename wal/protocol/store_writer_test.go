package protocol_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// storeScript feeds a StoreWriter and keeps what it wants done, by kind.
type storeScript struct {
	t       *testing.T
	w       *protocol.StoreWriter
	bodies  []protocol.PutBody
	markers []protocol.PutMarker
	other   []protocol.Effect
	done    []uint64
	failed  map[uint64]error
}

func newStoreScript(t *testing.T) *storeScript {
	return &storeScript{
		t: t, failed: map[uint64]error{},
		w: protocol.NewStoreWriter(protocol.StoreWriterConfig{
			Pipeline: 1, Writer: [16]byte{1}, CommitBytes: 100, Bodies: 4,
		}, protocol.StoreTail{
			Tail:  protocol.Tail{Seq: 10, Group: 50},
			Fence: segment.Fence{Epoch: 3, Pipeline: 1, Beat: 9, Writer: [16]byte{1}},
		}),
	}
}

func (s *storeScript) feed(ev protocol.Event) {
	s.t.Helper()
	for _, e := range s.w.Step(ev) {
		switch e := e.(type) {
		case protocol.PutBody:
			s.bodies = append(s.bodies, e)
		case protocol.PutMarker:
			s.markers = append(s.markers, e)
		case protocol.Done:
			s.done = append(s.done, e.ID)
		case protocol.Failed:
			s.failed[e.ID] = e.Err
		case protocol.Publish:
			s.feed(protocol.Published{})
		default:
			s.other = append(s.other, e)
		}
	}
}

// append appends groups that are a commit each.
func (s *storeScript) append(ids ...uint64) {
	s.t.Helper()
	enc := segment.NewEncoder()
	for _, id := range ids {
		x, err := enc.Encode(&change.Group{
			Position: change.Position(strconv.FormatUint(id, 10)), State: make([]byte, 200),
		})
		if err != nil {
			s.t.Fatal(err)
		}
		s.feed(protocol.Append{Items: []protocol.Item{{ID: id, Group: x}}})
	}
}

func (s *storeScript) body(seq segment.Seq, out protocol.PutOutcome) {
	s.t.Helper()
	s.feed(protocol.BodyPut{Seq: seq, Outcome: out, Err: errInjected})
}

func (s *storeScript) marker(seq segment.Seq, out protocol.PutOutcome) {
	s.t.Helper()
	s.feed(protocol.MarkerPut{Seq: seq, Outcome: out, Err: errInjected})
}

func (s *storeScript) wantOther(want ...string) {
	s.t.Helper()
	var got []string
	for _, e := range s.other {
		got = append(got, fmt.Sprintf("%T", e)[len("protocol."):])
	}
	s.other = nil
	if !slices.Equal(got, want) {
		s.t.Fatalf("effects %v, want %v", got, want)
	}
}

// Bodies go up side by side, at most four; markers one after the other, in order.
func TestStoreWriterOrder(t *testing.T) {
	s := newStoreScript(t)
	s.append(1, 2, 3, 4, 5, 6)
	if len(s.bodies) != 4 || len(s.markers) != 0 {
		t.Fatalf("%d bodies and %d markers are under way", len(s.bodies), len(s.markers))
	}
	s.body(12, protocol.PutDone)
	s.body(11, protocol.PutDone)
	if len(s.markers) != 0 {
		t.Fatal("a marker goes before one that is lower")
	}
	s.body(10, protocol.PutDone)
	if len(s.markers) != 1 || s.markers[0].Marker.Seq != 10 {
		t.Fatalf("markers %v", s.markers)
	}
	for _, seq := range []segment.Seq{10, 11, 12} {
		s.marker(seq, protocol.PutDone)
	}
	if !slices.Equal(s.done, []uint64{1, 2, 3}) || len(s.bodies) != 6 {
		t.Errorf("done %v, %d bodies", s.done, len(s.bodies))
	}
	if live, position := s.w.Ledger(); len(live) != 3 || position != "3" || live[2].Group != 52 {
		t.Errorf("ledger %v at %q", live, position)
	}
}

// What is under the marker's name decides, and the epoch is looked at before the ack.
func TestStoreWriterUnknownMarker(t *testing.T) {
	foreign := segment.Marker{Epoch: 4, Seq: 10, Length: segment.HeaderBytes}.Encode()
	fence := func(epoch segment.Epoch) protocol.FenceRead {
		return protocol.FenceRead{Data: segment.Fence{Epoch: epoch, Pipeline: 1, Beat: 10, Host: "other"}.Encode()}
	}
	for _, c := range []struct {
		name  string
		steps func(s *storeScript, mine []byte)
		done  bool
		err   error
	}{
		{"mine", func(s *storeScript, mine []byte) {
			s.wantOther("ReadMarker")
			s.feed(protocol.MarkerRead{Seq: 10, Data: mine})
			s.wantOther("ReadFence")
			s.feed(fence(3))
		}, true, nil},
		{"mine, and the log another's", func(s *storeScript, mine []byte) {
			s.wantOther("ReadMarker")
			s.feed(protocol.MarkerRead{Seq: 10, Data: mine})
			s.wantOther("ReadFence")
			s.feed(fence(4))
			s.wantOther("Fenced")
		}, false, protocol.ErrFenced},
		{"another's", func(s *storeScript, mine []byte) {
			s.feed(protocol.MarkerRead{Seq: 10, Data: foreign[:]})
			s.wantOther("ReadMarker", "Fenced")
		}, false, protocol.ErrFenced},
		{"damaged on its way", func(s *storeScript, mine []byte) {
			bad := slices.Clone(mine)
			bad[20] ^= 1
			s.feed(protocol.MarkerRead{Seq: 10, Data: bad})
			s.feed(protocol.Retry{})
			s.wantOther("ReadMarker", "ReadMarker")
		}, false, nil},
		{"absent, put again", func(s *storeScript, mine []byte) {
			s.feed(protocol.MarkerRead{Seq: 10})
			if !s.w.NeedsRetry() || s.w.Stalled() == nil {
				s.t.Error("does not wait for a retry")
			}
			s.feed(protocol.Retry{})
			if len(s.markers) != 2 {
				s.t.Fatal("not put again")
			}
			s.marker(10, protocol.PutDone)
			s.wantOther("ReadMarker", "ReadFence") // unsure, once and for all
			s.feed(protocol.FenceRead{Err: errInjected})
			s.feed(protocol.Retry{})
			s.wantOther("ReadFence")
			s.feed(fence(3))
		}, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, first := range []protocol.PutOutcome{protocol.PutUnknown, protocol.PutRefused} {
				s := newStoreScript(t)
				s.append(1)
				s.body(10, protocol.PutDone)
				mine := s.markers[0].Marker.Encode()
				s.marker(10, first)
				c.steps(s, mine[:])
				if done := len(s.done) == 1; done != c.done || !errors.Is(s.failed[1], c.err) {
					t.Errorf("done %v, failed %v", done, s.failed)
				}
				s.append(2)
				if c.err != nil && (!errors.Is(s.failed[2], c.err) || len(s.bodies) != 1 || s.w.NeedsRetry()) {
					t.Error("a fenced writer goes on")
				}
			}
		})
	}
}

func TestStoreWriterSlowMarker(t *testing.T) {
	s := newStoreScript(t)
	s.append(1)
	s.body(10, protocol.PutDone)
	s.feed(protocol.MarkerPut{Seq: 10, Outcome: protocol.PutDone, Slow: true})
	s.wantOther("ReadFence")
	if len(s.done) > 0 {
		t.Error("acknowledged before the epoch was looked at")
	}
}

func TestStoreWriterBodyThere(t *testing.T) {
	s := newStoreScript(t)
	s.append(1)
	s.body(10, protocol.PutNot)
	s.feed(protocol.Retry{})
	if len(s.bodies) != 2 || string(s.bodies[0].Data) != string(s.bodies[1].Data) {
		t.Fatal("not the same body again")
	}
	s.body(10, protocol.PutRefused)
	s.wantOther("CompareBody")
	s.feed(protocol.BodyCompared{Seq: 10, Same: true})
	if len(s.markers) != 1 {
		t.Fatal("no marker")
	}
	// Another body under our own epoch: once may be the reading's fault.
	s = newStoreScript(t)
	s.append(1)
	s.body(10, protocol.PutRefused)
	for range 4 {
		s.feed(protocol.BodyCompared{Seq: 10})
		s.feed(protocol.Retry{})
	}
	if !errors.Is(s.failed[1], protocol.ErrFenced) {
		t.Errorf("failed %v", s.failed)
	}
}

// A seal is answered when what was appended before is committed.
// A body whose put has an unknown outcome is read back before it is put again: a store
// that refuses a large body without reading it may cut the connection each time.
func TestStoreWriterUnknownBody(t *testing.T) {
	s := newStoreScript(t)
	s.append(1)
	s.body(10, protocol.PutUnknown)
	s.wantOther()
	if !s.w.NeedsRetry() || !errors.Is(s.w.Stalled(), errInjected) {
		t.Errorf("stalled: %v", s.w.Stalled())
	}
	s.feed(protocol.Retry{})
	s.wantOther("CompareBody")
	if len(s.bodies) != 1 {
		t.Fatal("put again before it was read back")
	}
	s.feed(protocol.BodyCompared{Seq: 10, Missing: true})
	if len(s.bodies) != 1 || !s.w.NeedsRetry() {
		t.Fatal("does not wait for a retry")
	}
	s.feed(protocol.Retry{})
	if s.wantOther(); len(s.bodies) != 2 || string(s.bodies[0].Data) != string(s.bodies[1].Data) {
		t.Fatal("not the same body again")
	}
	s.body(10, protocol.PutUnknown)
	s.feed(protocol.Retry{})
	s.feed(protocol.BodyCompared{Seq: 10, Same: true})
	if s.wantOther("CompareBody"); len(s.bodies) != 2 || len(s.markers) != 1 {
		t.Errorf("%d bodies, %d markers", len(s.bodies), len(s.markers))
	}
}

func TestStoreWriterSeal(t *testing.T) {
	s := newStoreScript(t)
	s.feed(protocol.SealWanted{ID: 100})
	if !slices.Equal(s.done, []uint64{100}) {
		t.Error("an idle log has something to seal")
	}
	s.append(1, 2)
	s.feed(protocol.SealWanted{ID: 101})
	s.append(3)
	for _, seq := range []segment.Seq{10, 11, 12} {
		s.body(seq, protocol.PutDone)
	}
	s.marker(10, protocol.PutDone)
	if slices.Contains(s.done, 101) {
		t.Error("answered early")
	}
	s.marker(11, protocol.PutDone)
	if !slices.Contains(s.done, 101) {
		t.Error("not answered")
	}
	s.feed(protocol.SealWanted{ID: 102})
	s.feed(protocol.Superseded{Err: protocol.ErrFenced})
	if !errors.Is(s.failed[102], protocol.ErrFenced) || !errors.Is(s.failed[3], protocol.ErrFenced) {
		t.Errorf("failed %v", s.failed)
	}
}

func TestWatch(t *testing.T) {
	w := protocol.NewWatch(100)
	look := func(f *segment.Fence, at int64) bool {
		t.Helper()
		var ev protocol.FenceRead
		if f != nil {
			ev.Data = f.Encode()
		}
		free, err := w.Look(ev, at)
		if err != nil {
			t.Fatal(err)
		}
		return free
	}
	f := segment.Fence{Epoch: 1, Pipeline: 1, Beat: 1}
	if !look(nil, 0) {
		t.Error("not free though nobody has it")
	}
	if look(&f, 1000) || look(&f, 1099) {
		t.Error("free before the watch has waited")
	}
	f.Beat++
	if look(&f, 1101) || look(&f, 1200) {
		t.Error("free in spite of a beat")
	}
	if !look(&f, 1201) {
		t.Error("not free without a beat")
	}
	f.Beat, f.Released = f.Beat+1, true
	if !look(&f, 1202) {
		t.Error("not free when released")
	}
	if _, err := w.Look(protocol.FenceRead{Data: []byte("?")}, 0); err == nil {
		t.Error("damage is no error")
	}
}

func TestLease(t *testing.T) {
	fence := segment.Fence{Epoch: 2, Pipeline: 1, Beat: 5, Writer: [16]byte{1}}
	l := protocol.NewLease(fence, "v5")
	beat := l.Beat(false).(protocol.WriteFence)
	if beat.Version != "v5" || beat.Fence.Beat != 6 || beat.Fence.Released {
		t.Errorf("beat %+v", beat)
	}
	if e := l.Step(protocol.FenceWritten{Outcome: protocol.PutDone, Version: "v6"}); e != nil {
		t.Errorf("then %T", e)
	}
	if beat = l.Beat(false).(protocol.WriteFence); beat.Version != "v6" || beat.Fence.Beat != 7 {
		t.Errorf("beat %+v", beat)
	}
	// Its answer is lost, and it was done.
	if _, ok := l.Step(protocol.FenceWritten{Outcome: protocol.PutUnknown}).(protocol.ReadFence); !ok {
		t.Error("does not look")
	}
	if e := l.Step(protocol.FenceRead{Data: beat.Fence.Encode(), Version: "v7"}); e != nil {
		t.Errorf("then %T", e)
	}
	beat = l.Beat(true).(protocol.WriteFence)
	if beat.Version != "v7" || beat.Fence.Beat != 8 || !beat.Fence.Released {
		t.Errorf("beat %+v", beat)
	}
	l.Step(protocol.FenceWritten{Outcome: protocol.PutRefused})
	other := segment.Fence{Epoch: 3, Pipeline: 1, Beat: 9, Host: "b"}
	if e, ok := l.Step(protocol.FenceRead{Data: other.Encode()}).(protocol.Fenced); !ok || !errors.Is(e.Err, protocol.ErrFenced) {
		t.Error("not fenced")
	}
	if _, ok := l.Beat(false).(protocol.Fenced); !ok {
		t.Error("beats though fenced")
	}
}

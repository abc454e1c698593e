package protocol_test

import (
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

// storeSim runs the machines of several hosts over one object store, a request at a
// time: any host may sleep at any point, any answer may be lost, any write may arrive
// late or twice. Each host believes itself the writer, compacts what it has published
// into the lake and reclaims it. It is the model of fencing, with bodies.
type storeSim struct {
	rng   *rand.Rand
	store *storeModel
	hosts []*storeHost
	late  []func()
	trace []byte

	lakeEpoch segment.Epoch
	lake      map[uint64]bool // groups in the lake
	// excluded are those that the lake still names as its own, by seq: it forgets them
	// when their segment is reclaimed (P4).
	excluded map[uint64]segment.Seq
	ids      uint64
	acked    map[uint64]bool
}

// storeModel is the store: whole objects with conditional writes.
type storeModel struct {
	objects map[string][]byte
	version map[string]int
	writes  int
}

func (s *storeModel) put(key string, data []byte, v protocol.Version) (protocol.Version, bool) {
	have := protocol.Version("")
	if _, ok := s.objects[key]; ok {
		have = protocol.Version(strconv.Itoa(s.version[key]))
	}
	if have != v {
		return "", false
	}
	s.writes++
	s.objects[key], s.version[key] = data, s.writes
	return protocol.Version(strconv.Itoa(s.writes)), true
}

func (s *storeModel) get(key string) ([]byte, protocol.Version) {
	if _, ok := s.objects[key]; !ok {
		return nil, ""
	}
	return s.objects[key], protocol.Version(strconv.Itoa(s.version[key]))
}

func markerKey(seq segment.Seq) string { return seq.ID() + ".commit" }
func bodyKeyOf(k protocol.BodyKey) string {
	return fmt.Sprintf("%s-%d.seg", k.Seq.ID(), k.Epoch)
}

// storeHost is a machine. One of takeover and writer is set; neither when it is dead.
type storeHost struct {
	sim       *storeSim
	name      string
	takeover  *protocol.Takeover
	writer    *protocol.StoreWriter
	reclaim   *protocol.StoreReclaim
	epoch     segment.Epoch
	ck        segment.Checkpoint
	ckVersion protocol.Version
	pending   []task
	published []protocol.Placed
	inLake    map[segment.Seq]bool
}

// task is an effect under way.
type task struct {
	effect protocol.Effect
	feed   func(protocol.Event) error
}

func newStoreSim(seed uint64, hosts int) *storeSim {
	s := &storeSim{
		rng:  rand.New(rand.NewPCG(seed, 11)),
		lake: map[uint64]bool{}, excluded: map[uint64]segment.Seq{}, acked: map[uint64]bool{},
		store: &storeModel{objects: map[string][]byte{}, version: map[string]int{}},
	}
	for i := range hosts {
		s.hosts = append(s.hosts, &storeHost{sim: s, name: string(rune('a' + i))})
	}
	return s
}

func (s *storeSim) logf(h *storeHost, format string, args ...any) {
	s.trace = fmt.Appendf(s.trace, h.name+": "+format+"\n", args...)
}

func (h *storeHost) open() error {
	*h = storeHost{sim: h.sim, name: h.name, inLake: map[segment.Seq]bool{}}
	h.sim.ids++
	h.takeover = protocol.NewTakeover(protocol.TakeoverConfig{
		Pipeline: 1, Writer: [16]byte{byte(h.sim.ids), byte(h.sim.ids >> 8)}, Host: h.name, Window: 3,
	})
	return h.feedTakeover(protocol.Start{})
}

func (h *storeHost) feedTakeover(ev protocol.Event) error {
	for _, e := range h.takeover.Step(ev) {
		switch e := e.(type) {
		case protocol.Recovered:
			tail := h.takeover.Result()
			h.takeover, h.epoch = nil, tail.Fence.Epoch
			h.ck, h.ckVersion = tail.Checkpoint, tail.CheckpointVersion
			h.writer = protocol.NewStoreWriter(protocol.StoreWriterConfig{
				Pipeline: 1, Writer: tail.Fence.Writer, CommitBytes: 700, Bodies: 3,
			}, tail)
			h.sim.logf(h, "epoch %d goes on at %d", h.epoch, tail.Seq)
			return nil
		case protocol.Refused:
			h.sim.logf(h, "refused: %v", e.Err)
			h.takeover, h.pending = nil, nil
			var corrupt *segment.CorruptError
			if errors.As(e.Err, &corrupt) {
				return e.Err
			}
			return nil
		default:
			h.pending = append(h.pending, task{e, h.feedTakeover})
		}
	}
	return nil
}

func (h *storeHost) feedWriter(ev protocol.Event) error {
	for _, e := range h.writer.Step(ev) {
		switch e := e.(type) {
		case protocol.Done:
			if e.Placed.Seq == 0 {
				continue
			}
			h.sim.logf(h, "ack %d at %d", e.ID, e.Placed.Seq)
			h.sim.acked[e.ID] = true
			if id := idOf(e.Placed); id != e.ID {
				return fmt.Errorf("group %d is placed as %d", e.ID, id)
			}
		case protocol.Failed:
			if !errors.Is(e.Err, protocol.ErrFenced) && !errors.Is(e.Err, protocol.ErrUnpublished) {
				return fmt.Errorf("append %d: %w", e.ID, e.Err)
			}
		case protocol.Fenced:
			h.sim.logf(h, "fenced: %v", e.Err)
		default:
			h.pending = append(h.pending, task{e, h.feedWriter})
		}
	}
	return nil
}

func (h *storeHost) feedReclaim(ev protocol.Event) error {
	e := h.reclaim.Step(ev)
	switch e := e.(type) {
	case protocol.Finished, protocol.Refused:
		h.ck, h.ckVersion = h.reclaim.Checkpoint()
		if _, ok := e.(protocol.Finished); ok {
			h.writer.Forget(h.reclaim.Low())
			h.forget(h.reclaim.Low())
			h.sim.logf(h, "reclaimed below %d", h.reclaim.Low())
		}
		h.reclaim = nil
	default:
		h.pending = append(h.pending, task{e, h.feedReclaim})
	}
	return nil
}

// act does one seeded thing on a host.
func (h *storeHost) act(t *testing.T) error {
	s := h.sim
	switch n := s.rng.IntN(12); {
	case h.takeover == nil && h.writer == nil, n == 0 && s.rng.IntN(12) == 0:
		return h.open() // started, or died and started again
	case h.writer == nil:
	case n < 3:
		return h.append(t)
	case n == 3 && h.writer.NeedsRetry():
		return h.feedWriter(protocol.Retry{})
	case n == 4:
		return h.compact()
	case n == 5 && h.reclaim == nil:
		return h.startReclaim()
	}
	if len(h.pending) == 0 {
		return nil
	}
	i := s.rng.IntN(len(h.pending))
	job := h.pending[i]
	h.pending = slices.Delete(h.pending, i, i+1)
	return job.feed(h.complete(job.effect))
}

func (h *storeHost) append(t *testing.T) error {
	if h.writer.Refuses() != nil {
		return nil
	}
	enc := segment.NewEncoder()
	var items []protocol.Item
	for range 1 + h.sim.rng.IntN(3) {
		h.sim.ids++
		x, err := enc.Encode(&change.Group{
			Position: change.Position(strconv.FormatUint(h.sim.ids, 10)), State: make([]byte, 200),
		})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, protocol.Item{ID: h.sim.ids, Group: x})
	}
	return h.feedWriter(protocol.Append{Items: items})
}

// compact moves what this host has published into the lake, in one commit that the lake
// refuses to older epochs, and that leaves out what the lake names as its own.
func (h *storeHost) compact() error {
	if h.epoch < h.sim.lakeEpoch {
		return nil
	}
	for _, p := range h.published {
		id := idOf(p)
		h.inLake[p.Seq] = true
		if _, ok := h.sim.excluded[id]; ok {
			continue
		}
		if h.sim.lake[id] {
			return fmt.Errorf("M1: group %d is in the lake twice", id)
		}
		h.sim.lake[id], h.sim.excluded[id] = true, p.Seq
	}
	h.published = nil
	return nil
}

// forget is a lake commit that names reclaimed groups no more.
func (h *storeHost) forget(low segment.Seq) {
	if h.epoch < h.sim.lakeEpoch {
		return
	}
	for id, seq := range h.sim.excluded {
		if seq < low {
			delete(h.sim.excluded, id)
		}
	}
}

func (h *storeHost) startReclaim() error {
	live, _ := h.writer.Ledger()
	var seqs []segment.Seq
	for _, s := range live {
		pending := slices.ContainsFunc(h.published, func(p protocol.Placed) bool { return p.Seq == s.Seq })
		if h.inLake[s.Seq] && !pending {
			seqs = append(seqs, s.Seq)
		}
	}
	var err error
	h.reclaim, err = protocol.NewStoreReclaim(protocol.StoreReclaimConfig{
		Seqs: seqs, Live: live, Next: h.writer.Next(), Checkpoint: h.ck, Version: h.ckVersion,
	})
	if err != nil {
		return err
	}
	return h.feedReclaim(protocol.Start{})
}

// write is a conditional write under faults.
func (h *storeHost) write(key string, data []byte, v protocol.Version) (protocol.Version, protocol.PutOutcome) {
	s := h.sim
	switch s.rng.IntN(14) {
	case 0: // lost on its way
		return "", protocol.PutUnknown
	case 1: // refused by the server
		return "", protocol.PutNot
	case 2: // arrives later, or never
		s.late = append(s.late, func() { s.store.put(key, data, v) })
		return "", protocol.PutUnknown
	case 3: // the answer is lost
		s.store.put(key, data, v)
		return "", protocol.PutUnknown
	case 4: // done twice, the second answer counts
		s.store.put(key, data, v)
	case 5: // and a copy is under way
		s.late = append(s.late, func() { s.store.put(key, data, v) })
	}
	next, ok := s.store.put(key, data, v)
	if !ok {
		return "", protocol.PutRefused
	}
	return next, protocol.PutDone
}

func (h *storeHost) remove(keys []string) error {
	s := h.sim
	for i, k := range keys {
		switch s.rng.IntN(12) {
		case 0:
			return errInjected
		case 1:
			s.late = append(s.late, func() {
				for _, k := range keys[i:] {
					delete(s.store.objects, k)
				}
			})
			return errInjected
		}
		delete(s.store.objects, k)
	}
	return nil
}

func (h *storeHost) complete(e protocol.Effect) protocol.Event {
	s := h.sim
	lost := s.rng.IntN(14) == 0 // of a read
	fail := func() error {
		if lost {
			return errInjected
		}
		return nil
	}
	// A takeover has its reads repeated by its runner.
	if h.takeover != nil {
		lost = false
	}
	switch e := e.(type) {
	case protocol.PutBody:
		_, out := h.write(bodyKeyOf(protocol.BodyKey{Seq: e.Seq, Epoch: h.epoch}), e.Data, "")
		return protocol.BodyPut{Seq: e.Seq, Outcome: out, Err: errInjected}
	case protocol.CompareBody:
		data, _ := s.store.get(bodyKeyOf(protocol.BodyKey{Seq: e.Seq, Epoch: h.epoch}))
		err := fail()
		return protocol.BodyCompared{
			Seq: e.Seq, Same: string(data) == string(e.Data), Missing: data == nil && err == nil, Err: err,
		}
	case protocol.PutMarker:
		b := e.Marker.Encode()
		_, out := h.write(markerKey(e.Marker.Seq), b[:], "")
		s.logf(h, "marker %d epoch %d: %d", e.Marker.Seq, e.Marker.Epoch, out)
		return protocol.MarkerPut{Seq: e.Marker.Seq, Outcome: out, Slow: s.rng.IntN(20) == 0, Err: errInjected}
	case protocol.ReadMarker:
		data, _ := s.store.get(markerKey(e.Seq))
		return protocol.MarkerRead{Seq: e.Seq, Data: data, Err: fail()}
	case protocol.ReadFence:
		data, v := s.store.get("fence")
		return protocol.FenceRead{Data: data, Version: v, Err: fail()}
	case protocol.WriteFence:
		v, out := h.write("fence", e.Fence.Encode(), e.Version)
		return protocol.FenceWritten{Version: v, Outcome: out, Err: errInjected}
	case protocol.ReadCheckpoint:
		data, v := s.store.get("checkpoint")
		return protocol.CheckpointRead{Data: data, Version: v, Err: fail()}
	case protocol.WriteCheckpoint:
		b, err := e.Checkpoint.Encode()
		if err != nil {
			panic(err)
		}
		v, out := h.write("checkpoint", b, e.Version)
		s.logf(h, "checkpoint low %d epoch %d: %d", e.Checkpoint.Low, e.Checkpoint.Epoch, out)
		return protocol.CheckpointWritten{Version: v, Outcome: out, Err: errInjected}
	case protocol.Publish:
		for _, p := range e.Groups {
			if _, ok := s.excluded[idOf(p)]; ok {
				h.inLake[p.Seq] = true
			} else {
				h.published = append(h.published, p)
			}
		}
		return protocol.Published{}
	case protocol.FenceLake:
		s.lakeEpoch = max(s.lakeEpoch, e.Epoch)
		return protocol.LakeFenced{}
	case protocol.ListPage:
		return s.list(e)
	case protocol.FetchBody:
		data, _ := s.store.get(bodyKeyOf(protocol.BodyKey{Seq: e.Marker.Seq, Epoch: e.Marker.Epoch}))
		return protocol.BodyFetched{Seq: e.Marker.Seq, Data: data}
	case protocol.Wait:
		return protocol.Retry{}
	case protocol.DeleteMarkers:
		var keys []string
		for _, seq := range e.Seqs {
			keys = append(keys, markerKey(seq))
		}
		return protocol.Deleted{Err: h.remove(keys)}
	case protocol.DeleteBodies:
		var keys []string
		for _, k := range e.Bodies {
			keys = append(keys, bodyKeyOf(k))
		}
		return protocol.Deleted{Err: h.remove(keys)}
	}
	panic(fmt.Sprintf("unexpected effect %T", e))
}

// list returns a page of three keys.
func (s *storeSim) list(e protocol.ListPage) protocol.PageListed {
	var keys []string
	for k := range s.store.objects {
		if k > e.Token && k[0] == '0' {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var out protocol.PageListed
	if len(keys) > 3 {
		keys = keys[:3]
		out.Next = keys[2]
	}
	for _, k := range keys {
		seq, _ := strconv.ParseUint(k[:16], 16, 64)
		if k[16] == '.' {
			out.Markers = append(out.Markers, segment.Seq(seq))
			continue
		}
		epoch, _ := strconv.Atoi(k[17 : len(k)-len(".seg")])
		out.Bodies = append(out.Bodies, protocol.BodyKey{Seq: segment.Seq(seq), Epoch: segment.Epoch(epoch)})
	}
	return out
}

// run runs a schedule and then lets a fresh host recover: all that was acknowledged is
// in the lake or in the log.
func (s *storeSim) run(t *testing.T, steps int) error {
	cur := s.hosts[0]
	for range steps {
		if s.rng.IntN(12) == 0 { // else the others sleep on
			cur = s.hosts[s.rng.IntN(len(s.hosts))]
		}
		if len(s.late) > 0 && s.rng.IntN(10) == 0 {
			i := s.rng.IntN(len(s.late))
			s.late[i]()
			s.late = slices.Delete(s.late, i, i+1)
		}
		if err := cur.act(t); err != nil {
			return err
		}
	}
	last := &storeHost{sim: s, name: "z"}
	if err := last.open(); err != nil {
		return err
	}
	for last.takeover != nil {
		job := last.pending[0]
		last.pending = last.pending[1:]
		if err := job.feed(last.complete(job.effect)); err != nil {
			return err
		}
	}
	if last.writer == nil {
		return errors.New("the last host could not take over")
	}
	for id := range s.acked {
		if !s.lake[id] && !slices.ContainsFunc(last.published, func(p protocol.Placed) bool { return idOf(p) == id }) {
			return fmt.Errorf("W1: group %d was acknowledged and is nowhere", id)
		}
	}
	return nil
}

func runStoreSim(t *testing.T, seed uint64) (*storeSim, error) {
	s := newStoreSim(seed, 2+int(seed%3))
	return s, s.run(t, 150+int(seed%200))
}

func TestStoreSchedules(t *testing.T) {
	n := uint64(3000)
	if testing.Short() {
		n = 300
	}
	acked, reclaimed := 0, 0
	for seed := range n {
		s, err := runStoreSim(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, s.trace)
		}
		acked += len(s.acked)
		if c, err := segment.ParseCheckpoint(s.store.objects["checkpoint"]); err == nil && c.Low > 1 {
			reclaimed++
		}
	}
	t.Logf("%d schedules, %d groups acknowledged, %d logs reclaimed", n, acked, reclaimed)
	if acked < int(n) || reclaimed < int(n)/4 {
		t.Errorf("only %d groups acknowledged and %d logs reclaimed: the schedules prove little", acked, reclaimed)
	}
}

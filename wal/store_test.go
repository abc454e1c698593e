package wal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// host is a machine with a log on a store that several hosts share.
type host struct {
	t     *testing.T
	fs    *crashfs.FS
	cat   *catalog
	clock *env.Fake
	log   *wal.Stepped
	deps  wal.Deps
	cfg   wal.Config
}

func newHost(t *testing.T, name string, store objstore.Store, seed uint64) *host {
	h := &host{t: t, fs: crashfs.New(), cat: &catalog{}, clock: env.NewFake(start, seed)}
	h.deps = wal.Deps{
		Publisher: h.cat, Clock: h.clock, IDs: h.clock, FS: h.fs, Store: store,
	}
	h.cfg = wal.Config{
		Dir: "/mirror", Pipeline: pipeline, GroupBytes: 4 << 10, Prefix: "p7", Owner: name,
		Linger: -1, LeaseTTL: 15 * time.Second,
	}
	return h
}

func (h *host) open() {
	h.t.Helper()
	h.log = mustStep(h.t, h.cfg, h.deps)
}

// drive steps until nothing has anything to do.
func (h *host) drive() {
	h.t.Helper()
	for did := true; did; {
		did = false
		for _, part := range []wal.Part{wal.Owner, wal.Bodies, wal.Commits, wal.Background} {
			d, err := h.log.Step(h.t.Context(), part)
			must(h.t, err)
			did = did || d
		}
	}
}

func (h *host) start(position string, from int64) *wal.Pending {
	h.t.Helper()
	p, err := h.log.Log().Start(h.t.Context(), group(position, batch(1, from, 3, 10)))
	must(h.t, err)
	return p
}

func (h *host) append(position string, from int64) wal.CommittedGroup {
	h.t.Helper()
	p := h.start(position, from)
	h.drive()
	return mustOutcome(h.t, p)
}

func (h *host) reclaim(seqs ...segment.Seq) error {
	h.t.Helper()
	p, err := h.log.Log().StartReclaim(seqs)
	must(h.t, err)
	h.drive()
	_, err, done := p.Outcome()
	if !done {
		h.t.Fatal("reclaim is not done")
	}
	return err
}

func keys(s *memstore.Store) string {
	var out []string
	for k := range s.All() {
		out = append(out, strings.TrimPrefix(k, "p7/"))
	}
	return strings.Join(out, " ")
}

func TestStoreCommits(t *testing.T) {
	store := memstore.New()
	h := newHost(t, "a", store, 1)
	h.open()
	one, two := h.append("1", 10), h.append("2", 20)
	want := "checkpoint fence s/0000000000000001.seg.commit " + // the takeover's
		"s/0000000000000002-00000001.seg s/0000000000000002.seg.commit " +
		"s/0000000000000003-00000001.seg s/0000000000000003.seg.commit"
	if got := keys(store); got != want {
		t.Errorf("keys %s", got)
	}
	r := wal.OpenReaderFS(h.fs, "/mirror")
	must(t, checkRows(r, one.Slices[0], 10, 3, 10))
	must(t, checkRows(r, two.Slices[0], 20, 3, 10))
	var out strings.Builder
	must(t, wal.Dump(&out, "/mirror", wal.DumpOptions{FS: h.fs}))
	if n := strings.Count(out.String(), "digest verified"); n != 2 {
		t.Errorf("dump:\n%s", &out)
	}
	must(t, h.log.Log().Close())
}

// The next writer needs nothing of the first one's host.
func TestStoreTakeoverByAnotherHost(t *testing.T) {
	store := memstore.New()
	a, b := newHost(t, "a", store, 1), newHost(t, "b", store, 2)
	a.open()
	a.append("1", 10)
	late := a.start("2", 20) // on its way while b takes over
	b.open()
	if got := b.cat.all(); len(got) != 1 || got[0].Position != "1" {
		t.Fatalf("b published %v", got)
	}
	r := wal.OpenReaderFS(b.fs, "/mirror")
	must(t, checkRows(r, b.cat.all()[0].Slices[0], 10, 3, 10))
	a.drive()
	if _, err, done := late.Outcome(); !done || !errors.Is(err, wal.ErrFenced) {
		t.Errorf("a's append: done %v, %v", done, err)
	}
	if !strings.Contains(fmt.Sprint(a.log.Log().Settled()), "another host") {
		t.Errorf("settled: %v", a.log.Log().Settled())
	}
	if err := a.log.Log().Settle(t.Context()); !errors.Is(err, wal.ErrFenced) {
		t.Errorf("settle: %v", err)
	}
	b.append("3", 30)
	if n := len(a.cat.all()); n != 1 {
		t.Errorf("a published %d groups", n)
	}
	must(t, a.log.Log().Close())
	must(t, b.log.Log().Close())
	// b's host is gone: a third one finds all.
	c := newHost(t, "c", store, 3)
	c.open()
	if got := c.cat.all(); len(got) != 2 || got[1].Position != "3" {
		t.Errorf("c published %v", got)
	}
}

func TestStoreReclaimFromTheBeginning(t *testing.T) {
	store := memstore.New()
	h := newHost(t, "a", store, 1)
	h.open()
	for i := range 4 {
		h.append(fmt.Sprint(i), int64(10*i)) // segments 2 to 5
	}
	if err := h.reclaim(3, 5); !errors.Is(err, wal.ErrHeld) {
		t.Errorf("reclaim past segment 2: %v", err)
	}
	must(t, h.reclaim(2, 3))
	var held *wal.HeldError
	if err := h.reclaim(3, 5); !errors.As(err, &held) || held.Low != 4 || held.Seq != 5 {
		t.Errorf("reclaim past segment 4: %v", err)
	}
	if err := h.reclaim(9); !errors.Is(err, wal.ErrActive) {
		t.Errorf("reclaim of a segment to come: %v", err)
	}
	want := "checkpoint fence s/0000000000000001.seg.commit " +
		"s/0000000000000004-00000001.seg s/0000000000000004.seg.commit " +
		"s/0000000000000005-00000001.seg s/0000000000000005.seg.commit"
	if got := keys(store); got != want {
		t.Errorf("keys %s", got)
	}
	if _, err := wal.OpenReaderFS(h.fs, "/mirror").ReadSlice(t.Context(), h.cat.all()[0].Slices[0]); !errors.Is(err, wal.ErrSliceLost) {
		t.Errorf("read of a reclaimed slice: %v", err)
	}
	must(t, h.reclaim(2, 3)) // again
	must(t, h.log.Log().Close())

	// A host whose catalog knows nothing begins with the checkpoint.
	o, err := store.Get(t.Context(), "p7/checkpoint", objstore.Range{})
	must(t, err)
	kept, err := segment.ParseCheckpoint(o.Data)
	if err != nil || kept.Low != 4 || kept.Group != 3 || kept.Position != "3" {
		t.Errorf("checkpoint %+v, %v", kept, err)
	}
	b := newHost(t, "b", store, 2)
	b.open()
	if got := b.cat.all(); len(got) != 2 || got[0].Seq != 4 {
		t.Errorf("published %v", got)
	}
	must(t, b.reclaim(4, 5))
	b.append("4", 40)
	must(t, b.log.Log().Close())
}

func TestStoreLingersForMore(t *testing.T) {
	store := memstore.New()
	h := newHost(t, "a", store, 1)
	h.cfg.Linger = 250 * time.Millisecond
	h.open()
	first := h.start("1", 10)
	h.drive()
	h.clock.Advance(200 * time.Millisecond)
	second := h.start("2", 20)
	h.drive()
	if _, _, done := first.Outcome(); done {
		t.Fatal("committed before the linger is over")
	}
	h.clock.Advance(50 * time.Millisecond)
	h.drive()
	if a, b := mustOutcome(t, first), mustOutcome(t, second); a.Seq != b.Seq {
		t.Errorf("in segments %d and %d", a.Seq, b.Seq)
	}
	// A full commit does not wait, nor does a seal.
	p, err := h.log.Log().Start(t.Context(), group("3", batch(1, 30, 60, 100)))
	must(t, err)
	h.drive()
	mustOutcome(t, p)
	p = h.start("4", 40)
	seal, err := h.log.Log().StartSeal()
	must(t, err)
	h.drive()
	mustOutcome(t, p)
	mustOutcome(t, seal)
	must(t, h.log.Log().Close())
}

// Whatever a request's answer is, the append ends once, and only when it is committed.
func TestStoreFaultsOfEveryRequest(t *testing.T) {
	kinds := []faultstore.Kind{
		faultstore.Refused, faultstore.Conflicted, faultstore.LostRequest, faultstore.LostReply,
		faultstore.Late, faultstore.Duplicated, faultstore.Repeated,
	}
	for _, kind := range kinds {
		for at := range 6 {
			t.Run(fmt.Sprintf("%v/%d", kind, at), func(t *testing.T) {
				mem, n, on := memstore.New(), 0, false
				way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
					if n++; on && n == at+1 && op.Applies(kind) {
						return faultstore.Fault{Kind: kind}
					}
					return faultstore.Fault{}
				}})
				h := newHost(t, "a", way, 1)
				h.deps.Clock = fastSleep{h.clock}
				h.open()
				n, on = 0, true
				p, q := h.start("1", 10), h.start("2", 20)
				for range 8 {
					h.drive()
					h.clock.Advance(5 * time.Second)
				}
				mustOutcome(t, p)
				mustOutcome(t, q)
				for len(way.Late()) > 0 {
					_, _ = way.Deliver(t.Context(), 0)
				}
				must(t, h.reclaim(2))
				must(t, h.log.Log().Close())
				b := newHost(t, "b", mem, 2)
				b.open()
				b.append("3", 30)
			})
		}
	}
}

func TestStoreDamageStopsTheOpening(t *testing.T) {
	for _, key := range []string{"p7/s/0000000000000002.seg.commit", "p7/s/0000000000000002-00000001.seg", "p7/checkpoint", "p7/fence"} {
		store := memstore.New()
		h := newHost(t, "a", store, 1)
		h.open()
		h.append("1", 10)
		h.append("2", 10)
		must(t, h.log.Log().Close())
		got, err := store.Get(t.Context(), key, objstore.Range{})
		must(t, err)
		bad := append([]byte(nil), got.Data...)
		bad[len(bad)/2] ^= 1
		_, err = store.Put(t.Context(), key, bad, objstore.IfMatch(got.Version))
		must(t, err)
		b := newHost(t, "b", store, 2)
		b.deps.Clock = fastSleep{b.clock}
		if _, err := wal.OpenStepped(t.Context(), b.cfg, b.deps); err == nil {
			t.Errorf("%s: opened", key)
		}
		if n := len(b.cat.all()); n != 0 {
			t.Errorf("%s: %d groups published", key, n)
		}
	}
}

// fastSleep sleeps by advancing the clock.
type fastSleep struct{ *env.Fake }

func (c fastSleep) Sleep(ctx context.Context, d time.Duration) error {
	c.Advance(d)
	return context.Cause(ctx)
}

func TestStoreLease(t *testing.T) {
	store := memstore.New()
	a, b := newHost(t, "a", store, 1), newHost(t, "b", store, 2)
	c, err := wal.NewCandidate(b.cfg, b.deps)
	must(t, err)
	free := func() bool {
		t.Helper()
		free, _, err := c.Step(t.Context())
		must(t, err)
		return free
	}
	if !free() {
		t.Error("a log that was never opened is not free")
	}
	a.open()
	for range 20 { // a beats, b's clock goes on
		if free() {
			t.Fatal("free while its writer beats")
		}
		a.clock.Advance(5 * time.Second)
		b.clock.Advance(5 * time.Second)
		if did, err := a.log.Step(t.Context(), wal.Lease); !did || err != nil {
			t.Fatal(did, err)
		}
	}
	free()
	b.clock.Advance(14 * time.Second)
	if free() {
		t.Error("free before the lease is over")
	}
	b.clock.Advance(time.Second)
	if !free() {
		t.Error("not free after the lease is over")
	}
	b.open()
	a.clock.Advance(5 * time.Second)
	if _, err := a.log.Step(t.Context(), wal.Lease); err != nil {
		t.Fatal(err)
	}
	a.drive()
	if !errors.Is(a.log.Log().Settled(), wal.ErrFenced) {
		t.Errorf("the beat of a fenced writer: %v", a.log.Log().Settled())
	}
	must(t, b.log.Log().Close()) // releases
	d, err := wal.NewCandidate(a.cfg, a.deps)
	must(t, err)
	if free, holder, err := d.Step(t.Context()); !free || holder.Host != "b" || err != nil {
		t.Errorf("released: free %v, holder %+v, %v", free, holder, err)
	}
}

// The log with its goroutines runs the same code.
func TestStoreLogRuns(t *testing.T) {
	store := memstore.New()
	cat := &catalog{}
	d := deps(crashfs.New(), cat)
	d.Store = store
	cfg := wal.Config{Dir: "/mirror", Pipeline: pipeline, Prefix: "p7", Linger: time.Millisecond, GroupBytes: 2 << 10}
	l := mustOpen(t, cfg, d)
	done := make(chan error, 8)
	for w := range 8 {
		go func() {
			for i := range 20 {
				if _, err := l.Append(context.Background(), group(fmt.Sprint(w, i), batch(1, int64(i), 3, 10))); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		must(t, <-done)
	}
	must(t, l.SealActive(t.Context()))
	must(t, l.Reclaim(t.Context(), []segment.Seq{2}))
	if n := len(cat.all()); n != 160 {
		t.Errorf("%d groups published", n)
	}
	must(t, l.Close())
	again := mustOpen(t, cfg, d)
	mustAppend(t, again, group("end", batch(1, 1, 3, 10)))
	must(t, again.Close())
}

// cuttingStore stores each body and loses the answer; when the body is there it cuts the
// connection without looking at it, as some stores do.
type cuttingStore struct {
	objstore.Store
	puts int
}

func (s *cuttingStore) Put(
	ctx context.Context, key string, body []byte, cond objstore.Condition,
) (objstore.Version, error) {
	v, err := s.Store.Put(ctx, key, body, cond)
	if strings.HasSuffix(key, ".seg") {
		s.puts++
		return "", objstore.ErrUnknown
	}
	return v, err
}

// A body that is there is found although every put of it has an unknown outcome.
func TestStoreCutsConnection(t *testing.T) {
	store := &cuttingStore{Store: memstore.New()}
	h := newHost(t, "one", store, 1)
	h.open()
	p := h.start("1", 0)
	for range 3 {
		h.drive()
		h.clock.Advance(time.Second)
	}
	mustOutcome(t, p)
	if store.puts != 1 {
		t.Errorf("the body was put %d times", store.puts)
	}
}

package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
)

// Two hosts take a log from each other, die and come back, over a store that refuses,
// loses answers and delivers late: what was acknowledged is there in the end, with the
// rows it had.
func TestStoreHostsTakeTurns(t *testing.T) {
	acked := 0
	for seed := range uint64(60) {
		acked += hostsTakeTurns(t, seed)
	}
	if acked < 300 {
		t.Errorf("only %d groups were acknowledged", acked)
	}
}

func hostsTakeTurns(t *testing.T, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 5))
	mem, acked := memstore.New(), map[string]bool{}
	var hosts []*host
	var ways []*faultstore.Store
	pending := map[string]*wal.Pending{}
	kinds := []faultstore.Kind{
		faultstore.Refused, faultstore.Conflicted, faultstore.LostRequest, faultstore.LostReply, faultstore.Late,
		faultstore.Duplicated, faultstore.Repeated, faultstore.Flipped, faultstore.Torn, faultstore.ShortPage,
	}
	for i := range 2 {
		way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
			if kind := kinds[rng.IntN(len(kinds))]; rng.IntN(12) == 0 && op.Applies(kind) {
				return faultstore.Fault{Kind: kind, N: uint64(rng.IntN(400))}
			}
			return faultstore.Fault{}
		}})
		h := newHost(t, fmt.Sprint(i), way, seed*2+uint64(i))
		h.deps.Clock = fastSleep{h.clock}
		hosts, ways = append(hosts, h), append(ways, way)
	}
	open := func(h *host) {
		h.fs = h.fs.Crash(rng, 0.5)
		h.deps.FS, h.cat = h.fs, &catalog{}
		h.deps.Publisher, h.log = h.cat, nil
		s, err := wal.OpenStepped(t.Context(), h.cfg, h.deps)
		if err == nil {
			h.log = s
		}
	}
	for i := range 500 {
		h := hosts[rng.IntN(2)]
		switch n := rng.IntN(200); {
		case h.log == nil || n == 0:
			if h.log != nil {
				h.log.Abandon()
			}
			open(h)
		case n < 20:
			name := fmt.Sprint(i)
			if p, err := h.log.Log().Start(t.Context(), group(name, batch(1, int64(i), 3, 10))); err == nil {
				pending[name] = p
			}
		case n == 20:
			h.clock.Advance(10 * time.Second)
		case n < 24:
			if w := ways[rng.IntN(2)]; len(w.Late()) > 0 {
				_, _ = w.Deliver(t.Context(), rng.IntN(len(w.Late())))
			}
		default:
			_, _ = h.log.Step(t.Context(), wal.Part(rng.IntN(5)))
		}
		for name, p := range pending {
			if _, err, done := p.Outcome(); done {
				acked[name] = acked[name] || err == nil
				delete(pending, name)
			}
		}
		if h.log != nil && errors.Is(h.log.Log().Settled(), wal.ErrFenced) {
			h.log.Abandon()
			h.log = nil
		}
	}
	last := newHost(t, "last", mem, 99)
	last.deps.Clock = fastSleep{last.clock}
	last.open()
	found := map[string]wal.CommittedGroup{}
	for _, g := range last.cat.all() {
		if _, twice := found[string(g.Position)]; twice {
			t.Errorf("seed %d: group %s is in the log twice", seed, g.Position)
		}
		found[string(g.Position)] = g
	}
	n := 0
	r := wal.OpenReaderFS(last.fs, "/mirror")
	for name, ok := range acked {
		if !ok {
			continue
		}
		n++
		var from int64
		_, _ = fmt.Sscan(name, &from)
		g, there := found[name]
		if !there {
			t.Fatalf("seed %d: group %s was acknowledged and is not in the log", seed, name)
		}
		if err := checkRows(r, g.Slices[0], from, 3, 10); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	return n
}

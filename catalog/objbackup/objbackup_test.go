package objbackup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
)

func ids(seed uint64) env.IDs { return env.NewFake(time.Unix(0, 0), seed) }

func read(t *testing.T, s *Store) string {
	t.Helper()
	b, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A write that may have happened says so, though the store does not answer any more when it is
// tried again.
func TestInDoubt(t *testing.T) {
	puts := 0
	way := faultstore.New(memstore.New(), faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
		switch {
		case op.Verb == faultstore.Put:
			if puts++; puts == 1 {
				return faultstore.Fault{Kind: faultstore.LostReply}
			}
		case puts == 0:
			return faultstore.Fault{}
		}
		return faultstore.Fault{Kind: faultstore.Refused}
	}})
	err := New(way, "a/facts", ids(1)).Write([]byte("image"))
	if !errors.Is(err, objstore.ErrUnknown) || puts != attempts {
		t.Errorf("after %d tries: %v, want that its outcome is unknown", puts, err)
	}
}

// Whatever goes wrong on the way: a write that succeeded is what is read, one that failed
// is the newest or not at all, and the next one succeeds.
func TestFaults(t *testing.T) {
	kinds := []faultstore.Kind{
		faultstore.None, faultstore.None, faultstore.Refused, faultstore.Conflicted, faultstore.LostRequest,
		faultstore.LostReply, faultstore.Late, faultstore.Duplicated, faultstore.Repeated, faultstore.Flipped,
		faultstore.Torn, faultstore.StaleVersion,
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem, quiet := memstore.New(), false
		way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
			k := kinds[rng.IntN(len(kinds))]
			if quiet || !op.Applies(k) {
				return faultstore.Fault{}
			}
			return faultstore.Fault{Kind: k, N: rng.Uint64N(64)}
		}})
		s := New(way, "a/facts", ids(seed))
		want := ""
		for i := range 12 {
			image := fmt.Sprint("image ", i)
			err := s.Write([]byte(image))
			quiet = true
			if late := len(way.Late()); late > 0 && rng.IntN(2) == 0 {
				_, _ = way.Deliver(t.Context(), rng.IntN(late)) // its answer is lost
			}
			got := read(t, New(mem, "a/facts", ids(99)))
			if err == nil {
				want = image
			}
			if got != want && (err == nil || got != image) {
				t.Fatalf("seed %d: after write %d (%v) the store has %q, want %q", seed, i, err, got, want)
			}
			want = got
			if err := s.Write([]byte(image)); err != nil {
				t.Fatalf("seed %d: write without faults: %v", seed, err)
			}
			want, quiet = image, false
		}
	}
}

// A machine that was taken over cannot write any more; the one that took over can.
func TestSuperseded(t *testing.T) {
	mem := memstore.New()
	first := New(mem, "facts", ids(1))
	if got := read(t, first); got != "" {
		t.Errorf("read of nothing: %q", got)
	}
	if err := first.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	second := New(mem, "facts", ids(2))
	if got := read(t, second); got != "a" {
		t.Errorf("second reads %q", got)
	}
	if err := second.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := first.Write([]byte("b")); !errors.Is(err, ErrSuperseded) {
			t.Errorf("write of the first machine: %v", err)
		}
	}
	if err := second.Write([]byte("c")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, New(mem, "facts", ids(3))); got != "c" {
		t.Errorf("read %q", got)
	}
}

// A store that takes long to say that it cannot is not asked again, one that says so at
// once is; either way the next write finds out what became of this one.
func TestWithin(t *testing.T) {
	for took, want := range map[time.Duration]int{10 * time.Second: 1, 2 * time.Second: 3, time.Millisecond: attempts} {
		mem, down, puts := memstore.New(), true, 0
		clock := env.NewFake(time.Unix(0, 0), 1)
		way := faultstore.New(mem, faultstore.Hooks{Before: func(_ context.Context, op faultstore.Op) faultstore.Fault {
			if !down || !op.Applies(faultstore.LostReply) {
				return faultstore.Fault{}
			}
			puts++
			clock.Advance(took)
			return faultstore.Fault{Kind: faultstore.Refused}
		}})
		s := New(way, "facts", ids(1)).Within(clock, 5*time.Second)
		s.read = true
		if err := s.Write([]byte("a")); !errors.Is(err, objstore.ErrUnavailable) {
			t.Errorf("%s: %v", took, err)
		}
		if puts != want {
			t.Errorf("%s: %d tries, want %d", took, puts, want)
		}
		down = false
		if err := s.Write([]byte("b")); err != nil {
			t.Errorf("%s: write after the outage: %v", took, err)
		}
		if got := read(t, New(mem, "facts", ids(2))); got != "b" {
			t.Errorf("%s: read %q", took, got)
		}
	}
}

func TestDamaged(t *testing.T) {
	for name, body := range map[string]string{"short": "SKOB", "foreign": "something else that is long enough for it"} {
		mem := memstore.New()
		if _, err := mem.Put(t.Context(), "facts", []byte(body), objstore.IfAbsent()); err != nil {
			t.Fatal(err)
		}
		if _, err := New(mem, "facts", ids(1)).Read(); !errors.Is(err, catalog.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	s := New(memstore.New(), "facts", ids(1))
	f.Add(s.encode([]byte("image")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if check(b) == nil && len(b) < atImage {
			t.Errorf("%d bytes pass", len(b))
		}
	})
}

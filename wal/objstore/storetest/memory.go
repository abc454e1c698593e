package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
)

// testAgainstMemory runs the same random requests on the store and on memstore and
// compares what each says.
func testAgainstMemory(t *testing.T, s objstore.Store) {
	r := rand.New(rand.NewPCG(7, 7))
	m := memstore.New()
	versions := map[string][2][]objstore.Version{} // of a key, in both stores, newest last
	for step := range rounds(400) {
		key := fmt.Sprintf("m/%d/%d", r.IntN(3), r.IntN(4))
		switch op := r.IntN(10); {
		case op < 5:
			compareWrite(t, r, [2]objstore.Store{s, m}, key, step, versions)
		case op < 7:
			rng := objstore.Range{}
			if r.IntN(2) == 0 {
				rng.Start = r.Int64N(20)
				rng.End = rng.Start + 1 + r.Int64N(20)
			}
			a, errA := s.Get(t.Context(), key, rng)
			b, errB := m.Get(t.Context(), key, rng)
			if kind(errA) != kind(errB) || !bytes.Equal(a.Data, b.Data) || a.Size != b.Size {
				t.Fatalf("step %d: get %s %v: %q %v, memory %q %v", step, key, rng, a.Data, errA, b.Data, errB)
			}
		case op < 8:
			keys := []string{key, "m/0/0", "m/none"}
			errA, errB := s.Delete(t.Context(), keys), m.Delete(t.Context(), keys)
			if kind(errA) != kind(errB) {
				t.Fatalf("step %d: delete: %v, memory %v", step, errA, errB)
			}
		default:
			prefix := fmt.Sprintf("m/%d", r.IntN(4))
			a, errA := s.List(t.Context(), prefix, key, 1000)
			b, errB := m.List(t.Context(), prefix, key, 1000)
			if kind(errA) != kind(errB) || a.More != b.More || !slices.EqualFunc(a.Objects, b.Objects, func(x, y objstore.Info) bool { return x.Key == y.Key && x.Size == y.Size }) {
				t.Fatalf("step %d: list: %v %v, memory %v %v", step, a, errA, b, errB)
			}
		}
	}
}

// compareWrite puts with a random condition, of a version that may be long gone.
func compareWrite(t *testing.T, r *rand.Rand, stores [2]objstore.Store, key string, step int, versions map[string][2][]objstore.Version) {
	t.Helper()
	body := fmt.Appendf(nil, "%0*d", 1+r.IntN(30), step)
	known := versions[key]
	mode, pick := r.IntN(3), 0
	if n := len(known[0]); n > 0 {
		pick = n - 1 - r.IntN(min(n, 2))
	}
	var kinds [2]error
	for i, s := range stores {
		var cond objstore.Condition
		switch {
		case mode == 0:
			cond = objstore.IfAbsent()
		case mode == 1 && len(known[i]) > 0:
			cond = objstore.IfMatch(known[i][pick])
		}
		v, err := s.Put(t.Context(), key, bytes.Clone(body), cond)
		kinds[i] = kind(err)
		if err == nil {
			known[i] = append(known[i], v)
		}
	}
	if kinds[0] != kinds[1] {
		t.Fatalf("step %d: put %s mode %d: %v, memory %v", step, key, mode, kinds[0], kinds[1])
	}
	versions[key] = known
}

// kind is the sentinel that err wraps.
func kind(err error) error {
	for _, k := range []error{objstore.ErrNotFound, objstore.ErrPrecondition, objstore.ErrRange, objstore.ErrKey} {
		if errors.Is(err, k) {
			return k
		}
	}
	return err
}

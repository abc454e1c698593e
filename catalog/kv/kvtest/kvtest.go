// Package kvtest is the suite that every kv.Store must pass.
package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog/kv"
)

// Run tests the stores that open makes; each must be empty. The suite closes them.
func Run(t *testing.T, open func(t *testing.T) kv.Store) {
	t.Helper()
	cases := []struct {
		name string
		test func(t *testing.T, s kv.Store)
	}{
		{"get and set", testGetSet},
		{"order of iteration", testOrder},
		{"bounds", testBounds},
		{"delete range", testDeleteRange},
		{"batch is invisible until committed", testBatch},
		{"batch takes effect in order", testBatchOrder},
		{"indexed batch reads its writes", testIndexed},
		{"snapshot does not move", testSnapshot},
		{"arguments are not kept", testAliasing},
		{"stop and errors end an iteration", testStop},
		{"empty keys", testEmptyKey},
		{"prefixed store", testPrefixed},
		{"same as a map", testAgainstMap},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.test(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write commits "key=value" and "-key" writes.
func write(t *testing.T, s kv.Store, writes ...string) {
	t.Helper()
	b := s.NewBatch()
	fill(t, b, writes...)
	must(t, b.Commit(false))
}

func fill(t *testing.T, b kv.Batch, writes ...string) {
	t.Helper()
	for _, w := range writes {
		if key, ok := strings.CutPrefix(w, "-"); ok {
			if lower, upper, ok := strings.Cut(key, ".."); ok {
				must(t, b.DeleteRange([]byte(lower), []byte(upper)))
				continue
			}
			must(t, b.Delete([]byte(key)))
			continue
		}
		key, value, _ := strings.Cut(w, "=")
		must(t, b.Set([]byte(key), []byte(value)))
	}
}

func scan(t *testing.T, r kv.Reader, lower, upper []byte) string {
	t.Helper()
	var out []string
	must(t, r.Iterate(lower, upper, func(k, v []byte) error {
		out = append(out, fmt.Sprintf("%s=%s", k, v))
		return nil
	}))
	return strings.Join(out, " ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func testGetSet(t *testing.T, s kv.Store) {
	if _, err := s.Get([]byte("a")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get of nothing: %v", err)
	}
	write(t, s, "a=1", "b=")
	got, err := s.Get([]byte("a"))
	must(t, err)
	want(t, "a", string(got), "1")
	if got, err = s.Get([]byte("b")); err != nil || len(got) != 0 {
		t.Errorf("empty value: %q, %v", got, err)
	}
	write(t, s, "a=2", "-b")
	got, err = s.Get([]byte("a"))
	must(t, err)
	want(t, "a", string(got), "2")
	if _, err := s.Get([]byte("b")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get of deleted: %v", err)
	}
}

func testOrder(t *testing.T, s kv.Store) {
	write(t, s, "b=1", "a\x00=2", "a=3", "a\xff=4", "\xff=5", "\x00=6")
	want(t, "scan", scan(t, s, nil, nil), "\x00=6 a=3 a\x00=2 a\xff=4 b=1 \xff=5")
	var keys [][]byte
	must(t, kv.IteratePrefix(s, []byte("a"), func(k, _ []byte) error {
		keys = append(keys, bytes.Clone(k))
		return nil
	}))
	if len(keys) != 3 {
		t.Errorf("prefix a: %q", keys)
	}
	if kv.PrefixEnd([]byte{0xff, 0xff}) != nil {
		t.Error("prefix end of all ff")
	}
}

func testBounds(t *testing.T, s kv.Store) {
	write(t, s, "a=1", "b=2", "c=3", "d=4")
	want(t, "b..d", scan(t, s, []byte("b"), []byte("d")), "b=2 c=3")
	want(t, "b..", scan(t, s, []byte("b"), nil), "b=2 c=3 d=4")
	want(t, "..b", scan(t, s, nil, []byte("b")), "a=1")
	want(t, "aa..ab", scan(t, s, []byte("aa"), []byte("ab")), "")
}

func testDeleteRange(t *testing.T, s kv.Store) {
	write(t, s, "a=1", "b=2", "c=3", "d=4")
	write(t, s, "-b..d", "c=5")
	want(t, "after", scan(t, s, nil, nil), "a=1 c=5 d=4")
	write(t, s, "-d..a", "-a..a")
	want(t, "after empty ranges", scan(t, s, nil, nil), "a=1 c=5 d=4")
}

func testBatch(t *testing.T, s kv.Store) {
	b := s.NewBatch()
	fill(t, b, "a=1")
	want(t, "before", scan(t, s, nil, nil), "")
	must(t, b.Commit(true))
	want(t, "after", scan(t, s, nil, nil), "a=1")
	if err := b.Commit(true); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("second commit: %v", err)
	}
	must(t, b.Close())
	c := s.NewBatch()
	fill(t, c, "a=2")
	must(t, c.Close())
	if err := c.Set([]byte("a"), nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("set after close: %v", err)
	}
	want(t, "after close", scan(t, s, nil, nil), "a=1")
	must(t, s.NewBatch().Commit(true)) // an empty one
}

func testBatchOrder(t *testing.T, s kv.Store) {
	write(t, s, "a=1", "-a", "b=1", "b=2", "c=1", "-a..z", "d=3")
	want(t, "after", scan(t, s, nil, nil), "d=3")
}

func testIndexed(t *testing.T, s kv.Store) {
	write(t, s, "a=1", "b=2", "c=3")
	b := s.NewIndexedBatch()
	fill(t, b, "b=5", "-c", "d=6")
	want(t, "in", scan(t, b, nil, nil), "a=1 b=5 d=6")
	fill(t, b, "-a..c")
	want(t, "in", scan(t, b, nil, nil), "d=6")
	if _, err := b.Get([]byte("b")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get of deleted in batch: %v", err)
	}
	fill(t, b, "b=7")
	got, err := b.Get([]byte("b"))
	must(t, err)
	want(t, "b", string(got), "7")
	want(t, "outside", scan(t, s, nil, nil), "a=1 b=2 c=3")
	must(t, b.Commit(false))
	want(t, "after", scan(t, s, nil, nil), "b=7 d=6")
}

func testSnapshot(t *testing.T, s kv.Store) {
	write(t, s, "a=1", "b=2")
	snap := s.Snapshot()
	write(t, s, "a=3", "-b", "c=4")
	want(t, "snapshot", scan(t, snap, nil, nil), "a=1 b=2")
	want(t, "store", scan(t, s, nil, nil), "a=3 c=4")
	got, err := snap.Get([]byte("b"))
	must(t, err)
	want(t, "b", string(got), "2")
	must(t, snap.Close())
	if _, err := snap.Get([]byte("a")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("get of closed snapshot: %v", err)
	}
}

func testAliasing(t *testing.T, s kv.Store) {
	key, value := []byte("key"), []byte("value")
	b := s.NewBatch()
	must(t, b.Set(key, value))
	key[0], value[0] = 'x', 'x'
	must(t, b.Commit(false))
	want(t, "stored", scan(t, s, nil, nil), "key=value")
	got, err := s.Get([]byte("key"))
	must(t, err)
	got[0] = 'x'
	want(t, "stored", scan(t, s, nil, nil), "key=value")
}

func testStop(t *testing.T, s kv.Store) {
	write(t, s, "a=1", "b=2", "c=3")
	n := 0
	must(t, s.Iterate(nil, nil, func(_, _ []byte) error {
		n++
		return fmt.Errorf("enough: %w", kv.Stop)
	}))
	if n != 1 {
		t.Errorf("%d calls after stop", n)
	}
	boom := errors.New("boom")
	if err := s.Iterate(nil, nil, func(_, _ []byte) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error of fn: %v", err)
	}
}

func testEmptyKey(t *testing.T, s kv.Store) {
	b := s.NewIndexedBatch()
	_, getErr := s.Get(nil)
	for _, err := range []error{getErr, b.Set(nil, nil), b.Delete(nil)} {
		if !errors.Is(err, kv.ErrEmptyKey) {
			t.Errorf("empty key: %v", err)
		}
	}
	must(t, b.Close())
}

func testPrefixed(t *testing.T, s kv.Store) {
	write(t, s, "o=before", "q=after")
	p := kv.WithPrefix(s, []byte("p"))
	write(t, p, "a=1", "b=2", "c=3", "\xff\xff=4")
	write(t, p, "-b..c")
	want(t, "prefixed", scan(t, p, nil, nil), "a=1 c=3 \xff\xff=4")
	want(t, "bounded", scan(t, p, []byte("b"), []byte("d")), "c=3")
	want(t, "whole", scan(t, s, nil, nil), "o=before pa=1 pc=3 p\xff\xff=4 q=after")
	snap, b := p.Snapshot(), p.NewIndexedBatch()
	fill(t, b, "-a", "z=9")
	want(t, "batch", scan(t, b, nil, nil), "c=3 z=9 \xff\xff=4")
	must(t, b.Commit(true))
	want(t, "snapshot", scan(t, snap, nil, nil), "a=1 c=3 \xff\xff=4")
	if _, err := p.Get(nil); !errors.Is(err, kv.ErrEmptyKey) {
		t.Errorf("empty key: %v", err)
	}
	must(t, snap.Close())
	must(t, p.Close())
}

// testAgainstMap compares random writes with a map and a sort.
func testAgainstMap(t *testing.T, s kv.Store) {
	rng := rand.New(rand.NewPCG(1, 2))
	oracle := map[string]string{}
	key := func() string { return fmt.Sprintf("k%02d", rng.IntN(60)) }
	for step := range 400 {
		b := s.NewIndexedBatch()
		for range rng.IntN(8) {
			switch rng.IntN(6) {
			case 0:
				k := key()
				fill(t, b, "-"+k)
				delete(oracle, k)
			case 1:
				lo, hi := key(), key()
				fill(t, b, "-"+lo+".."+hi)
				for k := range oracle {
					if lo <= k && k < hi {
						delete(oracle, k)
					}
				}
			default:
				k, v := key(), fmt.Sprint(step)
				fill(t, b, k+"="+v)
				oracle[k] = v
			}
		}
		expected := render(oracle)
		want(t, "batch", scan(t, b, nil, nil), expected)
		must(t, b.Commit(step%7 == 0))
		want(t, "store", scan(t, s, nil, nil), expected)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}

func render(m map[string]string) string {
	out := make([]string, 0, len(m))
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

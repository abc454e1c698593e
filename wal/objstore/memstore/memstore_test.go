package memstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/objstore/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Store { return memstore.New() })
}

func put(t *testing.T, s *memstore.Store, key, body string) objstore.Version {
	t.Helper()
	v, err := s.Put(t.Context(), key, []byte(body), objstore.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func contents(s *memstore.Store) string {
	out := ""
	for key, body := range s.All() {
		out += fmt.Sprintf("%s=%s ", key, body)
	}
	return out
}

// Neither of two clones sees what is done to the other.
func TestClone(t *testing.T) {
	s := memstore.New()
	put(t, s, "a", "1")
	put(t, s, "b", "1")
	c := s.Clone()
	d := c.Clone()
	put(t, s, "a", "2")
	put(t, s, "c", "2")
	if err := c.Delete(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]struct {
		s    *memstore.Store
		want string
	}{"original": {s, "a=2 b=1 c=2 "}, "clone": {c, "b=1 "}, "clone of the clone": {d, "a=1 b=1 "}} {
		if got := contents(check.s); got != check.want {
			t.Errorf("%s: %s, want %s", name, got, check.want)
		}
	}
	if s.Equal(c) || !d.Equal(d.Clone()) || s.Len() != 3 {
		t.Errorf("equal is wrong, or %d is not 3", s.Len())
	}
}

// All is of one moment.
func TestAllDuringWrites(t *testing.T) {
	s := memstore.New()
	for i := range 5 {
		put(t, s, fmt.Sprint("k", i), "old")
	}
	n := 0
	for key, body := range s.All() {
		put(t, s, "k4", "new")
		put(t, s, key+"-more", "new")
		if n++; string(body) != "old" {
			t.Errorf("%s is %s", key, body)
		}
	}
	if n != 5 || s.Len() != 10 {
		t.Errorf("visited %d of 5, %d are there", n, s.Len())
	}
}

// A state that comes back has its old version again: what compares and swaps must
// never write the same bytes twice.
func TestVersionComesBack(t *testing.T) {
	s := memstore.New()
	v := put(t, s, "k", "one")
	put(t, s, "k", "two")
	put(t, s, "k", "one")
	if _, err := s.Put(t.Context(), "k", []byte("three"), objstore.IfMatch(v)); err != nil {
		t.Errorf("the old version no longer matches: %v", err)
	}
}

func TestNestedKeys(t *testing.T) {
	s := memstore.New()
	put(t, s, "a/b/c", "x")
	put(t, s, "a/b-c", "x")
	for _, key := range []string{"a", "a/b", "a/b/c/d", "a/b/c/d/e"} {
		if _, err := s.Put(t.Context(), key, nil, objstore.Condition{}); !errors.Is(err, objstore.ErrKey) {
			t.Errorf("put %s beside a/b/c: %v", key, err)
		}
	}
	put(t, s, "a/b/c", "again")
	put(t, s, "a/b/cc", "x")
	put(t, s, "a/b.", "x")
}

func BenchmarkPut(b *testing.B) {
	s := memstore.New()
	body := make([]byte, 60)
	for i := range b.N {
		if _, err := s.Put(b.Context(), fmt.Sprintf("p/s/%016x.seg.commit", i), body, objstore.IfAbsent()); err != nil {
			b.Fatal(err)
		}
	}
}

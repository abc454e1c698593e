package kept

import (
	"bytes"
	"strings"
	"testing"
)

// TestStreams: a stream is that of one state of the catalog, an older one does not replace it, and
// what is kept is bounded.
func TestStreams(t *testing.T) {
	var s Streams
	if b := s.Get("a", 0); b != nil {
		t.Errorf("nothing was put, and %q is there", b)
	}
	given := []byte("two")
	s.Put("a", 2, given)
	given[0] = 'x'
	got := s.Get("a", 2)
	if string(got) != "two" {
		t.Errorf("got %q", got)
	}
	got[0] = 'y'
	s.Put("a", 1, []byte("one"))
	if b := s.Get("a", 2); string(b) != "two" {
		t.Errorf("got %q", b)
	}
	for _, version := range []uint64{1, 3} {
		if b := s.Get("a", version); b != nil {
			t.Errorf("version %d is %q", version, b)
		}
	}
	large := bytes.Repeat([]byte("x"), Most/2)
	for _, key := range strings.Split("bcdef", "") {
		s.Put(key, 1, large)
		if s.Get(key, 1) == nil {
			t.Errorf("%s is not there", key)
		}
		if total := s.total(); total > Most || total != s.mu.size {
			t.Fatalf("%d bytes are kept, %d counted", total, s.mu.size)
		}
	}
	s.Put("f", 2, nil)
	if total := s.total(); total != s.mu.size {
		t.Errorf("%d bytes are kept, %d counted", total, s.mu.size)
	}
}

func (s *Streams) total() (n int) {
	for _, b := range s.mu.all {
		n += len(b.bytes)
	}
	return n
}

package scroll_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/scroll"
)

// memFile is a file in memory.
type memFile struct {
	data   []byte
	closed bool
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.data = append(f.data[:off], p...)
	return len(p), nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Close() error {
	f.closed = true
	return nil
}

// message is a row of some length that says its number.
func message(i int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'D'}, uint32(4+8+i%2000))
	return append(binary.BigEndian.AppendUint64(b, uint64(i)), make([]byte, i%2000)...)
}

// number reads a row's number and what comes behind it.
func number(b []byte) (int, []byte) {
	return int(binary.BigEndian.Uint64(b[5:])), b[1+binary.BigEndian.Uint32(b[1:]):]
}

// Rows come back as they were put in, in both directions, whether they are in memory or in
// the file.
func TestStore(t *testing.T) {
	file := &memFile{}
	s := scroll.NewStore(func() (scroll.File, error) { return file, nil })
	r := rand.New(rand.NewPCG(1, 1))
	const total = 20000
	for i := 0; i < total; {
		n := min(1+r.IntN(50), total-i)
		var b []byte
		for range n {
			b = append(b, message(i)...)
			i++
		}
		if err := s.Append(b, n); err != nil {
			t.Fatal(err)
		}
	}
	if s.Len() != total || len(file.data) < 10<<20 || len(file.data) > 17<<20 {
		t.Fatalf("%d rows, %d bytes in the file", s.Len(), len(file.data))
	}
	for range 200 {
		from := r.IntN(total)
		n := 1 + r.IntN(min(1000, total-from))
		next := from
		check := func(step int) func(b []byte, rows int) error {
			return func(b []byte, rows int) error {
				for range rows {
					var got int
					if got, b = number(b); got != next {
						return fmt.Errorf("row %d where %d should be", got, next)
					}
					next += step
				}
				if len(b) != 0 {
					return fmt.Errorf("%d bytes too many", len(b))
				}
				return nil
			}
		}
		if err := s.Forward(int64(from), int64(n), check(1)); err != nil || next != from+n {
			t.Fatalf("%d rows from %d: %v, up to %d", n, from, err, next)
		}
		next = from + n - 1
		if err := s.Backward(int64(from+n-1), int64(n), check(-1)); err != nil || next != from-1 {
			t.Fatalf("%d rows back from %d: %v, down to %d", n, from+n-1, err, next)
		}
	}
	s.Close()
	if !file.closed {
		t.Error("the file stayed open")
	}
}

// Without a file there is an end to what is kept.
func TestStoreWithoutFile(t *testing.T) {
	s := scroll.NewStore(nil)
	var err error
	for i := 0; i < 1<<20 && err == nil; i++ {
		err = s.Append(message(1999), 1)
	}
	if err == nil || s.Len() > 10000 {
		t.Errorf("%d rows were kept: %v", s.Len(), err)
	}
}

// A store that may forget has the last rows, and no file; what is added while rows before it
// are not passed stays whole.
func TestStoreForgets(t *testing.T) {
	s := scroll.NewStore(nil)
	const total = 20000
	for i := range total {
		if err := s.Append(message(i), 1); err != nil {
			t.Fatal(err)
		}
		s.Forget(s.Len())
	}
	if s.First() < 12000 || s.First() > 17000 {
		t.Errorf("%d rows are kept", s.Len()-s.First())
	}
	next := total - 1
	err := s.Backward(total-1, total-s.First(), func(b []byte, rows int) error {
		for range rows {
			var got int
			if got, b = number(b); got != next {
				return fmt.Errorf("row %d where %d should be", got, next)
			}
			next--
		}
		return nil
	})
	if err != nil || int64(next) != s.First()-1 {
		t.Errorf("back to row %d: %v", next+1, err)
	}
	nothing := func([]byte, int) error { return nil }
	for name, err := range map[string]error{
		"forward": s.Forward(s.First()-1, 2, nothing), "backward": s.Backward(total-1, total-s.First()+1, nothing),
	} {
		if e, ok := pgerr.As(err); !ok || e.Code != "55000" {
			t.Errorf("%s to what is forgotten: %v", name, err)
		}
	}
	var full error
	for i := 0; i < total && full == nil; i++ { // nobody passes these
		full = s.Append(message(i), 1)
	}
	if full == nil {
		t.Error("rows that are not passed are forgotten")
	}
}

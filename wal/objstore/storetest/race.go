package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
)

// race runs n functions at once and waits for them.
func race(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// rounds is how often a race is run.
func rounds(n int) int {
	if testing.Short() {
		return max(1, n/4)
	}
	return n
}

// attemptsMax bounds how often a write is made again. No store of a test is that ill.
const attemptsMax = 50

// putSettled puts, makes again what the store asks to, and finds out what it does not
// say: that is how every caller of a Store goes about it.
func putSettled(ctx context.Context, s objstore.Store, key string, body []byte, cond objstore.Condition) (objstore.Version, error) {
	unclear := false
	for attempt := 1; ; attempt++ {
		v, err := s.Put(ctx, key, body, cond)
		unclear = unclear || objstore.IsRetryable(err)
		if err == nil || !unclear || attempt == attemptsMax {
			return v, err
		}
		switch o, getErr := s.Get(ctx, key, objstore.Range{}); {
		case getErr == nil && bytes.Equal(o.Data, body):
			return o.Version, nil
		case getErr == nil && cond.Absent():
			return "", fmt.Errorf("put %s: %w", key, objstore.ErrPrecondition)
		case getErr != nil && !errors.Is(getErr, objstore.ErrNotFound):
			return "", getErr
		}
	}
}

func testRaceAbsent(t *testing.T, s objstore.Store) {
	const writers = 16
	for round := range rounds(20) {
		key := fmt.Sprintf("s/%04d.commit", round)
		errs := make([]error, writers)
		race(writers, func(i int) {
			_, errs[i] = putSettled(t.Context(), s, key, bytes.Repeat([]byte{byte(i)}, 60), objstore.IfAbsent())
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("round %d: writers %d and %d both won", round, winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, objstore.ErrPrecondition):
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody won", round)
		}
		if o := get(t, s, key); !bytes.Equal(o.Data, bytes.Repeat([]byte{byte(winner)}, 60)) {
			t.Fatalf("round %d: writer %d won, the object is of %v", round, winner, o.Data)
		}
	}
}

// The counter loses nothing although a read's version may be older than its bytes; it
// would if it could be newer.
func testRaceCounter(t *testing.T, s objstore.Store) {
	const writers = 8
	each := rounds(12)
	put(t, s, "counter", string(make([]byte, 8)), objstore.IfAbsent())
	race(writers, func(int) {
		for done := 0; done < each; {
			o, err := s.Get(t.Context(), "counter", objstore.Range{})
			if err != nil || len(o.Data) != 8 {
				t.Errorf("get: %d bytes, %v", len(o.Data), err)
				return
			}
			next := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(o.Data)+1)
			_, err = s.Put(t.Context(), "counter", next, objstore.IfMatch(o.Version))
			switch {
			case err == nil:
				done++
			case !errors.Is(err, objstore.ErrPrecondition) && !errors.Is(err, objstore.ErrConflict): // nothing happened
				t.Errorf("put: %v", err)
				return
			}
		}
	})
	if n := binary.BigEndian.Uint64(get(t, s, "counter").Data); n != uint64(writers*each) {
		t.Errorf("%d updates succeeded, the counter says %d", writers*each, n)
	}
}

func testRaceOverwrite(t *testing.T, s objstore.Store) {
	const size = 200_000
	body := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, size+i) }
	put(t, s, "k", string(body(0)), objstore.Condition{})
	race(6, func(i int) {
		for n := range rounds(12) {
			if i < 2 {
				b := body((i*13 + n) % 26)
				if _, err := putSettled(t.Context(), s, "k", b, objstore.Condition{}); err != nil {
					t.Errorf("put: %v", err)
					return
				}
				continue
			}
			o, err := s.Get(t.Context(), "k", objstore.Range{})
			if err != nil {
				t.Errorf("get: %v", err)
				return
			}
			if len(o.Data) == 0 || !bytes.Equal(o.Data, body(int(o.Data[0]-'a'))) {
				t.Errorf("a read saw two states, or half of one: %d bytes", len(o.Data))
				return
			}
		}
	})
}

// A put-if-absent that succeeded is there, whatever is deleted beside it. Something
// stays in each directory, as in the log: see docs/decisions/0011.
func testRaceDelete(t *testing.T, s objstore.Store) {
	var anchors []string
	for n := range rounds(20) {
		anchors = append(anchors, fmt.Sprintf("d/%02d/stays", n))
		put(t, s, anchors[n], "x", objstore.IfAbsent())
	}
	race(4, func(i int) {
		for n := range anchors {
			key := fmt.Sprintf("d/%02d/x", n)
			if i%2 == 0 {
				key = fmt.Sprintf("d/%02d/y%d", n, i)
			}
			_, err := putSettled(t.Context(), s, key, []byte("x"), objstore.IfAbsent())
			switch {
			case i%2 == 0 && err != nil:
				t.Errorf("put %s: %v", key, err)
			case i%2 == 0:
				if _, err := s.Get(t.Context(), key, objstore.Range{}); err != nil {
					t.Errorf("it was put: %v", err)
				}
				err = remove(t, s, []string{key})
			case err != nil && !errors.Is(err, objstore.ErrPrecondition):
				t.Errorf("put %s: %v", key, err)
			default:
				err = remove(t, s, []string{key})
			}
			if err != nil {
				t.Errorf("delete %s: %v", key, err)
			}
		}
	})
	if left := listAll(t, s, "d/", 100); !slices.Equal(left, anchors) {
		t.Errorf("left: %q, want %q", left, anchors)
	}
}

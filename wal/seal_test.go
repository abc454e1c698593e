package wal_test

import (
	"math/rand/v2"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

// A seal whose marker reached the directory, but not for certain, is repeated without a
// footer. A crash at any moment of that leaves a log that opens with all its groups.
func TestSealRepeatedAfterItsMarker(t *testing.T) {
	for _, c := range []struct {
		keep  float64
		fails int // syncs of the directory, one after the other
	}{{0, 1}, {0.5, 1}, {1, 1}, {0, 2}, {0.5, 2}, {1, 2}, {0, 3}, {0.5, 3}} {
		keep := c.keep
		for halt := 1; ; halt++ {
			cat, fs := &catalog{}, crashfs.New()
			s := mustStep(t, tinyConfig(), tinyDeps(fs, cat))
			p, err := s.Log().Start(t.Context(), group("1", batch(1, 1, 3, 10)))
			must(t, err)
			drive(t, s)
			mustOutcome(t, p)
			failed := 0
			fs.Fail = func(op crashfs.Op) error {
				if op.Kind == crashfs.OpSyncDir && failed < c.fails {
					failed++
					return errIO
				}
				return nil
			}
			fs.HaltAt = fs.Ops() + halt
			_, err = s.Log().StartSeal()
			must(t, err)
			for range 40 {
				for part := wal.Owner; part <= wal.Background; part++ {
					_, _ = s.Step(t.Context(), part)
				}
			}
			done := fs.Ops() < fs.HaltAt
			after := fs.Crash(rand.New(rand.NewPCG(uint64(halt), 1)), keep)
			again := &catalog{}
			l, err := wal.OpenStepped(t.Context(), tinyConfig(), tinyDeps(after, again))
			if err != nil {
				t.Fatalf("keep %v, %d failures, halt %d: %v", keep, c.fails, halt, err)
			}
			if n := len(again.all()); n != 1 {
				t.Fatalf("keep %v, halt %d: %d groups", keep, halt, n)
			}
			must(t, l.Log().Close())
			if done && failed == c.fails {
				break
			}
			if halt > 200 {
				t.Fatal("the seal never ends")
			}
		}
	}
}

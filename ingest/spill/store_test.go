package spill_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/ingest/spill"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/crashfs"
)

func open(t *testing.T, fs spill.FS, cfg spill.Config) *spill.Store {
	t.Helper()
	cfg.Dir = "/spill"
	s, err := spill.Open(fs, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// must fails the test on the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func replay(t *testing.T, s *spill.Store, xid uint32) []string {
	t.Helper()
	var got []string
	must(t, s.Replay(t.Context(), xid, func(m []byte) error {
		got = append(got, string(m))
		return nil
	}))
	return got
}

func files(t *testing.T, fs spill.FS) int {
	t.Helper()
	list, err := fs.List("/spill")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Transactions in turn, with subtransactions rolled back before and after they are
// written: each comes back whole, in its order, without what was rolled back. The
// oracle keeps everything in lists.
func TestReplayEqualsOracle(t *testing.T) {
	type entry struct {
		sub  uint32
		text string
	}
	for seed := range int64(40) {
		r := rand.New(rand.NewSource(seed))
		fs := crashfs.New()
		s := open(t, fs, spill.Config{FrameBytes: 1 + r.Intn(200)})
		oracle := map[uint32][]entry{}
		for n := range 300 {
			xid := 10 * uint32(1+r.Intn(4))
			switch r.Intn(8) {
			default:
				must(t, s.Start(xid))
				for range r.Intn(6) {
					e := entry{xid + uint32(r.Intn(4)), fmt.Sprintf("m%d-%0*d", n, r.Intn(120), n)}
					must(t, s.Add(e.sub, e.text[0], []byte(e.text[1:])))
					oracle[xid] = append(oracle[xid], e)
				}
				must(t, s.Stop())
			case 5:
				sub := xid + uint32(1+r.Intn(3))
				must(t, s.Abort(xid, sub))
				oracle[xid] = slices.DeleteFunc(oracle[xid], func(e entry) bool { return e.sub == sub })
				// A number is never used again: what comes later is of another.
				if got := replay(t, s, xid); len(got) != len(oracle[xid]) {
					t.Fatalf("seed %d: %d messages, want %d", seed, len(got), len(oracle[xid]))
				}
				delete(oracle, xid)
			case 6:
				must(t, s.Abort(xid, xid))
				delete(oracle, xid)
			case 7:
				var want []string
				for _, e := range oracle[xid] {
					want = append(want, e.text)
				}
				if got := replay(t, s, xid); !slices.Equal(got, want) {
					t.Fatalf("seed %d: got %q, want %q", seed, got, want)
				}
				delete(oracle, xid)
			}
		}
		must(t, s.Close())
		if n := files(t, fs); n != 0 || s.Bytes() != 0 || s.Transactions() != 0 {
			t.Fatalf("seed %d: %d files, %d bytes left", seed, n, s.Bytes())
		}
	}
}

// A store takes no more than it may, nor what others need of the disk, and says which.
func TestFull(t *testing.T) {
	fill := func(s *spill.Store) error {
		must(t, s.Start(1))
		for range 1000 {
			if err := s.Add(1, 'I', make([]byte, 100)); err != nil {
				return err
			}
		}
		return s.Stop()
	}
	small := crashfs.New()
	small.SetSpace(20_000)
	cases := map[string]struct {
		fs  spill.FS
		cfg spill.Config
	}{
		"limit":     {crashfs.New(), spill.Config{BytesMax: 50_000, FrameBytes: 1000}},
		"full disk": {small, spill.Config{FrameBytes: 1000}},
		"free disk": {shortFS{crashfs.New()}, spill.Config{FrameBytes: 1000, FreeMin: 500}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t, c.fs, c.cfg)
			if err := fill(s); !errors.Is(err, spill.ErrFull) {
				t.Fatalf("got %v", err)
			}
			must(t, s.Close())
			if files(t, c.fs) != 0 {
				t.Fatal("files stay")
			}
		})
	}
}

// shortFS is a disk with little space.
type shortFS struct{ *crashfs.FS }

func (shortFS) FreeBytes(string) (int64, error) { return 1200, nil }

// What an earlier process left goes, other stores' files and other files stay.
func TestOpenRemovesLeftovers(t *testing.T) {
	fs := crashfs.New()
	for _, name := range []string{"1-7.spill", "2-7.spill", "1-notes"} {
		f, err := fs.Open("/spill/"+name, wal.Create)
		must(t, err)
		must(t, f.Close())
	}
	s := open(t, fs, spill.Config{Prefix: "1-"})
	if n := files(t, fs); n != 2 {
		t.Fatalf("%d files stay", n)
	}
	must(t, s.Start(7), s.Add(7, 'I', []byte("x")), s.Stop())
	if got := replay(t, s, 7); !slices.Equal(got, []string{"Ix"}) {
		t.Fatalf("got %q", got)
	}
	must(t, spill.Empty(fs, "/spill", ""))
	if n := files(t, fs); n != 1 {
		t.Fatalf("%d files stay", n)
	}
}

// Bits that turn on the disk are never applied.
func TestDamageIsNoticed(t *testing.T) {
	fs := crashfs.New()
	s := open(t, fs, spill.Config{FrameBytes: 64})
	must(t, s.Start(1))
	for range 20 {
		must(t, s.Add(1, 'I', []byte("some values of a row")))
	}
	must(t, s.Stop())
	f, err := fs.Open("/spill/1.spill", wal.ReadWrite)
	must(t, err)
	must(t, f.Sync(), f.Close()) // so that there is a medium that can rot
	for _, bit := range []int64{3, 70, 900} {
		must(t, fs.Rot("/spill/1.spill", bit))
		err := s.Replay(t.Context(), 1, func([]byte) error { return nil })
		if !errors.Is(err, spill.ErrDamaged) {
			t.Fatalf("bit %d: %v", bit, err)
		}
		must(t, fs.Rot("/spill/1.spill", bit)) // turns it back
	}
	if got := replay(t, s, 1); len(got) != 20 {
		t.Fatalf("%d messages", len(got))
	}
}

// A replay ends with its context, and with the error of who applies.
func TestReplayEnds(t *testing.T) {
	s := open(t, crashfs.New(), spill.Config{FrameBytes: 1})
	must(t, s.Start(1), s.Add(1, 'I', nil), s.Add(1, 'I', nil), s.Stop())
	boom, stop := errors.New("boom"), errors.New("stop")
	if err := s.Replay(t.Context(), 1, func([]byte) error { return boom }); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	err := s.Replay(ctx, 1, func([]byte) error { n++; cancel(stop); return nil })
	if !errors.Is(err, stop) || n != 1 {
		t.Fatalf("%v after %d messages", err, n)
	}
}

// Blocks come one after the other, or the source is not what we take it for.
func TestOrder(t *testing.T) {
	for name, f := range map[string]func(s *spill.Store) error{
		"start in block":  func(s *spill.Store) error { must(t, s.Start(1)); return s.Start(2) },
		"stop":            func(s *spill.Store) error { return s.Stop() },
		"change":          func(s *spill.Store) error { return s.Add(1, 'I', nil) },
		"abort in block":  func(s *spill.Store) error { must(t, s.Start(1)); return s.Abort(1, 1) },
		"commit in block": func(s *spill.Store) error { must(t, s.Start(1)); return s.Replay(t.Context(), 1, nil) },
	} {
		if err := f(open(t, crashfs.New(), spill.Config{})); !errors.Is(err, spill.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := open(t, crashfs.New(), spill.Config{})
	must(t, s.Abort(5, 5), s.Abort(5, 6), s.Replay(t.Context(), 5, nil), s.Start(5), s.Stop(), s.Replay(t.Context(), 5, nil))
}

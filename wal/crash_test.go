package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/crashfs"
	"github.com/skipprd/skipprd/wal/segment"
)

// world is a machine with a log on it that crashes. Its rows are a function of the
// group's position, "producer/number", so what is read back needs no second copy.
type world struct {
	rng   *rand.Rand
	fs    *crashfs.FS
	cat   *catalog
	cfg   wal.Config
	acked map[string]bool
	// next is each producer's next number, failed the number it does not know the
	// outcome of.
	next      [producers]int
	reclaimed map[segment.Seq]bool
	synced    int // groups the catalog cannot lose
	wrap      func(wal.FS) wal.FS
}

const producers = 3

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 1)), fs: crashfs.New(), cat: &catalog{},
		cfg: config("wal"), acked: map[string]bool{}, reclaimed: map[segment.Seq]bool{},
		wrap: func(f wal.FS) wal.FS { return f },
	}
}

// rows is what the group at position (p, n) holds.
func rows(p, n int) (from int64, count, noteBytes int) {
	r := rand.New(rand.NewPCG(uint64(p), uint64(n)))
	noteBytes = 1 + r.IntN(200)
	if r.IntN(8) == 0 {
		noteBytes = 3000
	}
	return int64(p*1_000_000 + n*100), 1 + r.IntN(20), noteBytes
}

func position(p, n int) string { return fmt.Sprintf("%d/%d", p, n) }

// live runs the log until the machine goes down, or until each producer has appended
// some groups.
func (w *world) live(t *testing.T) error {
	w.fs.HaltAt = w.fs.Ops() + 20 + w.rng.IntN(400)
	if w.rng.IntN(3) == 0 {
		w.fs.HaltAt = w.fs.Ops() + 1 + w.rng.IntN(40) // often within the recovery
	}
	l, err := wal.Open(t.Context(), w.cfg, deps(w.wrap(w.fs), w.cat))
	if errors.Is(err, crashfs.ErrCrashed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		each = 5 + w.rng.IntN(60)
	)
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				from, count, size := rows(p, w.next[p])
				pos := position(p, w.next[p])
				w.next[p]++
				_, err := l.Append(t.Context(), group(pos, batch(change.TableID(p+1), from, count, size)))
				if err != nil {
					return
				}
				mu.Lock()
				w.acked[pos] = true
				mu.Unlock()
			}
		}()
	}
	w.reclaim(t, l)
	wg.Wait()
	w.reclaim(t, l)
	w.fs.Halt()
	return l.Close()
}

// reclaim deletes a sealed segment as if it were compacted, which makes the catalog's
// knowledge of it durable first.
func (w *world) reclaim(t *testing.T, l *wal.Log) {
	groups := w.cat.all()
	if len(groups) == 0 || w.rng.IntN(2) == 0 {
		return
	}
	seq := groups[w.rng.IntN(len(groups))].Seq
	if seq >= l.Stats().Active {
		return
	}
	w.synced = len(groups)
	w.reclaimed[seq] = true
	_ = l.Reclaim(t.Context(), []segment.Seq{seq}) // not sealed yet, or the machine is down
}

// crash ends the process or the machine. Of what was not synced, names and catalog
// entries as well as bytes, a machine loses a part.
func (w *world) crash() {
	keep := []float64{0, 0.5, 1, w.rng.Float64()}[w.rng.IntN(4)]
	if w.rng.IntN(3) == 0 {
		w.fs = w.fs.Kill()
	} else {
		w.fs = w.fs.Crash(w.rng, keep)
	}
	n := len(w.cat.groups)
	w.cat = w.cat.clone(w.synced + w.rng.IntN(n-w.synced+1))
}

// check opens the log on a copy of the machine and compares everything.
func (w *world) check(t *testing.T) error {
	w.fs.HaltAt = 0
	l, err := wal.Open(t.Context(), w.cfg, deps(w.fs, w.cat))
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	defer l.Close()
	r := wal.OpenReaderFS(w.fs, w.cfg.Dir)
	defer r.Close()
	seen := map[string]bool{}
	var last [producers]int
	for _, g := range w.cat.all() {
		var p, n int
		if _, err := fmt.Sscanf(string(g.Position), "%d/%d", &p, &n); err != nil {
			return fmt.Errorf("position %q: %w", g.Position, err)
		}
		if seen[string(g.Position)] {
			return fmt.Errorf("group %s is there twice", g.Position)
		}
		seen[string(g.Position)] = true
		if n < last[p] || n >= w.next[p] {
			return fmt.Errorf("group %s out of order or never appended", g.Position)
		}
		last[p] = n
		from, count, size := rows(p, n)
		if w.reclaimed[g.Seq] {
			continue
		}
		if err := checkRows(r, g.Slices[0], from, count, size); err != nil {
			return fmt.Errorf("group %s: %w", g.Position, err)
		}
	}
	for pos := range w.acked {
		if !seen[pos] {
			return fmt.Errorf("acknowledged group %s is lost", pos)
		}
	}
	return nil
}

// answered counts what recovery publishes as acknowledged, as a source does: it goes
// on behind it.
func (w *world) answered() {
	for _, g := range w.cat.all() {
		w.acked[string(g.Position)] = true
	}
}

// crashes runs a world through a few crashes.
func crashes(t *testing.T, seed uint64, prepare func(*world)) error {
	w := newWorld(seed)
	if prepare != nil {
		prepare(w)
	}
	for range 1 + w.rng.IntN(5) {
		if err := w.live(t); err != nil {
			return err
		}
		w.answered()
		w.crash()
	}
	return w.check(t)
}

func seeds(t *testing.T, n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// A machine that loses power at any operation loses nothing acknowledged, repeats
// nothing, and serves the right rows.
func TestCrash(t *testing.T) {
	for seed := range seeds(t, 600) {
		if err := crashes(t, uint64(seed), nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The test must be able to fail: a disk that lies is noticed.
func TestCrashSeesMissingSyncs(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"no file sync":      func(w *world) { w.fs.SkipSync = true },
		"no directory sync": func(w *world) { w.fs.SkipSyncDir = true },
	} {
		broken := 0
		n := seeds(t, 100)
		for seed := range n {
			if crashes(t, uint64(seed), prepare) != nil {
				broken++
			}
		}
		t.Logf("%s: noticed in %d of %d seeds", name, broken, n)
		if broken == 0 {
			t.Errorf("%s: not noticed", name)
		}
	}
}

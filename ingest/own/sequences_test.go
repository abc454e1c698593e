package own_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// sequenceWorld is a catalog with one sequence, over a store that outlives it.
func sequenceWorld(t *testing.T, store *memkv.Store, deps catalog.Deps) *catalog.Catalog {
	t.Helper()
	deps.Clock, deps.IDs = env.System()
	deps.Key = make([]byte, 32)
	c, err := catalog.Open(t.Context(), store, deps)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func makeSequence(t *testing.T, c *catalog.Catalog, s sequence.Sequence) (id change.TableID) {
	t.Helper()
	err := c.Update(t.Context(), func(txn *catalog.Txn) error {
		id = txn.ReserveTable()
		s.ID, s.Schema, s.Name = id, "public", "s"
		return txn.PutSequence(&s)
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

var counting = sequence.Sequence{Start: 1, Increment: 1, Min: 1, Max: math.MaxInt64, Last: 1}

// values are those of ranges.
func values(ranges []sequence.Range) (out []int64) {
	for _, r := range ranges {
		for i := range r.Count {
			out = append(out, r.At(i))
		}
	}
	return out
}

// TestValuesAreGivenOnce: whoever asks at the same time, also while others set the sequence
// forth, each value is given once; after a crash at any moment, none that was given before.
func TestValuesAreGivenOnce(t *testing.T) {
	store := memkv.New()
	c := sequenceWorld(t, store, catalog.Deps{})
	id := makeSequence(t, c, counting)
	var mu sync.Mutex
	given := map[int64]bool{}
	take := func(s *own.Sequences, n int64) {
		got, err := s.Draw(t.Context(), id, n)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		if v := values(got); len(v) != int(n) {
			t.Errorf("%d values of %d", len(v), n)
		}
		for _, v := range values(got) {
			if given[v] {
				t.Errorf("%d is given twice", v)
			}
			given[v] = true
		}
	}
	for range 3 { // each with a process of its own
		s := own.NewSequences(c)
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range 60 {
					take(s, int64(i%7+1))
					if worker == 0 && i%20 == 7 { // as ALTER SEQUENCE does, now and in drafts
						err := c.Update(t.Context(), func(txn *catalog.Txn) error {
							row, err := txn.SequenceByID(id)
							if err != nil {
								return err
							}
							next := row.Clone()
							if last, called, known := s.Settle(row); known {
								next.Last, next.Called = last, called
							}
							next.Resets++
							if i == 27 {
								return errUndone
							}
							return txn.PutSequence(next)
						})
						if err != nil && !errors.Is(err, errUndone) {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
	}
}

var errUndone = errors.New("undone")

// TestValuesFollow: one process gives them without gaps, in order; Set and Settle change what
// comes next; the limit is told.
func TestValuesFollow(t *testing.T) {
	c := sequenceWorld(t, memkv.New(), catalog.Deps{})
	few := counting
	few.Max = 40
	id := makeSequence(t, c, few)
	s := own.NewSequences(c)
	next := func(want int64) {
		t.Helper()
		got, err := s.Draw(t.Context(), id, 1)
		if err != nil || len(values(got)) != 1 || values(got)[0] != want {
			t.Fatalf("%v, %v, want %d", got, err, want)
		}
	}
	for i := range int64(20) {
		next(i + 1)
	}
	if err := s.Set(t.Context(), id, 30, false); err != nil {
		t.Fatal(err)
	}
	next(30)
	if err := s.Set(t.Context(), id, 38, true); err != nil {
		t.Fatal(err)
	}
	next(39)
	next(40)
	if _, err := s.Draw(t.Context(), id, 1); !errors.Is(err, sequence.ErrLimit) {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	defer snap.Close()
	row, err := snap.SequenceByID(id)
	if err != nil {
		t.Fatal(err)
	}
	if last, called := s.Shown(row); last != 40 || !called {
		t.Errorf("shown %d, %v", last, called)
	}
	if _, err := s.Draw(t.Context(), id+1, 1); !errors.Is(err, catalog.ErrTableNotFound) {
		t.Error(err)
	}
}

// killAt ends the process at the n-th time that the catalog is changed.
type killAt struct {
	point env.Failpoint
	after int
}

func (k *killAt) Hit(p env.Failpoint) error {
	if p != k.point {
		return nil
	}
	if k.after--; k.after < 0 {
		return errUndone
	}
	return nil
}

// TestSequenceKills: a process that ends before or after it has set values apart has given
// none that the next one gives.
func TestSequenceKills(t *testing.T) {
	for _, point := range []env.Failpoint{env.BeforeUpdate, env.AfterUpdate} {
		for after := range 4 {
			store := memkv.New()
			c := sequenceWorld(t, store, catalog.Deps{})
			id := makeSequence(t, c, counting)
			newest := int64(0)
			killed := sequenceWorld(t, store, catalog.Deps{Failpoints: &killAt{point, after}})
			s := own.NewSequences(killed)
			for {
				got, err := s.Draw(t.Context(), id, 20)
				if errors.Is(err, errUndone) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				newest = got[len(got)-1].Last()
			}
			next, err := own.NewSequences(sequenceWorld(t, store, catalog.Deps{})).Draw(t.Context(), id, 1)
			if err != nil || next[0].First <= newest {
				t.Errorf("%v, %d: %v behind %d, %v", point, after, next, newest, err)
			}
		}
	}
}

package iceberg_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/iceberg"
	"github.com/skipprd/skipprd/lake/laketest"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

var people = lake.Ident{Namespace: "public", Name: "people"}

// orphans is a warehouse with one table of three commits, the last by the name of its
// metadata.
type orphans struct {
	t     *testing.T
	dir   string
	heads []*lake.Snapshot
}

func newOrphans(t *testing.T) *orphans {
	t.Helper()
	o := &orphans{t: t, dir: t.TempDir()}
	w := o.open()
	tbl, err := w.Table(t.Context(), lake.Spec{Ident: people, Table: 7, Schema: laketest.People(t)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		wr, err := tbl.NewWriter(laketest.People(t))
		if err != nil {
			t.Fatal(err)
		}
		rows := laketest.Batch(t, int64(i), fmt.Sprintf("%d|x", i))
		if err := wr.Write(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		rows.Release()
		files, err := wr.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		head, err := tbl.Commit(t.Context(), lake.Commit{
			Base: tbl.Head().ID, CompactionID: fmt.Sprint("c", i), Generation: 1, AddFiles: files,
			Slices: []segment.SliceRef{{Seq: segment.Seq(i + 1), Start: 128}},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.heads = append(o.heads, head)
	}
	return o
}

// open opens the warehouse without its pointers.
func (o *orphans) open() *iceberg.Warehouse {
	return openWarehouse(o.t, newStore(o.t), o.dir, env.NewFake(time.Unix(1_700_000_000, 0), 1))
}

// recover finds the table, known to have been at a commit once; -1 for none.
func (o *orphans) recover(floor int) (lake.Recovered, []string) {
	o.t.Helper()
	l := lake.Lost{Ident: people, Table: 7, Generation: 1}
	if floor >= 0 {
		l.Metadata, l.Snapshot = o.heads[floor].Metadata, o.heads[floor].ID
	}
	got, err := o.open().Recover(o.t.Context(), []lake.Lost{l})
	if err != nil {
		o.t.Fatal(err)
	}
	return got.Tables[0], got.Kept
}

// copyMetadata gives the metadata of a commit a second file of a version.
func (o *orphans) copyMetadata(of int, name string) {
	o.t.Helper()
	from := o.heads[of].Metadata
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(from), name), raw, 0o644)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

// Which state a directory has when nothing points at it: the newest whole one, but never
// one of two with the same version, and never an older one than is known.
func TestRecoverChooses(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(o *orphans)
		floor  int
		want   int // commit; -1 for none, -2 for a problem
	}{
		{"the newest", func(*orphans) {}, -1, 2},
		{"the newest, though an older one is known", func(*orphans) {}, 0, 2},
		{"a commit that was never pointed to", func(o *orphans) { o.copyMetadata(2, "00009-orphan.metadata.json") }, 2, 2},
		{"the one before two of a version", func(o *orphans) { o.copyMetadata(1, "00003-orphan.metadata.json") }, 1, 1},
		{"the known one of two", func(o *orphans) { o.copyMetadata(1, "00003-orphan.metadata.json") }, 2, 2},
		{"the one before a torn one", func(o *orphans) { o.truncate(o.heads[2].Metadata) }, 1, 1},
		{"the one before one without its files", func(o *orphans) { o.remove(o.heads[2].Files[2].Path) }, 1, 1},
		{"none when the known one has lost its files", func(o *orphans) { o.remove(o.heads[2].Files[2].Path) }, 2, -2},
		{"none when the known one is gone", func(o *orphans) { o.remove(o.heads[2].Metadata) }, 2, -2},
		{"none when none is whole and none is known", func(o *orphans) { o.remove(o.heads[0].Files[0].Path) }, -1, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrphans(t)
			c.damage(o)
			got, kept := o.recover(c.floor)
			switch {
			case c.want < 0:
				if got.Head != nil || (got.Problem != "") != (c.want == -2) {
					t.Errorf("got %+v", got)
				}
				if c.want == -2 && len(kept) != 1 {
					t.Errorf("kept %v: the sweep would remove what is left", kept)
				}
			case got.Problem != "" || got.Head == nil || got.Head.ID != o.heads[c.want].ID:
				t.Errorf("got %+v, want snapshot %d", got, o.heads[c.want].ID)
			case len(got.Commits) != c.want+1:
				t.Errorf("%d commits, want %d", len(got.Commits), c.want+1)
			}
		})
	}
}

func (o *orphans) remove(path string) {
	o.t.Helper()
	if err := os.Remove(path); err != nil {
		o.t.Fatal(err)
	}
}

func (o *orphans) truncate(path string) {
	o.t.Helper()
	if err := os.Truncate(path, 100); err != nil {
		o.t.Fatal(err)
	}
}

// What is kept of nobody's is not swept, what is left of an earlier generation is.
func TestRecoverThenSweep(t *testing.T) {
	for generation, there := range map[uint32]bool{1: true, 2: false} {
		o := newOrphans(t)
		clock := env.NewFake(time.Unix(1_700_000_000, 0), 1)
		w := openWarehouse(t, newStore(t), o.dir, clock)
		lost := []lake.Lost{{Ident: people, Table: 7, Generation: generation}}
		if there {
			lost[0].Table = 8 // another table's: table 7 is nobody's
		}
		if _, err := w.Recover(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := w.Sweep(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			clock.Advance(time.Hour)
		}
		if _, err := os.Stat(o.heads[2].Metadata); (err == nil) != there {
			t.Errorf("generation %d: %v", generation, err)
		}
	}
}

// Pointers that are kept elsewhere and a directory without what they name do not match.
func TestVerify(t *testing.T) {
	dir, store := t.TempDir(), newStore(t)
	clock := env.NewFake(time.Unix(1_700_000_000, 0), 1)
	w := openWarehouse(t, store, dir, clock)
	if _, err := w.Table(t.Context(), lake.Spec{Ident: people, Table: 7, Schema: laketest.People(t)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Verify(); err != nil {
		t.Errorf("its own directory: %v", err)
	}
	if err := openWarehouse(t, store, t.TempDir(), clock).Verify(); !errors.Is(err, lake.ErrNoSnapshot) {
		t.Errorf("another directory: %v", err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := openWarehouse(t, store, dir, clock).Verify(); !errors.Is(err, lake.ErrNoSnapshot) {
		t.Errorf("an empty directory: %v", err)
	}
}

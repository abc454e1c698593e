package verify

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
)

// TestReworked: a table that was rewritten at the source as a column was changed is compared
// until that comes to something, and copied anew if it differs, or cannot be compared at
// all. What was found counts for the rewrites and the copy that it is of.
func TestReworked(t *testing.T) {
	type world struct {
		*compareWorld
		r *Reworked
	}
	steps := func(w *world, n int) {
		w.t.Helper()
		for range n {
			if _, err := w.r.Step(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	again := func(w *world) {
		w.t.Helper()
		for range 10 {
			steps(w, 2) // the second finds it at rest
			w.clock.Advance(time.Hour)
		}
		if w.sources != 0 || w.frozen != 10 {
			w.t.Errorf("asked %d times", w.frozen)
		}
	}
	const asked = "resync, stopped: rows were given other values at the source as a column was changed, which are not sent"
	for name, c := range map[string]struct {
		run  func(w *world)
		want string // of s.a
	}{
		"equal":   {func(w *world) { steps(w, 1) }, "ready, compared 2"},
		"differs": {func(w *world) { w.theirs = "2026-01-02"; steps(w, 1) }, asked},
		"by choice": {func(w *world) {
			w.theirs = "2026-01-02"
			w.change(func(p *catalog.Pipeline) { p.Options["on_schema_change"] = "stop" })
			steps(w, 1)
		}, asked},
		"paused": {func(w *world) { w.change(func(p *catalog.Pipeline) { p.Paused = true }); steps(w, 1) }, "ready, compared 0"},
		"stopped": {func(w *world) {
			w.table("a", func(t *catalog.Table) { t.State, t.Reason = catalog.TableStopped, "it differs" })
			steps(w, 1)
		}, "stopped: it differs"},
		"source away, and here again": {func(w *world) {
			w.unavailable = errFreeze
			again(w)
			w.unavailable = nil
			steps(w, 1)
		}, "ready, compared 2"},
		"no slot is free, and one is": {func(w *world) {
			w.unavailable = errors.New("no replication slot is free")
			again(w)
			w.unavailable = nil
			steps(w, 1)
		}, "ready, compared 2"},
		"locked at the source for hours": {func(w *world) {
			w.skip = &SkipError{Reason: "it is locked", Passes: true}
			again(w)
			w.skip = nil
			steps(w, 1)
		}, "ready, compared 2"},
		"truncated again and again": {func(w *world) {
			w.truncated = 10
			again(w)
			steps(w, 1)
		}, "ready, compared 2"},
		"not ours to read": {func(w *world) {
			w.skip = &SkipError{Reason: "the role may not read it"}
			for range hereMost {
				steps(w, 1)
				w.clock.Advance(time.Hour)
			}
		}, asked},
		"rewritten again meanwhile": {func(w *world) {
			w.pinned = func() { w.table("a", func(t *catalog.Table) { t.Files = &catalog.SourceFiles{Reworked: 3} }) }
			steps(w, 1)
		}, "ready, compared 2"},
		"copied anew meanwhile": {func(w *world) {
			w.compared = func() { w.table("a", func(t *catalog.Table) { t.Generation++ }) }
			w.theirs = "2026-01-02"
			steps(w, 1)
		}, "ready, compared 0"},
		"never to be compared": {func(w *world) {
			w.pinned = func() { w.table("a", func(t *catalog.Table) { t.SourceOID++ }) }
			for range hereMost {
				steps(w, 1)
				w.clock.Advance(time.Hour)
			}
		}, asked},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{compareWorld: newCompareWorld(t)}
			w.r = &Reworked{
				Comparer: &Comparer{Catalog: w.catalog, Pipelines: (*fakePipelines)(w.compareWorld), Lake: (*fakeLake)(w.compareWorld), Mirror: (*fakeMirror)(w.compareWorld), Clock: w.clock},
				Log:      slog.New(slog.DiscardHandler), Rest: time.Second,
			}
			steps(w, 1) // nothing is due
			if w.frozen != 0 {
				t.Error("compared for nothing")
			}
			w.table("a", func(t *catalog.Table) { t.Files = &catalog.SourceFiles{Reworked: 2} })
			c.run(w)
			snap := w.catalog.Snapshot()
			defer snap.Close()
			a, err := snap.TableByName("s", "a")
			if err != nil {
				t.Fatal(err)
			}
			got := string(a.State)
			switch {
			case a.State == catalog.TableReady:
				got += fmt.Sprintf(", compared %d", a.Compared)
			default:
				got += ": " + a.Reason
			}
			if a.Resync {
				got = "resync, " + got
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

package loops

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// begun is host a with its copies made.
func begun(w *world) *process {
	w.t.Helper()
	p := w.host("a").serves()
	p.caughtUp()
	return p
}

// ask has a query answer.
func ask(p *process) *session {
	p.host.w.t.Helper()
	s, q := p.query()
	q.ok()
	return s
}

// liveSlices is how many slices a process's catalog has live.
func (p *process) liveSlices() int {
	snap := p.snapshot()
	defer snap.Close()
	n := 0
	for _, t := range snap.AllTables() {
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			p.host.w.t.Fatal(err)
		}
		n += len(live)
	}
	return n
}

// segments is how many segments a process's catalog has.
func (p *process) segments() int {
	snap := p.snapshot()
	defer snap.Close()
	all, err := snap.Segments(pipelineID)
	if err != nil {
		p.host.w.t.Fatal(err)
	}
	return len(all)
}

// inLake lets everything go on until all that is live now is in the lake and the log is short.
func (p *process) inLake() {
	p.host.w.t.Helper()
	p.host.w.must("the log is in the lake", func() bool { return p.liveSlices() == 0 && p.segments() <= 1 })
}

// table finds a table of the process's catalog.
func (p *process) table(name string) *catalog.Table {
	snap := p.snapshot()
	defer snap.Close()
	for _, t := range snap.AllTables() {
		if t.SourceName == name {
			return t
		}
	}
	return nil
}

func TestCompaction(t *testing.T) {
	runAll(t, []scenario{{
		name: "a plain run", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(10)
			p.caughtUp()
			ask(p)
			p.inLake()
			ask(p)
		},
	}, {
		name: "queries and reclaim beside a compaction before its commit", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			p.inLake()
			before := w.hold("a", "failpoint before_lake_commit")
			w.source.load(10)
			before.reach()
			ask(p)
			w.source.load(5)
			p.caughtUp()
			w.pass(4 * time.Second) // the other tables are compacted, the log is looked at
			ask(p)
			before.goOn()
		},
	}, {
		name: "one table waits before its commit, another is committed", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			p.inLake()
			first, second := w.hold("a", "lake commit"), w.hold("a", "failpoint after_mark")
			w.source.load(10)
			first.reach()
			second.reach()
			if p.liveSlices() == 0 {
				w.t.Fatal("the first compaction is in the lake too")
			}
			second.goOn()
			ask(p)
			w.host("a").kill(false)
			w.host("a").boot()
		},
	}, {
		name: "power cut between the lake's commit and the mark", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			after := w.hold("a", "failpoint after_lake_commit")
			w.source.load(10)
			after.reach()
			ask(p) // pins the snapshot before, and the slices
			w.host("a").kill(true)
			found := w.hold("", "lake find")
			w.host("a").boot()
			found.reach().goOn()
		},
	}, {
		name: "the reply of a lake commit is lost", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			lost := w.fail("a", "done lake commit", outcome{err: errInjected})
			w.source.load(10)
			lost.reach()
			ask(p)
			p.caughtUp()
			p.inLake()
		},
	}, {
		name: "a pin's slices are reclaimed before it is run", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(10)
			p.caughtUp()
			pinned := w.hold("a", "query pinned")
			s, q := p.query()
			pinned.reach()
			if p.liveSlices() == 0 {
				w.t.Fatal("nothing is live")
			}
			p.inLake()
			w.source.load(8)
			p.caughtUp()
			pinned.goOn()
			q.ok()
			if s.repeats == 0 {
				w.t.Fatal("the query did not pin anew")
			}
		},
	}, {
		name: "pins are lost until the query is too old", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			pinned := w.hold("a", "query pinned")
			w.source.load(6)
			p.caughtUp()
			_, q := p.query()
			for {
				if !w.until(patience, func() bool { return pinned.sprung() || q.ended() }) {
					w.t.Fatal("the query does neither")
				}
				if q.ended() {
					break
				}
				p.inLake()
				w.source.load(6)
				p.caughtUp()
				last := pinned
				pinned = w.hold("a", "query pinned")
				last.goOn()
			}
			if q.err == nil {
				w.t.Fatal("the query answered")
			}
		},
	}, {
		name: "a transaction keeps what it reads", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(10)
			p.caughtUp()
			rest := w.hold("a", "query rest")
			s, q := p.session(context.Background(), true, 3)
			rest.reach()
			for range 2 {
				w.must("the rest is in the lake", func() bool { return p.liveSlices() == 0 })
				w.source.load(10)
				p.caughtUp()
				w.pass(5 * time.Second) // reclaim would like to
				next := w.hold("a", "query rest")
				rest.goOn()
				rest = next.reach()
			}
			if p.segments() <= 1 {
				w.t.Fatal("the transaction's segments are gone")
			}
			rest.goOn()
			q.ok()
			if s.repeats != 0 {
				w.t.Fatalf("a transaction pinned anew, %d times", s.repeats)
			}
			p.inLake()
		},
	}, {
		name: "a statement is cancelled between its pin and its run", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(10)
			p.inLake()
			cancelled := errors.New("canceling statement due to user request")
			ctx, cancel := context.WithCancelCause(context.Background())
			pinned := w.hold("a", "query pinned")
			_, q := p.session(ctx, false, 1)
			pinned.reach()
			if len(p.pinned()) == 0 {
				w.t.Fatal("the query keeps no snapshot")
			}
			cancel(cancelled)
			w.source.load(10)
			p.caughtUp()
			pinned.goOn()
			if err := q.end(); !errors.Is(err, cancelled) {
				w.t.Fatalf("the query ended with %v", err)
			}
			if kept := p.pinned(); len(kept) > 0 {
				w.t.Fatalf("snapshots %v are kept", kept)
			}
		},
	}, {
		name: "maintenance expires snapshots under a query that reads files", options: options{rows: 5}, run: func(w *world) {
			p := begun(w)
			w.source.load(10)
			p.inLake()
			pinned := w.hold("a", "query pinned")
			s, q := p.query()
			reads := pinned.reach()
			for range 4 {
				maintained := w.hold("a", "done lake maintain")
				for range w.compact.MaintainEvery {
					w.source.load(8)
					w.until(5*time.Second, maintained.sprung)
				}
				maintained.reach().goOn()
				p.inLake()
			}
			reads.goOn()
			q.ok()
			if s.repeats != 0 {
				w.t.Fatal("the query pinned anew: its snapshot was not kept")
			}
		},
	}, {
		name: "killed between the deletion of a marker and of its body", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			between := w.hold("a", "failpoint between_marker_and_body_delete")
			w.source.load(30)
			p.caughtUp()
			w.source.load(10)
			between.reach()
			ask(p)
			w.host("a").kill(true)
			w.host("a").boot()
		},
	}, {
		name: "a schema change is streamed while the rows before it are compacted", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			before := w.hold("a", "failpoint before_lake_commit")
			w.source.load(10)
			before.reach()
			w.source.do(func(db *source.DB) {
				items := w.source.items
				db.AddColumn(items, source.Column{Name: "extra", Type: items.Current().Columns[0].Type, OID: 20, TypMod: -1})
			})
			w.source.load(10)
			p.caughtUp()
			ask(p)
			before.goOn()
			p.inLake()
			ask(p)
		},
	}})
}

// pinned are the lake snapshots that queries of the process keep.
func (p *process) pinned() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []int64
	for id := range p.mu.pins {
		out = append(out, id)
	}
	return out
}

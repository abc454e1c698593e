package loops

import (
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
)

// waits says that a statement does not end by itself.
func (d *pending) waits(t time.Duration) {
	d.w.t.Helper()
	d.w.pass(t)
	if d.ended() {
		d.w.t.Fatalf("%s has ended: %v", d.name, d.err)
	}
}

func TestStatements(t *testing.T) {
	runAll(t, []scenario{{
		name: "PAUSE while an append is in flight", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			body := w.hold("a", "failpoint after_body")
			w.source.load(3)
			body.reach()
			pause := p.pause()
			pause.waits(time.Second)
			body.goOn()
			pause.ok()
			at := p.position()
			w.source.load(5)
			w.pass(10 * time.Second)
			if p.position() != at {
				w.t.Fatal("a paused pipeline goes on")
			}
			ask(p)
			p.resume().ok()
			p.caughtUp()
		},
	}, {
		name: "RESUME while PAUSE waits for an append", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			body := w.hold("a", "failpoint after_body")
			w.source.load(3)
			body.reach()
			pause := p.pause()
			pause.waits(time.Second)
			resume := p.resume() // the session streams, as far as anybody knows
			w.pass(time.Second)
			body.goOn()
			pause.ok()
			_ = resume.end() // it may have met the end of that session
			p.resume().ok()
			p.caughtUp()
		},
	}, {
		name: "RESET while an append is in flight and a compaction before its commit", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			before := w.hold("a", "failpoint before_lake_commit")
			w.source.load(8)
			before.reach()
			body := w.hold("a", "failpoint after_body")
			w.source.load(3)
			body.reach()
			reset := p.reset()
			reset.waits(time.Second)
			body.goOn()
			reset.waits(time.Second) // for the compaction
			before.goOn()
			reset.ok()
			p.caughtUp()
			ask(p)
		},
	}, {
		name: "RESYNC while a compaction of the table is in the lake and not marked", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			p.inLake()
			p.compactNow() // items alone have something
			after := w.hold("a", "failpoint after_lake_commit")
			w.source.remove(1)
			after.reach()
			p.resync("items").ok() // its copy is beside the table
			w.source.load(5)
			after.goOn()
			p.caughtUp()
			ask(p)
		},
	}, {
		name: "a query pinned before RESYNC, run after it", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(8)
			p.caughtUp()
			pinned := w.hold("a", "query pinned")
			_, q := p.query()
			pinned.reach()
			p.resync("items").ok()
			w.source.load(8)
			p.caughtUp()
			p.inLake()
			pinned.goOn()
			_ = q.end() // an error or all rows: the checkers look
			ask(p)
		},
	}, {
		name: "DROP of a table that is copied and compacted, then it comes again", options: options{rows: 8}, run: func(w *world) {
			chunk := w.hold("a", "source read chunk").reach()
			p := w.host("a").serves()
			drop := p.dropTable("items")
			drop.waits(time.Second)
			w.source.load(5)
			chunk.goOn()
			drop.ok()
			if p.table("items") != nil {
				w.t.Fatal("the table is there")
			}
			p.caughtUp()
			before := w.hold("a", "failpoint before_lake_commit")
			w.source.load(5)
			before.reach()
			add := p.addTable("items")
			add.ok()
			w.source.load(5)
			before.goOn()
			p.caughtUp()
			ask(p)
		},
	}, {
		name: "DROP of the pipeline while an append is in flight", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			pinned := w.hold("a", "query pinned")
			w.source.load(4)
			p.caughtUp()
			_, q := p.query()
			pinned.reach()
			body := w.hold("a", "failpoint after_body")
			w.source.load(4)
			body.reach()
			drop := p.drop()
			drop.waits(time.Second)
			files := w.hold("a", "list /data/wal*")
			body.goOn()
			files.reach().goOn()
			drop.ok()
			pinned.goOn()
			_ = q.end() // its log is gone
			w.dropped = true
			if names := w.host("a").disk.Durable().Names("/data/wal/"); len(names) > 0 {
				w.t.Fatalf("the log has left %v", names)
			}
		},
	}, {
		name: "killed in the midst of RESET", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(8)
			p.caughtUp()
			p.inLake()
			dropped := w.hold("a", "done lake drop")
			p.reset()
			dropped.reach()
			w.source.load(4)
			w.host("a").kill(true)
			p = again(w)
			ask(p)
		},
	}, {
		name: "killed in the midst of a table's DROP", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			w.source.load(8)
			p.inLake()
			drop := w.hold("a", "lake drop")
			p.dropTable("items")
			drop.reach()
			w.source.load(4)
			w.host("a").kill(false)
			p = again(w)
			if p.table("items") != nil {
				w.t.Fatal("the table is there")
			}
			ask(p)
		},
	}, {
		name: "SYNC while the source does not answer and the stream goes on", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			status := w.hold("a", "source status")
			sync := p.sync()
			status.reach()
			w.source.load(6)
			p.caughtUp()
			sync.waits(3 * time.Second)
			status.goOn()
			sync.ok()
		},
	}, {
		name: "a session that cannot connect, RESUME waits for it", options: options{rows: 3}, run: func(w *world) {
			p := begun(w)
			p.pause().ok()
			connect := w.hold("a", "source connect")
			w.source.load(4)
			resume := p.resume()
			connect.reach()
			resume.waits(time.Second)
			next := w.hold("a", "source connect")
			connect.letGo(outcome{err: errInjected})
			if err := resume.end(); err == nil {
				w.t.Fatal("RESUME says that the pipeline streams")
			}
			next.reach().goOn()
			p.caughtUp()
			w.must("the pipeline runs", func() bool {
				snap := p.snapshot()
				defer snap.Close()
				pl, err := snap.Pipeline(pipelineName)
				return err == nil && pl.State == catalog.PipelineRunning
			})
		},
	}})
}

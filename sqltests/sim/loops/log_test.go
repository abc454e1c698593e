package loops

import (
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// logged says whether a process has logged something.
func (w *world) logged(text string) bool {
	return strings.Contains(w.log.String(), text)
}

// again is host a's next life.
func again(w *world) *process {
	w.t.Helper()
	w.host("a").boot()
	return begun(w)
}

func TestLog(t *testing.T) {
	runAll(t, []scenario{{
		name: "the source waits while an append does not return", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			append := w.hold("a", "failpoint after_body")
			w.source.load(1)
			append.reach()
			for i := range int64(200) { // more than a group holds
				w.source.put(i)
			}
			w.pass(time.Second)
			stream := w.hold("a", "source stream")
			w.pass(10 * time.Second)
			if stream.sprung() {
				w.t.Fatal("the source goes on")
			}
			if p.position() >= w.source.lsn() {
				w.t.Fatal("the position is ahead of the log")
			}
			ask(p)
			append.goOn()
			stream.reach().goOn()
			p.caughtUp()
		},
	}, {
		name: "the log is full, and has room again", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			w.host("a").disk.SetSpace(0)
			w.source.load(40)
			w.must("the source is throttled", func() bool { return w.logged("log is full, source throttled") })
			ask(p)
			w.pass(3 * time.Second)
			w.host("a").disk.SetSpace(-1)
			p.caughtUp()
		},
	}, {
		name: "PAUSE and RESUME while the log is full", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			w.host("a").disk.SetSpace(0)
			w.source.load(40)
			w.must("the source is throttled", func() bool { return w.logged("log is full, source throttled") })
			p.pause().ok()
			w.pass(3 * time.Second)
			w.host("a").disk.SetSpace(-1)
			p.resume().ok()
			p.caughtUp()
		},
	}, {
		name: "power cut while a group is written and not durable", options: options{rows: 2}, run: func(w *world) {
			begun(w)
			body := w.hold("a", "failpoint after_body")
			w.source.load(4)
			body.reach()
			w.host("a").kill(true)
			again(w).caughtUp()
		},
	}, {
		name: "power cut while a group is durable and not published", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			before := p.position()
			publish := w.hold("a", "publish")
			w.source.load(4)
			publish.reach()
			if p.position() != before {
				w.t.Fatal("the group is published")
			}
			w.host("a").kill(true)
			again(w).caughtUp()
		},
	}, {
		name: "killed before the source is told", options: options{rows: 2}, run: func(w *world) {
			begun(w)
			ack := w.hold("a", "failpoint before_ack")
			w.source.load(4)
			ack.reach()
			w.host("a").kill(false)
			again(w).caughtUp()
		},
	}, {
		name: "a sync fails under an append", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			body := w.hold("a", "failpoint after_body")
			w.source.load(2)
			body.reach()
			w.host("a").disk.LoseSync()
			w.source.load(6)
			body.goOn()
			p.caughtUp()
			ask(p)
		},
	}, {
		name: "stopped while an append is in flight", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			body := w.hold("a", "failpoint after_body")
			w.source.load(4)
			body.reach()
			p.cancel(errStopped)
			w.pass(30 * time.Second)
			if closed(p.done) {
				w.t.Fatal("the process has ended before the append")
			}
			body.goOn()
			if err := w.host("a").stop(); err != nil {
				w.t.Fatal(err)
			}
			again(w).caughtUp()
		},
	}, {
		name: "stopped in the middle of everything", options: options{rows: 6}, run: func(w *world) {
			p := begun(w)
			for _, place := range []string{
				"source read chunk", "failpoint before_body", "failpoint before_update", "failpoint before_lake_commit",
				"failpoint after_lake_commit", "reclaim", "failpoint between_marker_and_body_delete", "failpoint before_seal",
			} {
				at := w.hold("a", place)
				w.source.load(12)
				if place == "source read chunk" {
					p.resync("items")
				}
				at.reach()
				_, q := p.query()
				p.cancel(errStopped)
				w.pass(time.Second)
				at.goOn()
				if err := w.host("a").stop(); err != nil {
					w.t.Fatalf("at %s: %v", place, err)
				}
				if !q.ended() {
					w.t.Fatalf("at %s: the query goes on", place)
				}
				p = w.host("a").boot()
				w.host("a").serves()
			}
		},
	}, {
		name: "killed in the middle of everything", options: options{rows: 6}, run: func(w *world) {
			for i, place := range []string{
				"source read chunk", "failpoint before_body", "failpoint after_marker", "failpoint before_update",
				"failpoint before_lake_commit", "failpoint after_lake_commit", "failpoint before_seal",
				"failpoint after_seal_marker", "failpoint after_mark", "reclaim", "source setup", "list /data*",
			} {
				at := w.hold("a", place)
				w.source.load(12)
				if place == "source setup" || place == "list /data*" { // of a start
					w.host("a").kill(true)
					w.host("a").boot()
				}
				at.reach()
				w.host("a").kill(i%2 == 0)
				w.host("a").boot()
				w.host("a").serves()
			}
		},
	}, {
		name: "a huge transaction in parts is not seen, is cut off and comes again", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			w.source.huge(100, 60, false)
			for range 8 {
				w.hold("a", "source stream part").reach().goOn()
			}
			at := w.hold("a", "source stream part").reach()
			w.must("parts are in the log", func() bool {
				snap := p.snapshot()
				defer snap.Close()
				_, pending := snap.Pending(pipelineID)
				return pending
			})
			ask(p)
			w.host("a").kill(true)
			at.goOn()
			p = again(w)
			p.caughtUp()
			ask(p)
		},
	}, {
		name: "a huge transaction is given up beside others and a compaction", options: options{rows: 2}, run: func(w *world) {
			p := begun(w)
			w.source.huge(100, 60, true)
			for range 8 {
				w.hold("a", "source stream part").reach().goOn()
			}
			before := w.hold("a", "failpoint before_lake_commit")
			w.source.load(20)
			before.reach()
			p.caughtUp()
			ask(p)
			before.goOn()
			p.inLake()
			ask(p)
		},
	}, {
		name: "a copy is cut off in its chunk while the stream goes on", options: options{rows: 12}, run: func(w *world) {
			chunk := w.hold("a", "source read chunk").reach()
			w.source.load(20)
			w.source.remove(3)
			w.source.truncatePairs()
			w.pass(3 * time.Second)
			w.host("a").kill(false)
			chunk.goOn()
			again(w).caughtUp()
		},
	}, {
		name: "a chunk is late: its rows were changed and deleted meanwhile", options: options{rows: 12}, run: func(w *world) {
			chunk := w.hold("a", "source read chunk").reach()
			w.source.load(20)
			w.source.remove(3)
			w.source.remove(4)
			w.source.do(func(db *source.DB) {
				db.Commit([]source.Change{w.source.noteLocked(), w.source.itemLocked(3)}, false)
			})
			w.pass(5 * time.Second) // what can be compacted is
			chunk.goOn()
			p := begun(w)
			ask(p)
			p.inLake()
			ask(p)
		},
	}})
}

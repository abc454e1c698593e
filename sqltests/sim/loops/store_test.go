package loops

import (
	"errors"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
)

const (
	putMarker      = "object put p1/s/*.seg.commit *"
	putBody        = "object put p1/s/*.seg *"
	putFence       = "object put p1/fence *"
	putCheckpoint  = "object put p1/checkpoint *"
	doneMarker     = "done object put p1/s/*.seg.commit *"
	doneCheckpoint = "done object put p1/checkpoint *"
)

// two is an object store with two hosts, of which a leads; b stands by.
func two(rows int) options { return options{store: true, hosts: 2, rows: rows} }

// leads lets everything go on until a host has the log.
func (h *host) leads() *process {
	h.w.t.Helper()
	h.w.must(h.name+" leads", func() bool { return h.w.leader() != nil && h.w.leader() == h.proc })
	return h.proc
}

// first has the first host lead and make its copies; then the others stand by.
func first(w *world) *process {
	w.t.Helper()
	w.bootOnce()
	p := w.hosts[0].leads()
	p.caughtUp()
	for _, h := range w.hosts[1:] {
		h.boot()
	}
	w.pass(time.Second)
	return p
}

// other is a host that does not lead.
func (p *process) other() *host {
	for _, h := range p.host.w.hosts {
		if h != p.host {
			return h
		}
	}
	return nil
}

// ousted lets everything go on until a process that was fenced has ended.
func (p *process) ousted() {
	h := p.host
	h.w.t.Helper()
	h.w.must(h.name+" has ended", func() bool { return closed(p.done) })
	if !errors.Is(p.err, wal.ErrFenced) {
		h.w.t.Fatalf("%s ended with %v", h.name, p.err)
	}
}

func TestStore(t *testing.T) {
	runAll(t, []scenario{{
		name: "a marker is held until the lease has ended", options: two(3), run: func(w *world) {
			p := first(w)
			beat := w.hold(p.host.name, putFence)
			marker := w.hold(p.host.name, putMarker)
			w.source.load(4)
			marker.reach()
			beat.reach()
			q := p.other().leads()
			w.pass(time.Second)
			beat.goOn()
			marker.goOn()
			p.ousted()
			q.caughtUp()
			ask(q)
			w.source.load(4)
			q.caughtUp()
		},
	}, {
		name: "a marker arrives after the take-over", options: two(3), run: func(w *world) {
			p := first(w)
			late := w.fail(p.host.name, putMarker, outcome{fault: faultstore.Fault{Kind: faultstore.Late}})
			w.source.load(4)
			late.reach()
			cut := w.hold(p.host.name, "object *") // nothing of it gets through from here on
			w.until(time.Second, cut.sprung)
			q := p.other()
			q.proc.seize.Store(true)
			listed := w.hold(q.name, "object list *").reach()
			arrive(w, p)
			listed.goOn()
			q.leads().caughtUp()
			ask(q.proc)
			cut.goOn()
			p.ousted()
		},
	}, {
		name: "a marker arrives when its place is taken", options: two(3), run: func(w *world) {
			p := first(w)
			late := w.fail(p.host.name, putMarker, outcome{fault: faultstore.Fault{Kind: faultstore.Late}})
			w.source.load(4)
			late.reach()
			cut := w.hold(p.host.name, "object *")
			w.until(time.Second, cut.sprung)
			q := p.other()
			q.proc.seize.Store(true)
			q.leads()
			arrive(w, p)
			w.source.load(3)
			q.proc.caughtUp()
			ask(q.proc)
			cut.goOn()
			p.ousted()
		},
	}, {
		name: "the reply to a marker is lost", options: two(3), run: func(w *world) {
			p := first(w)
			lost := w.fail(p.host.name, putMarker, outcome{fault: faultstore.Fault{Kind: faultstore.LostReply}})
			w.source.load(4)
			lost.reach()
			p.caughtUp()
			if w.leader() != p {
				w.t.Fatal("it has lost the log over a reply")
			}
		},
	}, {
		name: "a body is slow, the ones behind it are not answered before", options: two(3), run: func(w *world) {
			p := first(w)
			at := p.position()
			body := w.hold(p.host.name, putBody)
			w.source.put(1)
			body.reach()
			next := w.hold(p.host.name, "done object put p1/s/*.seg *")
			chunk := p.resync("items") // a copy appends beside the stream
			w.source.load(4)
			w.until(2*time.Second, next.sprung)
			next.goOn()
			if p.position() != at {
				w.t.Fatal("a later group is visible")
			}
			body.goOn()
			chunk.ok()
			p.caughtUp()
		},
	}, {
		name: "the old leader compacts after the take-over", options: two(3), run: func(w *world) {
			p := first(w)
			before := w.hold(p.host.name, "lake commit")
			w.source.load(8)
			before.reach()
			q := p.other()
			q.proc.seize.Store(true)
			q.leads().caughtUp()
			q.proc.inLake()
			before.goOn()
			w.source.load(4)
			q.proc.caughtUp()
			ask(q.proc)
			p.ousted()
		},
	}, {
		name: "an old leader reads on what it has", options: two(3), run: func(w *world) {
			p := first(w)
			w.source.load(8)
			p.caughtUp()
			pinned := w.hold(p.host.name, "query pinned")
			_, old := p.query()
			pinned.reach()
			q := p.other()
			q.proc.seize.Store(true)
			q.leads().caughtUp()
			pinned.goOn()
			_ = old.end() // all of its moment's rows, or an error
			p.ousted()
		},
	}, {
		name: "a leader that is stopped gives up its lease", options: two(3), run: func(w *world) {
			p := first(w)
			w.source.load(4)
			p.caughtUp()
			q := p.other()
			if err := p.host.stop(); err != nil {
				w.t.Fatal(err)
			}
			began := time.Now()
			q.leads()
			if took := time.Since(began); took >= leaseTTL {
				w.t.Fatalf("the take-over took %v", took)
			}
			p.host.boot()
		},
	}, {
		name: "two hosts take over at once", options: options{store: true, hosts: 3, rows: 3}, run: func(w *world) {
			p := first(w)
			w.source.load(6)
			p.caughtUp()
			var takers []*host
			for _, h := range w.hosts {
				if h != p.host {
					takers = append(takers, h)
				}
			}
			fence := w.hold(takers[0].name, putCheckpoint)
			takers[0].proc.seize.Store(true)
			fence.reach()
			takers[1].proc.seize.Store(true)
			q := takers[1].leads()
			q.caughtUp()
			fence.goOn()
			w.source.load(4)
			w.pass(5 * time.Second)
			w.source.load(4)
		},
	}, {
		name: "a taker stalls between its epoch and its marker", options: options{store: true, hosts: 3, rows: 3}, run: func(w *world) {
			p := first(w)
			w.source.load(6)
			p.caughtUp()
			taker := p.other()
			marker := w.hold(taker.name, putMarker)
			taker.proc.seize.Store(true)
			marker.reach()
			w.source.load(6)
			w.pass(2 * leaseTTL) // the third host takes over, or the first goes on
			marker.goOn()
			w.pass(5 * time.Second)
			w.source.load(4)
		},
	}, {
		name: "killed between the checkpoint and the deletions of a reclaim", options: two(3), run: func(w *world) {
			p := first(w)
			done := w.hold(p.host.name, doneCheckpoint)
			w.source.load(20)
			done.reach()
			p.host.kill(true)
			p.host.boot()
			w.must("a host leads", func() bool { return w.leader() != nil })
			w.leader().caughtUp()
			ask(w.leader())
		},
	}, {
		name: "the store does not answer for a while", options: two(3), run: func(w *world) {
			p := first(w)
			w.source.load(4)
			marker := w.hold(p.host.name, doneMarker).reach() // committed, and nobody knows
			ask(p)
			w.pass(time.Second)
			marker.letGo(outcome{fault: faultstore.Fault{Kind: faultstore.LostReply}})
			p.caughtUp()
			ask(p)
		},
	}, {
		name: "PAUSE on the leader, then another host takes over", options: two(3), run: func(w *world) {
			p := first(w)
			body := w.hold(p.host.name, putBody)
			w.source.load(3)
			body.reach()
			pause := p.pause()
			pause.waits(time.Second)
			body.goOn()
			pause.ok()
			q := p.other()
			q.proc.seize.Store(true)
			w.must("the other host has the log", func() bool { return w.leader() == q.proc })
			w.source.load(3)
			q.proc.resume().ok()
			q.proc.caughtUp()
		},
	}})
}

// arrive has the writes arrive that are under way from a process.
func arrive(w *world, p *process) {
	w.t.Helper()
	if len(p.way.Late()) == 0 {
		w.t.Fatal("nothing is under way")
	}
	for range p.way.Late() {
		op, err := p.way.Deliver(w.t.Context(), 0)
		w.t.Logf("%s: %v", op, err)
	}
}

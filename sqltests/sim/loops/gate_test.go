package loops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
)

// errDead is what a process meets that has died.
var errDead = errors.New("process is dead")

// errInjected is the cause of every error that a scenario makes.
var errInjected = errors.New("injected fault")

// outcome is what a goroutine is told where it meets the world. The zero value lets it go on.
type outcome struct {
	err   error
	fault faultstore.Fault // of a request to the object store
}

// visit is a goroutine that waits at a place.
type visit struct {
	p       *process
	place   string
	release chan outcome
}

// trap holds the next goroutine that comes to a place.
type trap struct {
	w      *world
	host   string // "" for any
	place  string // see matches
	caught *visit
	at     time.Time // when it was caught
	// fault, if set, is what the goroutine is told at once instead of being held.
	fault *outcome
}

// gate is where goroutines meet the world.
type gate struct {
	mu    sync.Mutex
	turns bool // one goroutine goes on at a time
	// waiting are those who wait for their turn, in the order in which they came.
	waiting []*visit
	traps   []*trap
	arrived chan struct{}
	trace   []string
	visits  int
}

// executedPlace is where a query has its rows.
const executedPlace = "query executed"

// looked says whether who is at a place waits until the checkers have looked, in turns or not:
// the next pin of a query is another; what an object store has is soon overwritten; a name
// that has vanished may be taken again.
func looked(place string) bool {
	return place == executedPlace || slices.ContainsFunc([]string{"done object put ", "done object delete", "done rename ", "done remove "},
		func(begin string) bool { return strings.HasPrefix(place, begin) })
}

// traceMost bounds what is kept of what happened, for messages.
const traceMost = 400

func (g *gate) sayLocked(format string, args ...any) {
	if len(g.trace) == traceMost {
		g.trace = slices.Delete(g.trace, 0, traceMost/2)
	}
	g.trace = append(g.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// pass is where a goroutine of a process meets the world.
func (g *gate) pass(p *process, place string) outcome {
	if p.dead.Load() {
		return outcome{err: errDead}
	}
	g.mu.Lock()
	g.visits++
	g.sayLocked("%s %d: %s", p.host.name, p.incarnation, place)
	v := &visit{p: p, place: place, release: make(chan outcome, 1)}
	i := slices.IndexFunc(g.traps, func(t *trap) bool { return t.catches(v) })
	switch {
	case i >= 0:
		t := g.traps[i]
		g.traps = slices.Delete(g.traps, i, i+1)
		t.at = time.Now()
		if t.fault != nil {
			t.caught = v
			g.sayLocked("! %v", *t.fault)
			g.mu.Unlock()
			return *t.fault
		}
		g.sayLocked("! held")
		t.caught = v
	case g.turns, looked(place):
		g.waiting = append(g.waiting, v)
	default:
		g.mu.Unlock()
		return outcome{}
	}
	g.mu.Unlock()
	select {
	case g.arrived <- struct{}{}:
	default:
	}
	out := <-v.release
	if p.dead.Load() {
		return outcome{err: errDead}
	}
	return out
}

// catches says whether a goroutine that is at a place is caught.
func (t *trap) catches(v *visit) bool {
	return (t.host == "" || t.host == v.p.host.name) && matches(t.place, v.place)
}

// matches: the text begins with what stands before the first "*", and has the rest in order.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && text == ""
	}
	for _, part := range parts[1:] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// next lets one of those go on who wait for their turn; false when nobody does.
func (g *gate) next(choose func(n int) int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		return false
	}
	i := choose(len(g.waiting))
	v := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	g.sayLocked("> %s", v.place)
	v.release <- outcome{}
	return true
}

// free lets everything go on that waits of a process; nil: of all.
func (g *gate) free(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.waiting[:0]
	for _, v := range g.waiting {
		if p == nil || v.p == p {
			v.release <- outcome{}
		} else {
			kept = append(kept, v)
		}
	}
	g.waiting = kept
}

// hold has the next goroutine of a host ("": any) stay at a place.
func (w *world) hold(host, place string) *trap { return w.set(&trap{w: w, host: host, place: place}) }

// fail has the next goroutine of a host that is at a place told something.
func (w *world) fail(host, place string, out outcome) *trap {
	return w.set(&trap{w: w, host: host, place: place, fault: &out})
}

func (w *world) set(t *trap) *trap {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	w.gate.traps = append(w.gate.traps, t)
	w.held = append(w.held, t)
	return t
}

// sprung says whether the trap has caught somebody.
func (t *trap) sprung() bool {
	t.w.gate.mu.Lock()
	defer t.w.gate.mu.Unlock()
	return t.caught != nil
}

// reach lets everything go on until the trap has caught somebody. A scenario that does not
// get there has proved nothing.
func (t *trap) reach() *trap {
	t.w.t.Helper()
	t.w.must("somebody is at "+t.place, t.sprung)
	return t
}

// letGo lets the caught one go on, with an outcome.
func (t *trap) letGo(out outcome) {
	t.w.gate.mu.Lock()
	defer t.w.gate.mu.Unlock()
	t.dropLocked()
	if v := t.caught; v != nil && t.fault == nil {
		t.w.gate.sayLocked("> %s, %v", v.place, out)
		select {
		case v.release <- out:
		default: // it was let go
		}
	}
}

func (t *trap) dropLocked() {
	t.w.gate.traps = slices.DeleteFunc(t.w.gate.traps, func(o *trap) bool { return o == t })
}

// goOn lets the caught one go on.
func (t *trap) goOn() { t.letGo(outcome{}) }

// quantum is how much time passes at most between two looks of the checkers.
const quantum = 50 * time.Millisecond

// until lets everything go on until cond holds; false when it does not within a time.
func (w *world) until(limit time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(limit)
	w.bootOnce()
	for {
		synctest.Wait()
		w.restart()
		w.look()
		if w.violation != nil {
			w.t.Fatalf("%v", w.violation)
		}
		switch {
		case cond():
			return true
		case w.gate.next(w.choose):
			continue
		case !time.Now().Before(deadline):
			return false
		}
		select {
		case <-w.gate.arrived:
		case <-time.After(quantum):
		}
	}
}

// patience is how long a scenario waits for what must happen.
const patience = 2 * time.Minute

// must lets everything go on until cond holds.
func (w *world) must(what string, cond func() bool) {
	w.t.Helper()
	if !w.until(patience, cond) {
		w.t.Fatalf("not reached: %s", what)
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.until(d, func() bool { return false })
}

// at is where a goroutine of the process meets the world.
func (p *process) at(place string) error { return p.host.w.gate.pass(p, place).err }

// exchange is an effect between two places.
func (p *process) exchange(place string, do func() error) error {
	if err := p.at(place); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return p.at("done " + place)
}

// failpoints is a process's env.Failpoints.
type failpoints struct{ p *process }

var _ env.Failpoints = failpoints{}

// Hit implements env.Failpoints.
func (f failpoints) Hit(fp env.Failpoint) error {
	if fp == env.AfterUpdate {
		f.p.updated()
	}
	return f.p.at("failpoint " + fp.String())
}

// pending is something that a goroutine of a process does.
type pending struct {
	w    *world
	name string
	done chan struct{}
	err  error
}

// start has a goroutine of a process do something.
func (p *process) start(name string, do func(context.Context) error) *pending {
	out := &pending{w: p.host.w, name: name, done: make(chan struct{})}
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		defer close(out.done)
		out.err = do(p.ctx)
	}()
	return out
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// ended says whether it has.
func (d *pending) ended() bool { return closed(d.done) }

// end lets everything go on until it has ended.
func (d *pending) end() error {
	d.w.t.Helper()
	d.w.must(d.name+" ends", d.ended)
	return d.err
}

// ok lets everything go on until it has ended well.
func (d *pending) ok() {
	d.w.t.Helper()
	if err := d.end(); err != nil {
		d.w.t.Fatalf("%s: %v", d.name, err)
	}
}

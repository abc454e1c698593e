package sim

import (
	"strings"
	"time"
)

// burstMost is how many exchanges a task may make in a row.
const burstMost = 6

// going limits how long tasks go on.
type going struct {
	// points is how many exchanges may happen.
	points int
	// time is by how much the clock may move when nobody is ready.
	time time.Duration
	// only, when set, says who may go on.
	only func(*task) bool
}

// goOn lets tasks run, in an order that the record's randomness decides.
func (w *World) goOn(g going) {
	until, end := w.points+g.points, w.now.Add(g.time)
	for turns := 0; w.points < until && turns < 4*g.points && w.violation == nil; turns++ {
		w.boot()
		t := w.choose(g.only)
		if t == nil {
			if !w.pass(end) {
				return
			}
			continue
		}
		w.run(t)
	}
}

// choose picks a task that is ready; nil if none is. It takes the first from a random place
// on: nearly fair, and one look in most cases.
func (w *World) choose(only func(*task) bool) *task {
	start := w.rng.n(max(1, len(w.tasks)))
	for i := range w.tasks {
		t := w.tasks[(start+i)%len(w.tasks)]
		if (only == nil || only(t)) && w.isReady(t) {
			return t
		}
	}
	return nil
}

// run gives a task a few turns, until it waits or something has happened that the checkers
// want to see.
func (w *World) run(t *task) {
	for range 1 + w.rng.n(burstMost) {
		w.resume(t)
		if len(w.graves) > 0 || len(w.view.Events) > 0 || !w.isReady(t) {
			break
		}
	}
	w.reap()
	w.look()
}

// pass moves the clock to the next moment at which somebody can go on, if that is not after
// end.
func (w *World) pass(end time.Time) bool {
	next := w.nextDeadline()
	if next.IsZero() || next.After(end) {
		if w.now.Before(end) {
			w.advance(end.Sub(w.now))
		}
		return false
	}
	if next.After(w.now) {
		w.advance(next.Sub(w.now))
	}
	if !w.loadAt.IsZero() && !w.now.Before(w.loadAt) {
		w.loadAt = w.now.Add(loadInterval)
		changes, _ := w.txn(&w.rng, 0)
		w.db.Commit(changes, false)
	}
	return true
}

// loadInterval is how often a busy source has a transaction.
const loadInterval = 400 * time.Millisecond

// boot starts the machines that have been down long enough.
func (w *World) boot() {
	for _, h := range w.hosts {
		if h.proc == nil && !w.now.Before(h.bootAt) {
			h.boot()
		}
	}
}

// settle lets tasks run until nothing can for less than a while.
func (w *World) settle() { w.goOn(going{points: settlePoints, time: 3 * time.Second}) }

const settlePoints = 400

// activities are the kinds of tasks that a schedule can single out, by the begin of their
// names.
var activities = []string{
	"log owner", "log commits", "log background", "compactor", "reclaimer", "go", "query", "statement", "supervisor",
}

func (w *World) part(arg uint8, points int) {
	name := activities[int(arg)%len(activities)]
	w.goOn(going{points: points, only: func(t *task) bool { return strings.HasPrefix(t.name, name) }})
}

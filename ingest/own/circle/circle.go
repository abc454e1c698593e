// Package circle finds sessions that wait for each other in a circle, whatever locks they wait
// for: each kind of locks tells one Graph who waits.
//
// The graph's mutex guards the locks of all kinds, so that what one sees of the others is of the
// same moment. A session waits for one lock at a time.
package circle

import (
	"fmt"
	"sync"
)

// Wait is what a session waits for.
type Wait struct {
	// Lock names it: "ExclusiveLock on relation 20001 of database 5".
	Lock func() string
	// Blockers are the sessions that must let go first. It is called with the graph locked.
	Blockers func() []uint32
}

// Graph is who waits for whom. Its methods are called with it locked. The zero value is ready.
type Graph struct {
	sync.Mutex
	waits map[uint32]Wait
}

// Begin notes that a session waits. It returns the circle that this closes, a line for each
// session, as PostgreSQL describes it, from that session on; then the session must not wait, and
// nothing is noted. Nil: there is none.
func (g *Graph) Begin(pid uint32, w Wait) []string {
	if g.waits == nil {
		g.waits = map[uint32]Wait{}
	}
	g.waits[pid] = w
	circle := g.find(pid)
	if circle != nil {
		delete(g.waits, pid)
	}
	return circle
}

// End notes that a session does not wait any more.
func (g *Graph) End(pid uint32) { delete(g.waits, pid) }

// find follows who waits for whom from a session up to itself.
func (g *Graph) find(pid uint32) []string {
	seen := map[uint32]bool{}
	var follow func(from uint32) []string
	follow = func(from uint32) []string {
		w, waits := g.waits[from]
		if seen[from] || !waits {
			return nil
		}
		seen[from] = true
		for _, by := range w.Blockers() {
			rest := []string{}
			if by != pid {
				if rest = follow(by); rest == nil {
					continue
				}
			}
			line := fmt.Sprintf("Process %d waits for %s; blocked by process %d.", from, w.Lock(), by)
			return append([]string{line}, rest...)
		}
		return nil
	}
	return follow(pid)
}

package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
)

// fullEvery is how many steps pass between two looks at everything; in between the
// checkers look at what has changed.
const fullEvery = 500

// Suite is the checkers of one run, with what they share. Not safe for concurrent use.
type Suite struct {
	facts    *facts
	checkers []Checker
}

// NewSuite makes the checkers of a run.
func NewSuite() *Suite {
	f := newFacts()
	return &Suite{facts: f, checkers: all(f)}
}

// all are the checkers in the order of their labels.
func all(f *facts) []Checker {
	cs := []Checker{
		&a1{f}, &a2{f}, newC1(), newC2(f), newC3(f), &c4{f}, &d1{f}, &d2{}, newF1(f), &h1{f}, newL1(f), &m1{f}, &m2{f},
		newN1(f), newO1(f), &p1{f}, newP2(), newP3(f), newP4(f), newQ1(f), &r1{f}, &r2{f}, newS1(), &t1{f}, &w1{f}, &w2{f},
		newW3(f), &w4{f},
	}
	slices.SortFunc(cs, func(a, b Checker) int { return strings.Compare(a.Label(), b.Label()) })
	return cs
}

// Labels are the invariants that are checked, in order.
func (s *Suite) Labels() []string {
	var out []string
	for _, c := range s.checkers {
		out = append(out, c.Label())
	}
	return out
}

// Check looks at the world after a step. It returns the first broken invariant in the
// order of labels, nil when all hold. Call it after every step, in order.
func (s *Suite) Check(v *View) *Violation {
	if err := s.facts.update(v); err != nil {
		return &Violation{Label: "W2", Step: v.Step, Detail: fmt.Sprintf("the stores cannot be read: %v", err)}
	}
	for _, c := range s.checkers {
		if err := c.Check(v); err != nil {
			return &Violation{Label: c.Label(), Step: v.Step, Detail: err.Error()}
		}
	}
	return nil
}

// Healing says that rows which were refused are taken in from now on.
func (s *Suite) Healing() { s.facts.healing = true }

// Heal says that rows which were refused have been taken in since.
func (s *Suite) Heal() {
	s.facts.healed = true
}

// Want are the rows that a readable table must have at a position of its pipeline, rendered
// and sorted.
func (s *Suite) Want(v *View, t *catalog.Table, at change.Position) []string {
	o := s.facts.oracle.at(v.Source.History, s.facts.admits(v, t), tableLSN(t, at), t.Current)
	return o.sorted()
}

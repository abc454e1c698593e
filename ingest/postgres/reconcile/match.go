package reconcile

import (
	"errors"
	"fmt"
)

// ErrAmbiguous means that a description can speak of several sets of columns.
var ErrAmbiguous = errors.New("columns of the description can be told from each other in more than one way")

// ErrOlder means that the description lacks a column that was known before and that the
// table still has: it is of a time before.
var ErrOlder = errors.New("description is older than the schema")

// ErrUnknown means that the description has a column that the table never had.
var ErrUnknown = errors.New("description has a column that the table never had")

// Shape is how a column looked at some time.
type Shape struct {
	Name   string
	OID    uint32
	TypMod int32
}

// Attribute is a column that the table has, or had once.
type Attribute struct {
	Number int16
	// Known is how it looked in the schema version in force, nil when it was not in it.
	Known *Shape
	// Now is how the catalog has it, nil when it has been dropped.
	Now *Shape
	// Changed is the transaction that changed it last, 0 when that is unknown or long ago.
	Changed uint32
	// Silent says that a description may be without the attribute though the table has it.
	Silent bool
}

// Settled says that the attribute looked to a transaction as it does now: whoever writes
// to a table and gets his number after the change's has waited for the change.
func (a *Attribute) Settled(xid uint32) bool {
	return a.Changed == 0 || xid != 0 && int32(xid-a.Changed) > 0
}

// gone says that nothing is known of how the attribute looked: it came and went.
func (a *Attribute) gone() bool { return a.Known == nil && a.Now == nil }

// required says that a description must have the attribute: it is there before and after.
func (a *Attribute) required(xid uint32) bool {
	return a.Now != nil && !a.Silent && (a.Known != nil || a.Settled(xid))
}

// fit says whether a described column can be the attribute, and whether it is likely: it
// has a name that the attribute is known to have had. The type does not count, for it can
// have changed more than once, and so can the name.
func (a *Attribute) fit(d Shape, xid uint32) (possible, likely bool) {
	if a.Settled(xid) {
		return a.Now != nil && *a.Now == d, true
	}
	return true, a.Known != nil && a.Known.Name == d.Name || a.Now != nil && a.Now.Name == d.Name
}

// Match returns the numbers of the described columns. attributes are by number, described
// are in the order of the message, xid is the transaction that the message came in. It
// wraps ErrAmbiguous, ErrOlder or ErrUnknown.
//
// There may be several ways to lay the described columns, in order, on attributes. One is
// the answer when it is the only one, or the only one in which every column has a name
// that it is known to have had; but not when another has a column that came and went
// between the schema version and the catalog as it is now.
func Match(attributes []Attribute, described []Shape, xid uint32) ([]int16, error) {
	need := 0
	for i := range attributes {
		if attributes[i].Known != nil && attributes[i].Now != nil && !attributes[i].Silent {
			need++
		}
	}
	if len(described) < need {
		return nil, fmt.Errorf("%d columns, at least %d: %w", len(described), need, ErrOlder)
	}
	m := newMatcher(attributes, described, xid)
	all := m.at(0, 0)
	switch {
	case all.any == 0:
		return nil, fmt.Errorf("%d columns: %w", len(described), ErrUnknown)
	case all.any == 1:
		return m.path(func(w ways) bool { return w.any > 0 }), nil
	case all.likely == 1 && all.gone == 0:
		return m.path(func(w ways) bool { return w.likely > 0 }), nil
	}
	return nil, fmt.Errorf("%d columns: %w", len(described), ErrAmbiguous)
}

// ways are in how many ways a rest of the described columns can be laid on a rest of the
// attributes, each at most 2: in any, with likely columns only, with one that came and
// went.
type ways struct{ any, likely, gone int }

func (w ways) plus(o ways) ways {
	return ways{min(2, w.any+o.any), min(2, w.likely+o.likely), min(2, w.gone+o.gone)}
}

// matcher counts ways, from the end.
type matcher struct {
	attributes []Attribute
	described  []Shape
	xid        uint32
	table      []ways // by attribute and described column
}

func newMatcher(attributes []Attribute, described []Shape, xid uint32) *matcher {
	m := &matcher{attributes: attributes, described: described, xid: xid}
	width := len(described) + 1
	m.table = make([]ways, (len(attributes)+1)*width)
	m.table[len(m.table)-1] = ways{any: 1, likely: 1}
	for a := len(attributes) - 1; a >= 0; a-- {
		for d := range width {
			m.table[a*width+d] = m.taking(a, d).plus(m.leaving(a, d))
		}
	}
	return m
}

func (m *matcher) at(a, d int) ways { return m.table[a*(len(m.described)+1)+d] }

// leaving are the ways without attribute a. One that the table has now can only have been
// added later, and with it all after it: numbers are given in order.
func (m *matcher) leaving(a, d int) ways {
	attribute := &m.attributes[a]
	if attribute.required(m.xid) || attribute.Now != nil && !attribute.Silent && d < len(m.described) {
		return ways{}
	}
	return m.at(a+1, d)
}

// taking are the ways in which column d is attribute a.
func (m *matcher) taking(a, d int) ways {
	if d == len(m.described) {
		return ways{}
	}
	attribute := &m.attributes[a]
	possible, likely := attribute.fit(m.described[d], m.xid)
	if !possible {
		return ways{}
	}
	w := m.at(a+1, d+1)
	if !likely {
		w.likely = 0
	}
	if attribute.gone() {
		w.gone = w.any
	}
	return w
}

// path is the one way of those that count.
func (m *matcher) path(counts func(ways) bool) []int16 {
	out := make([]int16, 0, len(m.described))
	for a, d := 0, 0; a < len(m.attributes); a++ {
		if counts(m.taking(a, d)) {
			out = append(out, m.attributes[a].Number)
			d++
		}
	}
	return out
}

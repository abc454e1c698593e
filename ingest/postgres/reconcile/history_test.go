package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/skipprd/skipprd/ingest/postgres/reconcile"
)

// history is a table's columns at moments, one change apart. Change n is made by
// transaction 100+10n.
type history struct {
	moments []map[int16]reconcile.Shape
	changed map[int16]uint32
	last    int16
}

// newHistory makes up changes that leave at most one explanation out: names are new ones
// but for a column added under a dropped one's.
func newHistory(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 7))
	h := &history{changed: map[int16]uint32{}, last: 2}
	now := map[int16]reconcile.Shape{1: {Name: "id", OID: 23, TypMod: -1}, 2: {Name: "b", OID: 23, TypMod: -1}}
	h.keep(now)
	names := []string{"b", "c", "d"}
	for n := 1; n < 7; n++ {
		next := map[int16]reconcile.Shape{}
		var numbers []int16
		used := map[string]bool{}
		for number := int16(1); number <= h.last; number++ {
			if s, ok := now[number]; ok {
				next[number], used[s.Name] = s, true
				numbers = append(numbers, number)
			}
		}
		name := names[r.IntN(len(names))]
		number := numbers[r.IntN(len(numbers))]
		switch kind := r.IntN(4); {
		case kind == 0 && !used[name]:
			h.last++
			number = h.last
			next[number] = reconcile.Shape{Name: name, OID: []uint32{23, 25}[r.IntN(2)], TypMod: -1}
		case kind == 1 && number > 1:
			delete(next, number)
		case kind == 2:
			s := next[number]
			s.Name = fmt.Sprintf("x%d", n)
			next[number] = s
		case kind == 3 && next[number].OID == 23:
			s := next[number]
			s.OID = 20
			next[number] = s
		default:
			number = 0
		}
		if number != 0 {
			h.changed[number] = uint32(100 + 10*n)
		}
		now = next
		h.keep(now)
	}
	return h
}

func (h *history) keep(m map[int16]reconcile.Shape) { h.moments = append(h.moments, m) }

// attributes are those of the end, with what was known at a moment.
func (h *history) attributes(known int) []reconcile.Attribute {
	var out []reconcile.Attribute
	for n := int16(1); n <= h.last; n++ {
		a := reconcile.Attribute{Number: n, Changed: h.changed[n]}
		if s, ok := h.moments[known][n]; ok {
			a.Known = &s
		}
		if s, ok := h.moments[len(h.moments)-1][n]; ok {
			a.Now = &s
		}
		out = append(out, a)
	}
	return out
}

func (h *history) numbers(at int) []int16 {
	var out []int16
	for n := int16(1); n <= h.last; n++ {
		if _, ok := h.moments[at][n]; ok {
			out = append(out, n)
		}
	}
	return out
}

func (h *history) described(at int) []reconcile.Shape {
	var out []reconcile.Shape
	for _, n := range h.numbers(at) {
		out = append(out, h.moments[at][n])
	}
	return out
}

func (h *history) String() string {
	var b strings.Builder
	for i := range h.moments {
		fmt.Fprintf(&b, "%d:", i)
		for _, n := range h.numbers(i) {
			fmt.Fprintf(&b, " %d %s:%d", n, h.moments[i][n].Name, h.moments[i][n].OID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

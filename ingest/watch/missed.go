package watch

import (
	"maps"
	"slices"
)

// Counters are what a source counts of the updates and deletes of a table, those that were
// rolled back among them, with some delay.
type Counters struct {
	// Epoch is another one when the source has begun to count anew: after a crash, a
	// fail-over, or because somebody had it.
	Epoch string
	// Of are the counters of the table and each of its partitions, by their numbers there.
	Of map[uint32]int64
	// Born are those of Of that are partitions since they were made.
	Born map[uint32]bool
}

// Missed are updates and deletes of a table that the source does not send, since a moment at
// or before that of the rows that are here. It is never changed in place.
type Missed struct {
	Epoch string
	// Base are the source's counters at the moment that Count is of.
	Base  map[uint32]int64
	Count int64
	// Doubts says that the counters began anew meanwhile, so that there may have been more.
	Doubts bool
}

// MissedSince is where counting begins.
func MissedSince(now Counters) Missed { return Missed{Epoch: now.Epoch, Base: now.Of} }

// Look takes the counters in. total is how many changes were missed until then; next is what is to
// be kept, which is m unless m cannot tell the total for long.
func (m Missed) Look(now Counters) (next Missed, total int64) {
	again := m.Epoch != now.Epoch
	total = m.Count
	for of, n := range now.Of {
		base, known := m.Base[of]
		switch {
		case !known && !now.Born[of]: // attached: what came before it was is in its rows
		case n >= base: // 0 if it was made since
			total += n - base
		default:
			again = true
			total += n
		}
	}
	same := slices.Equal(slices.Sorted(maps.Keys(m.Base)), slices.Sorted(maps.Keys(now.Of)))
	if !again && same && (m.Count > 0 || total == 0) {
		return m, total
	}
	return Missed{Epoch: now.Epoch, Base: now.Of, Count: total, Doubts: m.Doubts || again}, total
}

package script

import "math/rand/v2"

// Limits of what is generated.
const (
	// swarmShare of a hundred schedules switches operations off and weighs the rest by
	// chance; the others use weights that were tuned by hand.
	swarmShare = 80
)

// ownEvery is how many schedules there are for one with tables of our own; no draw of its own.
const ownEvery = 4

// weights of the operations, tuned by hand.
var weights = [opEnd]int{
	Tick: 8, Run: 40, Part: 12, Txn: 22, Crash: 3, Query: 8, Statement: 2, Hold: 2, Compact: 4, Seal: 4, Pause: 1,
	Skew: 1, Idle: 1, Alter: 2, Space: 1, Takeover: 2, Abort: 1, Settle: 2,
}

// indispensable operations stay on in every swarm: without them nothing happens.
var indispensable = map[Op]bool{Run: true, Txn: true, Tick: true}

// Generated are the operations that generated schedules have.
func Generated() []Op {
	var out []Op
	for op, weight := range weights {
		if weight > 0 {
			out = append(out, Op(op))
		}
	}
	return out
}

// FaultsMax is how many kinds of faults a generator chooses among, the first being none.
// Those from faultsOfStores to before faultsOfAll befall object stores only.
const (
	FaultsMax      = 25
	faultsOfStores = 13
	faultsOfAll    = 23
)

// Generate makes the schedule of a seed for a log on a disk. records is how many it has, 0: a
// number of the seed's own.
func Generate(seed uint64, records int) Schedule { return generate(seed, records, false) }

// GenerateStore is Generate for a log on an object store.
func GenerateStore(seed uint64, records int) Schedule { return generate(seed, records, true) }

func generate(seed uint64, records int, store bool) Schedule {
	r := rand.New(rand.NewPCG(seed, 0x5c4edb1e))
	s := Schedule{Seed: seed, Own: seed*0x9E3779B97F4A7C15>>32%ownEvery == 0}
	for i := range s.Config {
		if r.IntN(3) > 0 {
			s.Config[i] = byte(r.IntN(256))
		}
	}
	w, faults := weights, [FaultsMax]int{}
	faultShare := 8
	fits := func(fault int) bool { return store || fault < faultsOfStores || fault >= faultsOfAll }
	for i := 1; i < FaultsMax; i++ {
		if fits(i) {
			faults[i] = 1
		}
	}
	if r.IntN(100) < swarmShare {
		for op := range w {
			switch {
			case weights[op] == 0:
			case r.IntN(3) == 0 && !indispensable[Op(op)]:
				w[op] = 0
			default:
				w[op] *= 1 << r.IntN(4)
			}
		}
		for i := 1; i < FaultsMax; i++ {
			if fits(i) {
				faults[i] = r.IntN(2) * (1 << r.IntN(3))
			}
		}
		faultShare = []int{0, 2, 8, 20, 40}[r.IntN(5)]
	}
	if records == 0 {
		records = length(r, store)
	}
	for range records {
		rec := Record{Op: Op(pick(r, w[:])), Arg: uint8(r.IntN(256)), Rand: uint16(r.IntN(1 << 16))}
		if r.IntN(100) < faultShare {
			rec.Fault = uint8(pick(r, faults[:]))
		}
		s.Records = append(s.Records, rec)
	}
	return s
}

// shares of a thousand schedules that are short, middling and long; the rest is very long.
// Most bugs need few records, some need many. Those of an object store have several hosts, so
// each record does more.
var (
	sharesOfDisks  = [3]int{700, 220, 70}
	sharesOfStores = [3]int{830, 130, 35}
)

// length is how many records a schedule has.
func length(r *rand.Rand, store bool) int {
	shares := sharesOfDisks
	if store {
		shares = sharesOfStores
	}
	switch n := r.IntN(1000); {
	case n < shares[0]:
		return 2 + r.IntN(10)
	case n < shares[0]+shares[1]:
		return 10 + r.IntN(20)
	case n < shares[0]+shares[1]+shares[2]:
		return 30 + r.IntN(50)
	}
	return 80 + r.IntN(300)
}

// pick chooses an index by weight; 0 when all are zero.
func pick(r *rand.Rand, weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return 0
	}
	n := r.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}

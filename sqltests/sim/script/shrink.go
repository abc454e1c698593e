package script

import (
	"context"
	"slices"
)

// Shrink makes a failing schedule small: fewer records, records that only let time pass,
// plain parameters. fails says whether a schedule still fails, in the same way as the first
// one did; it must be a function of the schedule. Shrink ends with the smallest schedule that
// it found when nothing more helps, after runs calls of fails, or when ctx ends.
func Shrink(ctx context.Context, s Schedule, runs int, fails func(Schedule) bool) Schedule {
	k := &shrinker{ctx: ctx, best: s, runs: runs, fails: fails}
	k.cut()
	for k.less = true; k.less && !k.over(); {
		k.less = false
		k.withoutChunks()
		k.toTicks()
		k.joinTicks()
		k.plain()
	}
	return k.best
}

type shrinker struct {
	ctx   context.Context
	best  Schedule
	runs  int // that are left
	less  bool
	fails func(Schedule) bool
}

func (k *shrinker) over() bool { return k.runs <= 0 || k.ctx.Err() != nil }

// try takes records over if they still fail.
func (k *shrinker) try(records []Record) bool {
	s := k.best
	s.Records = records
	return k.trySchedule(s)
}

func (k *shrinker) trySchedule(s Schedule) bool {
	if k.over() {
		return false
	}
	k.runs--
	if !k.fails(s) {
		return false
	}
	k.best, k.less = s, true
	return true
}

// cut looks for the shortest beginning that fails, by halves: a longer one fails too in most
// cases.
func (k *shrinker) cut() {
	low, high := 0, len(k.best.Records)
	for low < high && !k.over() {
		middle := (low + high) / 2
		if k.try(k.best.Records[:middle:middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
}

// withoutChunks takes runs of records out, long ones first.
func (k *shrinker) withoutChunks() {
	for size := max(1, len(k.best.Records)/2); size > 0; size /= 2 {
		for at := 0; at < len(k.best.Records); {
			rest := k.best.Records[min(len(k.best.Records), at+size):]
			if k.over() {
				return
			}
			if !k.try(slices.Concat(k.best.Records[:at], rest)) {
				at += size
			}
		}
	}
}

// toTicks has records do nothing but let time pass.
func (k *shrinker) toTicks() {
	for i, r := range k.best.Records {
		if r.Op != Tick {
			k.replace(i, Record{Op: Tick})
		}
	}
}

// joinTicks puts neighbouring ticks together, since a bug may need their time.
func (k *shrinker) joinTicks() {
	for i := 0; i+1 < len(k.best.Records); {
		a, b := k.best.Records[i], k.best.Records[i+1]
		if a.Op != Tick || b.Op != Tick || int(a.Arg)+int(b.Arg) >= 255 {
			i++
			continue
		}
		joined := Record{Op: Tick, Arg: a.Arg + b.Arg + 1}
		if !k.try(slices.Concat(k.best.Records[:i], []Record{joined}, k.best.Records[i+2:])) {
			i++
		}
	}
}

func (k *shrinker) replace(i int, r Record) bool {
	if k.best.Records[i] == r {
		return false
	}
	records := slices.Clone(k.best.Records)
	records[i] = r
	return k.try(records)
}

// simple are the parameters that are tried, simplest first.
var simple = []int{0, 1, 2, 3, 4, 8, 16}

// plain makes parameters simple, of the schedule and of each record.
func (k *shrinker) plain() {
	if s := k.best; s.Seed != 0 {
		s.Seed = 0
		k.trySchedule(s)
	}
	for i := range k.best.Config {
		for _, v := range simple {
			s := k.best
			if int(s.Config[i]) <= v {
				break
			}
			if s.Config[i] = byte(v); k.trySchedule(s) {
				break
			}
		}
	}
	for i := range k.best.Records {
		r := k.best.Records[i]
		r.Fault = 0
		k.replace(i, r)
		for _, v := range simple {
			if r = k.best.Records[i]; int(r.Rand) <= v {
				break
			}
			if r.Rand = uint16(v); k.replace(i, r) {
				break
			}
		}
		for _, v := range simple {
			if r = k.best.Records[i]; int(r.Arg) <= v {
				break
			}
			if r.Arg = uint8(v); k.replace(i, r) {
				break
			}
		}
	}
}

package sim

import (
	"context"
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/skipprd/skipprd/wal/env"
)

// clock is a process's env.Clock: the world's time, by as much as its machine's clock is off.
type clock struct{ p *process }

var _ env.Clock = clock{}

// Now implements env.Clock. As on a real machine, the time it returns carries a monotonic
// reading, by which times of one process are compared: a jump does not show in it.
func (c clock) Now() time.Time {
	w := c.p.world
	return withMonotonic(w.now.Add(c.p.host.skew), w.now.Sub(origin)+time.Hour)
}

// rawTime is the memory of a time.Time. The package time makes times with a monotonic reading
// only of the machine's clock.
type rawTime struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// withMonotonic is a time with a monotonic reading: bit 63 of wall says that there is one, in
// ext; then wall has 33 bits of seconds since 1885 and 30 of nanoseconds.
func withMonotonic(at time.Time, reading time.Duration) time.Time {
	const from1885 = 2682288000 // seconds to 1970
	t := at.UTC()
	r := (*rawTime)(unsafe.Pointer(&t))
	r.wall = 1<<63 | uint64(at.Unix()+from1885)<<30 | uint64(at.Nanosecond())
	r.ext = int64(reading)
	return t
}

// Since implements env.Clock.
func (c clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Sleep implements env.Clock.
func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	return tasks(c).Wait(ctx, d)
}

// Timer implements env.Clock.
func (c clock) Timer(d time.Duration) (fired <-chan time.Time, stop func()) {
	w := c.p.world
	t := &timer{at: w.now.Add(d), fired: make(chan time.Time, 1)}
	w.timers = append(w.timers, t)
	w.fire()
	return t.fired, func() { t.stopped = true }
}

type timer struct {
	at      time.Time
	fired   chan time.Time
	stopped bool
}

// advance moves the world's time.
func (w *World) advance(d time.Duration) {
	w.now = w.now.Add(d)
	w.fire()
}

func (w *World) fire() {
	kept := w.timers[:0]
	for _, t := range w.timers {
		switch {
		case t.stopped:
		case t.at.After(w.now):
			kept = append(kept, t)
		default:
			t.fired <- w.now
		}
	}
	clear(w.timers[len(kept):])
	w.timers = kept
}

// nextDeadline is the first moment at which a task that waits can go on; zero if there is
// none.
func (w *World) nextDeadline() time.Time {
	var first time.Time
	earlier := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, t := range w.tasks {
		if t.p == nil || !t.p.host.paused {
			earlier(t.deadline)
		}
	}
	for _, t := range w.timers {
		earlier(t.at)
	}
	earlier(w.loadAt)
	for _, h := range w.hosts {
		if h.proc == nil {
			earlier(h.bootAt)
		}
	}
	return first
}

// random is a small generator: splitmix64.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Uint64 makes it a rand.Source.
func (r *random) Uint64() uint64 { return r.next() }

// n is a number below n.
func (r *random) n(n int) int { return int(r.next() >> 33 % uint64(n)) }

// one in n.
func (r *random) one(n int) bool { return r.n(n) == 0 }

// ids is a process's env.IDs.
type ids struct{ r random }

var _ env.IDs = (*ids)(nil)

// UUID implements env.IDs.
func (s *ids) UUID() [16]byte {
	var id [16]byte
	s.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// Uint64 implements env.IDs.
func (s *ids) Uint64() uint64 { return s.r.next() }

// Read implements env.IDs.
func (s *ids) Read(b []byte) {
	var word [8]byte
	for i := range b {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], s.r.next())
		}
		b[i] = word[i%8]
	}
}

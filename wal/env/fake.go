package env

import (
	"context"
	"math/rand/v2"
	"sort"
	"sync"
	"time"
)

// Fake is a Clock that moves only when told and an IDs that repeats for a seed.
// Safe for concurrent use.
type Fake struct {
	mu struct {
		sync.Mutex
		now     time.Time
		next    uint64 // breaks ties between timers of one deadline
		timers  map[uint64]*fakeTimer
		random  *rand.Rand
		changed chan struct{} // closed and replaced when a timer is added
	}
}

type fakeTimer struct {
	id    uint64
	at    time.Time
	fired chan time.Time
}

var (
	_ Clock = (*Fake)(nil)
	_ IDs   = (*Fake)(nil)
)

// NewFake returns a fake world that begins at start.
func NewFake(start time.Time, seed uint64) *Fake {
	f := &Fake{}
	f.mu.now = start
	f.mu.timers = map[uint64]*fakeTimer{}
	f.mu.random = rand.New(rand.NewPCG(seed, 0x5eed))
	f.mu.changed = make(chan struct{})
	return f
}

// Now is the time set by NewFake and Advance.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.now
}

// Since is the fake time that passed since t.
func (f *Fake) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

// Sleep waits until Advance has passed d, or ctx ends.
func (f *Fake) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	fired, stop := f.Timer(d)
	defer stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-fired:
		return nil
	}
}

// Timer fires once Advance has passed d; at once when d ≤ 0.
func (f *Fake) Timer(d time.Duration) (fired <-chan time.Time, stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{id: f.mu.next, at: f.mu.now.Add(d), fired: make(chan time.Time, 1)}
	f.mu.next++
	if d <= 0 {
		t.fired <- f.mu.now
		return t.fired, func() {}
	}
	f.mu.timers[t.id] = t
	close(f.mu.changed)
	f.mu.changed = make(chan struct{})
	return t.fired, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.mu.timers, t.id)
	}
}

// Advance moves the clock by d and fires what is due, earliest first.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.now = f.mu.now.Add(d)
	var due []*fakeTimer
	for _, t := range f.mu.timers {
		if !t.at.After(f.mu.now) {
			due = append(due, t)
		}
	}
	sort.Slice(due, func(i, j int) bool {
		if !due[i].at.Equal(due[j].at) {
			return due[i].at.Before(due[j].at)
		}
		return due[i].id < due[j].id
	})
	for _, t := range due {
		delete(f.mu.timers, t.id)
		t.fired <- f.mu.now
	}
}

// AwaitTimers waits until at least n timers or sleeps are pending, so that a test
// knows that Advance will reach them.
func (f *Fake) AwaitTimers(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		pending, changed := len(f.mu.timers), f.mu.changed
		f.mu.Unlock()
		if pending >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// UUID returns the next id of the seed.
func (f *Fake) UUID() [16]byte {
	var id [16]byte
	f.Read(id[:])
	setVersion4(&id)
	return id
}

// Uint64 returns the next number of the seed.
func (f *Fake) Uint64() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.random.Uint64()
}

// Read fills b from the seed. Nothing about it is secure.
func (f *Fake) Read(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range b {
		b[i] = byte(f.mu.random.Uint32())
	}
}

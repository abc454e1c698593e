package env

import (
	"context"
	"time"
)

// Tasks starts activities and parks them. Whoever waits for another activity does it here, so
// that a simulation decides who goes on. Safe for concurrent use.
type Tasks interface {
	// Run runs parts beside each other until all have returned, and returns the first
	// error. Their context ends with the first error.
	Run(ctx context.Context, parts ...func(context.Context) error) error
	// Go starts fn; done is closed when it has returned.
	Go(fn func()) (done <-chan struct{})
	// Wait waits until it has received from one of wake (at most two; a nil one never
	// wakes), d has passed (0: no limit), or ctx has ended, whose cause it returns.
	Wait(ctx context.Context, d time.Duration, wake ...<-chan struct{}) error
}

// Goroutines is the Tasks of a process: each activity is a goroutine.
func Goroutines(clock Clock) Tasks { return goroutines{clock} }

type goroutines struct{ clock Clock }

// Wait implements Tasks.
func (g goroutines) Wait(ctx context.Context, d time.Duration, wake ...<-chan struct{}) error {
	var fired <-chan time.Time
	if d > 0 {
		t, stop := g.clock.Timer(d)
		defer stop()
		fired = t
	}
	var two [2]<-chan struct{}
	copy(two[:], wake)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-two[0]:
	case <-two[1]:
	case <-fired:
	}
	return nil
}

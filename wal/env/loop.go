package env

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// LoopConfig says what a loop does and when.
type LoopConfig struct {
	// Name appears in the error of a loop that is set up wrongly.
	Name  string
	Clock Clock
	// Step is one bounded unit of work. more asks for the next one at once. After
	// an error it is called again, following a back-off.
	Step func(ctx context.Context) (more bool, err error)
	// Wake ends the pause between steps early; nil when nothing does. It does not
	// end a back-off.
	Wake <-chan struct{}
	// Interval is the longest pause between steps that found nothing to do. Zero
	// waits for Wake alone.
	Interval time.Duration
	// BackoffMin is the pause after a first error (default 100 ms); it doubles
	// with every further one up to BackoffMax (default 30 s) and starts anew
	// after a step without error.
	BackoffMin, BackoffMax time.Duration
	// OnError is told each error of Step; nil ignores them.
	OnError func(error)
	// Tasks waits between steps; nil: as Goroutines does.
	Tasks Tasks
}

// The pauses after errors unless the configuration names others.
const (
	loopBackoffMin = 100 * time.Millisecond
	loopBackoffMax = 30 * time.Second
)

// RunLoop calls Step until ctx ends, whose cause it returns. The first step runs
// at once. It is the only loop around background work in the module.
func RunLoop(ctx context.Context, cfg LoopConfig) error {
	if cfg.Step == nil || cfg.Clock == nil {
		return fmt.Errorf("loop %q: step and clock are required", cfg.Name)
	}
	if cfg.BackoffMin <= 0 {
		cfg.BackoffMin = loopBackoffMin
	}
	if cfg.BackoffMax < cfg.BackoffMin {
		cfg.BackoffMax = max(loopBackoffMax, cfg.BackoffMin)
	}
	if cfg.Tasks == nil {
		cfg.Tasks = Goroutines(cfg.Clock)
	}
	backoff := cfg.BackoffMin
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		more, err := cfg.Step(ctx)
		switch {
		case err != nil:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if cfg.OnError != nil {
				cfg.OnError(err)
			}
			if err := cfg.Clock.Sleep(ctx, backoff); err != nil {
				return err
			}
			backoff = min(2*backoff, cfg.BackoffMax)
		case more:
			backoff = cfg.BackoffMin
		default:
			backoff = cfg.BackoffMin
			if err := cfg.Tasks.Wait(ctx, max(cfg.Interval, 0), cfg.Wake); err != nil {
				return err
			}
		}
	}
}

// Run implements Tasks.
func (goroutines) Run(ctx context.Context, parts ...func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		g.Go(func() error { return part(ctx) })
	}
	return g.Wait()
}

// Go implements Tasks.
func (goroutines) Go(fn func()) (done <-chan struct{}) {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		fn()
	}()
	return ch
}

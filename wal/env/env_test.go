package env_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

var start = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

func TestFakeTimersFireInOrderOfAdvance(t *testing.T) {
	f := env.NewFake(start, 1)
	late, _ := f.Timer(2 * time.Second)
	soon, _ := f.Timer(time.Second)
	dropped, stop := f.Timer(time.Second)
	stop()
	f.Advance(time.Second)
	select {
	case at := <-soon:
		if !at.Equal(start.Add(time.Second)) {
			t.Errorf("fired at %v", at)
		}
	default:
		t.Error("due timer did not fire")
	}
	select {
	case <-late:
		t.Error("timer fired early")
	case <-dropped:
		t.Error("stopped timer fired")
	default:
	}
}

func TestFakeRepeatsForASeed(t *testing.T) {
	a, b, c := env.NewFake(start, 7), env.NewFake(start, 7), env.NewFake(start, 8)
	first := a.UUID()
	if first != b.UUID() {
		t.Error("same seed, different ids")
	}
	if first == c.UUID() {
		t.Error("different seed, same id")
	}
	if first[6]>>4 != 4 || first[8]>>6 != 2 {
		t.Errorf("not a version 4 UUID: %x", first)
	}
}

func TestRunLoopBacksOffAndWakes(t *testing.T) {
	f := env.NewFake(start, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	wake := make(chan struct{})
	steps := make(chan int)
	stopped := errors.New("stopped")
	boom := errors.New("boom")
	done := make(chan error, 1)
	var seen []error
	n := 0
	go func() {
		done <- env.RunLoop(ctx, env.LoopConfig{
			Name: "test", Clock: f, Wake: wake,
			BackoffMin: time.Second, BackoffMax: 2 * time.Second,
			OnError: func(err error) { seen = append(seen, err) },
			Step: func(context.Context) (bool, error) {
				n++
				steps <- n
				if n <= 2 {
					return false, boom
				}
				return n == 3, nil
			},
		})
	}()
	<-steps
	must(t, f.AwaitTimers(ctx, 1))
	f.Advance(time.Second)
	<-steps
	must(t, f.AwaitTimers(ctx, 1))
	f.Advance(time.Second) // the second pause is twice as long
	select {
	case <-steps:
		t.Fatal("back-off did not double")
	default:
	}
	f.Advance(time.Second)
	<-steps // 3 asks for more
	<-steps // 4 comes at once
	wake <- struct{}{}
	if got := <-steps; got != 5 {
		t.Fatalf("step %d after wake", got)
	}
	cancel(stopped)
	if err := <-done; !errors.Is(err, stopped) {
		t.Fatalf("loop returned %v", err)
	}
	if len(seen) != 2 {
		t.Errorf("saw %d errors", len(seen))
	}
}

func TestFailpointSpec(t *testing.T) {
	for _, f := range env.AllFailpoints() {
		got, n, err := env.ParseFailpoint(f.String() + ":3")
		if err != nil || got != f || n != 3 {
			t.Errorf("%v: got %v, %d, %v", f, got, n, err)
		}
	}
	if got, _, err := env.ParseFailpoint("AfterMarker"); err != nil || got != env.AfterMarker {
		t.Errorf("camel case: %v, %v", got, err)
	}
	for _, bad := range []string{"nothing", "after_body:0", "after_body:x"} {
		if _, _, err := env.ParseFailpoint(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestExitAtCountsHits(t *testing.T) {
	code := 0
	fp, err := env.ExitAt("after_body:2", func(c int) { code = c })
	must(t, err)
	must(t, fp.Hit(env.AfterBody))
	must(t, fp.Hit(env.BeforeBody))
	if code != 0 {
		t.Fatal("exited early")
	}
	must(t, fp.Hit(env.AfterBody))
	if code != 137 {
		t.Fatalf("exit code %d", code)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

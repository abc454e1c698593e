package ingest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// TestResetWaitsForRecovery: a server that has just begun and has not yet published what
// is in its log is told to reset the pipeline. What it publishes then is of before the
// reset and must not come back.
func TestResetWaitsForRecovery(t *testing.T) {
	w := newWorld(t, shopFactory(small, nil))
	died := w.disk.killAt(beforePublish, 12)
	w.startDoomed()
	<-died
	w.stop()
	w.disk.revive()

	opening, open := make(chan struct{}, 8), make(chan struct{})
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		opening <- struct{}{}
		<-open
		return w.disk.open(ctx, p, w.catalog)
	}
	w.boot()
	<-opening
	reset := make(chan error, 1)
	go func() { reset <- w.supervisor.Reset(context.Background(), "shop") }()
	clock, _ := env.System()
	timer, stop := clock.Timer(50 * time.Millisecond)
	defer stop()
	select {
	case err := <-reset:
		t.Errorf("reset before the log was open: %v", err)
	case <-timer:
	}
	close(open)
	if err := <-reset; err != nil {
		t.Fatal(err)
	}
	w.awaitReady("2500")
	w.expect(small, 2500)
}

// failingLog fails one append after it is durable and unpublished, and would publish it
// later by itself, as *wal.Log does.
type failingLog struct {
	ingest.Log
	w      *world
	failed chan struct{}
	closed chan struct{}
	hook   func()
}

func (l *failingLog) Append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error) {
	if g.Position != "" {
		select {
		case <-l.failed:
		default:
			close(l.failed)
			l.hook()
			return wal.CommittedGroup{}, wal.ErrUnpublished
		}
	}
	return l.Log.Append(ctx, g)
}

func (l *failingLog) Close() error {
	close(l.closed)
	return l.Log.Close()
}

// TestFailedLogIsClosedBeforeStatement: a statement that ends a session whose append has
// failed does not run beside a log with unpublished groups.
func TestFailedLogIsClosedBeforeStatement(t *testing.T) {
	w := newWorld(t, shopFactory(small, nil))
	w.stop()
	first := &failingLog{w: w, failed: make(chan struct{}), closed: make(chan struct{})}
	held := make(chan error, 1)
	first.hook = func() {
		go func() { held <- w.supervisor.Stop(context.Background(), "shop") }()
		clock, _ := env.System()
		_ = clock.Sleep(context.Background(), 50*time.Millisecond) // the session is held meanwhile
	}
	w.openLog = func(ctx context.Context, p change.PipelineID) (ingest.Log, error) {
		log, err := w.disk.open(ctx, p, w.catalog)
		if err != nil || first.Log != nil {
			return log, err
		}
		first.Log = log
		return first, nil
	}
	w.boot()
	w.startDoomed()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.closed:
	default:
		t.Error("the session has ended and its failed log is open")
	}
	if err := w.supervisor.Start(context.Background(), "shop"); err != nil && !errors.Is(err, wal.ErrUnpublished) {
		t.Fatal(err)
	}
	w.await("ready", func(s *catalog.Snapshot) bool {
		return w.position(s) == "2500" && allIn(s, catalog.TableReady)
	})
	w.expect(small, 2500)
}

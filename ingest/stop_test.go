package ingest_test

import (
	"context"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
)

// stalledLog is a log whose store has gone away: it answers no append, but when it is
// closed.
type stalledLog struct {
	appending chan struct{} // has a token when one waits
	closed    chan struct{}
}

func (l *stalledLog) Append(context.Context, *change.Group) (wal.CommittedGroup, error) {
	select {
	case l.appending <- struct{}{}:
	default:
	}
	<-l.closed
	return wal.CommittedGroup{}, wal.ErrClosed
}

func (l *stalledLog) Close() error {
	close(l.closed)
	return nil
}

// TestStopsWhileLogStalls: a server ends although a group is being appended to a log that
// does not answer; whether the group is durable is seen at the next start.
func TestStopsWhileLogStalls(t *testing.T) {
	log := &stalledLog{appending: make(chan struct{}, 1), closed: make(chan struct{})}
	w := &world{
		t: t, store: memkv.New(), factory: shopFactory(small, nil), lake: &lakeDrops{}, interval: 1, group: 64 << 10, stopWait: 10 * time.Millisecond,
		openLog: func(context.Context, change.PipelineID) (ingest.Log, error) { return log, nil },
	}
	w.create()
	started := make(chan struct{})
	go func() {
		defer close(started)
		_ = w.supervisor.Start(t.Context(), "shop") // as soon as it streams, or ends
	}()
	<-log.appending
	w.stop()
	<-started
}

package ingest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
)

// silent never answers a question, as a server behind a link that is half open. Whoever
// asks must have set a limit, which passes at once here.
type silent struct{ ingest.Source }

func (s *silent) Status(ctx context.Context) (ingest.SourceStatus, error) {
	if _, limited := ctx.Deadline(); limited {
		return ingest.SourceStatus{}, context.DeadlineExceeded
	}
	<-ctx.Done()
	return ingest.SourceStatus{}, context.Cause(ctx)
}

// TestSyncWithSilentSource: a question that is never answered does not hold up Sync
// beyond its own limit.
func TestSyncWithSilentSource(t *testing.T) {
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source { return &silent{s} }))
	w.start()
	w.awaitReady("2500")
	ctx, cancel := context.WithCancel(context.Background()) // without a limit of its own
	defer cancel()
	defer time.AfterFunc(patience, cancel).Stop()
	if _, err := w.supervisor.Sync(ctx, "shop", time.Millisecond, func(ingest.PipelineStatus) {}); err != nil {
		t.Fatalf("sync: %v", err)
	}
	if ctx.Err() != nil {
		t.Fatal("sync waited until its caller gave up")
	}
}

// promoted asks for a new session, as a standby that has become a primary, until there is one.
type promoted struct {
	ingest.Source
	sessions *atomic.Int32
}

func (p *promoted) Setup(ctx context.Context, prior []byte, tables []ingest.SourceTable) (ingest.SetupResult, error) {
	p.sessions.Add(1)
	return p.Source.Setup(ctx, prior, tables)
}

func (p *promoted) Status(ctx context.Context) (ingest.SourceStatus, error) {
	s, err := p.Source.Status(ctx)
	s.Renew = p.sessions.Load() == 1
	return s, err
}

// TestSourceAsksForSession: the session begins anew for a source that asks for it, without
// an error, and loses nothing.
func TestSourceAsksForSession(t *testing.T) {
	var sessions atomic.Int32
	w := newWorld(t, shopFactory(small, func(s ingest.Source) ingest.Source { return &promoted{s, &sessions} }))
	w.start()
	w.await("another session", func(*catalog.Snapshot) bool { return sessions.Load() > 1 })
	w.awaitReady("2500")
	if st, _ := w.supervisor.Status("shop"); st.Metrics.SourceErrors != 0 || st.Reason != "" {
		t.Errorf("%d errors, reason %q", st.Metrics.SourceErrors, st.Reason)
	}
}

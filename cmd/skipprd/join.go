package main

import (
	"context"
	"sync"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// lakeAdmin lets the supervisor drop lake tables through the compactor, which is made
// after it.
type lakeAdmin struct{ service *compact.Service }

// DropTable removes the lake side of a table.
func (l *lakeAdmin) DropTable(ctx context.Context, table change.TableID) error {
	return l.service.DropTable(ctx, table)
}

// logReaders keeps one reader per pipeline. Safe for concurrent use.
type logReaders struct {
	open func(change.PipelineID) *wal.Reader
	mu   struct {
		sync.Mutex
		readers map[change.PipelineID]*wal.Reader
	}
}

func (l *logReaders) of(p change.PipelineID) compact.SliceReader {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.readers == nil {
		l.mu.readers = map[change.PipelineID]*wal.Reader{}
	}
	r := l.mu.readers[p]
	if r == nil {
		r = l.open(p)
		l.mu.readers[p] = r
	}
	return r
}

// reclaimer is the reclaiming side of a pipeline's log.
type reclaimer struct {
	supervisor *ingest.Supervisor
	pipeline   change.PipelineID
}

// Reclaim deletes sealed segments.
func (r *reclaimer) Reclaim(ctx context.Context, seqs []segment.Seq) error {
	return r.supervisor.Reclaim(ctx, r.pipeline, seqs)
}

// sessions lists the client sessions for pg_stat_activity.
func (n *node) sessions() []planner.SessionInfo {
	if n.server == nil {
		return nil
	}
	var out []planner.SessionInfo
	for _, s := range n.server.Sessions() {
		out = append(out, planner.SessionInfo{
			PID: s.PID, User: s.User, Database: s.Database, Application: s.ApplicationName, RemoteAddr: s.RemoteAddr,
			StartedAt: s.BackendStart, TxStartedAt: s.TxStart, Wait: s.Wait, QueryStartedAt: s.QueryStart, ChangedAt: s.StateChange, State: s.State, Query: ddl.Redact(s.Query),
			Encryption: s.Encryption,
		})
	}
	return out
}

// endBackend cancels a session's statement, or ends the session.
func (n *node) endBackend(pid uint32, terminate bool) bool {
	switch {
	case n.server == nil:
		return false
	case terminate:
		return n.server.Terminate(pid)
	}
	return n.server.Cancel(pid)
}

// positions waits for what clients have written at sources whose positions are LSNs.
type positions struct{ supervisor *ingest.Supervisor }

var _ planner.Positions = positions{}

// Read implements planner.Positions.
func (p positions) Read(_ *catalog.Pipeline, kind, lsn string) (change.Position, bool) {
	at, err := postgres.ReadPosition(lsn)
	return at, err == nil && kind == "postgres"
}

// Await implements planner.Positions.
func (p positions) Await(ctx context.Context, pipeline change.PipelineID, tables []change.TableID, at change.Position) error {
	return problemOf(p.supervisor.Await(ctx, ingest.Target{
		Pipeline: pipeline, Tables: tables, At: at, Compare: postgres.ComparePositions,
	}))
}

// Position implements planner.Positions.
func (p positions) Position(pipeline change.PipelineID) change.Position {
	return p.supervisor.Position(pipeline)
}

// Compare implements planner.Positions.
func (positions) Compare(a, b change.Position) int { return postgres.ComparePositions(a, b) }

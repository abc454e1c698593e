package ingest

import (
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// PipelineStatus is what a pipeline knows of itself.
type PipelineStatus struct {
	State, Reason string
	// SourcePosition is the newest position at the source, as it said last;
	// Durable what the log has, Acked what the source was told.
	SourcePosition, Durable, Acked change.Position
	LagBytes, RetainedBytes        int64
	// LagSeconds from the source to the log: 0 when nothing waits, never negative.
	LagSeconds                    float64
	SlotState                     string
	RowsPerSecond, BytesPerSecond float64
	LastCommitAt                  time.Time
	Throttled                     bool // the log is full
	// LogCommits is how many writes of the log became durable since it was opened, LogEpoch
	// the writer's epoch on an object store, else 0.
	LogCommits uint64
	LogEpoch   segment.Epoch
	Metrics    Metrics
	Tables     []TableStatus
}

// TableStatus is one table of PipelineStatus.
type TableStatus struct {
	ID                    change.TableID
	Schema, Name          string
	State, Reason, Hint   string
	BackfillPercent       float64 // 0 to 100
	BackfillRows          int64
	BackfillRowsPerSecond float64
	BackfillSecondsLeft   float64 // 0 when done or unknown
	LastCommitAt          time.Time
	Metrics               TableMetrics
}

// Status is the live state of a pipeline and its tables; false if there is no such
// pipeline, or the supervisor does not run.
func (s *Supervisor) Status(name string) (PipelineStatus, bool) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline(name)
	if err != nil {
		return PipelineStatus{}, false
	}
	s.mu.Lock()
	h := s.mu.hosts[p.ID]
	s.mu.Unlock()
	if h == nil {
		return PipelineStatus{}, false
	}
	return h.status(p, snap.Tables(p.ID)), true
}

func (h *host) status(p *catalog.Pipeline, tables []*catalog.Table) PipelineStatus {
	st := PipelineStatus{State: string(p.State), Reason: p.Reason}
	h.mu.Lock()
	if h.mu.progress != nil {
		st.Durable, st.Acked = h.mu.progress.durable(), h.mu.progress.acked()
	}
	if st.Reason == "" {
		st.Reason = h.mu.reason
	}
	running, log := h.mu.source != nil, h.mu.log
	h.mu.Unlock()
	if l, ok := log.(interface{ Stats() wal.Stats }); ok {
		s := l.Stats()
		st.LogCommits, st.LogEpoch = s.Commits, s.Epoch
		if s.Stalled != nil && st.Reason == "" {
			st.Reason = "the log waits for its object store: " + s.Stalled.Error()
		}
	}
	if running {
		st.LagSeconds = h.live.lag().Seconds()
	}
	h.live.fill(&st)
	now := h.deps.Clock.Now()
	for _, t := range tables {
		st.Tables = append(st.Tables, h.live.table(t, now))
	}
	return st
}

// fill adds the counters.
func (l *live) fill(st *PipelineStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.status
	st.SourcePosition, st.LagBytes, st.RetainedBytes = s.Current, max(0, s.LagBytes), max(0, s.RetainedBytes)
	st.SlotState = s.SlotState
	st.RowsPerSecond, st.BytesPerSecond = l.mu.rows.perS, l.mu.bytes.perS
	st.LastCommitAt, st.Throttled, st.Metrics = l.mu.lastCommit, l.mu.full, l.mu.metrics
	if l.mu.full && st.Reason == "" {
		st.Reason = "the log is full, so the source waits until changes have moved to the lake"
	}
}

// table is one table's status.
func (l *live) table(t *catalog.Table, now time.Time) TableStatus {
	st := TableStatus{
		ID: t.ID, Schema: t.Schema, Name: t.Name,
		State: string(t.State), Reason: t.Reason, Hint: t.Hint, BackfillRows: t.Backfill.RowsDone,
	}
	l.mu.Lock()
	if note, ok := l.mu.status.Notes[t.SourceOID]; ok && st.Reason == "" {
		st.Reason, st.Hint = note.Reason, note.Hint
	}
	if tl := l.mu.tables[t.ID]; tl != nil {
		st.Metrics, st.LastCommitAt, st.BackfillRowsPerSecond = tl.metrics, tl.lastCommit, tl.copied.perS
	}
	l.mu.Unlock()
	st.BackfillPercent = copiedPercent(t)
	if t.State == catalog.TableBackfill && st.BackfillPercent > 0 {
		elapsed := max(0, now.Sub(t.Backfill.StartedAt).Seconds())
		st.BackfillSecondsLeft = elapsed * (100 - st.BackfillPercent) / st.BackfillPercent
	}
	return st
}

// copiedPercent is how much of the initial copy is done, by chunks.
func copiedPercent(t *catalog.Table) float64 {
	switch {
	case !t.Backfill.FinishedAt.IsZero(), t.State == catalog.TableReady, t.State == catalog.TableCatchup:
		return 100
	case len(t.Backfill.Done) == 0:
		return 0
	}
	done := 0
	for _, d := range t.Backfill.Done {
		if d {
			done++
		}
	}
	return 100 * float64(done) / float64(len(t.Backfill.Done))
}

// Metrics are counters of one pipeline since the server started. A copy; the fields
// are sums, never reset.
type Metrics struct {
	Groups       int64 // groups appended from the stream
	Transactions int64
	Inserts      int64
	Updates      int64
	Deletes      int64
	Truncates    int64
	StreamRows   int64
	CopiedRows   int64 // rows of initial copies
	CopiedChunks int64
	LogBytes     int64 // bytes of slices in the log
	TableStops   int64
	SourceErrors int64 // sessions that ended with an error
	Throttles    int64 // times that a full log stopped the source
}

// TableMetrics are counters of one table since the server started.
type TableMetrics struct {
	Inserts, Updates, Deletes, Truncates int64
	CopiedRows, LogBytes                 int64
}

// add adds what was counted elsewhere.
func (m *TableMetrics) add(n TableMetrics) {
	m.Inserts, m.Updates, m.Deletes = m.Inserts+n.Inserts, m.Updates+n.Updates, m.Deletes+n.Deletes
	m.Truncates, m.CopiedRows, m.LogBytes = m.Truncates+n.Truncates, m.CopiedRows+n.CopiedRows, m.LogBytes+n.LogBytes
}

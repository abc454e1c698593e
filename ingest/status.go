package ingest

import (
	"fmt"
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
	// Confirmed is what the source has as acknowledged.
	Confirmed               change.Position
	LagBytes, RetainedBytes int64
	// Position is up to where readers see the tables, LakePosition up to where the lake has
	// them all.
	Position, LakePosition change.Position
	// RetainedBytesPerSecond is how fast what the source keeps for us has grown over the
	// last minutes, negative when it shrank; WrittenBytesPerSecond how fast it writes: as
	// fast will what it keeps grow when nothing is read.
	RetainedBytesPerSecond, WrittenBytesPerSecond float64
	// Limited says that the source may lose our place after SafeBytes more. SecondsToLoss
	// is in how long that is, as things have gone of late; -1: never.
	Limited       bool
	SafeBytes     int64
	SecondsToLoss float64
	// InactiveSince is when the source was last read for us, zero while it is.
	InactiveSince time.Time
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
	// Backfill is that of all tables that are being copied, and of those copied since the
	// first of these was begun; at 100 percent when none is.
	Backfill BackfillStatus
}

// TableStatus is one table of PipelineStatus.
type TableStatus struct {
	ID                  change.TableID
	Schema, Name        string
	State, Reason, Hint string
	// Backfill is the initial copy, or that of the copy which is to take the table's place.
	Backfill     BackfillStatus
	LastCommitAt time.Time
	Metrics      TableMetrics
	// Lag is from the source to the log.
	Lag Lag
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
	return h.status(p, snap, snap.EveryTableOf(p.ID)), true
}

func (h *host) status(p *catalog.Pipeline, snap *catalog.Snapshot, tables []*catalog.Table) PipelineStatus {
	st := PipelineStatus{State: string(p.State), Reason: p.Reason}
	h.mu.Lock()
	if h.mu.progress != nil {
		st.Durable, st.Acked = h.mu.progress.durable(), h.mu.progress.acked()
	}
	if st.Reason == "" {
		st.Reason = h.mu.reason
	}
	if h.mu.waits != "" { // also after an error, which stays until the pipeline runs
		st.Reason = h.mu.waits
	}
	log := h.mu.log
	h.mu.Unlock()
	if l, ok := log.(interface{ Stats() wal.Stats }); ok {
		s := l.Stats()
		st.LogCommits, st.LogEpoch = s.Commits, s.Epoch
		if s.Stalled != nil && st.Reason == "" {
			st.Reason = "the log waits for its object store: " + s.Stalled.Error()
		}
	}
	h.live.fill(&st)
	now := h.deps.Clock.Now()
	copies := map[change.TableID]*catalog.Table{}
	for _, t := range tables {
		if t.CopyOf != 0 {
			copies[t.CopyOf] = t
		}
	}
	for _, t := range tables {
		if t.CopyOf == 0 {
			st.Tables = append(st.Tables, h.live.table(p, t, copies[t.ID], now))
		}
	}
	st.Backfill = wholeBackfill(st.Tables)
	h.measure(&st, snap, tables)
	return st
}

// fill adds the counters.
func (l *live) fill(st *PipelineStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.mu.status
	st.SourcePosition, st.LagBytes, st.RetainedBytes = s.Current, max(0, s.LagBytes), max(0, s.RetainedBytes)
	st.SlotState, st.Confirmed, st.InactiveSince = s.SlotState, s.Confirmed, s.InactiveSince
	st.RetainedBytesPerSecond, st.WrittenBytesPerSecond = l.mu.retained.perSecond(), l.mu.written.perSecond()
	st.Limited, st.SafeBytes, st.SecondsToLoss = s.Limited, s.SafeBytes, -1
	if perSecond := st.RetainedBytesPerSecond; s.Limited && perSecond > 0 {
		st.SecondsToLoss = float64(max(0, s.SafeBytes)) / perSecond
	}
	if st.Reason == "" {
		st.Reason = s.Warning
	}
	st.RowsPerSecond, st.BytesPerSecond = l.mu.rows.perS, l.mu.bytes.perS
	st.LastCommitAt, st.Throttled, st.Metrics = l.mu.lastCommit, l.mu.full, l.mu.metrics
	if l.mu.full && st.Reason == "" {
		st.Reason = "the log is full, so the source waits until changes have moved to the lake"
	}
}

// StateGone is what a table is that answers and does not exist at the source.
const StateGone = "gone"

// StateResync is what a table is that answers while it is copied anew.
const StateResync = "resync"

// table is one table's status; anew is the copy that is to take its place, nil for none.
func (l *live) table(p *catalog.Pipeline, t, anew *catalog.Table, now time.Time) TableStatus {
	st := TableStatus{
		ID: t.Face(), Schema: t.Schema, Name: t.Name, State: string(t.State), Reason: t.Reason, Hint: t.Hint,
	}
	copied := t
	if t.Away != "" && t.Answers() && st.Reason == "" {
		st.Reason, st.Hint = t.Away, t.Exact(hintGone, p.Name)
		if t.State == catalog.TableReady {
			st.State = StateGone
		}
	}
	if anew != nil {
		copied, st.State = anew, StateResync
	}
	if resyncs(p, t) && (anew != nil || t.GaveUp == nil) {
		st.Hint = hintResyncs
		if t.Answers() {
			st.State = StateResync
		}
	}
	var rows int64
	var perSecond float64
	l.mu.Lock()
	if note, ok := l.mu.status.Notes[t.SourceOID]; ok && st.Reason == "" {
		st.Reason, st.Hint = note.Reason, t.Exact(note.Hint, p.Name)
	}
	if note, ok := l.noteLocked(p, t); ok && st.Reason == "" {
		st.Reason, st.Hint = note.Reason, t.Exact(note.Hint, p.Name)
	}
	if tl := l.mu.tables[t.ID]; tl != nil {
		st.Metrics, st.LastCommitAt = tl.metrics, tl.lastCommit
	}
	if tl := l.mu.tables[copied.ID]; tl != nil {
		rows, perSecond = tl.reading, tl.copied.perS
	}
	l.mu.Unlock()
	st.Backfill = backfillStatus(copied, rows, perSecond, now)
	return st
}

// noteLocked is what should be known of a table that goes on.
func (l *live) noteLocked(p *catalog.Pipeline, t *catalog.Table) (TableNote, bool) {
	note, ok := l.mu.notes[t.ID]
	if t.Reworked() {
		const why = "its rows were rewritten at the source as a column was changed, so that older ones may have other values there"
		share, comparing := l.mu.comparing[t.ID]
		switch {
		case comparing:
			return TableNote{Reason: fmt.Sprintf("%s: %.0f%% compared", why, 100*share), Hint: hintCompared}, true
		case !copies(p):
			return TableNote{Reason: why, Hint: hintResync}, true
		}
		return TableNote{Reason: why + "; they are to be compared", Hint: hintCompared}, true
	}
	if t.Missed == nil || !keyless(t) {
		return note, ok
	}
	missed := max(t.Missed.Count, l.mu.missedTotal[t.ID])
	why := ""
	switch {
	case t.Missed.Doubts && missed > 0:
		why = fmt.Sprintf("updates or deletes at the source (%d so far, and perhaps others, since its counters began anew) are not followed without a key", missed)
	case t.Missed.Doubts:
		why = "whether rows were updated or deleted, which is not followed without a key, is not known: the counters of the source began anew"
	case missed > 0:
		why = fmt.Sprintf("updates or deletes at the source (%d so far) are not followed without a key", missed)
	case !ok:
		return note, false
	}
	switch {
	case !ok:
		note = TableNote{Reason: why, Hint: hintMissed}
	case why != "":
		note.Reason = why + "; " + note.Reason
	}
	return note, true
}

// hintCompared is of a table that is compared with its source.
const hintCompared = "If any differ, it is copied anew by itself. At once: ALTER PIPELINE … RESYNC TABLE …;"

// hintMissed is of a table of which changes do not come.
const hintMissed = "VERIFY PIPELINE … TABLE …; tells whether rows differ. With ALTER TABLE … REPLICA IDENTITY FULL at the source, or a primary key, " +
	"it is copied anew and followed; as it is now: ALTER PIPELINE … RESYNC TABLE …;"

// BackfillStatus is how far an initial copy is.
type BackfillStatus struct {
	Percent float64 // 0 to 100, and 100 only when it is done
	// Rows are those read so far, Estimated how many there may be: -1 when unknown. Bytes
	// are those of finished chunks, in the log.
	Rows, Estimated, Bytes int64
	RowsPerSecond          float64
	SecondsLeft            float64 // 0 when done, -1 when unknown
	StartedAt, FinishedAt  time.Time
}

// done says that nothing is left to copy.
func (b *BackfillStatus) done() bool { return b.Percent == 100 }

// mostUnfinished is the most percent of a copy that is not done.
const mostUnfinished = 99.9

// backfillStatus is how far the copy of a table is; reading are rows of chunks that are
// not finished.
func backfillStatus(t *catalog.Table, reading int64, perSecond float64, now time.Time) BackfillStatus {
	p := &t.Backfill
	b := BackfillStatus{
		Rows: p.RowsDone, Estimated: p.RowsEstimate, Bytes: p.BytesDone, StartedAt: p.StartedAt, FinishedAt: p.FinishedAt,
	}
	if !p.FinishedAt.IsZero() || t.State == catalog.TableReady || t.State == catalog.TableCatchup {
		b.Percent = 100
		return b
	}
	b.Rows, b.RowsPerSecond, b.SecondsLeft = b.Rows+reading, perSecond, -1
	b.Percent = min(b.share(chunksDone(p), len(p.Done)), mostUnfinished)
	if t.State != catalog.TableBackfill {
		b.RowsPerSecond = 0
		return b
	}
	switch elapsed := now.Sub(p.StartedAt).Seconds(); {
	case perSecond > 0 && b.Estimated > b.Rows:
		b.SecondsLeft = float64(b.Estimated-b.Rows) / perSecond
	case b.Percent > 0 && elapsed > 0:
		b.SecondsLeft = elapsed * (100 - b.Percent) / b.Percent
	}
	return b
}

// fewChunks is up to how many chunks rows tell more of a copy than chunks do.
const fewChunks = 50

// share is the percentage that is done: by chunks, or by rows when chunks are few.
func (b *BackfillStatus) share(done, all int) float64 {
	percent := 0.0
	if all > 0 {
		percent = 100 * float64(done) / float64(all)
	}
	if all <= fewChunks && b.Estimated > 0 {
		percent = max(percent, 100*float64(b.Rows)/float64(b.Estimated))
	}
	return percent
}

func chunksDone(p *catalog.BackfillProgress) int {
	n := 0
	for _, done := range p.Done {
		if done {
			n++
		}
	}
	return n
}

// wholeBackfill sums up what is being copied.
func wholeBackfill(tables []TableStatus) BackfillStatus {
	whole := BackfillStatus{Percent: 100}
	var open []BackfillStatus
	for i := range tables {
		b := &tables[i].Backfill
		if b.done() || tables[i].State == string(catalog.TableStopped) {
			continue
		}
		open = append(open, *b)
		if !b.StartedAt.IsZero() && (whole.StartedAt.IsZero() || b.StartedAt.Before(whole.StartedAt)) {
			whole.StartedAt = b.StartedAt
		}
	}
	if len(open) == 0 {
		return whole
	}
	for i := range tables {
		b := &tables[i].Backfill
		if b.done() && !whole.StartedAt.IsZero() && b.FinishedAt.After(whole.StartedAt) {
			open = append(open, *b)
		}
	}
	whole.sum(open)
	return whole
}

// sum adds up parts, one of which is not done.
func (b *BackfillStatus) sum(parts []BackfillStatus) {
	weights, done := 0.0, 0.0
	b.SecondsLeft = 0
	for _, p := range parts {
		weight := 1.0
		if p.Estimated > 0 {
			weight = float64(p.Estimated)
		}
		weights, done = weights+weight, done+weight*p.Percent/100
		b.Rows, b.Bytes, b.RowsPerSecond = b.Rows+p.Rows, b.Bytes+p.Bytes, b.RowsPerSecond+p.RowsPerSecond
		if p.Estimated < 0 || b.Estimated < 0 {
			b.Estimated = -1
			continue
		}
		b.Estimated += p.Estimated
	}
	b.Percent = min(100*done/weights, mostUnfinished)
	switch {
	case b.RowsPerSecond > 0 && b.Estimated > b.Rows:
		b.SecondsLeft = float64(b.Estimated-b.Rows) / b.RowsPerSecond
	default:
		b.SecondsLeft = -1
	}
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

// Measurer is a Source whose positions are places in one log of bytes. Pure.
type Measurer interface {
	// Distance is how many bytes lie between two positions, 0 when the second is not ahead.
	Distance(from, to change.Position) int64
	// PositionOf is the position at which the transaction of an order token comes.
	PositionOf(token int64) change.Position
}

// Lag is how far something trails the source: nothing when idle, never negative.
type Lag struct {
	Bytes   int64
	Seconds float64 // -1 when not known
}

// measure fills in how far the pipeline and its tables are.
func (h *host) measure(st *PipelineStatus, snap *catalog.Snapshot, tables []*catalog.Table) {
	h.mu.Lock()
	p, running := h.mu.progress, h.mu.source != nil
	h.mu.Unlock()
	now, newest := h.deps.Clock.Now(), st.LastCommitAt
	if offset, err := snap.Offset(h.id); err == nil && newest.IsZero() {
		newest = offset.CommittedAt // by an earlier process
	}
	if p != nil {
		st.Position = p.passed()
	}
	measured := p != nil && p.measurer != nil
	if measured {
		st.LagBytes = p.measurer.Distance(st.Position, st.SourcePosition)
		st.LakePosition = lakePosition(snap, tables, st.Position, p.measurer)
	}
	switch {
	case running:
		st.LagSeconds = h.live.lag().Seconds()
	case st.LagBytes > 0: // by no more than since the last that came
		st.LagSeconds = secondsSince(now, newest)
	}
	for i := range st.Tables {
		t := &st.Tables[i]
		t.Lag = Lag{Bytes: st.LagBytes, Seconds: st.LagSeconds}
		if !measured {
			continue
		}
		if own := p.place(t.ID); own != st.Position {
			t.Lag = Lag{Bytes: p.measurer.Distance(own, st.SourcePosition)}
			if t.Lag.Bytes > 0 {
				t.Lag.Seconds = secondsSince(now, t.LastCommitAt)
			}
		}
	}
}

// secondsSince is -1 for a moment that is not known.
func secondsSince(now, at time.Time) float64 {
	if at.IsZero() {
		return -1
	}
	return max(0, now.Sub(at).Seconds())
}

// lakePosition is up to where the lake has all tables.
func lakePosition(snap *catalog.Snapshot, tables []*catalog.Table, position change.Position, m Measurer) change.Position {
	oldest, found := int64(0), false
	for _, t := range tables {
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return ""
		}
		for i := range live {
			s := &live[i]
			if s.Backfill || s.Rows == 0 {
				continue
			}
			if !found || s.Counts.MinToken < oldest {
				oldest, found = s.Counts.MinToken, true
			}
			break // those behind it are newer
		}
	}
	if !found {
		return position
	}
	return m.PositionOf(oldest)
}

// place is up to where readers see a table.
func (p *progress) place(id change.TableID) change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, own := range []map[change.TableID]change.Position{p.mu.stopped, p.mu.behind} {
		if at, ok := own[id]; ok && p.compare(at, p.mu.passed) < 0 {
			return at
		}
	}
	return p.mu.passed
}

package ingest

import (
	"sync"
	"time"

	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// live is what a pipeline knows of itself since the server started. Safe for
// concurrent use.
type live struct {
	clock env.Clock
	// uncomputed are changes whose computed values were refused.
	uncomputed compute.Known

	mu struct {
		sync.Mutex
		metrics Metrics
		tables  map[change.TableID]*tableLive
		// unfilled are the positions of tables at which a value could not be filled in last.
		unfilled map[change.TableID]change.Position
		// inFlight is the commit time of the oldest transaction being appended.
		inFlight   time.Time
		lastCommit time.Time
		caughtUp   bool
		full       bool
		status     SourceStatus
		// notes are of tables that go on, but should be looked at; missedTotal counts the changes
		// that the source does not send, of those where it can tell.
		notes       map[change.TableID]TableNote
		missedTotal map[change.TableID]int64
		// comparing is the share of tables that is compared with the source.
		comparing   map[change.TableID]float64
		rows, bytes rate
		// retained and written are how what the source keeps for us, and what it has
		// written, have grown of late.
		retained, written growth
		pendingSince      func() time.Time // of the session's batcher, nil without one
	}
}

type tableLive struct {
	metrics    TableMetrics
	lastCommit time.Time
	copied     rate
	reading    int64 // rows of chunks that are not finished
}

func newLive(clock env.Clock) *live {
	l := &live{clock: clock}
	l.mu.tables = map[change.TableID]*tableLive{}
	l.mu.unfilled = map[change.TableID]change.Position{}
	return l
}

func (l *live) tableLocked(id change.TableID) *tableLive {
	t := l.mu.tables[id]
	if t == nil {
		t = &tableLive{}
		l.mu.tables[id] = t
	}
	return t
}

// appending notes the commit time of the oldest transaction in flight, zero for none.
func (l *live) appending(oldest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.inFlight = oldest
	if !oldest.IsZero() {
		l.mu.caughtUp = false
	}
}

// committed counts a group of the stream that became durable.
func (l *live) committed(c wal.CommittedGroup, g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &l.mu.metrics
	m.Groups++
	m.Transactions += g.txns
	for _, s := range c.Slices {
		t := l.tableLocked(s.Table)
		if !g.newest.IsZero() { // zero: a part
			t.lastCommit = g.newest
		}
		for _, into := range []*TableMetrics{&t.metrics} {
			into.Inserts += int64(s.Counts.Inserts)
			into.Updates += int64(s.Counts.Updates)
			into.Deletes += int64(s.Counts.Deletes)
			into.LogBytes += int64(s.Length)
		}
		m.Inserts += int64(s.Counts.Inserts)
		m.Updates += int64(s.Counts.Updates)
		m.Deletes += int64(s.Counts.Deletes)
		m.StreamRows += int64(s.Rows)
		m.LogBytes += int64(s.Length)
		if s.Truncate {
			m.Truncates++
			t.metrics.Truncates++
		}
	}
	if !g.newest.IsZero() {
		l.mu.lastCommit = g.newest
	}
}

// copied counts a group of an initial copy. Of the table's chunk so many rows were counted
// before; they are not when it is done.
func (l *live) copied(c wal.CommittedGroup, table change.TableID, before int64, chunkDone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range c.Slices {
		t := l.tableLocked(s.Table)
		t.metrics.CopiedRows += int64(s.Rows)
		t.metrics.LogBytes += int64(s.Length)
		l.mu.metrics.CopiedRows += int64(s.Rows)
		l.mu.metrics.LogBytes += int64(s.Length)
		l.tableLocked(table).reading += int64(s.Rows)
		before += int64(s.Rows)
	}
	if chunkDone {
		l.mu.metrics.CopiedChunks++
		l.tableLocked(table).reading -= before
	}
}

func (l *live) stopped(tableStop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.metrics.TableStops++
}

// unfilled notes that a value of a table, which has everything up to at, could not be
// filled in, and says whether that was so before.
func (l *live) unfilled(id change.TableID, at change.Position) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.mu.unfilled[id]
	l.mu.unfilled[id] = at
	return known && last == at
}

func (l *live) idle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.caughtUp = true
}

// throttled notes whether the log is full; begins says that it was not before.
func (l *live) throttled(full bool) (begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begins = full && !l.mu.full
	l.mu.full = full
	if begins {
		l.mu.metrics.Throttles++
	}
	return begins
}

func (l *live) sourceError() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.metrics.SourceErrors++
}

// attach connects the batcher of a session, nil at its end.
func (l *live) attach(pendingSince func() time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.pendingSince = pendingSince
	l.mu.inFlight, l.mu.caughtUp = time.Time{}, false
	for _, t := range l.mu.tables {
		t.reading = 0
	}
}

// source notes what the source says of itself.
func (l *live) source(s SourceStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.status = s
	now := l.clock.Now()
	l.mu.retained.add(now, s.RetainedBytes)
	l.mu.written.add(now, s.WrittenBytes)
}

// noted keeps what a look at the source found of tables that go on.
func (l *live) noted(notes map[change.TableID]TableNote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.notes = notes
}

// compared keeps how much of a table is compared.
func (l *live) compared(id change.TableID, share float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share < 0 {
		delete(l.mu.comparing, id)
		return
	}
	if l.mu.comparing == nil {
		l.mu.comparing = map[change.TableID]float64{}
	}
	l.mu.comparing[id] = share
}

// missed keeps how many changes of tables the source has not sent.
func (l *live) missed(totals map[change.TableID]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.missedTotal = totals
}

// succeed adds up what a table and the copy that took its place have counted. Of the
// stream the copy has counted nothing that the table did not, unless that had stopped.
func (l *live) succeed(before, now change.TableID, stopped bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, t := l.mu.tables[before], l.tableLocked(now)
	if was == nil {
		return
	}
	delete(l.mu.tables, before)
	if !stopped {
		t.metrics = TableMetrics{CopiedRows: t.metrics.CopiedRows, LogBytes: t.metrics.LogBytes}
	}
	t.metrics.add(was.metrics)
	if was.lastCommit.After(t.lastCommit) {
		t.lastCommit = was.lastCommit
	}
}

// sample moves the rates on; called about once a second.
func (l *live) sample() {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.rows.sample(now, l.mu.metrics.StreamRows+l.mu.metrics.CopiedRows)
	l.mu.bytes.sample(now, l.mu.metrics.LogBytes)
	for _, t := range l.mu.tables {
		t.copied.sample(now, t.metrics.CopiedRows)
	}
}

// lag is by how long the log trails the source: 0 when nothing waits, never negative.
func (l *live) lag() time.Duration {
	l.mu.Lock()
	pending, since := l.mu.pendingSince, l.mu.inFlight
	behind := !l.mu.caughtUp && l.mu.status.LagBytes > 0
	last := l.mu.lastCommit
	l.mu.Unlock()
	if since.IsZero() && pending != nil {
		since = pending() // takes the batcher's lock, so not under ours
	}
	if since.IsZero() && behind {
		since = last
	}
	if since.IsZero() {
		return 0
	}
	return max(0, l.clock.Now().Sub(since))
}

// rate is a smoothed change per second.
type rate struct {
	at    time.Time
	value int64
	perS  float64
}

// rateWeight is how much of the newest sample enters a rate.
const rateWeight = 0.4

func (r *rate) sample(now time.Time, value int64) {
	if seconds := now.Sub(r.at).Seconds(); !r.at.IsZero() && seconds > 0 {
		r.perS += rateWeight * (float64(value-r.value)/seconds - r.perS)
		if r.perS < 0.005 {
			r.perS = 0
		}
	}
	r.at, r.value = now, value
}

// growth is how fast a value grows over the last minutes.
type growth struct {
	points [growthPoints]struct {
		at    time.Time
		value int64
	}
	n int // ever added
}

const (
	growthPoints   = 64
	growthInterval = 5 * time.Second // at least between two points: over five minutes in all
)

func (g *growth) add(now time.Time, value int64) {
	if g.n > 1 && now.Sub(g.points[(g.n-2)%growthPoints].at) < growthInterval {
		g.n-- // the newest stands for the interval
	}
	g.points[g.n%growthPoints].at, g.points[g.n%growthPoints].value = now, value
	g.n++
}

// perSecond is the growth between the oldest and the newest value known, negative when
// the value shrinks; 0 when too little is known.
func (g *growth) perSecond() float64 {
	if g.n < 2 {
		return 0
	}
	first, last := g.points[max(0, g.n-growthPoints)%growthPoints], g.points[(g.n-1)%growthPoints]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(last.value-first.value) / seconds
}

package ingest

import (
	"sort"
	"sync"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// progress knows how far a pipeline and its tables are, and from that what may be
// acknowledged (O1). Written by the appender; safe for concurrent reading.
type progress struct {
	compare  func(a, b change.Position) int
	measurer Measurer // nil: positions have no distance

	mu struct {
		sync.Mutex
		durable change.Position // of the pipeline, in the log
		passed  change.Position // ≥ durable: an idle stream's, nothing before it is pending
		acked   change.Position
		// stopped and behind are the own positions of tables that hold the rest back.
		stopped, behind map[change.TableID]change.Position
		// frozen are those of tables that stay where they are and hold nothing back.
		frozen map[change.TableID]change.Position
		// moved is closed at the next step forward, nil when nobody waits for one.
		moved chan struct{}
	}
}

func newProgress(compare func(a, b change.Position) int, durable change.Position,
	tables []*catalog.Table,
) *progress {
	p := &progress{compare: compare}
	p.mu.durable, p.mu.passed = durable, durable
	p.mu.stopped = map[change.TableID]change.Position{}
	p.mu.behind = map[change.TableID]change.Position{}
	p.mu.frozen = map[change.TableID]change.Position{}
	for _, t := range tables {
		switch {
		case t.FrozenAt != "" || t.State == catalog.TableStopped && t.StoppedAt == "":
			p.mu.frozen[t.ID] = t.FrozenAt // "": nobody knows where it stands
		case t.StoppedAt == "":
		case t.State == catalog.TableStopped:
			p.mu.stopped[t.ID] = t.StoppedAt
		default:
			p.mu.behind[t.ID] = t.StoppedAt
		}
	}
	return p
}

// from is where the stream begins: where the pipeline is, or the first of the tables
// that are behind.
func (p *progress) from() change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := p.mu.durable
	for _, at := range p.mu.behind {
		if p.compare(at, from) < 0 {
			from = at
		}
	}
	return from
}

// after is the position up to which a table has everything.
func (p *progress) after(t *catalog.Table) change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	after, isBehind := p.mu.behind[t.ID]
	if !isBehind {
		after = p.mu.durable
	}
	// Without a key a change that the copy contains must not come again.
	skip := t.Backfill.From
	if !t.Current.HasKey() {
		skip = t.Backfill.Horizon
	}
	if p.compare(skip, after) > 0 {
		after = skip
	}
	return after
}

// own is the durable position of a table that is streamed.
func (p *progress) own(id change.TableID) change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, isBehind := p.mu.behind[id]; isBehind {
		return at
	}
	return p.mu.durable
}

// reached is the position which everything that comes of a table lies behind.
func (p *progress) reached(id change.TableID) change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, isBehind := p.mu.behind[id]; isBehind {
		return at
	}
	return p.mu.passed
}

// durable is the pipeline's durable position.
func (p *progress) durable() change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.durable
}

// passed is the position that the stream has reached with nothing pending.
func (p *progress) passed() change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.passed
}

// plan says what the group that ends at a position must record: the pipeline's
// position, "" when it is not moved, and the positions of tables that are behind.
func (p *progress) plan(at change.Position, s *groupState) change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	advances := p.compare(at, p.mu.durable) > 0
	reached := p.compare(at, p.mu.durable) >= 0
	for id, own := range p.mu.behind {
		if stopsIn(s.Stops, id) {
			continue // its stop says where it is
		}
		if reached {
			s.Reached = append(s.Reached, id)
		} else if p.compare(at, own) > 0 { // another that is further behind may set the pace
			s.Progress = append(s.Progress, tableProgress{Table: id, At: at})
		}
	}
	sort.Slice(s.Reached, func(i, j int) bool { return s.Reached[i] < s.Reached[j] })
	sort.Slice(s.Progress, func(i, j int) bool { return s.Progress[i].Table < s.Progress[j].Table })
	if !advances {
		return ""
	}
	return at
}

func stopsIn(stops []tableStop, id change.TableID) bool {
	for _, s := range stops {
		if s.Table == id {
			return true
		}
	}
	return false
}

// record notes that the group planned so is durable.
func (p *progress) record(position change.Position, s *groupState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if position != "" {
		p.mu.durable = position
		if p.compare(position, p.mu.passed) > 0 {
			p.mu.passed = position
		}
	}
	for _, stop := range s.Stops {
		delete(p.mu.behind, stop.Table)
		p.mu.stopped[stop.Table] = stop.At
	}
	for _, t := range s.Progress {
		p.mu.behind[t.Table] = t.At
	}
	for _, id := range s.Reached {
		delete(p.mu.behind, id)
	}
	p.movedLocked()
}

// idle notes that the stream has reached at with nothing pending. persist says that
// this lets a table that was behind go on with the others.
func (p *progress) idle(at change.Position) (persist bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compare(at, p.mu.passed) > 0 {
		p.mu.passed = at
		p.movedLocked()
	}
	return len(p.mu.behind) > 0 && p.compare(at, p.mu.durable) >= 0
}

// distance is how many bytes of the source's log lie between two positions, 0 when that
// cannot be said.
func (p *progress) distance(from, to change.Position) int64 {
	if p.measurer == nil {
		return 0
	}
	return p.measurer.Distance(from, to)
}

// movedLocked wakes who waits for a step forward.
func (p *progress) movedLocked() {
	if p.mu.moved != nil {
		close(p.mu.moved)
		p.mu.moved = nil
	}
}

// move is closed at the next step forward.
func (p *progress) move() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.moved == nil {
		p.mu.moved = make(chan struct{})
	}
	return p.mu.moved
}

// has says whether readers of the tables see everything up to at. A table that stopped
// before has not, and will not by itself.
func (p *progress) has(at change.Position, tables []change.TableID) (ok bool, stopped change.TableID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ok = p.compare(p.mu.passed, at) >= 0
	for _, t := range tables {
		own, is := p.mu.stopped[t]
		if !is {
			own, is = p.mu.frozen[t]
		}
		if is && p.compare(own, at) < 0 {
			return false, t
		}
		if own, is := p.mu.behind[t]; is && p.compare(own, at) < 0 {
			ok = false
		}
	}
	return ok, 0
}

// forget has a table hold nothing back any more.
func (p *progress) forget(id change.TableID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.stopped, id)
	delete(p.mu.behind, id)
	delete(p.mu.frozen, id)
}

// ack is the position to acknowledge now; ok is false if it has not grown. It is never
// one at which the stream is idle and that is not durable yet: after a crash the stream
// begins at the durable one, which the source would have let go.
func (p *progress) ack() (at change.Position, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.mu.durable
	if mutant.On(mutant.AckIdle) {
		at = p.mu.passed
	}
	for _, own := range p.mu.stopped {
		if p.compare(own, at) < 0 && !mutant.On(mutant.AckMaximum) {
			at = own
		}
	}
	for _, own := range p.mu.behind {
		if p.compare(own, at) < 0 && !mutant.On(mutant.AckMaximum) {
			at = own
		}
	}
	if p.compare(at, p.mu.acked) <= 0 {
		return "", false
	}
	p.mu.acked = at
	return at, true
}

// acked is the position acknowledged last.
func (p *progress) acked() change.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.acked
}

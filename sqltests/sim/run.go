package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/env"
)

// Config is one run.
type Config struct {
	Schedule script.Schedule
	// Trace gets a line for everything that happens; nil: nobody looks. Verbose adds each
	// exchange.
	Trace   io.Writer
	Verbose bool
	// Thorough has the checkers read at every step what they otherwise know from the steps before.
	Thorough bool
	// Unchecked leaves the checkers out, to measure what they cost.
	Unchecked bool
	// Store runs hosts whose logs are on one object store, instead of a host with its log on
	// its disk.
	Store bool
	// Lake makes the world's lake; nil: one in memory.
	Lake func(env.Clock, env.IDs) (Lake, error)
	// Pebble keeps catalogs on Pebble instead of in memory, which must be no difference.
	Pebble bool
	// Probe looks at the world at its end, and after every ProbeEvery-th record if that
	// is not 0. Its error is a violation.
	Probe      func(Probe) error
	ProbeEvery int
}

// Result is what came of a run.
type Result struct {
	// Violation is the first broken invariant, nil if all held.
	Violation *check.Violation
	// TraceHash is a function of everything that happened.
	TraceHash uint64
	// Points is how many exchanges with the world there were, Steps how often the checkers
	// looked.
	Points, Steps int
	// Marks counts what was covered, by name.
	Marks map[string]int
}

// Run executes a schedule, then stops the faults and runs until nothing is left to do.
func Run(c Config) (Result, error) {
	c.Store = c.Store || c.Schedule.Store
	w, err := newWorld(c)
	if err != nil {
		return Result{}, fmt.Errorf("make world: %w", err)
	}
	w.borrowCoroutines()
	w.out, w.verbose = c.Trace, c.Verbose
	if !c.Unchecked {
		w.suite = check.NewSuite()
		if c.Thorough {
			w.suite.Thorough()
		}
	}
	for i, r := range c.Schedule.Records {
		if w.violation != nil {
			break
		}
		w.step(r)
		w.probe(c, i)
	}
	if w.violation == nil {
		w.drain()
		w.retryLetters()
		w.readOwn()
		w.probe(c, -1)
	}
	w.end()
	w.note(uint64(w.points))
	return Result{
		Violation: w.violation, TraceHash: w.hash, Points: w.points, Steps: w.steps, Marks: w.marks,
	}, nil
}

// The bounds of a drain: exchanges at least, and for each before it, since a long schedule
// leaves many readers of many segments.
const (
	drainPoints = 40_000
	drainTimes  = 20
	drainTime   = 20 * time.Minute
	// drainEach is what one transaction that waits may take: values that it left out are
	// looked for in all of the log.
	drainEach = 500
)

// drain ends the faults and runs until nothing is left to do (L1).
func (w *World) drain() {
	w.say("- drain")
	w.rng, w.armed, w.lying = random{w.cfg.Seed ^ 0xd4a1}, armed{}, lying{}
	w.freeAll()
	w.deliverAll()
	for _, h := range w.hosts {
		h.paused, h.skew = false, 0
		h.disk.SetSpace(-1)
		if h.proc != nil {
			h.proc.release()
		}
	}
	begin, from := w.now, w.points
	var why error
	user := begin
	confirmed, _, _ := w.db.Confirmed()
	waiting := drainEach * int(w.db.LSN-confirmed)
	for w.violation == nil {
		w.endClients()
		w.goOn(going{points: 50, time: 500 * time.Millisecond})
		if w.now.Sub(user) > userPatience {
			user = w.now
			w.help()
		}
		if !w.loadAt.IsZero() && (w.slow == 0 || w.now.Sub(begin) > loadMost) {
			w.loadAt, begin, from = time.Time{}, w.now, w.points
		}
		if why = w.drained(); why == nil && w.loadAt.IsZero() {
			break
		}
		if w.loadAt.IsZero() && (w.now.Sub(begin) > drainTime || w.points-from > waiting+max(drainPoints, drainTimes*from)) {
			w.view.Stuck = true
			break
		}
	}
	if w.violation != nil {
		return
	}
	if w.view.Stuck { // the checker of L1 could not say why
		w.fail("L1", fmt.Sprintf("not drained after %v and %d exchanges: %v", w.now.Sub(begin), w.points-from, why))
		return
	}
	w.view.Drained, w.dirty = true, true
	w.look()
}

// loadMost is how long a source stays busy for slow readers.
const loadMost = 40 * time.Second

// userPatience is after how long a user acts on a pipeline that needs it.
const userPatience = 40 * time.Second

// restart starts the servers again whose rebuild of a pipeline ended with an error, as the
// event that tells of it asks.
func (w *World) restart() {
	for _, h := range w.hosts {
		p := h.proc
		if p == nil || !p.serving {
			continue
		}
		snap := p.catalog.Snapshot()
		pipelines, _ := snap.Rebuilding()
		snap.Close()
		if len(pipelines) > 0 {
			w.mark("user restarts")
			w.crash(h, false, false)
		}
	}
}

// help does what the pipeline's state asks its user for.
func (w *World) help() {
	w.restart()
	p := w.leader()
	if p == nil || !p.serving || w.statementRuns(p) != "" {
		return
	}
	snap := p.catalog.Snapshot()
	pl, err := snap.Pipeline(w.pipeline)
	tables := snap.AllTables()
	snap.Close()
	if err != nil {
		return
	}
	for _, t := range tables {
		if t.State == catalog.TableStopped && t.Backfill.FinishedAt.IsZero() {
			w.say("  user copies %s anew: %s", t.Name, t.Reason)
			w.mark("user resyncs")
			table := catalog.SelectedTable{Schema: t.SourceSchema, Name: t.SourceName}
			w.spawn(p, "statement resync", func() { _ = p.supervisor.ResyncTable(p.ctx, pipelineName, table) })
			return
		}
	}
	if pl.State != catalog.PipelineError || w.own != nil { // nobody may act on the server's own
		return
	}
	w.say("  user helps: %s", pl.Reason)
	if strings.Contains(pl.Reason, "slot is gone") { // a RESET that did not end
		w.mark("user resets")
		w.spawn(p, "statement reset", func() { _ = p.supervisor.Reset(p.ctx, pipelineName) })
		return
	}
	w.mark("user resumes")
	w.spawn(p, "statement resume", func() { _ = p.resumePipeline(p.ctx) })
}

// release gives up the holds.
func (p *process) release() {
	for _, h := range p.holds {
		h.Release()
		h.tell(true)
	}
	p.holds = nil
}

// drained says what is left to do; nil: nothing.
func (w *World) drained() error {
	if err := w.clientsEnded(); err != nil {
		return err
	}
	p := w.leader()
	if p == nil || !p.serving {
		return errNoLeader
	}
	snap := p.catalog.Snapshot()
	defer snap.Close()
	pl, err := snap.Pipeline(w.pipeline)
	if err != nil {
		return err
	}
	if pl.Paused {
		running := w.statementRuns(p)
		if running == "" {
			w.spawn(p, "statement resume", func() { _ = p.resumePipeline(p.ctx) })
		}
		return fmt.Errorf("pipeline is paused (%s)", running)
	}
	at, err := snap.Offset(pl.ID)
	if err != nil {
		return err
	}
	if last := w.db.LSN; source.LSN(at.Position) < last {
		return fmt.Errorf("position is %s of %d", at.Position, last)
	}
	held := false // by a stopped table
	for _, t := range snap.EveryTableOf(pl.ID) {
		held = held || t.StoppedAt != ""
		if t.CopyOf != 0 || t.State != catalog.TableReady && t.State != catalog.TableStopped {
			return fmt.Errorf("table %s is %s", t.Name, t.State)
		}
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			return fmt.Errorf("table %s has %d live slices", t.Name, len(live))
		}
	}
	if confirmed, _, _ := w.db.Confirmed(); confirmed < w.db.LSN && !held {
		return fmt.Errorf("the source has been told of %d of %d", confirmed, w.db.LSN)
	}
	segments, err := snap.Segments(pl.ID)
	if err != nil {
		return err
	}
	if len(segments) > 1 {
		return fmt.Errorf("%d segments are left", len(segments))
	}
	return nil
}

// statementRuns names a statement that a process has not answered; empty: there is none.
func (w *World) statementRuns(p *process) string {
	for _, t := range w.tasks {
		if !t.ended && t.p == p && strings.HasPrefix(t.name, "statement ") {
			return t.name
		}
	}
	return ""
}

// end unwinds everything, so that nothing of the run stays.
func (w *World) end() {
	for _, h := range w.hosts {
		if p := h.proc; p != nil {
			p.dead = true
			p.cancel(errDead)
			h.proc = nil
			w.bury(p)
		}
	}
	w.view.Events = nil
	w.reap()
	w.returnCoroutines()
}

// retryLetters is what an operator does at the end of a run: what was refused can be taken
// in now, and RETRY DEAD LETTERS brings it, also when the server dies meanwhile. Then every
// table has all rows of the source.
func (w *World) retryLetters() {
	if w.db.Letters == 0 || w.violation != nil {
		return
	}
	w.say("- retry dead letters")
	w.mark("dead letters")
	w.db.Healed = true
	if w.suite != nil {
		w.suite.Healing()
	}
	r := random{w.cfg.Seed ^ 0x1e77e5}
	for deaths := r.n(3); w.violation == nil; deaths-- {
		p := w.leader()
		if p == nil || !p.serving {
			w.drain()
			p = w.leader()
		}
		if p == nil || w.violation != nil {
			return
		}
		w.view.Drained = false
		done, failing := false, int64(0)
		w.execute(p, "retry dead letters", func(ctx context.Context) error {
			res, err := p.supervisor.RetryDeadLetters(ctx, pipelineName, nil, func(string) {})
			done, failing = err == nil, res.Failing
			if res.Retried > 0 {
				w.mark("dead letters retried")
			}
			if res.Superseded > 0 {
				w.mark("dead letters superseded")
			}
			return err
		})
		if deaths > 0 {
			w.goOn(going{points: 1 + r.n(25)})
			w.mark("death while dead letters are retried")
			w.crash(p.host, r.one(2), false)
		}
		for w.statementRuns(p) != "" && !p.dead && w.violation == nil {
			w.goOn(going{points: 50, time: 500 * time.Millisecond})
		}
		w.drain()
		if done && w.violation == nil {
			if failing > 0 {
				w.fail("L1", fmt.Sprintf("%d dead letters stay, and all can be taken in", failing))
			}
			break
		}
	}
	w.readHealed()
}

// retryMeanwhile is an operator who lets values in that were refused, and then has RETRY bring
// what there is, while all goes on: until the end a table may have such rows or not.
func (w *World) retryMeanwhile(p *process) {
	w.db.Healed = true
	if w.suite != nil {
		w.suite.Healing()
	}
	w.execute(p, "retry", func(ctx context.Context) error {
		res, err := p.supervisor.RetryDeadLetters(ctx, pipelineName, nil, func(string) {})
		if res.Retried > 0 {
			w.mark("dead letters retried meanwhile")
		}
		return err
	})
}

// drawRetry has an operator retry dead letters before some steps of worlds that have them; no
// draw of its own.
func (w *World) drawRetry() {
	if w.db.Letters == 0 || uint64(w.steps)*0x9E3779B97F4A7C15>>60 != 0 {
		return
	}
	if p := w.leader(); p != nil && p.serving && !p.host.paused && w.statementRuns(p) == "" {
		w.retryMeanwhile(p)
	}
}

// readHealed has a client read all tables.
func (w *World) readHealed() {
	p := w.leader()
	if p == nil || w.violation != nil {
		return
	}
	if w.suite != nil {
		w.suite.Heal()
	}
	w.readAll(p)
}

// readAll has a client of a process read all tables.
func (w *World) readAll(p *process) {
	w.queries++
	s := &session{p: p, id: w.queries, queries: 1}
	t := w.spawn(p, fmt.Sprintf("query %d", s.id), s.run)
	for !t.ended && w.violation == nil {
		w.goOn(going{points: 50, time: 500 * time.Millisecond})
	}
}

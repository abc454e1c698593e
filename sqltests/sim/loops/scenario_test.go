package loops

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// scenario is a scripted interleaving.
type scenario struct {
	name    string
	options options
	run     func(*world)
}

// seeds of the orders in which goroutines take turns; 0 runs free.
var seeds = []uint64{0, 1, 2}

// runAll runs scenarios, each in its own bubble, free and in turns. Afterwards faults have
// ended and everything must drain, answer right, and wind down.
func runAll(t *testing.T, scenarios []scenario) {
	for _, s := range scenarios {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", s.name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.play(t, seed) })
			})
		}
	}
}

func (s *scenario) play(t *testing.T, seed uint64) {
	w := newWorld(t, s.options, seed)
	defer w.tell()
	defer w.abandon()
	s.run(w)
	w.drain()
	w.finish()
}

// statement runs a statement on the leader's supervisor, as a user's session does.
func (p *process) statement(text string, do func(context.Context) error) *pending {
	return p.start(text, func(ctx context.Context) error {
		err := do(ctx)
		p.emit(check.Statement{Host: p.host.name, Text: text, Err: err})
		return err
	})
}

func (p *process) reset() *pending {
	return p.statement("reset", func(ctx context.Context) error { return p.supervisor.Reset(ctx, pipelineName) })
}

func (p *process) resync(table string) *pending {
	return p.statement("resync "+table, func(ctx context.Context) error {
		return p.supervisor.ResyncTable(ctx, pipelineName, catalog.SelectedTable{Schema: "s", Name: table})
	})
}

func (p *process) dropTable(table string) *pending {
	return p.statement("drop table "+table, func(ctx context.Context) error {
		return p.supervisor.DropTable(ctx, pipelineName, catalog.SelectedTable{Schema: "s", Name: table})
	})
}

func (p *process) addTable(table string) *pending {
	return p.statement("add tables", func(ctx context.Context) error {
		_, err := p.supervisor.AddTables(ctx, pipelineName, []catalog.SelectedTable{{Schema: "s", Name: table}})
		return err
	})
}

func (p *process) drop() *pending {
	return p.statement("drop", func(ctx context.Context) error {
		_, err := p.supervisor.Drop(ctx, pipelineName, false)
		return err
	})
}

func (p *process) sync() *pending {
	return p.statement("sync", func(ctx context.Context) error {
		_, err := p.supervisor.Sync(ctx, pipelineName, 0, func(ingest.PipelineStatus) {})
		return err
	})
}

func (p *process) setPaused(ctx context.Context, paused bool) error {
	return p.catalog.Load().Update(ctx, func(txn *catalog.Txn) error {
		pl, err := txn.Pipeline(pipelineName)
		if err != nil {
			return err
		}
		pl.Paused, pl.State, pl.Reason = paused, catalog.PipelineStarting, ""
		if paused {
			pl.State, pl.Reason = catalog.PipelinePaused, "paused by the user"
		}
		return txn.PutPipeline(pl)
	})
}

func (p *process) pause() *pending {
	return p.statement("pause", func(ctx context.Context) error {
		if err := p.setPaused(ctx, true); err != nil {
			return err
		}
		return p.supervisor.Stop(ctx, pipelineName)
	})
}

func (p *process) resume() *pending {
	return p.statement("resume", func(ctx context.Context) error {
		if err := p.setPaused(ctx, false); err != nil {
			return err
		}
		return p.supervisor.Start(ctx, pipelineName)
	})
}

func (p *process) compactNow() *pending {
	return p.statement("compact", func(ctx context.Context) error { return p.compactor.Compact(ctx, pipelineName) })
}

// snapshot is a process's catalog as of now; the scenario closes it.
func (p *process) snapshot() *catalog.Snapshot { return p.catalog.Load().Snapshot() }

// position is how far the process's pipeline is.
func (p *process) position() int64 {
	snap := p.snapshot()
	defer snap.Close()
	at, err := snap.Offset(pipelineID)
	if err != nil {
		return 0
	}
	return source.LSN(at.Position)
}

// caughtUp lets everything go on until the process has what the source has, and every table is
// ready.
func (p *process) caughtUp() {
	w := p.host.w
	w.t.Helper()
	w.must(p.host.name+" has caught up", func() bool {
		return p.serving.Load() && p.position() >= w.source.lsn() && p.ready()
	})
}

func (p *process) ready() bool {
	snap := p.snapshot()
	defer snap.Close()
	tables := snap.AllTables()
	for _, t := range tables {
		if t.State != catalog.TableReady {
			return false
		}
	}
	return len(tables) > 0
}

// leader is the process that has the log, nil when none has.
func (w *world) leader() *process {
	var out *process
	for _, h := range w.hosts {
		if p := h.proc; p != nil && p.serving.Load() && p.openLogs() > 0 && (out == nil || p.epoch() > out.epoch()) {
			out = p
		}
	}
	return out
}

// drain ends what the scenario holds and lets everything go on until nothing is left to do
// (L1).
func (w *world) drain() {
	for _, t := range w.held {
		t.goOn()
	}
	for _, h := range w.hosts {
		h.disk.SetSpace(-1)
		if h.proc != nil && closed(h.proc.done) { // fenced, or it did not start
			h.proc = nil
			w.emit(check.Crashed{Host: h.name})
		}
		if h.proc == nil {
			h.boot()
		}
	}
	var why error
	if !w.until(10*time.Minute, func() bool {
		why = w.drained()
		return why == nil
	}) {
		w.t.Fatalf("L1: not drained: %v", why)
	}
	w.view.Drained = true
	w.look()
	w.view.Drained = false
	if w.violation != nil {
		w.t.Fatalf("%v", w.violation)
	}
}

// drained says what is left to do; nil: nothing.
func (w *world) drained() error {
	p := w.leader()
	if p == nil && w.dropped {
		return nil
	}
	if p == nil {
		return errors.New("no host has the log")
	}
	snap := p.snapshot()
	defer snap.Close()
	pl, err := snap.Pipeline(pipelineName)
	if err != nil {
		return err
	}
	if pl.Paused {
		return errors.New("pipeline is paused")
	}
	if p.position() < w.source.lsn() {
		return fmt.Errorf("position is %d of %d, %s %s", p.position(), w.source.lsn(), pl.State, pl.Reason)
	}
	for _, t := range snap.Tables(pl.ID) {
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return err
		}
		if t.State != catalog.TableReady || len(live) > 0 && !w.options.lazy {
			return fmt.Errorf("table %s is %s %s, %d live slices", t.Name, t.State, t.Reason, len(live))
		}
	}
	w.source.mu.Lock()
	confirmed, _, _ := w.source.db.Confirmed()
	w.source.mu.Unlock()
	if confirmed < w.source.lsn() {
		return fmt.Errorf("the source has been told of %d of %d", confirmed, w.source.lsn())
	}
	segments, err := snap.Segments(pl.ID)
	if err != nil {
		return err
	}
	if len(segments) > 1 && !w.options.lazy {
		return fmt.Errorf("%d segments are left", len(segments))
	}
	return nil
}

// finish queries once more, and ends everything.
func (w *world) finish() {
	if p := w.leader(); p != nil {
		if _, q := p.query(); q.end() != nil && !errors.Is(q.err, errNothing) {
			w.t.Fatalf("last query: %v", q.err)
		}
	}
	for _, h := range w.hosts {
		if h.proc == nil {
			continue
		}
		if err := h.stop(); err != nil {
			w.t.Fatalf("host %s: %v", h.name, err)
		}
	}
	w.must("the checkers have looked", func() bool { return true })
	w.t.Logf("%d exchanges, %d looks, %v", w.gate.visits, w.steps, time.Since(w.began))
}

// abandon ends what a scenario that failed has left, so that the bubble can end.
func (w *world) abandon() {
	w.gate.mu.Lock()
	w.gate.turns, w.gate.traps = false, nil
	w.gate.mu.Unlock()
	var left []*process
	for _, h := range w.hosts {
		if p := h.proc; p != nil {
			p.dead.Store(true)
			p.cancel(errDead)
			p.closeLogs()
			h.proc = nil
			left = append(left, p)
		}
	}
	w.gate.free(nil)
	for _, t := range w.held {
		t.goOn()
	}
	limit := time.After(time.Hour)
	for _, p := range left {
		for !closed(p.done) {
			select {
			case <-p.done:
			case <-w.gate.arrived: // in the midst of coming
				w.gate.free(nil)
			case <-limit:
				w.t.Errorf("host %s does not end", p.host.name)
				return
			}
		}
	}
}

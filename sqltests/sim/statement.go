package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// pipelineID is the only pipeline's.
const pipelineID change.PipelineID = 1

// acked notes a position that the source is given.
func (p *process) acked(at change.Position) {
	p.world.mark("acknowledged")
	p.world.emit(check.AckSent{Host: p.host.name, Pipeline: pipelineID, Position: at})
}

// statement has a user run a statement.
func (w *World) statement(arg uint8) {
	h := w.host(arg >> 5)
	p := h.proc
	if p == nil || h.paused || !p.serving {
		return
	}
	table := catalog.SelectedTable{Schema: "s", Name: w.tables[w.rng.n(len(w.tables))].Name}
	if w.db.Letters > 0 && arg&0x10 != 0 {
		w.retryMeanwhile(p)
		w.goOn(going{points: w.rng.n(40)})
		return
	}
	s := p.supervisor
	var text string
	var do func(context.Context) error
	switch arg % 16 {
	case 0:
		text, do = "reset", func(ctx context.Context) error { return s.Reset(ctx, pipelineName) }
	case 1, 2:
		text, do = "resync "+table.Name, func(ctx context.Context) error { return s.ResyncTable(ctx, pipelineName, table) }
	case 3:
		text, do = "drop table "+table.Name, func(ctx context.Context) error { return s.DropTable(ctx, pipelineName, table) }
	case 4, 5, 6:
		text, do = "add tables", func(ctx context.Context) error {
			_, err := s.AddTables(ctx, pipelineName, []catalog.SelectedTable{table})
			return err
		}
	case 7, 8, 9:
		text, do = "resume table "+table.Name, func(ctx context.Context) error { return s.ResumeTable(ctx, pipelineName, table) }
	case 10, 11:
		text, do = "pause", p.pausePipeline
	case 12, 13, 14:
		text, do = "resume", p.resumePipeline
	default:
		text, do = "sync", p.sync
	}
	w.execute(p, text, do)
	w.goOn(going{points: w.rng.n(40)})
}

// execute begins a statement.
func (w *World) execute(p *process, text string, do func(context.Context) error) {
	w.mark("statement " + firstWords(text))
	w.spawn(p, "statement "+text, func() {
		err := do(p.ctx)
		if p.dead {
			return
		}
		if err == nil {
			w.mark("statement done " + firstWords(text))
		}
		w.emit(check.Statement{Host: p.host.name, Text: text, Err: err})
	})
}

// firstWords leaves a table's name off.
func firstWords(text string) string {
	for _, s := range []string{"resync", "drop table", "resume table"} {
		if len(text) > len(s) && text[:len(s)] == s {
			return s
		}
	}
	return text
}

func (p *process) sync(ctx context.Context) error {
	_, err := p.supervisor.Sync(ctx, pipelineName, 5*time.Second, func(ingest.PipelineStatus) {})
	return err
}

// hold takes, moves or releases a hold on the log.
func (w *World) hold(arg uint8) {
	p := w.host(arg >> 5).proc
	if p == nil || !p.serving {
		return
	}
	switch n := len(p.holds); {
	case n == 0 || n < 3 && arg&3 == 0:
		w.takeHold(p)
	case arg&3 == 1:
		w.moveHold(p, w.rng.n(n))
	default:
		w.releaseHold(p, w.rng.n(n))
	}
}

// published is the segment that a process's catalog knows of last.
func (p *process) published() segment.Seq {
	snap := p.catalog.Snapshot()
	defer snap.Close()
	at, err := snap.Offset(pipelineID)
	if err != nil {
		return 1 // before the first
	}
	return max(1, at.Seq)
}

func (w *World) takeHold(p *process) {
	w.serial++
	h := &holding{p: p, name: fmt.Sprintf("hold%d", w.serial), at: p.published()}
	h.LogHold = p.compactor.HoldLog(pipelineID, h.at)
	p.holds = append(p.holds, h)
	w.mark("hold taken")
	h.tell(false)
}

func (w *World) moveHold(p *process, i int) {
	if i >= len(p.holds) {
		return
	}
	h := p.holds[i]
	h.at = max(h.at, p.published())
	h.Move(h.at)
	w.mark("hold moved")
	h.tell(false)
}

func (w *World) releaseHold(p *process, i int) {
	if i >= len(p.holds) {
		return
	}
	h := p.holds[i]
	p.holds = append(p.holds[:i], p.holds[i+1:]...)
	h.Release()
	w.mark("hold released")
	h.tell(true)
}

// holding is a hold on the log that the world has.
type holding struct {
	*compact.LogHold
	p    *process
	name string
	at   segment.Seq
}

// tell tells the checkers where the hold is.
func (h *holding) tell(released bool) {
	h.p.world.emit(check.HoldMoved{
		Host: h.p.host.name, Pipeline: pipelineID, Name: h.name, At: segment.SliceRef{Seq: h.at}, Released: released,
	})
}

// controller is the part of a server's ddl.Controller that the world's statements need.
type controller struct {
	ddl.Controller // nil: of what is not below, nothing is asked
	s              *ingest.Supervisor
}

// Start implements ddl.Controller.
func (c controller) Start(ctx context.Context, name string) error { return c.s.Start(ctx, name) }

// Stop implements ddl.Controller.
func (c controller) Stop(ctx context.Context, name string) error { return c.s.Stop(ctx, name) }

// Status implements ddl.Controller.
func (c controller) Status(string) (ddl.PipelineStatus, bool) { return ddl.PipelineStatus{}, false }

// client runs statements and listens to nothing.
type client struct{}

// Notice implements ddl.Session.
func (client) Notice(*pgerr.Error) error { return nil }

// User implements ddl.Session.
func (client) User() string { return "postgres" }

// Role implements ddl.Session.
func (client) Role() uint32 { return 10 }

// execute runs a statement on the pipeline as a session does.
func (p *process) execute(ctx context.Context, action string) error {
	s, err := ddl.Parse("ALTER PIPELINE " + pipelineName + " " + action)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	x := ddl.Executor{Catalog: p.catalog, Controller: controller{s: p.supervisor}, Clock: clock{p}}
	_, err = x.Execute(ctx, s, client{})
	return err
}

func (p *process) pausePipeline(ctx context.Context) error { return p.execute(ctx, "PAUSE") }

func (p *process) resumePipeline(ctx context.Context) error { return p.execute(ctx, "ENABLE") }

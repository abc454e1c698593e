package loops

import (
	"context"
	"errors"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/query"
)

// session is a client that queries every table that can be read.
type session struct {
	p   *process
	id  int
	ctx context.Context
	// held: its queries are in one REPEATABLE READ transaction.
	held    bool
	queries int
	// repeats is how often the last query pinned anew.
	repeats int

	txn  *catalog.Snapshot
	done bool // a query of the transaction was executed
}

// plan is a pin and what the checkers want to know of it.
type plan struct {
	*planner.TablesPin
	pin check.Pin
}

var errNothing = errors.New("no table is readable")

// query begins a query in a session of its own.
func (p *process) query() (*session, *pending) { return p.session(context.Background(), false, 1) }

// session begins a session; ctx is that of its statements.
func (p *process) session(ctx context.Context, held bool, queries int) (*session, *pending) {
	p.host.w.queries++
	s := &session{p: p, id: p.host.w.queries, held: held, queries: queries, ctx: ctx}
	return s, p.start("query", func(context.Context) error { return s.run() })
}

func (s *session) run() error {
	p := s.p
	if s.held {
		s.txn = p.catalog.Load().Snapshot()
		release := p.pinner.Hold(s.txn)
		defer func() {
			release()
			s.txn.Close()
		}()
	}
	for range s.queries {
		s.repeats = -1
		err := planner.RunPinned(s.held, s.take, s.plan, s.execute)
		p.emit(check.QueryEnded{Query: s.id, Host: p.host.name, Repeats: s.repeats, Err: err})
		if err != nil {
			return err
		}
		if err := p.at("query rest"); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) take() (*catalog.Snapshot, func()) {
	if s.held {
		return s.txn, func() {}
	}
	snap := s.p.catalog.Load().Snapshot()
	return snap, snap.Close
}

// plan pins every table that can be read.
func (s *session) plan(snap *catalog.Snapshot) (*plan, error) {
	p := s.p
	s.repeats++
	out := &plan{pin: check.Pin{At: time.Now()}}
	var uses []planner.TableUse
	for _, t := range snap.AllTables() {
		if t.State != catalog.TableReady && (t.State != catalog.TableStopped || t.Backfill.FinishedAt.IsZero()) {
			continue
		}
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return nil, err
		}
		uses = append(uses, planner.WholeTable(t))
		out.pin.Tables = append(out.pin.Tables, check.PinnedTable{Table: t, Lake: snap.LakeState(t.ID), Live: live})
	}
	if len(uses) == 0 {
		return nil, errNothing
	}
	offset, err := snap.Offset(pipelineID)
	if err != nil {
		return nil, err
	}
	out.pin.Position, out.pin.Seq, out.pin.End = offset.Position, offset.Seq, offset.End
	if !s.done { // a transaction has one pin
		p.emit(check.PinTaken{Query: s.id, Host: p.host.name, Pin: out.pin})
	}
	out.TablesPin, err = p.pinner.Plan(s.ctx, snap, uses)
	return out, err
}

// execute runs a pin, some time after it was taken.
func (s *session) execute(pl *plan) error {
	defer pl.Release()
	if err := s.p.at("query pinned"); err != nil {
		return err
	}
	x := s.p.executor()
	results := make([]*query.Result, 0, len(pl.Relations))
	var err error
	for i := range pl.Relations {
		var r *query.Result
		if err = context.Cause(s.ctx); err != nil { // a statement ends between two relations
			break
		}
		if r, err = x.Run(s.ctx, &pl.Relations[i]); err != nil {
			break
		}
		results = append(results, r)
	}
	if err != nil {
		results = nil
	}
	s.p.emit(check.PinExecuted{
		Query: s.id, Host: s.p.host.name, Pin: pl.pin, Again: s.held && s.done, Err: err, Results: results,
	})
	s.done = s.held
	if at := s.p.at(executedPlace); at != nil {
		return at
	}
	return err
}

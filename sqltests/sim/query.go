package sim

import (
	"context"
	"errors"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// session is a client that queries: one query, or several at one moment.
type session struct {
	p  *process
	id int
	// held: its queries are in one REPEATABLE READ transaction.
	held bool
	// queries is how many it makes, again whether it executes each pin twice.
	queries int
	again   bool
	// nap is how long it takes between the steps of a query: 0 for none.
	nap time.Duration

	// wants is a position that it waits for before it queries, 0 for none; in is where it was
	// reached, by OID.
	wants int64
	in    []uint32

	// ended, if any, is called at the end.
	ended func()

	txn     *catalog.Snapshot
	release func()
	// told: the checkers know the transaction's pin; done: it was executed.
	told, done bool
}

// plan is a pin and what the checkers want to know of it.
type plan struct {
	*planner.TablesPin
	pin check.Pin
}

// run queries until it is done or the process has died.
func (s *session) run() {
	p := s.p
	if s.ended != nil {
		defer s.ended()
	}
	if s.wants > 0 && s.await() != nil {
		return
	}
	if s.held {
		s.txn = p.catalog.Snapshot()
		s.release = p.pinner.Hold(s.txn)
		p.world.mark("transaction pins")
		defer func() {
			s.release()
			s.txn.Close()
		}()
	}
	for range s.queries {
		repeats := -1
		err := planner.RunPinned(s.held, s.take, func(snap *catalog.Snapshot) (*plan, error) {
			repeats++
			return s.plan(snap)
		}, s.execute)
		if p.dead {
			return
		}
		if repeats > 0 {
			p.world.mark("re-pin")
		}
		switch {
		case planner.TooOld(err) && s.held:
			p.world.mark("snapshot too old")
		case planner.TooOld(err):
			p.world.mark("pins exhausted")
		}
		p.world.emit(check.QueryEnded{Query: s.id, Host: p.host.name, Repeats: repeats, Err: err})
		if s.rest() != nil {
			return
		}
	}
}

// await waits as skippr.read_position does, for the tables that can be read.
func (s *session) await() error {
	p := s.p
	target := ingest.Target{Pipeline: pipelineID, At: source.Position(s.wants), Compare: (*source.Conn)(nil).Compare}
	snap := p.catalog.Snapshot()
	for _, t := range snap.AllTables() {
		if t.Answers() && t.State != catalog.TableStopped {
			target.Tables = append(target.Tables, t.ID)
			s.in = append(s.in, t.SourceOID)
		}
	}
	snap.Close()
	p.world.mark("position awaited")
	err := p.supervisor.Await(p.ctx, target)
	switch {
	case p.dead:
		return errDead
	case err != nil:
		p.world.mark("position not reached")
	default:
		p.world.mark("position reached")
	}
	return err
}

func (s *session) take() (*catalog.Snapshot, func()) {
	if s.held {
		return s.txn, func() {}
	}
	snap := s.p.catalog.Snapshot()
	return snap, snap.Close
}

// rest is the client's pause.
func (s *session) rest() error {
	if s.nap == 0 {
		_, err := s.p.at(atQuery, "rest")
		return err
	}
	return clock{s.p}.Sleep(s.p.ctx, s.nap)
}

var errNothing = errors.New("no table is readable")

// plan pins every table that can be read.
func (s *session) plan(snap *catalog.Snapshot) (*plan, error) {
	p := s.p
	out := &plan{pin: check.Pin{At: p.world.now}}
	var uses []planner.TableUse
	var pipeline *catalog.Pipeline
	for _, t := range snap.AllTables() {
		if snap.BeingRebuilt(t.Pipeline) {
			continue // its log is not here
		}
		if t.State != catalog.TableReady && (t.State != catalog.TableStopped || t.Backfill.FinishedAt.IsZero()) {
			continue
		}
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return nil, err
		}
		if snap.CopyFor(t.ID) != nil {
			p.world.mark("pin of a table that is copied anew")
		}
		if t.FaceID != 0 {
			p.world.mark("pin of a copy in its place")
		}
		uses = append(uses, planner.WholeTable(t))
		out.pin.Tables = append(out.pin.Tables, check.PinnedTable{Table: t, Lake: snap.LakeState(t.ID), Live: live})
		if pipeline == nil {
			if pipeline, err = snap.PipelineByID(t.Pipeline); err != nil {
				return nil, err
			}
		}
	}
	if pipeline == nil {
		return nil, errNothing
	}
	offset, err := snap.Offset(pipeline.ID)
	if err != nil {
		return nil, err
	}
	out.pin.Position, out.pin.Seq, out.pin.End = offset.Position, offset.Seq, offset.End
	if !s.held || !s.told { // a transaction has one pin
		p.world.mark("pin taken")
		p.world.emit(check.PinTaken{Query: s.id, Host: p.host.name, Pin: out.pin, Awaited: s.wants, In: s.in})
		s.told = true
	}
	out.TablesPin, err = p.pinner.Plan(p.ctx, snap, uses)
	return out, err
}

// execute runs a pin, some time after it was taken.
func (s *session) execute(pl *plan) error {
	defer pl.Release()
	if err := s.rest(); err != nil {
		return err
	}
	err := s.once(pl, s.held && s.done)
	s.done = true
	if err == nil && s.again {
		if err := s.rest(); err != nil {
			return err
		}
		s.p.world.mark("pin executed again")
		return s.once(pl, true)
	}
	return err
}

func (s *session) once(pl *plan, again bool) error {
	p := s.p
	x := p.executor()
	results := make([]*query.Result, 0, len(pl.Relations))
	var err error
	for i := range pl.Relations {
		var r *query.Result
		if r, err = x.Run(context.Background(), &pl.Relations[i]); err != nil {
			break
		}
		results = append(results, r)
	}
	if p.dead {
		return errDead
	}
	if err != nil {
		results = nil
		p.world.mark("pin lost or unreadable")
	}
	p.world.mark("pin executed")
	p.world.emit(check.PinExecuted{
		Query: s.id, Host: p.host.name, Pin: pl.pin, Again: again, Err: err, Results: results,
	})
	if _, dead := p.at(atQuery, "executed"); dead != nil { // the checkers look before a new pin
		return dead
	}
	return err
}

package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/wal/change"
)

// Positions waits for what a client has written at a source. Safe for concurrent use.
type Positions interface {
	// Read turns an LSN of a client's into a position of the pipeline; ok is false when
	// the pipeline's source has no such positions.
	Read(p *catalog.Pipeline, kind, lsn string) (at change.Position, ok bool)
	// Await returns when the tables show everything up to at. It holds nothing meanwhile,
	// returns ctx's cause when ctx ends first, and else an error that a user can act on.
	Await(ctx context.Context, p change.PipelineID, tables []change.TableID, at change.Position) error
	// Position is up to where readers see a pipeline, "" when that is not known.
	Position(p change.PipelineID) change.Position
	// Compare orders two positions of the pipeline's source; empty is lowest.
	Compare(a, b change.Position) int
}

// errReadTimeout ends the wait for a position.
var errReadTimeout = errors.New("wait for a position has timed out")

// awaited is a position that a statement waits for, and the tables it reads there.
type awaited struct {
	pipeline *catalog.Pipeline
	at       change.Position
	tables   []change.TableID
}

// awaitRecovery waits until a relation has what it had when the server started. A table of
// a pipeline whose log cannot be opened is read as it is then, and waited for once; one of
// our own, of which clients were told that commits are durable, is not.
func (e *Engine) awaitRecovery(ctx context.Context, r *pgsql.Relation) error {
	id := change.PipelineID(r.Pipeline)
	if _, known := e.recovered.Load(id); known || r.System || id == 0 || e.deps.Recovered == nil {
		return nil
	}
	err := e.deps.Recovered(ctx, id)
	if err != nil && (r.Own || ctx.Err() != nil) {
		return err
	}
	e.recovered.Store(id, struct{}{})
	return nil
}

// awaitPosition waits until the tables of a statement show what skippr.read_position asks
// for, and all that could be read before the server started, before the statement takes
// its moment.
func (s *session) awaitPosition(ctx context.Context, a *pgsql.Analysis) error {
	if err := s.mayRead(a); err != nil {
		return err
	}
	for _, u := range a.Uses {
		if err := s.engine.awaitRecovery(ctx, u.Relation); err != nil {
			return err
		}
	}
	value := s.values.Value("skippr.read_position")
	if value == "" || s.engine.deps.Positions == nil {
		return nil
	}
	wanted, err := s.awaited(value, a)
	if err != nil || len(wanted) == 0 {
		return err
	}
	if s.repeatable() && s.tx.pin != nil {
		return s.atPin(wanted)
	}
	timeout := setting.Duration(s.values.Value("skippr.read_timeout"))
	waiting, stop := withTimeout(ctx, s.engine.deps.Clock, timeout, errReadTimeout)
	defer stop()
	defer waits.On(ctx, waits.ReadPosition)()
	for _, w := range wanted {
		err := s.engine.deps.Positions.Await(waiting, w.pipeline.ID, w.tables, w.at)
		if err != nil && errors.Is(context.Cause(waiting), errReadTimeout) {
			return s.notReached(w, "within "+s.values.Value("skippr.read_timeout"))
		}
		if err != nil {
			return err
		}
		s.tx.reached = append(s.tx.reached, w)
	}
	return nil
}

// awaited lists what a statement must wait for, by pipeline.
func (s *session) awaited(value string, a *pgsql.Analysis) ([]awaited, error) {
	entries, err := setting.ReadPositions(value)
	if err != nil {
		return nil, err
	}
	snap := s.engine.deps.Catalog.Snapshot()
	defer snap.Close()
	for _, e := range entries {
		if e.Pipeline == "" {
			continue
		}
		if _, err := snap.Pipeline(e.Pipeline); err != nil {
			return nil, pgerr.New(codes.UndefinedObject, "pipeline \"%s\" does not exist", e.Pipeline).
				WithDetail("skippr.read_position names it.")
		}
	}
	found := map[change.PipelineID]*awaited{}
	for _, u := range a.Uses {
		if u.Relation.System {
			continue
		}
		face, _ := TableIDOf(u.Relation.OID)
		t, err := snap.TableByFace(face)
		if err != nil {
			continue // the statement says so
		}
		if w := found[t.Pipeline]; w != nil {
			w.tables = append(w.tables, t.ID)
			continue
		}
		p, err := snap.PipelineByID(t.Pipeline)
		if err != nil {
			continue
		}
		lsn := positionFor(entries, p.Name)
		c, err := snap.Connection(p.Connection)
		if err != nil || lsn == "" {
			continue
		}
		if at, ok := s.engine.deps.Positions.Read(p, c.Kind, lsn); ok {
			found[p.ID] = &awaited{pipeline: p, at: at, tables: []change.TableID{t.ID}}
		}
	}
	var out []awaited
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[id])
	}
	return out, nil
}

// positionFor is the LSN for a pipeline: its own, else that for all.
func positionFor(entries []setting.ReadPosition, pipeline string) string {
	all := ""
	for _, e := range entries {
		switch e.Pipeline {
		case pipeline:
			return e.LSN
		case "":
			all = e.LSN
		}
	}
	return all
}

// atPin checks that the moment of a transaction, which cannot move, has what is asked.
func (s *session) atPin(wanted []awaited) error {
	p := s.engine.deps.Positions
	for _, w := range wanted {
		offset, err := s.tx.pin.Offset(w.pipeline.ID)
		if err != nil {
			return fmt.Errorf("read offset: %w", err)
		}
		held := p.Compare(offset.Position, w.at) >= 0 || slices.ContainsFunc(s.tx.reached, func(r awaited) bool {
			return r.pipeline.ID == w.pipeline.ID && p.Compare(r.at, w.at) >= 0
		})
		if !held {
			return pgerr.New(codes.ObjectNotInPrerequisiteState,
				"the transaction reads a moment before position %s of pipeline \"%s\"", w.at, w.pipeline.Name).
				WithHint("Set skippr.read_position before the first query of the transaction, or begin a new one.")
		}
	}
	return nil
}

// notReached says how far a pipeline is.
func (s *session) notReached(w awaited, within string) error {
	at := string(s.engine.deps.Positions.Position(w.pipeline.ID))
	if at == "" {
		at = "an unknown position"
	}
	return pgerr.New(codes.QueryCanceled, "pipeline \"%s\" did not reach position %s %s", w.pipeline.Name, w.at, within).
		WithDetail("It is at %s, its state is %s%s.", at, w.pipeline.State, because(w.pipeline.Reason)).
		WithHint("See pg_stat_pipeline. SET skippr.read_timeout changes how long a query waits, " +
			"RESET skippr.read_position lets it read what is there.")
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ", " + strings.TrimSuffix(reason, ".")
}

package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/timeout"
	"github.com/skipprd/skipprd/wal/change"
)

// pinned says what a plan reads of one table, for EXPLAIN.
type pinned struct {
	name                string
	pipeline            change.PipelineID
	snapshot            int64
	files, pruned       int
	lakeRows, liveRows  int64
	slices              int
	compareTokens       bool
	systemRelation      bool
	deleteFiles         int
	predicate           string
	newestLiveCommitted time.Time
}

// relation plans one use of a relation at the pin; h keeps what it reads.
func (e *Engine) relation(ctx context.Context, snap *catalog.Snapshot, u *pgsql.Use, env *SystemEnv, h *holds,
) (duckdb.Relation, pinned, error) {
	if u.Relation.System {
		return e.systemRelation(ctx, u, env)
	}
	r, p, err := e.pinner.relation(ctx, snap, tableUse(u), h)
	if errors.Is(err, catalog.ErrTableNotFound) {
		err = pgerr.New(codes.UndefinedTable, "relation \"%s.%s\" does not exist", u.Relation.Schema, u.Relation.Name)
	}
	return r, p, err
}

// tableUse is the use of a table, without its SQL.
func tableUse(u *pgsql.Use) *TableUse {
	id, _ := TableIDOf(u.Relation.OID)
	t := &TableUse{
		Table: id, Name: u.Name, KeyPredicate: u.KeyPredicate, Bounded: u.Bounded, Min: u.Min, Max: u.Max,
	}
	for _, c := range u.Columns {
		rc := u.Relation.Columns[c.Index]
		t.Columns = append(t.Columns, duckdb.Column{Name: c.Name, FieldID: rc.FieldID, EngineType: rc.Engine})
	}
	for _, k := range u.Relation.Key {
		for _, c := range u.Columns {
			if c.Index == k {
				t.Key = append(t.Key, c.Name)
			}
		}
	}
	return t
}

func (e *Engine) systemRelation(ctx context.Context, u *pgsql.Use, env *SystemEnv) (duckdb.Relation, pinned, error) {
	r := duckdb.Relation{Name: u.Name}
	name := u.Relation.Schema + "." + u.Relation.Name
	sys, ok := e.deps.System.Lookup(u.Relation.Schema, u.Relation.Name)
	if !ok {
		return r, pinned{}, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", name)
	}
	rows, err := e.deps.System.Rows(ctx, sys, env)
	if err != nil {
		return r, pinned{}, fmt.Errorf("read %s: %w", name, err)
	}
	r.Inline = rows
	for i, c := range sys.Columns {
		used := slices.IndexFunc(u.Columns, func(x pgsql.UsedColumn) bool { return x.Index == i })
		col := duckdb.Column{Name: c.Name, EngineType: c.EngineType}
		if used >= 0 {
			col.Name = u.Columns[used].Name
		}
		r.Columns = append(r.Columns, col)
	}
	return r, pinned{name: name, systemRelation: true}, nil
}

// readable refuses a table whose rows are not yet from one moment.
func readable(t *catalog.Table) error {
	name := t.Schema + "." + t.Name
	refuse := func(format string, args ...any) *pgerr.Error {
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "table \"%s\" is not ready", name).WithDetail(format, args...)
	}
	b := &t.Backfill
	switch t.State {
	case catalog.TableReady:
		return nil
	case catalog.TableStopped:
		if !b.FinishedAt.IsZero() {
			return nil // it answers with its last state; the views tell that it stopped
		}
		e := refuse("It stopped before its initial copy was complete: %s.", t.Reason)
		e.Hint = t.Hint
		return e
	case catalog.TableCatchup:
		return refuse("Its initial copy is done (%d rows) and follows the changes made meanwhile.", b.RowsDone).
			WithHint("It will be ready when its pipeline has read the source's log up to that moment; see skippr.tables.")
	case catalog.TablePending:
		return refuse("Its initial copy has not begun.").WithHint("See skippr.tables and pg_stat_pipeline_table.")
	}
	return refuse("Its initial copy is running: %s.", progress(b)).WithHint("See pg_stat_pipeline_table for progress.")
}

// notRebuilt is the error of a table whose pipeline has lost rows with the catalog: what
// there is of it would pass for all.
func notRebuilt(snap *catalog.Snapshot, t *catalog.Table, problem string) error {
	e := pgerr.New(codes.ObjectNotInPrerequisiteState, "table \"%s.%s\" is not ready", t.Schema, t.Name).
		WithDetail("Its pipeline could not be rebuilt after the loss of the catalog: %s.", problem)
	if p, err := snap.PipelineByID(t.Pipeline); err == nil {
		e.Hint = p.Exact("Bring its log back and start the server again; or DROP PIPELINE …; and create it anew.")
	}
	return e
}

func progress(b *catalog.BackfillProgress) string {
	if b.RowsEstimate > 0 {
		share := math.Min(99, 100*float64(b.RowsDone)/float64(b.RowsEstimate))
		return fmt.Sprintf("%d rows of about %d, %.0f %%", b.RowsDone, b.RowsEstimate, share)
	}
	return fmt.Sprintf("%d rows", b.RowsDone)
}

// holds are the lake snapshots that a statement, a cursor or a transaction keeps. Used
// by one goroutine.
type holds []func()

// release lets go of all; it may be called again.
func (h *holds) release() {
	for _, release := range *h {
		release()
	}
	*h = nil
}

// heldRows are rows whose plan's snapshots are kept until they are closed.
type heldRows struct {
	Rows
	holds holds
}

// Close implements Rows.
func (r *heldRows) Close() {
	r.Rows.Close()
	r.holds.release()
}

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
	limit := setting.Duration(s.values.Value("skippr.read_timeout"))
	waiting, stop := timeout.With(ctx, s.engine.deps.Clock, limit, errReadTimeout)
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

package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
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

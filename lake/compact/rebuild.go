package compact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// RebuildDeps are what Rebuild works with; all but Logger are required.
type RebuildDeps struct {
	Catalog   *catalog.Catalog
	Warehouse lake.Recoverer
	// RecoverLog opens a pipeline's log, which publishes what the catalog has not, and
	// closes it.
	RecoverLog func(ctx context.Context, p change.PipelineID) error
	Logger     *slog.Logger
}

// Rebuild gives a catalog that began with a backup, or with a pipeline of another
// machine, what came after: the groups in the logs, then the commits in the lake. Before
// it returned nobody may read, stream or compact. Where there is nothing to rebuild it
// does nothing; after a crash, or an error, it is begun again with the same outcome. A
// pipeline whose log cannot be recovered stays as its backup has it, and does not run
// before a later Rebuild: that is told in skippr.events and no error.
func Rebuild(ctx context.Context, d RebuildDeps) error {
	snap := d.Catalog.Snapshot()
	pipelines, restored := snap.Rebuilding()
	snap.Close()
	if len(pipelines) == 0 && !restored {
		return nil
	}
	r := &rebuild{RebuildDeps: d, failed: map[change.PipelineID]error{}}
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	for _, id := range pipelines {
		err := d.Catalog.Replay(ctx, id, func(ctx context.Context) error { return d.RecoverLog(ctx, id) })
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		}
		if err != nil {
			r.failed[id] = err
		}
	}
	if err := r.lake(ctx); err != nil {
		return fmt.Errorf("rebuild catalog: %w", err)
	}
	for _, id := range pipelines {
		if err := r.finish(ctx, id); err != nil {
			return fmt.Errorf("rebuild pipeline %d: %w", id, err)
		}
	}
	return r.end(ctx, restored)
}

// rebuild is one Rebuild under way.
type rebuild struct {
	RebuildDeps
	failed map[change.PipelineID]error
	tables []*catalog.Table
	found  *lake.Recovery
}

// lake finds the lake tables of all tables, after the logs: what a log has not, the lake
// may have, and not the other way round (P1).
func (r *rebuild) lake(ctx context.Context) (err error) {
	snap := r.Catalog.Snapshot()
	defer snap.Close()
	r.tables = snap.EveryTable()
	lost := make([]lake.Lost, len(r.tables))
	for i, t := range r.tables {
		at := snap.LakeState(t.ID)
		lost[i] = lake.Lost{
			Ident: lake.Ident{Namespace: t.Schema, Name: t.Name}, Table: t.ID, Generation: t.Generation,
		}
		if at.Snapshot != 0 {
			lost[i].Metadata, lost[i].Snapshot = at.Metadata, at.Snapshot
		}
	}
	left, err := snap.Leftovers()
	if err != nil {
		return err
	}
	for _, id := range left.Lakes {
		lost = append(lost, lake.Lost{Table: id, Dropped: true})
	}
	r.found, err = r.Warehouse.Recover(ctx, lost)
	return err
}

// finish ends the rebuild of a pipeline, or tells why it cannot.
func (r *rebuild) finish(ctx context.Context, id change.PipelineID) error {
	return r.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		p, err := txn.PipelineByID(id)
		if err != nil {
			return err
		}
		if cause := r.failed[id]; cause != nil {
			r.Logger.Error("pipeline not rebuilt", env.KeyPipeline, p.Name, env.KeyError, cause)
			return errors.Join(txn.FailRebuild(id, cause.Error()), txn.AddEvent(catalog.Event{
				Level: "error", Pipeline: p.Name, Kind: "pipeline not rebuilt",
				Detail: cause.Error() + ". Its tables cannot be read. Bring its log back and start the server " +
					"again, or drop the pipeline and create it anew.",
			}))
		}
		taken, stopped := 0, 0
		for i, t := range r.tables {
			if t.Pipeline != id {
				continue
			}
			n, err := r.adopt(txn, p, t, r.found.Tables[i])
			if err != nil {
				return fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, err)
			}
			if taken += n; r.found.Tables[i].Problem != "" {
				stopped++
			}
		}
		at, err := txn.Offset(id)
		if err != nil {
			return err
		}
		r.Logger.Info("pipeline rebuilt", env.KeyPipeline, p.Name, env.KeySeq, uint64(at.Seq), env.KeyLSN, string(at.Position),
			"slices_in_lake", taken, "tables_stopped", stopped)
		return errors.Join(txn.FinishRebuild(id), txn.AddEvent(catalog.Event{
			Level: "info", Pipeline: p.Name, Kind: "pipeline rebuilt",
			Detail: fmt.Sprintf("from its log up to segment %d and the lake; the source resumes at %q", at.Seq, at.Position),
		}))
	})
}

// adopt gives a table its lake side, or stops it with what became of that.
func (r *rebuild) adopt(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, found lake.Recovered) (int, error) {
	if found.Problem == "" {
		if found.Head == nil {
			return 0, nil
		}
		return txn.AdoptCompactions(t.ID, lakeState(found.Head, txn.Now()), committed(found.Commits))
	}
	t, err := txn.TableByID(t.ID)
	if err != nil {
		return 0, err
	}
	t.State, t.Reason, t.StoppedAt = catalog.TableStopped, found.Problem, ""
	t.Hint = t.Exact("Copy it anew: ALTER PIPELINE … RESYNC TABLE …;", p.Name)
	event := catalog.Event{
		Level: "error", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: "table stopped",
		Detail: t.Reason + ". " + t.Hint,
	}
	return 0, errors.Join(txn.PutTable(t), txn.AddEvent(event))
}

// end says that the catalog is whole again, unless a pipeline is not.
func (r *rebuild) end(ctx context.Context, restored bool) error {
	err := r.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		left, _ := txn.Rebuilding()
		if len(left) > 0 || !restored {
			return nil
		}
		detail := "from its backup, the logs and the lake; earlier events are lost"
		if kept := slices.Sorted(slices.Values(r.found.Kept)); len(kept) > 0 {
			detail += ". Lake tables that belong to no table are kept as " + strings.Join(kept, ", ")
		}
		return errors.Join(txn.FinishRestore(), txn.AddEvent(catalog.Event{
			Level: "warning", Kind: "catalog rebuilt", Detail: detail,
		}))
	})
	if err != nil {
		return fmt.Errorf("rebuild catalog: %w", err)
	}
	if restored && len(r.failed) == 0 {
		r.Logger.Warn("catalog rebuilt", "tables", len(r.tables), "lake_tables_kept", len(r.found.Kept))
	}
	return nil
}

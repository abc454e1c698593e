package planner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
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
	id, _ := TableIDOf(u.Relation.OID)
	t, err := snap.TableByID(id)
	if err != nil {
		return duckdb.Relation{}, pinned{}, pgerr.New(codes.UndefinedTable, "relation \"%s.%s\" does not exist",
			u.Relation.Schema, u.Relation.Name)
	}
	if err := readable(t); err != nil {
		return duckdb.Relation{}, pinned{}, err
	}
	r := duckdb.Relation{Name: u.Name, KeyPredicate: u.KeyPredicate}
	for _, c := range u.Columns {
		rc := u.Relation.Columns[c.Index]
		r.Columns = append(r.Columns, duckdb.Column{Name: c.Name, FieldID: rc.FieldID, EngineType: rc.Engine})
	}
	for _, k := range u.Relation.Key {
		for _, c := range u.Columns {
			if c.Index == k {
				r.Key = append(r.Key, c.Name)
			}
		}
	}
	p := pinned{name: t.Schema + "." + t.Name, pipeline: t.Pipeline, predicate: u.KeyPredicate}
	if err := e.live(snap, t, &r, &p); err != nil {
		return r, p, err
	}
	e.hold(h, snap.LakeState(t.ID))
	return r, p, e.files(ctx, snap, t, u, &r, &p)
}

// live adds the log's side: the table's slices that are not in the lake.
func (e *Engine) live(snap *catalog.Snapshot, t *catalog.Table, r *duckdb.Relation, p *pinned) error {
	live, err := snap.LiveSlices(t.ID)
	if err != nil {
		return fmt.Errorf("read live slices of %s: %w", t.Name, err)
	}
	if len(live) == 0 {
		return nil
	}
	r.Live = &duckdb.Live{
		Dir: e.deps.LogDir(t.Pipeline), Pipeline: uint32(t.Pipeline), Table: uint32(t.ID),
		CompareTokens: !snap.NewerThanLake(t.ID, live), Fields: fieldIDs(t),
	}
	for i := range live {
		s := &live[i]
		r.Live.Slices = append(r.Live.Slices, duckdb.LiveSlice{
			Seq: uint64(s.Ref.Seq), Start: s.Ref.Start, Length: s.Length, SchemaVersion: s.SchemaVersion,
			Truncate: s.Truncate, Backfill: s.Backfill, Rows: int64(s.Rows),
		})
		p.liveRows += int64(s.Rows)
		if s.CommittedAt.After(p.newestLiveCommitted) {
			p.newestLiveCommitted = s.CommittedAt
		}
	}
	p.slices, p.compareTokens = len(live), r.Live.CompareTokens
	return nil
}

// fieldIDs are the ids of a table's fields, by schema version.
func fieldIDs(t *catalog.Table) map[uint32][]int32 {
	out := make(map[uint32][]int32, len(t.Versions)+1)
	for _, v := range append(slices.Clip(t.Versions), t.Current) {
		ids := make([]int32, len(v.Fields))
		for i, f := range v.Fields {
			ids[i] = f.ID
		}
		out[v.Version] = ids
	}
	return out
}

// files adds the lake's side: the files of the pinned snapshot that may hold rows of
// the key's bounds.
func (e *Engine) files(ctx context.Context, snap *catalog.Snapshot, t *catalog.Table, u *pgsql.Use,
	r *duckdb.Relation, p *pinned,
) error {
	state := snap.LakeState(t.ID)
	p.snapshot = state.Snapshot
	if state.Snapshot == 0 {
		return nil
	}
	s, err := e.deps.Warehouse.Snapshot(ctx, t.Schema+"."+t.Name, state.Metadata, state.Snapshot)
	if err != nil {
		return fmt.Errorf("read lake snapshot of %s: %w", t.Name, err)
	}
	key := integerKey(t.Current)
	withDeletes := false
	for i := range s.Files {
		f := &s.Files[i]
		b, bounded := f.Bounds[key]
		bounded = bounded && key != 0 && b.IsInt
		if bounded && u.Bounded && (b.MaxInt < u.Min || b.MinInt > u.Max) {
			p.pruned++
			continue
		}
		out := duckdb.File{Path: f.Path, Rows: f.Rows, HasDeletes: f.HasDeletes}
		if bounded {
			out.KeyBounds, out.KeyMin, out.KeyMax = true, b.MinInt, b.MaxInt
		}
		withDeletes = withDeletes || f.HasDeletes
		r.Files = append(r.Files, out)
		r.LakeRows += f.Rows
	}
	if withDeletes {
		r.PositionDeletes = deletesOf(s, r.Files)
	}
	p.files, p.lakeRows, p.deleteFiles = len(r.Files), r.LakeRows, len(r.PositionDeletes)
	return nil
}

// deletesOf are the delete files that may name one of files.
func deletesOf(s *lake.Snapshot, files []duckdb.File) []string {
	var out []string
	for _, d := range s.PositionDeletes {
		concerns := d.MinFile == "" && d.MaxFile == "" || slices.ContainsFunc(files, func(f duckdb.File) bool {
			return f.HasDeletes && f.Path >= d.MinFile && f.Path <= d.MaxFile
		})
		if concerns {
			out = append(out, d.Path)
		}
	}
	return out
}

// integerKey is the field id of a single-column integer key, 0 for none.
func integerKey(t *schema.Table) int32 {
	if len(t.Key) != 1 {
		return 0
	}
	f, ok := t.Field(t.Key[0])
	if !ok || f.Type.Kind != schema.Int32 && f.Type.Kind != schema.Int64 {
		return 0
	}
	return f.ID
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

func progress(b *catalog.BackfillProgress) string {
	if b.RowsEstimate > 0 {
		share := math.Min(99, 100*float64(b.RowsDone)/float64(b.RowsEstimate))
		return fmt.Sprintf("%d rows of about %d, %.0f %%", b.RowsDone, b.RowsEstimate, share)
	}
	return fmt.Sprintf("%d rows", b.RowsDone)
}

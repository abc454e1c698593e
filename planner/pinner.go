package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
	"github.com/skipprd/skipprd/wal/protocol"
	"github.com/skipprd/skipprd/wal/segment"
)

// ErrSchemaMoved means that a table got another schema version between the look at its
// columns and the pin: the query must look at them again.
var ErrSchemaMoved = errors.New("schema has moved on")

// Pinner makes pins: what queries read of tables at one moment of the catalog, which
// gives the lake's snapshot and the live slices of each table together (P1). It knows
// no SQL. Safe for concurrent use.
type Pinner struct {
	Catalog   *catalog.Catalog
	Warehouse Snapshots
	// Pins keeps lake snapshots that are read; nil: none needs that.
	Pins Pins
	// Logs keeps the logs that a transaction or a cursor comes back to; nil: none can.
	Logs LogPins
	// LogDir is where the log of a pipeline lies.
	LogDir func(change.PipelineID) string
}

// TableUse is what a query reads of a table.
type TableUse struct {
	Table change.TableID // its face
	// Name, Columns, Key and KeyPredicate are those of the relation.
	Name         string
	Columns      []duckdb.Column
	Key          []string
	KeyPredicate string
	// Min and Max bound a single-column integer key, when Bounded.
	Bounded  bool
	Min, Max int64
	// Moment is set when the use is of the table as it was at a moment of the past.
	Moment *Moment
}

// Moment is a position of a source which the lake has nothing past, while the log may.
type Moment struct {
	// Before is the moment as an order token: it has the changes with a lower one.
	Before int64
	// Known is a place in the log that all before it is of before the moment.
	Known segment.SliceRef
}

// ErrTruncatedSince means that it cannot be told whether a TRUNCATE came before or after
// the moment asked for, since nothing was written to the table before the next one.
var ErrTruncatedSince = errors.New("table was truncated about the moment")

// slicesBefore are the slices, or beginnings of slices, of before the moment.
func (m *Moment) slicesBefore(live []catalog.Slice) (out []catalog.Slice, cut map[segment.SliceRef]bool, err error) {
	cut = map[segment.SliceRef]bool{}
	for _, s := range live {
		begins := s.Rows > 0 && s.Counts.MinToken < m.Before
		switch {
		case s.Ref.Less(m.Known), s.Backfill:
		case s.Truncate && !begins:
			return nil, nil, ErrTruncatedSince
		case !begins:
			continue
		case s.Counts.MaxToken >= m.Before:
			cut[s.Ref] = true
		}
		out = append(out, s)
	}
	return out, cut, nil
}

// WholeTable is the use of every column of a table, under its own names.
func WholeTable(t *catalog.Table) TableUse {
	u := TableUse{Table: t.Face(), Name: t.Schema + "." + t.Name}
	for _, f := range t.Current.Fields {
		u.Columns = append(u.Columns, duckdb.Column{Name: f.Name, FieldID: f.ID, EngineType: schema.EngineType(f.Type)})
	}
	for _, f := range t.Current.KeyFields() {
		u.Key = append(u.Key, f.Name)
	}
	return u
}

// TablesPin is a pin of tables: a value to run, and what keeps it readable.
type TablesPin struct {
	Relations []duckdb.Relation
	holds     holds
}

// Release lets go of the lake snapshots; it may be called again.
func (p *TablesPin) Release() { p.holds.release() }

// Plan pins tables at one moment of the catalog, which may be closed afterwards. The
// caller releases the pin when its rows are read.
func (p *Pinner) Plan(ctx context.Context, snap *catalog.Snapshot, uses []TableUse) (*TablesPin, error) {
	pin := &TablesPin{}
	for i := range uses {
		r, _, err := p.relation(ctx, snap, &uses[i], &pin.holds)
		if err != nil {
			pin.Release()
			return nil, err
		}
		pin.Relations = append(pin.Relations, r)
	}
	return pin, nil
}

// Hold keeps what any query at the moment may read, for a transaction that reads one
// moment; release may be called again.
func (p *Pinner) Hold(snap *catalog.Snapshot) (release func()) {
	h := p.holdAll(snap)
	return h.release
}

// Take is how a query comes by its moment of the catalog.
type Take func() (snap *catalog.Snapshot, release func())

// RunPinned pins, plans and runs a query. When run wraps duckdb.ErrSliceLost, it does
// so anew at another moment, as often as the protocol allows; then the query is too
// old (TooOld). held says that take gives the one moment of a transaction.
func RunPinned[P any](held bool, take Take, plan func(*catalog.Snapshot) (P, error), run func(P) error) error {
	pin := protocol.Pin{Held: held}
	var planned P
	for action, first := pin.Start(), true; action != protocol.PinGiveUp; first = false {
		snap, release := take()
		var err error
		if first || !mutant.On(mutant.RepinOldSnapshot) {
			planned, err = plan(snap)
		}
		release()
		if err != nil {
			return err
		}
		if err = run(planned); !errors.Is(err, duckdb.ErrSliceLost) {
			return err
		}
		action = pin.Lost()
	}
	return errTooOld
}

// TooOld reports whether a query was ended because rows that it must see are gone.
func TooOld(err error) bool { return errors.Is(err, errTooOld) }

// relation plans one use of a table; h keeps what it reads. It wraps
// catalog.ErrTableNotFound.
func (p *Pinner) relation(ctx context.Context, snap *catalog.Snapshot, u *TableUse, h *holds) (duckdb.Relation, pinned,
	error,
) {
	t, err := snap.TableByFace(u.Table)
	if err != nil {
		return duckdb.Relation{}, pinned{}, err
	}
	if err := readable(t); err != nil {
		return duckdb.Relation{}, pinned{}, err
	}
	if problem := snap.RebuildProblem(t.Pipeline); problem != "" {
		return duckdb.Relation{}, pinned{}, notRebuilt(snap, t, problem)
	}
	return p.relationOf(ctx, snap, t, u, h)
}

// PlanTable is Plan for one table by its own id, also while no query reads it.
func (p *Pinner) PlanTable(ctx context.Context, snap *catalog.Snapshot, u *TableUse) (*TablesPin, error) {
	t, err := snap.TableByID(u.Table)
	if err != nil {
		return nil, err
	}
	pin := &TablesPin{}
	r, _, err := p.relationOf(ctx, snap, t, u, &pin.holds)
	if err != nil {
		pin.Release()
		return nil, err
	}
	pin.Relations = []duckdb.Relation{r}
	return pin, nil
}

// PlanPending pins the parts of an open transaction that a table has, which no query
// reads: nil when there are none. versions are those that the catalog does not have yet.
func (p *Pinner) PlanPending(snap *catalog.Snapshot, u *TableUse, versions []*schema.Table) (*duckdb.Relation, error) {
	t, err := snap.TableByID(u.Table)
	if err != nil {
		return nil, err
	}
	parts, err := snap.PendingSlices(t.Pipeline, t.ID)
	if err != nil {
		return nil, fmt.Errorf("read pending slices of table %d: %w", t.ID, err)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return &duckdb.Relation{
		Name: u.Name, Columns: u.Columns, Key: u.Key,
		Live: p.liveOf(t, parts, versions),
	}, nil
}

// relationOf plans the use of a table as it is; see relation.
func (p *Pinner) relationOf(ctx context.Context, snap *catalog.Snapshot, t *catalog.Table, u *TableUse, h *holds,
) (duckdb.Relation, pinned, error) {
	columns, err := columnsNow(t.Current, u)
	if err != nil {
		return duckdb.Relation{}, pinned{}, fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, err)
	}
	r := duckdb.Relation{Name: u.Name, Columns: columns, Key: u.Key, KeyPredicate: u.KeyPredicate}
	facts := pinned{name: t.Schema + "." + t.Name, pipeline: t.Pipeline, predicate: u.KeyPredicate}
	moment := snap
	if mutant.On(mutant.LakeBeforeSlices) {
		moment = p.Catalog.Snapshot()
		defer moment.Close()
	}
	if err := p.live(moment, t, u.Moment, &r, &facts); err != nil {
		return r, facts, err
	}
	p.hold(h, snap.LakeState(t.ID))
	return r, facts, p.files(ctx, snap, t, u, &r, &facts)
}

// columnsNow are the columns of a use in the schema version of the pin, with what rows
// older than each have in it. It wraps ErrSchemaMoved when the use was made of a version
// that this one cannot answer for.
func columnsNow(now *schema.Table, u *TableUse) ([]duckdb.Column, error) {
	out := slices.Clone(u.Columns)
	key := make([]int32, 0, len(u.Key))
	for i := range out {
		c := &out[i]
		f, ok := now.Field(c.FieldID)
		if !ok || schema.EngineType(f.Type) != c.EngineType {
			return nil, fmt.Errorf("column %s of schema version %d: %w", quote.Name(c.Name), now.Version, ErrSchemaMoved)
		}
		if f.Initial != nil {
			c.Initial = schema.EngineInitial(f)
		}
	}
	for _, name := range u.Key {
		i := slices.IndexFunc(out, func(c duckdb.Column) bool { return c.Name == name })
		if i >= 0 {
			key = append(key, out[i].FieldID)
		}
	}
	if !slices.Equal(key, now.Key) {
		return nil, fmt.Errorf("key of schema version %d: %w", now.Version, ErrSchemaMoved)
	}
	if now.WholeRow {
		return out, wholeRow(now, out)
	}
	return out, nil
}

// wholeRow completes the columns of a use of a table whose rows are told apart by all of
// them. It wraps ErrSchemaMoved when the table has others by now.
func wholeRow(now *schema.Table, columns []duckdb.Column) error {
	if len(columns) != len(now.Fields) {
		return fmt.Errorf("columns of schema version %d: %w", now.Version, ErrSchemaMoved)
	}
	for i := range columns {
		f, _ := now.Field(columns[i].FieldID)
		if f.Initial == nil {
			continue
		}
		content, err := duckdb.InitialContent(f)
		if err != nil {
			return fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		columns[i].InitialContent = content
	}
	return nil
}

// live adds the log's side: the table's slices that are not in the lake.
func (p *Pinner) live(snap *catalog.Snapshot, t *catalog.Table, at *Moment, r *duckdb.Relation, facts *pinned) error {
	live, err := snap.LiveSlices(t.ID)
	if err != nil {
		return fmt.Errorf("read live slices of %s: %w", t.Name, err)
	}
	if mutant.On(mutant.OmitE) {
		all, err := snap.Slices(t.Pipeline)
		if err != nil {
			return err
		}
		live = slices.DeleteFunc(all, func(s catalog.Slice) bool { return s.Table != t.ID || s.Pending })
	}
	var cut map[segment.SliceRef]bool
	if at != nil {
		if live, cut, err = at.slicesBefore(live); err != nil {
			return fmt.Errorf("table %s.%s: %w", t.Schema, t.Name, err)
		}
	}
	if live = withoutVoidCopies(live); len(live) == 0 {
		return nil
	}
	r.Live = p.liveOf(t, live, nil)
	for i := range live {
		if cut[live[i].Ref] {
			r.Live.Slices[i].Before = at.Before
		}
	}
	r.Live.CompareTokens = !snap.NewerThanLake(t.ID, live)
	for i := range live {
		s := &live[i]
		r.WholeRow = r.WholeRow || t.Current.WholeRow && s.Counts.Deletes > 0
		facts.liveRows += int64(s.Rows)
		if s.CommittedAt.After(facts.newestLiveCommitted) {
			facts.newestLiveCommitted = s.CommittedAt
		}
	}
	facts.slices, facts.compareTokens = len(live), r.Live.CompareTokens
	return nil
}

// withoutVoidCopies leaves out slices of the initial copy when a TRUNCATE is among live.
// Whatever their place in the log, copied rows are older than any streamed change: a chunk
// that was read before the TRUNCATE may have been appended after it.
func withoutVoidCopies(live []catalog.Slice) []catalog.Slice {
	truncates := func(s catalog.Slice) bool { return s.Truncate && !s.Backfill }
	if !slices.ContainsFunc(live, truncates) {
		return live
	}
	return slices.DeleteFunc(slices.Clone(live), func(s catalog.Slice) bool { return s.Backfill })
}

// liveOf is slices of a table as the engine reads them.
func (p *Pinner) liveOf(t *catalog.Table, from []catalog.Slice, versions []*schema.Table) *duckdb.Live {
	out := &duckdb.Live{
		Dir: p.LogDir(t.Pipeline), Pipeline: uint32(t.Pipeline), Table: uint32(t.ID), Fields: fieldIDs(t, versions),
	}
	for i := range from {
		s := &from[i]
		out.Slices = append(out.Slices, duckdb.LiveSlice{
			Seq: uint64(s.Ref.Seq), Start: s.Ref.Start, Length: s.Length, SchemaVersion: s.SchemaVersion,
			Truncate: s.Truncate, Backfill: s.Backfill, Rows: int64(s.Rows),
		})
	}
	return out
}

// fieldIDs are the ids of a table's fields, by schema version; more are versions that the
// catalog does not have yet.
func fieldIDs(t *catalog.Table, more []*schema.Table) map[uint32][]int32 {
	out := make(map[uint32][]int32, len(t.Versions)+len(more)+1)
	for _, v := range slices.Concat(t.Versions, []*schema.Table{t.Current}, more) {
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
func (p *Pinner) files(ctx context.Context, snap *catalog.Snapshot, t *catalog.Table, u *TableUse,
	r *duckdb.Relation, facts *pinned,
) error {
	state := snap.LakeState(t.ID)
	facts.snapshot = state.Snapshot
	if state.Snapshot == 0 {
		return nil
	}
	s, err := p.Warehouse.Snapshot(ctx, t.Schema+"."+t.Name, state.Metadata, state.Snapshot)
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
			facts.pruned++
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
	facts.files, facts.lakeRows, facts.deleteFiles = len(r.Files), r.LakeRows, len(r.PositionDeletes)
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

// hold keeps a table's snapshot.
func (p *Pinner) hold(h *holds, state catalog.LakeState) {
	if p.Pins != nil && state.Snapshot != 0 {
		*h = append(*h, p.Pins.Hold(state.Metadata, state.Snapshot))
	}
}

// holdAll keeps what any statement at the pin may read.
func (p *Pinner) holdAll(snap *catalog.Snapshot) holds {
	var h holds
	for _, t := range snap.AllTables() {
		p.hold(&h, snap.LakeState(t.ID))
	}
	p.holdLogs(&h, snap)
	return h
}

// holdLogs keeps the logs from the first segment on that has live slices at the moment.
// What cannot be kept is met as a lost slice later (P3).
func (p *Pinner) holdLogs(h *holds, snap *catalog.Snapshot) {
	if p.Logs == nil {
		return
	}
	for _, pipeline := range snap.Pipelines() {
		segments, err := snap.Segments(pipeline.ID)
		if err != nil {
			continue // the statement that reads there says so
		}
		for _, s := range segments {
			if s.Live > 0 {
				*h = append(*h, p.Logs.HoldLog(pipeline.ID, s.Seq))
				break
			}
		}
	}
}

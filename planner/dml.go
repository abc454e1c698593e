package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/timeout"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// writeStatement is a prepared INSERT, UPDATE, DELETE or MERGE. Its analysis is made anew when
// the catalog or the settings it depends on have changed.
type writeStatement struct {
	session  *session
	parsed   *pgsql.Parsed
	analysis *pgsql.Write
	columns  []pgwire.Column
	literals *encode.Input // how they were read when it was prepared
	word     string        // INSERT, UPDATE, DELETE, MERGE, SELECT
	// catalog and settings are the versions of what the analysis was made against.
	catalog, settings uint64
}

func (s *session) prepareWrite(p *pgsql.Parsed, types []uint32, word string) (*writeStatement, error) {
	w := &writeStatement{session: s, parsed: p, word: word}
	return w, w.analyze(types)
}

func (w *writeStatement) analyze(types []uint32) error {
	s := w.session
	snap, release := s.now()
	defer release()
	n := s.namesOf(snap)
	a, err := pgsql.AnalyzeWrite(w.parsed, types, s.preparedEnv(n, &w.literals))
	if err != nil {
		return hintElsewhere(err, n)
	}
	w.analysis, w.catalog, w.settings = a, n.version, s.values.Version()
	w.columns = nil
	if a.Returning != nil {
		w.columns = wireColumns(a.Returning.Columns)
	}
	return nil
}

// Empty implements pgwire.Statement.
func (w *writeStatement) Empty() bool { return false }

// Params implements pgwire.Statement.
func (w *writeStatement) Params() []uint32 { return w.analysis.Params }

// Columns implements pgwire.Statement.
func (w *writeStatement) Columns() []pgwire.Column { return w.columns }

// AllowedInAborted implements pgwire.Statement.
func (w *writeStatement) AllowedInAborted() bool { return false }

// Bind implements pgwire.Statement.
func (w *writeStatement) Bind(_ context.Context, values [][]byte, paramFormats, resultFormats []int16) (pgwire.Portal, error) {
	if err := w.refresh(); err != nil {
		return nil, err
	}
	params, err := decodeParams(w.session.input(), w.analysis.Params, values, paramFormats)
	if err != nil {
		return nil, err
	}
	rows := &queryPortal{session: w.session, columns: w.columns, params: params, formats: resultFormats}
	return &writePortal{queryPortal: rows, statement: w}, nil
}

// refresh analyses again when something has changed since.
func (w *writeStatement) refresh() error {
	snap, release := w.session.now()
	version := snap.Version()
	release()
	if version == w.catalog && w.session.values.Version() == w.settings {
		return nil
	}
	before := *w
	if err := w.analyze(w.analysis.Params); err != nil {
		return err
	}
	if !sameColumns(before.columns, w.columns) {
		*w = before
		return errPlanChanged
	}
	return nil
}

// writePortal is a bound statement that writes: all of it happens on the first Execute,
// and the rows of RETURNING are those of the portal within.
type writePortal struct {
	*queryPortal
	statement *writeStatement
	ran       bool
	count     int
	copied    *duckdb.Output // what COPY makes of the rows, nil for what a client gets
}

// Execute implements pgwire.Portal.
func (p *writePortal) Execute(ctx context.Context, sink pgwire.Sink, maxRows int) (string, bool, error) {
	s := p.session
	if s.tx.aborted {
		return "", false, errAborted
	}
	s.enter()
	ctx, stop := s.limitTime(ctx)
	defer stop()
	if !p.ran {
		if err := p.write(ctx); err != nil {
			p.finish()
			return "", false, clientError(ctx, err)
		}
		p.ran = true
	}
	n, err := p.run(ctx, sink, maxRows)
	if err != nil {
		p.finish()
		return "", false, clientError(ctx, err)
	}
	if p.columns == nil {
		n = p.count
	}
	tag := fmt.Sprintf("%s %d", p.statement.word, n)
	if p.statement.word == "INSERT" {
		tag = fmt.Sprintf("INSERT 0 %d", n)
	}
	return tag, p.done, s.tell(sink)
}

// returning begins the rows of RETURNING: a query of the rows written.
func (p *writePortal) returning(ctx context.Context, a *pgsql.Analysis, rows write.Rows) error {
	p.started = true
	if a == nil || rows.Len() == 0 {
		p.finish()
		return nil
	}
	columns := rows.New
	if columns == nil {
		columns = rows.Old
	}
	given, err := inline(a.Uses[0], columns)
	if err != nil {
		return err
	}
	return p.open(ctx, a, given)
}

// open begins to read what the statement gives.
func (p *writePortal) open(ctx context.Context, a *pgsql.Analysis, given ...*duckdb.Relation) error {
	p.started = true
	out := p.session.output(duckdb.OutputRows, p.columns, p.formats)
	if p.copied != nil {
		out = *p.copied
	}
	frames, frame, err := p.session.start(ctx, a, p.params, out, given...)
	if err != nil {
		return err
	}
	p.rows = frames
	if frame == nil {
		p.finish()
		return nil
	}
	p.pending, p.pendingRows = frame.Data, frame.Rows
	return nil
}

// inline is rows in place of a relation; columns are all of its.
func inline(u *pgsql.Use, columns []arrow.Array) (*duckdb.Relation, error) {
	r := &duckdb.Relation{Name: u.Name}
	var fields []arrow.Field
	var used []arrow.Array
	for _, c := range u.Columns {
		a := columns[c.Index]
		r.Columns = append(r.Columns, duckdb.Column{Name: c.Name, EngineType: u.Relation.Columns[c.Index].Engine})
		fields = append(fields, arrow.Field{Name: c.Name, Type: a.DataType(), Nullable: true})
		used = append(used, a)
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), used, int64(columns[0].Len()))
	defer rec.Release()
	var err error
	r.Inline, err = duckdb.InlineRows(rec)
	return r, err
}

// writable makes the transaction the only one that changes a table, and gives it as it is
// then. word names the statement.
func (s *session) writable(ctx context.Context, rel *pgsql.Relation, word string) (*write.Table, error) {
	if rel.Temp {
		return s.writableTemp(rel)
	}
	if s.values.Value("transaction_read_only") == "on" {
		return nil, pgerr.New(codes.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", word)
	}
	if s.engine.deps.Own == nil {
		return nil, pgerr.New(codes.FeatureNotSupported, "%s is not supported", word)
	}
	id, _ := TableIDOf(rel.OID)
	if err := s.lockTable(ctx, id); err != nil {
		return nil, err
	}
	if err := s.engine.awaitRecovery(ctx, rel); err != nil {
		return nil, err
	}
	snap, release := s.now()
	defer release()
	t, err := snap.TableByFace(id)
	if err != nil {
		return nil, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", rel.Name)
	}
	if err := s.unchanged(snap, t); err != nil {
		return nil, err
	}
	if known := s.tx.writes[t.Face()]; known != nil {
		return known, nil
	}
	out := write.Of(t)
	s.tx.writes[t.Face()] = out
	return out, nil
}

// unchanged refuses a table that others have changed, or made, since the moment that a
// REPEATABLE READ transaction sees.
func (s *session) unchanged(now *catalog.Snapshot, t *catalog.Table) error {
	if !s.repeatable() || s.tx.pin == nil || s.tx.makes(t.Face()) {
		return nil
	}
	_, err := s.tx.pin.TableByFace(t.Face())
	if err == nil {
		seen, err := s.tx.pin.NewestSlice(t.ID)
		if err != nil {
			return err
		}
		newest, err := now.NewestSlice(t.ID)
		if err != nil || newest == seen {
			return err
		}
	}
	return pgerr.New(codes.SerializationFailure, "could not serialize access due to concurrent update").
		WithDetail("Table \"%s\" was changed after the transaction began.", t.Schema+"."+t.Name).
		WithHint("Run the transaction again.")
}

// lockTable waits for a table, as long as lock_timeout allows.
func (s *session) lockTable(ctx context.Context, id change.TableID) error {
	if s.tx.holder == nil {
		s.tx.holder, s.tx.changes = s.engine.deps.Own.Held().Holder(s.startup.PID), &write.Changes{}
		s.tx.writes = map[change.TableID]*write.Table{}
	}
	limited, stop := timeout.With(ctx, s.engine.deps.Clock, setting.Duration(s.values.Value("lock_timeout")), errLockTimeout)
	defer stop()
	return s.tx.holder.Lock(limited, id)
}

var errLockTimeout = pgerr.New(codes.LockNotAvailable, "canceling statement due to lock timeout")

// writeJob is one run of a statement that writes.
type writeJob struct {
	session  *session
	table    *write.Table
	params   []*string
	analysis *pgsql.Write
	written  []int // the columns that a change gives values
	merged   int   // how many rows a MERGE has changed
	later    bool  // foreign keys may yet change the rows
	// steps are the statements that it is one of, nil when it is alone.
	steps *steps
	// at says that it changes the row of a cursor.
	at *rowAt
}

// run reads the rows to write and changes them; it returns those changed. given take the
// places of the query's first relations.
func (j *writeJob) run(ctx context.Context, given ...*duckdb.Relation) (write.Rows, error) {
	j.session.tx.queried = true
	w := j.analysis
	if w.Word == "MERGE" {
		return write.Rows{}, j.merge(ctx)
	}
	j.written = w.Written
	rows, err := j.read(ctx, w.Rows, w.Old, given...)
	if err == nil && j.at != nil {
		rows, err = j.stillThere(ctx, rows, w.Old)
	}
	if err != nil || rows.Len() == 0 {
		return rows, err
	}
	if err := j.complete(ctx, rows); err != nil {
		return rows, err
	}
	if w.Old == nil {
		rows, err = j.insert(ctx, rows)
	} else {
		rows, err = j.change(ctx, rows, w.Old)
	}
	if err == nil && len(w.Relation.Foreign) > 0 {
		err = j.refers(ctx, rows)
	}
	return rows, err
}

// read runs a query of rows to write.
func (j *writeJob) read(ctx context.Context, a *pgsql.Analysis, old []int, given ...*duckdb.Relation) (write.Rows, error) {
	var g write.Gather
	err := j.records(ctx, a, g.Reset, func(rec arrow.RecordBatch) error {
		r, err := j.table.Read(rec, old)
		if err != nil {
			return err
		}
		return g.Add(r)
	}, given...)
	if err != nil {
		g.Reset()
		return write.Rows{}, err
	}
	return g.Rows()
}

// records runs a query of the statement; see session.records.
func (j *writeJob) records(ctx context.Context, a *pgsql.Analysis, again func(), f func(arrow.RecordBatch) error, given ...*duckdb.Relation) error {
	defer j.steps.asBefore()()
	given, err := j.steps.given(a, given...)
	if err != nil {
		return err
	}
	return j.session.records(ctx, a, j.params, again, f, given...)
}

// insert adds new rows.
func (j *writeJob) insert(ctx context.Context, rows write.Rows) (write.Rows, error) {
	if err := j.check(ctx, rows.New); err != nil {
		return rows, err
	}
	conflict := j.analysis.Conflict
	twice, taken, err := j.arbitrate(ctx, rows.New)
	if err != nil {
		return rows, err
	}
	either := write.Union(twice, taken)
	switch {
	case len(either) == 0:
		return rows, j.put(ctx, rows.New)
	case conflict.Update != nil && len(twice) > 0:
		return rows, errConflictTwice
	}
	defer rows.Release()
	left := write.Without(rows.Len(), either)
	fresh, err := rows.Take(ctx, left)
	if err != nil {
		return fresh, err
	}
	if conflict.Update == nil {
		return fresh, j.put(ctx, fresh.New)
	}
	inTheWay, err := rows.Take(ctx, taken)
	if err != nil {
		return fresh, err
	}
	defer inTheWay.Release()
	out, err := j.update(ctx, conflict, fresh, inTheWay)
	if err != nil {
		return out, err
	}
	return j.asGiven(ctx, out, left, taken, inTheWay.New)
}

var errConflictTwice = pgerr.New(codes.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
	WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")

// twice refuses new rows in whose way are such as another of the statements has written.
func (j *writeJob) twice(inTheWay write.Rows) error {
	c, t := j.session.changesOf(j.table), j.table
	if j.analysis.Conflict.Arbiter != pgsql.ArbiterKey {
		if c.Mark() > j.steps.marked(t) {
			return pgerr.New(codes.FeatureNotSupported, "ON CONFLICT DO UPDATE by another key than the primary key is not supported beside data-modifying statements in WITH")
		}
		return nil
	}
	left, err := c.Unchanged(t, j.steps.marked(t), t.NewKey(inTheWay.New))
	if err == nil && len(left) < inTheWay.Len() {
		err = errConflictTwice
	}
	return err
}

// update is ON CONFLICT DO UPDATE: it adds the rows that are fresh and changes those that
// are in the way of new ones; it returns them in this order. What becomes of the latter is
// asked first: subqueries there see the table as the statement found it.
func (j *writeJob) update(ctx context.Context, conflict *pgsql.Conflict, fresh, inTheWay write.Rows) (write.Rows, error) {
	var rows write.Rows
	if inTheWay.Len() > 0 {
		if j.steps != nil {
			if err := j.twice(inTheWay); err != nil {
				return fresh, err
			}
		}
		excluded, err := inline(conflict.Update.Uses[1], inTheWay.New)
		if err != nil {
			return fresh, err
		}
		if rows, err = j.read(ctx, conflict.Update, conflict.Old, nil, excluded); err != nil {
			return fresh, err
		}
	}
	if err := j.put(ctx, fresh.New); err != nil || rows.Len() == 0 {
		rows.Release()
		return fresh, err
	}
	j.written = conflict.Written
	if err := j.generate(ctx, rows, false); err != nil {
		rows.Release()
		return fresh, err
	}
	changed, err := j.change(ctx, rows, conflict.Old)
	if err != nil {
		return fresh, err
	}
	for _, c := range changed.Old {
		c.Release()
	}
	return write.Concat([]write.Rows{fresh, {New: changed.New}})
}

// taken are the places of new keys that come twice, and of those with which there is a row.
func (j *writeJob) taken(ctx context.Context, key []arrow.Array) (twice, taken []int32, err error) {
	kinds, err := j.session.changesOf(j.table).Keys(j.table, key)
	if err != nil || len(kinds.Open) == 0 {
		return kinds.Twice, kinds.Left, err
	}
	open, err := write.Rows{New: key}.Take(ctx, kinds.Open)
	if err != nil {
		return nil, nil, err
	}
	defer open.Release()
	found, err := j.find(ctx, open.New)
	if err != nil {
		return nil, nil, err
	}
	taken = kinds.Left
	for _, i := range found {
		taken = append(taken, kinds.Open[i])
	}
	return kinds.Twice, write.Union(taken, nil), nil
}

// find are the places of keys with which others have left a row.
func (j *writeJob) find(ctx context.Context, key []arrow.Array) ([]int32, error) {
	s, t := j.session, j.table
	use := &TableUse{Table: t.Face, Name: "_skippr_table"}
	var fields []arrow.Field
	for i, place := range t.Key() {
		f := t.Current.Fields[place]
		use.Columns = append(use.Columns, duckdb.Column{Name: f.Name, FieldID: f.ID, EngineType: schema.EngineType(f.Type)})
		use.Key = append(use.Key, f.Name)
		fields = append(fields, arrow.Field{Name: f.Name, Type: key[i].DataType()})
	}
	keys := array.NewRecordBatch(arrow.NewSchema(fields, nil), key, int64(key[0].Len()))
	defer keys.Release()
	use.Min, use.Max, use.Bounded = duckdb.KeyBounds(keys)
	var found []arrow.RecordBatch
	forget := func() {
		for _, rec := range found {
			rec.Release()
		}
		found = nil
	}
	defer func() { forget() }()
	err := RunPinned(false, s.now, func(snap *catalog.Snapshot) (*planned, error) {
		p := &planned{}
		r, _, err := s.engine.pinner.relation(ctx, snap, use, &p.holds)
		if err == nil {
			p.Plan, err = duckdb.FindPlan(&r, keys)
		}
		return p, err
	}, func(p *planned) error {
		defer p.holds.release()
		forget()
		return s.each(ctx, p.Plan, func(rec arrow.RecordBatch) error {
			rec.Retain()
			found = append(found, rec)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return t.Matches(key, found)
}

// change changes rows, or takes them away. It takes found over.
func (j *writeJob) change(ctx context.Context, found write.Rows, old []int) (write.Rows, error) {
	defer found.Release()
	c, t := j.session.changesOf(j.table), j.table
	first, err := t.FirstOfEach(found, old)
	if err != nil {
		return write.Rows{}, err
	}
	if j.steps != nil { // what another of the statements has changed stays as it is
		left, err := c.Unchanged(t, j.steps.marked(t), t.KeyOf(found.Old, old))
		if err != nil {
			return write.Rows{}, err
		}
		first = slices.DeleteFunc(first, func(i int32) bool { _, ok := slices.BinarySearch(left, i); return !ok })
	}
	rows, err := found.Take(ctx, first)
	if err != nil || rows.Len() == 0 {
		return rows, err
	}
	if err := j.become(ctx, rows, old); err != nil {
		return rows, err
	}
	return rows, j.referred(ctx, rows, old)
}

// become has rows be what they are to be, or go; others that refer to them stay.
func (j *writeJob) become(ctx context.Context, rows write.Rows, old []int) error {
	c, t := j.session.changesOf(j.table), j.table
	if rows.New == nil {
		return c.Delete(t, t.KeyOf(rows.Old, old))
	}
	if err := j.check(ctx, rows.New); err != nil {
		return err
	}
	moved, err := t.Moved(rows, old)
	if err != nil {
		return err
	}
	stay, err := rows.Take(ctx, write.Without(rows.Len(), moved))
	if err != nil {
		return err
	}
	defer stay.Release()
	if err := c.Put(t, change.Update, stay.New); err != nil {
		return err
	}
	if len(moved) > 0 {
		if err := j.move(ctx, rows, old, moved); err != nil {
			return err
		}
	}
	return j.recheck(ctx, rows.New)
}

// move changes rows that get another key, once all of them have left their old one.
func (j *writeJob) move(ctx context.Context, rows write.Rows, old []int, moved []int32) error {
	c, t := j.session.changesOf(j.table), j.table
	going, err := rows.Take(ctx, moved)
	if err != nil {
		return err
	}
	defer going.Release()
	if err := c.Leave(t, t.KeyOf(going.Old, old)); err != nil {
		return err
	}
	if t.Keyed() {
		twice, taken, err := j.taken(ctx, t.NewKey(going.New))
		if err != nil {
			return err
		}
		if either := write.Union(twice, taken); len(either) > 0 {
			return t.Duplicate(t.NewKey(going.New), int(either[0]), encode.Format(j.session.format()))
		}
	}
	return c.Put(t, change.Insert, going.New)
}

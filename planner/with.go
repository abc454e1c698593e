package planner

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/scroll"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/segment"
)

// write makes the changes, and begins to read what RETURNING asks for.
func (p *writePortal) write(ctx context.Context) error {
	w, s := p.statement, p.session
	tables, err := w.lock(ctx)
	if err != nil {
		return err
	}
	at, err := p.aim(tables[len(tables)-1])
	if err != nil {
		return err
	}
	w = p.statement
	run, end, err := s.beginSteps(w.analysis, p.params)
	if err != nil {
		return err
	}
	defer end()
	run.at, run.last = at, w.analysis
	mark := s.markChanges()
	if err := p.all(ctx, run, tables); err != nil {
		s.rollbackChanges(mark)
		return err
	}
	return nil
}

// all runs the statements one by one.
func (p *writePortal) all(ctx context.Context, run *steps, tables []*write.Table) error {
	list, s := p.statement.analysis.Steps(), p.session
	var jobs []*writeJob
	main := p.statement.analysis
	var last write.Rows
	for i, step := range list {
		if step.Relation == nil {
			continue
		}
		job, rows, err := run.run(ctx, step, tables[i], len(list) > 1)
		if err != nil {
			return err
		}
		jobs, last = append(jobs, job), rows
	}
	if err := s.checkForeign(ctx, false); err != nil {
		return err
	}
	s.tx.before = run.before
	for i, job := range jobs {
		if err := job.checkOption(ctx, run.rows[i].New); err != nil {
			return err
		}
	}
	if main.Relation != nil {
		job := jobs[len(jobs)-1]
		p.count = last.Len() + job.merged
		return p.returning(ctx, job.analysis.Returning, last)
	}
	s.tx.queried = true
	main, err := s.actWrite(ctx, main)
	if err != nil {
		return err
	}
	given, err := run.given(main.Returning)
	if err != nil {
		return err
	}
	return p.open(ctx, main.Returning, given...)
}

// lock has the statement be the only one that changes its tables, which may have been altered,
// or replaced by others of their names, while it waited.
func (w *writeStatement) lock(ctx context.Context) ([]*write.Table, error) {
	for {
		var tables []*write.Table
		list := w.analysis.Steps()
		for _, step := range list {
			if step.Relation == nil {
				tables = append(tables, nil)
				continue
			}
			if err := w.session.mayWrite(step, step.Word); err != nil {
				return nil, err
			}
			for _, act := range step.Acts() {
				if err := w.session.lockParents(ctx, act, step.Word); err != nil {
					return nil, err
				}
			}
			t, err := w.session.writable(ctx, step.Relation, w.word)
			if err != nil {
				return nil, err
			}
			tables = append(tables, t)
		}
		if err := w.refresh(); err != nil {
			return nil, err
		}
		if slices.EqualFunc(w.analysis.Steps(), list, func(a, b *pgsql.Write) bool {
			return a.Relation == b.Relation || a.Relation != nil && b.Relation != nil && sameTable(a.Relation, b.Relation)
		}) {
			return tables, nil
		}
	}
}

// before is what the transaction has changed until now in the relations that a statement reads where it
// does not see what it changes: subqueries of RETURNING and check options, and all that a statement
// with others in its WITH reads.
func (s *session) before(w *pgsql.Write) (map[uint32]*duckdb.Own, error) {
	var uses []*pgsql.Use
	for _, step := range w.Steps() {
		switch {
		case len(w.With) > 0:
			uses = append(uses, step.Reads()...)
			continue
		case w.Returning != nil:
			uses = append(uses, w.Returning.Uses[1:]...)
		}
		if w.CheckOption != nil {
			uses = append(uses, w.CheckOption.Rows.Uses[1:]...)
		}
	}
	if len(uses) == 0 {
		return nil, nil
	}
	snap, release := s.snapshotForNames()
	defer release()
	out := map[uint32]*duckdb.Own{}
	for _, u := range uses {
		own, err := s.own(snap, u.Relation)
		if err != nil {
			return nil, err
		}
		out[u.Relation.OID] = own
	}
	return out, nil
}

// steps is one run of a statement that writes, with the statements of its WITH before it. All of them
// read what there is before the first, and know of each other by RETURNING alone.
type steps struct {
	session *session
	params  []*string
	// at says that the last of them changes the row of a cursor.
	at   *rowAt
	last *pgsql.Write
	// before is what the transaction had changed in the relations that they read.
	before map[uint32]*duckdb.Own
	mark   changesMark // its changes of before
	// written are the rows that those which are done have written, all columns of their table.
	written map[*pgsql.Write][]arrow.Array
	rows    []write.Rows
}

// beginSteps takes the moment that all read. end must be called, unless there is an error.
func (s *session) beginSteps(w *pgsql.Write, params []*string) (_ *steps, end func(), err error) {
	out := &steps{session: s, params: params, written: map[*pgsql.Write][]arrow.Array{}, mark: s.markChanges()}
	before := s.tx.moment
	end = func() {
		for _, r := range out.rows {
			r.Release()
		}
		s.tx.before = nil
	}
	if len(w.With) > 0 && !s.repeatable() {
		snap, release := s.now()
		holds := s.engine.pinner.holdAll(snap)
		s.tx.moment = snap
		rows := end
		end = func() {
			rows()
			s.tx.moment = before
			holds.release()
			release()
		}
	}
	if out.before, err = s.before(w); err != nil {
		end()
	}
	return out, end, err
}

// run runs one of the statements; the rows that it has changed live until the end.
func (p *steps) run(ctx context.Context, step *pgsql.Write, t *write.Table, several bool) (job *writeJob, rows write.Rows, err error) {
	analysis, err := p.session.actWrite(ctx, step)
	if err != nil {
		return nil, rows, err
	}
	job = &writeJob{session: p.session, table: t, params: p.params, analysis: analysis}
	if step == p.last {
		job.at = p.at
	}
	if several {
		job.steps = p
	}
	rows, err = job.run(ctx)
	p.rows = append(p.rows, rows)
	if err != nil {
		return job, rows, err
	}
	columns := rows.New
	if columns == nil {
		columns = rows.Old
	}
	if rows.Len() == 0 {
		columns = t.None()
	}
	p.written[step] = columns
	return job, rows, nil
}

// given are relations that take the places of a query's: the first ones, and those that stand for
// rows which statements of WITH have written.
func (p *steps) given(a *pgsql.Analysis, first ...*duckdb.Relation) ([]*duckdb.Relation, error) {
	if p == nil {
		return first, nil
	}
	out := make([]*duckdb.Relation, len(a.Uses))
	copy(out, first)
	for i, u := range a.Uses {
		if u.From == nil {
			continue
		}
		r, err := inline(u, p.written[u.From])
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

// marked is how many changes of a table's there were before.
func (p *steps) marked(t *write.Table) int {
	if t.Temp {
		return p.mark.temp
	}
	return p.mark.kept
}

// asBefore has queries read what there was before the statements, until the end.
func (p *steps) asBefore() (end func()) {
	if p == nil {
		return func() {}
	}
	saved := p.session.tx.before
	p.session.tx.before = p.before
	return func() { p.session.tx.before = saved }
}

// clause is what a clause of a MERGE does: its rows.
type clause struct {
	*writeJob
	rows write.Rows
}

// merge runs MERGE. It reads all rows first; then rows go, change and come, in this order, so that new
// keys find those free which others leave. Foreign keys follow when all rows are as they are to be.
func (j *writeJob) merge(ctx context.Context) error {
	clauses, err := j.clauses(ctx)
	defer func() {
		for _, c := range clauses {
			c.rows.Release()
		}
	}()
	if err != nil {
		return err
	}
	for _, word := range []string{"DELETE", "UPDATE", "INSERT"} {
		for _, c := range clauses {
			switch {
			case c.analysis.Word != word:
			case word == "INSERT":
				c.rows, err = c.insert(ctx, c.rows)
			default:
				err = c.become(ctx, c.rows, c.analysis.Old)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, c := range clauses {
		if c.analysis.Old == nil {
			continue
		}
		if err := c.referred(ctx, c.rows, c.analysis.Old); err != nil {
			return err
		}
	}
	return nil
}

// clauses are those of a MERGE that have rows, as these are to be; all that update are one.
func (j *writeJob) clauses(ctx context.Context) (out []*clause, err error) {
	j.later = slices.ContainsFunc(j.analysis.Relation.Foreign, func(f *pgsql.Foreign) bool { return f.Parent == j.analysis.Relation })
	all, places, err := j.merging(ctx)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	var update *clause
	for at, act := range j.analysis.Actions {
		if len(places[at]) == 0 {
			continue
		}
		from := all
		switch act.Word {
		case "INSERT":
			from.Old = nil
		case "DELETE":
			from.New = nil
		}
		c := &clause{writeJob: &writeJob{session: j.session, table: j.table, params: j.params, analysis: act, written: act.Written, later: j.later}}
		if c.rows, err = from.Take(ctx, places[at]); err == nil {
			j.merged += c.rows.Len()
			err = c.complete(ctx, c.rows)
		}
		if err == nil { // which are checked when the statement ends
			err = c.refers(ctx, c.rows)
		}
		if act.Word == "UPDATE" && update != nil && err == nil {
			update.written = append(slices.Clip(update.written), c.written...)
			update.rows, err = write.Concat([]write.Rows{update.rows, c.rows})
		} else {
			out = append(out, c)
		}
		if err != nil {
			return out, err
		}
		if act.Word == "UPDATE" && update == nil {
			update = c
		}
	}
	return out, nil
}

// merging reads the rows of a MERGE; places are those of each clause.
func (j *writeJob) merging(ctx context.Context) (all write.Rows, places [][]int32, err error) {
	w := j.analysis
	var of, numbers []int64 // of each row its clause, from 1, and the number of the row that is there
	var g write.Gather
	again := func() {
		g.Reset()
		of, numbers = nil, nil
	}
	err = j.records(ctx, w.Rows, again, func(rec arrow.RecordBatch) error {
		last := int(rec.NumCols()) - 2
		clause, number := rec.Column(last).(*array.Int64), rec.Column(last+1).(*array.Int64)
		for i := range int(rec.NumRows()) {
			of = append(of, clause.Value(i))
			if number.IsValid(i) {
				numbers = append(numbers, number.Value(i))
			}
		}
		rows := array.NewRecordBatch(arrow.NewSchema(rec.Schema().Fields()[:last], nil), rec.Columns()[:last], rec.NumRows())
		defer rows.Release()
		r, err := j.table.Read(rows, w.Old)
		if err != nil {
			return err
		}
		return g.Add(r)
	})
	if err != nil {
		g.Reset()
		return all, nil, err
	}
	if all, err = g.Rows(); err != nil {
		return all, nil, err
	}
	places = make([][]int32, len(w.Actions))
	var there []int32
	for i, number := range of {
		places[number-1] = append(places[number-1], int32(i))
		if w.Actions[number-1].Old != nil {
			there = append(there, int32(i))
		}
	}
	if err = j.once(ctx, all, there, numbers); err != nil {
		all.Release()
	}
	return all, places, err
}

// once refuses rows that a MERGE would change twice: there are the places of those that it changes,
// numbers, of a table without a key, those that tell them apart.
func (j *writeJob) once(ctx context.Context, all write.Rows, there []int32, numbers []int64) error {
	all.New = nil
	rows, err := all.Take(ctx, there)
	if err != nil {
		return err
	}
	defer rows.Release()
	first, err := j.table.FirstOfEach(rows, j.analysis.Old)
	if err != nil {
		return err
	}
	slices.Sort(numbers)
	if len(first) < len(there) || len(slices.Compact(numbers)) < len(numbers) {
		return pgerr.New(codes.CardinalityViolation, "MERGE command cannot affect row a second time").
			WithHint("Ensure that not more than one source row matches any one target row.")
	}
	return nil
}

// declared is what a cursor was declared with, for UPDATE and DELETE of its current row.
type declared struct {
	tables []pgsql.KeyedTable
	// locks says that its rows are locked.
	locks bool
	// mark is what the session had changed by then, newest what there was by then of each table.
	mark   changesMark
	newest []segment.SliceRef
}

// newestSlices are the newest slices of tables, one each.
func newestSlices(snap *catalog.Snapshot, tables []pgsql.KeyedTable) (out []segment.SliceRef, err error) {
	for _, t := range tables {
		var newest segment.SliceRef
		id, _ := TableIDOf(t.Relation.OID)
		if known, err := snap.TableByFace(id); err == nil && !t.Relation.Temp {
			if newest, err = snap.NewestSlice(known.ID); err != nil {
				return nil, err
			}
		}
		out = append(out, newest)
	}
	return out, nil
}

// rowAt is the row of a cursor that a statement changes; since is how many changes of its table
// there were when the cursor was declared.
type rowAt struct{ since int }

// aim has an UPDATE or DELETE WHERE CURRENT OF a cursor be one of the row that the cursor is on;
// nil for any other statement.
func (p *writePortal) aim(t *write.Table) (*rowAt, error) {
	s, w := p.session, *p.statement
	name := pgsql.CurrentOf(w.parsed.Node)
	if name == "" {
		return nil, nil
	}
	c, err := s.findCursor(name)
	if err != nil {
		return nil, err
	}
	key, types, err := s.currentKey(name, c, w.analysis.Relation, t)
	if err != nil {
		return nil, err
	}
	own := len(w.analysis.Params)
	p.params = append(slices.Clip(p.params), key...)
	parsed := *w.parsed
	parsed.Row = &pgsql.CurrentRow{Known: true, Param: own + 1}
	w.parsed, p.statement = &parsed, &w
	at := &rowAt{c.mark.kept}
	if t.Temp {
		at.since = c.mark.temp
	}
	return at, w.analyze(append(slices.Clip(w.analysis.Params), types...))
}

// currentKey is the key of the row of a table on which a cursor is, as parameters and their types.
func (s *session) currentKey(name string, c *cursor, rel *pgsql.Relation, t *write.Table) (key []*string, types []uint32, err error) {
	if c.committed {
		return nil, nil, pgerr.New(codes.InvalidCursorState, "cursor \"%s\" is held from a previous transaction", name)
	}
	i := slices.IndexFunc(c.tables, func(k pgsql.KeyedTable) bool { return k.Relation.OID == rel.OID })
	switch {
	case i < 0:
		return nil, nil, c.notUpdatable(name, rel)
	case c.tables[i].Twice && c.locks:
		return nil, nil, pgerr.New(codes.InvalidCursorState, "cursor \"%s\" has multiple FOR UPDATE/SHARE references to table \"%s\"", name, rel.Name)
	case !c.position.OnRow():
		return nil, nil, pgerr.New(codes.InvalidCursorState, "cursor \"%s\" is not positioned on a row", name)
	}
	if err := s.same(c, i, rel, t); err != nil {
		return nil, nil, err
	}
	row := c.last
	if c.kept != nil {
		row = c.kept.Current()
	}
	if row == nil {
		return nil, nil, pgerr.New(codes.ObjectNotInPrerequisiteState, "the row on which cursor \"%s\" is positioned is not kept any more", name).
			WithHint("Declare it with SCROLL or NO SCROLL.")
	}
	for k, cell := range scroll.Binary(row, c.tables[i].First, len(rel.Key)) {
		column := rel.Columns[rel.Key[k]]
		if cell == nil {
			return nil, nil, pgerr.New(codes.FeatureNotSupported, "WHERE CURRENT OF is not supported with a key of type %s", column.Type.Name())
		}
		text, err := s.input().Decode(column.Type.OID, 1, cell)
		if err != nil {
			return nil, nil, err
		}
		key, types = append(key, &text), append(types, column.Type.OID)
	}
	return key, types, nil
}

// same refuses a table that is not, or may not be, what it was when the cursor was declared.
func (s *session) same(c *cursor, i int, rel *pgsql.Relation, t *write.Table) error {
	changed := !slices.Equal(c.tables[i].Relation.Key, rel.Key)
	if !rel.Temp {
		snap, release := s.now()
		defer release()
		newest, err := snap.NewestSlice(t.ID)
		if err != nil {
			return err
		}
		changed = changed || newest != c.newest[i]
	}
	if !changed {
		return nil
	}
	return pgerr.New(codes.SerializationFailure, "could not serialize access due to concurrent update").
		WithDetail("Table \"%s\" was changed after the cursor was declared.", t.Schema+"."+t.Name).
		WithHint("Run the transaction again. FOR UPDATE in the cursor's query keeps others from the table.")
}

// notUpdatable is the error of a cursor that has no current row of a table.
func (c *cursor) notUpdatable(name string, rel *pgsql.Relation) error {
	if c.bound != "" || c.portal.query.within(rel) {
		return pgerr.New(codes.FeatureNotSupported, "WHERE CURRENT OF cursor \"%s\" is not supported", name).
			WithHint("DECLARE it for a query that names table \"%s\" in its FROM.", rel.Name)
	}
	return pgsql.ErrNotUpdatable(name, rel.Name, c.locks)
}

// within says that the query may read a table within another in its FROM, a view or a query of
// WITH.
func (q *queryStatement) within(rel *pgsql.Relation) bool {
	return pgsql.ReadsWithin(q.sel, q.analysis) &&
		slices.ContainsFunc(q.analysis.Uses, func(u *pgsql.Use) bool { return u.Relation.OID == rel.OID })
}

// stillThere keeps of the row that a cursor is on what is that row still: another may have its
// key by now.
func (j *writeJob) stillThere(ctx context.Context, rows write.Rows, old []int) (write.Rows, error) {
	var key []arrow.Array
	if rows.Len() > 0 {
		key = j.table.KeyOf(rows.Old, old)
	}
	fate, err := j.session.changesOf(j.table).FateOf(j.table, j.at.since, key)
	switch {
	case err != nil:
		return rows, err
	case fate == write.Moved:
		return rows, pgerr.New(codes.FeatureNotSupported, "WHERE CURRENT OF is not supported after changes of keys").
			WithDetail("The transaction has changed keys of table \"%s\" since the cursor was declared.", j.table.Schema+"."+j.table.Name).
			WithHint("Name the row by its key.")
	case fate == write.Gone && rows.Len() > 0:
		defer rows.Release()
		return rows.Take(ctx, nil)
	}
	return rows, nil
}

package planner

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/write"
)

// write makes the changes, and begins to read what RETURNING asks for.
func (p *writePortal) write(ctx context.Context) error {
	w, s := p.statement, p.session
	tables, err := w.lock(ctx)
	if err != nil {
		return err
	}
	run, end, err := s.beginSteps(w.analysis, p.params)
	if err != nil {
		return err
	}
	defer end()
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
		p.count = last.Len()
		return p.returning(ctx, jobs[len(jobs)-1].analysis.Returning, last)
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
			if err := w.session.lockParents(ctx, step, step.Word); err != nil {
				return nil, err
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

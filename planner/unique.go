package planner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// arbitrate finds, for ON CONFLICT, new rows that come twice, and those in whose way others
// are: columns are all of the table's. Those of no arbiter are left to put.
func (j *writeJob) arbitrate(ctx context.Context, columns []arrow.Array) (twice, taken []int32, err error) {
	t, conflict := j.table, j.analysis.Conflict
	if conflict == nil {
		return nil, nil, nil
	}
	columns, release, err := j.indexed(ctx, columns)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	switch {
	case conflict.Arbiter == pgsql.ArbiterKey, conflict.Arbiter == pgsql.ArbiterAny && t.Keyed() && len(t.Uniques) == 0:
		return j.taken(ctx, t.NewKey(columns))
	case conflict.Arbiter >= 0:
		if taken, err = j.takenOf(ctx, conflict.Arbiter, columns, false); err == nil {
			twice, err = t.Repeated(ctx, columns, t.Uniques[conflict.Arbiter:conflict.Arbiter+1], false, nil)
		}
		return twice, taken, err
	}
	if t.Keyed() {
		again, there, err := j.taken(ctx, t.NewKey(columns))
		if err != nil {
			return nil, nil, err
		}
		same, err := t.SameKey(columns, there, again)
		if err != nil {
			return nil, nil, err
		}
		taken = write.Union(there, same)
	}
	for i := range t.Uniques {
		there, err := j.takenOf(ctx, i, columns, false)
		if err != nil {
			return nil, nil, err
		}
		taken = write.Union(taken, there)
	}
	twice, err = t.Repeated(ctx, columns, t.Uniques, t.Keyed(), taken)
	return twice, taken, err
}

// arbiter says whether ON CONFLICT means a unique constraint, or, of ArbiterKey, the key.
func (j *writeJob) arbiter(which int) bool {
	c := j.analysis.Conflict
	return c != nil && (c.Arbiter == which || c.Arbiter == pgsql.ArbiterAny)
}

// asGiven puts rows of ON CONFLICT DO UPDATE in the order of those that the statement gives,
// as clients expect of RETURNING: first come those at the places fresh, then those in whose
// way were the ones of given, at the places taken. They are told by what is in conflict; where
// they cannot be, the order stays.
func (j *writeJob) asGiven(ctx context.Context, rows write.Rows, fresh, taken []int32, given []arrow.Array) (write.Rows, error) {
	columns := j.analysis.Conflict.Columns
	if len(columns) == 0 || rows.Len() <= len(fresh) {
		return rows, nil
	}
	text := func(of []arrow.Array, row int) string {
		var b strings.Builder
		for _, c := range columns {
			fmt.Fprintf(&b, "%q,", of[c].ValueStr(row))
		}
		return b.String()
	}
	at := map[string]int32{}
	for i, place := range taken {
		at[text(given, i)] = place
	}
	places := slices.Clone(fresh)
	order := make([]int32, rows.Len())
	for i := range order {
		order[i] = int32(i) // rows of a statement are far fewer
		if i < len(fresh) {
			continue
		}
		place, ok := at[text(rows.New, i)]
		if !ok {
			return rows, nil
		}
		places = append(places, place)
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(places[x], places[y]) })
	defer rows.Release()
	return rows.Take(ctx, order)
}

// put adds new rows, which must be unique by all that is no arbiter.
func (j *writeJob) put(ctx context.Context, columns []arrow.Array) error {
	t := j.table
	if columns[0].Len() == 0 {
		return nil
	}
	if t.Keyed() && !j.arbiter(pgsql.ArbiterKey) {
		twice, taken, err := j.taken(ctx, t.NewKey(columns))
		if err != nil {
			return err
		}
		if either := write.Union(twice, taken); len(either) > 0 {
			return t.Duplicate(t.NewKey(columns), int(either[0]), encode.Format(j.session.format()))
		}
	}
	all, release, err := j.indexed(ctx, columns)
	if err != nil {
		return err
	}
	defer release()
	for i := range t.Uniques {
		if j.arbiter(i) {
			continue
		}
		if later, err := j.checkLater(ctx, i, all); later || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		twice, err := t.Repeated(ctx, all, t.Uniques[i:i+1], false, nil)
		if err != nil {
			return err
		}
		taken, err := j.takenOf(ctx, i, all, false)
		if err != nil {
			return err
		}
		if mutant.On(mutant.UniqueNotLooked) {
			taken = nil
		}
		if either := write.Union(twice, taken); len(either) > 0 {
			return j.duplicate(i, all, int(either[0]))
		}
	}
	return j.session.changesOf(t).Put(t, change.Insert, columns)
}

// checkLater has the values of a unique constraint in rows checked at the end of the transaction, if it is
// deferred.
func (j *writeJob) checkLater(ctx context.Context, unique int, columns []arrow.Array) (bool, error) {
	s, u := j.session, &j.analysis.Relation.Uniques[unique]
	if !s.tx.defers(constraintOf(u)) {
		return false, nil
	}
	values, err := j.table.Uniques[unique].Values(ctx, columns)
	if values != nil && err == nil {
		s.tx.checks = append(s.tx.checks, foreignCheck{unique: u, of: j.analysis.Relation, values: values, deferred: true})
	}
	return true, err
}

// checkUnique checks values of a unique constraint that was deferred: none may be in several rows.
func (s *session) checkUnique(ctx context.Context, of *pgsql.Relation, unique *pgsql.Unique, values []arrow.Array) error {
	snap, release := s.now()
	rel := s.relationNow(snap, of)
	id, _ := TableIDOf(of.OID)
	t, err := snap.TableByFace(id)
	release()
	if rel == nil || err != nil {
		return nil // it was dropped since
	}
	at := slices.IndexFunc(rel.Uniques, func(u pgsql.Unique) bool { return u.ID == unique.ID })
	if at < 0 {
		return nil
	}
	place := array.NewInt32Builder(memory.DefaultAllocator)
	defer place.Release()
	for i := range values[0].Len() {
		place.Append(int32(i))
	}
	places := place.NewArray()
	defer places.Release()
	taken, err := s.taken(ctx, rel, rel.Uniques[at], true, append(slices.Clip(values), places))
	if err == nil && len(taken) > 0 {
		table := write.Of(t)
		err = table.DuplicateKey(table.Uniques[at], values, int(taken[0]), encode.Format(s.format()))
	}
	return err
}

// indexed adds what unique indexes are of besides columns to those of rows: release it.
func (j *writeJob) indexed(ctx context.Context, columns []arrow.Array) ([]arrow.Array, func(), error) {
	s, n := j.session, len(columns)
	if len(j.table.Computed) == 0 || columns[0].Len() == 0 {
		return columns, func() {}, nil
	}
	snap, release := s.now()
	a, err := pgsql.AnalyzeIndexed(j.analysis.Relation, s.env(s.namesOf(snap)))
	release()
	if err != nil {
		return nil, nil, err
	}
	place := array.NewInt32Builder(memory.DefaultAllocator)
	defer place.Release()
	for i := range columns[0].Len() {
		place.Append(int32(i))
	}
	places := place.NewArray()
	defer places.Release()
	given, err := inline(a.Uses[0], append(slices.Clip(columns), places))
	if err != nil {
		return nil, nil, err
	}
	var found []arrow.RecordBatch
	forget := func() {
		for _, rec := range found {
			rec.Release()
		}
		found = nil
	}
	defer func() { forget() }()
	err = s.records(ctx, a, nil, forget, func(rec arrow.RecordBatch) error {
		rec.Retain()
		found = append(found, rec)
		return nil
	}, given)
	if err != nil {
		return nil, nil, err
	}
	all, err := j.table.Index(ctx, columns, found)
	if err != nil {
		return nil, nil, err
	}
	return all, func() {
		for _, c := range all[n:] {
			c.Release()
		}
	}, nil
}

// duplicate is the error of a row whose values of a unique index another one has.
func (j *writeJob) duplicate(unique int, columns []arrow.Array, row int) error {
	s, u := j.session, j.table.Uniques[unique]
	snap, release := s.now()
	defer release()
	if t, err := snap.TableByFace(j.table.Face); err == nil && len(j.analysis.Relation.Uniques[unique].Expressions) > 0 {
		x := t.Indexes[slices.IndexFunc(t.Indexes, func(x catalog.Index) bool { return x.Name == u.Name })]
		u.Shown = s.engine.deps.System.IndexColumns(s.systemEnv(snap, s.namesOf(snap)), t, x)
	}
	return j.table.DuplicateOf(u, columns, row, encode.Format(s.format()))
}

// takenOf are the places of rows whose values of a unique constraint a row of the table has,
// or, with twice, several of them.
func (j *writeJob) takenOf(ctx context.Context, unique int, columns []arrow.Array, twice bool) ([]int32, error) {
	asked := j.table.Uniques[unique].Asked(columns)
	if asked == nil {
		return nil, nil
	}
	defer asked[len(asked)-1].Release()
	return j.session.taken(ctx, j.analysis.Relation, j.analysis.Relation.Uniques[unique], twice, asked)
}

// taken are the places of values of a unique constraint, after which they come, which a row of a table
// has, or, with twice, several of them.
func (s *session) taken(ctx context.Context, rel *pgsql.Relation, u pgsql.Unique, twice bool, asked []arrow.Array) ([]int32, error) {
	snap, release := s.now()
	a, err := pgsql.AnalyzeTaken(rel, u, twice, s.env(s.namesOf(snap)))
	release()
	if err != nil {
		return nil, err
	}
	given, err := inline(a.Uses[0], asked)
	if err != nil {
		return nil, err
	}
	var out []int32
	err = s.records(ctx, a, nil, func() { out = nil }, func(rec arrow.RecordBatch) error {
		if c, ok := rec.Column(0).(*array.Int32); ok {
			out = append(out, c.Int32Values()...)
		}
		return nil
	}, given)
	return out, err
}

// recheck refuses rows that were changed to values which others have: columns are all of the
// table's.
func (j *writeJob) recheck(ctx context.Context, columns []arrow.Array) error {
	if !slices.ContainsFunc(j.table.Uniques, func(u write.Unique) bool { return u.Touched(j.written) }) {
		return nil
	}
	columns, release, err := j.indexed(ctx, columns)
	if err != nil {
		return err
	}
	defer release()
	for i, u := range j.table.Uniques {
		if !u.Touched(j.written) {
			continue
		}
		if later, err := j.checkLater(ctx, i, columns); later || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		taken, err := j.takenOf(ctx, i, columns, true)
		if err != nil {
			return err
		}
		if len(taken) > 0 && !mutant.On(mutant.UniqueNotRechecked) {
			return j.duplicate(i, columns, int(taken[0]))
		}
	}
	return nil
}

// check refuses rows that the constraints of the table exclude: columns are all of its.
func (j *writeJob) check(ctx context.Context, columns []arrow.Array) error {
	s, rel := j.session, j.analysis.Relation
	if err := j.table.CheckNulls(columns, encode.Format(s.format())); err != nil || len(rel.Checks) == 0 || columns[0].Len() == 0 {
		return err
	}
	snap, release := s.now()
	a, err := pgsql.AnalyzeChecks(rel, s.env(s.namesOf(snap)))
	release()
	if err != nil {
		return err
	}
	a.Uses[0].Target = true // it reads the rows that are written, which needs no right to read
	return j.refuse(ctx, a, columns, func(check, row int) error {
		return j.table.FailsCheck(rel.Checks[check].Name, columns, row, encode.Format(s.format()))
	})
}

// checkOption refuses rows that a view through which they are written excludes.
func (j *writeJob) checkOption(ctx context.Context, columns []arrow.Array) error {
	c := j.analysis.CheckOption
	if c == nil || columns == nil || columns[0].Len() == 0 {
		return nil
	}
	return j.refuse(ctx, c.Rows, columns, func(check, row int) error {
		return j.table.FailsCheckOption(c.Views[check], columns, row, encode.Format(j.session.format()))
	})
}

// refuse runs a query that says of rows, for each of some conditions, whether a row fails it, and
// perhaps which row that is: columns are all of the table's.
func (j *writeJob) refuse(ctx context.Context, a *pgsql.Analysis, columns []arrow.Array, fails func(check, row int) error) error {
	given, err := inline(a.Uses[0], columns)
	if err != nil {
		return err
	}
	least, check, row := columns[0].Len(), 0, 0
	err = j.session.records(ctx, a, j.params, func() { least, row = columns[0].Len(), 0 }, func(rec arrow.RecordBatch) error {
		numbers, _ := rec.Column(int(rec.NumCols()) - 1).(*array.Int64)
		for i := 0; i < int(rec.NumRows()); i, row = i+1, row+1 {
			at := row
			if numbers != nil {
				at = int(numbers.Value(i)) - 1
			}
			for c, column := range rec.Columns() {
				if fail, ok := column.(*array.Boolean); ok && fail.Value(i) && at < least {
					least, check = at, c
					break
				}
			}
		}
		return nil
	}, given)
	if err == nil && least < columns[0].Len() {
		err = fails(check, least)
	}
	return err
}

// complete gives rows the values that no query gives them: those of sequences, and those that are
// generated.
func (j *writeJob) complete(ctx context.Context, rows write.Rows) error {
	if err := j.fill(ctx, rows); err != nil || rows.New == nil {
		return err
	}
	return j.generate(ctx, rows, j.analysis.Old == nil)
}

// generate computes the generated columns of rows, all of new ones, else those that depend on what the
// statement gives values.
func (j *writeJob) generate(ctx context.Context, rows write.Rows, fresh bool) error {
	s, rel := j.session, j.analysis.Relation
	which := rel.GeneratedColumns()
	if len(which) == 0 {
		return nil
	}
	if !fresh {
		j.written = rel.Computed(j.written)
		which = slices.DeleteFunc(which, func(i int) bool { return !slices.Contains(j.written, i) })
	}
	if len(which) == 0 || rows.Len() == 0 {
		return nil
	}
	snap, release := s.now()
	a, err := pgsql.AnalyzeGenerated(rel, which, s.env(s.namesOf(snap)))
	release()
	if err != nil {
		return err
	}
	place := array.NewInt32Builder(memory.DefaultAllocator)
	defer place.Release()
	for i := range rows.Len() {
		place.Append(int32(i))
	}
	places := place.NewArray()
	defer places.Release()
	given, err := inline(a.Uses[0], append(slices.Clip(rows.New), places))
	if err != nil {
		return err
	}
	var g write.Gathered
	err = s.records(ctx, a, nil, g.Reset, func(rec arrow.RecordBatch) error { return g.Add(j.table, rec, which) }, given)
	if err != nil {
		g.Reset()
		return err
	}
	return g.Into(ctx, rows, which)
}

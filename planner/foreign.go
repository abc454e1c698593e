package planner

import (
	"context"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/allow"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/foreign"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// foreignCheck is what is left to check of a foreign key: values that new rows of the child have, or
// that rows of the parent had.
type foreignCheck struct {
	key      *pgsql.Foreign // nil for a check of unique
	values   []arrow.Array
	ofParent bool
	deferred bool // to the end of the transaction
	later    bool // the rows may not be there any more when it is checked
	// unique is a constraint of a table whose values are to be in one row each.
	unique *pgsql.Unique
	of     *pgsql.Relation
}

// constraint is one that may be deferred.
type constraint struct {
	id                   uint32
	deferrable, deferred bool
}

func foreignOf(f *pgsql.Foreign) constraint { return constraint{f.ID, f.Deferrable, f.Deferred} }

func constraintOf(u *pgsql.Unique) constraint { return constraint{u.ID, u.Deferrable, u.Deferred} }

// constraint is that which is checked.
func (c foreignCheck) constraint() constraint {
	if c.unique != nil {
		return constraintOf(c.unique)
	}
	return foreignOf(c.key)
}

// lockParents has the transaction be the only one that changes the tables which new values of foreign
// keys refer to, before the table itself: who changes those locks them in that order too.
func (s *session) lockParents(ctx context.Context, w *pgsql.Write, word string) error {
	if mutant.On(mutant.ForeignParentFree) {
		return nil
	}
	for _, f := range w.Relation.Foreign {
		if w.Old != nil && !writesAny(w.Relation.Computed(w.Written), f.Columns) || f.Parent == w.Relation {
			continue
		}
		if _, err := s.writable(ctx, f.Parent, word); err != nil {
			return err
		}
	}
	return nil
}

// sameTable says whether a table is the one that it was, with the same foreign keys.
func sameTable(a, b *pgsql.Relation) bool {
	return a.OID == b.OID && slices.EqualFunc(a.Foreign, b.Foreign, func(a, b *pgsql.Foreign) bool { return a.ID == b.ID })
}

func writesAny(written, columns []int) bool {
	return slices.ContainsFunc(columns, func(i int) bool { return slices.Contains(written, i) })
}

// replica says that the session writes rows that were checked elsewhere.
func (s *session) replica() bool {
	b := s.book()
	return s.values.Value("session_replication_role") == "replica" && b.Superuser(s.who(b).Session)
}

// unchecked says that the job's rows are written without a look at foreign keys.
func (j *writeJob) unchecked() bool { return j.analysis.Relation.Unchecked || j.session.replica() }

// refers has the foreign keys of new and changed rows checked at the end of the statement, or of the
// transaction.
func (j *writeJob) refers(ctx context.Context, rows write.Rows) error {
	if rows.New == nil || rows.Len() == 0 || j.unchecked() {
		return nil
	}
	for _, f := range j.analysis.Relation.Foreign {
		if j.analysis.Old != nil && !writesAny(j.written, f.Columns) {
			continue
		}
		values, mixed, err := write.Present(ctx, at(rows.New, f.Columns))
		switch {
		case err != nil:
			return err
		case mixed && f.Full:
			return foreign.Mixed(f)
		case values != nil:
			j.session.tx.checks = append(j.session.tx.checks, foreignCheck{key: f, values: values, deferred: j.session.tx.defers(foreignOf(f)), later: j.later})
		}
	}
	return nil
}

// at are the columns at places.
func at(columns []arrow.Array, places []int) []arrow.Array {
	out := make([]arrow.Array, len(places))
	for i, p := range places {
		out[i] = columns[p]
	}
	return out
}

// referred does what foreign keys say of rows that referred to values which the rows do not have any
// more. old are the columns that the rows have as they were.
func (j *writeJob) referred(ctx context.Context, rows write.Rows, old []int) error {
	if len(j.analysis.Relation.Referenced) == 0 || j.unchecked() {
		return nil
	}
	for _, f := range j.analysis.Relation.Referenced {
		if rows.New != nil && !writesAny(j.written, f.Refs) {
			continue
		}
		gone, err := j.table.Gone(ctx, rows, old, f.Refs)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		var was []int
		for _, c := range f.Refs {
			was = append(was, slices.Index(old, c))
		}
		left := write.Rows{Old: at(rows.Old, was)}
		if rows.New != nil {
			left.New = at(rows.New, f.Refs)
		}
		if left, err = left.Take(ctx, gone); err != nil {
			return err
		}
		if err := j.session.follow(ctx, f, left); err != nil {
			return err
		}
	}
	return nil
}

// follow does what a foreign key says of rows whose values of the parent went, or are others now.
func (s *session) follow(ctx context.Context, f *pgsql.Foreign, gone write.Rows) error {
	action := f.OnDelete
	if gone.New != nil {
		action = f.OnUpdate
	}
	if err := s.foreseen(f.Child); err != nil {
		return err
	}
	switch {
	case action == 'a':
		s.tx.checks = append(s.tx.checks, foreignCheck{key: f, values: gone.Old, ofParent: true, deferred: s.tx.defers(foreignOf(f))})
		return nil
	case action == 'r':
		found, err := s.findKey(ctx, foreign.Referenced(f), gone.Old)
		if found != nil {
			err = foreign.StillReferenced(f, found)
		}
		return err
	case action == 'c' && gone.New != nil:
		return s.actOn(ctx, f, foreign.Update(f), append(slices.Clip(gone.Old), gone.New...))
	case mutant.On(mutant.ForeignNotFollowed):
		return nil
	case action == 'c':
		return s.actOn(ctx, f, foreign.Delete(f), gone.Old)
	}
	columns, value := f.Columns, "NULL"
	if gone.New == nil {
		columns = f.Set
	}
	if action == 'd' {
		value = "DEFAULT"
	}
	return s.actOn(ctx, f, foreign.Set(f, columns, value), gone.Old)
}

// foreseen refuses what depends on all rows of a table when others have changed it since the moment that
// the transaction sees: they may have made rows that refer to one which goes. None can any more, since
// who makes such rows locks the parent.
func (s *session) foreseen(child *pgsql.Relation) error {
	if child.Temp {
		return nil
	}
	snap, release := s.now()
	defer release()
	id, _ := TableIDOf(child.OID)
	t, err := snap.TableByFace(id)
	if err != nil {
		return pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", child.Name)
	}
	return s.unchanged(snap, t)
}

// actOn runs a statement of a foreign key on the child, as its owner.
func (s *session) actOn(ctx context.Context, f *pgsql.Foreign, st foreign.Statement, values []arrow.Array) error {
	t, err := s.writable(ctx, f.Child, "UPDATE")
	if err != nil {
		return err
	}
	p, err := pgsql.Parse(st.SQL)
	if err != nil {
		return err
	}
	snap, release := s.now()
	w, err := pgsql.AnalyzeWrite(p, nil, st.Env(s.env(s.namesOf(snap))))
	release()
	if err == nil && (w.Old != nil && w.Written != nil) {
		err = s.lockParents(ctx, w, "UPDATE")
	}
	if err != nil {
		return err
	}
	given, err := givenKeys(w.Rows, st, values)
	if err != nil {
		return err
	}
	if w, err = s.actWrite(ctx, w); err != nil {
		return err
	}
	rows, err := (&writeJob{session: s, table: t, analysis: w}).run(ctx, given...)
	rows.Release()
	return err
}

// givenKeys are values in the places of an analysis that stand for the keys that a statement is
// about; all else is read as its owner may.
func givenKeys(a *pgsql.Analysis, st foreign.Statement, values []arrow.Array) ([]*duckdb.Relation, error) {
	out := make([]*duckdb.Relation, len(a.Uses))
	for i, u := range a.Uses {
		if !st.IsGiven(u) {
			u.Via = u.Relation.OID
			continue
		}
		r, err := inline(u, values)
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

// findKey runs a query of one key among values, nil when it finds none.
func (s *session) findKey(ctx context.Context, st foreign.Statement, values []arrow.Array) ([]string, error) {
	p, err := pgsql.Parse(st.SQL)
	if err != nil {
		return nil, err
	}
	snap, release := s.now()
	a, err := pgsql.Analyze(p, nil, st.Env(s.env(s.namesOf(snap))))
	release()
	if err != nil {
		return nil, err
	}
	given, err := givenKeys(a, st, values)
	if err != nil {
		return nil, err
	}
	var found []string
	err = s.records(ctx, a, nil, func() { found = nil }, func(rec arrow.RecordBatch) error {
		for i := 0; i < int(rec.NumCols()) && rec.NumRows() > 0; i++ {
			found = append(found, rec.Column(i).ValueStr(0))
		}
		return nil
	}, given...)
	return found, err
}

// checkForeign checks, at the end of a statement, or of the transaction, what there is left to check
// of foreign keys.
func (s *session) checkForeign(ctx context.Context, end bool) error {
	if len(s.tx.checks) == 0 || end && mutant.On(mutant.ForeignDeferredForgotten) {
		return nil
	}
	err := s.checkDue(ctx, end, func(c foreignCheck) bool { return end || !c.deferred })
	if err == nil {
		s.tx.checks = slices.DeleteFunc(slices.Clone(s.tx.checks), func(c foreignCheck) bool { return !c.deferred })
	}
	return err
}

// checkDue checks what is due. later says that rows may have changed since.
func (s *session) checkDue(ctx context.Context, later bool, due func(foreignCheck) bool) error {
	type side struct {
		key      uint32
		ofParent bool
	}
	values, changed := map[side][][]arrow.Array{}, map[side]bool{}
	var order []foreignCheck
	for _, c := range s.tx.checks {
		if !due(c) {
			continue
		}
		at := side{c.constraint().id, c.ofParent}
		if values[at] == nil {
			order = append(order, c)
		}
		values[at] = append(values[at], c.values)
		changed[at] = changed[at] || later || c.later
	}
	for _, c := range order {
		if c.unique != nil {
			all, err := write.Joined(values[side{c.unique.ID, false}])
			if err == nil {
				err = s.checkUnique(ctx, c.of, c.unique, all)
			}
			if err != nil {
				return err
			}
			continue
		}
		f := s.foreignNow(c.key)
		if f == nil {
			continue // it was dropped since
		}
		at := side{f.ID, c.ofParent}
		all, err := write.Joined(values[at])
		if err == nil {
			err = s.checkKeys(ctx, f, all, c.ofParent, changed[at])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// foreignNow is a foreign key under the names that there are now, nil if there is none any more.
func (s *session) foreignNow(f *pgsql.Foreign) *pgsql.Foreign {
	snap, release := s.now()
	defer release()
	if rel := s.relationNow(snap, f.Child); rel != nil {
		if i := slices.IndexFunc(rel.Foreign, func(o *pgsql.Foreign) bool { return o.ID == f.ID }); i >= 0 {
			return rel.Foreign[i]
		}
	}
	return nil
}

// relationNow is a table as it is now, nil if there is none any more.
func (s *session) relationNow(snap *catalog.Snapshot, of *pgsql.Relation) *pgsql.Relation {
	for _, rel := range s.namesOf(snap).tables {
		if rel.OID == of.OID {
			return rel
		}
	}
	return nil
}

// pending refuses to define what rows that are yet to be checked are of.
func (t *transaction) pending(tables []change.TableID, word string) error {
	for _, c := range t.checks {
		of := c.of
		switch {
		case c.ofParent:
			of = c.key.Parent
		case c.key != nil:
			of = c.key.Child
		}
		if slices.ContainsFunc(tables, func(id change.TableID) bool { return TableOID(id) == of.OID }) {
			return pgerr.New(codes.ObjectInUse, "cannot %s \"%s\" because it has pending trigger events", word, of.Name)
		}
	}
	return nil
}

// checkKeys checks values of a foreign key.
func (s *session) checkKeys(ctx context.Context, f *pgsql.Foreign, values []arrow.Array, ofParent, later bool) error {
	st := foreign.Missing(f)
	if ofParent || later {
		st = foreign.Left(f, ofParent)
	}
	found, err := s.findKey(ctx, st, values)
	switch {
	case err != nil || found == nil || !ofParent && mutant.On(mutant.ForeignNotLooked):
		return err
	case ofParent:
		return foreign.StillReferenced(f, found)
	}
	return foreign.Absent(f).WithDetail("%s", foreign.AbsentKey(f, found))
}

// defers says whether a constraint is checked at the end of the transaction.
func (t *transaction) defers(c constraint) bool {
	if !c.deferrable {
		return false
	}
	for _, id := range []uint32{c.id, 0} {
		if immediate, said := t.immediate[id]; said {
			return !immediate
		}
	}
	return c.deferred
}

// prepareConstraints prepares SET CONSTRAINTS.
func (s *session) prepareConstraints(n *pg.ConstraintsSetStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		done := &result{tag: "SET CONSTRAINTS"}
		named, err := s.namedForeign(n.Constraints)
		if err == nil && !s.tx.open {
			err = s.notice(sink, warning(codes.NoActiveSQLTransaction, "SET CONSTRAINTS can only be used in transaction blocks"))
			return done, err
		}
		if err != nil {
			return nil, err
		}
		next := map[uint32]bool{0: !n.Deferred}
		if len(n.Constraints) > 0 {
			next = maps.Clone(s.tx.immediate) // savepoints have the one of before
			if next == nil {
				next = map[uint32]bool{}
			}
		}
		for _, id := range named {
			next[id] = !n.Deferred
		}
		before := s.tx.immediate
		s.tx.immediate = next
		// What is checked now is checked again at the end: a savepoint may take back what it needs.
		if err := s.checkDue(ctx, true, func(c foreignCheck) bool { return !s.tx.defers(c.constraint()) }); err != nil {
			s.tx.immediate = before
			return nil, clientError(ctx, err)
		}
		if mutant.On(mutant.ForeignSettledAtOnce) {
			s.tx.checks = slices.DeleteFunc(s.tx.checks, func(c foreignCheck) bool { return !s.tx.defers(c.constraint()) })
		}
		return done, nil
	}}, nil
}

// namedForeign are the object ids of constraints, which can be deferred.
func (s *session) namedForeign(list []*pg.Node) (out []uint32, err error) {
	snap, release := s.now()
	defer release()
	names := s.namesOf(snap)
	path := s.env(names).SearchPath
	for _, n := range list {
		r := n.GetRangeVar()
		schemas, found := path, false
		if r.Schemaname != "" {
			schemas = []string{r.Schemaname}
		}
		for _, rel := range names.tables {
			if !slices.Contains(schemas, rel.Schema) {
				continue
			}
			for _, c := range constraintsNamed(rel, r.Relname) {
				if found = true; !c.deferrable {
					return nil, pgerr.New(codes.WrongObjectType, "constraint \"%s\" is not deferrable", r.Relname)
				}
				out = append(out, c.id)
			}
		}
		if !found {
			return nil, pgerr.New(codes.UndefinedObject, "constraint \"%s\" does not exist", r.Relname)
		}
	}
	return out, nil
}

// constraintsNamed are the constraints of a table that have a name.
func constraintsNamed(rel *pgsql.Relation, name string) (out []constraint) {
	for _, f := range rel.Foreign {
		if f.Name == name {
			out = append(out, foreignOf(f))
		}
	}
	for i := range rel.Uniques {
		if u := &rel.Uniques[i]; u.Constraint && u.Name == name {
			out = append(out, constraintOf(u))
		}
	}
	if len(rel.Key) > 0 && rel.KeyName == name || slices.ContainsFunc(rel.Checks, func(k pgsql.Check) bool { return k.Name == name }) {
		out = append(out, constraint{})
	}
	return out
}

// withReferring are the tables of a TRUNCATE, with those that refer to them: no row may refer to one
// that is gone.
func withReferring(rels []*pgsql.Relation, cascade bool) (all []*pgsql.Relation, notices []*pgerr.Error, err error) {
	same := func(a *pgsql.Relation) func(*pgsql.Relation) bool {
		return func(b *pgsql.Relation) bool { return a.OID == b.OID }
	}
	for i := 0; i < len(rels); i++ {
		for _, f := range rels[i].Referenced {
			switch {
			case slices.ContainsFunc(rels, same(f.Child)):
			case !cascade:
				return nil, nil, pgerr.New(codes.FeatureNotSupported, "cannot truncate a table referenced in a foreign key constraint").
					WithDetail("Table \"%s\" references \"%s\".", f.Child.Name, rels[i].Name).
					WithHint("Truncate table \"%s\" at the same time, or use TRUNCATE ... CASCADE.", f.Child.Name)
			default:
				rels = append(rels, f.Child)
				notices = append(notices, pgerr.Notice("truncate cascades to table \"%s\"", f.Child.Name))
			}
		}
	}
	return rels, notices, nil
}

// mayRefer refuses a foreign key to columns that the role may not refer to.
func (s *session) mayRefer(list []define.Reference) error {
	b := s.book()
	role := s.who(b).Current
	for _, r := range list {
		rel := relationOf(r.Table)
		var columns []int
		for _, id := range r.Fields {
			columns = append(columns, r.Table.Current.Index(id))
		}
		if err := allow.Columns(b, role, rel, right.References, columns); err != nil {
			return err
		}
	}
	return nil
}

package pgsql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// Write is an analysed INSERT, UPDATE, DELETE or MERGE, or a query with such in its WITH. Immutable.
type Write struct {
	// Word names the statement: INSERT, UPDATE, DELETE, MERGE, SELECT.
	Word string
	// With are the statements of its WITH that write, in order. All read what there is before the
	// first; what follows one may read the rows that it returns.
	With []*Write
	// Actions are what the clauses of a MERGE do, in order; one that does nothing has no Word. Rows then
	// has the columns of an UPDATE and two more: which of them a row is for, from 1, and, where the
	// table has no key, the number of the row that is there, null for none.
	Actions []*Write
	// Relation is what it writes, nil for a query, of which Returning has all.
	Relation *Relation
	// Rows gives the rows to write. Its columns are, in the engine types of the stored
	// values: of an UPDATE or DELETE first the Old columns as they are; of an INSERT or
	// UPDATE then all columns of the relation as they are to be.
	Rows *Analysis
	// Old are indexes into Relation.Columns: those by which the row is found, or all when
	// Returning asks a DELETE for them.
	Old []int
	// Written are the columns that it gives values, nil for a DELETE.
	Written []int
	// Conflict says what becomes of a new row whose key another row has; nil: an error.
	Conflict *Conflict
	// Returning gives the rows of RETURNING, nil without: its first use is of the rows
	// written, in place of the relation.
	Returning *Analysis
	// Params are the parameter types of all.
	Params []uint32
	// Effects are the calls of sequences' functions, whose marks stand in all of these.
	Effects []Effect
	// Locks are the tables whose rows it locks besides its own; their marks stand there too.
	Locks []RowLock
	// Fills are the columns whose values sequences give.
	Fills []Fill
	// Through are the views through which it writes Relation, the one that it names first; Via is the
	// oid of the last, 0 without, and ViewReads are columns of Relation that they name.
	Through   []Through
	Via       uint32
	ViewReads []int
	// CheckOption is what rows the views exclude, nil for none.
	CheckOption *CheckOption
}

// Named is the relation that the statement names.
func (w *Write) Named() *Relation {
	if len(w.Through) > 0 {
		return w.Through[0].View
	}
	return w.Relation
}

// Conflict is ON CONFLICT.
type Conflict struct {
	// Update gives what becomes of the rows in the way: Write.Old's columns, then all of
	// the relation. Its first use is of the table, its second of the new rows. Nil: DO
	// NOTHING.
	Update *Analysis
	Old    []int
	// Written are the columns that Update gives values.
	Written []int
	// Named says that ON CONFLICT names the key.
	Named bool
	// Arbiter is an index into the relation's Uniques, ArbiterKey or ArbiterAny, and Columns are
	// its columns.
	Arbiter int
	Columns []int
}

// AnalyzeWrite analyses an INSERT, UPDATE, DELETE or MERGE, or a query with such in its WITH. See Analyze.
func AnalyzeWrite(p *Parsed, params []uint32, env *Env) (*Write, error) {
	w := &writer{analyzer: &analyzer{env: env, sql: p.SQL, params: slices.Clone(params)}, row: p.Row}
	if err := w.statement(p.Node); err != nil {
		return nil, err
	}
	types, err := w.decidedParams()
	for _, step := range w.out.Steps() {
		step.Params = types
		for _, a := range step.queries() {
			a.Params = types
		}
	}
	return &w.out, err
}

// writer analyses one statement that writes.
type writer struct {
	*analyzer
	out Write
	// many says that the statement may write more than one row.
	many bool
	verb verb
	// row is what WHERE CURRENT OF stands for; nil where it is not supported.
	row *CurrentRow
	// view is what the statement names, nil for a table; named is the same as a relation whose
	// columns take values as the table's do: the table itself, but for a view.
	view, named *Relation
	// places are, of a view, the table's columns that its columns are, levels those of each view in
	// Through, and defaults what columns of the table have by default because of them.
	places   []int
	levels   [][]int
	defaults map[int]string
	// subqueries give several columns their values, fromSub these, by index: they are s1, s2, … after
	// subFirst others, of rows that are called subAlias.
	subqueries []multipleSource
	fromSub    map[int]bool
	subAlias   string
	subFirst   int
}

// target finds the relation that is written.
func (w *writer) target(n *pg.RangeVar) (*Relation, error) {
	if n.Catalogname != "" && n.Catalogname != w.env.Database {
		return nil, w.errAt(n.Location, unsupported("cross-database references are not implemented: \"%s.%s.%s\"",
			n.Catalogname, n.Schemaname, n.Relname))
	}
	rel, err := w.relation(n.Schemaname, n.Relname, n.Location)
	if err != nil {
		return nil, err
	}
	if rel.View != "" {
		w.view = rel
		w.out.Relation, err = w.throughView(rel, n)
		return w.out.Relation, err
	}
	w.out.Relation, w.named = rel, rel
	if rel.Materialized && rel.OID == w.env.Refreshes {
		return rel, nil
	}
	return rel, CheckWritable(rel)
}

// facing makes the face of what the statement names.
func (w *writer) facing(n *pg.RangeVar, o facing) (*face, error) {
	return w.faceOf(cmp.Or(w.view, w.out.Relation), n, o)
}

// CheckWritable refuses a relation that statements here cannot change.
func CheckWritable(rel *Relation) error {
	switch {
	case rel.System:
		return pgerr.New(codes.InsufficientPrivilege, "permission denied for table %s", rel.Name).
			WithDetail("It is a system catalog.")
	case rel.Sequence:
		return pgerr.New(codes.WrongObjectType, "cannot change sequence \"%s\"", rel.Name)
	case rel.View != "":
		return pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", rel.Name)
	case rel.Materialized:
		return pgerr.New(codes.WrongObjectType, "cannot change materialized view \"%s\"", rel.Name)
	case !rel.Own:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "table \"%s\" is filled by a pipeline", rel.Schema+"."+rel.Name).
			WithDetail("Its rows are those of the source, and change there.").
			WithHint("Change it at the source; rows and columns follow. Tables made with CREATE TABLE take INSERT, UPDATE, DELETE, COPY and ALTER TABLE.")
	}
	return nil
}

// finished makes the analysis of a printed statement and starts the next one's uses.
func (w *writer) finished(sql string) *Analysis {
	out := &Analysis{SQL: sql, Uses: w.uses, Views: w.views}
	for _, u := range w.uses {
		u.close()
	}
	w.uses, w.views = nil, nil
	return out
}

// identity are the columns by which a row of the relation is found, and those that rows of others
// refer to.
func identity(rel *Relation) []int {
	if len(rel.Key) == 0 {
		return allColumns(rel)
	}
	out := rel.Key
	for _, f := range rel.Referenced {
		for _, i := range f.Refs {
			if !slices.Contains(out, i) {
				out = append(slices.Clip(out), i)
			}
		}
	}
	return out
}

func allColumns(rel *Relation) []int {
	out := make([]int, len(rel.Columns))
	for i := range out {
		out[i] = i
	}
	return out
}

// update analyses UPDATE.
func (w *writer) update(n *pg.UpdateStmt) error {
	w.verb = verbUpdate
	rel, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	s := &scope{noAgg: "UPDATE"}
	with, c, err := w.writtenFrom(n.Relation, n.WithClause, n.FromClause, s)
	if err != nil {
		return err
	}
	set, err := w.assignments(n.TargetList, s)
	if err != nil {
		return err
	}
	w.out.Old, w.out.Written = identity(rel), slices.Sorted(maps.Keys(set))
	c.old, c.set = w.out.Old, set
	if c.where, err = w.where(n.Relation, n.WhereClause); err != nil {
		return err
	}
	sql, err := w.changedRows(c, s)
	if err != nil {
		return err
	}
	w.out.Rows = w.finished(with + sql)
	if err := w.checkOption(n.Relation); err != nil {
		return err
	}
	return w.returning(n.Relation, n.ReturningList, len(n.FromClause) > 0)
}

// writtenFrom opens the scope of UPDATE and DELETE: the table that is written, then the
// others.
func (w *writer) writtenFrom(n *pg.RangeVar, with *pg.WithClause, others []*pg.Node, s *scope) (
	withSQL string, c *changed, err error,
) {
	if withSQL, err = w.with(with, s); err != nil {
		return "", nil, err
	}
	f, err := w.facing(n, facing{filtered: w.verb.event != "INSERT"}) // whose conflicts are with any row
	if err != nil {
		return "", nil, err
	}
	if err := w.addItems(s, []*item{f.item}); err != nil {
		return "", nil, err
	}
	s.columns = append(s.columns, f.item.columns...)
	c = &changed{item: f.base, view: f.view, from: f.print}
	if len(others) > 0 {
		more, err := w.from(others, s)
		if err != nil {
			return "", nil, err
		}
		c.from = func() string { return f.print() + ", " + more }
		if len(w.out.Relation.Key) == 0 { // equal rows are told apart, so that each is changed once
			c.once = "DISTINCT ON (" + f.alias + "._skippr_row) "
			c.from = func() string {
				name := strings.TrimSuffix(f.print(), " AS "+f.alias)
				return "(SELECT *, row_number() OVER () AS _skippr_row FROM " + name + ") AS " + f.alias + ", " + more
			}
		}
	}
	return withSQL, c, nil
}

// assignments are the new values of columns, by index.
func (w *writer) assignments(list []*pg.Node, s *scope) (map[int]string, error) {
	set := map[int]string{}
	var named []int
	for _, n := range list {
		t := n.GetResTarget()
		i, err := w.columnOf(w.named, t)
		if err != nil {
			return nil, err
		}
		at, err := w.place(i)
		if err != nil {
			return nil, err
		}
		if _, twice := set[at]; twice {
			err := pgerr.New(codes.Syntax, "multiple assignments to same column \"%s\"", w.out.Relation.Columns[at].Name)
			if w.view != nil {
				return nil, err
			}
			return nil, w.errAt(t.Location, err)
		}
		named = append(named, i)
		val, sub, err := w.multiple(t)
		if err != nil {
			return nil, err
		}
		if sub != nil {
			if set[at], err = w.fromSubquery(sub, at, w.named.Columns[i], s); err != nil {
				return nil, err
			}
			continue
		}
		if set[at], err = w.assignedValue(val, at, w.named.Columns[i], s); err != nil {
			return nil, err
		}
	}
	w.gives(named)
	return set, nil
}

// assignedValue is the new value of a column, at a place of the table, in each row that a statement
// changes. c is the column as the statement names it.
func (w *writer) assignedValue(n *pg.Node, at int, c RelationColumn, s *scope) (string, error) {
	if (c.Identity == "a" || c.Generated != "") && n.GetSetToDefault() == nil {
		name, what := w.out.Relation.Columns[at].Name, "an identity column defined as GENERATED ALWAYS"
		if c.Generated != "" {
			what = "a generated column"
		}
		return "", pgerr.New(codeGeneratedAlways, "column \"%s\" can only be updated to DEFAULT", name).
			WithDetail("Column \"%s\" is %s.", name, what)
	}
	if w.out.Conflict == nil {
		sql, ok, err := "", false, error(nil)
		if n.GetSetToDefault() != nil {
			sql, ok, err = w.fillDefault(c)
		} else {
			sql, ok, err = w.fill(n, c)
		}
		if ok || err != nil {
			return sql, err
		}
	}
	before := len(w.effects)
	sql, err := w.value(n, c, s)
	if err == nil && n.GetSetToDefault() != nil && len(w.effects) > before {
		err = unsupported("a default that computes something of a sequence's value is not supported in UPDATE")
	}
	return sql, err
}

// changed are the rows that a statement changes.
type changed struct {
	item *item    // the table
	view *ViewUse // the view of it that the statement names, nil for none
	old  []int    // see Write.Old
	// set are the new values of columns, by index; nil for rows that go.
	set   map[int]string
	from  func() string
	where *pg.Node
	// once keeps one of the rows that a join makes of each; "": the key tells them apart.
	once string
}

// changedRows prints the query of the rows that a statement changes.
func (w *writer) changedRows(c *changed, s *scope) (string, error) {
	condition := ""
	if c.where != nil {
		s.noAgg = "WHERE"
		e, err := w.condition(c.where, s, "WHERE")
		if err != nil {
			return "", err
		}
		w.restrict(c.where, s)
		condition = " WHERE " + e.sql
	}
	if c.view == nil || len(c.view.Columns) > 0 { // who reads a view reads all that it names
		c.item.use.Reads = usedPlaces(c.item.use) // what follows is not the statement's own
	}
	c.item.use.Target = true
	var list []string
	for _, i := range c.old {
		list = append(list, c.item.columns[i].sql())
	}
	for i, column := range c.item.columns {
		switch sql, ok := c.set[i]; {
		case ok:
			list = append(list, sql)
		case c.set != nil:
			list = append(list, column.sql())
		}
	}
	from := c.from() + condition
	if len(w.subqueries) > 0 { // once for each row that is changed
		inner := []string{}
		for i := range list {
			if column := i - len(c.old); column < 0 || !w.fromSub[column] {
				inner = append(inner, fmt.Sprintf("%s AS b%d", list[i], i+1))
				list[i] = fmt.Sprintf("%s.b%d", w.subAlias, i+1)
			}
		}
		from = "(SELECT " + c.once + strings.Join(append(inner, w.subColumns()...), ", ") + " FROM " + from + ") AS " + w.subAlias
		c.once = ""
	}
	for i, sql := range list {
		list[i] = fmt.Sprintf("%s AS c%d", sql, i+1)
	}
	return "SELECT " + c.once + strings.Join(list, ", ") + " FROM " + from, nil
}

// delete analyses DELETE.
func (w *writer) delete(n *pg.DeleteStmt) error {
	w.verb = verbDelete
	rel, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	s := &scope{}
	with, c, err := w.writtenFrom(n.Relation, n.WithClause, n.UsingClause, s)
	if err != nil {
		return err
	}
	w.out.Old = identity(rel)
	if len(n.ReturningList) > 0 {
		w.out.Old = allColumns(rel)
	}
	c.old = w.out.Old
	if c.where, err = w.where(n.Relation, n.WhereClause); err != nil {
		return err
	}
	sql, err := w.changedRows(c, s)
	if err != nil {
		return err
	}
	w.out.Rows = w.finished(with + sql)
	return w.returning(n.Relation, n.ReturningList, len(n.UsingClause) > 0)
}

// returning analyses RETURNING over the rows written.
func (w *writer) returning(n *pg.RangeVar, list []*pg.Node, others bool) error {
	if len(list) == 0 {
		return nil
	}
	s := &scope{noAgg: "RETURNING"}
	f, err := w.facing(n, facing{})
	if err != nil {
		return err
	}
	if err := w.addItems(s, []*item{f.item}); err != nil {
		return err
	}
	s.columns = f.item.columns
	q := &query{head: "SELECT "}
	if q.targets, err = w.targets(list, s); err != nil {
		if others {
			return unsupported("RETURNING of columns of other tables is not supported")
		}
		return err
	}
	q.tail = " FROM " + f.print()
	out, err := w.finish(q)
	if err != nil {
		return err
	}
	w.uses, w.views = nil, nil
	w.out.Returning = out
	return nil
}

// FindRelation finds a relation that a statement names, along the search path when it has
// no schema.
func FindRelation(n *pg.RangeVar, env *Env) (*Relation, error) {
	a := &analyzer{env: env}
	return a.relation(n.Schemaname, n.Relname, -1)
}

// Computes says whether values of a type that the lake keeps as exact text can be written
// here: the type, or that of an array's elements, is one that expressions have.
func Computes(t Type) bool {
	oid := t.OID
	if elem := ElemOf(oid); elem != 0 {
		oid = elem
	}
	switch oid {
	case OIDNumeric, OIDInterval, OIDJSON, OIDJSONB, OIDTimetz:
		return true
	case oidMoney:
		return false
	case oidBox:
		return oid == t.OID // elements of arrays of boxes stand between semicolons
	}
	_, _, ranges := span.KindOf(oid)
	return ranges || checkedText(oid)
}

// ExpressionText prints an expression as SQL.
func ExpressionText(n *pg.Node) (string, error) {
	tree, err := pg.Parse("SELECT 1")
	if err != nil {
		return "", fmt.Errorf("print expression: %w", err)
	}
	tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val = n
	text, err := pg.Deparse(tree)
	if err != nil {
		return "", fmt.Errorf("print expression: %w", err)
	}
	return strings.TrimPrefix(text, "SELECT "), nil
}

package pgsql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// insert analyses INSERT.
func (w *writer) insert(n *pg.InsertStmt) error {
	w.verb = verbInsert
	rel, err := w.target(n.Relation)
	if err != nil {
		return err
	}
	given, err := w.insertColumns(w.named, n.Cols)
	if err != nil {
		return err
	}
	if n, given, err = listed(w.named, n, given); err != nil {
		return err
	}
	s := &scope{}
	with, err := w.with(n.WithClause, s)
	if err != nil {
		return err
	}
	body, values, given, err := w.source(w.named, n, given, s)
	if err != nil {
		return err
	}
	w.gives(given)
	if given, err = w.placesOf(given); err != nil {
		return err
	}
	w.out.Written = given
	if given, err = w.overriding(rel, n, given); err != nil {
		return err
	}
	w.many = body != "" && len(n.SelectStmt.GetSelectStmt().GetValuesLists()) != 1
	var list []string
	for i, c := range rel.Columns {
		sql := ""
		c.Default = cmp.Or(w.defaults[i], c.Default)
		if at := slices.Index(given, i); at >= 0 {
			sql = values[at] // of a column that is taken out, nothing
		} else if sql, err = w.omitted(c); err != nil {
			return err
		}
		list = append(list, sql)
	}
	sql := with + "SELECT " + strings.Join(list, ", ")
	if body != "" {
		sql += " FROM (" + body + ") AS i"
	}
	w.out.Rows = w.finished(sql)
	if n.OnConflictClause != nil {
		if err := w.conflict(rel, n); err != nil {
			return err
		}
	}
	if err := w.checkOption(n.Relation); err != nil {
		return err
	}
	return w.returning(n.Relation, n.ReturningList, false)
}

// insertColumns are the columns that an INSERT names, or the first ones.
func (w *writer) insertColumns(rel *Relation, names []*pg.Node) ([]int, error) {
	if len(names) == 0 {
		return allColumns(rel), nil
	}
	var out []int
	for _, n := range names {
		t := n.GetResTarget()
		i, err := w.columnOf(rel, t)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, i) {
			return nil, w.errAt(t.Location, pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", t.Name))
		}
		out = append(out, i)
	}
	return out, nil
}

// columnOf finds the column that a target names.
func (w *writer) columnOf(rel *Relation, t *pg.ResTarget) (int, error) {
	i := slices.IndexFunc(rel.Columns, func(c RelationColumn) bool { return c.Name == t.Name })
	switch {
	case i < 0:
		return 0, w.errAt(t.Location, pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", t.Name, rel.Name))
	case len(t.Indirection) > 0:
		return 0, w.errAt(t.Location, unsupported("assignment to elements of a column is not supported"))
	}
	return i, nil
}

// source analyses what is inserted: body has the rows as i, "" for one row of constants,
// and values are the stored values of the columns given, in order.
func (w *writer) source(rel *Relation, n *pg.InsertStmt, given []int, s *scope) (body string, values []string, columns []int, err error) {
	sel := n.SelectStmt.GetSelectStmt()
	switch {
	case sel == nil: // DEFAULT VALUES
		return "", nil, nil, nil
	case len(sel.ValuesLists) > 0 && sel.SortClause == nil && sel.LimitCount == nil && sel.LimitOffset == nil && sel.WithClause == nil:
		return w.valueRows(rel, sel, given, len(n.Cols) > 0, s)
	}
	drawn, restore := w.drawnTargets(sel)
	q, err := w.query(sel, s)
	restore()
	if err != nil {
		return "", nil, nil, err
	}
	if given, err = fits(rel, len(q.targets), given, len(n.Cols) > 0); err != nil {
		return "", nil, nil, err
	}
	it := &item{}
	for i := range q.targets {
		if q.targets[i].expr.undecided() {
			if q.targets[i].expr, err = w.assigned(q.targets[i].expr, rel.Columns[given[i]]); err != nil {
				return "", nil, nil, err
			}
		}
	}
	for i, c := range targetColumns(q.targets, "i", it) {
		if f, ok := drawn[i]; ok {
			if sql, ok, err := w.fill(f, rel.Columns[given[i]]); ok || err != nil {
				if err != nil {
					return "", nil, nil, err
				}
				values = append(values, sql)
				continue
			}
		}
		e := w.reference(c, q.targets[i].expr.loc, s)
		sql, err := w.stored(e, rel.Columns[given[i]])
		if err != nil {
			return "", nil, nil, err
		}
		values = append(values, sql)
	}
	return q.print(false), values, given, nil
}

// ofSets says that VALUES is one row with functions that return sets, which makes many of it.
func ofSets(sel *pg.SelectStmt) bool {
	calls := func(kind byte) bool {
		return contains(sel.ValuesLists[0], func(m protoreflect.ProtoMessage) bool {
			f, ok := m.(*pg.FuncCall)
			return ok && kindOf(f) == kind
		})
	}
	return len(sel.GetValuesLists()) == 1 && calls('s') && !calls('a') && !calls('w')
}

// listed is an INSERT of one row of VALUES with functions that return sets as one of the list of
// a SELECT, for the columns that it does not give their defaults; any other is itself.
func listed(rel *Relation, n *pg.InsertStmt, given []int) (out *pg.InsertStmt, columns []int, err error) {
	sel := n.SelectStmt.GetSelectStmt()
	if !ofSets(sel) {
		return n, given, nil
	}
	items := sel.ValuesLists[0].GetList().GetItems()
	if given, err = fits(rel, len(items), given, len(n.Cols) > 0); err != nil {
		return nil, nil, err
	}
	list := &pg.SelectStmt{SortClause: sel.SortClause, LimitCount: sel.LimitCount, LimitOffset: sel.LimitOffset, LimitOption: sel.LimitOption, WithClause: sel.WithClause}
	for i, item := range items {
		if item.GetSetToDefault() == nil {
			list.TargetList, columns = append(list.TargetList, pg.MakeResTargetNodeWithVal(item, -1)), append(columns, given[i])
		}
	}
	out = &pg.InsertStmt{
		Relation: n.Relation, Cols: n.Cols, OnConflictClause: n.OnConflictClause, ReturningList: n.ReturningList, WithClause: n.WithClause,
		Override: n.Override, SelectStmt: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: list}},
	}
	return out, columns, nil
}

// drawnTargets are the targets of a query that are nextval and nothing else, which are
// called once for each row that is inserted; a constant stands for them until restore.
func (w *writer) drawnTargets(sel *pg.SelectStmt) (drawn map[int]*pg.Node, restore func()) {
	drawn = map[int]*pg.Node{}
	restore = func() {
		for i, n := range drawn {
			sel.TargetList[i].GetResTarget().Val = n
		}
	}
	if sel.Op > pg.SetOperation_SETOP_NONE || len(sel.DistinctClause) > 0 || len(sel.FromClause) == 0 {
		return drawn, restore
	}
	for i, t := range sel.TargetList {
		n := t.GetResTarget().GetVal()
		if n.GetColumnRef() != nil && strings.Contains(n.String(), "a_star") {
			break // what follows has another place
		}
		if seq, err := w.drawn(n); seq == nil || err != nil {
			continue
		}
		drawn[i] = n
		t.GetResTarget().Val = castNode(pg.MakeAConstIntNode(0, -1), "int8")
	}
	return drawn, restore
}

// fits says which columns a row of so many values is for.
func fits(rel *Relation, values int, given []int, named bool) ([]int, error) {
	switch {
	case values > len(given):
		return nil, pgerr.New(codes.Syntax, "INSERT has more expressions than target columns")
	case values < len(given) && named:
		return nil, pgerr.New(codes.Syntax, "INSERT has more target columns than expressions")
	}
	return given[:values], nil
}

// valueRows analyses VALUES, in which each value has the type of its column, and may be
// DEFAULT.
func (w *writer) valueRows(rel *Relation, sel *pg.SelectStmt, given []int, named bool, s *scope) (body string, values []string, columns []int, err error) {
	defer func(around string) { s.noAgg = around }(s.noAgg)
	s.noAgg = inValues
	var b strings.Builder
	for r, n := range sel.ValuesLists {
		items := n.GetList().GetItems()
		if r > 0 && len(items) != len(columns) {
			return "", nil, nil, pgerr.New(codes.Syntax, "VALUES lists must all be the same length")
		}
		if columns, err = fits(rel, len(items), given, named); err != nil {
			return "", nil, nil, err
		}
		row := make([]string, len(items))
		for i, item := range items {
			if item.GetSetToDefault() != nil && onlyDefaults(sel, i) { // as a column that is not given
				row[i] = "NULL"
				continue
			}
			if row[i], err = w.value(item, rel.Columns[columns[i]], s); err != nil {
				return "", nil, nil, err
			}
		}
		if r > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strings.Join(row, ", ") + ")")
	}
	names := make([]string, len(columns))
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i+1)
		values = append(values, "i."+names[i])
	}
	return "SELECT * FROM (VALUES " + b.String() + ") AS v(" + strings.Join(names, ", ") + ")", values, columns, nil
}

// value is an expression, or DEFAULT, as the stored value of a column.
func (w *writer) value(n *pg.Node, c RelationColumn, s *scope) (string, error) {
	if n.GetSetToDefault() != nil {
		return w.defaultOf(c)
	}
	e, err := w.expr(n, s)
	if err != nil {
		return "", err
	}
	return w.stored(e, c)
}

// omitted is defaultOf for rows of which there may be many.
func (w *writer) omitted(c RelationColumn) (string, error) {
	if sql, ok, err := w.fillDefault(c); ok || err != nil {
		return sql, err
	}
	before := len(w.effects)
	sql, err := w.defaultOf(c)
	if err == nil && len(w.effects) > before && w.many {
		err = unsupported("a default that computes something of a sequence's value is not supported for several rows").
			WithDetail("It is that of column %s.", quote.Name(c.Name)).WithHint("Insert the rows one by one.")
	}
	return sql, err
}

// defaultOf is what a column has in a row that gives it no value.
func (w *writer) defaultOf(c RelationColumn) (string, error) {
	if c.Default == "" {
		return "CAST(NULL AS " + c.Engine + ")", nil
	}
	n, err := ParseExpression(c.Default)
	if err != nil {
		return "", fmt.Errorf("default of column %s: %w", quote.Name(c.Name), err)
	}
	e, err := w.expr(n, &scope{noAgg: "DEFAULT expressions"})
	if err != nil {
		return "", fmt.Errorf("default of column %s: %w", quote.Name(c.Name), err)
	}
	return w.stored(e, c)
}

// ParseExpression parses an expression that stands alone.
func ParseExpression(sql string) (*pg.Node, error) {
	p, err := Parse("SELECT " + sql)
	if err != nil {
		return nil, err
	}
	list := p.Node.GetSelectStmt().GetTargetList()
	if len(list) != 1 {
		return nil, pgerr.New(codes.Syntax, "not one expression: %s", sql)
	}
	return list[0].GetResTarget().GetVal(), nil
}

// constantOnly refuses queries and columns in an expression that depends on no row.
func constantOnly(n *pg.Node, what string) error {
	query, column := false, false
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch m.(type) {
		case *pg.SubLink:
			query = true
		case *pg.ColumnRef:
			column = true
		}
	})
	switch {
	case query:
		return unsupported("cannot use subquery in %s", what)
	case column:
		return unsupported("cannot use column reference in %s", what)
	}
	return nil
}

// CheckDefault refuses an expression that cannot be the default of a column.
func CheckDefault(sql string, c RelationColumn, env *Env) error {
	n, err := ParseExpression(sql)
	if err == nil {
		err = constantOnly(n, "DEFAULT expression")
	}
	if err != nil {
		return err
	}
	c.Default = sql
	w := &writer{analyzer: &analyzer{env: env, sql: sql}}
	_, err = w.defaultOf(c)
	if e, ok := pgerr.As(err); ok {
		return e.WithPosition(0) // it is one in sql, not in the statement
	}
	if err == nil && (len(w.uses) > 0 || len(w.seenParam) > 0) {
		err = unsupported("cannot use subquery in DEFAULT expression")
	}
	return err
}

// conflict analyses ON CONFLICT.
func (w *writer) conflict(rel *Relation, n *pg.InsertStmt) error {
	c := n.OnConflictClause
	arbiter, err := w.arbiter(rel, c)
	if err != nil {
		return err
	}
	w.out.Conflict = &Conflict{Arbiter: arbiter, Columns: arbiterColumns(rel, arbiter), Named: len(c.GetInfer().GetIndexElems()) > 0 || c.GetInfer().GetConname() != ""}
	if c.Action != pg.OnConflictAction_ONCONFLICT_UPDATE {
		return nil
	}
	s := &scope{noAgg: "ON CONFLICT DO UPDATE"}
	_, there, err := w.writtenFrom(n.Relation, nil, nil, s)
	if err != nil {
		return err
	}
	excluded := *rel
	excluded.Schema, excluded.Name, excluded.Key, excluded.WholeRow = "", "excluded", nil, false
	more, err := w.facing(&pg.RangeVar{Relname: "excluded", Location: -1}, facing{table: &excluded})
	if err != nil {
		return err
	}
	more.item.schema = ""
	if err := w.addItems(s, []*item{more.item}); err != nil {
		return err
	}
	// Columns of excluded are only named with it.
	var on []string
	of := Unique{Columns: rel.Key}
	if arbiter >= 0 {
		of = rel.Uniques[arbiter]
	}
	if on, err = w.equal(of, there.item, more.base); err != nil {
		return err
	}
	set, err := w.assignments(c.TargetList, s)
	if err != nil {
		return err
	}
	w.out.Conflict.Written = slices.Sorted(maps.Keys(set))
	table := there.from
	there.from = func() string { return table() + " JOIN " + more.print() + " ON " + strings.Join(on, " AND ") }
	old := identity(rel)
	there.old, there.set, there.where = old, set, c.WhereClause
	sql, err := w.changedRows(there, s)
	if err != nil {
		return err
	}
	w.out.Conflict.Update, w.out.Conflict.Old = w.finished(sql), old
	return nil
}

// AnalyzeCopy is the insert of rows whose values are given as text, in the form that
// parameters have: into columns of a relation, the first use standing for the rows. Each
// value is followed by a boolean that says that the column's default is meant. The other
// columns have their defaults. where is what rows must meet, nil for nothing; sql is the
// statement that it is part of.
func AnalyzeCopy(sql string, rel *Relation, columns []int, where *pg.Node, env *Env) (*Write, error) {
	w := &writer{analyzer: &analyzer{env: env, sql: sql}, out: Write{Relation: rel}, named: rel, verb: verbInsert}
	given := &Relation{Name: "copy"}
	for _, i := range columns {
		given.Columns = append(given.Columns, RelationColumn{Name: fmt.Sprintf("c%d", i+1), Type: plain(OIDText), Engine: "VARCHAR"},
			RelationColumn{Name: fmt.Sprintf("d%d", i+1), Type: plain(OIDBool), Engine: "BOOLEAN"})
	}
	src, err := w.relationSource(given, &pg.RangeVar{Relname: "copy", Location: -1})
	if err != nil {
		return nil, err
	}
	var list []string
	w.many = true
	for i, c := range rel.Columns {
		at := slices.Index(columns, i)
		sql := "CAST(NULL AS " + c.Engine + ")"
		var err error
		if at < 0 {
			sql, err = w.omitted(c)
		} else if !strings.Contains(c.Default, "nextval") { // which COPY's DEFAULT cannot mean
			sql, err = w.defaultOf(c)
		}
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			given, err := w.typed(src.columns[2*at].sql(), c.Type)
			if err != nil {
				return nil, err
			}
			value, err := w.stored(given, c)
			if err != nil {
				return nil, err
			}
			sql = fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", src.columns[2*at+1].sql(), sql, value)
		}
		list = append(list, fmt.Sprintf("%s AS c%d", sql, i+1))
	}
	rows := "SELECT " + strings.Join(list, ", ") + " FROM " + src.sql
	if where != nil {
		if rows, err = w.copyWhere(rows, where); err != nil {
			return nil, err
		}
	}
	w.out.Rows, w.out.Effects = w.finished(rows), w.effects
	w.out.Locks = w.locks
	return &w.out, nil
}

// copyWhere has a query of a relation's new rows give those that meet a condition.
func (w *writer) copyWhere(rows string, where *pg.Node) (string, error) {
	var query *pg.SubLink
	walk(where.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if n, ok := m.(*pg.SubLink); ok && query == nil {
			query = n
		}
	})
	if query != nil {
		return "", w.errAt(query.Location, unsupported("cannot use subquery in COPY FROM WHERE condition"))
	}
	alias, given, generated := w.alias("w"), len(w.uses), ""
	src, err := w.relationSource(w.out.Relation, &pg.RangeVar{Relname: w.out.Relation.Name, Location: -1})
	if err != nil {
		return "", err
	}
	w.uses = w.uses[:given] // the rows are not the relation's yet
	for i, c := range src.columns {
		c.sql = func() string { return fmt.Sprintf("%s.c%d", alias, i+1) }
	}
	s := &scope{noAgg: "COPY FROM WHERE conditions", columns: src.columns}
	if err := w.addItems(s, src.items); err != nil {
		return "", err
	}
	for _, r := range w.out.Relation.GeneratedColumns() {
		c := src.columns[r]
		sql := c.sql
		c.sql = func() string { generated = cmp.Or(generated, c.name); return sql() }
	}
	e, err := w.condition(where, s, "WHERE")
	if err != nil {
		return "", err
	}
	if generated != "" {
		return "", pgerr.New(codes.InvalidColumnReference, "generated columns are not supported in COPY FROM WHERE conditions").
			WithDetail("Column \"%s\" is a generated column.", generated)
	}
	return "SELECT * FROM (" + rows + ") AS " + alias + " WHERE " + e.sql, nil
}

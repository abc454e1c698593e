package pgsql

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// View is an analysed definition of a view. Immutable.
type View struct {
	// SQL is the query with all relations named with their schemas and all columns named.
	SQL     string
	Columns []OutputColumn
	// Reads are the relations that it names, each once; Uses are their columns that it names,
	// but for the system's.
	Reads []*Relation
	Uses  []ColumnUse
}

// recorded is what the definition of a view says by names that may mean something else
// later.
type recorded struct {
	relations map[*pg.RangeVar]*Relation
	stars     map[*pg.ResTarget][]*pg.Node
	// items are what the relations in FROM are, refs the columns that are named, natural those
	// that natural joins are on.
	items   map[*pg.RangeVar]*item
	refs    map[*pg.ColumnRef]*column
	natural map[*pg.JoinExpr][]string
	// marked and used are columns of items, by index: as they are found, and in the end.
	marked, used map[*item][]int
	// systemColumns are items of which more than columns is named.
	systemColumns map[*item]bool
}

func newRecorded() *recorded {
	return &recorded{
		relations: map[*pg.RangeVar]*Relation{}, stars: map[*pg.ResTarget][]*pg.Node{}, items: map[*pg.RangeVar]*item{},
		refs: map[*pg.ColumnRef]*column{}, natural: map[*pg.JoinExpr][]string{}, marked: map[*item][]int{}, used: map[*item][]int{},
		systemColumns: map[*item]bool{},
	}
}

// AnalyzeView analyses the query of a view. names take the places of its first columns',
// as far as there are some.
func AnalyzeView(sql string, sel *pg.SelectStmt, names []string, env *Env) (*View, error) {
	if Modifies(sel) {
		return nil, unsupported("views must not contain data-modifying statements in WITH")
	}
	rec := newRecorded()
	a := &analyzer{env: env, sql: sql, record: rec, fold: true}
	q, err := a.query(sel, nil)
	if err != nil {
		return nil, err
	}
	rec.close()
	done, err := a.finish(q)
	switch {
	case err != nil:
		return nil, err
	case len(a.seenParam) > 0:
		return nil, pgerr.New(codes.UndefinedParameter, "there is no parameter $1")
	case len(a.locks) > 0:
		return nil, unsupported("%s in views is not supported", a.locks[0].Word)
	case len(a.effects) > 0:
		return nil, unsupported("functions that act on the server are not supported in views")
	}
	out := &View{Columns: done.Columns, Uses: rec.uses()}
	for i := range out.Columns {
		if i < len(names) {
			out.Columns[i].Name = names[i]
		}
		name := out.Columns[i].Name
		if slices.ContainsFunc(out.Columns[:i], func(c OutputColumn) bool { return c.Name == name }) {
			return nil, pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
	}
	for _, rel := range rec.relations {
		if !slices.ContainsFunc(out.Reads, func(r *Relation) bool { return r.Schema == rel.Schema && r.Name == rel.Name }) {
			out.Reads = append(out.Reads, rel)
		}
	}
	rec.pin(sel, byPlace, func(_ *item, name string) string { return name })
	rec.settle(sel)
	out.SQL, err = deparse(nameTargets(sel, out.Columns))
	return out, err
}

// settle puts the names found into a query.
func (r *recorded) settle(sel *pg.SelectStmt) {
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch n := m.(type) {
		case *pg.RangeVar:
			if rel := r.relations[n]; rel != nil {
				n.Schemaname, n.Catalogname = rel.Schema, ""
			}
		case *pg.SelectStmt:
			var list []*pg.Node
			for _, t := range n.TargetList {
				if columns, ok := r.stars[t.GetResTarget()]; ok {
					list = append(list, columns...)
					continue
				}
				list = append(list, t)
			}
			n.TargetList = list
		case *pg.JoinExpr:
			r.settleJoin(n)
		}
	})
}

// settleJoin has a natural join say what it is on.
func (r *recorded) settleJoin(n *pg.JoinExpr) {
	names, ok := r.natural[n]
	if !ok {
		return
	}
	n.IsNatural = false
	for _, name := range names {
		n.UsingClause = append(n.UsingClause, &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: name}}})
	}
	if len(names) == 0 && n.Jointype != pg.JoinType_JOIN_INNER {
		n.Quals = &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: true}}}}}
	}
}

// nameTargets has a query say the names of its columns. One whose clauses may mean a column
// by the name that it had, or would by its new one, is put into another.
func nameTargets(sel *pg.SelectStmt, columns []OutputColumn) *pg.SelectStmt {
	var renamed []*pg.ResTarget
	var alias []*pg.Node
	if len(sel.TargetList) != len(columns) { // a set operation, or VALUES
		if slices.EqualFunc(ownNames(sel, len(columns)), columns, func(n string, c OutputColumn) bool { return n == c.Name }) {
			return sel
		}
		for _, c := range columns {
			alias = append(alias, &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: c.Name}}})
		}
		return wrapped(sel, alias, columns)
	}
	for i, t := range sel.TargetList {
		rt := t.GetResTarget()
		name := rt.Name
		if name == "" {
			name = outputName(rt.Val)
		}
		if name != columns[i].Name {
			renamed = append(renamed, rt)
		}
		alias = append(alias, &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: columns[i].Name}}})
	}
	if len(renamed) == 0 || len(sel.SortClause)+len(sel.GroupClause)+len(sel.DistinctClause) == 0 {
		for i, t := range sel.TargetList {
			if slices.Contains(renamed, t.GetResTarget()) {
				t.GetResTarget().Name = columns[i].Name
			}
		}
		return sel
	}
	return wrapped(sel, alias, columns)
}

// ownNames are the names that the columns of a set operation or of VALUES have by themselves.
func ownNames(sel *pg.SelectStmt, n int) []string {
	for sel.Larg != nil {
		sel = sel.Larg
	}
	var names []string
	for i := range n {
		switch {
		case len(sel.ValuesLists) > 0:
			names = append(names, fmt.Sprintf("column%d", i+1))
		case i < len(sel.TargetList):
			rt := sel.TargetList[i].GetResTarget()
			names = append(names, cmp.Or(rt.Name, outputName(rt.Val)))
		}
	}
	return names
}

// wrapped is a query of a query, with other names for its columns.
func wrapped(sel *pg.SelectStmt, alias []*pg.Node, columns []OutputColumn) *pg.SelectStmt {
	out := &pg.SelectStmt{
		FromClause: []*pg.Node{{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: sel}}, Alias: &pg.Alias{Aliasname: "q", Colnames: alias},
		}}}},
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}
	for _, c := range columns {
		out.TargetList = append(out.TargetList, columnTarget([]string{"q", c.Name}))
	}
	return out
}

// star notes what a * stands for.
func (r *recorded) star(t *pg.ResTarget, columns []target) {
	var list []*pg.Node
	for _, c := range columns {
		ref := []string{c.name}
		if col := c.expr.col; col != nil && col.item != nil && col.item.name != "" && !col.merged {
			ref = []string{col.item.name, c.name}
			if col.item.schema != "" {
				ref = slices.Insert(ref, 0, col.item.schema)
			}
		}
		list = append(list, columnTarget(ref))
	}
	r.stars[t] = list
}

func columnTarget(names []string) *pg.Node {
	ref := &pg.ColumnRef{Location: -1}
	for _, n := range names {
		ref.Fields = append(ref.Fields, &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: n}}})
	}
	val := &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: ref}}
	return &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: val, Location: -1}}}
}

// deparse prints a query.
func deparse(sel *pg.SelectStmt) (string, error) {
	tree, err := pg.Parse("SELECT 1") // for the tree's version
	if err != nil {
		return "", fmt.Errorf("print query: %w", err)
	}
	tree.Stmts[0].Stmt = &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: sel}}
	sql, err := pg.Deparse(tree)
	if err != nil {
		return "", fmt.Errorf("print query: %w", err)
	}
	return sql, nil
}

// viewSource is a view in FROM: its query.
func (a *analyzer) viewSource(rel *Relation, n *pg.RangeVar) (*source, error) {
	u := &ViewUse{Relation: rel, Via: a.via}
	q, err := a.viewQuery(u)
	if err != nil {
		return nil, a.errAt(n.Location, viewError(rel, err))
	}
	it := &item{name: n.Relname, schema: rel.Schema, view: rel}
	if n.Alias != nil {
		it.name, it.schema = n.Alias.Aliasname, ""
	}
	alias := a.alias("v")
	it.columns = targetColumns(q.targets, alias, it)
	for i, c := range it.columns {
		c.name, c.tableOID, c.attNum = rel.Columns[i].Name, rel.OID, rel.Columns[i].AttNum
		sql := c.sql
		c.sql = func() string {
			if !slices.Contains(u.Columns, i) {
				u.Columns = append(u.Columns, i)
			}
			return sql()
		}
	}
	if a.record != nil {
		a.record.items[n] = it
		a.record.markViewColumns(it)
	}
	if err := a.renameColumns(it, n.Alias, n.Location); err != nil {
		return nil, err
	}
	return &source{sql: "(" + q.print(false) + ") AS " + alias, items: []*item{it}, columns: it.columns}, nil
}

func (a *analyzer) viewQuery(u *ViewUse) (*query, error) {
	rel := u.Relation
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	p, err := Parse(rel.View)
	if err != nil {
		return nil, err
	}
	a.views = append(a.views, u)
	sql, record, via, fold := a.sql, a.record, a.via, a.fold
	a.sql, a.record, a.via, a.fold = rel.View, nil, rel.OID, false
	defer func() { a.sql, a.record, a.via, a.fold = sql, record, via, fold }()
	q, err := a.query(p.Node.GetSelectStmt(), nil)
	if err == nil {
		err = a.settle(q)
	}
	if err == nil && len(q.targets) != len(rel.Columns) {
		err = fmt.Errorf("%d columns in place of %d", len(q.targets), len(rel.Columns))
	}
	return q, err
}

// viewError is the error of a view whose query is one no more, since what it reads has
// changed at its source or was dropped there.
func viewError(rel *Relation, err error) error {
	var e *pgerr.Error
	if !errors.As(err, &e) || e.Code == codes.StatementTooComplex {
		return err
	}
	name := quote.NameIfNeeded(rel.Schema) + "." + quote.NameIfNeeded(rel.Name)
	return pgerr.New(e.Code, "view \"%s\": %s", rel.Schema+"."+rel.Name, e.Message).
		WithHint("What it reads has changed since it was made. DROP VIEW %s; and make it anew.", name)
}

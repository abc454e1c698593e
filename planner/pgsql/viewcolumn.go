package pgsql

import (
	"maps"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ColumnUse are the columns of a relation that a view names itself, by index, in order.
type ColumnUse struct {
	Relation *Relation
	Columns  []int
}

// ViewColumns are the relations that the query of a view names, each once, with the columns
// that it uses of them. Those of views that it reads count as theirs.
func ViewColumns(sql string, env *Env) ([]ColumnUse, error) {
	_, rec, err := recordView(sql, env)
	if err != nil {
		return nil, err
	}
	return rec.uses(), nil
}

// uses are the columns that are used, by relation.
func (r *recorded) uses() []ColumnUse {
	var out []ColumnUse
	for it, used := range r.used {
		at := slices.IndexFunc(out, func(u ColumnUse) bool { return sameRelation(u.Relation, it.relation()) })
		if at < 0 {
			out = append(out, ColumnUse{Relation: it.relation()})
			at = len(out) - 1
		}
		out[at].Columns = append(out[at].Columns, used...)
	}
	for i := range out {
		slices.Sort(out[i].Columns)
		out[i].Columns = slices.Compact(out[i].Columns)
	}
	return out
}

func sameRelation(a, b *Relation) bool { return a.Schema == b.Schema && a.Name == b.Name }

// recordView analyses the query of a view as it is kept.
func recordView(sql string, env *Env) (*pg.SelectStmt, *recorded, error) {
	p, err := Parse(sql)
	if err != nil {
		return nil, nil, err
	}
	sel := p.Node.GetSelectStmt()
	if sel == nil {
		return nil, nil, unsupported("only SELECT is supported in a view")
	}
	rec := newRecorded()
	a := &analyzer{env: env, sql: sql, record: rec}
	if _, err := a.query(sel, nil); err != nil {
		return nil, nil, err
	}
	rec.close()
	return sel, rec, nil
}

// relation is that whose columns an item has, nil for a query's.
func (it *item) relation() *Relation {
	if it.use != nil {
		return it.use.Relation
	}
	return it.view
}

// close notes which columns are used: before keys are, by which rows are found.
func (r *recorded) close() {
	for _, it := range r.items {
		list := r.marked[it]
		if it.use != nil {
			list = slices.Collect(maps.Keys(it.use.names))
		}
		list = slices.Clone(list)
		slices.Sort(list)
		r.used[it] = slices.Compact(list)
	}
}

// markViewColumns has the columns of a view in FROM be noted when they are used.
func (r *recorded) markViewColumns(it *item) {
	for i, c := range it.columns {
		sql := c.sql
		c.sql = func() string {
			r.marked[it] = append(r.marked[it], i)
			return sql()
		}
	}
}

// RenameViewColumn is a view's query after a column of a relation that it reads has got another
// name; env is as before. The columns of the view keep their names.
func RenameViewColumn(sql string, env *Env, of RelationName, from, to string) (string, error) {
	sel, rec, err := recordView(sql, env)
	if err != nil {
		return "", err
	}
	is := func(it *item) bool {
		r := it.relation()
		return r != nil && r.Schema == of.Schema && r.Name == of.Name
	}
	if namedOtherwise(sel, from) {
		rec.pin(sel, func(_ *pg.RangeVar, it *item) bool { return is(it) }, func(it *item, name string) string {
			if is(it) && name == from {
				return to
			}
			return name
		})
		return deparse(sel)
	}
	names := unnamedTargets(sel)
	for ref, c := range rec.refs {
		if c.item == nil || !is(c.item) || c.name != from || columnName(c) != from {
			continue
		}
		ref.Fields[len(ref.Fields)-1].GetString_().Sval = to
	}
	for t, name := range names {
		if outputName(t.Val) != name {
			t.Name = name
		}
	}
	return deparse(sel)
}

// PinViewColumns is a view's query with the columns that it calls by their places in a relation
// (FROM t AS x(a, b)) called by their names; the same text if there are none.
func PinViewColumns(sql string, env *Env) (string, error) {
	sel, rec, err := recordView(sql, env)
	if err != nil {
		return "", err
	}
	if !rec.pin(sel, byPlace, func(_ *item, name string) string { return name }) {
		return sql, nil
	}
	return deparse(sel)
}

// byPlace says that a relation in FROM has names for its columns.
func byPlace(n *pg.RangeVar, _ *item) bool { return len(n.GetAlias().GetColnames()) > 0 }

// columnName is the name that a column has in its relation.
func columnName(c *column) string {
	for _, rc := range c.item.relation().Columns {
		if rc.AttNum == c.attNum {
			return rc.Name
		}
	}
	return ""
}

// namedOtherwise says whether a name may stand for a column where there is no reference to one:
// what a join is on, in two tables, of which one gets another name; a field of a row.
func namedOtherwise(sel *pg.SelectStmt, name string) (found bool) {
	has := func(list []*pg.Node) bool {
		return slices.ContainsFunc(list, func(n *pg.Node) bool { return n.GetString_().GetSval() == name })
	}
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch n := m.(type) {
		case *pg.JoinExpr:
			found = found || n.IsNatural || has(n.UsingClause)
		case *pg.A_Indirection:
			found = found || has(n.Indirection)
		}
	})
	return found
}

// unnamedTargets are the columns of all queries that have no name but their expression's.
func unnamedTargets(sel *pg.SelectStmt) map[*pg.ResTarget]string {
	out := map[*pg.ResTarget]string{}
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		q, ok := m.(*pg.SelectStmt)
		if !ok {
			return
		}
		for _, t := range q.TargetList {
			if rt := t.GetResTarget(); rt != nil && rt.Name == "" && !isStar(rt.Val) {
				out[rt] = outputName(rt.Val)
			}
		}
	})
	return out
}

func isStar(n *pg.Node) bool {
	f := n.GetColumnRef().GetFields()
	return len(f) > 0 && f[len(f)-1].GetAStar() != nil
}

// pin puts queries of the columns that are used in place of relations in FROM, under the names
// that the columns have there; name says what a column of a relation is called by now. It says
// whether there were any.
func (r *recorded) pin(sel *pg.SelectStmt, which func(*pg.RangeVar, *item) bool, name func(*item, string) string) bool {
	pinned := map[*item]bool{}
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		n, ok := m.(*pg.Node)
		if !ok {
			return
		}
		rv := n.GetRangeVar()
		it := r.items[rv]
		if it == nil || !which(rv, it) || r.systemColumns[it] {
			return
		}
		pinned[it] = true
		n.Node = &pg.Node_RangeSubselect{RangeSubselect: r.columnsOf(rv, it, name)}
	})
	for ref, c := range r.refs {
		if len(ref.Fields) > 2 && c.item != nil && pinned[c.item] {
			ref.Fields = ref.Fields[len(ref.Fields)-2:]
		}
	}
	return len(pinned) > 0
}

// columnsOf is the query of a relation's columns that are used.
func (r *recorded) columnsOf(n *pg.RangeVar, it *item, name func(*item, string) string) *pg.RangeSubselect {
	rel, used := it.relation(), r.used[it]
	if len(used) == 0 {
		used = []int{0}
	}
	q := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	q.FromClause = []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: &pg.RangeVar{
		Schemaname: rel.Schema, Relname: rel.Name, Inh: true, Relpersistence: "p", Location: -1,
	}}}}
	for _, i := range used {
		now := name(it, rel.Columns[i].Name)
		t := columnTarget([]string{now})
		if it.columns[i].name != now {
			t.GetResTarget().Name = it.columns[i].name
		}
		q.TargetList = append(q.TargetList, t)
	}
	alias := n.Relname
	if n.Alias != nil {
		alias = n.Alias.Aliasname
	}
	return &pg.RangeSubselect{
		Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: q}}, Alias: &pg.Alias{Aliasname: alias},
	}
}

package pgsql

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Through is a view through which a statement writes rows.
type Through struct {
	View *Relation
	// Via is the oid of the view whose query names it, 0 for the statement itself.
	Via uint32
	// Written are its columns that the statement gives values, Arbiter and Updated those that ON
	// CONFLICT names and gives values.
	Written, Arbiter, Updated []int
}

// CheckOption says which rows a statement must not write through views with a check option.
type CheckOption struct {
	// Rows gives, of each row written, for each of Views whether it fails that view's condition, and
	// the row's number, from 1. Its first use stands for the rows.
	Rows  *Analysis
	Views []string
}

// face is a relation as statements that write name it: a table, or a view of one.
type face struct {
	item *item
	// base are the table's columns, as far as they are asked for.
	base *item
	// places are, for each column of item, that of the table, -1 for one that is computed.
	places []int
	// print is its part of FROM, called alias there; what is asked for later is not in it.
	print func() string
	alias string
	// failing are columns that say whether a row fails the condition of a view: the inner ones'
	// first, as they are checked; views has the names.
	failing []func() string
	views   []string
	// view is its use, nil of a table.
	view *ViewUse
	// row is the number of a row of the table, from 1, nil unless it was asked for.
	row func() string
}

// facing is how a face is made.
type facing struct {
	// table takes the place of the table, nil for none.
	table *Relation
	// filtered leaves rows out that the views do not show.
	filtered bool
	// checked asks for failing, cascaded for views without an option too. conditioned says that
	// the condition of the view at hand, which is called named, is one.
	checked, cascaded, conditioned bool
	named                          string
	// probed has the views looked at whole.
	probed bool
}

// faceOf makes the face of a relation that a statement names.
func (w *writer) faceOf(rel *Relation, n *pg.RangeVar, o facing) (*face, error) {
	if rel.View != "" {
		return w.viewFace(rel, n, o)
	}
	src, err := w.relationSource(cmp.Or(o.table, rel), n)
	if err != nil {
		return nil, err
	}
	name, alias, _ := strings.Cut(src.sql, " AS ")
	f := &face{item: src.items[0], base: src.items[0], places: allColumns(rel), print: func() string { return src.sql }, alias: alias}
	if o.checked {
		f.row = func() string { return alias + "._skippr_row" }
		f.print = func() string { return "(SELECT *, row_number() OVER () AS _skippr_row FROM " + name + ") AS " + alias }
	}
	return f, nil
}

// viewFace is faceOf for a view.
func (w *writer) viewFace(rel *Relation, n *pg.RangeVar, o facing) (*face, error) {
	if err := w.enter(); err != nil {
		return nil, err
	}
	defer w.leave()
	p, err := Parse(rel.View)
	if err != nil {
		return nil, err
	}
	if err := w.writesThrough(rel); err != nil {
		return nil, err
	}
	u := &ViewUse{Relation: rel, Via: w.via, Target: true}
	w.views = append(w.views, u)
	sql, via := w.sql, w.via
	w.sql, w.via = rel.View, rel.OID
	o.named, o.conditioned = rel.Name, o.cascaded || rel.Check != ""
	o.cascaded = o.cascaded || rel.Check == CheckCascaded
	f, err := w.queryFace(p.Node.GetSelectStmt(), o)
	w.sql, w.via = sql, via
	if e, ok := pgerr.As(err); ok && e.Code == codes.ObjectNotInPrerequisiteState {
		return nil, err // of a view within
	}
	if err != nil {
		return nil, w.errAt(n.Location, viewError(rel, err))
	}
	if len(f.item.columns) != len(rel.Columns) {
		return nil, fmt.Errorf("%d columns in place of %d", len(f.item.columns), len(rel.Columns))
	}
	f.item.name, f.item.schema, f.item.view, f.view = n.Relname, rel.Schema, rel, u
	if n.Alias != nil {
		f.item.name, f.item.schema = n.Alias.Aliasname, ""
	}
	if o.table != nil {
		f.item.schema = ""
	}
	for i, c := range f.item.columns {
		c.name, c.tableOID, c.attNum = rel.Columns[i].Name, rel.OID, rel.Columns[i].AttNum
		sql := c.sql
		c.sql = func() string {
			if !slices.Contains(u.Columns, i) {
				u.Columns = append(u.Columns, i)
			}
			return sql()
		}
	}
	return f, nil
}

// queryFace is the face of a simple query.
func (w *writer) queryFace(sel *pg.SelectStmt, o facing) (*face, error) {
	inner, err := w.fromFace(sel.FromClause[0], o)
	if err != nil {
		return nil, err
	}
	s := &scope{columns: inner.item.columns, items: []*item{inner.item}}
	condition := ""
	if sel.WhereClause != nil && (o.filtered || o.checked || o.probed) {
		s.noAgg = "WHERE"
		e, err := w.condition(sel.WhereClause, s, "WHERE")
		if err != nil {
			return nil, err
		}
		condition, s.noAgg = e.sql, ""
		if o.filtered {
			w.restrict(sel.WhereClause, s)
		}
	}
	q := &query{}
	if q.targets, err = w.targets(sel.TargetList, s); err == nil {
		err = w.settle(q)
	}
	if err != nil {
		return nil, err
	}
	out := &face{item: &item{}, base: &item{use: inner.base.use}, views: inner.views}
	alias := w.alias("v")
	out.alias = alias
	out.item.columns = targetColumns(q.targets, alias, out.item)
	out.places = placesBelow(sel, q, inner)
	var more []string // besides the targets
	also := func(sql string) string {
		more = append(more, sql)
		return fmt.Sprintf("%s.b%d", alias, len(more))
	}
	for _, c := range inner.base.columns {
		known, of := "", *c
		of.item = out.base
		of.sql = func() string {
			if known == "" {
				known = also(c.sql())
			}
			return known
		}
		out.base.columns = append(out.base.columns, &of)
	}
	for _, f := range inner.failing {
		out.failing = append(out.failing, func() string { return also(f()) })
	}
	if inner.row != nil {
		out.row = func() string { return also(inner.row()) }
	}
	if o.checked && o.conditioned && condition != "" {
		out.views = append(out.views, o.named)
		out.failing = append(out.failing, func() string { return also("coalesce(NOT (" + condition + "), true)") })
	}
	out.print = func() string {
		sql := "SELECT " + printTargets(q.targets)
		for i, m := range more {
			sql += fmt.Sprintf(", %s AS b%d", m, i+1)
		}
		if sql += " FROM " + inner.print(); o.filtered && condition != "" {
			sql += " WHERE " + condition
		}
		return "(" + sql + ") AS " + alias
	}
	return out, nil
}

// placesBelow are the places of a query's targets among the columns of what it reads, -1 of
// those that are none of them.
func placesBelow(sel *pg.SelectStmt, q *query, inner *face) []int {
	out := make([]int, len(q.targets))
	for i, t := range q.targets {
		at := -1
		if ref := sel.TargetList[i].GetResTarget().GetVal().GetColumnRef(); ref != nil {
			at = slices.Index(inner.item.columns, t.expr.col)
		}
		if at >= 0 {
			at = inner.places[at]
		}
		out[i] = at
	}
	return out
}

// fromFace is the face of what a simple query reads.
func (w *writer) fromFace(n *pg.Node, o facing) (*face, error) {
	if q := n.GetRangeSubselect(); q != nil {
		f, err := w.queryFace(q.Subquery.GetSelectStmt(), o)
		if err != nil {
			return nil, err
		}
		f.item.name = q.Alias.GetAliasname()
		return f, w.renameColumns(f.item, q.Alias, -1)
	}
	rv := n.GetRangeVar()
	rel, err := w.relation(rv.Schemaname, rv.Relname, rv.Location)
	if err != nil {
		return nil, err
	}
	return w.faceOf(rel, rv, o)
}

// writesThrough refuses a view whose rows are not those of one relation.
func (w *writer) writesThrough(rel *Relation) error {
	_, _, _, why := shownRelation(rel.View, w.env.Resolver)
	if why == "" && w.verb.event != "DELETE" {
		why = NotUpdatable(rel.View, w.env.Resolver)
	}
	if why == "" {
		return nil
	}
	return pgerr.New(codes.ObjectNotInPrerequisiteState, "cannot %s view \"%s\"", w.verb.act, rel.Name).WithDetail("%s", why).
		WithHint("To enable %s the view, provide an INSTEAD OF %s trigger or an unconditional ON %s DO INSTEAD rule.",
			w.verb.acting, w.verb.event, w.verb.event)
}

// verb is what messages call a statement that writes.
type verb struct {
	act, acting, event string
}

var (
	verbInsert = verb{"insert into", "inserting into", "INSERT"}
	verbUpdate = verb{"update", "updating", "UPDATE"}
	verbDelete = verb{"delete from", "deleting from", "DELETE"}
)

// throughView finds what a statement that names a view writes: the table, and what the columns of
// the view are as places of its rows.
func (w *writer) throughView(view *Relation, n *pg.RangeVar) (*Relation, error) {
	f, err := w.faceOf(view, n, facing{probed: true})
	if err != nil {
		return nil, err
	}
	base := f.base.use.Relation
	if err := CheckWritable(base); err != nil {
		return nil, err
	}
	w.out.Via, w.out.ViewReads = f.base.use.Via, usedPlaces(f.base.use)
	w.uses, w.views = nil, nil
	w.places, w.defaults = f.places, map[int]string{}
	for rel, via := view, uint32(0); rel.View != ""; { // from the outermost
		w.out.Through = append(w.out.Through, Through{View: rel, Via: via})
		of, columns, _, _ := shownRelation(rel.View, w.env.Resolver)
		w.levels, via, rel = append(w.levels, columns), rel.OID, of
	}
	for at := len(w.levels) - 1; at >= 0; at-- { // outer defaults go before inner ones
		if at < len(w.levels)-1 {
			for i, c := range w.levels[at] {
				if c >= 0 {
					w.levels[at][i] = w.levels[at+1][c]
				}
			}
		}
		for i, c := range w.levels[at] {
			if text := w.out.Through[at].View.Columns[i].Default; c >= 0 && text != "" {
				w.defaults[c] = text
			}
		}
	}
	named := *view
	named.Columns = nil
	for i, c := range view.Columns {
		if at := f.places[i]; at >= 0 {
			name, own := c.Name, c.Default
			if c = base.Columns[at]; w.verb.event != "UPDATE" { // which knows no default but the view's own
				own = cmp.Or(w.defaults[at], c.Default)
			}
			c.Name, c.Default = name, own
		}
		named.Columns = append(named.Columns, c)
	}
	w.named = &named
	return base, nil
}

func usedPlaces(u *Use) []int {
	var out []int
	for _, c := range u.Columns {
		out = append(out, c.Index)
	}
	return out
}

// place is the column of the table that a column of what the statement names is.
func (w *writer) place(i int) (int, error) {
	if w.places == nil {
		return i, nil
	}
	if at := w.places[i]; at >= 0 {
		return at, nil
	}
	for rel := w.view; ; {
		of, columns, reasons, why := shownRelation(rel.View, w.env.Resolver)
		if why != "" || columns[i] < 0 {
			return 0, unsupported("cannot %s column \"%s\" of view \"%s\"", w.verb.act, rel.Columns[i].Name, rel.Name).WithDetail("%s", reasons[i])
		}
		rel, i = of, columns[i]
	}
}

// placesOf are the columns of the table that columns of what the statement names are.
func (w *writer) placesOf(list []int) ([]int, error) {
	out := slices.Clone(list)
	for at, i := range list {
		p, err := w.place(i)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out[:at], p) {
			return nil, pgerr.New(codes.Syntax, "multiple assignments to same column \"%s\"", w.out.Relation.Columns[p].Name)
		}
		out[at] = p
	}
	return out, nil
}

// gives notes which columns of the views the statement gives values: named are those of what it
// names.
func (w *writer) gives(named []int) {
	for at := range w.out.Through {
		list := &w.out.Through[at].Written
		if w.out.Conflict != nil {
			list = &w.out.Through[at].Updated
		}
		for _, i := range named {
			c := i
			if at > 0 {
				c = slices.Index(w.levels[at], w.places[i])
			}
			if c >= 0 {
				*list = append(*list, c)
			}
		}
	}
}

// checkOption analyses what rows the views' check options exclude.
func (w *writer) checkOption(n *pg.RangeVar) error {
	if len(w.out.Through) == 0 {
		return nil
	}
	f, err := w.faceOf(w.view, n, facing{checked: true})
	if err != nil {
		return err
	}
	var list []string
	for i, failing := range f.failing {
		list = append(list, fmt.Sprintf("%s AS c%d", failing(), i+1))
	}
	if len(list) == 0 {
		w.uses, w.views = nil, nil
		return nil
	}
	list = append(list, fmt.Sprintf("%s AS c%d", f.row(), len(list)+1))
	w.out.CheckOption = &CheckOption{Views: f.views, Rows: w.finished("SELECT " + strings.Join(list, ", ") + " FROM " + f.print())}
	w.out.CheckOption.Rows.Uses[0].Target = true // who writes a row knows it
	return nil
}

package pgsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var setWords = map[pg.SetOperation]string{
	pg.SetOperation_SETOP_UNION: "UNION", pg.SetOperation_SETOP_INTERSECT: "INTERSECT",
	pg.SetOperation_SETOP_EXCEPT: "EXCEPT",
}

// setOperation analyses UNION, INTERSECT and EXCEPT.
func (a *analyzer) setOperation(sel *pg.SelectStmt, s *scope) (*query, error) {
	left, err := a.query(sel.Larg, s)
	if err != nil {
		return nil, err
	}
	right, err := a.query(sel.Rarg, s)
	if err != nil {
		return nil, err
	}
	word := setWords[sel.Op]
	q := &query{}
	if err := a.matchColumns(left, right, word, q); err != nil {
		return nil, err
	}
	named := namedColumns(q.targets)
	var keys []string
	if !sel.All {
		if keys, err = a.distinctKeys(named); err != nil {
			return nil, err
		}
	}
	switch {
	case sel.All || keys == nil:
	case sel.Op == pg.SetOperation_SETOP_UNION:
		q.body = "SELECT DISTINCT ON (" + strings.Join(keys, ", ") + ") * FROM ((" + left.print(false) + ") UNION ALL (" +
			right.print(false) + ")) AS s"
	default:
		q.body = keyedOperation(word, left, right, keys, q.targets)
	}
	if sel.All {
		word += " ALL"
	}
	if q.body == "" {
		q.body = "(" + left.print(false) + ") " + word + " (" + right.print(false) + ")"
	}
	if err := a.bodyTail(sel, s, q); err != nil {
		return nil, err
	}
	if strings.Contains(q.order, "(") { // the engine sorts a set operation by plain columns only
		q.body = "SELECT * FROM (" + q.body + ") AS s"
	}
	return q, nil
}

// keyedOperation prints INTERSECT and EXCEPT of rows that keys tell apart.
func keyedOperation(word string, left, right *query, keys []string, targets []target) string {
	join, match := "SEMI", make([]string, len(targets))
	if word == "EXCEPT" {
		join = "ANTI"
	}
	for i, t := range targets {
		side := func(name string) string {
			t.expr.sql = fmt.Sprintf("%s.c%d", name, i+1)
			return equalKey(t.expr)
		}
		match[i] = side("l") + " IS NOT DISTINCT FROM " + side("r")
	}
	return "SELECT DISTINCT ON (" + strings.Join(keys, ", ") + ") * FROM (" + left.print(false) + ") AS l " + join + " JOIN (" +
		right.print(false) + ") AS r ON " + strings.Join(match, " AND ")
}

// matchColumns casts the columns of both sides to common types and makes q's.
func (a *analyzer) matchColumns(left, right *query, word string, q *query) error {
	if len(left.targets) != len(right.targets) {
		return pgerr.New(codes.Syntax, "each %s query must have the same number of columns", word)
	}
	for i := range left.targets {
		l, r := &left.targets[i].expr, &right.targets[i].expr
		t, err := a.unify([]*expr{l, r}, word)
		if err != nil {
			return err
		}
		out := outputOf(t, i)
		if l.col != nil && l.col.stored && (r.col == nil || !r.col.stored) || r.col != nil && r.col.stored &&
			(l.col == nil || !l.col.stored) {
			out.col = nil
		}
		if out.coll, err = collated(*l, *r); err != nil {
			return err
		}
		out.coll.explicit = false
		q.targets = append(q.targets, target{name: left.targets[i].name, expr: out})
	}
	return nil
}

// unify casts expressions to the type PostgreSQL resolves for UNION, CASE, VALUES
// and the like, and returns one of them as the model of the result.
func (a *analyzer) unify(list []*expr, context string) (expr, error) {
	t, err := a.commonType(list, context)
	if err != nil {
		return expr{}, err
	}
	if t.OID == OIDRecord && slices.ContainsFunc(list, func(e *expr) bool { return isRecord(*e) }) {
		return a.unifyRows(list, context)
	}
	if out, ok := unifyRowArrays(list, t); ok {
		return out, nil
	}
	text, same := false, true
	for i, e := range list {
		to := t
		if e.undecided() && !t.isArray() { // its value is not cut to the others' length
			to.Mod = -1
		}
		c, err := a.coerce(*e, to, implicit)
		if err != nil {
			return expr{}, err
		}
		c.name = e.name
		*list[i] = c
		text = text || c.text
		same = same && c.typ.Mod == list[0].typ.Mod
	}
	out := expr{typ: t, scale: -1, loc: -1}
	switch {
	case same:
		out.typ = list[0].typ
	case !t.isArray():
		out.typ.Mod = -1
	}
	if t.OID == OIDNumeric {
		return unifyNumeric(list, out), nil
	}
	if text && t.isArray() {
		out.text = true
		return out, a.toShaped(list...)
	}
	if text {
		for _, e := range list {
			if e.text {
				e.sql, e.text, e.col = exactValue(*e), false, nil
			}
		}
	}
	return out, nil
}

// commonType is PostgreSQL's select_common_type.
func (a *analyzer) commonType(list []*expr, context string) (Type, error) {
	t := plain(OIDUnknown)
	for _, e := range list {
		if e.undecided() {
			continue
		}
		if t.OID == OIDUnknown {
			t = e.typ
			continue
		}
		if e.typ.OID == t.OID {
			if e.typ.Mod != t.Mod {
				t.Mod = -1
			}
			continue
		}
		if e.typ.category() != t.category() {
			return t, a.errAt(e.loc, pgerr.New(codes.DatatypeMismatch, "%s types %s and %s cannot be matched", context,
				t.Name(), e.typ.Name()))
		}
		if !lookupType(t.OID).preferred && becomes(t, e.typ, implicit) && !becomes(e.typ, t, implicit) {
			t = bare(e.typ)
		} else {
			t.Mod = -1
		}
	}
	if t.OID == OIDUnknown {
		t = plain(OIDText)
	}
	return t, nil
}

// with analyses the WITH clause into the scope and prints it.
func (a *analyzer) with(w *pg.WithClause, s *scope) (string, error) {
	if w == nil {
		return "", nil
	}
	var parts []string
	recursive := ""
	for i, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		for _, m := range w.Ctes[:i] {
			if m.GetCommonTableExpr().Ctename == c.Ctename {
				return "", a.errAt(c.Location, pgerr.New(codes.DuplicateAlias, "WITH query name \"%s\" specified more than once", c.Ctename))
			}
		}
		sel := c.Ctequery.GetSelectStmt()
		var part string
		var err error
		if m := a.modifications[c]; sel == nil && m != nil {
			if part, err = a.writtenCTE(c, m, s); err != nil {
				return "", err
			}
			if part != "" {
				parts = append(parts, part)
			}
			continue
		} else if sel == nil {
			return "", a.errAt(w.Location, errNotAtTop)
		}
		switch {
		case w.Recursive && mentions(sel, c.Ctename):
			recursive = "RECURSIVE "
			part, err = a.recursiveCTE(c, sel, s)
		case c.SearchClause != nil || c.CycleClause != nil:
			err = a.errAt(c.Location, pgerr.New(codes.Syntax, "WITH query is not recursive"))
		default:
			part, err = a.plainCTE(c, sel, s)
		}
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "", nil
	}
	return "WITH " + recursive + strings.Join(parts, ", ") + " ", nil
}

func (a *analyzer) plainCTE(c *pg.CommonTableExpr, sel *pg.SelectStmt, s *scope) (string, error) {
	q, err := a.query(sel, s)
	if err != nil {
		return "", err
	}
	if err := a.settle(q); err != nil {
		return "", err
	}
	entry := &cte{name: c.Ctename, alias: a.alias("w"), columns: q.targets}
	if err := a.renameTargets(entry, c); err != nil {
		return "", err
	}
	s.ctes = append(s.ctes, entry)
	hint := ""
	switch c.Ctematerialized {
	case pg.CTEMaterialize_CTEMaterializeAlways:
		hint = "MATERIALIZED "
	case pg.CTEMaterialize_CTEMaterializeNever:
		hint = "NOT MATERIALIZED "
	}
	return entry.alias + " AS " + hint + "(" + q.print(false) + ")", nil
}

func (a *analyzer) renameTargets(entry *cte, c *pg.CommonTableExpr) error {
	if len(c.Aliascolnames) > len(entry.columns) {
		return a.errAt(c.Location, pgerr.New(codes.InvalidColumnReference,
			"WITH query \"%s\" has %d columns available but %d columns specified",
			c.Ctename, len(entry.columns), len(c.Aliascolnames)))
	}
	cols := append([]target(nil), entry.columns...)
	for i, n := range c.Aliascolnames {
		cols[i].name = n.GetString_().GetSval()
	}
	entry.columns = cols
	return nil
}

// recursiveCTE analyses a WITH RECURSIVE query: the column types are those of the
// non-recursive term.
func (a *analyzer) recursiveCTE(c *pg.CommonTableExpr, sel *pg.SelectStmt, s *scope) (string, error) {
	if sel.Op != pg.SetOperation_SETOP_UNION || len(sel.SortClause) > 0 || sel.LimitCount != nil {
		return "", a.errAt(c.Location, pgerr.New(codes.InvalidRecursion,
			"recursive query \"%s\" does not have the form non-recursive-term UNION [ALL] recursive-term", c.Ctename))
	}
	left, err := a.query(sel.Larg, s)
	if err != nil {
		return "", err
	}
	if err := a.settle(left); err != nil {
		return "", err
	}
	entry := &cte{name: c.Ctename, alias: a.alias("w")}
	for i := range left.targets {
		if e := &left.targets[i].expr; e.typ.OID == OIDNumeric && e.typ.Mod < 0 {
			e.setText(numericText(*e)) // the recursion may give it any scale
		}
	}
	entry.columns = left.targets
	if err := a.renameTargets(entry, c); err != nil {
		return "", err
	}
	right, err := a.recursiveTerm(c, sel, entry, left, s)
	if err != nil {
		return "", err
	}
	word := " UNION "
	if sel.All {
		word = " UNION ALL "
	}
	names := make([]string, len(left.targets))
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i+1)
	}
	return entry.alias + "(" + strings.Join(names,
		", ") + ") AS (" + left.print(false) + word + right.print(false) + ")", nil
}

// recursiveTerm analyses the term of a recursive query that names it.
func (a *analyzer) recursiveTerm(c *pg.CommonTableExpr, sel *pg.SelectStmt, entry *cte, left *query, s *scope) (*query, error) {
	rarg, user := sel.Rarg, len(left.targets)
	t, err := a.newTrail(c, sel, entry, s)
	if err != nil {
		return nil, err
	}
	if t != nil {
		if err := t.begin(a, left); err != nil {
			return nil, err
		}
		if rarg, err = t.asked(rarg); err != nil {
			return nil, a.errAt(c.Location, err)
		}
	}
	s.ctes = append(s.ctes, entry)
	right, err := a.query(rarg, s)
	if err != nil {
		return nil, err
	}
	more := 0
	if t != nil {
		more = len(rarg.TargetList) - len(sel.Rarg.TargetList)
	}
	if user+more != len(right.targets) {
		return nil, pgerr.New(codes.Syntax, "each UNION query must have the same number of columns")
	}
	given := right.targets[user:]
	right.targets = slices.Clone(right.targets[:user])
	if err := a.matchRecursive(c, left, right); err != nil || t == nil {
		return right, err
	}
	for i := range entry.columns {
		entry.columns[i].secret = false
	}
	return right, t.follow(a, left, right, given)
}

func (a *analyzer) matchRecursive(c *pg.CommonTableExpr, left, right *query) error {
	for i := range right.targets {
		l, r := left.targets[i].expr, right.targets[i].expr
		e, err := a.coerce(r, l.typ, implicit)
		if err != nil {
			return a.errAt(r.loc, pgerr.New(codes.DatatypeMismatch,
				"recursive query \"%s\" column %d has type %s in non-recursive term but type %s overall",
				c.Ctename, i+1, l.typ.Name(), r.typ.Name()))
		}
		if l.fields != nil {
			if !sameFields(l.fields, e.fields) {
				return a.errAt(r.loc, unsupported("rows of different types in a recursive query are not supported"))
			}
			right.targets[i].expr = e
			continue
		}
		if l.text && e.typ.OID == OIDNumeric {
			e.setText(numericText(e))
		}
		if shaped(l) {
			if err := a.toShaped(&e); err != nil {
				return err
			}
		}
		if eng := l.typ.engineType(); !l.text && eng != "" {
			e.sql = "CAST(" + e.sql + " AS " + eng + ")"
		}
		right.targets[i].expr = e
	}
	return nil
}

// mentions reports whether a query names a table without a schema.
func mentions(sel *pg.SelectStmt, name string) bool {
	found := false
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if rv, ok := m.(*pg.RangeVar); ok && rv.Relname == name && rv.Schemaname == "" {
			found = true
		}
	})
	return found
}

// walk calls visit for every message of a tree.
func walk(m protoreflect.Message, visit func(protoreflect.ProtoMessage)) {
	visit(m.Interface())
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), visit)
			}
		default:
			walk(v.Message(), visit)
		}
		return true
	})
}

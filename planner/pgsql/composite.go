package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// A value that is a row has one of two forms: its fields as they are named (expr.row), or a struct
// of the engine without names (expr.fields), as one query hands it to another. Two values compare
// as PostgreSQL's records do, nulls of fields being equal and the greatest; row constructors that
// are written out compare field by field, with SQL's nulls.

// thereColumn is, beside the columns of what an outer join may leave out, true.
const thereColumn = "skippr_there"

// rowNames are the names of what a query has in FROM, as far as it names their rows as values.
func rowNames(sel *pg.SelectStmt) map[string]bool {
	out := map[string]bool{}
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		ref, ok := m.(*pg.ColumnRef)
		if !ok {
			return
		}
		names, star := fieldNames(ref.Fields)
		if n := len(names); star && n > 0 || n == 1 {
			out[names[n-1]] = true
		}
	})
	return out
}

// mark gives what an outer join may leave out a column that says that it is there, if rows of it
// are named as values.
func (a *analyzer) mark(src *source) {
	if a.nullable == 0 {
		return
	}
	for _, it := range src.items {
		it.nullable = true
	}
	if len(src.items) != 1 || src.items[0].there != "" || !a.rowNames[src.items[0].name] {
		return
	}
	name := aliased.FindStringSubmatch(src.sql)
	if name == nil {
		return
	}
	inner, lateral := strings.CutPrefix(src.sql, "LATERAL ")
	src.sql = "(SELECT *, true AS " + thereColumn + " FROM " + inner + ") AS " + name[1]
	if lateral {
		src.sql = "LATERAL " + src.sql
	}
	src.items[0].there = name[1] + "." + thereColumn
}

// wholeRow is a reference to all columns of an item as one value.
func (a *analyzer) wholeRow(it *item, loc int32, s *scope) (expr, error) {
	e := expr{typ: plain(OIDRecord), loc: loc, name: it.name, scale: -1, whole: true}
	if it.nullable && it.there == "" {
		return e, a.errAt(loc, unsupported("a row of \"%s\" as a value, beside an outer join, is not supported", it.name).
			WithHint("Name its columns."))
	}
	for _, c := range it.columns {
		if c.secret {
			continue
		}
		f := a.reference(c, loc, s)
		if s.grouped && s.aggDepth == 0 && s.groupKeys[f.sql] != "" {
			f = s.keyedValue(f)
		}
		e.row = append(e.row, f)
	}
	e.there = it.there
	if e.there != "" && s.grouped && s.aggDepth == 0 && !s.groupSQL[e.there] {
		e.there = "any_value(" + e.there + ")"
	}
	e.sql = e.ifThere("row(" + strings.Join(sqlOf(e.row), ", ") + ")")
	return e, nil
}

// isRecord reports whether a value is a row.
func isRecord(e expr) bool { return e.row != nil || e.typ.OID == OIDRecord && e.fields != nil }

// ifThere renders what is made of a row that is null as a whole where the row is.
func (e *expr) ifThere(sql string) string {
	there := e.there
	if e.row == nil && e.whole {
		there = e.sql + " IS NOT NULL"
	}
	if there == "" {
		return sql
	}
	return "CASE WHEN " + there + " THEN " + sql + " END"
}

// rowOf are the fields of a row.
func rowOf(e expr) []expr {
	if e.row != nil {
		return e.row
	}
	var out []expr
	for i := range e.fields {
		out = append(out, fieldAt(e, i))
	}
	return out
}

// settledRow decides the fields of a row.
func (a *analyzer) settledRow(e expr) (expr, error) {
	if e.row == nil {
		return a.settled(e)
	}
	row := make([]expr, len(e.row))
	for i, f := range e.row {
		var err error
		if row[i], err = a.settledRow(f); err != nil {
			return e, err
		}
		row[i].name = f.name
	}
	e.row = row
	e.sql = e.ifThere("row(" + strings.Join(sqlOf(row), ", ") + ")")
	return e, nil
}

// boxed makes a struct of a row.
func (a *analyzer) boxed(e expr) (expr, error) {
	if e.row == nil {
		return e, nil
	}
	e, err := a.settledRow(e)
	if err != nil {
		return e, err
	}
	out := e
	out.row, out.there, out.whole, out.fields = nil, "", true, nil
	var parts []string
	for _, f := range e.row {
		if f, err = a.boxed(f); err != nil {
			return e, err
		}
		kept := field{name: f.name, typ: f.typ, text: f.text, fields: f.fields}
		sql := f.sql
		if f.typ.OID == OIDNumeric {
			kept.typ.Mod, kept.text, sql = -1, true, numericText(f)
		}
		out.fields, parts = append(out.fields, kept), append(parts, sql)
	}
	out.sql = e.ifThere("row(" + strings.Join(parts, ", ") + ")")
	return out, nil
}

// unifyRows makes structs of one type of rows, of which one may be NULL.
func (a *analyzer) unifyRows(list []*expr, context string) (expr, error) {
	var model *expr
	for _, e := range list {
		if e.undecided() && !e.null {
			return *e, a.errAt(e.loc, unsupported("input of anonymous composite types is not implemented"))
		}
		if e.null {
			continue
		}
		b, err := a.boxed(*e)
		if err != nil {
			return b, err
		}
		*e = b
		if model == nil {
			model = e
		}
		if !sameFields(model.fields, e.fields) {
			return b, a.errAt(e.loc, unsupported("%s of rows of different types is not supported", context))
		}
	}
	out := *model
	for _, e := range list {
		if e.null {
			name := e.name
			*e = out
			e.sql, e.name, e.con = "NULL", name, true
		}
	}
	out.con, out.loc, out.col = false, -1, nil
	return out, nil
}

// unifyRowArrays keeps the fields of arrays of rows, of which some may be NULL or '{}'; the rest is
// nothing for it.
func unifyRowArrays(list []*expr, t Type) (expr, bool) {
	if ElemOf(t.OID) != OIDRecord {
		return expr{}, false
	}
	var model *expr
	for _, e := range list {
		switch {
		case e.null, e.undecided() && e.lit != nil && strings.TrimSpace(*e.lit) == "{}":
		case e.undecided() || e.text || e.fields == nil || model != nil && !sameFields(model.fields, e.fields):
			return expr{}, false
		case model == nil:
			model = e
		}
	}
	if model == nil {
		return expr{}, false
	}
	out := expr{typ: t, scale: -1, loc: -1, fields: model.fields, whole: model.whole}
	for _, e := range list {
		if !e.null && !e.undecided() {
			continue
		}
		sql := "NULL"
		if !e.null {
			sql = "[]"
		}
		name, loc := e.name, e.loc
		*e = out
		e.sql, e.name, e.loc, e.con = sql, name, loc, true
	}
	return out, true
}

func sameFields(l, r []field) bool {
	if len(l) != len(r) || len(l) == 0 {
		return false
	}
	for i := range l {
		if l[i].typ.OID != r[i].typ.OID || l[i].text != r[i].text || l[i].fields != nil && !sameFields(l[i].fields, r[i].fields) {
			return false
		}
	}
	return true
}

// recordKey renders a row by what key makes of its fields.
func recordKey(e expr, key func(expr) string) string {
	var parts []string
	for _, f := range rowOf(e) {
		parts = append(parts, key(f))
	}
	return e.ifThere("row(" + strings.Join(parts, ", ") + ")")
}

// compareRecords renders two rows, not both of which are written out, such that the engine compares
// them as record_cmp does.
func (a *analyzer) compareRecords(l, r expr) (ls, rs string, err error) {
	left, right := rowOf(l), rowOf(r)
	if len(left) != len(right) || len(left) == 0 {
		return "", "", pgerr.New(codes.DatatypeMismatch, "cannot compare record types with different numbers of columns")
	}
	for i := range left {
		if lt, rt := left[i].typ, right[i].typ; lt.OID != rt.OID || lt.OID == OIDUnknown {
			return "", "", pgerr.New(codes.DatatypeMismatch, "cannot compare dissimilar column types %s and %s at record column %d",
				lt.Name(), rt.Name(), i+1)
		}
		if err := a.sortable(left[i]); err != nil {
			return "", "", err
		}
	}
	return recordKey(l, sortKey), recordKey(r, sortKey), nil
}

// recordWithNull compares a row with a NULL that is written out.
func recordWithNull(op string, e, out expr) expr {
	there := e.there
	if e.row == nil {
		there = e.sql + " IS NOT NULL"
	}
	if there == "" {
		there = "true"
	}
	switch op {
	case "IS DISTINCT FROM":
		out.sql = "coalesce(" + there + ", false)"
	case "IS NOT DISTINCT FROM":
		out.sql = "(NOT coalesce(" + there + ", false))"
	default:
		out.sql = "CAST(NULL AS BOOLEAN)"
	}
	return out
}

// compareWhole compares rows, one of which is no row constructor; ok is false for other operands.
func (a *analyzer) compareWhole(op string, l, r, out expr) (e expr, ok bool, err error) {
	switch {
	case !isRecord(l) && !isRecord(r), !l.whole && !r.whole:
		return out, false, nil
	case l.null && l.undecided():
		return recordWithNull(op, r, out), true, nil
	case r.null && r.undecided():
		return recordWithNull(op, l, out), true, nil
	case l.undecided() || r.undecided():
		return out, true, unsupported("input of anonymous composite types is not implemented")
	case !isRecord(l) || !isRecord(r):
		return out, true, a.noOperator(op, &l, r, out.loc)
	}
	ls, rs, err := a.compareRecords(l, r)
	out.sql = "(" + ls + " " + op + " " + rs + ")"
	return out, true, err
}

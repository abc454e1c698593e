package pgsql

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Why rows are not written through a view, as PostgreSQL says it.
const (
	notSingle    = "Views that do not select from a single table or view are not automatically updatable."
	notUpdatable = "Views that have no updatable columns are not automatically updatable."
	notOfBase    = "View columns that are not columns of their base relation are not updatable."
)

// simpleView is a query each of whose rows is one of a relation.
type simpleView struct {
	from *pg.RangeVar
	// columns are, for each of its columns, that of the relation, "" for one that is computed.
	columns []string
}

// simple says which relation's rows a query shows, or why it is no such query.
func simple(sel *pg.SelectStmt) (*simpleView, string) {
	if why := complicated(sel); why != "" {
		return nil, why
	}
	out := &simpleView{}
	for _, t := range sel.TargetList {
		name := ""
		if names, star := fieldNames(t.GetResTarget().GetVal().GetColumnRef().GetFields()); !star && len(names) > 0 {
			name = names[len(names)-1]
		}
		out.columns = append(out.columns, name)
	}
	switch from := sel.FromClause[0].Node.(type) {
	case *pg.Node_RangeVar:
		out.from = from.RangeVar
		return out, ""
	case *pg.Node_RangeSubselect:
		return throughNames(sel, out, from.RangeSubselect)
	case *pg.Node_RangeTableSample:
		return nil, "Views containing TABLESAMPLE are not automatically updatable."
	}
	return nil, notSingle
}

// throughNames is simple for what a view's text has in place of what its author wrote so that
// names stay what they are: a query of columns and no more in FROM, or as the view.
func throughNames(sel *pg.SelectStmt, out *simpleView, from *pg.RangeSubselect) (*simpleView, string) {
	inner, why := simple(from.Subquery.GetSelectStmt())
	if !onlyNames(from.Subquery.GetSelectStmt()) && !onlyNames(sel) {
		return nil, notSingle
	}
	if why != "" {
		return nil, why
	}
	names := fieldsOf(from)
	for i, c := range out.columns {
		out.columns[i] = ""
		if at := slices.Index(names, c); c != "" && at >= 0 {
			out.columns[i] = inner.columns[at]
		}
	}
	out.from = inner.from
	return out, ""
}

// fieldsOf are the names of a subquery's columns.
func fieldsOf(n *pg.RangeSubselect) []string {
	var out []string
	for i, t := range n.Subquery.GetSelectStmt().GetTargetList() {
		name := cmp.Or(t.GetResTarget().GetName(), outputName(t.GetResTarget().GetVal()))
		if i < len(n.Alias.GetColnames()) {
			name = n.Alias.Colnames[i].GetString_().GetSval()
		}
		out = append(out, name)
	}
	return out
}

// onlyNames says whether a query does no more than name columns.
func onlyNames(sel *pg.SelectStmt) bool {
	return sel.WhereClause == nil && len(sel.SortClause) == 0 && !slices.ContainsFunc(sel.TargetList, func(t *pg.Node) bool {
		return t.GetResTarget().GetVal().GetColumnRef() == nil
	})
}

// complicated is why a query is not simple, by what it says besides FROM's one item.
func complicated(sel *pg.SelectStmt) string {
	containing := func(what string) string { return "Views containing " + what + " are not automatically updatable." }
	switch {
	case len(sel.DistinctClause) > 0:
		return containing("DISTINCT")
	case len(sel.GroupClause) > 0:
		return containing("GROUP BY")
	case sel.HavingClause != nil:
		return containing("HAVING")
	case sel.Op > pg.SetOperation_SETOP_NONE:
		return containing("UNION, INTERSECT, or EXCEPT")
	case sel.WithClause != nil:
		return containing("WITH")
	case sel.LimitCount != nil || sel.LimitOffset != nil:
		return containing("LIMIT or OFFSET")
	}
	var aggregate, window, set bool
	for _, t := range sel.TargetList {
		eachCall(t.ProtoReflect(), func(f *pg.FuncCall) {
			switch kindOf(f) {
			case 'a':
				aggregate = true
			case 'w':
				window = true
			case 's':
				set = true
			}
		})
	}
	switch {
	case aggregate:
		return "Views that return aggregate functions are not automatically updatable."
	case window:
		return "Views that return window functions are not automatically updatable."
	case set:
		return "Views that return set-returning functions are not automatically updatable."
	case len(sel.FromClause) != 1:
		return notSingle
	}
	return ""
}

// eachCall calls f with the calls in an expression, but for those of its subqueries.
func eachCall(m protoreflect.Message, f func(*pg.FuncCall)) {
	switch n := m.Interface().(type) {
	case *pg.SubLink:
		return
	case *pg.FuncCall:
		f(n)
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				eachCall(v.List().Get(i).Message(), f)
			}
		default:
			eachCall(v.Message(), f)
		}
		return true
	})
}

// kindOf is what kind of function a call is of, as in signature, a call with OVER being of a
// window function.
func kindOf(f *pg.FuncCall) byte {
	name := callName(f)
	switch list := builtinIndex()[name]; {
	case f.Over != nil:
		return 'w'
	case len(list) > 0 && list[0].kind != 'f':
		return list[0].kind
	case slices.Contains(specialAggregates, name), f.AggWithinGroup:
		return 'a'
	case slices.Contains(specialSets, name):
		return 's'
	}
	return 'f'
}

// specialAggregates and specialSets are functions of specialCall that are no plain ones.
var (
	specialAggregates = strings.Fields("array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg mode percentile_cont percentile_disc string_agg count")
	specialSets       = strings.Fields("generate_series generate_subscripts unnest json_each jsonb_each json_each_text jsonb_each_text")
)

// shownRelation is what a view shows the rows of: the relation, and for each column of the view that
// of it, -1 for one that is computed, with the reason why it takes no value. why is the reason why
// the view shows no relation's rows.
func shownRelation(sql string, r Resolver) (of *Relation, columns []int, reasons []string, why string) {
	p, err := Parse(sql)
	if err != nil {
		return nil, nil, nil, notSingle
	}
	v, why := simple(p.Node.GetSelectStmt())
	if why != "" {
		return nil, nil, nil, why
	}
	of, ok := r.Relation(v.from.Schemaname, v.from.Relname)
	if !ok || of.Materialized || of.Sequence {
		return nil, nil, nil, notSingle
	}
	for _, name := range v.columns {
		at, reason := slices.IndexFunc(of.Columns, func(c RelationColumn) bool { return name != "" && c.Name == name }), ""
		switch {
		case at >= 0:
		case name == "tableoid":
			reason = "View columns that refer to system columns are not updatable."
		case name != "":
			reason = "View columns that return whole-row references are not updatable."
		default:
			reason = notOfBase
		}
		columns, reasons = append(columns, at), append(reasons, reason)
	}
	return of, columns, reasons, ""
}

// Updatable is what statements can do to the rows of a relation by its name.
type Updatable struct {
	// Insert, Update and Delete say that they can.
	Insert, Update, Delete bool
	// Columns says of each column whether it can be given a value.
	Columns []bool
}

// UpdatableOf says what statements can do to the rows of a relation: a view is what its relation
// is, as far as it shows that.
func UpdatableOf(rel *Relation, r Resolver) Updatable {
	out := Updatable{Columns: make([]bool, len(rel.Columns))}
	if rel.View == "" {
		if CheckWritable(rel) == nil {
			for i := range out.Columns {
				out.Columns[i] = true
			}
			out.Insert, out.Update, out.Delete = true, true, true
		}
		return out
	}
	base, columns, _, why := shownRelation(rel.View, r)
	if why != "" {
		return out
	}
	of := UpdatableOf(base, r)
	for i := range out.Columns {
		out.Columns[i] = i < len(columns) && columns[i] >= 0 && of.Columns[columns[i]]
	}
	out.Delete = of.Delete
	if slices.Contains(out.Columns, true) {
		out.Insert, out.Update = of.Insert, of.Update
	}
	return out
}

// NotUpdatable is why rows are not inserted and updated through a view, "" when they are.
func NotUpdatable(sql string, r Resolver) string {
	_, columns, _, why := shownRelation(sql, r)
	if why == "" && !slices.ContainsFunc(columns, func(at int) bool { return at >= 0 }) {
		why = notUpdatable
	}
	return why
}

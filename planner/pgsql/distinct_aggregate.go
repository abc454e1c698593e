package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// The engine's DISTINCT in an aggregate tells values apart as they are stored. Where equal values
// may differ, all are taken as a list in their order, of which the first of each run of equals is
// left.

// distinctOf are the values of a type that aggregates need once each.
type distinctOf struct {
	value, key, direction, filter string
}

// list renders the values, "" being no filter.
func (d distinctOf) list() string {
	return "skippr_uniq(list(struct_pack(k := " + d.key + ", v := " + d.value + ") ORDER BY " + d.key + d.direction + ")" + d.filter + ")"
}

// distinctDirection is the order in which an aggregate with DISTINCT takes the values of its first
// argument.
func (a *analyzer) distinctDirection(n *pg.FuncCall, s *scope) (string, error) {
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return "", err
	}
	out := ""
	for _, o := range n.AggOrder {
		e, err := a.expr(o.GetSortBy().Node, s)
		if err != nil {
			return "", err
		}
		at := -1
		for i, arg := range args {
			if at < 0 && (arg.sql == e.sql || e.undecided() && arg.undecided()) {
				at = i
			}
		}
		switch {
		case at < 0:
			return "", a.errAt(e.loc, pgerr.New(codes.InvalidColumnReference,
				"in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"))
		case at == 0 && out == "":
			out = sortDirection(o.GetSortBy())
		case at > 0 && !args[at].con:
			return "", a.errAt(e.loc, unsupported("DISTINCT … ORDER BY of the second argument is not supported"))
		}
	}
	if out == "" {
		out = " ASC NULLS LAST"
	}
	return out, nil
}

// distinctAggregate analyses aggregates with DISTINCT of values of which equal ones may differ; ok
// is false for those that the engine does.
func (a *analyzer) distinctAggregate(c *signature, args []expr, n *pg.FuncCall, s *scope, d decoration, out expr) (e expr, ok bool, err error) {
	if n == nil || !n.AggDistinct || c.kind != 'a' || len(args) == 0 || d.over != "" {
		return out, false, nil
	}
	first := args[0]
	listed := c.name == "array_agg" || c.name == "string_agg"
	interval := first.typ.OID == OIDInterval && (c.name == "sum" || c.name == "avg")
	if !listed && !interval || first.con {
		return out, false, nil
	}
	if err := a.sortable(first); err != nil {
		return out, true, err
	}
	u := distinctOf{value: elementSQL(first), key: sortKey(first), filter: d.filter}
	if u.direction, err = a.distinctDirection(n, s); err != nil {
		return out, true, err
	}
	switch {
	case interval:
		out.sql = intervalTotal(c.name, u.list())
	case c.name == "string_agg":
		if !args[1].con {
			return out, false, nil
		}
		out.sql = "array_to_string(list_filter(nullif(" + u.list() + ", []), lambda x: x IS NOT NULL), coalesce(" + args[1].sql + ", ''))"
		out.sql = "CASE WHEN count(" + first.sql + ")" + d.filter + " > 0 THEN " + out.sql + " END"
	case first.typ.isArray() && !isVector(first.typ):
		if u.value, err = a.arrayText(first); err != nil {
			return out, true, err
		}
		out.typ, out.text = bare(first.typ), true
		out.sql = "skippr_a_nest(CAST(to_json(" + u.list() + ") AS VARCHAR), true)"
	default:
		if first.typ.OID == OIDNumeric {
			out.typ = plain(out.typ.OID)
		}
		out.sql, out.fields = u.list(), first.fields
	}
	return out, true, nil
}

// intervalTotal is the sum or the average of a list of intervals.
func intervalTotal(name, list string) string {
	sum := func(part string) string { return "CAST(list_sum(list_transform(l, lambda v: " + part + ")) AS BIGINT)" }
	total := "skippr_iv_of(" + strings.Join([]string{
		sum("skippr_months(v)"), sum("date_part('day', v)"), sum("skippr_iv_micros(v)"),
	}, ", ") + ")"
	if name == "avg" {
		total = "skippr_iv_div(" + total + ", CAST(nullif(len(l), 0) AS DOUBLE))"
	}
	return "list_transform([list_filter(" + list + ", lambda v: v IS NOT NULL)], lambda l: " + total + ")[1]"
}

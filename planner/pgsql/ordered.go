package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// orderedSet analyses percentile_cont, percentile_disc and mode. The percentiles are taken
// out of the group's values as a sorted list: the engine's own interpolate in another way.
func (a *analyzer) orderedSet(name string, n *pg.FuncCall, s *scope) (expr, bool, error) {
	if !n.AggWithinGroup || len(n.AggOrder) != 1 || n.Over != nil {
		return expr{}, true, pgerr.New(codes.WrongObjectType, "WITHIN GROUP is required for ordered-set aggregate %s", name)
	}
	if s.noAgg != "" {
		return expr{}, true, pgerr.New(codes.Grouping, "aggregate functions are not allowed in %s", s.noAgg)
	}
	s.hasAgg = true
	s.aggDepth++
	defer func() { s.aggDepth-- }()
	sb := n.AggOrder[0].GetSortBy()
	e, err := a.expr(sb.Node, s)
	if err != nil {
		return e, true, err
	}
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return e, true, err
	}
	if e, err = a.settled(e); err == nil {
		err = a.sortable(e)
	}
	if err != nil {
		return e, true, err
	}
	filter := ""
	if n.AggFilter != nil {
		f, err := a.condition(n.AggFilter, s, "FILTER")
		if err != nil {
			return e, true, err
		}
		filter = f.sql
	}
	if name == "mode" {
		e, err = mode(e, len(args), sortDirection(sb), filter)
	} else {
		e, err = a.percentile(name, e, args, sortDirection(sb), filter)
	}
	return e, true, err
}

func mode(e expr, args int, direction, filter string) (expr, error) {
	if args > 0 {
		return e, noFunction("mode", []expr{e}, false)
	}
	if sortKey(e) != e.sql {
		return keyedMode(e, direction, filter), nil
	}
	out := expr{typ: bare(e.typ), scale: e.scale, prec: e.prec}
	// The engine knows no NULLS FIRST here; nulls do not count.
	direction = strings.TrimSuffix(strings.TrimSuffix(direction, " NULLS LAST"), " NULLS FIRST")
	out.sql = "mode() WITHIN GROUP (ORDER BY " + e.sql + direction + ")"
	if filter != "" {
		out.sql += " FILTER (WHERE " + filter + ")"
	}
	return out, nil
}

// keyedMode is the mode of values of which equal ones may differ: the first of those of the most
// frequent key, which is the first such in the order.
func keyedMode(e expr, direction, filter string) expr {
	out := expr{typ: bare(e.typ), scale: -1, text: e.text || e.typ.OID == OIDNumeric, fields: e.fields, whole: e.fields != nil}
	key, value := sortKey(e), e.sql
	if e.typ.OID == OIDNumeric {
		value = numericText(e)
	}
	where := " FILTER (WHERE " + e.sql + " IS NOT NULL"
	if filter != "" {
		where += " AND " + filter
	}
	where += ")"
	count, pick := "-CAST(struct_extract(c, 'value') AS BIGINT)", "list_sort"
	if strings.HasPrefix(direction, " DESC") {
		count, pick = "CAST(struct_extract(c, 'value') AS BIGINT)", "list_reverse_sort"
	}
	best := "struct_extract(" + pick + "(list_transform(map_entries(struct_extract(g, 'h')), lambda c: struct_pack(n := " + count +
		", k := struct_extract(c, 'key'))))[1], 'k')"
	out.sql = "list_transform([struct_pack(l := list(struct_pack(k := " + key + ", v := " + value + ") ORDER BY " + key + direction + ")" + where +
		", h := histogram(" + key + ")" + where + ")], lambda g: struct_extract(list_filter(struct_extract(g, 'l'), lambda x: struct_extract(x, 'k') = " +
		best + ")[1], 'v'))[1]"
	return out
}

// percentile analyses a percentile of one fraction, or of an array of them.
func (a *analyzer) percentile(name string, e expr, args []expr, direction, filter string) (expr, error) {
	if len(args) != 1 {
		return e, noFunction(name, args, false)
	}
	many := args[0].typ.isArray()
	to := plain(OIDFloat8)
	if many {
		to = plain(ArrayOf(OIDFloat8))
	}
	frac, err := a.coerce(args[0], to, implicit)
	if many && err != nil { // an array of numerics is one of float8 to PostgreSQL
		frac, err = a.coerce(args[0], to, explicit)
	}
	if err != nil {
		return frac, err
	}
	macro, value, out := "skippr_disc", e, expr{typ: bare(e.typ), scale: e.scale, prec: e.prec, text: e.text}
	if name == "percentile_cont" {
		switch {
		case e.typ.OID == OIDInterval:
			macro, value.sql, value.text = "skippr_cont_interval", native(e), false
		case numericRank(e.typ.OID) > 0:
			macro = "skippr_cont"
			if value, err = a.coerce(e, plain(OIDFloat8), implicit); err != nil {
				return e, err
			}
		default:
			return e, noFunction(name, []expr{args[0], e}, false)
		}
		out = expr{typ: bare(value.typ), scale: -1}
	}
	if out.typ.OID == OIDNumeric && out.text {
		out.setText("")
	}
	list := "list(" + value.sql + " ORDER BY " + sortKey(value) + direction + ") FILTER (WHERE " + value.sql + " IS NOT NULL"
	if filter != "" {
		list += " AND " + filter
	}
	pick := func(p string) string { return macro + "(l, " + p + ")" }
	body := pick(frac.sql)
	if many {
		body = "list_transform(" + frac.sql + ", lambda p: " + pick("p") + ")"
		if out.typ.OID == OIDNumeric && !out.text {
			body = "list_transform(" + body + ", lambda d: CAST(d AS VARCHAR))"
		}
		body = "CASE WHEN l IS NOT NULL THEN " + body + " END"
		out = expr{typ: plain(ArrayOf(out.typ.OID)), scale: -1}
	}
	out.sql = "list_transform([" + list + ")], lambda l: " + body + ")[1]"
	return out, nil
}

// withinGroup analyses the aggregates with WITHIN GROUP; ok is false for a window function.
func (a *analyzer) withinGroup(name string, n *pg.FuncCall, s *scope) (expr, bool, error) {
	switch name {
	case "percentile_cont", "percentile_disc", "mode":
		return a.orderedSet(name, n, s)
	}
	if !n.AggWithinGroup {
		return expr{}, false, nil
	}
	e, err := a.hypothetical(name, n, s)
	return e, true, err
}

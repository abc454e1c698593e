package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// hypothetical analyses rank, dense_rank, percent_rank and cume_dist WITHIN GROUP: the place
// that a row would have among those of the group. They are counts of the rows before it.
func (a *analyzer) hypothetical(name string, n *pg.FuncCall, s *scope) (expr, error) {
	out := expr{typ: plain(OIDInt8), scale: -1}
	switch {
	case n.Over != nil:
		return out, unsupported("OVER is not supported for ordered-set aggregate %s", name)
	case s.noAgg != "":
		return out, pgerr.New(codes.Grouping, "aggregate functions are not allowed in %s", s.noAgg)
	}
	s.hasAgg = true
	s.aggDepth++
	defer func() { s.aggDepth-- }()
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return out, err
	}
	if len(args) != len(n.AggOrder) {
		return out, noFunction(name, args, false).WithHint("To use the hypothetical-set aggregate %s, the number of hypothetical direct arguments (here %d) "+
			"must match the number of ordering columns (here %d).", name, len(args), len(n.AggOrder))
	}
	before, equal := "false", "true"
	var keys []string
	for i := len(args) - 1; i >= 0; i-- {
		sb := n.AggOrder[i].GetSortBy()
		first, same, key, err := a.sortsBefore(sb, args[i], s)
		if err != nil {
			return out, err
		}
		before = "(" + first + " OR (" + same + " AND " + before + "))"
		equal = "(" + same + " AND " + equal + ")"
		keys = append(keys, key)
	}
	filter := ""
	if n.AggFilter != nil {
		f, err := a.condition(n.AggFilter, s, "FILTER")
		if err != nil {
			return out, err
		}
		filter = " AND " + f.sql
	}
	count := func(what, where string) string { return "count(" + what + ") FILTER (WHERE " + where + filter + ")" }
	switch name {
	case "rank":
		out.sql = "(" + count("*", before) + " + 1)"
	case "dense_rank":
		out.sql = "(" + count("DISTINCT row("+strings.Join(keys, ", ")+")", before) + " + 1)"
	case "percent_rank":
		all := count("*", "true")
		out.typ, out.sql = plain(OIDFloat8), "CASE WHEN "+all+" = 0 THEN 0 ELSE CAST("+count("*", before)+" AS DOUBLE) / "+all+" END"
	default:
		out.typ = plain(OIDFloat8)
		out.sql = "CAST(" + count("*", "("+before+" OR "+equal+")") + " + 1 AS DOUBLE) / (" + count("*", "true") + " + 1)"
	}
	out.sql = "CAST(" + out.sql + " AS " + out.typ.engineType() + ")"
	return out, nil
}

// sortsBefore says whether a row of the group sorts before an argument, and whether it is
// equal to it, in one key.
func (a *analyzer) sortsBefore(sb *pg.SortBy, arg expr, s *scope) (before, equal, key string, err error) {
	if err := a.checkUsing(sb); err != nil {
		return "", "", "", err
	}
	e, err := a.expr(sb.Node, s)
	if err != nil {
		return "", "", "", err
	}
	if _, err = a.unify([]*expr{&e, &arg}, "WITHIN GROUP"); err != nil {
		return "", "", "", err
	}
	if err = a.sortable(e); err != nil {
		return "", "", "", err
	}
	k, v, ok, err := a.comparable(e, arg, "<")
	switch {
	case err != nil:
		return "", "", "", a.errAt(e.loc, err)
	case !ok:
		return "", "", "", a.noOperator("<", &e, arg, e.loc)
	}
	direction := sortDirection(sb)
	op := " < "
	if strings.HasPrefix(direction, " DESC") {
		op = " > "
	}
	some, none := k, v // what is null comes last
	if strings.HasSuffix(direction, "NULLS FIRST") {
		some, none = v, k
	}
	before = "(" + some + " IS NOT NULL AND (" + none + " IS NULL OR " + k + op + v + "))"
	return before, "(" + k + " IS NOT DISTINCT FROM " + v + ")", k, nil
}

// checkUsing refuses an operator of ORDER BY … USING that orders nothing.
func (a *analyzer) checkUsing(sb *pg.SortBy) error {
	if sb.SortbyDir != pg.SortByDir_SORTBY_USING {
		return nil
	}
	op, err := operatorName(sb.UseOp)
	if err == nil && op != "<" && op != ">" {
		err = pgerr.New(codes.WrongObjectType, "operator %s is not a valid ordering operator", op).
			WithHint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
	}
	return a.errAt(sb.Location, err)
}

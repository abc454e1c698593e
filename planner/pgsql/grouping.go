package pgsql

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// groupingSetsMax is PostgreSQL's limit.
const groupingSetsMax = 4096

// groupBy analyses GROUP BY and prints it.
func (a *analyzer) groupBy(sel *pg.SelectStmt, s *scope) (string, error) {
	if len(sel.GroupClause) == 0 {
		return "", nil
	}
	s.groupSQL, s.groupKeys = map[string]bool{}, map[string]string{}
	s.noAgg = "GROUP BY"
	if sel.GroupDistinct {
		sets, err := a.distinctSets(sel, s)
		s.noAgg, s.grouped = "", true
		return " GROUP BY " + sets, err
	}
	var parts []string
	for _, n := range sel.GroupClause {
		p, err := a.groupItem(n, sel, s)
		if err != nil {
			return "", err
		}
		parts = append(parts, p)
	}
	s.noAgg = ""
	s.grouped = true
	return " GROUP BY " + strings.Join(parts, ", "), nil
}

var groupingWords = map[pg.GroupingSetKind]string{
	pg.GroupingSetKind_GROUPING_SET_ROLLUP: "ROLLUP", pg.GroupingSetKind_GROUPING_SET_CUBE: "CUBE",
	pg.GroupingSetKind_GROUPING_SET_SETS: "GROUPING SETS",
}

func (a *analyzer) groupItem(n *pg.Node, sel *pg.SelectStmt, s *scope) (string, error) {
	var list []*pg.Node
	word := ""
	switch {
	case n.GetGroupingSet() != nil:
		gs := n.GetGroupingSet()
		s.groupSets = true
		if gs.Kind == pg.GroupingSetKind_GROUPING_SET_EMPTY {
			return "()", nil
		}
		list, word = gs.Content, groupingWords[gs.Kind]
	case n.GetRowExpr() != nil:
		list = n.GetRowExpr().Args
	case n.GetList() != nil:
		list = n.GetList().Items
	default:
		return a.groupExpr(n, sel, s)
	}
	var parts []string
	for _, c := range list {
		p, err := a.groupItem(c, sel, s)
		if err != nil {
			return "", err
		}
		parts = append(parts, p)
	}
	return word + "(" + strings.Join(parts, ", ") + ")", nil
}

// distinctSets prints GROUP BY DISTINCT: the grouping sets written out, each once.
func (a *analyzer) distinctSets(sel *pg.SelectStmt, s *scope) (string, error) {
	all := [][]string{{}}
	for _, n := range sel.GroupClause {
		sets, err := a.setsOf(n, sel, s)
		if err != nil {
			return "", err
		}
		if all, err = crossed(all, sets); err != nil {
			return "", err
		}
	}
	var parts, seen []string
	for _, set := range all {
		slices.Sort(set)
		set = slices.Compact(set)
		key := "(" + strings.Join(set, ", ") + ")"
		if !slices.Contains(seen, key) {
			seen, parts = append(seen, key), append(parts, key)
		}
	}
	if !s.groupSets {
		return strings.Trim(parts[0], "()"), nil
	}
	return "GROUPING SETS (" + strings.Join(parts, ", ") + ")", nil
}

func crossed(a, b [][]string) ([][]string, error) {
	if len(a)*len(b) > groupingSetsMax {
		return nil, pgerr.New("54001", "too many grouping sets present (maximum %d)", groupingSetsMax)
	}
	var out [][]string
	for _, x := range a {
		for _, y := range b {
			out = append(out, append(slices.Clone(x), y...))
		}
	}
	return out, nil
}

// setsOf are the grouping sets of an item of GROUP BY.
func (a *analyzer) setsOf(n *pg.Node, sel *pg.SelectStmt, s *scope) ([][]string, error) {
	gs := n.GetGroupingSet()
	var list []*pg.Node
	switch {
	case gs != nil:
		s.groupSets = true
		list = gs.Content
	case n.GetRowExpr() != nil:
		list = n.GetRowExpr().Args
	case n.GetList() != nil:
		list = n.GetList().Items
	default:
		key, err := a.groupExpr(n, sel, s)
		return [][]string{{key}}, err
	}
	var items [][][]string
	for _, c := range list {
		sets, err := a.setsOf(c, sel, s)
		if err != nil {
			return nil, err
		}
		items = append(items, sets)
	}
	out := [][]string{{}}
	var err error
	switch {
	case gs == nil: // all of them together
		for _, sets := range items {
			if out, err = crossed(out, sets); err != nil {
				return nil, err
			}
		}
	case gs.Kind == pg.GroupingSetKind_GROUPING_SET_SETS:
		out = slices.Concat(items...)
	case gs.Kind == pg.GroupingSetKind_GROUPING_SET_ROLLUP:
		for _, sets := range items {
			longer, err := crossed(out[:1], sets)
			if err != nil {
				return nil, err
			}
			out = append(longer, out...)
		}
	case gs.Kind == pg.GroupingSetKind_GROUPING_SET_CUBE:
		for _, sets := range items {
			more, err := crossed(out, append([][]string{{}}, sets...))
			if err != nil {
				return nil, err
			}
			out = more
		}
	}
	return out, nil
}

// groupedSet takes a set-returning call of GROUP BY into FROM, where its rows come to be before they
// are grouped; several go in step, as they do in a select list. Elsewhere in a grouped query the
// same call is the same value, another one is computed after grouping.
func (a *analyzer) groupedSet(e expr, n *pg.FuncCall, refs []ref, s *scope) (expr, error) {
	at := slices.Index(s.sets, e.sql)
	switch {
	case s.noAgg != "GROUP BY":
		if at < 0 {
			return e, nil
		}
	case e.fields != nil:
		return e, a.errAt(n.Location, unsupported("grouping by a set-returning function of rows is not supported").
			WithHint("Call it in FROM."))
	case s.setsAs != "" && strings.Contains(e.sql, s.setsAs+".c"):
		return e, a.errAt(n.Location, unsupported("grouping by a set-returning function of another one is not supported").
			WithHint("Call one of them in FROM."))
	case at < 0:
		if s.setsAs == "" {
			s.setsAs = a.alias("f")
		}
		at = len(s.sets)
		s.sets = append(s.sets, e.sql)
	}
	value := e
	value.sql, value.set, value.con, value.num = s.setsAs+".c"+strconv.Itoa(at+1), false, false, nil
	if s.noAgg == "GROUP BY" {
		node := placeless(&pg.Node{Node: &pg.Node_FuncCall{FuncCall: n}})
		s.groupQueries = append(s.groupQueries, groupedQuery{node: node, value: value, refs: slices.Clone(refs)})
	}
	return value, nil
}

// setsSQL is the item of FROM of the set-returning calls that are grouped by.
func (s *scope) setsSQL() string {
	if len(s.sets) == 0 {
		return ""
	}
	var parts []string
	for i, sql := range s.sets {
		parts = append(parts, sql+" AS c"+strconv.Itoa(i+1))
	}
	return "LATERAL (SELECT " + strings.Join(parts, ", ") + ") AS " + s.setsAs
}

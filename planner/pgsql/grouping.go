package pgsql

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// groupingSetsMax is PostgreSQL's limit.
const groupingSetsMax = 4096

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

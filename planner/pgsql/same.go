package pgsql

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// HasQuery says whether there is a sub-query in an expression.
func HasQuery(n *pg.Node) bool { return hasQuery(n) }

// placeless is a copy of a part of a statement that does not say where it stands.
func placeless(n *pg.Node) *pg.Node {
	out := proto.Clone(n).(*pg.Node)
	walk(out.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if fd := m.ProtoReflect().Descriptor().Fields().ByName("location"); fd != nil {
			m.ProtoReflect().Clear(fd)
		}
	})
	return out
}

// hasQuery says whether there is a sub-query in an expression.
func hasQuery(n *pg.Node) (found bool) {
	if n == nil {
		return false
	}
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		_, ok := m.(*pg.SubLink)
		found = found || ok
	})
	return found
}

// groupedQuery is an expression with a sub-query, or a set-returning call, that is grouped by. What is written in the same
// way in the same scope is the same value; its SQL would have other names.
type groupedQuery struct {
	node  *pg.Node
	value expr
	// refs are the columns of a set-returning call, which is grouped by only as a part of more.
	refs []ref
}

// groupedValue is the value of an expression that is grouped by and has a sub-query, or is a
// set-returning call.
func (s *scope) groupedValue(n *pg.Node) (expr, bool) {
	call := n.GetFuncCall() != nil && s.noSets == ""
	if !s.grouped || s.aggDepth > 0 || len(s.groupQueries) == 0 || !call && !hasQuery(n) {
		return expr{}, false
	}
	bare := placeless(n)
	for _, g := range s.groupQueries {
		if proto.Equal(g.node, bare) {
			for _, r := range g.refs {
				s.refs = append(s.refs, ref{r.col, firstColumn(n)})
			}
			return g.value, true
		}
	}
	return expr{}, false
}

// firstColumn is where an expression names its first column.
func firstColumn(n *pg.Node) (loc int32) {
	loc = -1
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if cr, ok := m.(*pg.ColumnRef); ok && loc < 0 {
			loc = cr.Location
		}
	})
	return loc
}

// tiesOutside takes ORDER BY … FETCH FIRST … WITH TIES of a query with DISTINCT, or of a set
// operation, out of it: they are of its rows as a query in FROM.
func (a *analyzer) tiesOutside(sel *pg.SelectStmt) (*pg.SelectStmt, error) {
	unknown := unsupported("WITH TIES of this query is not supported").
		WithHint("Put the query into FROM: SELECT * FROM (…) q ORDER BY … FETCH FIRST … ROWS WITH TIES.")
	if a.record != nil || len(sel.LockingClause) > 0 {
		return nil, unknown
	}
	inner := proto.Clone(sel).(*pg.SelectStmt)
	inner.LimitCount, inner.LimitOffset, inner.LimitOption, inner.WithClause = nil, nil, pg.LimitOption_LIMIT_OPTION_DEFAULT, nil
	sorts := inner.SortClause
	if len(sel.DistinctClause) == 0 || sel.DistinctClause[0].GetNode() == nil {
		inner.SortClause = nil
	}
	out := &pg.SelectStmt{
		Op:         pg.SetOperation_SETOP_NONE,
		TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(pg.MakeColumnRefNode([]*pg.Node{pg.MakeAStarNode()}, -1), -1)},
		FromClause: []*pg.Node{{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: inner}}, Alias: &pg.Alias{Aliasname: "q"},
		}}}},
		LimitCount: sel.LimitCount, LimitOffset: sel.LimitOffset, LimitOption: sel.LimitOption, WithClause: sel.WithClause,
	}
	for _, n := range sorts {
		sb := proto.Clone(n.GetSortBy()).(*pg.SortBy)
		if len(sel.DistinctClause) > 0 {
			at := targetPlace(sb.Node, sel.TargetList)
			if at < 0 {
				return nil, unknown
			}
			sb.Node = pg.MakeAConstIntNode(int64(at+1), -1)
		}
		out.SortClause = append(out.SortClause, &pg.Node{Node: &pg.Node_SortBy{SortBy: sb}})
	}
	return out, nil
}

// targetPlace is which target an item of ORDER BY is, -1 for one that is not known to be any.
func targetPlace(n *pg.Node, list []*pg.Node) int {
	if i := n.GetAConst().GetIval(); i != nil {
		return int(i.Ival) - 1
	}
	names, star := fieldNames(n.GetColumnRef().GetFields())
	bare, found := placeless(n), -1
	for i, t := range list {
		rt := t.GetResTarget()
		if hasStar(list[:i+1]) {
			return -1
		}
		name := rt.Name
		if name == "" {
			name = outputName(rt.Val)
		}
		switch {
		case !star && len(names) == 1 && names[0] == name, proto.Equal(placeless(rt.Val), bare):
			if found >= 0 && !proto.Equal(placeless(list[found].GetResTarget().Val), placeless(rt.Val)) {
				return -1
			}
			found = i
		}
	}
	return found
}

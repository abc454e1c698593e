package pgsql

import (
	"regexp"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// aliased is an end of a part of FROM that has one name in the engine's SQL.
var aliased = regexp.MustCompile(` AS ([a-z]+_[0-9]+)$`)

// lateralJoin prints a left or right join whose condition has a sub-query of both sides, which the
// engine cannot run as it is: the side that may be missing becomes a query of the rows that the
// other one's row goes with.
func lateralJoin(n *pg.JoinExpr, cond string, left, right *source) (sql string, ok bool) {
	kept, missing := left, right
	switch n.Jointype {
	case pg.JoinType_JOIN_LEFT:
	case pg.JoinType_JOIN_RIGHT:
		kept, missing = right, left
	default:
		return "", false
	}
	name := aliased.FindStringSubmatch(missing.sql)
	if name == nil || !asksOfBoth(n.Quals, left, right) {
		return "", false
	}
	return "(" + kept.sql + " LEFT JOIN LATERAL (SELECT * FROM " + missing.sql + " WHERE " + cond + ") AS " + name[1] + " ON true)", true
}

// asksOfBoth says whether a sub-query of a condition names both sides of a join.
func asksOfBoth(cond *pg.Node, left, right *source) (found bool) {
	if cond == nil {
		return false
	}
	walk(cond.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		query, ok := m.(*pg.SubLink)
		if !ok || found {
			return
		}
		var l, r bool
		walk(query.ProtoReflect(), func(m protoreflect.ProtoMessage) {
			if ref, ok := m.(*pg.ColumnRef); ok {
				l, r = l || left.named(ref), r || right.named(ref)
			}
		})
		found = l && r
	})
	return found
}

// named says whether a reference names a column of a part of FROM by its table.
func (s *source) named(ref *pg.ColumnRef) bool {
	names, _ := fieldNames(ref.Fields)
	if len(names) < 2 {
		return false
	}
	for _, it := range s.items {
		if it.name == names[len(names)-2] {
			return true
		}
	}
	return false
}

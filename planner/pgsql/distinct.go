package pgsql

import (
	"regexp"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// numbered are the parts of the engine's SQL that differ where the same is analysed twice.
var numbered = regexp.MustCompile(`\b([a-z]+)_[0-9]+\b`)

// distinctOrder checks what ORDER BY may name beside DISTINCT: items of the select list; and
// beside DISTINCT ON the items of it first.
func (a *analyzer) distinctOrder(sel *pg.SelectStmt, s *scope, targets []target) error {
	key := func(n *pg.Node, clause string) (string, int32, error) {
		e, err := a.itemExpr(n, s, targets, clause)
		if err == nil {
			e, err = a.settled(e)
		}
		return numbered.ReplaceAllString(e.sql, "${1}_"), e.loc, err
	}
	if sel.DistinctClause[0].GetNode() == nil {
		var list []string
		for _, t := range targets {
			e, err := a.settled(t.expr)
			if err != nil {
				return err
			}
			list = append(list, numbered.ReplaceAllString(e.sql, "${1}_"))
		}
		for _, n := range sel.SortClause {
			sql, loc, err := key(n.GetSortBy().Node, "ORDER BY")
			if err != nil {
				return err
			}
			if !slices.Contains(list, sql) {
				return a.errAt(loc, pgerr.New(codes.InvalidColumnReference,
					"for SELECT DISTINCT, ORDER BY expressions must appear in select list"))
			}
		}
		return nil
	}
	var on []string
	for _, n := range sel.DistinctClause {
		sql, _, err := key(n, "DISTINCT ON")
		if err != nil {
			return err
		}
		if !slices.Contains(on, sql) {
			on = append(on, sql)
		}
	}
	found := map[string]bool{}
	for _, n := range sel.SortClause {
		if len(found) == len(on) {
			break
		}
		sql, loc, err := key(n.GetSortBy().Node, "ORDER BY")
		if err != nil {
			return err
		}
		if !slices.Contains(on, sql) {
			return a.errAt(loc, pgerr.New(codes.InvalidColumnReference,
				"SELECT DISTINCT ON expressions must match initial ORDER BY expressions"))
		}
		found[sql] = true
	}
	return nil
}

var errTiesUnordered = pgerr.New(codes.Syntax, "WITH TIES cannot be specified without ORDER BY clause")

// withTies prints ORDER BY … FETCH FIRST n ROWS WITH TIES: the rows of which fewer than n come
// strictly before, as a window sees them.
func (a *analyzer) withTies(sel *pg.SelectStmt, s *scope, order string, tail *strings.Builder) error {
	if order == "" && len(sel.SortClause) == 0 {
		return errTiesUnordered
	}
	if err := a.checkGrouping(s); err != nil {
		return err
	}
	bound := func(n *pg.Node, word string) (string, error) {
		if n == nil || n.GetAConst().GetIsnull() {
			return "", nil
		}
		one := &pg.SelectStmt{LimitCount: n}
		if word == "OFFSET" {
			one = &pg.SelectStmt{LimitOffset: n}
		}
		sql, err := a.limit(one, s)
		return strings.TrimPrefix(sql, " "+word+" "), err
	}
	count, err := bound(sel.LimitCount, "LIMIT")
	if err != nil {
		return err
	}
	if count == "" {
		return pgerr.New(codes.InvalidRowCountInLimitClause, "row count cannot be null in FETCH FIRST ... WITH TIES clause")
	}
	offset, err := bound(sel.LimitOffset, "OFFSET")
	if err != nil {
		return err
	}
	window := " OVER (" + strings.TrimSpace(order) + ")"
	tail.WriteString(" QUALIFY ")
	if offset != "" {
		tail.WriteString("row_number()" + window + " > (" + offset + ") AND ")
		count = "(" + count + ") + (" + offset + ")"
	}
	tail.WriteString("rank()" + window + " <= " + count + order)
	return nil
}

package pgsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// KeyedTable is a table of a cursor's query whose current row UPDATE and DELETE may name.
type KeyedTable struct {
	Relation *Relation
	// First is the place of the first column of its key among the query's: the others follow.
	First int
	// Twice says that the query reads it more than once.
	Twice bool
}

// KeyedRows gives the query of a cursor which has, behind its columns, those of the keys of the
// tables whose current row it has; the query itself, and no tables, where none of its rows is
// one of a table's. columns is how many it has; may says whether the keys of a table may be read.
func KeyedRows(sel *pg.SelectStmt, columns int, env *Env, may func(*Relation) bool) (*pg.SelectStmt, []KeyedTable) {
	if !RowsOfTables(sel) {
		return sel, nil
	}
	k := &keyedRows{backward: backward{analyzer: &analyzer{env: env}}, sel: sel, next: columns, may: may}
	if sel.WithClause != nil {
		k.with = append(k.with, sel)
	}
	for _, n := range sel.FromClause {
		k.from(n)
	}
	if len(k.tables) == 0 {
		return sel, nil
	}
	out := proto.Clone(sel).(*pg.SelectStmt)
	out.TargetList = append(out.TargetList, k.targets...)
	return out, k.tables
}

// RowsOfTables says that each row of a query may be a row of a table: it is not made of several,
// nor of a join whose rows are not locked.
func RowsOfTables(sel *pg.SelectStmt) bool {
	if sel.Op > pg.SetOperation_SETOP_NONE || len(sel.ValuesLists) > 0 || len(sel.DistinctClause) > 0 || computed(sel) {
		return false
	}
	return len(sel.LockingClause) > 0 || len(sel.FromClause) == 1 && sel.FromClause[0].GetJoinExpr() == nil && !joins(sel.WhereClause)
}

// ReadsWithin says that rows of a query may be rows of a table that is read within another query in
// its FROM.
func ReadsWithin(sel *pg.SelectStmt, a *Analysis) bool {
	return RowsOfTables(sel) && (sel.WithClause != nil || len(a.Views) > 0 ||
		slices.ContainsFunc(sel.FromClause, func(n *pg.Node) bool { return n.GetRangeSubselect() != nil }))
}

type keyedRows struct {
	backward
	sel     *pg.SelectStmt
	may     func(*Relation) bool
	next    int
	targets []*pg.Node
	tables  []KeyedTable
}

// from looks for tables in an item of FROM.
func (k *keyedRows) from(n *pg.Node) {
	if j := n.GetJoinExpr(); j != nil && len(k.sel.LockingClause) > 0 && j.Alias == nil {
		k.from(j.Larg)
		k.from(j.Rarg)
	}
	v := n.GetRangeVar()
	if v == nil || v.Alias != nil && len(v.Alias.Colnames) > 0 || v.Schemaname == "" && k.named(v.Relname) {
		return
	}
	name := v.Relname
	if v.Alias != nil {
		name = v.Alias.Aliasname
	}
	rel, err := k.relation(v.Schemaname, v.Relname, -1)
	if err != nil || !rel.Own && !rel.Temp || rel.View != "" || rel.Materialized || len(rel.Key) == 0 || !k.locks(name) || !k.may(rel) {
		return
	}
	if i := slices.IndexFunc(k.tables, func(t KeyedTable) bool { return t.Relation.OID == rel.OID }); i >= 0 {
		k.tables[i].Twice = true
		return
	}
	k.tables = append(k.tables, KeyedTable{Relation: rel, First: k.next})
	for _, i := range rel.Key {
		k.targets = append(k.targets, pg.MakeResTargetNodeWithVal(
			pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(name), pg.MakeStrNode(rel.Columns[i].Name)}, -1), -1))
	}
	k.next += len(rel.Key)
}

// named says that a name is that of a query of WITH.
func (k *keyedRows) named(name string) bool {
	return slices.ContainsFunc(k.sel.GetWithClause().GetCtes(), func(n *pg.Node) bool { return n.GetCommonTableExpr().Ctename == name })
}

// locks says that the rows of an item of FROM are locked, or that no rows are.
func (k *keyedRows) locks(name string) bool {
	return len(k.sel.LockingClause) == 0 || slices.ContainsFunc(k.sel.LockingClause, func(n *pg.Node) bool {
		rels := n.GetLockingClause().LockedRels
		return len(rels) == 0 || slices.ContainsFunc(rels, func(n *pg.Node) bool { return n.GetRangeVar().Relname == name })
	})
}

// CurrentRow is the row on which a cursor stands, for an UPDATE or DELETE that names the cursor.
type CurrentRow struct {
	// Known says that there is a row, whose key the parameters from Param on have; they are
	// counted from 1.
	Known bool
	Param int
}

// CurrentOf is the cursor on whose row an UPDATE or DELETE works, "" for any other.
func CurrentOf(n *pg.Node) string {
	where := n.GetUpdateStmt().GetWhereClause()
	if d := n.GetDeleteStmt(); d != nil {
		where = d.WhereClause
	}
	return where.GetCurrentOfExpr().GetCursorName()
}

// where is the condition of an UPDATE or DELETE of a table: for the current row of a cursor, that
// the row has its key.
func (w *writer) where(table *pg.RangeVar, n *pg.Node) (*pg.Node, error) {
	if n.GetCurrentOfExpr() == nil {
		return n, nil
	}
	rel := w.out.Relation
	switch {
	case w.view != nil:
		return nil, unsupported("WHERE CURRENT OF on a view is not implemented")
	case w.row == nil:
		return nil, unsupported("WHERE CURRENT OF is not supported here").WithHint("Send the statement alone.")
	case len(rel.Key) == 0:
		return nil, unsupported("WHERE CURRENT OF of a table without a primary key is not supported").
			WithHint("ALTER TABLE %s ADD PRIMARY KEY …", quote.NameIfNeeded(rel.Name))
	}
	name := table.Relname
	if table.Alias != nil {
		name = table.Alias.Aliasname
	}
	var parts []string
	for i, place := range rel.Key {
		parts = append(parts, fmt.Sprintf("%s.%s = $%d", quote.Name(name), quote.Name(rel.Columns[place].Name), w.row.Param+i))
	}
	if !w.row.Known {
		parts = []string{"false"}
	}
	condition, err := pg.Parse("SELECT WHERE " + strings.Join(parts, " AND "))
	if err != nil {
		return nil, fmt.Errorf("row of a cursor: %w", err)
	}
	return condition.Stmts[0].Stmt.GetSelectStmt().WhereClause, nil
}

// ErrNotUpdatable is the error of a cursor that has no current row of a table.
func ErrNotUpdatable(cursor, table string, locks bool) *pgerr.Error {
	if locks {
		return pgerr.New(codes.InvalidCursorState, "cursor \"%s\" does not have a FOR UPDATE/SHARE reference to table \"%s\"", cursor, table)
	}
	return pgerr.New(codes.InvalidCursorState, "cursor \"%s\" is not a simply updatable scan of table \"%s\"", cursor, table)
}

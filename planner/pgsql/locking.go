package pgsql

import (
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// RowLock is what FOR UPDATE and its like ask for of one table.
type RowLock struct {
	Relation *Relation
	// Word is the clause: FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE, FOR KEY SHARE.
	Word string
	// NoWait has the statement fail when others have the table; with Skip its rows are passed
	// over then.
	NoWait, Skip bool
	// Mark stands in the SQL for whether the rows are the transaction's, "" without Skip.
	Mark string
}

// locking are the clauses of a query while its FROM is analysed.
type locking struct {
	clauses []*pg.LockingClause
	found   map[*pg.Node]bool // the names of OF that are in FROM
	// nullable counts the outer joins on whose nullable side the analysis is.
	nullable int
	marks    []string
}

var lockWords = map[pg.LockClauseStrength]string{
	pg.LockClauseStrength_LCS_FORKEYSHARE: "FOR KEY SHARE", pg.LockClauseStrength_LCS_FORSHARE: "FOR SHARE",
	pg.LockClauseStrength_LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE", pg.LockClauseStrength_LCS_FORUPDATE: "FOR UPDATE",
}

// lockingOf begins the analysis of a query's clauses, with those that the query around it has
// for all of its FROM; the function ends it.
func (a *analyzer) lockingOf(sel *pg.SelectStmt) func() {
	before := a.locking
	a.locking = &locking{found: map[*pg.Node]bool{}}
	for _, n := range sel.LockingClause {
		a.locking.clauses = append(a.locking.clauses, n.GetLockingClause())
	}
	a.locking.clauses = append(a.locking.clauses, a.inherited...)
	a.inherited = nil
	return func() { a.locking = before }
}

// lockable refuses clauses of a query whose rows are none of its tables'.
func lockable(sel *pg.SelectStmt, clauses []*pg.LockingClause) error {
	if sel.Op > pg.SetOperation_SETOP_NONE && (len(sel.Larg.LockingClause) > 0 || len(sel.Rarg.LockingClause) > 0) {
		part := sel.Larg
		if len(part.LockingClause) == 0 {
			part = sel.Rarg
		}
		clauses = []*pg.LockingClause{part.LockingClause[0].GetLockingClause()}
	}
	if len(clauses) == 0 {
		return nil
	}
	with := ""
	switch {
	case sel.Op > pg.SetOperation_SETOP_NONE:
		with = "UNION/INTERSECT/EXCEPT"
	case len(sel.DistinctClause) > 0:
		with = "DISTINCT clause"
	case len(sel.GroupClause) > 0:
		with = "GROUP BY clause"
	case sel.HavingClause != nil:
		with = "HAVING clause"
	default:
		return nil
	}
	return unsupported("%s is not allowed with %s", lockWords[clauses[0].Strength], with)
}

// lockedRows is what the WHERE of a query with the FROM just analysed must have besides: that
// its rows are the transaction's.
func (a *analyzer) lockedRows() (string, error) {
	for _, c := range a.locking.clauses {
		for _, n := range c.LockedRels {
			if !a.locking.found[n] {
				return "", a.errAt(n.GetRangeVar().Location, pgerr.New(codes.UndefinedTable, "relation \"%s\" in %s clause not found in FROM clause",
					n.GetRangeVar().Relname, lockWords[c.Strength]))
			}
		}
	}
	out := ""
	for _, m := range a.locking.marks {
		out += " AND " + m
	}
	return out, nil
}

// lockItem notes what the clauses ask for of a relation in FROM; rel is nil for what is no
// table: kind says what it is.
func (a *analyzer) lockItem(name string, rel *Relation, kind string) error {
	l := a.locking
	if l == nil {
		return nil
	}
	for _, c := range l.clauses {
		word := lockWords[c.Strength]
		named := slices.IndexFunc(c.LockedRels, func(n *pg.Node) bool { return n.GetRangeVar().Relname == name })
		if named < 0 && len(c.LockedRels) > 0 {
			continue
		}
		if named >= 0 {
			l.found[c.LockedRels[named]] = true
		}
		switch {
		case rel == nil && named < 0:
			continue
		case rel == nil:
			return unsupported("%s cannot be applied to a %s", word, kind)
		case l.nullable > 0:
			return unsupported("%s cannot be applied to the nullable side of an outer join", word)
		case rel.View != "":
			return unsupported("%s of a view is not supported", word).WithHint("Lock the rows of its tables.")
		case !rel.Own && !rel.Temp:
			return pgerr.New(codes.WrongObjectType, "cannot lock rows in relation \"%s\"", rel.Name).
				WithDetail("Statements here do not change it, and cannot keep others from it.").
				WithHint("Leave %s out: a REPEATABLE READ transaction sees the same rows until it ends.", word)
		}
		a.lock(RowLock{
			Relation: rel, Word: word, NoWait: c.WaitPolicy == pg.LockWaitPolicy_LockWaitError,
			Skip: c.WaitPolicy == pg.LockWaitPolicy_LockWaitSkip,
		})
	}
	return nil
}

func (a *analyzer) lock(r RowLock) {
	if r.Skip {
		r.Mark = fmt.Sprintf("\x01lock%d\x01", len(a.locks))
		a.locking.marks = append(a.locking.marks, r.Mark)
	}
	a.locks = append(a.locks, r)
}

// passLocks has the query in a FROM take over the clauses that are of all of it, or name it.
func (a *analyzer) passLocks(name string) {
	a.inherited = nil
	if a.locking == nil {
		return
	}
	for _, c := range a.locking.clauses {
		all := len(c.LockedRels) == 0
		for _, n := range c.LockedRels {
			if n.GetRangeVar().Relname == name {
				a.locking.found[n], all = true, true
			}
		}
		if all {
			a.inherited = append(a.inherited, &pg.LockingClause{Strength: c.Strength, WaitPolicy: c.WaitPolicy})
		}
	}
}

// nullableSide analyses a side of a join.
func (a *analyzer) nullableSide(n *pg.Node, s *scope, nullable bool) (*source, error) {
	if nullable {
		a.nullable++
		defer func() { a.nullable-- }()
	}
	if nullable && a.locking != nil {
		a.locking.nullable++
		defer func() { a.locking.nullable-- }()
	}
	return a.fromNode(n, s)
}

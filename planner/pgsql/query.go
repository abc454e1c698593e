package pgsql

import (
	"fmt"
	"strings"
)

// target is an output column of a query.
type target struct {
	name string
	expr expr
}

// query is an analysed query whose targets may still be cast before it is printed.
type query struct {
	with    string // "WITH … " or ""
	head    string // "SELECT DISTINCT "
	targets []target
	tail    string // " FROM … ORDER BY …"
	// body replaces head, targets and tail for set operations and VALUES; its columns
	// are c1, c2, …, and targets are references to them.
	body string
	// order is what follows a body.
	order string
}

// print renders the query; its output columns are named c1, c2, …. top says that
// nothing needs the names.
func (q *query) print(top bool) string {
	if q.body == "" {
		return q.with + q.head + printTargets(q.targets) + q.tail
	}
	plain := true
	for i, t := range q.targets {
		if t.expr.sql != fmt.Sprintf("s.c%d", i+1) {
			plain = false
		}
	}
	if plain {
		return q.with + q.body + q.order
	}
	return q.with + "SELECT " + printTargets(q.targets) + " FROM (" + q.body + q.order + ") AS s"
}

func printTargets(targets []target) string {
	var b strings.Builder
	for i, t := range targets {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s AS c%d", t.expr.sql, i+1)
	}
	return b.String()
}

// settle decides every open target as text, as a subquery's output is.
func (a *analyzer) settle(q *query) error {
	for i := range q.targets {
		e, err := a.settled(q.targets[i].expr)
		if err != nil {
			return err
		}
		q.targets[i].expr = e
	}
	return nil
}

func (a *analyzer) settled(e expr) (expr, error) {
	if !e.undecided() {
		return e, nil
	}
	return a.coerce(e, plain(OIDText), implicit)
}

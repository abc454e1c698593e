package own

import (
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// The tables whose rows refer to each other: a child's to a parent, a grandchild's to both.
const (
	parentTable = "parent"
	childTable  = "child"
	grandTable  = "grand"
)

// defaultParent is what a child refers to by default.
const defaultParent = int64(1)

// RelatedTables are the statements that make them, with every action that a foreign key has.
var RelatedTables = []string{
	"CREATE TABLE parent (id bigint PRIMARY KEY, what text)",
	"CREATE TABLE child (id bigint PRIMARY KEY, p bigint REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, " +
		"n bigint DEFAULT 1 REFERENCES parent ON DELETE SET NULL ON UPDATE SET DEFAULT)",
	"CREATE TABLE grand (id bigint PRIMARY KEY, c bigint REFERENCES child DEFERRABLE INITIALLY DEFERRED, " +
		"r bigint REFERENCES parent ON DELETE RESTRICT ON UPDATE RESTRICT)",
	"CREATE MATERIALIZED VIEW summary AS SELECT id, what FROM parent",
	"CREATE UNIQUE INDEX one_summary ON summary (id)",
}

// reference is a foreign key of one of them: a column of the child has the key of the parent.
type reference struct {
	child, column, parent string
	deferred              bool
}

var references = []reference{
	{childTable, "p", parentTable, false},
	{childTable, "n", parentTable, false},
	{grandTable, "r", parentTable, false},
	{grandTable, "c", childTable, true},
}

// related says whether a table has rows that refer to others, or are referred to.
func related(table string) bool {
	return table == parentTable || table == childTable || table == grandTable
}

// referring are the tables whose rows refer to those of a table, directly or not.
func referring(table string) []string {
	switch table {
	case parentTable:
		return []string{childTable, grandTable}
	case childTable:
		return []string{grandTable}
	}
	return nil
}

// cascade is what a TRUNCATE of a table needs to say.
func cascade(table string) string {
	if len(referring(table)) > 0 {
		return " CASCADE"
	}
	return ""
}

// relation is the text of a statement about foreign keys.
func (s *statement) relation() string {
	switch s.kind {
	case setImmediate:
		return "SET CONSTRAINTS ALL IMMEDIATE"
	case setDeferred:
		return "SET CONSTRAINTS ALL DEFERRED"
	case foreign:
		return "ALTER TABLE grand ADD CONSTRAINT grand_c_fkey FOREIGN KEY (c) REFERENCES child DEFERRABLE INITIALLY DEFERRED"
	case notForeign:
		return "ALTER TABLE grand DROP CONSTRAINT grand_c_fkey"
	case refresh:
		return "REFRESH MATERIALIZED VIEW " + summary
	case refreshConcurrently:
		return "REFRESH MATERIALIZED VIEW CONCURRENTLY " + summary
	}
	return "SELECT * FROM " + s.table + " WHERE " + s.where(s.shape) + " FOR UPDATE"
}

// place is a table as a statement finds it.
type place struct {
	table   *source.Table
	version *source.Version
	rows    []source.Row
}

// column is the place of a column, -1 for none.
func (p place) column(name string) int {
	return slices.IndexFunc(p.version.Columns, func(c source.Column) bool { return c.Name == name })
}

// places are the related tables as the client's next statement finds them; nil: nobody knows.
func (c *Client) places() map[string]place {
	out := map[string]place{}
	for _, name := range []string{parentTable, childTable, grandTable} {
		t, v := c.view(name)
		if t == nil {
			return nil
		}
		rows := c.ledger.rows(t)
		if c.txn != nil {
			rows = c.txn.rows(t, rows, true)
		}
		out[name] = place{t, v, rows}
	}
	return out
}

// enforced says whether the client's next statement finds a foreign key of the grandchild's.
func (c *Client) enforced() bool {
	d := c.ledger.definitions
	if c.txn != nil {
		d = c.txn.over(d)
	}
	return d[grandTable].foreign
}

// follow is what foreign keys make of what a statement changes of a table: out with what else
// it changes.
func (c *Client) follow(s *statement, out verdict) verdict {
	at := c.places()
	if at == nil || out.unknown {
		return verdict{unknown: true}
	}
	took := func(changes []source.Change) {
		for _, one := range changes {
			p := at[one.Table.Name]
			p.rows = apply(one.Table, p.rows, []source.Change{one})
			at[one.Table.Name] = p
		}
	}
	took(out.changes)
	switch {
	case s.kind == truncate:
		for _, name := range referring(s.table) {
			if s.table == childTable && !c.enforced() {
				continue
			}
			p := at[name]
			also := []source.Change{{Table: p.table, Version: p.version, Truncate: true}}
			took(also)
			out.changes = append(out.changes, also...)
		}
	case s.table == parentTable:
		also, refused := followParent(at, out.changes)
		if len(also) > 0 {
			c.server.hooks.Mark("rows followed their parent")
		}
		if refused {
			c.server.hooks.Mark("row kept its parent")
		}
		took(also)
		out.changes, out.dangling = append(out.changes, also...), refused
	}
	atOnce := (c.txn == nil || c.immediate) && c.enforced()
	out.dangling = out.dangling || dangles(at, false) || atOnce && dangles(at, true)
	return out
}

// owes says whether a row of the grandchild's refers to a child that is not there, as the client's
// next statement finds them.
func (c *Client) owes() bool {
	at := c.places()
	return at != nil && c.server.hooks.Leads() && dangles(at, true)
}

// followParent is what becomes of rows that refer to ones of the parent's which go, or get other
// keys; refused: something may not.
func followParent(at map[string]place, gone []source.Change) (out []source.Change, refused bool) {
	child, grand := at[childTable], at[grandTable]
	p, n, r := child.column("p"), child.column("n"), grand.column("r")
	became := map[any]any{} // by old key; nil: it is gone
	for _, c := range gone {
		if c.Old != nil && (c.New == nil || c.New[0] != c.Old[0]) {
			became[c.Old[0]] = nil
			if c.New != nil {
				became[c.Old[0]] = c.New[0]
			}
		}
	}
	for _, row := range grand.rows {
		if _, is := became[row[r]]; is && row[r] != nil {
			refused = true
		}
	}
	for _, row := range child.rows {
		c := source.Change{Table: child.table, Version: child.version, Op: change.Update, Old: row, New: slices.Clone(row)}
		if to, is := became[row[n]]; is && row[n] != nil {
			if c.New[n] = nil; to != nil {
				c.New[n] = defaultParent
			}
		}
		if to, is := became[row[p]]; is && row[p] != nil {
			if c.New[p] = to; to == nil {
				c.Op, c.New = change.Delete, nil
			}
		}
		if c.New == nil || !source.SameRow(c.New, row) {
			out = append(out, c)
		}
	}
	return out, refused
}

// dangles says whether a row refers to one that is not there, by a foreign key that is checked at
// the end of the transaction, or of the statement.
func dangles(at map[string]place, deferred bool) bool {
	for _, f := range references {
		if f.deferred != deferred {
			continue
		}
		child, parent := at[f.child], at[f.parent]
		there := map[any]bool{}
		for _, row := range parent.rows {
			there[row[0]] = true
		}
		i := child.column(f.column)
		if slices.ContainsFunc(child.rows, func(r source.Row) bool { return r[i] != nil && !there[r[i]] }) {
			return true
		}
	}
	return false
}

// whole makes sure that no row that is committed refers to one that is not.
func (l *Ledger) whole(token int64, changes []source.Change) {
	if !slices.ContainsFunc(changes, func(c source.Change) bool { return related(c.Table.Name) }) {
		return
	}
	at := map[string]place{}
	for _, t := range l.DB.Tables {
		if related(t.Name) {
			at[t.Name] = place{t, t.Current(), l.DB.Rows(t)}
		}
	}
	if dangles(at, false) || l.definitions[grandTable].foreign && dangles(at, true) {
		var rows []string
		for _, name := range slices.Sorted(maps.Keys(at)) {
			rows = append(rows, fmt.Sprintf("%s %v", name, at[name].rows))
		}
		l.Fail(labelForeign, fmt.Sprintf("after transaction %d a row refers to one that is not there: %v", token, rows))
	}
}

// Lacks is the first of the related tables that is known to have no rows, "" if there is none.
func (l *Ledger) Lacks() string {
	for _, name := range []string{parentTable, childTable, grandTable} {
		i := slices.IndexFunc(l.DB.Tables, func(t *source.Table) bool { return t.Name == name })
		if i >= 0 && len(l.DB.Rows(l.DB.Tables[i])) == 0 {
			return name
		}
	}
	return ""
}

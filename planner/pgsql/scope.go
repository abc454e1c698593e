package pgsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// column is a column that expressions may name.
type column struct {
	name string
	// sql renders it; of a relation it marks the column as used.
	sql      func() string
	typ      Type
	text     bool // see expr
	scale    int
	prec     int
	fields   []field
	whole    bool
	coll     uint32 // its collation, 0 for the default
	tableOID uint32
	attNum   int16
	// stored says that the engine's type is a relation's own, which the encoder knows
	// how to announce.
	stored bool
	item   *item // the item it belongs to
	index  int   // in the relation
	merged bool  // a USING column
	hidden bool  // not part of *, not named without its table (merged away)
	secret bool  // nor part of t.*
}

// item is something in FROM that has a name.
type item struct {
	name    string // "" for an unnamed join
	schema  string // of a table without an alias
	columns []*column
	use     *Use
	view    *Relation // of a view
	// nullable says that an outer join may leave it out; there is then SQL for whether it is
	// there, "" when no query asks.
	nullable bool
	there    string
}

// cte is a WITH query in force.
type cte struct {
	name    string
	columns []target // names and types
	alias   string   // in the SQL
	silent  bool     // a statement without RETURNING
}

// scope is the name space of one query level.
type scope struct {
	parent *scope
	items  []*item
	// columns are what a bare name or * finds, in order.
	columns []*column
	ctes    []*cte

	// Aggregation: whether the level has aggregates, what it groups by, and the plain
	// columns that were named outside of aggregates.
	grouped  bool
	hasAgg   bool
	groupSQL map[string]bool
	// groupKeys are the keys of what is grouped by another value than its own: numerics
	// that are text; groupSets says that a row may be of a grouping set without them.
	groupKeys map[string]string
	groupSets bool
	// groupQueries are expressions with sub-queries that it groups by.
	groupQueries []groupedQuery
	// sets are the set-returning calls that it groups by, which are items of its FROM, of the
	// name setsAs.
	sets     []string
	setsAs   string
	aggDepth int
	noAgg    string // why aggregates are not allowed here, "" when they are
	noSets   string // why set-returning functions are not allowed here, "" when they are
	refs     []ref
	windows  map[string]*pg.WindowDef
	// unseen is a table of the statement that this part of it cannot name, nil for none.
	unseen *item
}

// ref is a plain column named outside of an aggregate.
type ref struct {
	col *column
	loc int32
}

func (s *scope) findCTE(name string) *cte {
	for ; s != nil; s = s.parent {
		for i := len(s.ctes) - 1; i >= 0; i-- {
			if s.ctes[i].name == name {
				return s.ctes[i]
			}
		}
	}
	return nil
}

func (a *analyzer) undefinedColumn(loc int32, name string) error {
	return a.errAt(loc, pgerr.New(codes.UndefinedColumn, "column %s does not exist", name))
}

// columnRef resolves a column reference.
func (a *analyzer) columnRef(n *pg.ColumnRef, s *scope) (expr, error) {
	e, err := a.namedColumn(n, s)
	if err == nil && a.record != nil && e.col != nil {
		a.record.refs[n] = e.col
	}
	return e, err
}

func (a *analyzer) namedColumn(n *pg.ColumnRef, s *scope) (expr, error) {
	names, star := fieldNames(n.Fields)
	if star && len(names) > 0 {
		return a.qualifiedRow(names, n.Location, s)
	}
	if star {
		return expr{}, a.errAt(n.Location, pgerr.New(codes.Syntax, "row expansion via \"*\" is not supported here"))
	}
	switch len(names) {
	case 1:
		return a.bareColumn(names[0], n.Location, s)
	case 2:
		return a.qualifiedColumn("", names[0], names[1], n.Location, s)
	case 3:
		return a.qualifiedColumn(names[0], names[1], names[2], n.Location, s)
	case 4:
		return a.qualifiedColumn(names[1], names[2], names[3], n.Location, s)
	}
	return expr{}, a.errAt(n.Location, pgerr.New(codes.Syntax, "improper qualified name (too many dotted names): %s",
		strings.Join(names, ".")))
}

// qualifiedRow is t.* where one value is expected: the row.
func (a *analyzer) qualifiedRow(names []string, loc int32, s *scope) (expr, error) {
	schema, table := "", names[len(names)-1]
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	for at := s; at != nil; at = at.parent {
		it, err := a.findItem(at, schema, table, loc)
		if err != nil {
			return expr{}, err
		}
		if it != nil {
			return a.wholeRow(it, loc, at)
		}
	}
	return expr{}, a.errAt(loc, pgerr.New(codes.UndefinedTable, "missing FROM-clause entry for table \"%s\"", table))
}

func fieldNames(fields []*pg.Node) (names []string, star bool) {
	for _, f := range fields {
		if f.GetAStar() != nil {
			return names, true
		}
		names = append(names, f.GetString_().GetSval())
	}
	return names, false
}

func (a *analyzer) bareColumn(name string, loc int32, s *scope) (expr, error) {
	for at := s; at != nil; at = at.parent {
		var found *column
		for _, c := range at.columns {
			if c.name != name || c.hidden {
				continue
			}
			if found != nil {
				return expr{}, a.errAt(loc, pgerr.New(codes.AmbiguousColumn, "column reference \"%s\" is ambiguous", name))
			}
			found = c
		}
		if found != nil {
			return a.reference(found, loc, at), nil
		}
	}
	for at := s; at != nil; at = at.parent {
		for _, it := range at.items {
			if it.name != name {
				continue
			}
			if len(it.columns) == 1 && it.use == nil && it.columns[0].name == name {
				return a.reference(it.columns[0], loc, at), nil
			}
			return a.wholeRow(it, loc, at)
		}
	}
	if s != nil && len(s.items) == 1 {
		if e, ok := a.rowProperty(s.items[0], name, loc); ok {
			return e, nil
		}
		if err := a.noSystemColumn(s.items[0], name, loc); err != nil {
			return expr{}, err
		}
	}
	err := a.undefinedColumn(loc, fmt.Sprintf("\"%s\"", name))
	if it := s.hidden(); it != nil && slices.ContainsFunc(it.columns, func(c *column) bool { return c.name == name }) {
		e, _ := pgerr.As(err)
		err = e.WithHint("There is a column named \"%s\" in table \"%s\", but it cannot be referenced from this part of the query.", name, it.name)
	}
	return expr{}, err
}

// hidden is a table that the statement has and the scope cannot name, nil for none.
func (s *scope) hidden() *item {
	for ; s != nil; s = s.parent {
		if s.unseen != nil {
			return s.unseen
		}
	}
	return nil
}

func (a *analyzer) qualifiedColumn(schema, table, name string, loc int32, s *scope) (expr, error) {
	for at := s; at != nil; at = at.parent {
		it, err := a.findItem(at, schema, table, loc)
		if err != nil {
			return expr{}, err
		}
		if it == nil {
			continue
		}
		var found *column
		for _, c := range it.columns {
			if c.name != name {
				continue
			}
			if found != nil {
				return expr{}, a.errAt(loc, pgerr.New(codes.AmbiguousColumn, "column reference \"%s\" is ambiguous", name))
			}
			found = c
		}
		if found == nil {
			if e, ok := a.rowProperty(it, name, loc); ok {
				return e, nil
			}
			if err := a.noSystemColumn(it, name, loc); err != nil {
				return expr{}, err
			}
			return expr{}, a.undefinedColumn(loc, table+"."+name)
		}
		return a.reference(found, loc, at), nil
	}
	if it := s.hidden(); it != nil && it.name == table && schema == "" {
		return expr{}, a.errAt(loc, pgerr.New(codes.UndefinedTable, "invalid reference to FROM-clause entry for table \"%s\"", table).
			WithHint("There is an entry for table \"%s\", but it cannot be referenced from this part of the query.", table))
	}
	q := table
	if schema != "" {
		q = schema + "." + table
	}
	return expr{}, a.errAt(loc, pgerr.New(codes.UndefinedTable, "missing FROM-clause entry for table \"%s\"", q))
}

// rowProperty is a system column of a relation's rows: tableoid, and xmin, which is
// the same for all of them.
func (a *analyzer) rowProperty(it *item, name string, loc int32) (expr, bool) {
	if it.use == nil || name != "tableoid" && (name != "xmin" || !it.use.Relation.System) {
		return expr{}, false
	}
	if a.record != nil {
		a.record.systemColumns[it] = true
	}
	e := expr{sql: "CAST(1 AS BIGINT)", typ: plain(OIDXid), name: name, loc: loc, con: true}
	if name == "tableoid" {
		e.sql, e.typ = fmt.Sprintf("CAST(%d AS BIGINT)", it.use.Relation.OID), plain(OIDOid)
	}
	return e, true
}

// noSystemColumn refuses what PostgreSQL has of every row of a table, and we have not.
func (a *analyzer) noSystemColumn(it *item, name string, loc int32) error {
	switch name {
	case "ctid", "xmin", "xmax", "cmin", "cmax":
		if it.use != nil {
			return a.errAt(loc, unsupported("the system column \"%s\" is not supported", name).WithHint("Rows are told apart by their key."))
		}
	}
	return nil
}

func (a *analyzer) findItem(s *scope, schema, table string, loc int32) (*item, error) {
	var found *item
	for _, it := range s.items {
		if it.name != table || schema != "" && it.schema != schema {
			continue
		}
		if found != nil {
			return nil, a.errAt(loc, pgerr.New(codes.AmbiguousAlias, "table reference \"%s\" is ambiguous", table))
		}
		found = it
	}
	return found, nil
}

// reference makes the expression of a column and notes it for the grouping check.
func (a *analyzer) reference(c *column, loc int32, s *scope) expr {
	e := expr{
		sql: c.sql(), typ: c.typ, text: c.text, scale: c.scale, prec: c.prec, fields: c.fields, loc: loc,
		name: c.name, col: c, whole: c.whole, coll: derived{oid: c.coll},
	}
	if s.aggDepth > 0 || s.groupSQL[e.sql] {
		return e
	}
	if s.grouped && s.dependsOnKey(c) {
		e.sql = "any_value(" + e.sql + ")"
		return e
	}
	s.refs = append(s.refs, ref{c, loc})
	return e
}

// keyedValue is the value of what is grouped by a key of it: any of the group's, which
// are equal.
func (s *scope) keyedValue(e expr) expr {
	key := s.groupKeys[e.sql]
	value := "any_value(" + e.sql + ")"
	if s.groupSets {
		value = "CASE WHEN grouping(" + key + ") = 0 THEN " + value + " END"
	}
	e.sql, e.alt, e.dscale, e.col = value, nil, "", nil
	return e
}

// dependsOnKey reports whether the whole key of the column's table is grouped by,
// so that the column has one value per group.
func (s *scope) dependsOnKey(c *column) bool {
	if c.item == nil || c.item.use == nil || len(c.item.use.Relation.Key) == 0 {
		return false
	}
	for _, k := range c.item.use.Relation.Key {
		found := false
		for _, kc := range c.item.columns {
			if kc.index == k && s.groupSQL[kc.sql()] {
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// checkGrouping is PostgreSQL's rule on columns outside of aggregates.
func (a *analyzer) checkGrouping(s *scope) error {
	if !s.grouped && !s.hasAgg || len(s.refs) == 0 {
		return nil
	}
	r := s.refs[0]
	name := r.col.name
	if r.col.item != nil && r.col.item.name != "" {
		name = r.col.item.name + "." + name
	}
	return a.errAt(r.loc, pgerr.New(codes.Grouping,
		"column \"%s\" must appear in the GROUP BY clause or be used in an aggregate function", name))
}

// target is an output column of a query.
type target struct {
	name string
	expr expr
	// secret says that it is found by its qualified name only.
	secret bool
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
	if len(targets) == 0 { // the engine knows no rows without columns
		return "0 AS c0"
	}
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
		if err == nil {
			e, err = a.boxed(e)
		}
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

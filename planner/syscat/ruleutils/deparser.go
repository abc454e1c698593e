package ruleutils

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// Column is a column of a relation.
type Column struct {
	Name string
	Type uint32
	Mod  int32
}

// Names finds what a query names.
type Names interface {
	// Relation is a relation's schema, along the search path if it is not given, and its columns.
	Relation(schema, name string) (in string, columns []Column, ok bool)
	// TypeName is the type that is written so.
	TypeName(*pg.TypeName) (oid uint32, mod int32, err error)
	// EnumName is how an enumerated type, or that of its arrays, is written, "" for what is none.
	EnumName(oid uint32) string
}

// Deparser shows queries and expressions. Safe for concurrent use as far as its Names are.
type Deparser struct {
	Facts *Facts
	Names Names
	// Path is the search path: what it finds is written without its schema.
	Path []string
	// Zone is the session's time zone.
	Zone string
}

// visible reports whether a relation is found without its schema.
func (d *Deparser) visible(schema, name string) bool {
	for _, s := range d.Path {
		if s == schema {
			return true
		}
		if _, _, ok := d.Names.Relation(s, name); ok {
			return false
		}
	}
	return false
}

// View is the query of a view whose columns have these names, as pg_get_viewdef shows it.
func (d *Deparser) View(sel *pg.SelectStmt, names []string, pretty bool) (string, error) {
	r := &resolver{d: d, facts: d.Facts}
	q, err := r.query(sel, nil, false)
	if err != nil {
		return "", err
	}
	if len(names) != len(q.targets) {
		return "", unknown("the number of columns")
	}
	unique(q, []string{"old", "new"})
	p := &printer{d: d, pretty: pretty, buf: &strings.Builder{}}
	p.query(q, names, true)
	return p.buf.String() + ";", p.err
}

// Expression is an expression over a relation's columns, cast to a type unless it is 0, as
// pg_get_expr shows it.
func (d *Deparser) Expression(n *pg.Node, columns []Column, to Column, pretty bool) (string, error) {
	r := &resolver{d: d, facts: d.Facts}
	q := &query{}
	s := &scope{query: q}
	rel := &relation{kind: tableRelation}
	for _, c := range columns {
		s.columns = append(s.columns, visible{name: c.Name, expr: &variable{typed: typed{c.Type, c.Mod}, rel: rel, name: c.Name}})
	}
	e, err := r.expr(n, s)
	if err != nil {
		return "", err
	}
	if to.Type != 0 {
		if e, err = r.coerce(e, typed{to.Type, to.Mod}, assignment, false); err != nil {
			return "", err
		}
	}
	p := &printer{d: d, pretty: pretty, buf: &strings.Builder{}}
	p.expr(e, false)
	return p.buf.String(), p.err
}

// literalText is a constant whose text is put together by its type.
type literalText struct {
	typed
	text string
}

// unique gives the relations of a query, and of those in it, names that are not yet seen there.
func unique(q *query, taken []string) {
	taken = slices.Clone(taken)
	counts := map[string]int{}
	for _, r := range q.relations {
		name := r.shown
		if name == "" {
			continue
		}
		for slices.Contains(taken, r.shown) {
			counts[name]++
			r.shown = name + "_" + itoa(counts[name])
		}
		taken = append(taken, r.shown)
	}
	for _, inner := range inQuery(q) {
		unique(inner, taken)
	}
}

// relationConstant is the constant of a regclass.
func (d *Deparser) relationConstant(text string) (node, error) {
	parts := strings.Split(text, ".")
	if strings.Contains(text, `"`) || len(parts) > 2 {
		return nil, unknown("relation %s", text)
	}
	schema, name := "", parts[len(parts)-1]
	if len(parts) == 2 {
		schema = parts[0]
	}
	in, _, ok := d.Names.Relation(schema, name)
	if !ok {
		return nil, unknown("relation %s", text)
	}
	shown := quote.NameIfNeeded(name)
	if !d.visible(in, name) {
		shown = quote.NameIfNeeded(in) + "." + shown
	}
	return &literalText{typed: typed{2205, -1}, text: quote.Text(shown) + "::regclass"}, nil
}

package pgsql

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// What unique indexes are of besides columns: expressions, and the rows that meet a predicate. Both are
// computed by the engine alone, of the rows that are written and of those that there are, by the same SQL.

// The parts of an index that are expressions, as messages name them.
const (
	InIndex     = "index expression"
	InPredicate = "index predicate"
)

// IndexPart is an expression of an index, or its condition. Columns are those that it names, Name is
// what the index calls its value.
type IndexPart struct {
	SQL, Name string
	Type      Type
	Collation uint32
	Columns   []string
}

// SettleIndex is an expression of an index of a relation, or, of InPredicate, its condition: with its
// literals settled and its columns named without the relation. statement is the text that it is part of.
func SettleIndex(n *pg.Node, rel *Relation, part, statement string, env *Env) (out IndexPart, err error) {
	a := &analyzer{env: env, sql: statement, fold: true, types: map[*pg.Node]Type{}}
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch v := m.(type) {
		case *pg.SubLink:
			err = a.errAt(v.Location, unsupported("cannot use subquery in %s", part))
		case *pg.ParamRef:
			err = a.errAt(v.Location, pgerr.New(codes.UndefinedParameter, "there is no parameter $%d", v.Number))
		case *pg.ColumnRef:
			if names, star := fieldNames(v.Fields); err == nil && (star || len(names) > 0) {
				err = mayIndex(names, star, rel)
			}
		}
	})
	if err != nil {
		return out, err
	}
	e, err := a.indexPart(n, rel, part)
	if err == nil {
		err = a.immutable(n, e.typ)
		var unknown unknownMutable
		switch {
		case errors.Is(err, errMutable):
			err = pgerr.New(codes.InvalidObjectDefinition, "functions in %s must be marked IMMUTABLE", part)
		case errors.As(err, &unknown):
			err = unsupported("%s in an %s is not supported", unknown.what, part)
		}
	}
	if err != nil {
		return out, err
	}
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if v, ok := m.(*pg.ColumnRef); ok {
			v.Fields = v.Fields[len(v.Fields)-1:]
		}
	})
	out.Type, out.Collation, out.Name = e.typ, e.coll.column(), indexName(n)
	if out.SQL, err = ExpressionText(n); err != nil {
		return out, err
	}
	out.Columns, err = ConditionColumns(out.SQL)
	return out, err
}

// indexName is what an index calls the value of an expression.
func indexName(n *pg.Node) string {
	name, _ := figureName(n)
	return cmp.Or(name, "expr")
}

func (a *analyzer) indexPart(n *pg.Node, rel *Relation, part string) (expr, error) {
	src, err := a.relationSource(rel, &pg.RangeVar{Relname: rel.Name, Location: -1})
	if err != nil {
		return expr{}, err
	}
	s := &scope{noAgg: part + "s", columns: src.columns}
	if err := a.addItems(s, src.items); err != nil {
		return expr{}, err
	}
	if part == InPredicate {
		return a.condition(n, s, "WHERE")
	}
	e, err := a.expr(n, s)
	if err == nil && e.undecided() {
		e, err = a.coerce(e, plain(OIDText), implicit)
	}
	if err == nil && e.row != nil {
		err = pgerr.New(codes.FeatureNotSupported, "indexes of rows are not supported")
	}
	if len(a.effects)+len(a.locks) > 0 {
		err = unsupported("functions that act on the server are not supported in %ss", part)
	}
	return e, err
}

// mayIndex refuses a column that no index can be of.
func mayIndex(names []string, star bool, rel *Relation) error {
	name := ""
	if len(names) > 0 {
		name = names[len(names)-1]
	}
	switch {
	case slices.ContainsFunc(rel.Columns, func(c RelationColumn) bool { return c.Name == name }):
	case star, name == rel.Name && len(names) == 1:
		return unsupported("indexes of whole rows are not supported")
	case slices.Contains([]string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}, name):
		return unsupported("index creation on system columns is not supported")
	}
	return nil
}

// indexed says whether it is of more than columns, and rows that one look at each column tells.
func (u Unique) indexed() bool { return len(u.Expressions) > 0 || u.Predicate != "" }

// computing analyses the expressions of unique indexes over one use of a relation.
type computing struct {
	w *writer
	s *scope
}

// computingOf is of the columns of an item.
func (w *writer) computingOf(it *item) (*computing, error) {
	s := &scope{columns: it.columns}
	bare := *it
	return &computing{w, s}, w.addItems(s, []*item{&bare})
}

// predicate is the condition on the rows that an index is of, "" for none.
func (c *computing) predicate(u Unique) (string, error) {
	if u.Predicate == "" {
		return "", nil
	}
	n, err := ParseExpression(u.Predicate)
	if err != nil {
		return "", fmt.Errorf("predicate of %s: %w", quote.Name(u.Name), err)
	}
	e, err := c.w.condition(n, c.s, "WHERE")
	return e.sql, c.bare(u.Predicate, err)
}

// bare is an error without its place, which is one in a text of ours.
func (c *computing) bare(_ string, err error) error {
	if e, ok := pgerr.As(err); ok {
		return e.WithPosition(0)
	}
	return err
}

// values are the values by which rows are unique, in the order of the index's columns: where it is not
// of a row its expressions are null.
func (c *computing) values(u Unique, column func(int) string) ([]string, error) {
	where, err := c.predicate(u)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(u.Columns))
	next := 0
	for _, i := range u.Columns {
		if i >= 0 {
			out = append(out, column(i))
			continue
		}
		x := u.Expressions[next]
		next++
		n, err := ParseExpression(x.Generated)
		if err != nil {
			return nil, fmt.Errorf("expression of %s: %w", quote.Name(u.Name), err)
		}
		sql, err := c.w.value(n, x, c.s)
		if err != nil {
			return nil, c.bare(x.Generated, err)
		}
		if where != "" {
			sql = "CASE WHEN " + where + " THEN " + sql + " END"
		}
		out = append(out, sql)
	}
	return out, nil
}

// equal are the conditions on two rows that make them equal by an index.
func (w *writer) equal(u Unique, a, b *item) ([]string, error) {
	var sides [2][]string
	var out []string
	for at, it := range []*item{a, b} {
		c, err := w.computingOf(it)
		if err != nil {
			return nil, err
		}
		if sides[at], err = c.values(u, func(i int) string { return it.columns[i].sql() }); err != nil {
			return nil, err
		}
		where, err := c.predicate(u)
		if err != nil {
			return nil, err
		}
		if where != "" {
			out = append(out, where)
		}
		if at == 0 {
			out = append(out, u.meets(func(i int) string { return it.columns[i].sql() })...)
		}
	}
	for i, left := range sides[0] {
		out = append(out, u.same(left, sides[1][i]))
	}
	return out, nil
}

// AnalyzeIndexed is a query of what the unique indexes of a relation are of besides columns, after the
// places of the rows: of each in turn its expressions, and whether it is of the row. Its one use
// stands for the rows: all columns of the relation and their place.
func AnalyzeIndexed(rel *Relation, env *Env) (*Analysis, error) {
	a := &analyzer{env: env}
	w, s, src, err := generating(a, rel)
	if err != nil {
		return nil, err
	}
	list := []string{src.columns[len(rel.Columns)].sql() + " AS c1"}
	add := func(sql string) { list = append(list, fmt.Sprintf("%s AS c%d", sql, len(list)+1)) }
	c := &computing{w, s}
	for _, u := range rel.Uniques {
		if !u.indexed() {
			continue
		}
		values, err := c.values(u, func(int) string { return "" })
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if u.Columns[i] < 0 {
				add(v)
			}
		}
		where, err := c.predicate(u)
		if err != nil {
			return nil, err
		}
		if where != "" {
			add("coalesce(CAST(" + where + " AS BOOLEAN), false)")
		}
	}
	a.uses[0].Target = true // it reads the rows that are written, which needs no right to read
	return w.finished("SELECT " + strings.Join(list, ", ") + " FROM " + src.sql), nil
}

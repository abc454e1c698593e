package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Unique says that no two rows of a relation have equal values, without nulls or with them, in
// some columns.
type Unique struct {
	Name string
	// Columns are indexes into the relation's columns.
	Columns []int
	// Constraint says that it is a constraint, which ON CONFLICT may name.
	Constraint bool
	// NullsEqual says that nulls are equal to each other there: NULLS NOT DISTINCT.
	NullsEqual bool
	// Where are what the rows meet that it is of.
	Where []Condition
}

// Condition is what rows meet in a column.
type Condition struct {
	Column int
	Test   schema.RowTest
}

// meets are the conditions on a row, given its columns as SQL.
func (u Unique) meets(column func(int) string) (out []string) {
	for _, c := range u.Where {
		out = append(out, c.Test.SQL(column(c.Column)))
	}
	return out
}

// ReadConditions reads a condition on the rows of a relation: false when it is none, or not all, of
// conditions on one column each.
func ReadConditions(rel *Relation, n *pg.Node) (out []Condition, ok bool) {
	parts := []*pg.Node{n}
	if b := n.GetBoolExpr(); b.GetBoolop() == pg.BoolExprType_AND_EXPR {
		parts = b.Args
	}
	for _, p := range parts {
		c, ok := readCondition(rel, p)
		if !ok {
			return nil, false
		}
		out = append(out, c)
	}
	return out, true
}

func readCondition(rel *Relation, n *pg.Node) (Condition, bool) {
	c := Condition{Test: schema.RowIs}
	operand := n
	switch {
	case n.GetNullTest() != nil:
		operand, c.Test = n.GetNullTest().Arg, schema.RowIsNull
		if n.GetNullTest().Nulltesttype == pg.NullTestType_IS_NOT_NULL {
			c.Test = schema.RowIsNotNull
		}
	case n.GetBoolExpr().GetBoolop() == pg.BoolExprType_NOT_EXPR:
		operand, c.Test = n.GetBoolExpr().Args[0], schema.RowIsNot
	case n.GetAExpr() != nil:
		e := n.GetAExpr()
		b, isBool := e.GetRexpr().GetAConst().GetVal().(*pg.A_Const_Boolval)
		if e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || e.Name[0].GetString_().GetSval() != "=" || !isBool {
			return c, false
		}
		operand, c.Test = e.Lexpr, schema.RowEqFalse
		if b.Boolval.GetBoolval() {
			c.Test = schema.RowEqTrue
		}
	}
	fields := operand.GetColumnRef().GetFields()
	if len(fields) == 2 && fields[0].GetString_() != nil && fields[0].GetString_().Sval == rel.Name {
		fields = fields[1:]
	}
	if len(fields) != 1 || fields[0].GetString_() == nil {
		return c, false
	}
	c.Column = slices.IndexFunc(rel.Columns, func(r RelationColumn) bool { return r.Name == fields[0].GetString_().Sval })
	return c, c.Column >= 0 && (!c.Test.Boolean() || rel.Columns[c.Column].Type.OID == OIDBool)
}

// same is a comparison of values of it that are equal.
func (u Unique) same(a, b string) string {
	if u.NullsEqual {
		return a + " IS NOT DISTINCT FROM " + b
	}
	return a + " = " + b
}

// place is the name of the column that numbers the rows asked about.
const place = "skippr place"

// AnalyzeTaken is a query that gives, of rows of a unique's columns and their place, the
// places of those whose values a row of the relation has; with twice, those whose values
// several rows have. Its first use stands for the rows asked about.
func AnalyzeTaken(rel *Relation, u Unique, twice bool, env *Env) (*Analysis, error) {
	a := &analyzer{env: env}
	given := &Relation{Name: "given"}
	for _, i := range u.Columns {
		c := rel.Columns[i]
		given.Columns = append(given.Columns, RelationColumn{Name: c.Name, Type: c.Type, Engine: c.Engine})
	}
	given.Columns = append(given.Columns, RelationColumn{Name: place, Type: plain(OIDInt4), Engine: "INTEGER"})
	asked, err := a.relationSource(given, &pg.RangeVar{Relname: "given", Location: -1})
	if err != nil {
		return nil, err
	}
	rows, err := a.relationSource(rel, &pg.RangeVar{Relname: "rows", Location: -1})
	if err != nil {
		return nil, err
	}
	var on []string
	for at, i := range u.Columns {
		on = append(on, u.same(asked.columns[at].sql(), rows.columns[i].sql()))
	}
	at := asked.columns[len(u.Columns)].sql()
	on = append(on, at+" IS NOT NULL")
	on = append(on, u.meets(func(i int) string { return rows.columns[i].sql() })...)
	least := "1"
	if twice {
		least = "2"
	}
	out := &Analysis{
		SQL: "SELECT " + at + " AS c1 FROM " + asked.sql + ", " + rows.sql + " WHERE " + strings.Join(on, " AND ") +
			" GROUP BY " + at + " HAVING count(*) >= " + least + " ORDER BY " + at,
		Uses: a.uses,
	}
	a.uses[1].Target = true // what it says is known to who writes the table
	for _, use := range a.uses {
		use.close()
	}
	return out, nil
}

// ArbiterAny and ArbiterKey are no indexes into Relation.Uniques: any unique constraint, and
// the primary key.
const (
	ArbiterAny = -2
	ArbiterKey = -1
)

// arbiterColumns are the columns of an arbiter.
func arbiterColumns(rel *Relation, arbiter int) []int {
	if arbiter >= 0 {
		return rel.Uniques[arbiter].Columns
	}
	return rel.Key
}

// arbiter finds which unique constraint ON CONFLICT means.
func (w *writer) arbiter(rel *Relation, c *pg.OnConflictClause) (int, error) {
	in := c.Infer
	if in == nil {
		if c.Action == pg.OnConflictAction_ONCONFLICT_UPDATE {
			return 0, w.errAt(c.Location, pgerr.New(codes.Syntax, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
				WithHint("For example, ON CONFLICT (column_name)."))
		}
		return ArbiterAny, nil
	}
	if in.Conname != "" {
		if len(rel.Key) > 0 && in.Conname == rel.KeyName && w.view == nil {
			return ArbiterKey, nil
		}
		at := slices.IndexFunc(rel.Uniques, func(u Unique) bool { return u.Constraint && u.Name == in.Conname })
		if at < 0 || w.view != nil {
			return 0, pgerr.New(codes.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", in.Conname, w.named.Name)
		}
		return at, nil
	}
	var named []int
	for _, e := range in.IndexElems {
		name := e.GetIndexElem().GetName()
		i := slices.IndexFunc(w.named.Columns, func(c RelationColumn) bool { return c.Name == name })
		if i < 0 && name != "" {
			return 0, w.errAt(in.Location, pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", name))
		}
		if i >= 0 && w.view != nil {
			w.out.Through[0].Arbiter = append(w.out.Through[0].Arbiter, i)
			i = w.places[i]
		}
		if !slices.Contains(named, i) {
			named = append(named, i)
		}
	}
	same := func(columns []int) bool {
		return len(columns) > 0 && len(named) == len(columns) && !slices.ContainsFunc(columns, func(k int) bool { return !slices.Contains(named, k) })
	}
	if _, known := ReadConditions(w.named, in.WhereClause); (in.WhereClause == nil || known) && same(rel.Key) {
		return ArbiterKey, nil
	}
	return w.inferred(rel, in, same)
}

// inferred finds the unique constraint, or index of some rows, that ON CONFLICT infers; same says
// that columns are those that it names.
func (w *writer) inferred(rel *Relation, in *pg.InferClause, same func([]int) bool) (int, error) {
	var given []Condition
	known := true
	if in.WhereClause != nil {
		given, known = ReadConditions(w.named, in.WhereClause)
		known = known && w.view == nil
	}
	found, unclear := -1, in.WhereClause != nil && !known
	for i, u := range rel.Uniques {
		if !same(u.Columns) || in.WhereClause == nil && len(u.Where) > 0 {
			continue
		}
		implied, maybe := u.impliedBy(given)
		switch {
		case len(u.Where) > 0 && !known, maybe:
			return 0, errInference
		case !implied:
		case found < 0:
			found = i
		case len(u.Where) > 0 && (len(rel.Uniques[found].Where) > 0 || u.NullsEqual != rel.Uniques[found].NullsEqual), len(rel.Uniques[found].Where) > 0:
			return 0, errInference
		}
	}
	switch {
	case unclear:
		return 0, errInference
	case found < 0:
		return 0, pgerr.New(codes.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	return found, nil
}

var errInference = pgerr.New(codes.FeatureNotSupported, "ON CONFLICT with such a WHERE is not supported").
	WithHint("Give the condition as the unique index has it.")

// impliedBy says whether rows that meet conditions are rows that it is of; maybe that PostgreSQL may
// know more of it.
func (u Unique) impliedBy(given []Condition) (implied, maybe bool) {
	for _, c := range u.Where {
		is := func(g Condition) bool { return g.Column == c.Column && g.Test.Plain() == c.Test.Plain() }
		if slices.ContainsFunc(given, is) {
			continue
		}
		if slices.ContainsFunc(given, func(g Condition) bool { return g.Column == c.Column }) {
			return false, true
		}
		return false, false
	}
	return true, false
}

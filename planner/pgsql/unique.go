package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

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
	if in.WhereClause == nil && same(rel.Key) {
		return ArbiterKey, nil
	}
	at := slices.IndexFunc(rel.Uniques, func(u Unique) bool { return same(u.Columns) })
	if at < 0 || in.WhereClause != nil {
		return 0, pgerr.New(codes.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	return at, nil
}

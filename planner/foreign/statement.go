package foreign

import (
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// given is the name of the keys that a statement is about.
const given = "skippr given"

// Statement is a query, or a statement that writes, about some keys. Names in it have schemas.
type Statement struct {
	SQL string
	// Given describes the keys: a column for each of the foreign key, and of Update then one for
	// each new value.
	Given *pgsql.Relation
}

// Env has the keys in it, under the name that the statement knows them by.
func (s Statement) Env(env *pgsql.Env) *pgsql.Env {
	out := *env
	out.Resolver = resolver{env.Resolver, s.Given}
	return &out
}

// IsGiven says whether a use is of the keys.
func (s Statement) IsGiven(u *pgsql.Use) bool { return u.Relation == s.Given }

// resolver finds the keys besides all else.
type resolver struct {
	pgsql.Resolver
	given *pgsql.Relation
}

// Relation implements pgsql.Resolver.
func (r resolver) Relation(schema, name string) (*pgsql.Relation, bool) {
	if name == given {
		return r.given, true
	}
	return r.Resolver.Relation(schema, name)
}

// keys describes values of columns of a relation, and new ones of each.
func keys(rel *pgsql.Relation, columns []int, changed bool) *pgsql.Relation {
	out := &pgsql.Relation{Name: given}
	add := func(prefix string) {
		for at, i := range columns {
			c := rel.Columns[i]
			out.Columns = append(out.Columns, pgsql.RelationColumn{
				Name: fmt.Sprintf("%s%d", prefix, at+1), Type: c.Type, Engine: c.Engine, AttNum: int16(len(out.Columns) + 1),
			})
		}
	}
	add("k")
	if changed {
		add("n")
	}
	return out
}

// names are columns of a relation, of a table that is called alias.
func names(rel *pgsql.Relation, columns []int, alias string) []string {
	out := make([]string, len(columns))
	for at, i := range columns {
		out[at] = alias + "." + quote.NameIfNeeded(rel.Columns[i].Name)
	}
	return out
}

func keyNames(n int, prefix string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("g.%s%d", prefix, i+1)
	}
	return out
}

// equal is the condition that lists of values are equal.
func equal(a, b []string) string {
	out := make([]string, len(a))
	for i := range a {
		out[i] = a[i] + " = " + b[i]
	}
	return strings.Join(out, " AND ")
}

func table(rel *pgsql.Relation, alias string) string {
	return "ONLY " + quote.NameIfNeeded(rel.Schema) + "." + quote.NameIfNeeded(rel.Name) + " AS " + alias
}

// there is the condition that a row of a relation has the values of columns.
func there(rel *pgsql.Relation, columns []int, values []string) string {
	return "EXISTS (SELECT 1 FROM " + table(rel, "r") + " WHERE " + equal(names(rel, columns, "r"), values) + ")"
}

// find is a query of one key, as texts, that meets conditions.
func find(of *pgsql.Relation, n int, conditions ...string) Statement {
	list := keyNames(n, "k")
	for i := range list {
		list[i] += "::text"
	}
	return Statement{
		SQL: "SELECT " + strings.Join(list, ", ") + ` FROM "` + given + `" AS g WHERE ` + strings.Join(conditions, " AND ") + " LIMIT 1", Given: of,
	}
}

// Missing finds, of keys of new rows of the child, one that no row of the parent has.
func Missing(f *pgsql.Foreign) Statement {
	n := len(f.Columns)
	return find(keys(f.Child, f.Columns, false), n, "NOT "+there(f.Parent, f.Refs, keyNames(n, "k")))
}

// Left finds, of keys that the child has, or that were of the parent, one that a row of the child has
// and none of the parent.
func Left(f *pgsql.Foreign, ofParent bool) Statement {
	n := len(f.Columns)
	of := keys(f.Child, f.Columns, false)
	if ofParent {
		of = keys(f.Parent, f.Refs, false)
	}
	return find(of, n, there(f.Child, f.Columns, keyNames(n, "k")), "NOT "+there(f.Parent, f.Refs, keyNames(n, "k")))
}

// Referenced finds, of keys that were of the parent, one that a row of the child has.
func Referenced(f *pgsql.Foreign) Statement {
	n := len(f.Columns)
	return find(keys(f.Parent, f.Refs, false), n, there(f.Child, f.Columns, keyNames(n, "k")))
}

// matching is the condition of the rows of the child that have one of the keys.
func matching(f *pgsql.Foreign) string {
	return ` WHERE EXISTS (SELECT 1 FROM "` + given + `" AS g WHERE ` + equal(keyNames(len(f.Columns), "k"), names(f.Child, f.Columns, "c")) + ")"
}

// Delete deletes the rows of the child that have one of the keys.
func Delete(f *pgsql.Foreign) Statement {
	return Statement{SQL: "DELETE FROM " + table(f.Child, "c") + matching(f), Given: keys(f.Parent, f.Refs, false)}
}

// Set sets columns of the rows of the child that have one of the keys to a value: NULL or DEFAULT.
func Set(f *pgsql.Foreign, columns []int, value string) Statement {
	var list []string
	for _, i := range columns {
		list = append(list, quote.NameIfNeeded(f.Child.Columns[i].Name)+" = "+value)
	}
	return Statement{SQL: "UPDATE " + table(f.Child, "c") + " SET " + strings.Join(list, ", ") + matching(f), Given: keys(f.Parent, f.Refs, false)}
}

// Update gives the rows of the child that have one of the keys the values that it has now.
func Update(f *pgsql.Foreign) Statement {
	n := len(f.Columns)
	var list []string
	for at, i := range f.Columns {
		list = append(list, fmt.Sprintf(`%s = (SELECT g.n%d FROM "%s" AS g WHERE %s)`, quote.NameIfNeeded(f.Child.Columns[i].Name), at+1, given,
			equal(keyNames(n, "k"), names(f.Child, f.Columns, "c"))))
	}
	return Statement{SQL: "UPDATE " + table(f.Child, "c") + " SET " + strings.Join(list, ", ") + matching(f), Given: keys(f.Parent, f.Refs, true)}
}

// Proof is a query of the values, as texts, of a row of the child that no row of the parent matches.
func Proof(f *pgsql.Foreign) string {
	list, conditions := names(f.Child, f.Columns, "c"), []string{}
	for _, c := range list {
		conditions = append(conditions, c+" IS NOT NULL")
	}
	conditions = append(conditions, "NOT "+there(f.Parent, f.Refs, list))
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = c + "::text"
	}
	return "SELECT " + strings.Join(texts, ", ") + " FROM " + table(f.Child, "c") + " WHERE " + strings.Join(conditions, " AND ") + " LIMIT 1"
}

// MixedProof is a query of a row of the child that has some values and not all.
func MixedProof(f *pgsql.Foreign) string {
	var null, given []string
	for _, c := range names(f.Child, f.Columns, "c") {
		null, given = append(null, c+" IS NULL"), append(given, c+" IS NOT NULL")
	}
	return "SELECT 1 FROM " + table(f.Child, "c") + " WHERE (" + strings.Join(null, " OR ") + ") AND (" + strings.Join(given, " OR ") + ") LIMIT 1"
}

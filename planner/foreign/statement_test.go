package foreign

import (
	"testing"

	"github.com/skipprd/skipprd/planner/pgsql"
)

func relation(schema, name string, columns ...string) *pgsql.Relation {
	r := &pgsql.Relation{Schema: schema, Name: name}
	for _, c := range columns {
		r.Columns = append(r.Columns, pgsql.RelationColumn{Name: c, Type: pgsql.Type{OID: pgsql.OIDInt4, Mod: -1}, Engine: "INTEGER"})
	}
	return r
}

// The statements name tables with their schemas and columns in quotes where they need them, pair the
// columns of both sides in the key's order, and are valid SQL.
func TestStatements(t *testing.T) {
	f := &pgsql.Foreign{
		Name: "fk", Child: relation("public", "Child", "x", "a", "b c"), Parent: relation("s", "parent", "k1", "k2"), Columns: []int{2, 1}, Refs: []int{0, 1},
	}
	const (
		parent = `EXISTS (SELECT 1 FROM ONLY s.parent AS r WHERE r.k1 = g.k1 AND r.k2 = g.k2)`
		child  = `EXISTS (SELECT 1 FROM ONLY public."Child" AS r WHERE r."b c" = g.k1 AND r.a = g.k2)`
		keys   = `SELECT g.k1::text, g.k2::text FROM "skippr given" AS g WHERE `
		match  = ` WHERE EXISTS (SELECT 1 FROM "skippr given" AS g WHERE g.k1 = c."b c" AND g.k2 = c.a)`
	)
	for _, c := range []struct {
		what, got, want string
	}{
		{"missing", Missing(f).SQL, keys + "NOT " + parent + " LIMIT 1"},
		{"left", Left(f, true).SQL, keys + child + " AND NOT " + parent + " LIMIT 1"},
		{"referenced", Referenced(f).SQL, keys + child + " LIMIT 1"},
		{"delete", Delete(f).SQL, `DELETE FROM ONLY public."Child" AS c` + match},
		{"set", Set(f, []int{1}, "NULL").SQL, `UPDATE ONLY public."Child" AS c SET a = NULL` + match},
		{"proof", Proof(f), `SELECT c."b c"::text, c.a::text FROM ONLY public."Child" AS c WHERE c."b c" IS NOT NULL AND c.a IS NOT NULL AND NOT ` +
			`EXISTS (SELECT 1 FROM ONLY s.parent AS r WHERE r.k1 = c."b c" AND r.k2 = c.a) LIMIT 1`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s\nwant %s", c.what, c.got, c.want)
		}
		if _, err := pgsql.Parse(c.got); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	u := Update(f)
	if _, err := pgsql.Parse(u.SQL); err != nil || len(u.Given.Columns) != 4 {
		t.Errorf("%s: %d columns, %v", u.SQL, len(u.Given.Columns), err)
	}
	env := u.Env(&pgsql.Env{})
	if rel, ok := env.Resolver.Relation("any", given); !ok || rel != u.Given {
		t.Error("the keys are not found")
	}
	if e := StillReferenced(f, []string{"1", "2"}); e.Detail != `Key (k1, k2)=(1, 2) is still referenced from table "Child".` || e.Table != "Child" {
		t.Errorf("%s, of table %s", e.Detail, e.Table)
	}
}

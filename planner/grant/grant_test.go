package grant_test

import (
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/grant"
)

// rights is a book that statements change, with two tables of which postgres is the owner.
type rights struct {
	t    *testing.T
	book *right.Book
	next uint32
}

func newRights(t *testing.T) *rights {
	t.Helper()
	postgres := &right.Role{OID: right.Bootstrap, Name: "postgres", Superuser: true, CanLogin: true}
	return &rights{t: t, book: right.New(map[string]*right.Role{"postgres": postgres}, map[string]*right.Entry{}), next: 20000}
}

func (r *rights) world() grant.World {
	return grant.World{
		Database: "lake",
		Verifier: func(string) string { return "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$a:b" },
		NextOID:  func() (uint32, error) { r.next++; return r.next, nil },
		Describe: func(o right.Object) string { return "object" },
		Relation: func(n *pg.RangeVar) (grant.Relation, error) {
			return grant.Relation{Object: right.Table(map[string]uint32{"a": 17001, "b": 17002}[n.Relname]), Name: n.Relname}, nil
		},
	}
}

// run runs a statement as a role, and returns its SQLSTATE, "" when it did.
func (r *rights) run(who, sql string) string {
	r.t.Helper()
	tree, err := pg.Parse(sql)
	if err != nil {
		r.t.Fatal(err)
	}
	role := r.book.Named(who)
	if role == nil {
		r.t.Fatalf("there is no role %s", who)
	}
	p, ok := r.world().Prepare(tree.Stmts[0].Stmt)
	if !ok {
		r.t.Fatalf("%s is none of the package's", sql)
	}
	op, err := p.Resolve()
	e := r.book.Edit()
	if err == nil {
		err = op(e, grant.Who{Session: role.OID, Current: role.OID}, func(*pgerr.Error) {})
	}
	if failed, ok := pgerr.As(err); ok {
		return string(failed.Code)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.book = e.Book
	return ""
}

// TestStatements are scripts: a role, its statement, and the SQLSTATE that PostgreSQL answers.
func TestStatements(t *testing.T) {
	for name, script := range map[string]string{
		"the last superuser that can log in stays": `
postgres | ALTER ROLE postgres NOLOGIN | 55000
postgres | CREATE ROLE helper SUPERUSER |
postgres | ALTER ROLE postgres NOLOGIN | 55000
postgres | ALTER ROLE helper LOGIN |
postgres | ALTER ROLE postgres NOLOGIN |
helper | ALTER ROLE helper NOLOGIN | 55000
helper | ALTER ROLE helper NOSUPERUSER | 55000
helper | ALTER ROLE helper CONNECTION LIMIT 5 |
postgres | DROP ROLE helper | 55000
helper | ALTER ROLE postgres LOGIN |
postgres | DROP ROLE helper |`,
		"roles that are no superusers": `
postgres | CREATE ROLE maker CREATEROLE LOGIN |
postgres | CREATE ROLE plain LOGIN |
maker | CREATE ROLE x SUPERUSER | 42501
maker | CREATE ROLE x |
maker | ALTER ROLE postgres PASSWORD 'p' | 42501
plain | CREATE ROLE y | 42501
plain | ALTER ROLE x PASSWORD 'p' | 42501
plain | ALTER ROLE plain PASSWORD 'p' |
plain | ALTER ROLE plain CREATEROLE | 42501
plain | DROP ROLE x | 42501
maker | DROP ROLE postgres | 42501
maker | DROP ROLE x |
postgres | CREATE ROLE pg_x | 42939
postgres | ALTER ROLE pg_monitor LOGIN | 42939`,
		"a quoted name is a name": `
postgres | CREATE ROLE "current_user" |
postgres | CREATE ROLE owner |
postgres | ALTER TABLE a OWNER TO owner |
owner | ALTER TABLE a OWNER TO "current_user" | 42501
owner | ALTER TABLE a OWNER TO CURRENT_USER |
postgres | GRANT "current_user" TO owner |
owner | ALTER TABLE a OWNER TO "current_user" |
postgres | DROP ROLE "current_user" | 2BP01`,
		"memberships": `
postgres | CREATE ROLE team |
postgres | CREATE ROLE ana |
ana | GRANT team TO ana | 42501
postgres | GRANT team TO ana WITH ADMIN OPTION |
ana | GRANT ana TO team | 42501
postgres | GRANT ana TO team | 0LP01
postgres | CREATE ROLE bob |
ana | GRANT team TO bob |
bob | GRANT team TO postgres | 42501
ana | REVOKE team FROM bob |
postgres | DROP ROLE team |`,
		"grants need the option, and go with it": `
postgres | CREATE ROLE a1 |
postgres | CREATE ROLE a2 |
postgres | GRANT SELECT ON a TO a1 WITH GRANT OPTION |
a1 | GRANT SELECT ON a TO a2 |
a1 | GRANT UPDATE ON a TO a2 |
a2 | GRANT SELECT ON a TO a1 |
postgres | REVOKE SELECT ON a FROM a1 | 2BP01
postgres | DROP ROLE a2 | 2BP01
postgres | REVOKE SELECT ON a FROM a1 CASCADE |
postgres | DROP ROLE a2 |
postgres | GRANT SELECT ON a TO a2 | 42704`,
		"what is owned": `
postgres | CREATE ROLE o1 |
postgres | CREATE ROLE o2 |
postgres | ALTER TABLE a OWNER TO o1 |
postgres | GRANT SELECT ON b TO o1 |
o1 | ALTER TABLE a OWNER TO o2 | 42501
o2 | ALTER TABLE a OWNER TO o2 | 42501
postgres | DROP ROLE o1 | 2BP01
postgres | DROP OWNED BY o1 | 0A000
postgres | REASSIGN OWNED BY o1 TO o2 |
postgres | DROP ROLE o1 | 2BP01
postgres | DROP OWNED BY o1 |
postgres | DROP ROLE o1 |
o2 | REASSIGN OWNED BY o2 TO postgres | 42501
postgres | DROP OWNED BY postgres | 2BP01`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRights(t)
			for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
				part := strings.Split(line, "|")
				who, sql, want := strings.TrimSpace(part[0]), strings.TrimSpace(part[1]), strings.TrimSpace(part[2])
				if got := r.run(who, sql); got != want {
					t.Fatalf("%s: %s: %q, want %q", who, sql, got, want)
				}
			}
		})
	}
}

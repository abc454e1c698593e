package ddl

import (
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// TestReach: what is trusted on the server's host, and its files, are out of the reach of roles
// that are no superusers.
func TestReach(t *testing.T) {
	x, _ := newExecutor(t)
	const plain = 20001
	err := x.Catalog.Update(t.Context(), func(tx *catalog.Txn) error {
		e := tx.Rights().Edit()
		e.PutRole(&right.Role{OID: plain, Name: "plain", CanLogin: true})
		e.Change(right.Object{Class: right.Database}, func(n *right.Entry) {
			n.Set = true
			n.ACL = append(n.ACL, right.Item{Grantee: plain, Grantor: right.Bootstrap, Privileges: right.Create})
		})
		return tx.PutRights(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD 'p')":                        "",
		"CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD 'p', SSLKEY '/etc/ssl/key')": "42501",
		"CREATE CONNECTION c TO POSTGRES (HOST 'h', SSLROOTCERT '/etc/passwd')":           "42501",
		"CREATE CONNECTION c TO POSTGRES 'postgres://u@h/d?sslcert=%2Fetc%2Fx'":           "42501",
		"CREATE CONNECTION c TO POSTGRES (HOST 'h', REQUIRE_AUTH 'none')":                 "42501",
		"CREATE PIPELINE p FROM POSTGRES 'postgres://u:p@h/d?sslkey=x' FOR ALL TABLES":    "42501",
		"CREATE CONNECTION c TO GENERATOR (SEED 1)":                                       "",
	} {
		s, err := Parse(sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		got := ""
		if e, ok := pgerr.As(x.authorize(s, roleSession{plain})); ok {
			got = string(e.Code)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
		if c, ok := s.(*CreateConnection); ok && want == "" && c.Spec.Kind == "postgres" {
			if last := c.Spec.Options[len(c.Spec.Options)-1]; last.Name != "REQUIRE_AUTH" || last.Value != asksForPassword {
				t.Errorf("%s: it connects to servers that ask for no password", sql)
			}
		}
	}
}

// roleSession is a session of a role.
type roleSession struct{ role uint32 }

func (roleSession) Notice(*pgerr.Error) error { return nil }
func (roleSession) User() string              { return "plain" }
func (s roleSession) Role() uint32            { return s.role }

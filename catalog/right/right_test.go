package right

import "testing"

// TestBook: nothing is allowed but what somebody granted, and what was granted on goes with the
// right to grant it.
func TestBook(t *testing.T) {
	e := New(map[string]*Role{"postgres": {OID: Bootstrap, Name: "postgres", Superuser: true}}, map[string]*Entry{}).Edit()
	const team, ana, bob uint32 = 101, 102, 103
	e.PutRole(&Role{OID: team, Name: "team"})
	e.PutRole(&Role{OID: ana, Name: "ana", MemberOf: []Membership{{Role: team}}})
	e.PutRole(&Role{OID: bob, Name: "bob", NoInherit: true, MemberOf: []Membership{{Role: team}}})
	table := Table(7)
	want := func(what string, role uint32, has bool) {
		t.Helper()
		if got := e.Has(role, table, Select) != 0; got != has {
			t.Errorf("%s: role %d has SELECT: %v", what, role, got)
		}
	}
	want("nothing granted", ana, false)
	want("nothing granted", Bootstrap, true)
	want("no role", 999, false)
	give := func(to, by uint32, option Set) {
		e.Change(table, func(x *Entry) { x.Set, x.ACL = true, e.ACL(table).Grant(to, by, Select, option) })
	}
	give(team, Bootstrap, Select)
	want("member", ana, true)
	want("member that does not inherit", bob, false)
	if !e.Member(bob, team) || e.Member(team, bob) {
		t.Error("who is a member of whom")
	}
	give(bob, team, 0)
	want("granted on", bob, true)
	if _, ok := e.ACL(table).Revoke(team, Bootstrap, Bootstrap, Select, false, false); ok {
		t.Error("revoked under what was granted on")
	}
	list, ok := e.ACL(table).Revoke(team, Bootstrap, Bootstrap, Select, false, true)
	if !ok {
		t.Fatal("not revoked")
	}
	e.Change(table, func(x *Entry) { x.ACL = list })
	want("revoked", ana, false)
	want("revoked with it", bob, false)
	e.SetOwner(table, ana)
	want("owner", ana, true)
	want("not the owner", bob, false)
	e.DropRole(ana)
	want("dropped", ana, false)
}

package right

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Book is all roles and rights at one moment. Immutable; safe for concurrent use.
type Book struct {
	roles   map[uint32]*Role
	byName  map[string]*Role
	entries map[string]*Entry
	closed  sync.Map // role → map[uint32]bool, whose privileges it has
}

// New makes a book of the stored roles and entries, which it keeps and does not change.
func New(roles map[string]*Role, entries map[string]*Entry) *Book {
	b := &Book{roles: map[uint32]*Role{}, byName: map[string]*Role{}, entries: entries}
	for _, r := range predefined() {
		b.roles[r.OID], b.byName[r.Name] = r, r
	}
	for _, r := range roles {
		b.roles[r.OID], b.byName[r.Name] = r, r
	}
	return b
}

// Role finds a role by its id, nil for none.
func (b *Book) Role(oid uint32) *Role { return b.roles[oid] }

// Named finds a role by its name, nil for none.
func (b *Book) Named(name string) *Role { return b.byName[name] }

// Name is a role's name, or its number when there is none.
func (b *Book) Name(oid uint32) string {
	if r := b.roles[oid]; r != nil {
		return r.Name
	}
	return "unknown"
}

// Roles are all roles, by name.
func (b *Book) Roles() []*Role {
	return slices.SortedFunc(maps.Values(b.roles), func(x, y *Role) int { return strings.Compare(x.Name, y.Name) })
}

// Superuser says whether a role may everything.
func (b *Book) Superuser(role uint32) bool {
	r := b.roles[role]
	return r != nil && r.Superuser
}

// Entry is what is kept of an object, nil for nothing.
func (b *Book) Entry(o Object) *Entry { return b.entries[o.Key()] }

// Entries are all, by key.
func (b *Book) Entries() []*Entry {
	out := make([]*Entry, 0, len(b.entries))
	for _, k := range slices.Sorted(maps.Keys(b.entries)) {
		out = append(out, b.entries[k])
	}
	return out
}

// Owner is the role that owns an object.
func (b *Book) Owner(o Object) uint32 {
	if e := b.Entry(o); e != nil && e.Owner != 0 {
		return e.Owner
	}
	if o.Class == Schema && o.ID == PublicSchema {
		return DatabaseOwner
	}
	return Bootstrap
}

// ACL is the access list of an object.
func (b *Book) ACL(o Object) ACL {
	if e := b.Entry(o); e != nil && e.Set {
		return e.ACL
	}
	return DefaultACL(o, b.Owner(o))
}

// ColumnACL is the access list of a column of a relation, without the relation's.
func (b *Book) ColumnACL(o Object, column int32) ACL {
	if e := b.Entry(o); e != nil {
		return e.Columns[column]
	}
	return nil
}

// reach collects the roles that a role is a member of, itself among them; with inherit those
// whose privileges it has without SET ROLE.
func (b *Book) reach(role uint32, inherit bool) map[uint32]bool {
	out := map[uint32]bool{role: true}
	for next := []uint32{role}; len(next) > 0; {
		r := b.roles[next[0]]
		at := next[0]
		next = next[1:]
		var more []uint32
		if r != nil && (!inherit || !r.NoInherit) {
			for _, m := range r.MemberOf {
				more = append(more, m.Role)
			}
		}
		if at == b.Owner(Object{Class: Database}) {
			more = append(more, DatabaseOwner)
		}
		for _, m := range more {
			if !out[m] && b.roles[m] != nil {
				out[m] = true
				next = append(next, m)
			}
		}
	}
	return out
}

// Privileged are the roles whose privileges a role has, itself among them.
func (b *Book) Privileged(role uint32) map[uint32]bool {
	if c, ok := b.closed.Load(role); ok {
		return c.(map[uint32]bool)
	}
	c := b.reach(role, true)
	b.closed.Store(role, c)
	return c
}

// HasRole says whether a role has the privileges of another: it is that role, inherits from
// it, or is a superuser.
func (b *Book) HasRole(role, of uint32) bool {
	return role == of || b.Superuser(role) || b.Privileged(role)[of]
}

// Member says whether a role may become another with SET ROLE.
func (b *Book) Member(role, of uint32) bool {
	return role == of || b.Superuser(role) || b.reach(role, false)[of]
}

// Members are the roles that a role is a member of, itself among them.
func (b *Book) Members(role uint32) map[uint32]bool { return b.reach(role, false) }

// DirectMember is Member without what superusers may.
func (b *Book) DirectMember(role, of uint32) bool { return b.reach(role, false)[of] }

// Admin says whether a role may grant another to others.
func (b *Book) Admin(role, of uint32) bool {
	if b.Superuser(role) {
		return true
	}
	for via := range b.reach(role, true) {
		if r := b.roles[via]; r != nil {
			for _, m := range r.MemberOf {
				if m.Role == of && m.Admin {
					return true
				}
			}
		}
	}
	return false
}

// Has are those of the wanted privileges that a role has on an object.
func (b *Book) Has(role uint32, o Object, want Set) Set {
	if b.Superuser(role) {
		return want
	}
	got := b.in(role, b.ACL(o)) & want
	if want&^got == 0 || o.Class != Relation && o.Class != Schema && o.Class != Sequence {
		return got
	}
	roles := b.Privileged(role)
	switch {
	case roles[ReadAllData] && o.Class == Relation && (o.ID >= firstOID || !hidden[o.ID]):
		got |= want & Select
	case roles[ReadAllData] && o.Class == Sequence:
		got |= want & Select
	case roles[ReadAllData] && o.Class == Schema:
		got |= want & Usage
	}
	switch {
	case roles[WriteAllData] && o.Class == Relation && o.ID >= firstOID:
		got |= want & (Insert | Update | Delete)
	case roles[WriteAllData] && o.Class == Sequence:
		got |= want & (Usage | Update)
	case roles[WriteAllData] && o.Class == Schema:
		got |= want & Usage
	}
	return got
}

// HasColumn says whether a role has a privilege on a column by itself or by its relation.
func (b *Book) HasColumn(role uint32, o Object, column int32, want Set) bool {
	return b.Has(role, o, want) == want || b.in(role, b.ColumnACL(o, column))&want == want
}

// HasAnyColumn says whether a role has a privilege on a relation, or on a column of it.
func (b *Book) HasAnyColumn(role uint32, o Object, want Set) bool {
	if b.Has(role, o, want) == want {
		return true
	}
	e := b.Entry(o)
	if e == nil {
		return false
	}
	for _, list := range e.Columns {
		if b.in(role, list)&want == want {
			return true
		}
	}
	return false
}

// Sees says whether a role has any privilege on an object or a column of it, or owns it:
// information_schema shows such.
func (b *Book) Sees(role uint32, o Object) bool {
	if b.Has(role, o, o.Class.All()) != 0 || b.Owns(role, o) {
		return true
	}
	if e := b.Entry(o); e != nil {
		for _, list := range e.Columns {
			if b.in(role, list) != 0 {
				return true
			}
		}
	}
	return false
}

// Owns says whether a role may do what owners do: it has the owner's privileges.
func (b *Book) Owns(role uint32, o Object) bool { return b.HasRole(role, b.Owner(o)) }

// in are the privileges that a role has by a list.
func (b *Book) in(role uint32, list ACL) Set {
	var out Set
	roles := b.Privileged(role)
	for _, i := range list {
		if i.Grantee == Public || roles[i.Grantee] && b.roles[role] != nil {
			out |= i.Privileges
		}
	}
	return out
}

// Grantor is the role in whose name a role grants privileges on an object, and those of the
// wanted ones that it may grant: the owner if it has its privileges, else the role it has the
// privileges of that may grant most.
func (b *Book) Grantor(role uint32, owner uint32, list ACL, want Set) (grantor uint32, may Set) {
	if b.HasRole(role, owner) {
		return owner, want
	}
	grantor = role
	most := 0
	for _, via := range slices.Sorted(maps.Keys(b.Privileged(role))) {
		options := list.optionsOf(via, owner) & want
		n := len(options.Words())
		if n > most || n == most && n > 0 && via == role {
			grantor, may, most = via, options, n
		}
	}
	return grantor, may
}

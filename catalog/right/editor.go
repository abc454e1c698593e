package right

import (
	"maps"
	"slices"
)

// Editor changes a copy of a book, and knows what it has changed. Not safe for concurrent
// use.
type Editor struct {
	*Book
	// roles and touched are the roles and entries that it has changed; nil values are of
	// those that are gone.
	roles   map[uint32]*Role
	touched map[string]*Entry
}

// Edit begins changes of a book, which stays as it is.
func (b *Book) Edit() *Editor {
	c := &Book{roles: maps.Clone(b.roles), byName: maps.Clone(b.byName), entries: maps.Clone(b.entries)}
	return &Editor{Book: c, roles: map[uint32]*Role{}, touched: map[string]*Entry{}}
}

// PutRole adds a role, or replaces the one with its id.
func (e *Editor) PutRole(r *Role) {
	r = r.Clone()
	if old := e.Book.roles[r.OID]; old != nil {
		delete(e.byName, old.Name)
	}
	e.Book.roles[r.OID], e.byName[r.Name], e.roles[r.OID] = r, r, r
	e.closed.Clear()
}

// DropRole removes a role and its memberships, both ways.
func (e *Editor) DropRole(oid uint32) {
	if r := e.Book.roles[oid]; r != nil {
		delete(e.byName, r.Name)
	}
	delete(e.Book.roles, oid)
	e.roles[oid] = nil
	e.closed.Clear()
	for _, r := range e.Roles() {
		if slices.ContainsFunc(r.MemberOf, func(m Membership) bool { return m.Role == oid }) {
			c := r.Clone()
			c.MemberOf = slices.DeleteFunc(c.MemberOf, func(m Membership) bool { return m.Role == oid })
			e.PutRole(c)
		}
	}
	for _, x := range e.Entries() {
		if x.Object.Class == DefaultOf && x.Object.ID == oid {
			e.Forget(x.Object)
		}
	}
}

// Change changes the entry of an object, which is made when there is none.
func (e *Editor) Change(o Object, f func(*Entry)) {
	x := &Entry{Object: o}
	if old := e.Entry(o); old != nil {
		x = old
	}
	x = x.Clone()
	f(x)
	for column, list := range x.Columns {
		if len(list) == 0 {
			delete(x.Columns, column)
		}
	}
	if x.empty() {
		e.Forget(o)
		return
	}
	e.entries[o.Key()], e.touched[o.Key()] = x, x
	if o.Class == Database {
		e.closed.Clear()
	}
}

// Forget removes the entry of an object.
func (e *Editor) Forget(o Object) {
	if _, ok := e.entries[o.Key()]; !ok && e.touched[o.Key()] == nil {
		return
	}
	delete(e.entries, o.Key())
	e.touched[o.Key()] = nil
}

// SetOwner gives an object to another role, and with it what its owner had and gave.
func (e *Editor) SetOwner(o Object, to uint32) {
	from := e.Owner(o)
	if from == to {
		return
	}
	e.Change(o, func(x *Entry) {
		x.Owner = to
		if x.Set {
			x.ACL = x.ACL.change(from, to)
		}
		for c, list := range x.Columns {
			x.Columns[c] = list.change(from, to)
		}
	})
}

// Made notes a new object that owner made, in a schema if it is in one: it gets what the
// owner's default privileges say.
func (e *Editor) Made(o Object, owner, schema uint32) {
	list, set := DefaultACL(o, owner), false
	if x := e.Entry(DefaultPrivileges(owner, 0, o.Class)); x != nil && x.Set {
		list, set = x.ACL, true
	}
	if x := e.Entry(DefaultPrivileges(owner, schema, o.Class)); schema != 0 && x != nil {
		for _, i := range x.ACL {
			list, set = list.Grant(i.Grantee, i.Grantor, i.Privileges, i.Options), true
		}
	}
	if owner == e.Owner(o) && !set {
		return
	}
	e.Change(o, func(x *Entry) {
		x.Owner = owner
		if set {
			x.Set, x.ACL = true, list
		}
	})
}

// DefaultPrivileges is where the default privileges of a role for new objects of a class are
// kept; schema is 0 for any.
func DefaultPrivileges(role, schema uint32, class Class) Object {
	return Object{Class: DefaultOf, ID: role, Sub: schema, Name: string(rune(class))}
}

// Changed are the roles and entries that differ from the book's, nil values of those that are
// gone.
func (e *Editor) Changed() (roles map[uint32]*Role, entries map[string]*Entry) {
	return e.roles, e.touched
}

// Done is the book as it is now. The editor is not used any more.
func (e *Editor) Done() *Book { return e.Book }

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// errTemporary means that objects of one session were to be committed: a broken invariant.
var errTemporary = errors.New("temporary objects cannot be committed")

// errName means that an object has no name.
var errName = errors.New("name is empty")

// putNamed stores v under its name. create forbids that it exists, else it must.
func putNamed[T any](t *Txn, m map[string]*T, o named, v *T) error {
	if o.name == "" {
		return fmt.Errorf("put %s: %w", o.kind, errName)
	}
	_, exists := m[o.name]
	if o.create && exists {
		return &ExistsError{o.kind, o.name}
	}
	if !o.create && !exists {
		return &NotFoundError{o.kind, o.name}
	}
	c := *v
	if err := t.setJSON(nameKey(o.prefix, o.name), &c); err != nil {
		return fmt.Errorf("put %s %q: %w", o.kind, o.name, err)
	}
	m[o.name] = &c
	return nil
}

func deleteNamed[T any](t *Txn, m map[string]*T, o named) error {
	if _, ok := m[o.name]; !ok {
		return &NotFoundError{o.kind, o.name}
	}
	delete(m, o.name)
	if err := t.delete(nameKey(o.prefix, o.name)); err != nil {
		return fmt.Errorf("delete %s %q: %w", o.kind, o.name, err)
	}
	return nil
}

// named says which object is meant.
type named struct {
	kind   ObjectKind
	prefix byte
	name   string
	create bool
}

// CreateConnection adds a connection, or wraps ErrExists. CreatedAt is set if zero.
func (t *Txn) CreateConnection(c *Connection) error { return t.putConnection(c, true) }

// PutConnection replaces a connection, or wraps ErrConnectionNotFound.
func (t *Txn) PutConnection(c *Connection) error { return t.putConnection(c, false) }

func (t *Txn) putConnection(c *Connection, create bool) error {
	own(&t.facts.connections, &t.owned.connections)
	c = c.Clone()
	if c.CreatedAt.IsZero() {
		c.CreatedAt = t.now
	}
	return putNamed(t, t.facts.connections, named{KindConnection, prefixConnection, c.Name, create}, c)
}

// DeleteConnection removes a connection, or wraps ErrConnectionNotFound. Whether a pipeline
// uses it is the caller's to see.
func (t *Txn) DeleteConnection(name string) error {
	own(&t.facts.connections, &t.owned.connections)
	return errors.Join(t.putRight(right.Object{Class: right.Connection, Name: name}.Key(), nil),
		deleteNamed(t, t.facts.connections, named{KindConnection, prefixConnection, name, false}))
}

// CreateSecret adds a secret, or wraps ErrExists. CreatedAt is set if zero.
func (t *Txn) CreateSecret(s *Secret) error { return t.putSecret(s, true) }

// PutSecret replaces a secret, or wraps ErrSecretNotFound.
func (t *Txn) PutSecret(s *Secret) error { return t.putSecret(s, false) }

func (t *Txn) putSecret(s *Secret, create bool) error {
	own(&t.facts.secrets, &t.owned.secrets)
	c := *s
	if c.CreatedAt.IsZero() {
		c.CreatedAt = t.now
	}
	return putNamed(t, t.facts.secrets, named{KindSecret, prefixSecret, c.Name, create}, &c)
}

// DeleteSecret removes a secret, or wraps ErrSecretNotFound. Whether a connection uses it
// is the caller's to see.
func (t *Txn) DeleteSecret(name string) error {
	own(&t.facts.secrets, &t.owned.secrets)
	return errors.Join(t.putRight(right.Object{Class: right.Secret, Name: name}.Key(), nil),
		deleteNamed(t, t.facts.secrets, named{KindSecret, prefixSecret, name, false}))
}

// CreateRole adds a role, or wraps ErrExists. An OID is given out if zero.
func (t *Txn) CreateRole(r *Role) error { return t.putRole(r, true) }

// PutRole replaces a role, or wraps ErrRoleNotFound.
func (t *Txn) PutRole(r *Role) error { return t.putRole(r, false) }

func (t *Txn) putRole(r *Role, create bool) error {
	own(&t.facts.roles, &t.owned.roles)
	t.facts.book.Store(nil)
	c := *r
	if c.OID == 0 {
		c.OID = t.NextOID()
	}
	return putNamed(t, t.facts.roles, named{KindRole, prefixRole, c.Name, create}, &c)
}

// DeleteRole removes a role, or wraps ErrRoleNotFound.
func (t *Txn) DeleteRole(name string) error {
	own(&t.facts.roles, &t.owned.roles)
	t.facts.book.Store(nil)
	return deleteNamed(t, t.facts.roles, named{KindRole, prefixRole, name, false})
}

// CreateSchema adds a schema, or wraps ErrExists. An OID is given out if zero. CreateTable
// does it by itself.
func (t *Txn) CreateSchema(s *Schema) error {
	if _, ok := t.facts.schemas[s.Name]; ok {
		return &ExistsError{KindSchema, s.Name}
	}
	if err := t.mayMakeSchema(); err != nil {
		return err
	}
	if err := t.putSchema(s); err != nil || t.actor == 0 {
		return err
	}
	return t.made(right.Object{Class: right.Schema, ID: t.facts.schemas[s.Name].OID}, t.actor, 0)
}

// PutSchema replaces a schema, or wraps ErrSchemaNotFound.
func (t *Txn) PutSchema(s *Schema) error {
	if err := t.mayChange(right.Object{Class: right.Schema, ID: s.OID}, "schema", s.Name); err != nil {
		return err
	}
	own(&t.facts.schemas, &t.owned.schemas)
	return putNamed(t, t.facts.schemas, named{KindSchema, prefixSchema, s.Name, false}, s)
}

// PutRights writes what an editor of Rights has changed. Roles whose names changed give their
// names to the pipelines that they own.
func (t *Txn) PutRights(e *right.Editor) error {
	roles, entries := e.Changed()
	before := t.facts.rightsBook()
	for _, oid := range slices.Sorted(maps.Keys(roles)) {
		if old := before.Role(oid); old != nil {
			if err := t.DeleteRole(old.Name); err != nil {
				return err
			}
		}
	}
	for _, oid := range slices.Sorted(maps.Keys(roles)) {
		if roles[oid] == nil {
			continue
		}
		if err := t.CreateRole(roles[oid]); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if err := t.putRight(key, entries[key]); err != nil {
			return err
		}
	}
	return nil
}

// putRight writes the rights on an object, nil removes them.
func (t *Txn) putRight(key string, e *right.Entry) error {
	_, exists := t.facts.rights[key]
	if e == nil && !exists {
		return nil
	}
	own(&t.facts.rights, &t.owned.rights)
	t.facts.book.Store(nil)
	var err error
	if e == nil {
		delete(t.facts.rights, key)
		err = t.delete(nameKey(prefixRight, key))
	} else {
		t.facts.rights[key] = e
		err = t.setJSON(nameKey(prefixRight, key), e)
	}
	if err != nil {
		return fmt.Errorf("put rights on %s: %w", key, err)
	}
	return nil
}

// made gives a new object its owner, and the rights that the owner's default privileges say.
func (t *Txn) made(o right.Object, owner, schema uint32) error {
	e := t.facts.rightsBook().Edit()
	e.Made(o, owner, schema)
	_, entries := e.Changed()
	for key, entry := range entries {
		if err := t.putRight(key, entry); err != nil {
			return err
		}
	}
	return nil
}

// Own gives an object that the transaction made its owner, and the rights that the owner's
// default privileges say.
func (t *Txn) Own(o right.Object, owner uint32) error { return t.made(o, owner, 0) }

func (t *Txn) putSchema(s *Schema) error {
	own(&t.facts.schemas, &t.owned.schemas)
	c := *s
	if c.OID == 0 {
		c.OID = t.NextOID()
	}
	return putNamed(t, t.facts.schemas, named{KindSchema, prefixSchema, c.Name, true}, &c)
}

// DeleteSchema removes a schema, or wraps ErrSchemaNotFound. Whether it has tables is the
// caller's to see.
func (t *Txn) DeleteSchema(name string) error {
	if s := t.facts.schemas[name]; s != nil {
		if err := t.mayChange(right.Object{Class: right.Schema, ID: s.OID}, "schema", name); err != nil {
			return err
		}
	}
	return t.deleteSchema(name)
}

func (t *Txn) deleteSchema(name string) error {
	own(&t.facts.schemas, &t.owned.schemas)
	if s := t.facts.schemas[name]; s != nil {
		gone := []string{right.Object{Class: right.Schema, ID: s.OID}.Key()}
		for key, e := range t.facts.rights { // what new objects in it would have got
			if e.Object.Class == right.DefaultOf && e.Object.Sub == s.OID {
				gone = append(gone, key)
			}
		}
		slices.Sort(gone)
		for _, key := range gone {
			if err := t.putRight(key, nil); err != nil {
				return err
			}
		}
	}
	return deleteNamed(t, t.facts.schemas, named{KindSchema, prefixSchema, name, false})
}

// PutSetting sets the database's value of a setting.
func (t *Txn) PutSetting(name, value string) error {
	own(&t.facts.settings, &t.owned.settings)
	t.facts.settings[name] = value
	if err := t.setJSON(nameKey(prefixSetting, name), value); err != nil {
		return fmt.Errorf("put setting %s: %w", quote.Name(name), err)
	}
	return nil
}

// DeleteSetting removes the database's value of a setting, if there is one.
func (t *Txn) DeleteSetting(name string) error {
	own(&t.facts.settings, &t.owned.settings)
	delete(t.facts.settings, name)
	if err := t.delete(nameKey(prefixSetting, name)); err != nil {
		return fmt.Errorf("delete setting %s: %w", quote.Name(name), err)
	}
	return nil
}

// eventsMax bounds the history: about 2 MiB.
const eventsMax = 10_000

// AddEvent adds a line to the history; the oldest goes when there are too many. At is set
// if zero.
func (t *Txn) AddEvent(e Event) error {
	if e.At.IsZero() {
		e.At = t.now
	}
	n := t.nextID(counterEvent, 1)
	if err := t.setJSON(eventKey(n), e); err != nil {
		return fmt.Errorf("put event: %w", err)
	}
	if n <= eventsMax {
		return nil
	}
	if err := t.delete(eventKey(n - eventsMax)); err != nil {
		return fmt.Errorf("delete old event: %w", err)
	}
	return nil
}

// As has what is defined from here on done for a role: within its rights, which a *DeniedError
// ends, and what is made is its. 0 ends it.
func (t *Txn) As(role uint32) { t.actor = role }

// mayMake refuses a new object in a schema that the actor may not make any in.
func (t *Txn) mayMake(schema string) error {
	b := t.facts.rightsBook()
	if t.actor == 0 {
		return nil
	}
	s := t.facts.schemas[schema]
	if s == nil {
		return t.mayMakeSchema()
	}
	if s.Temp { // who may make any was asked before
		return nil
	}
	if b.Has(t.actor, right.Object{Class: right.Schema, ID: s.OID}, right.Create) == 0 {
		return &DeniedError{"permission denied for schema " + schema}
	}
	return nil
}

func (t *Txn) mayMakeSchema() error {
	if t.actor != 0 && t.facts.rightsBook().Has(t.actor, right.Object{Class: right.Database}, right.Create) == 0 {
		return &DeniedError{"permission denied for database"}
	}
	return nil
}

// mayChange refuses an object that is not the actor's.
func (t *Txn) mayChange(o right.Object, kind, name string) error {
	if t.actor != 0 && !t.facts.rightsBook().Owns(t.actor, o) {
		return &DeniedError{"must be owner of " + kind + " " + name}
	}
	return nil
}

// mayDrop is mayChange for what the owner of its schema may drop too.
func (t *Txn) mayDrop(o right.Object, kind, schema, name string) error {
	if s := t.facts.schemas[schema]; s != nil && t.actor != 0 &&
		t.facts.rightsBook().Owns(t.actor, right.Object{Class: right.Schema, ID: s.OID}) {
		return nil
	}
	return t.mayChange(o, kind, name)
}

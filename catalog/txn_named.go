package catalog

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/pgwire/quote"
)

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
	return deleteNamed(t, t.facts.connections, named{KindConnection, prefixConnection, name, false})
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
	return deleteNamed(t, t.facts.secrets, named{KindSecret, prefixSecret, name, false})
}

// CreateRole adds a role, or wraps ErrExists. An OID is given out if zero.
func (t *Txn) CreateRole(r *Role) error { return t.putRole(r, true) }

// PutRole replaces a role, or wraps ErrRoleNotFound.
func (t *Txn) PutRole(r *Role) error { return t.putRole(r, false) }

func (t *Txn) putRole(r *Role, create bool) error {
	own(&t.facts.roles, &t.owned.roles)
	c := *r
	if c.OID == 0 {
		c.OID = t.NextOID()
	}
	return putNamed(t, t.facts.roles, named{KindRole, prefixRole, c.Name, create}, &c)
}

// DeleteRole removes a role, or wraps ErrRoleNotFound.
func (t *Txn) DeleteRole(name string) error {
	own(&t.facts.roles, &t.owned.roles)
	return deleteNamed(t, t.facts.roles, named{KindRole, prefixRole, name, false})
}

// CreateSchema adds a schema, or wraps ErrExists. An OID is given out if zero. CreateTable
// does it by itself.
func (t *Txn) CreateSchema(s *Schema) error {
	if _, ok := t.facts.schemas[s.Name]; ok {
		return &ExistsError{KindSchema, s.Name}
	}
	return t.putSchema(s)
}

// PutSchema replaces a schema, or wraps ErrSchemaNotFound.
func (t *Txn) PutSchema(s *Schema) error {
	own(&t.facts.schemas, &t.owned.schemas)
	return putNamed(t, t.facts.schemas, named{KindSchema, prefixSchema, s.Name, false}, s)
}

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
	own(&t.facts.schemas, &t.owned.schemas)
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

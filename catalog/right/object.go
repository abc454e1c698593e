package right

import (
	"fmt"
	"maps"
	"strconv"
)

// Class is a kind of object that rights are granted on.
type Class byte

// The classes. Their letters are part of keys of rows.
const (
	Relation   Class = 'r' // a table or view; ID is its pg_class oid
	Sequence   Class = 'S' // ID is its pg_class oid
	Schema     Class = 'n' // ID is its pg_namespace oid
	Database   Class = 'd' // there is one
	Type       Class = 'T' // ID is its pg_type oid
	Pipeline   Class = 'p' // ID is the pipeline's
	Connection Class = 'c' // by name
	Secret     Class = 's' // by name
	// DefaultOf are the rights that new objects get: ID is the role that makes them, Sub the
	// schema's oid or 0 for any, Name the class of the objects.
	DefaultOf Class = 'D'
)

// All are the privileges that objects of a class have.
func (c Class) All() Set {
	switch c {
	case Relation:
		return Insert | Select | Update | Delete | Truncate | References | Trigger
	case Sequence:
		return Select | Update | Usage
	case Schema:
		return Usage | Create
	case Database:
		return Create | Temporary | Connect
	case Pipeline, Connection, Secret, Type:
		return Usage
	}
	return 0
}

// ColumnPrivileges are those that columns of relations have.
const ColumnPrivileges = Insert | Select | Update | References

// Object is something that has an owner and an access list.
type Object struct {
	Class Class
	ID    uint32 `json:",omitempty"`
	Sub   uint32 `json:",omitempty"`
	Name  string `json:",omitempty"`
}

// tableOIDBase and the id of a table make its pg_class oid.
const tableOIDBase = 20_000

// firstOID is the first oid of an object that users make.
const firstOID = 16384

// PublicSchema is the oid of schema public.
const PublicSchema uint32 = 2200

// SequenceOf is a sequence.
func SequenceOf(id uint32) Object { return Object{Class: Sequence, ID: tableOIDBase + id} }

// Table is a table as users know it, by its face.
func Table(face uint32) Object { return Object{Class: Relation, ID: tableOIDBase + face} }

// Key is the object's key among rows.
func (o Object) Key() string {
	return fmt.Sprintf("%c:%s:%s:%s", o.Class, strconv.FormatUint(uint64(o.ID), 10), strconv.FormatUint(uint64(o.Sub), 10), o.Name)
}

// Entry is what is kept of an object: nothing for one that is the bootstrap role's and that
// nobody granted anything on, nor said anything of.
type Entry struct {
	Object Object
	Owner  uint32 `json:",omitempty"`
	// Set says that the object has the access list ACL; else it has its class's.
	Set bool `json:",omitempty"`
	ACL ACL  `json:",omitempty"`
	// Columns are access lists of columns, by field id.
	Columns map[int32]ACL `json:",omitempty"`
	// Comment is what COMMENT ON says of the database; that of any other object is kept with it.
	Comment string `json:",omitempty"`
	// Settings are values, by name, with which sessions in the database begin; RoleSettings those of
	// sessions in any.
	Settings     map[string]string `json:",omitempty"`
	RoleSettings map[string]string `json:",omitempty"`
}

// Clone is a copy that shares nothing changeable; lists are never changed in place.
func (e *Entry) Clone() *Entry {
	c := *e
	c.Settings, c.RoleSettings = maps.Clone(e.Settings), maps.Clone(e.RoleSettings)
	c.Columns = map[int32]ACL{}
	for k, v := range e.Columns {
		c.Columns[k] = v
	}
	return &c
}

// empty says that nothing would be lost without the entry.
func (e *Entry) empty() bool {
	return e.Owner == 0 && !e.Set && len(e.Columns) == 0 && e.Comment == "" && len(e.Settings) == 0 && len(e.RoleSettings) == 0
}

// hidden are the system relations that only superusers read, and who they grant it to, by oid.
var hidden = map[uint32]bool{
	1260: true, 1418: true, 2613: true, 2619: true, 3429: true, 6100: true, 12005: true, 12110: true, 12114: true, 12118: true, 12130: true,
	12134: true, 12138: true, 12332: true,
}

// hiddenNames are their names.
var hiddenNames = map[string]bool{
	"pg_authid": true, "pg_shadow": true, "pg_statistic": true, "pg_statistic_ext_data": true, "pg_user_mapping": true,
	"pg_hba_file_rules": true, "pg_ident_file_mappings": true, "pg_file_settings": true, "pg_config": true,
	"pg_shmem_allocations": true, "pg_backend_memory_contexts": true, "pg_largeobject": true, "pg_replication_origin_status": true,
	"pg_subscription": true,
}

// HiddenRelation says whether a relation of pg_catalog is not for everybody to read.
func HiddenRelation(name string) bool { return hiddenNames[name] }

// Hides says whether DefaultACL lets nobody but superusers read a relation.
func Hides(oid uint32) bool { return hidden[oid] }

// DefaultACL is the access list of an object that nobody granted anything on.
func DefaultACL(o Object, owner uint32) ACL {
	list := ACL{{Grantee: owner, Grantor: owner, Privileges: o.Class.All()}}
	public := func(s Set) ACL {
		return append(ACL{{Grantee: Public, Grantor: owner, Privileges: s}}, list...)
	}
	switch {
	case o.Class == Relation && o.ID < firstOID && !hidden[o.ID]:
		return public(Select)
	case o.Class == Schema && o.ID == PublicSchema:
		return append(list, Item{Grantee: Public, Grantor: owner, Privileges: Usage})
	case o.Class == Schema && o.ID < firstOID:
		return append(list, Item{Grantee: Public, Grantor: owner, Privileges: Usage})
	case o.Class == Database:
		return public(Temporary | Connect)
	case o.Class == Type:
		return public(Usage)
	}
	return list
}

package grant

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// alterOwner is ALTER … OWNER TO of what is no relation.
func (w World) alterOwner(n *pg.AlterOwnerStmt) (Prepared, bool) {
	switch n.ObjectType {
	case pg.ObjectType_OBJECT_SCHEMA:
		return Prepared{"ALTER SCHEMA", func() (Op, error) {
			name := n.Object.GetString_().GetSval()
			oid, err := w.Schema(name)
			if err != nil {
				return nil, err
			}
			return SetOwner(right.Object{Class: right.Schema, ID: oid}, name, n.Newowner), nil
		}}, true
	case pg.ObjectType_OBJECT_TYPE:
		return Prepared{"ALTER TYPE", func() (Op, error) {
			t, err := w.Type(n.Object.GetList().GetItems())
			if err != nil {
				return nil, err
			}
			return SetOwner(t.Object, t.Name, n.Newowner), nil
		}}, true
	case pg.ObjectType_OBJECT_DATABASE:
		return Prepared{"ALTER DATABASE", func() (Op, error) {
			name := n.Object.GetString_().GetSval()
			if name != w.Database {
				return nil, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", name)
			}
			return SetOwner(right.Object{Class: right.Database}, name, n.Newowner), nil
		}}, true
	}
	return Prepared{}, false
}

// alterTableOwner is ALTER TABLE and VIEW … OWNER TO; ok is false for any other ALTER TABLE.
func (w World) alterTableOwner(n *pg.AlterTableStmt) (Prepared, bool) {
	if len(n.Cmds) != 1 {
		return Prepared{}, false
	}
	c := n.Cmds[0].GetAlterTableCmd()
	if c.GetSubtype() != pg.AlterTableType_AT_ChangeOwner {
		return Prepared{}, false
	}
	tag := "ALTER " + strings.ReplaceAll(strings.TrimPrefix(n.Objtype.String(), "OBJECT_"), "_", " ")
	tag = strings.Replace(tag, "MATVIEW", "MATERIALIZED VIEW", 1)
	return Prepared{tag, func() (Op, error) {
		rel, err := w.Relation(n.Relation)
		if e, ok := pgerr.As(err); ok && n.MissingOk && e.Code == codes.UndefinedTable {
			return func(_ *right.Editor, _ Who, notice func(*pgerr.Error)) error {
				say(notice, "NOTICE", codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname)
				return nil
			}, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case rel.System:
			return nil, denied("permission denied: \"%s\" is a system catalog", rel.Name)
		case n.Objtype == pg.ObjectType_OBJECT_VIEW && !rel.View:
			return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a view", rel.Name)
		case rel.Linked != "":
			return nil, pgerr.New(codes.FeatureNotSupported, "cannot change owner of sequence \"%s\"", rel.Name).
				WithDetail("Sequence \"%s\" is linked to table \"%s\".", rel.Name, rel.Linked)
		}
		return rel.setOwner(c.Newowner), nil
	}}, true
}

// setOwner is OWNER TO of a relation: the sequences that go with it follow.
func (r Relation) setOwner(to *pg.RoleSpec) Op {
	change := SetOwner(r.Object, r.Name, to)
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		err := change(e, who, notice)
		for _, o := range r.Owned {
			if err == nil {
				e.SetOwner(o, e.Owner(r.Object))
			}
		}
		return err
	}
}

// SetOwner is OWNER TO: for who has the owner's privileges, and may become the new one.
func SetOwner(o right.Object, name string, to *pg.RoleSpec) Op {
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		role, err := roleOf(e, who, to, false)
		if err != nil {
			return err
		}
		if role == e.Owner(o) {
			return nil
		}
		if !e.Owns(who.Current, o) {
			return denied("must be owner of %s %s", objectWords[o.Class], name)
		}
		if !e.Member(who.Current, role) {
			return denied("must be member of role \"%s\"", e.Name(role))
		}
		e.SetOwner(o, role)
		return nil
	}
}

// reassign is REASSIGN OWNED.
func reassign(n *pg.ReassignOwnedStmt) Op {
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		from, err := rolesOf(e, who, n.Roles, false)
		if err != nil {
			return err
		}
		to, err := roleOf(e, who, n.Newrole, false)
		if err != nil {
			return err
		}
		for _, role := range append(from, to) {
			if !e.HasRole(who.Current, role) {
				return denied("permission denied to reassign objects")
			}
		}
		for _, role := range from {
			if role == right.Bootstrap {
				return pgerr.New(codes.DependentObjectsStillExist,
					"cannot reassign ownership of objects owned by role %s because they are required by the database system", e.Name(role))
			}
			for _, x := range e.Entries() {
				if x.Owner == role && x.Object.Class != right.DefaultOf {
					e.SetOwner(x.Object, to)
				}
			}
		}
		return nil
	}
}

// dropOwned is DROP OWNED: it revokes what the roles were granted. What they own must be given
// to another role, or dropped, before.
func (w World) dropOwned(n *pg.DropOwnedStmt) Op {
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		roles, err := rolesOf(e, who, n.Roles, false)
		if err != nil {
			return err
		}
		for _, role := range roles {
			if !e.HasRole(who.Current, role) {
				return denied("permission denied to drop objects")
			}
			if role == right.Bootstrap {
				return pgerr.New(codes.DependentObjectsStillExist,
					"cannot drop objects owned by role %s because they are required by the database system", e.Name(role))
			}
			for _, x := range e.Entries() {
				if x.Owner == role && x.Object.Class != right.DefaultOf {
					return pgerr.New(codes.FeatureNotSupported, "DROP OWNED of objects is not supported").
						WithDetail("Role \"%s\" is the owner of %s.", e.Name(role), w.Describe(x.Object)).
						WithHint("REASSIGN OWNED BY … TO …; or drop the objects before.")
				}
			}
			forgetGrants(e, role)
		}
		return nil
	}
}

// forgetGrants takes a role out of all access lists, and removes its default privileges.
func forgetGrants(e *right.Editor, role uint32) {
	without := func(list right.ACL) (out right.ACL) {
		for _, i := range list {
			if i.Grantee != role && i.Grantor != role {
				out = append(out, i)
			}
		}
		return out
	}
	for _, x := range e.Entries() {
		if x.Object.Class == right.DefaultOf && x.Object.ID == role {
			e.Forget(x.Object)
			continue
		}
		e.Change(x.Object, func(x *right.Entry) {
			x.ACL = without(x.ACL)
			if x.Object.Class == right.DefaultOf && x.Object.Sub != 0 && len(x.ACL) == 0 {
				x.Set = false
			}
			for id, list := range x.Columns {
				x.Columns[id] = without(list)
			}
		})
	}
}

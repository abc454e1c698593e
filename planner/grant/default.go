package grant

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// defaults is ALTER DEFAULT PRIVILEGES.
func (w World) defaults(n *pg.AlterDefaultPrivilegesStmt) (Op, error) {
	var schemas []uint32
	var roles []*pg.Node
	for _, o := range n.Options {
		d := o.GetDefElem()
		switch d.GetDefname() {
		case "schemas":
			for _, s := range d.GetArg().GetList().GetItems() {
				oid, err := w.Schema(s.GetString_().GetSval())
				if err != nil {
					return nil, err
				}
				schemas = append(schemas, oid)
			}
		case "roles":
			roles = d.GetArg().GetList().GetItems()
		}
	}
	a := n.Action
	class := right.Relation
	switch a.Objtype {
	case pg.ObjectType_OBJECT_TABLE:
	case pg.ObjectType_OBJECT_SCHEMA:
		if class = right.Schema; len(schemas) > 0 {
			return nil, pgerr.New(codes.InvalidGrantOperation, "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
		}
	case pg.ObjectType_OBJECT_SEQUENCE:
		class = right.Sequence
	default: // functions, types: there are none
		return func(*right.Editor, Who, func(*pgerr.Error)) error { return nil }, nil
	}
	r := Request{Grant: a.IsGrant, Option: a.GrantOption, Cascade: a.Behavior == pg.DropBehavior_DROP_CASCADE, Grantees: a.Grantees}
	if err := r.SetPrivileges(class, a.Privileges); err != nil {
		return nil, err
	}
	if len(r.Columns) > 0 {
		return nil, pgerr.New(codes.InvalidGrantOperation, "default privileges cannot be set for columns")
	}
	if len(schemas) == 0 {
		schemas = []uint32{0}
	}
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		owners, err := rolesOf(e, who, roles, false)
		if err != nil {
			return err
		}
		if len(roles) == 0 {
			owners = []uint32{who.Current}
		}
		grantees, err := rolesOf(e, who, r.Grantees, true)
		if err != nil {
			return err
		}
		for _, owner := range owners {
			if !e.HasRole(who.Current, owner) {
				return denied("permission denied to change default privileges")
			}
			for _, schema := range schemas {
				if err := r.defaultsOf(e, owner, schema, class, grantees); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

// defaultsOf changes the default privileges of one role, in one schema or in all.
func (r Request) defaultsOf(e *right.Editor, owner, schema uint32, class right.Class, grantees []uint32) error {
	at := right.DefaultPrivileges(owner, schema, class)
	list := right.ACL(nil)
	if schema == 0 {
		list = right.DefaultACL(right.Object{Class: class, ID: ^uint32(0)}, owner)
	}
	if x := e.Entry(at); x != nil && x.Set {
		list = x.ACL
	}
	list, err := r.apply(list, owner, owner, r.Privileges, grantees)
	if err != nil {
		return err
	}
	e.Change(at, func(x *right.Entry) { x.Set, x.ACL = schema == 0 || len(list) > 0, list })
	return nil
}

package grant

import (
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Who runs a statement: roles by their ids.
type Who struct{ Session, Current uint32 }

// Op changes rights. It may run several times, each on another editor, and has then no other
// effects. notice tells the client something; nil when it has been told.
type Op func(e *right.Editor, who Who, notice func(*pgerr.Error)) error

// Relation is a table or view that a statement names.
type Relation struct {
	Object right.Object
	Name   string
	// Columns are the field ids of its columns, by name.
	Columns map[string]int32
	System  bool
	View    bool
	// Linked is the table with which a sequence goes, "" for none; Owned are the sequences that
	// go with a table: they are its owner's.
	Linked string
	Owned  []right.Object
}

// World finds what statements name. Errors are *pgerr.Error.
type World struct {
	Relation  func(*pg.RangeVar) (Relation, error)
	Relations func(schema uint32) []Relation
	Schema    func(name string) (uint32, error)
	// Type finds a type that users made, by the parts of its name.
	Type func(names []*pg.Node) (Target, error)
	// Describe names an object as errors do: "table public.t".
	Describe func(right.Object) string
	Database string
	// Verifier makes what is kept of a password.
	Verifier func(password string) string
	// NextOID is an id for a new role.
	NextOID func() (uint32, error)
	// Setting checks a value that sessions are to begin with, and renders it.
	Setting func(*pg.VariableSetStmt) (name, value string, err error)
}

// Prepared is a statement that is ready to run.
type Prepared struct {
	Tag string
	// Resolve finds what the statement names; it is called once, when the statement runs.
	Resolve func() (Op, error)
}

// Prepare makes a statement of a parse tree; ok is false when it is none of this package's.
func (w World) Prepare(n *pg.Node) (p Prepared, ok bool) {
	switch n := n.Node.(type) {
	case *pg.Node_CreateRoleStmt:
		return Prepared{"CREATE ROLE", func() (Op, error) { return w.createRole(n.CreateRoleStmt) }}, true
	case *pg.Node_AlterRoleStmt:
		return Prepared{"ALTER ROLE", func() (Op, error) { return w.alterRole(n.AlterRoleStmt) }}, true
	case *pg.Node_AlterRoleSetStmt:
		return Prepared{"ALTER ROLE", func() (Op, error) { return w.alterRoleSet(n.AlterRoleSetStmt) }}, true
	case *pg.Node_AlterDatabaseSetStmt:
		return Prepared{"ALTER DATABASE", func() (Op, error) { return w.alterDatabaseSet(n.AlterDatabaseSetStmt) }}, true
	case *pg.Node_DropRoleStmt:
		return Prepared{"DROP ROLE", func() (Op, error) { return w.dropRoles(n.DropRoleStmt), nil }}, true
	case *pg.Node_RenameStmt:
		if n.RenameStmt.RenameType == pg.ObjectType_OBJECT_ROLE {
			return Prepared{"ALTER ROLE", func() (Op, error) { return renameRole(n.RenameStmt), nil }}, true
		}
	case *pg.Node_CommentStmt:
		return w.comment(n.CommentStmt)
	case *pg.Node_GrantRoleStmt:
		return Prepared{verb(n.GrantRoleStmt.IsGrant) + " ROLE", func() (Op, error) { return w.grantRoles(n.GrantRoleStmt) }}, true
	case *pg.Node_GrantStmt:
		return Prepared{verb(n.GrantStmt.IsGrant), func() (Op, error) { return w.grant(n.GrantStmt) }}, true
	case *pg.Node_AlterDefaultPrivilegesStmt:
		return Prepared{"ALTER DEFAULT PRIVILEGES", func() (Op, error) { return w.defaults(n.AlterDefaultPrivilegesStmt) }}, true
	case *pg.Node_AlterOwnerStmt:
		return w.alterOwner(n.AlterOwnerStmt)
	case *pg.Node_AlterTableStmt:
		return w.alterTableOwner(n.AlterTableStmt)
	case *pg.Node_ReassignOwnedStmt:
		return Prepared{"REASSIGN OWNED", func() (Op, error) { return reassign(n.ReassignOwnedStmt), nil }}, true
	case *pg.Node_DropOwnedStmt:
		return Prepared{"DROP OWNED", func() (Op, error) { return w.dropOwned(n.DropOwnedStmt), nil }}, true
	}
	return Prepared{}, false
}

func verb(grant bool) string {
	if grant {
		return "GRANT"
	}
	return "REVOKE"
}

func denied(format string, args ...any) *pgerr.Error {
	return pgerr.New(codes.InsufficientPrivilege, format, args...)
}

func noRole(name string) *pgerr.Error {
	return pgerr.New(codes.UndefinedObject, "role \"%s\" does not exist", name)
}

// roleOf finds the role that a statement names; PUBLIC where that is allowed.
func roleOf(e *right.Editor, who Who, n *pg.RoleSpec, public bool) (uint32, error) {
	switch n.GetRoletype() {
	case pg.RoleSpecType_ROLESPEC_CURRENT_ROLE, pg.RoleSpecType_ROLESPEC_CURRENT_USER:
		return still(e, who.Current)
	case pg.RoleSpecType_ROLESPEC_SESSION_USER:
		return still(e, who.Session)
	case pg.RoleSpecType_ROLESPEC_PUBLIC:
		if public {
			return right.Public, nil
		}
		return 0, noRole("public")
	}
	r := e.Named(n.GetRolename())
	if r == nil {
		return 0, noRole(n.GetRolename())
	}
	return r.OID, nil
}

// still is a session's role, which may have been dropped since.
func still(e *right.Editor, oid uint32) (uint32, error) {
	if e.Role(oid) == nil {
		return 0, pgerr.New(codes.UndefinedObject, "role with OID %d does not exist", oid)
	}
	return oid, nil
}

func rolesOf(e *right.Editor, who Who, list []*pg.Node, public bool) ([]uint32, error) {
	var out []uint32
	for _, n := range list {
		oid, err := roleOf(e, who, n.GetRoleSpec(), public)
		if err != nil {
			return nil, err
		}
		out = append(out, oid)
	}
	return out, nil
}

func say(notice func(*pgerr.Error), severity string, code codes.Code, format string, args ...any) {
	if notice == nil {
		return
	}
	e := pgerr.New(code, format, args...)
	e.Severity = severity
	notice(e)
}

package grant

import (
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// attributes are the options of CREATE and ALTER ROLE.
type attributes struct {
	flags   map[string]bool // by the parser's names
	limit   *int32
	until   *time.Time
	secret  bool // there is a PASSWORD
	verify  string
	into    []*pg.Node // IN ROLE
	members []*pg.Node
	admins  []*pg.Node
}

const passwordBytesMax = 1024

// attributes reads the options.
func (w World) attributes(list []*pg.Node) (a attributes, err error) {
	a.flags = map[string]bool{}
	seen := map[string]bool{}
	for _, n := range list {
		d := n.GetDefElem()
		name := d.GetDefname()
		if seen[name] {
			return a, pgerr.New(codes.Syntax, "conflicting or redundant options").WithPosition(d.GetLocation() + 1)
		}
		seen[name] = true
		switch name {
		case "superuser", "inherit", "createrole", "createdb", "canlogin", "isreplication", "bypassrls":
			a.flags[name] = d.GetArg().GetBoolean().GetBoolval()
		case "connectionlimit":
			v := d.GetArg().GetInteger().GetIval()
			if v < -1 {
				return a, pgerr.New(codes.InvalidParameterValue, "invalid connection limit: %d", v)
			}
			a.limit = &v
		case "validUntil":
			t, err := parseUntil(d.GetArg().GetString_().GetSval())
			if err != nil {
				return a, err
			}
			a.until = &t
		case "password":
			if a.verify, err = w.password(d.GetArg().GetString_().GetSval()); err != nil {
				return a, err
			}
			a.secret = true
		case "addroleto":
			a.into = d.GetArg().GetList().GetItems()
		case "rolemembers":
			a.members = d.GetArg().GetList().GetItems()
		case "adminmembers":
			a.admins = d.GetArg().GetList().GetItems()
		case "sysid":
		default:
			return a, pgerr.New(codes.FeatureNotSupported, "option %s of roles is not supported", strings.ToUpper(name))
		}
	}
	return a, nil
}

// password is what is kept of a password: a verifier, which it may be already; "" for none.
func (w World) password(text string) (string, error) {
	switch {
	case text == "":
		return "", nil
	case right.ValidVerifier(text):
		return text, nil
	case strings.HasPrefix(text, "md5") && len(text) == 35:
		return "", pgerr.New(codes.FeatureNotSupported, "MD5 passwords are not supported").
			WithHint("Give the password itself, or its SCRAM-SHA-256 verifier.")
	case len(text) > passwordBytesMax:
		return "", pgerr.New(codes.InvalidParameterValue, "password is too long")
	}
	return w.Verifier(text), nil
}

// untilLayouts are the forms of VALID UNTIL.
var untilLayouts = []string{
	"2006-01-02 15:04:05.999999Z07:00", "2006-01-02 15:04:05.999999Z07", "2006-01-02 15:04:05.999999", "2006-01-02T15:04:05.999999Z07:00",
	"2006-01-02T15:04:05.999999", "2006-01-02 15:04Z07", "2006-01-02 15:04", "2006-01-02", "Jan 2 2006", "January 2 2006", "Jan 2 15:04:05 2006",
	"2006-01-02 15:04:05.999999 MST",
}

// parseUntil reads a moment; zero for infinity. Without a zone it is UTC.
func parseUntil(text string) (time.Time, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, ",", ""))
	if strings.EqualFold(text, "infinity") {
		return time.Time{}, nil
	}
	for _, layout := range untilLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, pgerr.New(codes.InvalidDatetimeFormat, "invalid input syntax for type timestamp with time zone: \"%s\"", text)
}

// apply puts the attributes into a role.
func (a attributes) apply(r *right.Role) {
	fields := map[string]*bool{
		"superuser": &r.Superuser, "createrole": &r.CreateRole, "createdb": &r.CreateDB, "canlogin": &r.CanLogin,
		"isreplication": &r.Replication, "bypassrls": &r.BypassRLS,
	}
	for name, v := range a.flags {
		if p := fields[name]; p != nil {
			*p = v
		}
	}
	if v, ok := a.flags["inherit"]; ok {
		r.NoInherit = !v
	}
	if a.limit != nil {
		r.Limited, r.ConnectionLimit = *a.limit >= 0, max(*a.limit, 0)
	}
	if a.until != nil {
		r.ValidUntil = *a.until
	}
	if a.secret {
		r.Verifier = a.verify
	}
}

// createRole is CREATE ROLE, USER and GROUP.
func (w World) createRole(n *pg.CreateRoleStmt) (Op, error) {
	a, err := w.attributes(n.Options)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(n.Role, "pg_") {
		return nil, pgerr.New(codes.ReservedName, "role name \"%s\" is reserved", n.Role).
			WithDetail("Role names starting with \"pg_\" are reserved.")
	}
	if len(n.Role) > 63 {
		return nil, pgerr.New(codes.NameTooLong, "identifier \"%s\" is too long", n.Role)
	}
	oid, err := w.NextOID()
	if err != nil {
		return nil, err
	}
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		me := e.Role(who.Current)
		super := me != nil && me.Superuser
		switch {
		case a.flags["superuser"] && !super:
			return denied("must be superuser to create superusers")
		case a.flags["isreplication"] && !super:
			return denied("must be superuser to create replication users")
		case a.flags["bypassrls"] && !super:
			return denied("must be superuser to create bypassrls users")
		case !super && (me == nil || !me.CreateRole):
			return denied("permission denied to create role")
		case e.Named(n.Role) != nil:
			return pgerr.New(codes.DuplicateObject, "role \"%s\" already exists", n.Role)
		}
		r := &right.Role{OID: oid, Name: n.Role, CanLogin: n.StmtType == pg.RoleStmtType_ROLESTMT_USER}
		a.apply(r)
		e.PutRole(r)
		return a.memberships(e, who, notice, oid)
	}, nil
}

// memberships makes those that CREATE ROLE asks for.
func (a attributes) memberships(e *right.Editor, who Who, notice func(*pgerr.Error), oid uint32) error {
	into, err := rolesOf(e, who, a.into, false)
	if err != nil {
		return err
	}
	for _, of := range into {
		if err := addMember(e, who, notice, member{of: of, role: oid}); err != nil {
			return err
		}
	}
	for admin, list := range map[bool][]*pg.Node{false: a.members, true: a.admins} {
		members, err := rolesOf(e, who, list, false)
		if err != nil {
			return err
		}
		for _, m := range members {
			if err := addMember(e, who, notice, member{of: oid, role: m, admin: admin}); err != nil {
				return err
			}
		}
	}
	return nil
}

// alterRole is ALTER ROLE and USER with attributes, and ALTER GROUP.
func (w World) alterRole(n *pg.AlterRoleStmt) (Op, error) {
	a, err := w.attributes(n.Options)
	if err != nil {
		return nil, err
	}
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		oid, err := roleOf(e, who, n.Role, false)
		if err != nil {
			return err
		}
		if err := mayAlter(e, who, e.Role(oid), a); err != nil {
			return err
		}
		c := e.Role(oid).Clone()
		a.apply(c)
		if oid == right.Bootstrap && !c.Superuser {
			return pgerr.New(codes.FeatureNotSupported, "permission denied to alter role").
				WithDetail("The bootstrap superuser must have the SUPERUSER attribute.")
		}
		if !canEnter(c) {
			if err := leavesSuperuser(e, oid); err != nil {
				return err
			}
		}
		e.PutRole(c)
		members, err := rolesOf(e, who, a.members, false)
		if err != nil {
			return err
		}
		for _, m := range members {
			if n.Action >= 0 {
				err = addMember(e, who, notice, member{of: oid, role: m})
			} else {
				err = dropMember(e, who, notice, member{of: oid, role: m})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// canEnter says that a role is a superuser that may connect.
func canEnter(r *right.Role) bool { return r.Superuser && r.CanLogin }

// leavesSuperuser asks for a superuser that may connect besides a role: without one nobody could
// undo it, since there is no way to start the server without its roles.
func leavesSuperuser(e *right.Editor, role uint32) error {
	if r := e.Role(role); r == nil || !canEnter(r) {
		return nil
	}
	for _, r := range e.Roles() {
		if r.OID != role && canEnter(r) {
			return nil
		}
	}
	return pgerr.New(codes.ObjectNotInPrerequisiteState, "role \"%s\" is the last superuser that can log in", e.Name(role)).
		WithHint("Make another one first: CREATE ROLE … SUPERUSER LOGIN PASSWORD '…';")
}

// mayAlter says whether somebody may change a role so.
func mayAlter(e *right.Editor, who Who, r *right.Role, a attributes) error {
	me := e.Role(who.Current)
	if me != nil && me.Superuser {
		if r.Builtin {
			return reserved(r)
		}
		return nil
	}
	_, super := a.flags["superuser"]
	_, replication := a.flags["isreplication"]
	_, bypass := a.flags["bypassrls"]
	onlyPassword := len(a.flags) == 0 && a.limit == nil && a.until == nil && len(a.members) == 0
	switch {
	case super || r.Superuser:
		return denied("must be superuser to alter superuser roles or change superuser attribute")
	case replication || r.Replication:
		return denied("must be superuser to alter replication roles or change replication attribute")
	case bypass:
		return denied("must be superuser to change bypassrls attribute")
	case r.Builtin:
		return reserved(r)
	case me == nil || !me.CreateRole && (!onlyPassword || r.OID != who.Current):
		return denied("permission denied")
	}
	return nil
}

func reserved(r *right.Role) error {
	return pgerr.New(codes.ReservedName, "role name \"%s\" is reserved", r.Name).WithDetail("Cannot alter reserved roles.")
}

func renameRole(n *pg.RenameStmt) Op {
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		r := e.Named(n.Subname)
		if r == nil {
			return noRole(n.Subname)
		}
		me := e.Role(who.Current)
		super := me != nil && me.Superuser
		switch {
		case strings.HasPrefix(n.Subname, "pg_"):
			return reserved(r)
		case r.OID == who.Session:
			return pgerr.New(codes.FeatureNotSupported, "session user cannot be renamed")
		case r.OID == who.Current:
			return pgerr.New(codes.FeatureNotSupported, "current user cannot be renamed")
		case r.OID == right.Bootstrap:
			return pgerr.New(codes.FeatureNotSupported, "the first superuser cannot be renamed")
		case strings.HasPrefix(n.Newname, "pg_"):
			return pgerr.New(codes.ReservedName, "role name \"%s\" is reserved", n.Newname).
				WithDetail("Role names starting with \"pg_\" are reserved.")
		case e.Named(n.Newname) != nil:
			return pgerr.New(codes.DuplicateObject, "role \"%s\" already exists", n.Newname)
		case r.Superuser && !super:
			return denied("must be superuser to rename superusers")
		case !super && (me == nil || !me.CreateRole):
			return denied("permission denied to rename role")
		}
		c := r.Clone()
		c.Name = n.Newname
		e.PutRole(c)
		return nil
	}
}

// dropRoles is DROP ROLE.
func (w World) dropRoles(n *pg.DropRoleStmt) Op {
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		me := e.Role(who.Current)
		super := me != nil && me.Superuser
		if !super && (me == nil || !me.CreateRole) {
			return denied("permission denied to drop role")
		}
		for _, item := range n.Roles {
			spec := item.GetRoleSpec()
			if spec.Roletype != pg.RoleSpecType_ROLESPEC_CSTRING {
				return pgerr.New(codes.InvalidParameterValue, "cannot use special role specifier in DROP ROLE")
			}
			r := e.Named(spec.Rolename)
			switch {
			case r == nil && n.MissingOk:
				say(notice, "NOTICE", codes.SuccessfulCompletion, "role \"%s\" does not exist, skipping", spec.Rolename)
				continue
			case r == nil:
				return noRole(spec.Rolename)
			case r.OID == who.Current:
				return pgerr.New(codes.ObjectInUse, "current user cannot be dropped")
			case r.OID == who.Session:
				return pgerr.New(codes.ObjectInUse, "session user cannot be dropped")
			case r.Superuser && !super:
				return denied("must be superuser to drop superusers")
			case r.Builtin || r.OID == right.Bootstrap:
				return pgerr.New(codes.DependentObjectsStillExist, "cannot drop role %s because it is required by the database system", r.Name)
			}
			if detail := w.dependents(e, r.OID); len(detail) > 0 {
				return pgerr.New(codes.DependentObjectsStillExist, "role \"%s\" cannot be dropped because some objects depend on it", r.Name).
					WithDetail("%s", strings.Join(detail, "\n"))
			}
			if err := leavesSuperuser(e, r.OID); err != nil {
				return err
			}
			e.DropRole(r.OID)
		}
		return nil
	}
}

// dependents names what is a role's, or was granted to or by it.
func (w World) dependents(e *right.Editor, role uint32) []string {
	var out []string
	for _, x := range e.Entries() {
		if x.Object.Class == right.DefaultOf {
			if x.Object.ID == role {
				out = append(out, "owner of "+w.Describe(x.Object))
			} else if x.ACL.Names(role) {
				out = append(out, "privileges for "+w.Describe(x.Object))
			}
			continue
		}
		named := x.ACL.Names(role)
		for _, list := range x.Columns {
			named = named || list.Names(role)
		}
		switch {
		case x.Owner == role:
			out = append(out, "owner of "+w.Describe(x.Object))
		case named:
			out = append(out, "privileges for "+w.Describe(x.Object))
		}
	}
	return out
}

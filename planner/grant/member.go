package grant

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// member is a membership of role in of.
type member struct {
	of, role    uint32
	admin       bool
	onlyOptions bool // of REVOKE ADMIN OPTION FOR
}

// mayGrantRole says whether somebody may grant and revoke a role.
func mayGrantRole(e *right.Editor, who Who, of uint32) error {
	me, r := e.Role(who.Current), e.Role(of)
	switch {
	case me != nil && me.Superuser:
		return nil
	case r.Superuser:
		return denied("must be superuser to alter superusers")
	case me != nil && me.CreateRole || e.Admin(who.Current, of):
		return nil
	}
	return denied("must have admin option on role \"%s\"", r.Name)
}

func addMember(e *right.Editor, who Who, notice func(*pgerr.Error), m member) error {
	if err := mayGrantRole(e, who, m.of); err != nil {
		return err
	}
	of, r := e.Role(m.of), e.Role(m.role)
	switch {
	case m.of == right.DatabaseOwner:
		return pgerr.New(codes.InvalidGrantOperation, "role \"%s\" cannot have explicit members", of.Name)
	case m.role == right.DatabaseOwner:
		return pgerr.New(codes.InvalidGrantOperation, "role \"%s\" cannot be a member of any role", r.Name)
	case r.Builtin:
		return reserved(r)
	case e.DirectMember(m.of, m.role):
		return pgerr.New(codes.InvalidGrantOperation, "role \"%s\" is a member of role \"%s\"", of.Name, r.Name)
	}
	c := r.Clone()
	at := slices.IndexFunc(c.MemberOf, func(x right.Membership) bool { return x.Role == m.of })
	switch {
	case at >= 0 && (c.MemberOf[at].Admin || !m.admin):
		say(notice, "NOTICE", codes.SuccessfulCompletion, "role \"%s\" is already a member of role \"%s\"", r.Name, of.Name)
		return nil
	case at >= 0:
		c.MemberOf[at].Admin = true
	default:
		c.MemberOf = append(c.MemberOf, right.Membership{Role: m.of, Grantor: who.Current, Admin: m.admin})
	}
	e.PutRole(c)
	return nil
}

func dropMember(e *right.Editor, who Who, notice func(*pgerr.Error), m member) error {
	if err := mayGrantRole(e, who, m.of); err != nil {
		return err
	}
	of, r := e.Role(m.of), e.Role(m.role)
	at := slices.IndexFunc(r.MemberOf, func(x right.Membership) bool { return x.Role == m.of })
	if at < 0 {
		say(notice, "WARNING", codes.Warning, "role \"%s\" is not a member of role \"%s\"", r.Name, of.Name)
		return nil
	}
	c := r.Clone()
	if m.onlyOptions {
		c.MemberOf[at].Admin = false
	} else {
		c.MemberOf = slices.Delete(c.MemberOf, at, at+1)
	}
	e.PutRole(c)
	return nil
}

// grantRoles is GRANT role TO role, and REVOKE.
func (w World) grantRoles(n *pg.GrantRoleStmt) (Op, error) {
	admin := false
	for _, o := range n.Opt {
		d := o.GetDefElem()
		if d.GetDefname() != "admin" {
			return nil, pgerr.New(codes.FeatureNotSupported, "WITH %s of memberships is not supported", d.GetDefname())
		}
		admin = d.GetArg() == nil || d.GetArg().GetBoolean().GetBoolval()
	}
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		if n.Grantor != nil {
			by, err := roleOf(e, who, n.Grantor, false)
			if err != nil {
				return err
			}
			if by != who.Current && !e.Superuser(who.Current) {
				return denied("must be superuser to set grantor")
			}
		}
		members, err := rolesOf(e, who, n.GranteeRoles, false)
		if err != nil {
			return err
		}
		for _, item := range n.GrantedRoles {
			priv := item.GetAccessPriv()
			if len(priv.Cols) > 0 {
				return pgerr.New(codes.InvalidGrantOperation, "column names cannot be included in GRANT/REVOKE ROLE")
			}
			of := e.Named(priv.PrivName)
			if of == nil {
				return noRole(priv.PrivName)
			}
			for _, role := range members {
				if n.IsGrant {
					err = addMember(e, who, notice, member{of: of.OID, role: role, admin: admin})
				} else {
					err = dropMember(e, who, notice, member{of: of.OID, role: role, onlyOptions: admin})
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

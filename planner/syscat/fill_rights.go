package syscat

import (
	"context"
	"maps"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/planner"
)

// rightsFills are the relations of roles and privileges.
func rightsFills() map[string]fill {
	return map[string]fill{
		"pg_catalog.pg_authid":                                 fillAuthID,
		"pg_catalog.pg_roles":                                  fillRoles,
		"pg_catalog.pg_user":                                   fillUser,
		"pg_catalog.pg_shadow":                                 fillShadow,
		"pg_catalog.pg_group":                                  fillGroup,
		"pg_catalog.pg_auth_members":                           fillAuthMembers,
		"pg_catalog.pg_default_acl":                            fillDefaultACL,
		"pg_catalog.pg_db_role_setting":                        fillRoleSettings,
		"information_schema.table_privileges":                  fillTablePrivileges("information_schema.table_privileges"),
		"information_schema.role_table_grants":                 fillTablePrivileges("information_schema.role_table_grants"),
		"information_schema.column_privileges":                 fillColumnPrivileges("information_schema.column_privileges"),
		"information_schema.role_column_grants":                fillColumnPrivileges("information_schema.role_column_grants"),
		"information_schema.enabled_roles":                     fillEnabledRoles,
		"information_schema.applicable_roles":                  fillApplicableRoles("information_schema.applicable_roles", false),
		"information_schema.administrable_role_authorizations": fillApplicableRoles("information_schema.administrable_role_authorizations", true),
	}
}

// roleRows are the roles, with what they have in pg_authid.
func roleRows(env *planner.SystemEnv) []row {
	var rows []row
	for _, r := range env.Rights.Roles() {
		o := row{
			"oid": r.OID, "rolname": r.Name, "rolsuper": r.Superuser, "rolinherit": !r.NoInherit,
			"rolcreaterole": r.CreateRole || r.OID == right.Bootstrap, "rolcreatedb": r.CreateDB || r.OID == right.Bootstrap,
			"rolcanlogin": r.CanLogin, "rolreplication": r.Replication || r.OID == right.Bootstrap,
			"rolbypassrls": r.BypassRLS || r.OID == right.Bootstrap, "rolconnlimit": -1,
		}
		if r.Limited {
			o["rolconnlimit"] = int(r.ConnectionLimit)
		}
		if !r.ValidUntil.IsZero() {
			o["rolvaliduntil"] = r.ValidUntil
		}
		rows = append(rows, o)
	}
	return rows
}

// fillAuthID: who may read it, superusers and who they grant it to, sees the verifiers, as a
// pooler in front must.
func fillAuthID(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, r := range roleRows(env) {
		x := env.Rights.Named(r["rolname"].(string))
		if x.Builtin { // the fixed rows have it
			continue
		}
		if x.Verifier != "" {
			r["rolpassword"] = x.Verifier
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_authid", rows)
}

// settingList renders settings as rolconfig has them.
func settingList(values map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, k+"="+values[k])
	}
	return out
}

func fillRoles(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	rows := roleRows(env)
	for _, r := range rows {
		r["rolpassword"] = "********"
		if x := env.Rights.Named(r["rolname"].(string)); x != nil && len(x.Settings) > 0 {
			r["rolconfig"] = settingList(x.Settings)
		}
	}
	return c.build("pg_catalog.pg_roles", rows)
}

func userRows(env *planner.SystemEnv) []row {
	var rows []row
	for _, r := range roleRows(env) {
		if r["rolcanlogin"] == true {
			rows = append(rows, row{
				"usename": r["rolname"], "usesysid": r["oid"], "usecreatedb": r["rolcreatedb"], "usesuper": r["rolsuper"],
				"userepl": r["rolreplication"], "usebypassrls": r["rolbypassrls"], "passwd": "********", "valuntil": r["rolvaliduntil"],
			})
		}
	}
	return rows
}

func fillUser(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	return c.build("pg_catalog.pg_user", userRows(env))
}

// fillShadow: as fillAuthID.
func fillShadow(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	rows := userRows(env)
	for _, r := range rows {
		r["passwd"] = nil
		if x := env.Rights.Named(r["usename"].(string)); x.Verifier != "" {
			r["passwd"] = x.Verifier
		}
	}
	return c.build("pg_catalog.pg_shadow", rows)
}

// members calls f with every membership.
func members(env *planner.SystemEnv, f func(member *right.Role, of *right.Role, m right.Membership)) {
	for _, r := range env.Rights.Roles() {
		for _, m := range r.MemberOf {
			if of := env.Rights.Role(m.Role); of != nil {
				f(r, of, m)
			}
		}
	}
}

func fillGroup(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, r := range env.Rights.Roles() {
		if r.CanLogin {
			continue
		}
		list := []int64{}
		members(env, func(member, of *right.Role, _ right.Membership) {
			if of == r {
				list = append(list, int64(member.OID))
			}
		})
		rows = append(rows, row{"groname": r.Name, "grosysid": r.OID, "grolist": list})
	}
	return c.build("pg_catalog.pg_group", rows)
}

func fillAuthMembers(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	members(env, func(member, of *right.Role, m right.Membership) {
		if member.Builtin { // the fixed rows have it
			return
		}
		rows = append(rows, row{"roleid": of.OID, "member": member.OID, "grantor": m.Grantor, "admin_option": m.Admin})
	})
	return c.build("pg_catalog.pg_auth_members", rows)
}

func fillDefaultACL(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	there := map[uint32]bool{0: true}
	for _, n := range namespaces(env) {
		there[n.oid] = true
	}
	for i, x := range env.Rights.Entries() {
		if x.Object.Class != right.DefaultOf || !x.Set || !there[x.Object.Sub] { // older versions kept those of schemas that went
			continue
		}
		rows = append(rows, row{
			"oid": 1<<28 + i, "defaclrole": x.Object.ID, "defaclnamespace": x.Object.Sub, "defaclobjtype": x.Object.Name,
			"defaclacl": aclText(env, x.ACL),
		})
	}
	return c.build("pg_catalog.pg_default_acl", rows)
}

func fillRoleSettings(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	add := func(database, role uint32, values map[string]string) {
		if len(values) > 0 {
			rows = append(rows, row{"setdatabase": database, "setrole": role, "setconfig": settingList(values)})
		}
	}
	if d := env.Rights.Entry(right.Object{Class: right.Database}); d != nil {
		add(0, 0, d.RoleSettings)
		add(oidDatabase, 0, d.Settings)
	}
	for _, r := range env.Rights.Roles() {
		add(0, r.OID, r.Settings)
		add(oidDatabase, r.OID, r.Local)
	}
	return c.build("pg_catalog.pg_db_role_setting", rows)
}

// aclText renders an access list.
func aclText(env *planner.SystemEnv, list right.ACL) []string {
	out := []string{}
	for _, i := range list {
		out = append(out, i.Text(env.Rights.Name))
	}
	return out
}

// grantee is a role's name in information_schema.
func grantee(env *planner.SystemEnv, oid uint32) string {
	if oid == right.Public {
		return "PUBLIC"
	}
	return env.Rights.Name(oid)
}

// shown says whether a grant is shown to the role that asks: it has the privileges of the one
// who gave or got it.
func shown(env *planner.SystemEnv, i right.Item) bool {
	return i.Grantee == right.Public || env.Rights.HasRole(env.Role, i.Grantee) || env.Rights.HasRole(env.Role, i.Grantor)
}

// yesNo is a boolean of information_schema.
func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// grantable says whether an item lets its grantee grant a privilege on.
func grantable(i right.Item, owner uint32, one right.Set) string {
	return yesNo(i.Grantee == owner || i.Options&one != 0)
}

func fillTablePrivileges(key string) fill {
	return func(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
		var rows []row
		for _, t := range env.Snapshot.AllTables() {
			o := tableObject(t)
			for _, i := range env.Rights.ACL(o) {
				if !shown(env, i) {
					continue
				}
				i.Privileges.Each(func(one right.Set) {
					rows = append(rows, row{
						"grantor": env.Rights.Name(i.Grantor), "grantee": grantee(env, i.Grantee), "table_catalog": env.Database,
						"table_schema": t.Schema, "table_name": t.Name, "privilege_type": one.Words()[0],
						"is_grantable": grantable(i, env.Rights.Owner(o), one), "with_hierarchy": yesNo(one == right.Select),
					})
				})
			}
		}
		return c.build(key, rows)
	}
}

func fillColumnPrivileges(key string) fill {
	return func(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
		var rows []row
		for _, t := range env.Snapshot.AllTables() {
			o := tableObject(t)
			owner := env.Rights.Owner(o)
			for _, f := range t.Current.Fields {
				list := slices.Concat(env.Rights.ACL(o), env.Rights.ColumnACL(o, f.ID))
				for _, i := range list {
					if !shown(env, i) {
						continue
					}
					(i.Privileges & right.ColumnPrivileges).Each(func(one right.Set) {
						rows = append(rows, row{
							"grantor": env.Rights.Name(i.Grantor), "grantee": grantee(env, i.Grantee), "table_catalog": env.Database,
							"table_schema": t.Schema, "table_name": t.Name, "column_name": f.Name, "privilege_type": one.Words()[0],
							"is_grantable": grantable(i, owner, one),
						})
					})
				}
			}
		}
		return c.build(key, rows)
	}
}

func fillEnabledRoles(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, r := range env.Rights.Roles() {
		if env.Rights.HasRole(env.Role, r.OID) {
			rows = append(rows, row{"role_name": r.Name})
		}
	}
	return c.build("information_schema.enabled_roles", rows)
}

func fillApplicableRoles(key string, admin bool) fill {
	return func(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
		var rows []row
		members(env, func(member, of *right.Role, m right.Membership) {
			if env.Rights.HasRole(env.Role, member.OID) && (m.Admin || !admin) {
				rows = append(rows, row{"grantee": member.Name, "role_name": of.Name, "is_grantable": yesNo(m.Admin)})
			}
		})
		return c.build(key, rows)
	}
}

// tableObject is a table as rights are kept of it.
func tableObject(t *catalog.Table) right.Object { return right.Table(uint32(t.Face())) }

// privilegesRelation has one row for each privilege that a role was granted on an object: what
// has_table_privilege and its like ask. An owner that nobody granted anything has one row, with
// '*' for all. Object -1 is any system relation, -2 any other one.
func privilegesRelation() ownRelation {
	return ownRelation{"skippr", "privileges", 13131, cols("class", oidText, "object", oidInt8, "column_number", oidInt8,
		"grantee", oidInt8, "grantor", oidInt8, "privilege", oidText, "grantable", oidBool), fillPrivileges}
}

// roleMembersRelation has a row for each role whose privileges a role has, itself and PUBLIC
// among them.
func roleMembersRelation() ownRelation {
	return ownRelation{"skippr", "role_members", 13132, cols("member", oidInt8, "role", oidInt8, "inherits", oidBool, "admin", oidBool), fillRoleMembers}
}

func fillRoleMembers(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	rows := []row{{"member": int64(right.Public), "role": int64(right.Public), "inherits": true, "admin": false}}
	for _, r := range env.Rights.Roles() {
		rows = append(rows, row{"member": int64(r.OID), "role": int64(right.Public), "inherits": true, "admin": false})
		for of := range env.Rights.Members(r.OID) {
			rows = append(rows, row{
				"member": int64(r.OID), "role": int64(of), "inherits": env.Rights.Privileged(r.OID)[of], "admin": env.Rights.Admin(r.OID, of),
			})
		}
	}
	return c.build("skippr.role_members", rows)
}

// grants collects rows of skippr.privileges.
type grants struct {
	env  *planner.SystemEnv
	rows []row
}

func (g *grants) add(class right.Class, object int64, column int, owner uint32, list right.ACL) {
	for _, i := range list {
		i.Privileges.Each(func(one right.Set) {
			g.one(class, object, column, i, one.Words()[0], i.Grantee == owner || i.Options&one != 0)
		})
	}
}

func (g *grants) one(class right.Class, object int64, column int, i right.Item, word string, grantable bool) {
	g.rows = append(g.rows, row{
		"class": string(rune(class)), "object": object, "column_number": column, "grantee": int64(i.Grantee), "grantor": int64(i.Grantor),
		"privilege": word, "grantable": grantable,
	})
}

func fillPrivileges(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	g := &grants{env: env}
	b := env.Rights
	g.one(right.Relation, -1, 0, right.Item{Grantor: right.Bootstrap}, "SELECT", false)
	g.one(right.Relation, -2, 0, right.Item{Grantee: right.ReadAllData, Grantor: right.Bootstrap}, "SELECT", false)
	for _, word := range []string{"INSERT", "UPDATE", "DELETE"} {
		g.one(right.Relation, -2, 0, right.Item{Grantee: right.WriteAllData, Grantor: right.Bootstrap}, word, false)
	}
	for _, role := range []uint32{right.ReadAllData, right.WriteAllData} {
		g.one(right.Schema, -2, 0, right.Item{Grantee: role, Grantor: right.Bootstrap}, "USAGE", false)
	}
	for _, t := range env.Snapshot.AllTables() {
		o := tableObject(t)
		owner := b.Owner(o)
		e := b.Entry(o)
		if e == nil || !e.Set {
			g.one(o.Class, int64(o.ID), 0, right.Item{Grantee: owner, Grantor: owner}, "*", true)
		} else {
			g.add(o.Class, int64(o.ID), 0, owner, e.ACL)
		}
		for i, f := range t.Current.Fields {
			g.add(o.Class, int64(o.ID), attNum(f, i), owner, b.ColumnACL(o, f.ID))
		}
	}
	for _, x := range env.Snapshot.Views() {
		o := right.Table(uint32(x.ID))
		g.add(o.Class, int64(o.ID), 0, b.Owner(o), b.ACL(o))
	}
	for _, x := range env.Snapshot.Sequences() {
		o := right.SequenceOf(uint32(x.ID))
		g.add(o.Class, int64(o.ID), 0, b.Owner(o), b.ACL(o))
	}
	for _, n := range namespaces(env) {
		o := right.Object{Class: right.Schema, ID: n.oid}
		g.add(o.Class, int64(o.ID), 0, b.Owner(o), b.ACL(o))
	}
	o := right.Object{Class: right.Database}
	g.add(o.Class, int64(oidDatabase), 0, b.Owner(o), b.ACL(o))
	for _, p := range env.Snapshot.Pipelines() {
		o := right.Object{Class: right.Pipeline, ID: uint32(p.ID)}
		g.add(o.Class, int64(p.OID), 0, b.Owner(o), b.ACL(o))
	}
	return c.build("skippr.privileges", g.rows)
}

package syscat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// fillAuthID: superusers alone may read it; nobody is shown a verifier.
func fillAuthID(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	var rows []row
	for _, r := range roleRows(env) {
		x := env.Rights.Named(r["rolname"].(string))
		if x.Builtin { // the fixed rows have it
			continue
		}
		if x.Verifier != "" {
			r["rolpassword"] = "********"
		}
		rows = append(rows, r)
	}
	return c.build("pg_catalog.pg_authid", rows)
}

// settingList renders a role's settings as rolconfig has them.
func settingList(r *right.Role) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(r.Settings)) {
		out = append(out, k+"="+r.Settings[k])
	}
	return out
}

func fillRoles(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	rows := roleRows(env)
	for _, r := range rows {
		r["rolpassword"] = "********"
		if x := env.Rights.Named(r["rolname"].(string)); x != nil && len(x.Settings) > 0 {
			r["rolconfig"] = settingList(x)
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

func fillShadow(_ context.Context, c *Catalog, env *planner.SystemEnv) ([][]any, error) {
	return c.build("pg_catalog.pg_shadow", userRows(env))
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
	for i, x := range env.Rights.Entries() {
		if x.Object.Class != right.DefaultOf || !x.Set {
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
	for _, r := range env.Rights.Roles() {
		if len(r.Settings) > 0 {
			rows = append(rows, row{"setdatabase": 0, "setrole": r.OID, "setconfig": settingList(r)})
		}
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
	var rows []row
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

// wordsOf splits a text of privileges in SQL.
const wordsOf = `list_transform(string_split(upper(%s), ','), lambda w: trim(w))`

// holds is the SQL that says whether role %[1]s holds a privilege of the text %[4]s on object
// %[3]s of class %[2]s; %[5]s restricts columns.
func holdsSQL(role, class, object, words, columns string) string {
	list := strings.ReplaceAll(wordsOf, "%s", words)
	any := "-2"
	if class == "r" {
		any = "CASE WHEN " + object + " < 16384 THEN -1 ELSE -2 END"
	}
	return `(coalesce((SELECT bool_or(r.rolsuper) FROM {rel:pg_catalog.pg_roles} r WHERE r.oid = ` + role + `), false)
	OR (SELECT count(*) > 0 FROM {rel:skippr.privileges} p JOIN {rel:skippr.role_members} m ON m.role = p.grantee AND m.inherits
	WHERE m.member = ` + role + ` AND p.class = '` + class + `' AND (p.object = ` + object + ` OR p.object = ` + any + `)` + columns + `
	AND (p.privilege = '*' OR list_contains(` + list + `, p.privilege)
	OR p.grantable AND list_contains(` + list + `, p.privilege || ' WITH GRANT OPTION'))))`
}

// asker is the SQL of the oid of the role that asks; roleNamed of the one that an argument names.
const (
	asker     = "(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = {fact:user})"
	roleNamed = "(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = $1)"
	spaceOf   = "(SELECT min(n.oid) FROM {rel:pg_catalog.pg_namespace} n WHERE n.nspname = %s)"
)

// object is an argument of has_…_privilege: its types, and the SQL of the oid it means.
type object struct {
	oid uint32
	sql string
}

// privileges are the functions that ask what a role may do. A role or object that does not
// exist gives null.
func privileges() []planner.SystemFunction {
	var out []planner.SystemFunction
	tables := []object{{oidText, strings.ReplaceAll(classOfName, "$1", "%s")}, {oidOID, "%s"}}
	spaces := []object{{oidText, spaceOf}, {oidOID, "%s"}}
	databases := []object{{oidText, "(CASE WHEN %s = {fact:database} THEN 5 END)"}, {oidOID, "%s"}}
	out = append(out, has("has_table_privilege", "r", tables, " AND p.column_number = 0")...)
	out = append(out, has("has_any_column_privilege", "r", tables, "")...)
	out = append(out, has("has_sequence_privilege", "S", tables, "")...)
	out = append(out, has("has_schema_privilege", "n", spaces, "")...)
	out = append(out, has("has_database_privilege", "d", databases, "")...)
	out = append(out, hasColumn(tables)...)
	out = append(out, hasRole()...)
	for _, name := range []string{
		"has_function_privilege", "has_type_privilege", "has_tablespace_privilege", "has_language_privilege",
		"has_foreign_data_wrapper_privilege", "has_server_privilege", "has_parameter_privilege",
	} {
		out = append(out, fn(name, oidBool, "($1 IS NOT NULL)", oidAny, oidText), fn(name, oidBool, "($2 IS NOT NULL)", oidAny, oidAny, oidText))
	}
	return out
}

// askers are the ways to name the role: its argument's type, 0 for none, and the SQL of its oid.
var askers = []object{{0, asker}, {oidName, roleNamed}, {oidText, roleNamed}, {oidOID, "$1"}}

// has makes the variants of a function: of the role that asks or a named one, an object by
// name or oid.
func has(name, class string, objects []object, columns string) []planner.SystemFunction {
	var out []planner.SystemFunction
	for _, who := range askers {
		for _, o := range objects {
			args, at := []uint32{o.oid, oidText}, 1
			if who.oid != 0 {
				args, at = []uint32{who.oid, o.oid, oidText}, 2
			}
			oid := strings.ReplaceAll(o.sql, "%s", fmt.Sprintf("$%d", at))
			out = append(out, fn(name, oidBool, asked(who.sql, class, oid, fmt.Sprintf("$%d", at+1), columns), args...))
		}
	}
	return out
}

// asked is the SQL of one question: null when there is no such object. The oids are found once.
func asked(who, class, oid, words, columns string) string {
	return "(SELECT CASE WHEN q.o IS NULL OR q.u IS NULL THEN NULL ELSE " + holdsSQL("q.u", class, "q.o", "q.w", columns) +
		" END FROM (SELECT " + who + " AS u, " + oid + " AS o, " + words + " AS w) q)"
}

// hasColumn are the variants of has_column_privilege.
func hasColumn(tables []object) []planner.SystemFunction {
	var out []planner.SystemFunction
	for _, who := range askers {
		for _, o := range tables {
			for _, column := range []uint32{oidText, oidInt2} {
				args, at := []uint32{o.oid, column, oidText}, 1
				if who.oid != 0 {
					args, at = append([]uint32{who.oid}, args...), 2
				}
				oid := strings.ReplaceAll(o.sql, "%s", fmt.Sprintf("$%d", at))
				number := fmt.Sprintf("(SELECT min(a.attnum) FROM {rel:pg_catalog.pg_attribute} a WHERE a.attrelid = %s AND a.attname = $%d)", oid, at+1)
				if column == oidInt2 {
					number = fmt.Sprintf("$%d", at+1)
				}
				sql := "(SELECT CASE WHEN q.o IS NULL OR q.u IS NULL OR q.c IS NULL THEN NULL ELSE " +
					holdsSQL("q.u", "r", "q.o", "q.w", " AND (p.column_number = 0 OR p.column_number = q.c)") +
					" END FROM (SELECT " + who.sql + " AS u, " + oid + " AS o, " + number + " AS c, " + fmt.Sprintf("$%d", at+2) + " AS w) q)"
				out = append(out, fn("has_column_privilege", oidBool, sql, args...))
			}
		}
	}
	return out
}

// hasRole are the variants of pg_has_role: USAGE asks for privileges without SET ROLE, MEMBER
// for the right to it.
func hasRole() []planner.SystemFunction {
	var out []planner.SystemFunction
	roles := []object{
		{oidName, "(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = %s)"},
		{oidText, "(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = %s)"},
		{oidOID, "%s"},
	}
	for _, who := range askers {
		for _, o := range roles {
			args, at := []uint32{o.oid, oidText}, 1
			if who.oid != 0 {
				args, at = []uint32{who.oid, o.oid, oidText}, 2
			}
			list := fmt.Sprintf("list_transform(string_split(upper($%d), ','), lambda w: trim(w))", at+1)
			sql := "(SELECT CASE WHEN q.o IS NULL OR q.u IS NULL THEN NULL ELSE " +
				"(coalesce((SELECT bool_or(r.rolsuper) FROM {rel:pg_catalog.pg_roles} r WHERE r.oid = q.u), false) " +
				"OR (SELECT count(*) > 0 FROM {rel:skippr.role_members} m WHERE m.member = q.u AND m.role = q.o AND " +
				"(list_contains(q.w, 'MEMBER') OR m.inherits AND list_contains(q.w, 'USAGE') OR m.admin AND len(list_filter(q.w, lambda w: w LIKE '%OPTION')) > 0)))" +
				" END FROM (SELECT " + who.sql + " AS u, " + strings.ReplaceAll(o.sql, "%s", fmt.Sprintf("$%d", at)) + " AS o, " + list + " AS w) q)"
			out = append(out, fn("pg_has_role", oidBool, sql, args...))
		}
	}
	return out
}

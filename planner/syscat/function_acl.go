package syscat

import (
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/planner"
)

const (
	oidChar    uint32 = 18
	oidRecord  uint32 = 2249
	oidACLItem uint32 = 1033
	oidACL     uint32 = 1034
)

// setOf is a function that returns rows of several columns.
func setOf(name, engine string, columns []planner.SystemColumn, args ...uint32) planner.SystemFunction {
	f := fn(name, oidRecord, engine, args...)
	f.Set, f.Fields = true, columns
	return f
}

// aclDefaults are the privileges that an object has without a GRANT, by the letter that
// acldefault takes: those of everybody, and of the owner.
var aclDefaults = []struct{ kind, public, owner string }{
	{"r", "", "arwdDxt"},
	{"s", "", "rwU"},
	{"d", "Tc", "CTc"},
	{"f", "X", "X"},
	{"l", "U", "U"},
	{"L", "", "rw"},
	{"n", "", "UC"},
	{"p", "", "sA"},
	{"t", "", "C"},
	{"F", "", "U"},
	{"S", "", "U"},
	{"T", "U", "U"},
}

// privilegeNames are the letters of privileges.
var privilegeNames = map[string]string{
	"a": "INSERT", "r": "SELECT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES", "t": "TRIGGER", "X": "EXECUTE",
	"U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT", "s": "SET", "A": "ALTER SYSTEM",
}

// roleName is the name of the role with the oid in q.o as privileges show it.
const roleName = "coalesce((SELECT min(skippr_quote_ident(r.rolname)) FROM {rel:pg_catalog.pg_authid} r WHERE r.oid = q.o), CAST(q.o AS VARCHAR))"

func aclDefault() string {
	var b strings.Builder
	b.WriteString("(SELECT CASE q.k")
	for _, d := range aclDefaults {
		public := ""
		if d.public != "" {
			public = "'=" + d.public + "/' || q.n, "
		}
		fmt.Fprintf(&b, " WHEN '%s' THEN [%sq.n || '=%s/' || q.n]", d.kind, public, d.owner)
	}
	b.WriteString(" WHEN 'c' THEN CAST([] AS VARCHAR[]) ELSE CAST(error('XX000: unrecognized objtype abbreviation: ' || q.k) AS VARCHAR[]) END" +
		" FROM (SELECT q.k, " + roleName + " AS n FROM (SELECT $1 AS k, $2 AS o) q) q)")
	return b.String()
}

// aclExplode makes the rows of aclexplode: each privilege of each item, with the roles
// as object ids, 0 for everybody.
func aclExplode() string {
	var names strings.Builder
	for _, letter := range []string{"a", "r", "w", "d", "D", "x", "t", "X", "U", "C", "T", "c", "s", "A"} {
		fmt.Fprintf(&names, " WHEN '%s' THEN '%s'", letter, privilegeNames[letter])
	}
	role := func(pattern string) string {
		name := "replace(trim(regexp_extract(i, '" + pattern + "', 1), '\"'), '\"\"', '\"')"
		return "CASE WHEN " + name + " = '' THEN CAST(0 AS BIGINT) ELSE list_extract(map_extract(m.roles, " + name + "), 1) END"
	}
	return "unnest((SELECT flatten(list_transform(q.l, lambda i: list_transform(regexp_extract_all(regexp_extract(i, '=([A-Za-z*]*)/', 1), '[A-Za-z][*]?'), " +
		"lambda p: row(" + role("/(.*)$") + ", " + role("^([^=]*)=") +
		", CASE p[1]" + names.String() + " END, p[2] = '*')))) " +
		"FROM (SELECT $1 AS l) q, (SELECT map(list(r.rolname), list(r.oid)) AS roles FROM {rel:pg_catalog.pg_authid} r) m))"
}

// accessLists are the functions on lists of privileges and options.
func accessLists() []planner.SystemFunction {
	return []planner.SystemFunction{
		fn("acldefault", oidACL, aclDefault(), oidChar, oidOID),
		setOf("aclexplode", aclExplode(), cols("grantor", oidOID, "grantee", oidOID, "privilege_type", oidText, "is_grantable", oidBool), oidACL),
		setOf("pg_options_to_table", "unnest(list_transform($1, lambda o: row(split_part(o, '=', 1), "+
			"CASE WHEN contains(o, '=') THEN substring(o, strpos(o, '=') + 1) END)))",
			cols("option_name", oidText, "option_value", oidText), 1009),
		noAncestors(),
		setOf("pg_partition_tree", "unnest(list_filter([row(CAST(0 AS BIGINT), CAST(0 AS BIGINT), true, 0)], lambda r: false))",
			cols("relid", oidRegclass, "parentrelid", oidRegclass, "isleaf", oidBool, "level", oidInt4), oidRegclass),
	}
}

// noAncestors is pg_partition_ancestors: no table is a partition.
func noAncestors() planner.SystemFunction {
	f := fn("pg_partition_ancestors", oidRegclass, "unnest(list_filter([CAST(0 AS BIGINT)], lambda r: false))", oidRegclass)
	f.Set = true
	return f
}

// wordsOf splits a text of privileges in SQL.
const wordsOf = `list_transform(string_split(upper(%s), ','), lambda w: trim(w))`

// wordsMay are the privileges that has_…_privilege asks of a class of objects, in SQL.
var wordsMay = map[string]string{
	"r": "['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']", "n": "['CREATE', 'USAGE']",
	"d": "['CREATE', 'CONNECT', 'TEMPORARY', 'TEMP']", "c": "['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']",
	"S": "['USAGE', 'SELECT', 'UPDATE']",
	"f": "['EXECUTE']", "T": "['USAGE']", "l": "['USAGE']", "t": "['CREATE']",
	"role": "['USAGE', 'MEMBER', 'USAGE WITH ADMIN OPTION', 'MEMBER WITH ADMIN OPTION', 'USAGE WITH GRANT OPTION', 'MEMBER WITH GRANT OPTION']",
}

// checkedWords is a text of privileges in SQL, an error when it has one that its class has not.
func checkedWords(words, class string) string {
	list := strings.ReplaceAll(wordsOf, "%s", words)
	may := wordsMay[class]
	if class != "role" {
		may = "list_concat(" + may + ", list_transform(" + may + ", lambda w: w || ' WITH GRANT OPTION'))"
	}
	return "CASE WHEN NOT list_has_all(" + may + ", " + list + ") THEN error('22023: unrecognized privilege type: \"' || " + words + " || '\"') ELSE " + words + " END"
}

// holds is the SQL that says whether role %[1]s holds a privilege of the text %[4]s on object
// %[3]s of class %[2]s; %[5]s restricts columns.
func holdsSQL(role, class, object, words, columns string) string {
	list := strings.ReplaceAll(wordsOf, "%s", words)
	any := "-2"
	if class == "r" {
		any = "CASE WHEN " + object + " < 16384 AND " + object + " NOT IN (" + hiddenRelations() + ") THEN -1 ELSE -2 END"
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
	roleNamed = "CASE WHEN $1 = 'public' THEN 0 ELSE coalesce((SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = $1), " +
		"CASE WHEN $1 IS NOT NULL THEN CAST(error('42704: role \"' || $1 || '\" does not exist') AS BIGINT) END) END"
	spaceOf = "(SELECT min(n.oid) FROM {rel:pg_catalog.pg_namespace} n WHERE n.nspname = %s)"
)

// object is an argument of has_…_privilege: its types, and the SQL of the oid it means.
type object struct {
	oid uint32
	sql string
}

// named is the SQL of the oid that a name means, an error where it means none.
func named(sql, code, message string) string {
	return "coalesce(" + sql + ", CASE WHEN %s IS NOT NULL THEN CAST(error('" + code + ": ' || " + message + ") AS BIGINT) END)"
}

// privileges are the functions that ask what a role may do. A name of a role or object that
// does not exist is an error, as is a privilege that its kind has not; the oid 0 gives null.
func privileges() []planner.SystemFunction {
	var out []planner.SystemFunction
	tables := []object{{oidText, named(strings.ReplaceAll(classOfName, "$1", "%s"), "42P01", "'relation \"' || %s || '\" does not exist'")}, {oidOID, "nullif(%s, 0)"}}
	spaces := []object{{oidText, named(spaceOf, "3F000", "'schema \"' || %s || '\" does not exist'")}, {oidOID, "nullif(%s, 0)"}}
	databases := []object{
		{oidText, named("CASE WHEN %s = {fact:database} THEN 5 END", "3D000", "'database \"' || %s || '\" does not exist'")}, {oidOID, "nullif(%s, 0)"},
	}
	out = append(out, has("has_table_privilege", "r", tables, " AND p.column_number = 0")...)
	out = append(out, has("has_any_column_privilege", "r", tables, "")...)
	out = append(out, has("has_sequence_privilege", "S", sequencesOf(tables), "")...)
	out = append(out, has("has_schema_privilege", "n", spaces, "")...)
	out = append(out, has("has_database_privilege", "d", databases, "")...)
	out = append(out, hasColumn(tables)...)
	out = append(out, hasRole()...)
	out = append(out, hasBuiltin()...)
	for _, name := range []string{"has_parameter_privilege"} {
		out = append(out, fn(name, oidBool, "($1 IS NOT NULL)", oidAny, oidText), fn(name, oidBool, "($2 IS NOT NULL)", oidAny, oidAny, oidText))
	}
	return out
}

// sequencesOf are objects that must be sequences: another relation is an error, and an oid of
// none is null.
func sequencesOf(tables []object) []object {
	out := make([]object, len(tables))
	for i, o := range tables {
		out[i] = object{o.oid, "(SELECT min(CASE WHEN k.relkind = 'S' THEN k.oid ELSE CAST(error('42809: \"' || k.relname || '\" is not a sequence') AS BIGINT) END) " +
			"FROM {rel:pg_catalog.pg_class} k WHERE k.oid = " + o.sql + ")"}
	}
	return out
}

// hasBuiltin are the functions that ask for what nobody grants or revokes here: functions, types
// and languages are everybody's, table spaces superusers', and there are no servers.
func hasBuiltin() []planner.SystemFunction {
	var out []planner.SystemFunction
	byName := func(relation, column, kind string) []object {
		find := "(SELECT min(x.oid) FROM {rel:pg_catalog." + relation + "} x WHERE x." + column + " = %s)"
		return []object{{oidText, named(find, "42704", "'"+kind+" \"' || %s || '\" does not exist'")}, {oidOID, "nullif(%s, 0)"}}
	}
	for _, q := range []struct {
		name, class, relation string
		everybody             bool
		objects               []object
	}{
		{"has_function_privilege", "f", "pg_proc", true, []object{{2202, "nullif(%s, 0)"}}},
		{"has_type_privilege", "T", "pg_type", true, []object{{oidRegtype, "nullif(%s, 0)"}}},
		{"has_language_privilege", "l", "pg_language", true, byName("pg_language", "lanname", "language")},
		{"has_tablespace_privilege", "t", "pg_tablespace", false, byName("pg_tablespace", "spcname", "tablespace")},
		{"has_foreign_data_wrapper_privilege", "T", "pg_foreign_data_wrapper", false, byName("pg_foreign_data_wrapper", "fdwname", "foreign-data wrapper")},
		{"has_server_privilege", "T", "pg_foreign_server", false, byName("pg_foreign_server", "srvname", "server")},
	} {
		for _, who := range askers {
			for _, o := range q.objects {
				args, at := []uint32{o.oid, oidText}, 1
				if who.oid != 0 {
					args, at = []uint32{who.oid, o.oid, oidText}, 2
				}
				object := strings.ReplaceAll(o.sql, "%s", fmt.Sprintf("$%d", at))
				word := fmt.Sprintf("$%d", at+1)
				plain := "len(list_filter(" + strings.ReplaceAll(wordsOf, "%s", "q.w") + ", lambda w: w NOT LIKE '%OPTION')) > 0"
				if !q.everybody {
					plain = "false"
				}
				out = append(out, fn(q.name, oidBool, "(SELECT CASE WHEN q.o IS NULL OR q.u IS NULL OR q.w IS NULL OR "+
					"NOT EXISTS (SELECT 1 FROM {rel:pg_catalog."+q.relation+"} x WHERE x.oid = q.o) THEN NULL ELSE "+plain+
					" OR coalesce((SELECT bool_or(r.rolsuper) FROM {rel:pg_catalog.pg_roles} r WHERE r.oid = q.u), false) END FROM (SELECT "+
					who.sql+" AS u, "+object+" AS o, "+checkedWords(word, q.class)+" AS w) q)", args...))
			}
		}
	}
	return out
}

// hiddenRelations are the oids of system relations that only superusers read.
func hiddenRelations() string {
	var list []string
	for oid := range uint32(firstOID) {
		if right.Hides(oid) {
			list = append(list, fmt.Sprint(oid))
		}
	}
	return strings.Join(list, ", ")
}

// firstOID is the first of an object that is not built in.
const firstOID = 16384

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
	kind := class
	if class == "r" && columns == "" {
		kind = "c" // of any column
	}
	return "(SELECT CASE WHEN q.o IS NULL OR q.u IS NULL THEN NULL ELSE " + holdsSQL("q.u", class, "q.o", "q.w", columns) +
		" END FROM (SELECT " + who + " AS u, " + oid + " AS o, " + checkedWords(words, kind) + " AS w) q)"
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
				number := fmt.Sprintf("coalesce((SELECT min(a.attnum) FROM {rel:pg_catalog.pg_attribute} a WHERE a.attrelid = %s AND a.attname = $%[2]d), "+
					"CASE WHEN %[1]s IS NOT NULL AND $%[2]d IS NOT NULL THEN CAST(error('42703: column \"' || $%[2]d || '\" does not exist') AS BIGINT) END)", oid, at+1)
				if column == oidInt2 {
					number = fmt.Sprintf("$%d", at+1)
				}
				sql := "(SELECT CASE WHEN q.o IS NULL OR q.u IS NULL OR q.c IS NULL THEN NULL ELSE " +
					holdsSQL("q.u", "r", "q.o", "q.w", " AND (p.column_number = 0 OR p.column_number = q.c)") +
					" END FROM (SELECT " + who.sql + " AS u, " + oid + " AS o, " + number + " AS c, " + checkedWords(fmt.Sprintf("$%d", at+2), "c") + " AS w) q)"
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
		{oidName, named("(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = %s)", "42704", "'role \"' || %s || '\" does not exist'")},
		{oidText, named("(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = %s)", "42704", "'role \"' || %s || '\" does not exist'")},
		{oidOID, "%s"},
	}
	for _, who := range askers {
		for _, o := range roles {
			args, at := []uint32{o.oid, oidText}, 1
			if who.oid != 0 {
				args, at = []uint32{who.oid, o.oid, oidText}, 2
			}
			list := strings.ReplaceAll(wordsOf, "%s", checkedWords(fmt.Sprintf("$%d", at+1), "role"))
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

package syscat

import (
	"fmt"
	"strings"

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
		setOf("pg_partition_ancestors", "unnest(list_filter([row(CAST(0 AS BIGINT))], lambda r: false))", cols("relid", oidRegclass), oidRegclass),
		setOf("pg_partition_tree", "unnest(list_filter([row(CAST(0 AS BIGINT), CAST(0 AS BIGINT), true, 0)], lambda r: false))",
			cols("relid", oidRegclass, "parentrelid", oidRegclass, "isleaf", oidBool, "level", oidInt4), oidRegclass),
	}
}

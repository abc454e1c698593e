package syscat

import (
	"strings"

	"github.com/skipprd/skipprd/planner"
)

// infoFunctions are the functions that PostgreSQL's views of information_schema use, and
// clients with them.
func infoFunctions() []planner.SystemFunction {
	two := []uint32{oidOID, oidInt4}
	info := func(name string, result uint32, engine string, args ...uint32) planner.SystemFunction {
		f := fn(name, result, engine, args...)
		f.Schema = "information_schema"
		return f
	}
	return []planner.SystemFunction{
		info("_pg_char_max_length", oidInt4, "CAST(CASE WHEN $2 = -1 THEN NULL WHEN $1 IN (1042, 1043) THEN $2 - 4 WHEN $1 IN (1560, 1562) THEN $2 END AS INTEGER)",
			two...),
		info("_pg_char_octet_length", oidInt4, "CAST(CASE WHEN $1 NOT IN (25, 1042, 1043) THEN NULL WHEN $2 = -1 OR $1 = 25 THEN 1073741824 ELSE ($2 - 4) * 4 END AS INTEGER)",
			two...),
		info("_pg_numeric_precision", oidInt4, "CAST(CASE $1 WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53 "+
			"WHEN 1700 THEN CASE WHEN $2 <> -1 THEN (($2 - 4) >> 16) & 65535 END END AS INTEGER)", two...),
		info("_pg_numeric_precision_radix", oidInt4, "CAST(CASE WHEN $1 IN (20, 21, 23, 700, 701) THEN 2 WHEN $1 = 1700 THEN 10 END AS INTEGER)", two...),
		info("_pg_numeric_scale", oidInt4, "CAST(CASE WHEN $1 IN (20, 21, 23) THEN 0 WHEN $1 = 1700 AND $2 <> -1 THEN ($2 - 4) & 65535 END AS INTEGER)", two...),
		info("_pg_datetime_precision", oidInt4, "CAST(CASE WHEN $1 = 1082 THEN 0 WHEN $1 IN (1083, 1114, 1184, 1266) THEN CASE WHEN $2 < 0 THEN 6 ELSE $2 END "+
			"WHEN $1 = 1186 THEN CASE WHEN $2 < 0 OR $2 & 65535 = 65535 THEN 6 ELSE $2 & 65535 END END AS INTEGER)", two...),
		info("_pg_interval_type", oidText, "CAST(CASE WHEN $1 = 1186 THEN nullif(upper(regexp_extract(skippr_format_type($1, $2), "+
			"'^interval[()0-9]* (.*)$', 1)), '') END AS VARCHAR)", two...),
		info("_pg_index_position", oidInt4, "(SELECT CAST(nullif(list_position(min(i.indkey), $2), 0) AS INTEGER) FROM {rel:pg_catalog.pg_index} i WHERE i.indexrelid = $1)",
			oidOID, oidInt2),
	}
}

// regNames render object ids of types without a table of their own name rules: with the
// schema where the name alone finds something else, or nothing.
func regNames() []planner.SystemFunction {
	named := func(rel, name, space string) string {
		return `(SELECT coalesce((SELECT min(CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN ''
			ELSE skippr_quote_ident(n.nspname) || '.' END || skippr_quote_ident(x.` + name + `)) FROM {rel:pg_catalog.` + rel + `} x
			JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = x.` + space + ` WHERE x.oid = q.o),
			CASE WHEN q.o = 0 THEN '-' ELSE CAST(q.o AS VARCHAR) END) FROM (SELECT $1 AS o) q)`
	}
	const others = `n.nspname || '.' || `
	// A name that several have is shown with its schema.
	ambiguous := func(rel, name, space, shown string) string {
		return `(SELECT coalesce((SELECT min(CASE WHEN c.k = 1 AND list_contains(string_split({fact:search_path}, ','), n.nspname) THEN ''
			ELSE n.nspname || '.' END || ` + shown + `) FROM {rel:pg_catalog.` + rel + `} x
			JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = x.` + space + `
			JOIN (SELECT y.` + name + ` AS v, count(*) AS k FROM {rel:pg_catalog.` + rel + `} y GROUP BY 1) c ON c.v = x.` + name + ` WHERE x.oid = q.o),
			CASE WHEN q.o = 0 THEN '-' ELSE CAST(q.o AS VARCHAR) END) FROM (SELECT $1 AS o) q)`
	}
	signature := func(shown string) string {
		return `CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN '' ELSE ` + others + `'' END || ` + shown
	}
	withArgs := func(rel, space, shown, none string) string {
		return `(SELECT coalesce((SELECT min(` + signature(shown) + `) FROM {rel:pg_catalog.` + rel + `} x
			JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = x.` + space + ` WHERE x.oid = q.o),
			CASE WHEN q.o = 0 THEN '` + none + `' ELSE CAST(q.o AS VARCHAR) END) FROM (SELECT $1 AS o) q)`
	}
	const side = "CASE WHEN x.oprleft = 0 THEN 'NONE' ELSE skippr_type_name(x.oprleft) END"
	operator := "x.oprname || '(' || " + side + " || ',' || " + strings.ReplaceAll(side, "oprleft", "oprright") + " || ')'"
	procedure := "skippr_quote_ident(x.proname) || '(' || array_to_string(list_transform(x.proargtypes, lambda t: skippr_type_name(t)), ',') || ')'"
	return []planner.SystemFunction{
		fn("regprocout", oidText, ambiguous("pg_proc", "proname", "pronamespace", "skippr_quote_ident(x.proname)"), oidRegproc),
		fn("regprocedureout", oidText, withArgs("pg_proc", "pronamespace", procedure, "-"), 2202),
		fn("regoperout", oidText, strings.Replace(ambiguous("pg_operator", "oprname", "oprnamespace", "x.oprname"), "THEN '-'", "THEN '0'", 1), 2203),
		fn("regoperatorout", oidText, withArgs("pg_operator", "oprnamespace", operator, "0"), 2204),
		fn("regcollationout", oidText, named("pg_collation", "collname", "collnamespace"), 4191),
		fn("regnamespaceout", oidText, `(SELECT coalesce((SELECT min(skippr_quote_ident(n.nspname)) FROM {rel:pg_catalog.pg_namespace} n WHERE n.oid = q.o),
			CASE WHEN q.o = 0 THEN '-' ELSE CAST(q.o AS VARCHAR) END) FROM (SELECT $1 AS o) q)`, 4089),
		fn("regroleout", oidText, `(SELECT coalesce((SELECT min(skippr_quote_ident(r.rolname)) FROM {rel:pg_catalog.pg_authid} r WHERE r.oid = q.o),
			CASE WHEN q.o = 0 THEN '-' ELSE CAST(q.o AS VARCHAR) END) FROM (SELECT $1 AS o) q)`, 4096),
		fn("to_regoper", 2203, `(SELECT CASE WHEN count(*) = 1 THEN min(o.oid) END FROM {rel:pg_catalog.pg_operator} o
			WHERE o.oprname = regexp_replace($1, '^pg_catalog\.', ''))`, oidText),
		fn("to_regcollation", 4191, `(SELECT min(c.oid) FROM {rel:pg_catalog.pg_collation} c
			WHERE c.collname = coalesce(skippr_name_part($1, 2), skippr_name_part($1, 1)))`, oidText),
	}
}

package syscat

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner"
)

// classOfName is the oid of the table that a text names, NULL for none; without a
// schema it is the first in the search path.
const classOfName = `(SELECT arg_min(c.oid, coalesce(list_position(string_split({fact:search_path}, ','), n.nspname), 0))
	FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
	WHERE c.relname = coalesce(skippr_name_part($1, 3), skippr_name_part($1, 2), skippr_name_part($1, 1))
	AND CASE WHEN skippr_name_part($1, 3) IS NOT NULL THEN n.nspname = skippr_name_part($1, 2)
	WHEN skippr_name_part($1, 2) IS NOT NULL THEN n.nspname = skippr_name_part($1, 1)
	ELSE list_contains(string_split({fact:search_path}, ','), n.nspname) END)`

// nameOfClass is the text of a regclass: with its schema unless the search path finds
// it, the number when it is no table's. The argument stands in it once, as it may be
// large.
const nameOfClass = `(SELECT coalesce((SELECT min(CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN ''
	ELSE skippr_quote_ident(n.nspname) || '.' END || skippr_quote_ident(c.relname)) FROM {rel:pg_catalog.pg_class} c
	JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace WHERE c.oid = q.o),
	CASE WHEN q.o = 0 THEN '-' ELSE CAST(q.o AS VARCHAR) END) FROM (SELECT $1 AS o) q)`

const nameOfType = `(SELECT CASE WHEN q.o = 0 THEN '-' ELSE coalesce(nullif(skippr_type_name(q.o), '???'),
	(SELECT min(CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN ''
	ELSE skippr_quote_ident(n.nspname) || '.' END || CASE WHEN e.oid IS NULL THEN skippr_quote_ident(t.typname) ELSE skippr_quote_ident(e.typname) || '[]' END)
	FROM {rel:pg_catalog.pg_type} t JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = t.typnamespace
	LEFT JOIN {rel:pg_catalog.pg_type} e ON e.oid = t.typelem AND t.typcategory = 'A' WHERE t.oid = q.o), CAST(q.o AS VARCHAR)) END
	FROM (SELECT $1 AS o) q)`

// nameOfTextSearch is the text of a configuration or dictionary of text search, all of which are
// in pg_catalog.
func nameOfTextSearch(relation, prefix string) string {
	return `(SELECT CASE WHEN q.o = 0 THEN '-' ELSE coalesce((SELECT min(skippr_quote_ident(t.` + prefix + `name)) FROM {rel:pg_catalog.` + relation + `} t
	WHERE t.oid = q.o), CAST(q.o AS VARCHAR)) END FROM (SELECT $1 AS o) q)`
}

// typeOfName is the oid of the type that a text names: as typname, or as SQL has it.
const typeOfName = `(SELECT CASE WHEN q.a THEN min(e.typarray) ELSE min(e.oid) END
	FROM (SELECT trim(regexp_replace($1, '\s*\[\]$|\([^)]*\)', '', 'g')) AS v, ends_with($1, '[]') AS a) q
	JOIN {rel:pg_catalog.pg_type} e ON e.typname = coalesce(skippr_name_part(q.v, 2), skippr_name_part(q.v, 1))
	OR e.oid < 10000 AND e.typelem = 0 AND skippr_type_name(e.oid) = regexp_replace(CASE lower(q.v) WHEN 'int' THEN 'integer' WHEN 'decimal' THEN 'numeric'
	WHEN 'timestamp' THEN 'timestamp without time zone' WHEN 'time' THEN 'time without time zone' WHEN 'float' THEN 'double precision'
	WHEN 'char' THEN 'character' WHEN 'varchar' THEN 'character varying' ELSE lower(q.v) END, '^pg_catalog\.', '') GROUP BY q.a)`

// names are the functions between names and object ids.
func names() []planner.SystemFunction {
	return []planner.SystemFunction{
		fn("skippr_setting", oidText, shownSetting(), oidText),
		fn("to_regclass", oidRegclass, classOfName, oidText),
		fn("regclassout", oidText, nameOfClass, oidRegclass),
		fn("regtypeout", oidText, nameOfType, oidRegtype),
		fn("regconfigout", oidText, nameOfTextSearch("pg_ts_config", "cfg"), 3734),
		fn("regdictionaryout", oidText, nameOfTextSearch("pg_ts_dict", "dict"), 3769),
		fn("to_regnamespace", 4089, "(SELECT min(n.oid) FROM {rel:pg_catalog.pg_namespace} n WHERE n.nspname = skippr_name_part($1, 1))", oidText),
		fn("to_regrole", 4096, "(SELECT min(r.oid) FROM {rel:pg_catalog.pg_roles} r WHERE r.rolname = skippr_name_part($1, 1))", oidText),
		fn("to_regtype", oidRegtype, typeOfName, oidText),
		fn("to_regproc", oidRegproc, `(SELECT CASE WHEN count(*) = 1 THEN min(p.oid) END FROM {rel:pg_catalog.pg_proc} p
			WHERE p.proname = coalesce(skippr_name_part($1, 2), skippr_name_part($1, 1)))`, oidText),
		fn("skippr_regproc", oidRegproc, `(SELECT CASE WHEN count(*) > 1 THEN CAST(error('42725: more than one function named "' || $1 || '"') AS BIGINT) ELSE min(p.oid) END
			FROM {rel:pg_catalog.pg_proc} p WHERE p.proname = coalesce(skippr_name_part($1, 2), skippr_name_part($1, 1)))`, oidText),
	}
}

// descriptions: PostgreSQL describes its own objects, COMMENT ON ours.
func descriptions() []planner.SystemFunction {
	const text = "(SELECT min(d.description) FROM {rel:pg_catalog.pg_description} d WHERE d.objoid = $1 AND d.objsubid = 0"
	return []planner.SystemFunction{
		fn("obj_description", oidText, text+")", oidOID),
		fn("obj_description", oidText, text+` AND d.classoid = CASE $2 WHEN 'pg_type' THEN 1247 WHEN 'pg_proc' THEN 1255 WHEN 'pg_class' THEN 1259
			WHEN 'pg_operator' THEN 2617 WHEN 'pg_am' THEN 2601 WHEN 'pg_language' THEN 2612 WHEN 'pg_namespace' THEN 2615
			WHEN 'pg_collation' THEN 3456 WHEN 'pg_constraint' THEN 2606 WHEN 'pg_extension' THEN 3079
			WHEN 'pg_ts_config' THEN 3602 WHEN 'pg_ts_dict' THEN 3600 WHEN 'pg_ts_parser' THEN 3601 WHEN 'pg_ts_template' THEN 3764
			WHEN 'pg_rewrite' THEN 2618 WHEN 'pg_opclass' THEN 2616 WHEN 'pg_opfamily' THEN 2753 WHEN 'pg_cast' THEN 2605 ELSE 0 END)`, oidOID, oidName),
		fn("col_description", oidText, `(SELECT min(d.description) FROM {rel:pg_catalog.pg_description} d
			WHERE d.objoid = $1 AND d.classoid = 1259 AND d.objsubid = $2)`, oidOID, oidInt4),
		fn("shobj_description", oidText, `(SELECT min(d.description) FROM {rel:pg_catalog.pg_shdescription} d
			WHERE d.objoid = $1 AND d.classoid = CASE $2 WHEN 'pg_database' THEN 1262 WHEN 'pg_authid' THEN 1260 ELSE 0 END)`, oidOID, oidName),
	}
}

const argumentType = `skippr_type_name(list_extract(coalesce(p.proallargtypes, p.proargtypes), i))`

// arguments is a function's argument list: mode, name and type of each.
const arguments = `(SELECT min(array_to_string(list_transform(range(1, len(coalesce(p.proallargtypes, p.proargtypes)) + 1), lambda i:
	CASE list_extract(coalesce(p.proargmodes, CAST([] AS VARCHAR[])), i) WHEN 'o' THEN 'OUT ' WHEN 'b' THEN 'INOUT ' WHEN 'v' THEN 'VARIADIC ' ELSE '' END
	|| CASE WHEN coalesce(list_extract(coalesce(p.proargnames, CAST([] AS VARCHAR[])), i), '') = '' THEN ''
	ELSE skippr_quote_ident(list_extract(p.proargnames, i)) || ' ' END
	|| ` + argumentType + `), ', '))
	FROM {rel:pg_catalog.pg_proc} p WHERE p.oid = $1)`

// routines show the functions of pg_proc.
func routines() []planner.SystemFunction {
	const result = `(SELECT min(CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || skippr_type_name(p.prorettype))
		FROM {rel:pg_catalog.pg_proc} p WHERE p.oid = $1)`
	return []planner.SystemFunction{
		fn("pg_get_function_result", oidText, result, oidOID),
		fn("pg_get_function_arguments", oidText, ordered(strings.Replace(arguments, argumentType, argumentType+" || "+defaultSQL("p.oid", "i", " DEFAULT ", "''"), 1)), oidOID),
		fn("pg_get_function_identity_arguments", oidText, ordered(arguments), oidOID),
	}
}

// shownSetting is the value of the setting of a name as SHOW renders it: pg_settings has a number
// in the setting's unit, of which the largest unit that divides it is shown.
func shownSetting() string {
	var b strings.Builder
	b.WriteString("(SELECT min(CASE WHEN s.unit IS NULL OR CAST(s.setting AS DOUBLE) <= 0 THEN s.setting")
	for _, family := range [][]string{
		{"'ms', 's', 'min'", "86400000000", "d", "3600000000", "h", "60000000", "min", "1000000", "s", "1000", "ms", "1", "us"},
		{"'B', 'kB', '8kB', 'MB'", "1099511627776", "TB", "1073741824", "GB", "1048576", "MB", "1024", "kB", "1", "B"},
	} {
		for i := 1; i < len(family); i += 2 {
			const size = "round(CAST(s.setting AS DOUBLE) * CASE s.unit WHEN 'ms' THEN 1000 WHEN 's' THEN 1000000 WHEN 'min' THEN 60000000" +
				" WHEN 'kB' THEN 1024 WHEN '8kB' THEN 8192 WHEN 'MB' THEN 1048576 ELSE 1 END)"
			b.WriteString(" WHEN s.unit IN (" + family[0] + ") AND CAST(" + size + " AS BIGINT) % " + family[i] + " = 0 THEN CAST(CAST(" + size +
				" AS BIGINT) // " + family[i] + " AS VARCHAR) || '" + family[i+1] + "'")
		}
	}
	b.WriteString(" ELSE s.setting END) FROM {rel:pg_catalog.pg_settings} s WHERE lower(s.name) = lower($1))")
	return b.String()
}

// ordered shows the arguments of ordered-set aggregates behind ORDER BY.
func ordered(arguments string) string {
	return "CASE WHEN $1 IN (3986, 3988, 3990, 3992) THEN 'VARIADIC \"any\" ORDER BY VARIADIC \"any\"' WHEN $1 = 3984 THEN 'ORDER BY anyelement' " +
		"WHEN $1 IN (3972, 3974, 3976, 3978, 3980, 3982) THEN replace(" + arguments + ", ', ', ' ORDER BY ') ELSE " + arguments + " END"
}

// argumentDefaults are the defaults of arguments of PostgreSQL's functions, with the oid and the place
// of each: what pg_proc.proargdefaults has there.
var argumentDefaults = map[string][]string{
	"'NFC'::text":           {"4350.2", "4351.2"},
	"'use_json_null'::text": {"5054.5"},
	"'{}'::jsonb":           {"1177.3", "1179.3", "1180.3", "2023.3", "2030.3", "4005.3", "4006.3", "4007.3", "4008.3", "4009.3"},
	"'{}'::text[]":          {"3782.4", "3783.4", "3784.4", "3785.4"},
	"0":                     {"2096.2", "3464.1", "3464.2", "3464.3", "3464.4", "3464.5", "3464.6"},
	"0.0":                   {"3464.7"},
	"60":                    {"3436.2"},
	"false":                 {"1177.4", "1179.4", "1180.4", "2023.4", "2030.4", "2172.2", "3579.4", "3779.2", "3779.3", "3786.3", "3786.4", "3960.3", "3961.3", "4005.4", "4006.4", "4007.4", "4008.4", "4009.4"},
	"true":                  {"1268.2", "2739.1", "3305.4", "3436.1", "5054.4"},
}

// argumentDefault is that of the argument at a place, "" for none.
func argumentDefault(oid string, place int) string {
	key := oid + "." + strconv.Itoa(place)
	for value, list := range argumentDefaults {
		if slices.Contains(list, key) {
			return value
		}
	}
	return ""
}

// defaultSQL is the default of argument i of function p, behind a prefix; none stands for no default.
func defaultSQL(function, place, prefix, none string) string {
	var b strings.Builder
	b.WriteString("CASE " + function + " || '.' || " + place)
	for _, value := range slices.Sorted(maps.Keys(argumentDefaults)) {
		for _, key := range argumentDefaults[value] {
			b.WriteString(" WHEN '" + key + "' THEN " + quote.Text(prefix+value))
		}
	}
	return b.String() + " ELSE " + none + " END"
}

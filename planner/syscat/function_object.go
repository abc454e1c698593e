package syscat

import (
	"fmt"

	"github.com/skipprd/skipprd/planner"
)

const oidInet uint32 = 869

// functionDef is the statement that would create a function, as pg_get_functiondef says it.
const functionDef = `(SELECT min('CREATE OR REPLACE FUNCTION ' || n.nspname || '.' || skippr_quote_ident(p.proname) || '(' || coalesce(` + arguments + `, '') || ')' || chr(10)
	|| ' RETURNS ' || CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || skippr_type_name(p.prorettype) || chr(10)
	|| ' LANGUAGE ' || l.lanname || chr(10) || coalesce(' ' || nullif(trim(CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE '' END
	|| CASE p.proparallel WHEN 's' THEN ' PARALLEL SAFE' WHEN 'r' THEN ' PARALLEL RESTRICTED' ELSE '' END
	|| CASE WHEN p.proisstrict THEN ' STRICT' ELSE '' END || CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END
	|| CASE WHEN p.proleakproof THEN ' LEAKPROOF' ELSE '' END), '') || chr(10), '')
	|| 'AS $function$' || p.prosrc || '$function$' || chr(10))
	FROM {rel:pg_catalog.pg_proc} p JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = p.pronamespace
	JOIN {rel:pg_catalog.pg_language} l ON l.oid = p.prolang WHERE p.oid = $1 AND p.prokind <> 'a')`

// describeObject names an object of one of the kinds that there are here.
const describeObject = `(SELECT CASE WHEN q.c = 1259 AND q.s <> 0 THEN (SELECT min('column ' || a.attname || ' of ' ||
		CASE c.relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' WHEN 'i' THEN 'index ' WHEN 'S' THEN 'sequence ' ELSE 'relation ' END
		|| CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN '' ELSE skippr_quote_ident(n.nspname) || '.' END || skippr_quote_ident(c.relname))
		FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
		JOIN {rel:pg_catalog.pg_attribute} a ON a.attrelid = c.oid WHERE c.oid = q.o AND a.attnum = q.s)
	ELSE CASE q.c
	WHEN 1259 THEN (SELECT min(CASE c.relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' WHEN 'i' THEN 'index ' WHEN 'S' THEN 'sequence ' ELSE 'relation ' END
		|| CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN '' ELSE skippr_quote_ident(n.nspname) || '.' END || skippr_quote_ident(c.relname))
		FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace WHERE c.oid = q.o)
	WHEN 2615 THEN (SELECT min('schema ' || skippr_quote_ident(n.nspname)) FROM {rel:pg_catalog.pg_namespace} n WHERE n.oid = q.o)
	WHEN 1247 THEN (SELECT min('type ' || CASE WHEN skippr_type_name(t.oid) = '???' THEN skippr_quote_ident(t.typname) ELSE skippr_type_name(t.oid) END)
		FROM {rel:pg_catalog.pg_type} t WHERE t.oid = q.o)
	WHEN 1255 THEN (SELECT min('function ' || CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname) THEN '' ELSE skippr_quote_ident(n.nspname) || '.' END
		|| skippr_quote_ident(p.proname) || '(' || array_to_string(list_transform(p.proargtypes, lambda t: skippr_type_name(t)), ',') || ')')
		FROM {rel:pg_catalog.pg_proc} p JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = p.pronamespace WHERE p.oid = q.o)
	WHEN 3079 THEN (SELECT min('extension ' || skippr_quote_ident(x.extname)) FROM {rel:pg_catalog.pg_extension} x WHERE x.oid = q.o)
	WHEN 1260 THEN (SELECT min('role ' || skippr_quote_ident(r.rolname)) FROM {rel:pg_catalog.pg_authid} r WHERE r.oid = q.o)
	WHEN 2606 THEN (SELECT min('constraint ' || skippr_quote_ident(k.conname) || ' on table ' || CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname)
		THEN '' ELSE skippr_quote_ident(n.nspname) || '.' END || skippr_quote_ident(c.relname)) FROM {rel:pg_catalog.pg_constraint} k
		JOIN {rel:pg_catalog.pg_class} c ON c.oid = k.conrelid JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace WHERE k.oid = q.o)
	END END
	FROM (SELECT $1 AS c, $2 AS o, $3 AS s) q)`

// tokenTypes are the kinds of tokens of the only parser of texts that there is.
const tokenTypes = `unnest((SELECT list(row(t.tokid, t.alias, t.description) ORDER BY t.tokid) FROM {rel:pg_catalog.ts_token_type()} t WHERE %s))`

// relationKind is the word for a kind of relation.
const relationKind = `CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 'c' THEN 'composite type' ELSE 'table' END`

// plainTypes match the names of types that are never written with a schema.
const plainTypes = `'^(bit|bit varying|boolean|character|character varying|real|double precision|smallint|integer|bigint|numeric|interval|time(stamp)? with(out)? time zone)(\[\])?$'`

// qualifiedType is the name of a type t of namespace n with its schema, where it has one.
const qualifiedType = `CASE WHEN regexp_matches(skippr_type_name(t.oid), ` + plainTypes + `) THEN skippr_type_name(t.oid) ELSE skippr_quote_ident(n.nspname) || '.' ||
	CASE WHEN skippr_type_name(t.oid) = '???' THEN skippr_quote_ident(t.typname) ELSE skippr_type_name(t.oid) END END`

// qualifiedArguments are the types of the arguments of a function p, which are built in.
const qualifiedArguments = `list_transform(p.proargtypes, lambda t: CASE WHEN regexp_matches(skippr_type_name(t), ` + plainTypes + `) THEN '' ELSE 'pg_catalog.' END || skippr_type_name(t))`

// identifiable are the objects that there are, by the oids of their class and their own, with the
// number of a column: the kind, schema, name and identity that pg_identify_object tells, and the
// names and arguments of pg_identify_object_as_address.
const identifiable = `
	SELECT 1259 AS c, c.oid AS o, 0 AS s, ` + relationKind + ` AS kind, skippr_quote_ident(n.nspname) AS space, skippr_quote_ident(c.relname) AS own,
		skippr_quote_ident(n.nspname) || '.' || skippr_quote_ident(c.relname) AS identity, [n.nspname, c.relname] AS names, CAST([] AS VARCHAR[]) AS args
		FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
	UNION ALL SELECT 1259, c.oid, a.attnum, ` + relationKind + ` || ' column', skippr_quote_ident(n.nspname), skippr_quote_ident(c.relname),
		skippr_quote_ident(n.nspname) || '.' || skippr_quote_ident(c.relname) || '.' || skippr_quote_ident(a.attname), [n.nspname, c.relname, a.attname], []
		FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
		JOIN {rel:pg_catalog.pg_attribute} a ON a.attrelid = c.oid WHERE NOT a.attisdropped
	UNION ALL SELECT 2615, n.oid, 0, 'schema', NULL, skippr_quote_ident(n.nspname), skippr_quote_ident(n.nspname), [n.nspname], [] FROM {rel:pg_catalog.pg_namespace} n
	UNION ALL SELECT 1260, r.oid, 0, 'role', NULL, skippr_quote_ident(r.rolname), skippr_quote_ident(r.rolname), [r.rolname], [] FROM {rel:pg_catalog.pg_authid} r
	UNION ALL SELECT 3079, x.oid, 0, 'extension', NULL, skippr_quote_ident(x.extname), skippr_quote_ident(x.extname), [x.extname], [] FROM {rel:pg_catalog.pg_extension} x
	UNION ALL SELECT 1247, t.oid, 0, 'type', skippr_quote_ident(n.nspname), skippr_quote_ident(t.typname), ` + qualifiedType + `, [` + qualifiedType + `], []
		FROM {rel:pg_catalog.pg_type} t JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = t.typnamespace
	UNION ALL SELECT 1255, p.oid, 0, CASE p.prokind WHEN 'a' THEN 'aggregate' WHEN 'p' THEN 'procedure' ELSE 'function' END, skippr_quote_ident(n.nspname), NULL,
		skippr_quote_ident(n.nspname) || '.' || skippr_quote_ident(p.proname) || '(' || array_to_string(` + qualifiedArguments + `, ',') || ')',
		[n.nspname, p.proname], ` + qualifiedArguments + `
		FROM {rel:pg_catalog.pg_proc} p JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = p.pronamespace
	UNION ALL SELECT 2606, k.oid, 0, 'table constraint', skippr_quote_ident(n.nspname), NULL,
		skippr_quote_ident(k.conname) || ' on ' || skippr_quote_ident(n.nspname) || '.' || skippr_quote_ident(c.relname), [n.nspname, c.relname, k.conname], []
		FROM {rel:pg_catalog.pg_constraint} k JOIN {rel:pg_catalog.pg_class} c ON c.oid = k.conrelid JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace`

// unknownKind is the kind of an object that does not exist, an error for a class that has none.
const unknownKind = `CASE $1 WHEN 1259 THEN 'relation' WHEN 2615 THEN 'schema' WHEN 1260 THEN 'role' WHEN 3079 THEN 'extension' WHEN 1247 THEN 'type'
	WHEN 1255 THEN 'routine' WHEN 2606 THEN 'constraint' ELSE error('XX000: unrecognized object class: ' || $1) END`

// identifies are the functions between an object and its names.
func identifies() []planner.SystemFunction {
	of := func(fields, none string) string {
		return "unnest(coalesce((SELECT list(row(" + fields + ")) FROM (" + identifiable + ") i WHERE i.c = $1 AND i.o = $2 AND i.s = $3), [row(" + unknownKind + none + ")]))"
	}
	text := ", CAST(NULL AS VARCHAR)"
	list := ", CAST(NULL AS VARCHAR[])"
	token := cols("tokid", oidInt4, "alias", oidText, "description", oidText)
	return []planner.SystemFunction{
		setOf("ts_token_type", fmt.Sprintf(tokenTypes, "$1 = 3722"), token, oidOID),
		setOf("ts_token_type", fmt.Sprintf(tokenTypes, "$1 IN ('default', 'pg_catalog.default')"), token, oidText),
		setOf("pg_identify_object", of("i.kind, i.space, i.own, i.identity", text+text+text), cols("type", oidText, "schema", oidText, "name", oidText, "identity", oidText),
			oidOID, oidOID, oidInt4),
		setOf("pg_identify_object_as_address", of("i.kind, i.names, i.args", list+list), cols("type", oidText, "object_names", uint32(1009), "object_args", uint32(1009)),
			oidOID, oidOID, oidInt4),
		setOf("pg_get_object_address", objectAddress(), cols("classid", oidOID, "objid", oidOID, "objsubid", oidInt4), oidText, uint32(1009), uint32(1009)),
	}
}

// typeAliases are other names of types than those that they are shown by.
const typeAliases = `map(['int', 'int4', 'int2', 'int8', 'float4', 'float8', 'bool', 'varchar', 'bpchar', 'char', 'decimal', 'varbit', 'timestamp', 'timestamptz',
	'time', 'timetz', 'float'], ['integer', 'integer', 'smallint', 'bigint', 'real', 'double precision', 'boolean', 'character varying', 'character', 'character',
	'numeric', 'bit varying', 'timestamp without time zone', 'timestamp with time zone', 'time without time zone', 'time with time zone', 'double precision'])`

// shownType is a type's name that a user writes as it is shown: without pg_catalog and aliases.
func shownType(name string) string {
	bare := "regexp_replace(regexp_replace(trim(" + name + "), '^pg_catalog\\.', ''), '(\\[\\])+$', '')"
	return "(coalesce(" + typeAliases + "[" + bare + "], " + bare + ") || CASE WHEN trim(" + name + ") LIKE '%[]' THEN '[]' ELSE '' END)"
}

// typeAddress finds a type by its name, routineAddress a function or an aggregate by its name and the
// types of its arguments.
func typeAddress() string {
	missing := `error(CASE WHEN len($2) <> 1 THEN '22023: name list length must be exactly 1' WHEN $2[1] LIKE '%(%' OR $2[1] LIKE '%\%%' ESCAPE '\' ` +
		`THEN '0A000: the type "' || $2[1] || '" is not found by name here' ELSE '42704: type "' || $2[1] || '" does not exist' END)`
	return "[row(CAST(1247 AS BIGINT), coalesce((SELECT CAST(min(t.oid) AS BIGINT) FROM {rel:pg_catalog.pg_type} t " +
		"JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = t.typnamespace WHERE len($2) = 1 AND (skippr_type_name(t.oid) = " + shownType("$2[1]") +
		" AND (n.nspname = 'pg_catalog' OR list_contains(string_split({fact:search_path}, ','), n.nspname)) OR n.nspname || '.' || t.typname = $2[1] OR t.typname = $2[1] " +
		"AND list_contains(string_split({fact:search_path}, ','), n.nspname))), CAST(" + missing + " AS BIGINT)), CAST(0 AS INTEGER))]"
}

func routineAddress() string {
	args := "list_transform($3, lambda a: " + shownType("a") + ")"
	missing := `error(CASE WHEN $1 = 'aggregate' THEN '42883: aggregate ' ELSE '42883: function ' END || array_to_string($2, '.') || '(' || array_to_string(` + args +
		`, ', ') || ') does not exist')`
	return "[row(CAST(1255 AS BIGINT), coalesce((SELECT CAST(min(CASE WHEN $1 = 'aggregate' AND p.prokind <> 'a' THEN error('42809: function ' || p.proname || '(' || array_to_string(" +
		args + ", ', ') || ') is not an aggregate') ELSE p.oid END) AS BIGINT) FROM {rel:pg_catalog.pg_proc} p JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = p.pronamespace " +
		"WHERE p.proname = $2[-1] AND (len($2) = 2 AND n.nspname = $2[1] OR len($2) = 1 AND list_contains(string_split({fact:search_path}, ','), n.nspname)) " +
		"AND list_transform(p.proargtypes, lambda t: skippr_type_name(t)) = " + args + "), CAST(" + missing + " AS BIGINT)), CAST(0 AS INTEGER))]"
}

// objectAddress finds an object by its kind and names, an error where there is none.
func objectAddress() string {
	const path = "string_split({fact:search_path}, ',')"
	const name = `'"' || array_to_string($2, '.') || '" does not exist'`
	missing := "CASE WHEN $1 = 'schema' THEN error('3F000: schema ' || " + name + ") WHEN $1 IN ('role', 'extension') THEN error('42704: ' || $1 || ' ' || " + name + ")" +
		` WHEN $1 = 'table constraint' THEN error('42704: constraint "' || $2[-1] || '" for table "' || $2[-2] || '" does not exist')` +
		` WHEN $1 LIKE '% column' THEN error('42703: column "' || $2[-1] || '" of relation "' || $2[-2] || '" does not exist')` +
		" ELSE error('42P01: relation ' || " + name + ") END"
	return "unnest(CASE WHEN $1 = 'type' THEN " + typeAddress() + " WHEN $1 IN ('function', 'aggregate') THEN " + routineAddress() + " WHEN $1 NOT IN ('table', 'view', 'materialized view', 'index', 'sequence', 'table column', 'view column', 'materialized view column', " +
		`'schema', 'role', 'extension', 'table constraint') THEN error('0A000: objects of type "' || $1 || '" are not found by name here')` +
		" ELSE [coalesce((SELECT arg_min(row(CAST(i.c AS BIGINT), CAST(i.o AS BIGINT), CAST(i.s AS INTEGER)), coalesce(list_position(" + path + ", i.names[1]), 0)) FROM (" +
		identifiable + ") i WHERE i.kind = $1 AND (i.names = $2 OR len(i.names) > 1 AND i.names[2:] = $2 AND list_contains(" + path + ", i.names[1]))), " +
		"row(CAST(" + missing + " AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS INTEGER)))] END)"
}

// aclLetters are the letters of privileges in SQL.
const aclLetters = `map(['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER', 'EXECUTE', 'USAGE', 'CREATE', 'CONNECT', 'TEMP', 'TEMPORARY', 'SET', 'ALTER SYSTEM'],
	['r', 'a', 'w', 'd', 'D', 'x', 't', 'X', 'U', 'C', 'c', 'T', 'T', 's', 'A'])`

// aclItem is the text of a right: makeaclitem(to, from, privilege, grantable).
func aclItem() string {
	role := func(oid string) string {
		return "coalesce((SELECT min(CASE WHEN regexp_matches(r.rolname, '^[A-Za-z0-9_]+$') THEN r.rolname ELSE '\"' || replace(r.rolname, '\"', '\"\"') || '\"' END) " +
			"FROM {rel:pg_catalog.pg_authid} r WHERE r.oid = " + oid + "), CAST(" + oid + " AS VARCHAR))"
	}
	return "(CASE WHEN $1 = 0 THEN '' ELSE " + role("$1") + " END || '=' || coalesce(" + aclLetters + "[upper($3)], CASE WHEN $3 IS NOT NULL THEN " +
		"error('22023: unrecognized privilege type: \"' || $3 || '\"') END) || CASE WHEN $4 THEN '*' ELSE '' END || '/' || " + role("$2") + ")"
}

// writable says whether a table takes changes by statements, writableColumn whether a column does.
const writable = `coalesce((SELECT min(t.is_insertable_into) = 'YES' FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
	JOIN {rel:information_schema.tables} t ON t.table_schema = n.nspname AND t.table_name = c.relname WHERE c.oid = $1), false)`

const writableColumn = `coalesce((SELECT min(t.is_updatable) = 'YES' FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
	JOIN {rel:information_schema.columns} t ON t.table_schema = n.nspname AND t.table_name = c.relname AND t.ordinal_position = $2 WHERE c.oid = $1), false)`

// objects are the functions about single objects and sessions that have no place else.
func objects() []planner.SystemFunction {
	databases := fn("pg_tablespace_databases", oidOID, "unnest(list_filter([CAST(5 AS BIGINT)], lambda d: $1 = 1663))", oidOID)
	databases.Set = true
	out := append(identifies(), databases,
		fn("makeaclitem", 1033, aclItem(), oidOID, oidOID, oidText, oidBool),
		fn("pg_relation_filepath", oidText, "(SELECT CASE WHEN count(*) < 0 THEN '' END FROM {rel:pg_catalog.pg_class} c WHERE c.oid = $1)", oidRegclass),
		fn("pg_get_functiondef", oidText, functionDef, oidOID),
		fn("pg_get_function_arg_default", oidText, defaultSQL("$1", "$2", "", "CAST(NULL AS VARCHAR)"), oidOID, oidInt4),
		fn("pg_describe_object", oidText, describeObject, oidOID, oidOID, oidInt4),
		fn("pg_relation_is_updatable", oidInt4, "CASE WHEN "+writable+" THEN 28 ELSE 0 END", oidRegclass, oidBool),
		fn("pg_column_is_updatable", oidBool, "($2 > 0 AND "+writableColumn+")", oidRegclass, oidInt2, oidBool),
		fn("pg_index_has_property", oidBool, "CASE lower($2) WHEN 'clusterable' THEN true WHEN 'index_scan' THEN true WHEN 'bitmap_scan' THEN true WHEN 'backward_scan' THEN true END",
			oidRegclass, oidText),
		fn("pg_relation_filenode", oidOID, "(SELECT nullif(min(c.relfilenode), 0) FROM {rel:pg_catalog.pg_class} c WHERE c.oid = $1)", oidRegclass),
		fn("pg_filenode_relation", oidRegclass, "(SELECT min(c.oid) FROM {rel:pg_catalog.pg_class} c WHERE c.relfilenode = $2 AND c.reltablespace = $1)", oidOID, oidOID),
		fn("oidvectortypes", oidText, "array_to_string(list_transform($1, lambda t: skippr_type_name(t)), ', ')", oidOIDVector),
		fn("inet_client_port", oidInt4, "(SELECT CAST(min(s.client_port) AS INTEGER) FROM {rel:pg_catalog.pg_stat_activity} s WHERE s.pid = CAST({fact:pid} AS INTEGER))"),
		fn("pg_jit_available", oidBool, "false"),
		fn("pg_trigger_depth", oidInt4, "CAST(0 AS INTEGER)"),
		fn("pg_notification_queue_usage", oidFloat8, "CAST(0 AS DOUBLE)"),
		fn("pg_safe_snapshot_blocking_pids", 1007, "CAST([] AS INTEGER[])", oidInt4),
	)
	for name, column := range map[string]string{
		"pg_stat_get_live_tuples": "n_live_tup", "pg_stat_get_dead_tuples": "n_dead_tup", "pg_stat_get_tuples_inserted": "n_tup_ins",
		"pg_stat_get_tuples_updated": "n_tup_upd", "pg_stat_get_tuples_deleted": "n_tup_del",
	} {
		out = append(out, fn(name, oidInt8, "coalesce((SELECT min(s."+column+") FROM {rel:pg_catalog.pg_stat_all_tables} s WHERE s.relid = $1), 0)", oidOID))
	}
	return out
}

package syscat

import "github.com/skipprd/skipprd/planner"

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
const describeObject = `(SELECT CASE q.c
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
	END
	FROM (SELECT $1 AS c, $2 AS o, $3 AS s) q)`

// writable says whether a table takes changes by statements.
const writable = `coalesce((SELECT min(t.is_insertable_into) = 'YES' FROM {rel:pg_catalog.pg_class} c JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = c.relnamespace
	JOIN {rel:information_schema.tables} t ON t.table_schema = n.nspname AND t.table_name = c.relname WHERE c.oid = $1), false)`

// objects are the functions about single objects and sessions that have no place else.
func objects() []planner.SystemFunction {
	out := []planner.SystemFunction{
		fn("pg_get_functiondef", oidText, functionDef, oidOID),
		fn("pg_get_function_arg_default", oidText, "CAST(NULL AS VARCHAR)", oidOID, oidInt4),
		fn("pg_describe_object", oidText, describeObject, oidOID, oidOID, oidInt4),
		fn("pg_relation_is_updatable", oidInt4, "CASE WHEN "+writable+" THEN 28 ELSE 0 END", oidRegclass, oidBool),
		fn("pg_column_is_updatable", oidBool, "($2 > 0 AND "+writable+")", oidRegclass, oidInt2, oidBool),
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
	}
	for name, column := range map[string]string{
		"pg_stat_get_live_tuples": "n_live_tup", "pg_stat_get_dead_tuples": "n_dead_tup", "pg_stat_get_tuples_inserted": "n_tup_ins",
		"pg_stat_get_tuples_updated": "n_tup_upd", "pg_stat_get_tuples_deleted": "n_tup_del",
	} {
		out = append(out, fn(name, oidInt8, "coalesce((SELECT min(s."+column+") FROM {rel:pg_catalog.pg_stat_all_tables} s WHERE s.relid = $1), 0)", oidOID))
	}
	return out
}

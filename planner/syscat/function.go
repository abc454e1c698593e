package syscat

import (
	"fmt"

	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/pgsql"
)

const oidAny uint32 = 2276

// fn is a function of pg_catalog.
func fn(name string, result uint32, engine string, args ...uint32) planner.SystemFunction {
	return planner.SystemFunction{Schema: "pg_catalog", Name: name, Args: args, Result: result, Engine: engine}
}

// Functions are the functions that only a catalog can answer.
func (c *Catalog) Functions() []planner.SystemFunction {
	var out []planner.SystemFunction
	out = append(out, visibility()...)
	out = append(out, names()...)
	out = append(out, descriptions()...)
	out = append(out, routines()...)
	out = append(out, definers()...)
	out = append(out, privileges()...)
	out = append(out, server()...)
	out = append(out, accessLists()...)
	out = append(out, infoFunctions()...)
	out = append(out, regNames()...)
	out = append(out, objects()...)
	return append(out, planner.SystemFunction{
		Schema: "skippr", Name: "get_ddl", Args: []uint32{oidText, oidText}, Result: oidText,
		Engine: "(SELECT string_agg(x.ddl, chr(10) ORDER BY x.ordinal) FROM {rel:skippr.ddl} x WHERE x.kind = lower($1) AND x.name = $2)",
	})
}

// inPath says whether the schema with oid n is in the search path.
const inPath = "list_contains(string_split({fact:search_path}, ','), (SELECT n.nspname FROM {rel:pg_catalog.pg_namespace} n WHERE n.oid = x.%s))"

func visibility() []planner.SystemFunction {
	visible := func(rel, space string) string {
		return fmt.Sprintf("(SELECT "+inPath+" FROM {rel:pg_catalog.%s} x WHERE x.oid = $1)", space, rel)
	}
	out := []planner.SystemFunction{
		fn("pg_table_is_visible", oidBool, visible("pg_class", "relnamespace"), oidOID),
		fn("pg_type_is_visible", oidBool, visible("pg_type", "typnamespace"), oidOID),
	}
	for _, name := range []string{
		"pg_function_is_visible", "pg_operator_is_visible", "pg_opclass_is_visible", "pg_opfamily_is_visible", "pg_collation_is_visible",
		"pg_conversion_is_visible", "pg_statistics_obj_is_visible", "pg_ts_config_is_visible", "pg_ts_dict_is_visible",
		"pg_ts_parser_is_visible", "pg_ts_template_is_visible",
	} {
		out = append(out, fn(name, oidBool, "($1 IS NOT NULL)", oidOID))
	}
	return out
}

// indexDef is the statement that would create an index, shortIndexDef the one without the
// schema of its table, where the search path finds it.
const (
	indexDef      = `(SELECT min(i.definition) FROM {rel:pg_catalog.index_definitions()} i WHERE i.index = $1 AND i.part = 0)`
	shortIndexDef = `(SELECT min(i.short) FROM {rel:pg_catalog.index_definitions()} i WHERE i.index = $1 AND i.part = 0)`
)

// indexColumn is one column of an index, all of it for column 0.
const indexColumn = `CASE WHEN $2 = 0 THEN CASE WHEN $3 THEN ` + shortIndexDef + ` ELSE ` + indexDef + ` END ELSE (SELECT min(CASE WHEN $3 THEN i.short ELSE i.definition END)
	FROM {rel:pg_catalog.index_definitions()} i WHERE i.index = $1 AND i.part = $2) END`

const constraintDef = `(SELECT CASE min(c.contype) WHEN 'p' THEN 'PRIMARY KEY (' ELSE 'UNIQUE ' || CASE WHEN bool_or(x.indnullsnotdistinct) THEN 'NULLS NOT DISTINCT ' ELSE '' END || '(' END || string_agg(skippr_quote_ident(a.attname), ', ' ORDER BY a.attnum) || ')'
	|| CASE WHEN bool_or(c.condeferrable) THEN ' DEFERRABLE' ELSE '' END || CASE WHEN bool_or(c.condeferred) THEN ' INITIALLY DEFERRED' ELSE '' END
	FROM {rel:pg_catalog.pg_constraint} c JOIN {rel:pg_catalog.pg_attribute} a ON a.attrelid = c.conindid JOIN {rel:pg_catalog.pg_index} x ON x.indexrelid = c.conindid WHERE c.oid = $1 AND c.contype IN ('p', 'u'))`

// foreignDef is a FOREIGN KEY as SQL.
const foreignDef = `(SELECT min('FOREIGN KEY (' || k.own || ') REFERENCES ' || CASE WHEN list_contains(string_split({fact:search_path}, ','), n.nspname)
	THEN '' ELSE skippr_quote_ident(n.nspname) || '.' END || skippr_quote_ident(p.relname) || '(' || k.refs || ')' || CASE c.confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END
	|| CASE c.confupdtype WHEN 'r' THEN ' ON UPDATE RESTRICT' WHEN 'c' THEN ' ON UPDATE CASCADE' WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' ELSE '' END
	|| CASE c.confdeltype WHEN 'r' THEN ' ON DELETE RESTRICT' WHEN 'c' THEN ' ON DELETE CASCADE' WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' ELSE '' END
	|| CASE WHEN c.confdelsetcols IS NULL THEN '' ELSE ' (' || k.cleared || ')' END
	|| CASE WHEN c.condeferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN c.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END
	|| CASE WHEN c.convalidated THEN '' ELSE ' NOT VALID' END)
	FROM {rel:pg_catalog.pg_constraint} c JOIN {rel:pg_catalog.pg_class} p ON p.oid = c.confrelid JOIN {rel:pg_catalog.pg_namespace} n ON n.oid = p.relnamespace
	JOIN (SELECT x.oid, string_agg(skippr_quote_ident(a.attname), ', ' ORDER BY x.i) AS own, string_agg(skippr_quote_ident(b.attname), ', ' ORDER BY x.i) AS refs,
		coalesce(string_agg(skippr_quote_ident(a.attname), ', ' ORDER BY x.i) FILTER (list_contains(x.s, x.k)), '') AS cleared
		FROM (SELECT oid, conrelid, confrelid, confdelsetcols AS s, unnest(conkey) AS k, unnest(confkey) AS r, unnest(range(1, len(conkey) + 1)) AS i
			FROM {rel:pg_catalog.pg_constraint} WHERE contype = 'f') x
		JOIN {rel:pg_catalog.pg_attribute} a ON a.attrelid = x.conrelid AND a.attnum = x.k
		JOIN {rel:pg_catalog.pg_attribute} b ON b.attrelid = x.confrelid AND b.attnum = x.r GROUP BY x.oid) k ON k.oid = c.oid
	WHERE c.oid = $1 AND c.contype = 'f')`

// checkDef is a CHECK as SQL, prettyCheck the one of pg_get_constraintdef with a flag.
const (
	checkDef    = `(SELECT min(x.definition) FROM {rel:pg_catalog.check_definitions()} x WHERE x.oid = $1)`
	prettyCheck = `(SELECT min(CASE WHEN $2 THEN x.pretty ELSE x.definition END) FROM {rel:pg_catalog.check_definitions()} x WHERE x.oid = $1)`
)

func definers() []planner.SystemFunction {
	null := "CAST(NULL AS VARCHAR)"
	withMod := pgsql.UserTypeName("{fact:types}", "$1 || ',' || $2")
	out := []planner.SystemFunction{
		fn("format_type", oidText, "CASE WHEN $1 > 1073741824 AND $2 IS NOT NULL AND "+withMod+" <> '' THEN "+withMod+" WHEN $1 > 1073741824 AND "+
			pgsql.UserTypeName("{fact:types}", "$1")+" <> '' THEN "+pgsql.UserTypeName("{fact:types}", "$1")+" WHEN $2 IS NULL THEN skippr_type_name($1) ELSE skippr_format_type($1, $2) END", oidOID, oidInt4),
		fn("pg_get_userbyid", oidName, "coalesce((SELECT x.rolname FROM {rel:pg_catalog.pg_roles} x WHERE x.oid = $1), 'unknown (OID=' || $1 || ')')", oidOID),
		fn("pg_get_indexdef", oidText, indexDef, oidOID),
		fn("pg_get_indexdef", oidText, indexColumn, oidOID, oidInt4, oidBool),
		fn("pg_get_constraintdef", oidText, "coalesce("+constraintDef+", "+foreignDef+", "+checkDef+")", oidOID),
		fn("pg_get_constraintdef", oidText, "coalesce("+constraintDef+", "+foreignDef+", "+prettyCheck+")", oidOID, oidBool),
		fn("pg_encoding_to_char", oidName, "skippr_enc_name($1)", oidInt4),
		fn("pg_char_to_encoding", oidInt4, "skippr_enc_number($1)", oidName),
		fn("pg_get_serial_sequence", oidText, serialSequence, oidText, oidText),
		fn("pg_sequence_last_value", oidInt8, sequenceLast, oidRegclass),
		fn("pg_get_viewdef", oidText, viewDefinition, oidOID),
		fn("pg_get_viewdef", oidText, prettyDefinition, oidOID, oidBool),
		fn("pg_get_ruledef", oidText, ruleDefinition(plainRule), oidOID),
		fn("pg_get_ruledef", oidText, ruleDefinition(prettyRule), oidOID, oidBool),
		fn("pg_get_function_sqlbody", oidText, null, oidOID),
		fn("pg_get_expr", oidText, "$1", 194, oidOID),
		fn("pg_get_expr", oidText, prettyExpression, 194, oidOID, oidBool),
		fn("pg_get_expr", oidText, "$1", oidText, oidOID),
		fn("pg_relation_is_publishable", oidBool, "false", oidRegclass),
		fn("pg_tablespace_location", oidText, "''", oidOID),
		fn("pg_get_replica_identity_index", oidRegclass, "CAST(NULL AS BIGINT)", oidRegclass),
	}
	for _, name := range []string{
		"pg_get_partkeydef", "pg_get_triggerdef", "pg_get_statisticsobjdef", "pg_get_statisticsobjdef_columns",
		"pg_get_partition_constraintdef",
	} {
		out = append(out, fn(name, oidText, null, oidOID), fn(name, oidText, null, oidOID, oidBool))
	}
	return out
}

// sizeOf is what a table takes in the lake and in the log, NULL for what is no relation; sizeOfAll
// that of all.
const (
	sizeOf     = "(SELECT min(x.bytes) FROM {rel:pg_catalog.relation_sizes()} x WHERE x.relation = $1)"
	sizeOfAll  = "CAST(coalesce((SELECT sum(x.bytes) FROM {rel:pg_catalog.relation_sizes()} x), 0) AS BIGINT)"
	sizeOfPart = "CASE lower($2) WHEN 'main' THEN " + sizeOf + " WHEN 'fsm' THEN 0 WHEN 'vm' THEN 0 WHEN 'init' THEN 0 ELSE CAST(error('22023: invalid fork name') AS BIGINT) END"
)

// started is when the server began, since when it counts.
const started = "(SELECT min(x.stats_reset) FROM {rel:pg_catalog.pg_stat_database} x)"

func server() []planner.SystemFunction {
	out := []planner.SystemFunction{
		fn("pg_backend_pid", oidInt4, "CAST({fact:pid} AS INTEGER)"),
		fn("pg_is_in_recovery", oidBool, "false"),
		fn("pg_my_temp_schema", oidOID, "coalesce((SELECT min(n.oid) FROM {rel:pg_catalog.pg_namespace} n WHERE n.nspname = {fact:temp_schema}), 0)"),
		fn("pg_is_other_temp_schema", oidBool, "false", oidOID),
		fn("pg_is_wal_replay_paused", oidBool, "false"),
		fn("inet_client_addr", oidInet, "(SELECT min(s.client_addr) FROM {rel:pg_catalog.pg_stat_activity} s WHERE s.pid = CAST({fact:pid} AS INTEGER))"),
		fn("inet_server_addr", oidInet, "nullif({fact:server_addr}, '')"),
		fn("inet_server_port", oidInt4, "CAST(nullif({fact:server_port}, '') AS INTEGER)"),
		fn("pg_database_size", oidInt8, sizeOfAll, oidAny),
		fn("pg_stat_get_numscans", oidInt8, "CAST(0 AS BIGINT)", oidOID),
	}
	out = append(out,
		fn("pg_client_encoding", oidName, "{fact:client_encoding}"),
		fn("age", oidInt4, "CAST(0 AS INTEGER)", oidXID),
		fn("txid_current", oidInt8, "CAST(1 AS BIGINT)"),
		fn("txid_current_if_assigned", oidInt8, "CAST(NULL AS BIGINT)"),
		fn("pg_postmaster_start_time", oidTimestampTZ, started),
		fn("pg_conf_load_time", oidTimestampTZ, started),
		fn("pg_index_column_has_property", oidBool, "($3 IN ('asc', 'orderable', 'returnable', 'search_array', 'search_nulls', 'nulls_last'))",
			oidRegclass, oidInt4, oidText),
		fn("pg_indexam_has_property", oidBool, "CASE WHEN lower($2) IN ('can_order', 'can_unique', 'can_multi_col', 'can_exclude', 'can_include') THEN $1 = 403 END", oidOID, oidText),
		fn("pg_blocking_pids", 1007, "CAST([] AS INTEGER[])", oidInt4),
		fn("pg_advisory_unlock_all", 2278, "CAST(NULL AS VARCHAR)"))
	for _, arg := range []uint32{oidOID, oidName} {
		out = append(out, fn("pg_tablespace_size", oidInt8,
			sizeOfAll, arg))
	}
	for _, name := range []string{"pg_relation_size", "pg_table_size", "pg_total_relation_size"} {
		out = append(out, fn(name, oidInt8, "CAST("+sizeOf+" AS BIGINT)", oidRegclass))
	}
	out = append(out, fn("pg_indexes_size", oidInt8, "CAST(0 * "+sizeOf+" AS BIGINT)", oidRegclass),
		fn("pg_relation_size", oidInt8, "CAST("+sizeOfPart+" AS BIGINT)", oidRegclass, oidText))
	return out
}

// Command gen writes the shapes of PostgreSQL's system relations, and the rows of the
// relations whose rows never change, from a running PostgreSQL 15 into ../data.
//
//	go run ./planner/syscat/gen -dsn 'host=/tmp user=postgres' -out planner/syscat/data
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// shapes lists every column of every relation, domains resolved to their base type as
// the wire announces them.
const shapes = `SELECT n.nspname, c.relname, c.relkind, c.oid, a.attname,
	CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END,
	CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END, a.attnotnull,
	a.attcollation, CASE WHEN t.typtype = 'd' THEN a.atttypid ELSE 0 END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
	JOIN pg_type t ON t.oid = a.atttypid
	WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
	ORDER BY 1, 2, a.attnum`

// fixed are relations whose rows are the same in every database that has no objects of
// its own, and the filter that keeps the built-in ones clients look at.
var fixed = map[string]string{
	"pg_type":       "oid < 10000 OR " + systemRows + " OR typnamespace = 'information_schema'::regnamespace AND (typtype = 'd' OR typelem <> 0)",
	"pg_am":         "true",
	"pg_language":   "oid < 100",
	"pg_collation":  "collname IN ('default', 'C', 'POSIX', 'ucs_basic', 'C.utf8')",
	"pg_cast":       "true",
	"pg_operator":   "oid < 10000",
	"pg_range":      "true",
	"pg_conversion": "true",
	"pg_opclass":    "true",
	"pg_opfamily":   "true",
	"pg_aggregate":  "true",
	"pg_amop":       "true",
	"pg_amproc":     "true",
	"pg_index":      "true",
	"pg_ts_config":  "true", "pg_ts_config_map": "true", "pg_ts_dict": "true", "pg_ts_parser": "true", "pg_ts_template": "true",
	// All functions of PostgreSQL; the server shows those that it has.
	"pg_proc": "(oid < 10000 OR proname LIKE 'dsnowball%') AND pronamespace = 'pg_catalog'::regnamespace OR pronamespace = 'information_schema'::regnamespace",
	"pg_description": `classoid IN ('pg_type'::regclass, 'pg_proc'::regclass, 'pg_am'::regclass, 'pg_namespace'::regclass, 'pg_ts_config'::regclass,
			'pg_ts_dict'::regclass, 'pg_ts_parser'::regclass, 'pg_ts_template'::regclass)
		OR classoid = 'pg_operator'::regclass AND objoid < 10000
		OR classoid = 'pg_language'::regclass AND objoid < 100 OR classoid = 'pg_conversion'::regclass
		OR classoid = 'pg_collation'::regclass AND objoid IN (SELECT oid FROM pg_collation WHERE collname IN ('default', 'C', 'POSIX', 'ucs_basic', 'C.utf8'))`,
	"pg_authid":       `rolname LIKE 'pg\_%'`,
	"pg_auth_members": "roleid < 16384 AND member < 16384",
}

// systemRows are the types of the rows of the system relations, and of arrays of them.
const systemRows = `oid IN (SELECT unnest(ARRAY[t.oid, t.typarray]) FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
	WHERE c.relkind IN ('r', 'v') AND c.relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace))`

// queries are rows of other relations, and what is read from functions.
var queries = map[string]string{
	"pg_get_keywords": "SELECT * FROM pg_get_keywords() ORDER BY word",
	"sql_features":    `SELECT * FROM information_schema.sql_features ORDER BY 1, 2, 3`,
	"sql_parts":       `SELECT * FROM information_schema.sql_parts ORDER BY 1, 2, 3`,
	"sql_sizing":      `SELECT * FROM information_schema.sql_sizing ORDER BY 1, 2, 3`,
	// The version is that of the server of which we say that we are it.
	"sql_implementation_info": `SELECT implementation_info_id, implementation_info_name, integer_value,
		CASE implementation_info_id WHEN '18' THEN '15.08.0000' ELSE character_value END, comments FROM information_schema.sql_implementation_info ORDER BY 1, 2, 3`,
	// What pg_class knows of the system relations beside their columns, of their indexes and their
	// TOAST tables. Their sizes are those of a database's files, which are not here.
	"system_class": `SELECT c.oid, n.nspname, c.relname, c.relkind, c.reltype, c.relam, c.reltoastrelid, c.relhasindex, c.relisshared, c.relchecks, c.relhasrules,
		c.relreplident, c.reltablespace, c.relnatts FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1`,
	"system_attribute": `SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attcollation FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE c.relkind IN ('i', 't') AND a.attnum > 0 ORDER BY 1, 2`,
	"pg_indexes": `SELECT x.schemaname, x.tablename, x.indexname, x.tablespace, x.indexdef FROM pg_indexes x WHERE x.schemaname IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, 3`,
	"index_definitions": `SELECT indexrelid, n, pg_get_indexdef(indexrelid, n, false), pg_get_indexdef(indexrelid, n, true)
		FROM pg_index, generate_series(0, indnatts) n ORDER BY 1, 2`,
	"check_definitions": `SELECT oid, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE contype = 'c' ORDER BY 1`,
	"ts_token_type":     `SELECT tokid, alias, description FROM ts_token_type('default') ORDER BY 1`,
	// PostgreSQL's keys, and the checks of the domains of information_schema with their conditions
	// as SQL in the place of conbin.
	"pg_constraint": `SELECT oid, conname, connamespace, contype, condeferrable, condeferred, convalidated, conrelid, contypid, conindid, conparentid, confrelid,
		confupdtype, confdeltype, confmatchtype, conislocal, coninhcount, connoinherit, conkey, confkey, conpfeqop, conppeqop, conffeqop, confdelsetcols, conexclop,
		pg_get_expr(conbin, conrelid) FROM pg_constraint ORDER BY 1`,
	"system_rewrite":   `SELECT r.oid, r.ev_class FROM pg_rewrite r ORDER BY 1`,
	"view_definitions": `SELECT oid, pg_get_viewdef(oid), pg_get_viewdef(oid, true) FROM pg_class WHERE relkind = 'v' ORDER BY 1`,
	// What information_schema hangs on: the rest of PostgreSQL's own objects is pinned.
	"pg_depend": `SELECT classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype FROM pg_depend
		WHERE NOT ('pg_proc'::regclass IN (classid, refclassid) OR 'pg_extension'::regclass IN (classid, refclassid) OR classid = 'pg_language'::regclass)
		ORDER BY 1, 2, 3, 4, 5, 6, 7`,
	"pg_timezone_abbrevs": "SELECT * FROM pg_timezone_abbrevs ORDER BY abbrev",
	// Zones as PostgreSQL names them; their offsets depend on the day.
	"zone_names": "SELECT name FROM pg_timezone_names WHERE name NOT LIKE 'posix%' AND name NOT IN ('localtime', 'Factory') ORDER BY name",
	// All settings as they are without a configuration. Those of the build's own are not PostgreSQL's.
	"../../setting/data/settings": `SELECT name, vartype, unit, context, boot_val, min_val, max_val, array_to_string(enumvals, ','), category, short_desc, extra_desc
		FROM pg_settings WHERE name NOT LIKE '%.%' AND name NOT IN ('server_version', 'server_version_num', 'extension_destdir') ORDER BY name COLLATE "C"`,
}

// order is what makes the files stable.
var order = map[string]string{
	"pg_description": "classoid, objoid, objsubid", "pg_auth_members": "roleid, member", "pg_ts_config_map": "1, 2, 3",
	"pg_opclass": "ctid", // in which it shows them where it is not asked for another order
}

// selectNothing are columns whose text is long and tells clients nothing.
var selectNothing = strings.NewReplacer("proargdefaults", "NULL", "prosqlbody", "NULL")

// selectList gives a relation's columns, the reg types as the oids they are.
const selectList = `SELECT string_agg(quote_ident(attname) || CASE WHEN atttypid::regtype::text LIKE 'reg%' THEN '::oid' ELSE '' END, ', ' ORDER BY attnum)
	FROM pg_attribute WHERE attrelid = ('pg_catalog.' || $1)::regclass AND attnum > 0`

func main() {
	dsn := flag.String("dsn", "", "a PostgreSQL 15 without user objects")
	out := flag.String("out", "planner/syscat/data", "directory to write to")
	flag.Parse()
	if err := run(context.Background(), *dsn, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dsn, out string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	if err := write(ctx, conn, filepath.Join(out, "shapes.tsv"), shapes); err != nil {
		return err
	}
	for rel, where := range fixed {
		var list string
		if err := conn.QueryRow(ctx, selectList, rel).Scan(&list); err != nil {
			return fmt.Errorf("columns of %s: %w", rel, err)
		}
		by := order[rel]
		if by == "" {
			by = "1"
		}
		sql := fmt.Sprintf("SELECT %s FROM pg_catalog.%s WHERE %s ORDER BY %s", selectNothing.Replace(list), rel, where, by)
		if err := write(ctx, conn, filepath.Join(out, rel+".tsv"), sql); err != nil {
			return err
		}
	}
	for rel, sql := range queries {
		if err := write(ctx, conn, filepath.Join(out, rel+".tsv"), sql); err != nil {
			return err
		}
	}
	return nil
}

// write stores a query's rows in COPY's text format: tabs between columns, \N for NULL.
func write(ctx context.Context, conn *pgx.Conn, path, sql string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	sql = strings.ReplaceAll(sql, "\n", " ")
	_, err = conn.PgConn().CopyTo(ctx, f, "COPY ("+sql+") TO STDOUT")
	if err != nil {
		f.Close()
		return fmt.Errorf("copy to %s: %w", path, err)
	}
	return f.Close()
}

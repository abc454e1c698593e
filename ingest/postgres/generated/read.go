package generated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
)

// Column is a generated column of a table.
type Column struct {
	Number  int16
	Name    string
	Recipe  schema.Computed // as if it were not sent
	Virtual bool
	Changed uint32 // the transaction that wrote the expression, 0 long ago
	Problem string // a clause on why it cannot be computed from what is sent, "" for none
	Barred  []Function
}

// Function is one that an expression calls, which the role may not execute that evaluates
// it: see Session.
type Function struct {
	Role, Schema, Signature string
	Usage                   bool // whether the role may use its schema
}

// longAgo is an age in transactions beyond which their numbers are not compared.
const longAgo = 1_000_000_000

// columnsQuery lists the generated columns of tables $1. Names in expressions and types are
// qualified, for the session's search_path is pg_catalog alone. An expression depends on
// the columns that it reads by the column or, from version 15 on, by its default.
var columnsQuery = `
SELECT a.attrelid, a.attnum, {{a.attname}}, a.attgenerated::text,
       {{pg_catalog.pg_get_expr(d.adbin, d.adrelid)}}, {{pg_catalog.format_type(a.atttypid, a.atttypmod)}},
       pg_catalog.md5(d.adbin::text),
       (CASE WHEN abs(pg_catalog.age(d.xmin)) < $2 THEN d.xmin::text::int8 ELSE 0 END)::int8,
       {{(SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('attnum', i.attnum, 'name', i.attname,
                 'type', pg_catalog.format_type(i.atttypid, i.atttypmod),
                 'cast', t.typarray = 0 OR t.typdelim <> ',' OR t.typtype IN ('c', 'd'),
                 'collation', (SELECT pg_catalog.quote_ident(cn.nspname) || '.' || pg_catalog.quote_ident(l.collname)
                                 FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace cn ON cn.oid = l.collnamespace
                                WHERE l.oid = i.attcollation AND i.attcollation <> t.typcollation)) ORDER BY i.attnum), '[]')
          FROM pg_catalog.pg_attribute i JOIN pg_catalog.pg_type t ON t.oid = i.atttypid
         WHERE i.attrelid = a.attrelid AND i.attnum <> a.attnum AND i.attnum IN (
               SELECT p.refobjsubid FROM pg_catalog.pg_depend p
                WHERE p.refclassid = 'pg_catalog.pg_class'::regclass AND p.refobjid = a.attrelid AND p.refobjsubid > 0
                  AND (   p.classid = 'pg_catalog.pg_class'::regclass AND p.objid = a.attrelid AND p.objsubid = a.attnum
                       OR p.classid = 'pg_catalog.pg_attrdef'::regclass AND p.objid = d.oid)))}},
       EXISTS (SELECT FROM pg_catalog.pg_partition_tree(a.attrelid) l
                 JOIN pg_catalog.pg_attribute la ON la.attrelid = l.relid AND la.attname = a.attname AND NOT la.attisdropped
                 LEFT JOIN pg_catalog.pg_attrdef ld ON ld.adrelid = la.attrelid AND ld.adnum = la.attnum
                WHERE l.relid <> a.attrelid
                  AND pg_catalog.pg_get_expr(ld.adbin, ld.adrelid) IS DISTINCT FROM pg_catalog.pg_get_expr(d.adbin, d.adrelid)),
       {{(SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('Role', x.role, 'Schema', n.nspname, 'Signature', f.oid::regprocedure::text,
                 'Usage', pg_catalog.has_schema_privilege(x.role, n.oid, 'USAGE')) ORDER BY f.oid), '[]')
          FROM pg_catalog.pg_depend p
          LEFT JOIN pg_catalog.pg_operator o ON p.refclassid = 'pg_catalog.pg_operator'::regclass AND o.oid = p.refobjid
          JOIN pg_catalog.pg_proc f ON f.oid = o.oprcode OR p.refclassid = 'pg_catalog.pg_proc'::regclass AND f.oid = p.refobjid
          JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
         WHERE (   p.classid = 'pg_catalog.pg_class'::regclass AND p.objid = a.attrelid AND p.objsubid = a.attnum
                OR p.classid = 'pg_catalog.pg_attrdef'::regclass AND p.objid = d.oid)
           AND NOT (pg_catalog.has_function_privilege(x.role, f.oid, 'EXECUTE') AND pg_catalog.has_schema_privilege(x.role, n.oid, 'USAGE')))}}
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 CROSS JOIN LATERAL (` + evaluatorOf("a.attrelid") + `) x
 WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> ''
 ORDER BY a.attrelid, a.attnum`

// Read lists the generated columns of tables, by their numbers. The session's search_path
// must be pg_catalog.
func Read(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32][]Column, error) {
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(columnsQuery), oids, longAgo)
	if err != nil {
		return nil, fmt.Errorf("list generated columns: %w", err)
	}
	out := map[uint32][]Column{}
	var table uint32
	var kind, inputs, functions string
	var changed int64
	var mixed bool
	var c Column
	_, err = pgx.ForEachRow(rows, []any{
		&table, &c.Number, &c.Name, &kind, &c.Recipe.Expr, &c.Recipe.Type, &c.Recipe.Form, &changed, &inputs, &mixed, &functions,
	}, func() error {
		made := c
		made.Virtual, made.Changed = kind == "v", uint32(changed)
		names.Read(&made.Name, &made.Recipe.Expr, &made.Recipe.Type, &inputs, &functions)
		if !naming.Said(made.Recipe.Expr, made.Recipe.Type, inputs) {
			made.Problem = "its expression has what UTF-8 has no equivalent of"
		}
		inputs, functions, made.Recipe.Expr, made.Recipe.Type = naming.Show(inputs), naming.Show(functions), naming.Show(made.Recipe.Expr), naming.Show(made.Recipe.Type)
		if err := json.Unmarshal([]byte(inputs), &made.Recipe.Inputs); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(functions), &made.Barred); err != nil {
			return err
		}
		if mixed {
			made.Problem = "its partitions compute it in other ways"
		}
		out[table] = append(out[table], made)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list generated columns: %w", err)
	}
	return out, nil
}

// versionSent is the first that can send generated columns.
const versionSent = 180000

// sentQuery tells of a publication whether it sends stored generated columns, and which
// columns of which of tables $2 it lists.
const sentQuery = `
SELECT p.pubgencols = 's',
       (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('table', r.prrelid::int8, 'columns',
               (SELECT pg_catalog.json_agg(a.attname) FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = r.prrelid AND a.attnum = ANY(r.prattrs)))), '[]')
          FROM pg_catalog.pg_publication_rel r
         WHERE r.prpubid = p.oid AND r.prattrs IS NOT NULL AND r.prrelid = ANY($2::oid[]))::text
  FROM pg_catalog.pg_publication p WHERE p.pubname = $1`

// Sent says which stored generated columns of tables a publication sends. One that is not
// there yet is going to be made by us, and will send all that the server can. The stream
// has the last word.
func Sent(ctx context.Context, conn *pgx.Conn, publication string, oids []uint32) (func(oid uint32, column string) bool, error) {
	none := func(uint32, string) bool { return false }
	var version int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int4").Scan(&version); err != nil {
		return nil, fmt.Errorf("read server version: %w", err)
	}
	if version < versionSent {
		return none, nil
	}
	var all bool
	var text string
	err := conn.QueryRow(ctx, sentQuery, publication, oids).Scan(&all, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return func(uint32, string) bool { return true }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read publication %s: %w", publication, err)
	}
	var lists []struct {
		Table   uint32   `json:"table"`
		Columns []string `json:"columns"`
	}
	if err := json.Unmarshal([]byte(text), &lists); err != nil {
		return nil, fmt.Errorf("read publication %s: %w", publication, err)
	}
	listed := map[uint32][]string{}
	for _, l := range lists {
		listed[l.Table] = l.Columns
	}
	return func(oid uint32, column string) bool {
		if columns, ok := listed[oid]; ok {
			return slices.Contains(columns, column)
		}
		return all
	}, nil
}

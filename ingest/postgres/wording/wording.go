package wording

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/watch"
)

// formsMax bounds how many forms are read: what is beyond is not watched.
const formsMax = 500_000

// versionMultirange is the first server with multiranges.
const versionMultirange = 140000

// formsQuery lists the forms of tables $1. Types below 16384 are the server's own, and
// never change. The expression of a generated column counts, too. The age of a form is that of its newest part, in transactions; one that
// cannot be compared is as old as can be.
const formsQuery = `
WITH RECURSIVE own AS (
  SELECT a.attrelid AS relation, a.attnum AS number, a.atttypid AS type, pg_catalog.age(a.xmin) AS age
    FROM pg_catalog.pg_attribute a
   WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384),
reached(root, type) AS (
  SELECT DISTINCT o.type, o.type FROM own o
  UNION
  SELECT r.root, n.type
    FROM reached r JOIN pg_catalog.pg_type t ON t.oid = r.type,
         LATERAL (
           SELECT t.typelem
           UNION ALL SELECT t.typbasetype
           UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
                      WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
           UNION ALL SELECT g.rngsubtype FROM pg_catalog.pg_range g WHERE g.rngtypid = t.oid
           {multirange}) n(type)
   WHERE n.type >= 16384),
forms(root, id, text, age) AS (
  SELECT r.root, 'e' || e.oid, concat_ws(' ', e.xmin, e.enumlabel), pg_catalog.age(e.xmin)
    FROM reached r JOIN pg_catalog.pg_enum e ON e.enumtypid = r.type
  UNION ALL
  SELECT r.root, 'c' || t.typrelid, l.text, l.age
    FROM reached r JOIN pg_catalog.pg_type t ON t.oid = r.type AND t.typtype = 'c',
         LATERAL (SELECT coalesce(string_agg(concat_ws(' ', a.attnum, a.atttypid), ', ' ORDER BY a.attnum) FILTER (WHERE NOT a.attisdropped), ''),
                         min(pg_catalog.age(a.xmin))
                    FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0) l(text, age)),
found(relation, number, id, text, late) AS (
  SELECT o.relation, o.number, 't', o.type::text, false FROM own o
  UNION ALL
  SELECT o.relation, o.number, f.id, f.text, coalesce(f.age >= 0 AND f.age < o.age, false) FROM own o JOIN forms f ON f.root = o.type
  UNION ALL
  SELECT a.attrelid, a.attnum, 'g', d.adbin::text, pg_catalog.age(d.xmin) >= 0 AND pg_catalog.age(d.xmin) < pg_catalog.age(a.xmin)
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
   WHERE a.attrelid = ANY($1::oid[]) AND a.attgenerated <> '')
`

const multirange = `UNION ALL SELECT g.rngtypid FROM pg_catalog.pg_range g WHERE g.rngmultitypid = t.oid`

func query(version int, tail string) string {
	more := ""
	if version >= versionMultirange {
		more = multirange
	}
	return strings.Replace(formsQuery, "{multirange}", more, 1) + tail
}

// Read returns the forms of tables, by their numbers, as a server of a version has them
// at the connection's snapshot.
func Read(ctx context.Context, conn *pgx.Conn, version int, tables []uint32) (map[uint32][]watch.Form, error) {
	rows, err := conn.Query(ctx, query(version, fmt.Sprintf(
		"SELECT relation, number, id, left(pg_catalog.md5(text), 12), late FROM found ORDER BY 1, 2, 3 LIMIT %d", formsMax)), tables)
	if err != nil {
		return nil, fmt.Errorf("read forms of values: %w", err)
	}
	out := map[uint32][]watch.Form{}
	var table uint32
	var f watch.Form
	_, err = pgx.ForEachRow(rows, []any{&table, &f.Column, &f.ID, &f.Text, &f.Late}, func() error {
		out[table] = append(out[table], f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read forms of values: %w", err)
	}
	return out, nil
}

// Digest is another text whenever Read would return other forms for tables.
func Digest(ctx context.Context, conn *pgx.Conn, version int, tables []uint32) (digest string, err error) {
	sql := query(version, `SELECT pg_catalog.md5(coalesce(string_agg(concat_ws(' ', relation, number, id, text), E'\n' ORDER BY relation, number, id), '')) FROM found`)
	if err := conn.QueryRow(ctx, sql, tables).Scan(&digest); err != nil {
		return "", fmt.Errorf("digest forms of values: %w", err)
	}
	return digest, nil
}

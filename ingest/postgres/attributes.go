package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/postgres/generated"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
)

// liveAttribute is a column of the catalog, dropped or not, with what older rows have.
type liveAttribute struct {
	attribute
	dropped bool
	// changed is the transaction that changed it last, 0 long ago.
	changed uint32
	// missing are the texts of what rows older than the column have in it, one for all
	// partitions unless they differ.
	missing []string
	// eachOwn says that the default which it has now gives each row a value of its own.
	eachOwn bool
}

// longAgo is an age in transactions beyond which their numbers are not compared.
const longAgo = 1_000_000_000

// attributesQuery lists the columns of table $1, dropped ones and generated ones too. Of a
// partitioned table only the partitions have what older rows have in a column.
const attributesQuery = `
SELECT a.attnum, {{a.attname}}, a.attisdropped, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated <> '',
       a.attndims::int4, {{pg_catalog.format_type(a.atttypid, a.atttypmod)}},
       (CASE WHEN abs(pg_catalog.age(a.xmin)) < $2 THEN a.xmin::text::int8 ELSE 0 END)::int8,
       a.attidentity <> '' OR EXISTS (
         WITH RECURSIVE d(oid) AS (SELECT a.atttypid UNION
              SELECT t.typbasetype FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid WHERE t.typtype = 'd')
         SELECT FROM (SELECT t.typdefaultbin::text FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid WHERE t.typtype = 'd'
                      UNION ALL SELECT x.adbin::text FROM pg_catalog.pg_attrdef x WHERE x.adrelid = a.attrelid AND x.adnum = a.attnum) e(tree),
                LATERAL pg_catalog.regexp_matches(e.tree, ':(?:funcid|opfuncid) (\d+)', 'g') f(number)
           JOIN pg_catalog.pg_proc p ON p.oid = f.number[1]::oid
          WHERE p.provolatile = 'v'),
       ARRAY(SELECT DISTINCT {{pg_catalog.array_to_string(m.attmissingval, '')}}
               FROM pg_catalog.pg_attribute m
              WHERE m.atthasmissing AND m.attname = a.attname
                AND (m.attrelid = a.attrelid
                     OR m.attrelid IN (SELECT t.relid FROM pg_catalog.pg_partition_tree(a.attrelid) t WHERE t.isleaf)))::text[]
  FROM pg_catalog.pg_attribute a
 WHERE a.attrelid = $1 AND a.attnum > 0
 ORDER BY a.attnum`

// uniqueQuery lists the columns of each index of table $1 that keeps rows unique, as
// "{1,2}" in the order of their numbers.
const uniqueQuery = `
SELECT ARRAY(SELECT k.attnum FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
              WHERE k.place <= i.indnkeyatts ORDER BY 1)::text
  FROM pg_catalog.pg_index i
 WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL`

// liveTable is a table as the catalog has it now.
type liveTable struct {
	columns []liveAttribute
	unique  []string
	look    rewrite.Look
	domains map[uint32]domain
	// computed are its generated columns.
	computed []generated.Column
}

func readLiveTable(ctx context.Context, conn *pgx.Conn, oid uint32) (*liveTable, error) {
	t := &liveTable{}
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(attributesQuery), oid, longAgo)
	if err != nil {
		return nil, unavailable("read columns", err)
	}
	t.columns, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a liveAttribute, err error) {
		var changed int64
		err = row.Scan(&a.number, &a.name, &a.dropped, &a.oid, &a.typmod, &a.notNull, &a.generated, &a.dims, &a.typeName,
			&changed, &a.eachOwn, &a.missing)
		a.changed = uint32(changed)
		names.Read(&a.name, &a.typeName)
		a.typeName = naming.Show(a.typeName)
		names.Texts(a.missing)
		return a, err
	})
	if err != nil {
		return nil, unavailable("read columns", err)
	}
	if rows, err = conn.Query(ctx, uniqueQuery, oid); err != nil {
		return nil, unavailable("read keys", err)
	}
	if t.unique, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, unavailable("read keys", err)
	}
	looks, err := rewrite.Read(ctx, conn, []uint32{oid})
	if err != nil {
		return nil, unavailable("look at a table", err)
	}
	t.look = looks[oid]
	t.domains, err = readDomains(ctx, conn)
	return t, err
}

// typeName is a type's name, for types of the database's own.
func typeName(ctx context.Context, conn *pgx.Conn, oid uint32, typmod int32) (string, error) {
	var name string
	names := naming.Of(conn.PgConn())
	err := conn.QueryRow(ctx, names.SQL("SELECT {{pg_catalog.format_type($1, $2)}}"), oid, typmod).Scan(&name)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", unavailable("read name of a type", err)
	}
	return naming.Show(names.Text(name)), nil
}

// column is the live column with a number; ok is false when the table does not have it.
func (t *liveTable) column(number int16) (liveAttribute, bool) {
	i := slices.IndexFunc(t.columns, func(a liveAttribute) bool { return a.number == number && !a.dropped })
	if i < 0 {
		return liveAttribute{}, false
	}
	return t.columns[i], true
}

// keeps says that an index keeps rows unique by the columns with these numbers.
func (t *liveTable) keeps(numbers []int16) bool {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	text := "{"
	for i, n := range sorted {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(n)
	}
	return slices.Contains(t.unique, text+"}")
}

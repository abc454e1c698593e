package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/generated"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
)

// liveAttribute is a column of the catalog, dropped or not, with what older rows have.
type liveAttribute struct {
	attribute
	dropped bool
	// changed is the transaction that changed it last, 0 long ago.
	changed uint32
	// missing are the texts of what rows older than the column have in it, one for all
	// partitions unless they differ. hasDefault says that it has a default now, which may
	// be its domain's.
	missing    []string
	hasDefault bool
}

// longAgo is an age in transactions beyond which their numbers are not compared.
const longAgo = 1_000_000_000

// attributesQuery lists the columns of table $1, dropped ones and generated ones too. Of a
// partitioned table only the partitions have what older rows have in a column.
const attributesQuery = `
SELECT a.attnum, {{a.attname}}, a.attisdropped, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated <> '',
       a.attndims::int4, {{pg_catalog.format_type(a.atttypid, a.atttypmod)}},
       (CASE WHEN abs(pg_catalog.age(a.xmin)) < $2 THEN a.xmin::text::int8 ELSE 0 END)::int8,
       a.atthasdef OR a.attidentity <> '' OR EXISTS (
         WITH RECURSIVE d(oid) AS (SELECT a.atttypid UNION
              SELECT t.typbasetype FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid WHERE t.typtype = 'd')
         SELECT FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid WHERE t.typtype = 'd' AND t.typdefault IS NOT NULL),
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

// filesQuery tells the files of tables $1 and their partitions, as text: other ones after
// a rewrite.
const filesQuery = `
SELECT o.oid, coalesce((SELECT max(a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = o.oid), 0)::int2,
       ARRAY(SELECT coalesce(pg_catalog.pg_relation_filenode(t.relid), 0) FROM (
                SELECT o.oid AS relid UNION SELECT p.relid FROM pg_catalog.pg_partition_tree(o.oid) p WHERE p.isleaf) t
              ORDER BY 1)::text
  FROM unnest($1::oid[]) o(oid)`

// tableFiles are a table's files, and its newest column, at the last look.
type tableFiles struct {
	newest int16
	files  string
	// plain says of columns that came between two looks whether they came without a
	// rewrite of the table: then older rows have nothing in them but what the catalog says.
	plain map[int16]bool
}

// next is what is known after another look.
func (f tableFiles) next(now tableFiles) tableFiles {
	now.plain = f.plain
	for n := f.newest + 1; n <= now.newest; n++ {
		if now.plain == nil {
			now.plain = map[int16]bool{}
		}
		now.plain[n] = f.files == now.files
	}
	return now
}

// liveTable is a table as the catalog has it now.
type liveTable struct {
	columns []liveAttribute
	unique  []string
	tableFiles
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
			&changed, &a.hasDefault, &a.missing)
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
	files, err := readFiles(ctx, conn, []uint32{oid})
	if err != nil {
		return nil, err
	}
	t.tableFiles = files[oid]
	t.domains, err = readDomains(ctx, conn)
	return t, err
}

func readFiles(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]tableFiles, error) {
	rows, err := conn.Query(ctx, filesQuery, oids)
	if err != nil {
		return nil, unavailable("read files of tables", err)
	}
	out := make(map[uint32]tableFiles, len(oids))
	var oid uint32
	var f tableFiles
	_, err = pgx.ForEachRow(rows, []any{&oid, &f.newest, &f.files}, func() error {
		out[oid] = f
		return nil
	})
	if err != nil {
		return nil, unavailable("read files of tables", err)
	}
	return out, nil
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

func streamOIDs(tables []ingest.StreamTable) []uint32 {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.Source.OID
	}
	slices.Sort(oids)
	return oids
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

package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/wording"
	"github.com/skipprd/skipprd/ingest/watch"
)

// dropTable is the hint for a table that the source has no more.
const dropTable = "Take it out, with what it has: ALTER PIPELINE … DROP TABLE …;"

const presentQuery = `
SELECT c.oid, n.nspname::text, c.relname::text
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY($1::oid[]) AND c.relkind IN ('r', 'p')`

// present are the tables that the source still has, under the names that they have
// now, so that one that was dropped or renamed keeps no other from being published.
// gone says which were dropped, in sentences.
func present(ctx context.Context, conn *pgx.Conn, tables []ingest.SourceTable) (here []ingest.SourceTable, gone []string, err error) {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	rows, err := conn.Query(ctx, presentQuery, oids)
	if err != nil {
		return nil, nil, unavailable("look for tables", err)
	}
	defer rows.Close()
	names := make(map[uint32][2]string, len(tables))
	for rows.Next() {
		var oid uint32
		var name [2]string
		if err := rows.Scan(&oid, &name[0], &name[1]); err != nil {
			return nil, nil, unavailable("look for tables", err)
		}
		names[oid] = name
	}
	if err := rows.Err(); err != nil {
		return nil, nil, unavailable("look for tables", err)
	}
	for _, t := range tables {
		name, ok := names[t.OID]
		if !ok {
			gone = append(gone, fmt.Sprintf("table %s.%s was dropped at the source: it keeps what it has", t.Schema, t.Name))
			continue
		}
		t.Schema, t.Name = name[0], name[1]
		here = append(here, t)
	}
	return here, gone, nil
}

// markQuery is a digest of which tables there are, who may read them, and which are parts
// of which.
const markQuery = `
SELECT pg_catalog.md5(coalesce(string_agg(x, ' ' ORDER BY x), '')) FROM (
  SELECT concat_ws(':', c.oid, c.relname, c.relkind, c.relpersistence, c.relreplident, n.nspname, c.relhasindex, c.relowner,
                   c.relacl, n.nspacl) AS x
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
     AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  UNION ALL
  SELECT concat_ws(':', i.inhrelid, i.inhparent, i.xmin) FROM pg_catalog.pg_inherits i) all_tables`

// thereQuery lists those of tables $1 that exist, with the root that they are a part of.
const thereQuery = `
SELECT c.oid, n.nspname::text, c.relname::text,
       coalesce(CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid)::oid END, 0)::oid
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY($1::oid[]) AND c.relkind IN ('r', 'p')`

// partsQuery lists the partitions of tables $1, at any depth. One is born as a partition
// when its row type is as old as its being one: attaching it leaves that type alone.
const partsQuery = `
SELECT o.oid, t.relid::oid, t.isleaf, y.xmin = i.xmin, i.xmin::text, i.cmin::text::int8
  FROM unnest($1::oid[]) o(oid)
  JOIN pg_catalog.pg_class r ON r.oid = o.oid AND r.relkind = 'p',
       LATERAL pg_catalog.pg_partition_tree(o.oid) t
  JOIN pg_catalog.pg_class c ON c.oid = t.relid
  JOIN pg_catalog.pg_type y ON y.oid = c.reltype
  JOIN pg_catalog.pg_inherits i ON i.inhrelid = t.relid
 WHERE t.relid::oid <> o.oid
 ORDER BY 1, 2`

// part is a partition as partsQuery has it: who made it one, at which of his commands.
type part struct {
	watch.Part
	leaf    bool
	xmin    string
	command int64
}

func readParts(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32][]part, error) {
	rows, err := conn.Query(ctx, partsQuery, oids)
	if err != nil {
		return nil, unavailable("list partitions", err)
	}
	out := map[uint32][]part{}
	var root uint32
	var p part
	_, err = pgx.ForEachRow(rows, []any{&root, &p.OID, &p.leaf, &p.Born, &p.xmin, &p.command}, func() error {
		out[root] = append(out[root], p)
		return nil
	})
	if err != nil {
		return nil, unavailable("list partitions", err)
	}
	return out, nil
}

// bringParts notes the partitions of partitioned tables.
func bringParts(ctx context.Context, conn *pgx.Conn, relations []relation, tables []ingest.SourceTable) error {
	var roots []uint32
	for _, r := range relations {
		if r.kind == "p" {
			roots = append(roots, r.oid)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	parts, err := readParts(ctx, conn, roots)
	if err != nil {
		return err
	}
	for i := range tables {
		t := &tables[i]
		if !slices.Contains(roots, t.OID) {
			continue
		}
		t.Parts = []uint32{}
		for _, p := range parts[t.OID] {
			t.Parts = append(t.Parts, p.OID)
		}
		slices.Sort(t.Parts)
	}
	return nil
}

var _ ingest.TableWatcher = (*Source)(nil)

// Look implements ingest.TableWatcher.
func (s *Source) Look(ctx context.Context, sel catalog.TableSelection, here []watch.Here, last string) (ingest.Look, error) {
	var look ingest.Look
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, markQuery).Scan(&look.Mark); err != nil {
			return unavailable("look for tables", err)
		}
		types, err := wording.Digest(ctx, conn, serverVersion(conn), numbersOf(here))
		if err != nil {
			return unavailable("look at types", err)
		}
		if look.Mark += types; look.Mark == last {
			return nil
		}
		if look.Known, err = there(ctx, conn, here); err != nil {
			return err
		}
		look.Found, err = discover(ctx, conn, sel)
		return err
	})
	if err != nil {
		return ingest.Look{}, fmt.Errorf("look at tables: %w", err)
	}
	return look, nil
}

func numbersOf(here []watch.Here) []uint32 {
	oids := make([]uint32, len(here))
	for i, h := range here {
		oids[i] = h.OID
	}
	return oids
}

// there are the tables of here that exist.
func there(ctx context.Context, conn *pgx.Conn, here []watch.Here) (map[uint32]watch.There, error) {
	oids := numbersOf(here)
	rows, err := conn.Query(ctx, thereQuery, oids)
	if err != nil {
		return nil, unavailable("look for tables", err)
	}
	out := map[uint32]watch.There{}
	var t watch.There
	_, err = pgx.ForEachRow(rows, []any{&t.OID, &t.Schema, &t.Name, &t.Root}, func() error {
		out[t.OID] = t
		return nil
	})
	if err != nil {
		return nil, unavailable("look for tables", err)
	}
	parts, err := readParts(ctx, conn, oids)
	if err != nil {
		return nil, err
	}
	forms, err := wording.Read(ctx, conn, serverVersion(conn), oids)
	if err != nil {
		return nil, unavailable("look at types", err)
	}
	for _, h := range here {
		t, ok := out[h.OID]
		t.Forms = append([]watch.Form{}, forms[h.OID]...)
		if !ok {
			continue
		}
		for _, p := range parts[h.OID] {
			_, known := slices.BinarySearch(h.Parts, p.OID)
			if !known && h.Parts != nil && h.Copy == 0 {
				if p.Born, err = bornEmpty(ctx, conn, p); err != nil {
					return nil, err
				}
			}
			t.Parts = append(t.Parts, p.Part)
		}
		out[h.OID] = t
	}
	return out, nil
}

// fillTimeout bounds the search for rows in a new partition.
const fillTimeout = 2 * time.Second

// bornEmpty says whether a new partition came without rows. One that was made, filled and
// attached by one transaction looks as if it were born, but for its rows, which are of
// earlier commands than its being a partition.
func bornEmpty(ctx context.Context, conn *pgx.Conn, p part) (bool, error) {
	if !p.Born || !p.leaf {
		return p.Born, nil
	}
	name, err := oneRow(ctx, conn.PgConn(), fmt.Sprintf("SELECT %d::oid::regclass::text", p.OID))
	if err != nil {
		return false, unavailable("look for tables", err)
	}
	sql := fmt.Sprintf("SET LOCAL statement_timeout = %d; SELECT FROM ONLY %s WHERE xmin = '%s'::xid AND cmin::text::int8 < %d LIMIT 1",
		fillTimeout.Milliseconds(), name[0], p.xmin, p.command)
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	switch {
	case err == nil:
		return len(results) > 0 && len(results[len(results)-1].Rows) == 0, nil
	case code(err) == "":
		return false, unavailable("look for tables", err)
	}
	return false, nil // gone already, too large, or not ours to read: as if it had rows
}

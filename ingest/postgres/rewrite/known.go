package rewrite

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/watch"
)

// filesQuery tells the files of tables $1 and their partitions: other ones after a rewrite.
// A table that was never rewritten has the file that it was made with. All is as of one
// snapshot: pg_partition_tree would wait for locks of partitions, and pg_relation_filenode then
// tell of a file that is newer than the columns.
const filesQuery = `
WITH RECURSIVE tree(root, relid) AS (
  SELECT o.oid, o.oid FROM unnest($1::oid[]) o(oid)
  UNION
  SELECT t.root, i.inhrelid
    FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.relid
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition)
SELECT t.root, pg_catalog.txid_snapshot_xmin(pg_catalog.txid_current_snapshot()),
       coalesce((SELECT max(a.attnum) FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.root), 0)::int2,
       coalesce(array_agg(c.relfilenode ORDER BY c.relfilenode) FILTER (WHERE c.relfilenode <> 0), '{}')::oid[],
       coalesce(bool_and(c.relfilenode IN (0, c.oid)), false)
  FROM tree t LEFT JOIN pg_catalog.pg_class c ON c.oid = t.relid
 GROUP BY t.root`

// reworkedQuery says whether a column of table $1 was changed by a transaction that had not
// ended at $2, a number of txid_snapshot_xmin. A change of its type or its expression, by
// which rows are rewritten, changes it in the catalog, VACUUM FULL and CLUSTER do not. And whether
// it may have been unlogged for a while: publications $3 have it, and none by its name, or the server
// would have refused that. And who has changed its entry in the catalog last.
const reworkedQuery = `
SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
          AND pg_catalog.age(a.xmin) <= pg_catalog.age(($2::int8 & 4294967295)::text::xid)),
       EXISTS (SELECT FROM pg_catalog.pg_publication p WHERE p.pubname = ANY($3::text[]))
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
                        WHERE p.pubname = ANY($3::text[]) AND r.prrelid = $1),
       coalesce((SELECT c.xmin::text FROM pg_catalog.pg_class c WHERE c.oid = $1), '')`

// Look is how a table is now.
type Look struct {
	// Since is the oldest transaction that had not ended.
	Since uint64
	// Reworked says that a column of the table, which is rewritten, has changed since the look before,
	// or that the table may have been unlogged since.
	Reworked bool

	Newest int16    // the number of its newest column
	Files  []uint32 // ascending
	// First says that these are the files that it was made with.
	First bool
}

// Read looks at tables, by their numbers, as they are at the connection's snapshot.
func Read(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]Look, error) {
	rows, err := conn.Query(ctx, filesQuery, oids)
	if err != nil {
		return nil, fmt.Errorf("read files of tables: %w", err)
	}
	out := make(map[uint32]Look, len(oids))
	var oid uint32
	var l Look
	_, err = pgx.ForEachRow(rows, []any{&oid, &l.Since, &l.Newest, &l.Files, &l.First}, func() error {
		out[oid] = Look{Since: l.Since, Newest: l.Newest, Files: slices.Clone(l.Files), First: l.First}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read files of tables: %w", err)
	}
	return out, nil
}

// Known is what looks at tables have found so far. Safe for concurrent use.
type Known struct {
	mu     sync.Mutex
	tables map[uint32]watch.Files
	first  map[uint32]int16 // the newest columns at the first looks
}

// Complete finds out whether a table that is rewritten since the look before, which may be the
// one of before, has another column, too, or may have been unlogged for a while. publications are
// those that are streamed, truncated says whether a transaction has truncated a table as the stream told.
func (k *Known) Complete(ctx context.Context, conn *pgx.Conn, oid uint32, before *watch.Files, now *Look, publications []string,
	truncated func(table uint32, xid string) bool,
) error {
	k.mu.Lock()
	known, ok := k.tables[oid]
	k.mu.Unlock()
	if !ok && before != nil {
		known = *before
	}
	if !rewritten(known.Files, now.Files) {
		return nil
	}
	var loose bool
	var changed string
	if err := conn.QueryRow(ctx, reworkedQuery, oid, int64(known.Since), publications).Scan(&now.Reworked, &loose, &changed); err != nil {
		return fmt.Errorf("look for changed columns: %w", err)
	}
	now.Reworked = now.Reworked || loose && !truncated(oid, changed)
	return nil
}

// Add takes a look at a table in, of which before is what was known when nothing is known
// yet, nil for nothing. It returns all that is known now, which nobody changes.
func (k *Known) Add(oid uint32, before *watch.Files, now Look) watch.Files {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tables == nil {
		k.tables, k.first = map[uint32]watch.Files{}, map[uint32]int16{}
	}
	known, ok := k.tables[oid]
	switch {
	case ok:
	case before != nil:
		known = *before
	default:
		known = FilesOf(now)
	}
	if !ok {
		k.first[oid] = known.Newest
	}
	next := FilesOf(now)
	next.Reworked = known.Reworked
	if now.Reworked {
		next.Reworked++
	}
	if !rewritten(known.Files, now.Files) {
		next.Plain = slices.Clone(known.Plain)
		for n := known.Newest + 1; n <= now.Newest; n++ {
			next.Plain = append(next.Plain, n)
		}
	}
	k.tables[oid] = next
	return next
}

// FilesOf is what one look knows.
func FilesOf(now Look) watch.Files {
	return watch.Files{Newest: now.Newest, Files: now.Files, Since: now.Since}
}

// rewritten says that a file is gone. More of them are of new partitions.
func rewritten(before, now []uint32) bool {
	return slices.ContainsFunc(before, func(f uint32) bool {
		_, there := slices.BinarySearch(now, f)
		return !there
	})
}

// Came says that a table got a column since the first look.
func (k *Known) Came(oid uint32, column int16) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first, ok := k.first[oid]
	return ok && column > first
}

// Plain says that a table was not rewritten since it got a column.
func (k *Known) Plain(oid uint32, now Look, column int16) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.tables[oid]
	return now.First || slices.Contains(known.Plain, column) && !rewritten(known.Files, now.Files)
}

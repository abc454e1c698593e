package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
	"github.com/skipprd/skipprd/ingest/watch"
)

var _ ingest.Starter = (*Source)(nil)

// countersQuery reads the counters of tables $1 and their partitions, and when the server has
// begun to count: anew after a crash, on another server, or by pg_stat_reset. What a
// transaction did is counted when it has ended, up to ten seconds later, or after the
// session's next transaction.
const countersQuery = `
WITH RECURSIVE epoch(mark) AS (SELECT pg_catalog.concat_ws('/',
       (SELECT extract(epoch FROM a.stats_reset) FROM pg_catalog.pg_stat_archiver a),
       (SELECT extract(epoch FROM d.stats_reset) FROM pg_catalog.pg_stat_database d WHERE d.datname = pg_catalog.current_database()))),
tree(root, relid, born, kind) AS (
  SELECT k.oid, k.oid, false, k.relkind FROM unnest($1::oid[]) o(oid) JOIN pg_catalog.pg_class k ON k.oid = o.oid
  UNION ALL
  SELECT t.root, i.inhrelid, y.xmin = i.xmin, c.relkind
    FROM tree t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.relid
    JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relispartition
    JOIN pg_catalog.pg_type y ON y.oid = c.reltype)
SELECT e.mark, t.root, t.relid, t.born, pg_catalog.pg_stat_get_tuples_updated(t.relid) + pg_catalog.pg_stat_get_tuples_deleted(t.relid)
  FROM epoch e, tree t WHERE t.relid = t.root OR t.kind <> 'p'`

// AtStart implements ingest.Starter.
func (s *Source) AtStart(ctx context.Context, oids []uint32) (out ingest.Start, err error) {
	out.Files = make(map[uint32]watch.Files, len(oids))
	err = s.withControl(ctx, func(conn *pgx.Conn) error {
		if out.Counters, err = readCounters(ctx, conn, oids); err != nil {
			return err
		}
		looks, err := rewrite.Read(ctx, conn, oids)
		if err != nil {
			return unavailable("look at files", err)
		}
		for oid, l := range looks {
			if len(l.Files) > 0 {
				out.Files[oid] = rewrite.FilesOf(l)
			}
		}
		return nil
	})
	if err != nil {
		return ingest.Start{}, fmt.Errorf("look at tables: %w", err)
	}
	return out, nil
}

func readCounters(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]watch.Counters, error) {
	if len(oids) == 0 {
		return nil, nil
	}
	rows, err := conn.Query(ctx, countersQuery, oids)
	if err != nil {
		return nil, unavailable("read counters", err)
	}
	out := map[uint32]watch.Counters{}
	var epoch string
	var table, of uint32
	var born bool
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&epoch, &table, &of, &born, &n}, func() error {
		c, ok := out[table]
		if !ok {
			c = watch.Counters{Epoch: epoch, Of: map[uint32]int64{}, Born: map[uint32]bool{}}
			out[table] = c
		}
		c.Of[of] = n
		if born {
			c.Born[of] = true
		}
		return nil
	})
	if err != nil {
		return nil, unavailable("read counters", err)
	}
	return out, nil
}

// countHere reads the counters of tables that are here without a key.
func countHere(ctx context.Context, conn *pgx.Conn, here []watch.Here) (map[uint32]watch.Counters, error) {
	var oids []uint32
	for _, h := range here {
		if h.Keyless && h.Away == "" {
			oids = append(oids, h.OID)
		}
	}
	return readCounters(ctx, conn, oids)
}

// barred are tables, taken in without a key, that have one now, or whose rows are sent whole, and
// that a publication of somebody else's has the inserts of only.
func (s *Source) barred(ctx context.Context, conn *pgx.Conn, here []watch.Here, found []ingest.SourceTable) (map[uint32]*watch.Barred, error) {
	st, err := s.current()
	if err != nil {
		return nil, nil // nothing is streamed
	}
	w := wantedTables(found)
	w.changes = slices.DeleteFunc(w.changes, func(t ingest.SourceTable) bool {
		return !slices.ContainsFunc(here, func(h watch.Here) bool { return h.Keyless && h.OID == t.OID })
	})
	main := st.Publications[0]
	if len(w.changes) == 0 || slices.Contains(st.Owned, main) {
		return nil, nil
	}
	p, err := readPublication(ctx, conn, main, serverVersion(conn))
	if err != nil {
		return nil, err
	}
	out := map[uint32]*watch.Barred{}
	for _, t := range p.lacks(w.changes) {
		alone := []ingest.SourceTable{t}
		out[t.OID] = &watch.Barred{
			Reason: fmt.Sprintf("its updates and deletes could be followed now, and publication %s, which somebody else has made, does not have them", main),
			Hint: fmt.Sprintf("At the source (at its primary, if it is a standby), as the publication's owner: %s; then it is copied anew by itself.",
				"ALTER PUBLICATION "+quoteIdent(main)+" ADD TABLE "+list(alone)),
		}
	}
	return out, nil
}

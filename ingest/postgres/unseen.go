package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
)

// unseen watches the tables without a key for updates and deletes, which PostgreSQL
// does not send for them (see appendSuffix): by the server's own counters, against
// their values when the watch began. Safe for concurrent use.
type unseen struct {
	mu struct {
		sync.Mutex
		// first are the counts when a table was seen first; a table that is not streamed
		// is not in it. -1 means that it was not counted yet.
		first map[uint32]int64
	}
}

// watch makes tables the ones to watch, keeping the counts of those it knows.
func (u *unseen) watch(tables []ingest.StreamTable) {
	u.mu.Lock()
	defer u.mu.Unlock()
	next := map[uint32]int64{}
	for _, t := range tables {
		if len(t.Source.Key) > 0 || t.Source.WholeRow {
			continue
		}
		next[t.Source.OID] = -1
		if n, ok := u.mu.first[t.Source.OID]; ok {
			next[t.Source.OID] = n
		}
	}
	u.mu.first = next
}

func (u *unseen) watched() []uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]uint32, 0, len(u.mu.first))
	for oid := range u.mu.first {
		out = append(out, oid)
	}
	return out
}

// count takes a table's counter and returns how far it is above the first one.
func (u *unseen) count(oid uint32, n int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	first, ok := u.mu.first[oid]
	if !ok {
		return 0
	}
	if first < 0 || n < first { // the first look, or the counters were reset
		u.mu.first[oid] = n
		return 0
	}
	return n - first
}

// unseenQuery sums the counters of a table and, for a partitioned one, its leaves.
const unseenQuery = `
SELECT w.oid, coalesce(sum(s.n_tup_upd + s.n_tup_del), 0)::int8
  FROM unnest($1::oid[]) w(oid)
  LEFT JOIN LATERAL (SELECT w.oid AS relid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = w.oid) p ON true
  LEFT JOIN pg_catalog.pg_stat_all_tables s ON s.relid = p.relid
 GROUP BY 1`

// notes says which tables had changes that nobody sent.
func (u *unseen) notes(ctx context.Context, conn *pgx.Conn) (map[uint32]ingest.TableNote, error) {
	oids := u.watched()
	if len(oids) == 0 {
		return nil, nil
	}
	rows, err := conn.Query(ctx, unseenQuery, oids)
	if err != nil {
		return nil, unavailable("read counters", err)
	}
	defer rows.Close()
	out := map[uint32]ingest.TableNote{}
	for rows.Next() {
		var oid uint32
		var n int64
		if err := rows.Scan(&oid, &n); err != nil {
			return nil, unavailable("read counters", err)
		}
		if n = u.count(oid, n); n > 0 {
			out[oid] = ingest.TableNote{
				Reason: fmt.Sprintf("updates or deletes at the source (%d so far) are not followed without a key", n),
				Hint:   "ALTER TABLE … REPLICA IDENTITY FULL at the source, or give it a primary key. " + resync,
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, unavailable("read counters", err)
	}
	return out, nil
}

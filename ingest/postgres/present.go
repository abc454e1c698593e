package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/kinds"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
	"github.com/skipprd/skipprd/ingest/postgres/wording"
	"github.com/skipprd/skipprd/ingest/watch"
)

// dropTable is the hint for a table that the source has no more.
const dropTable = "Take it out, with what it has: ALTER PIPELINE … DROP TABLE …;"

const presentQuery = `
SELECT c.oid, {{n.nspname}}, {{c.relname}}
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
	said := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, said.SQL(presentQuery), oids)
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
		said.Read(&name[0], &name[1])
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
		if !naming.Said(name[0], name[1]) {
			gone = append(gone, fmt.Sprintf("table %s.%s is called %s.%s at the source now, which UTF-8 has not all of: it keeps what it has",
				t.Schema, t.Name, naming.Show(name[0]), naming.Show(name[1])))
			continue
		}
		t.Schema, t.Name = name[0], name[1]
		here = append(here, t)
	}
	return here, gone, nil
}

// markQuery is a digest of which tables there are, who may read them, and which are parts
// of which, in which files, by which keys their rows are known; and the moment of it: the oldest transaction that had not ended.
const markQuery = `
SELECT pg_catalog.md5(coalesce(string_agg(x, ' ' ORDER BY x), '')), pg_catalog.txid_snapshot_xmin(pg_catalog.txid_current_snapshot()), now()
  FROM (
  SELECT concat_ws(':', c.oid, c.relname, c.relkind, c.relpersistence, c.relreplident, n.nspname, c.relhasindex, c.relowner,
                   c.relacl, n.nspacl, CASE WHEN c.relispartition THEN c.relfilenode END) AS x
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't'
     AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  UNION ALL
  SELECT concat_ws(':', i.inhrelid, i.inhparent, i.xmin) FROM pg_catalog.pg_inherits i
  UNION ALL
  SELECT concat_ws(':', x.indrelid, x.indexrelid, x.indisreplident, x.indimmediate, x.indisvalid) FROM pg_catalog.pg_index x
   WHERE (x.indisprimary OR x.indisreplident) AND x.indrelid >= 16384
) all_tables`

// thereQuery lists those of tables $1 that exist, with the root that they are a part of.
const thereQuery = `
SELECT c.oid, {{n.nspname}}, {{c.relname}},
       coalesce(CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid)::oid END, 0)::oid
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY($1::oid[]) AND c.relkind IN ('r', 'p')`

// partsQuery lists the partitions of tables $1, at any depth. One is born as a partition
// when its row type is as old as its being one: attaching it leaves that type alone.
//
// Rows come or go beside the stream, too, when a partition is truncated by itself, or is
// detached, changed, and attached again. Both leave marks: who made it a partition, and the
// file that its rows are in.
const partsQuery = `
SELECT o.oid, t.relid::oid, t.isleaf, y.xmin = i.xmin, i.xmin::text, i.cmin::text::int8,
       coalesce(pg_catalog.pg_relation_filenode(c.oid), 0)::oid, c.xmin::text
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
	file    uint32
	changed string // by whom its entry in the catalog was, as by TRUNCATE
}

func readParts(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32][]part, error) {
	rows, err := conn.Query(ctx, partsQuery, oids)
	if err != nil {
		return nil, unavailable("list partitions", err)
	}
	out := map[uint32][]part{}
	var root uint32
	var p part
	_, err = pgx.ForEachRow(rows, []any{&root, &p.OID, &p.leaf, &p.Born, &p.xmin, &p.command, &p.file, &p.changed}, func() error {
		since, err := strconv.ParseUint(p.xmin, 10, 32)
		if err != nil {
			return fmt.Errorf("transaction number: %w", err)
		}
		p.Mark = since<<32 | uint64(p.file)
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
		for _, p := range parts[t.OID] { // ascending
			t.Parts, t.PartMarks = append(t.Parts, p.OID), append(t.PartMarks, p.Mark)
		}
	}
	return nil
}

var _ ingest.TableWatcher = (*Source)(nil)

// Look implements ingest.TableWatcher.
func (s *Source) Look(ctx context.Context, sel catalog.TableSelection, here []watch.Here, last string) (ingest.Look, error) {
	var look ingest.Look
	now, same := seenParts{marks: map[uint32]uint64{}}, false
	err := s.withControl(ctx, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, markQuery).Scan(&look.Mark, &now.oldest, &now.at); err != nil {
			return unavailable("look for tables", err)
		}
		types, err := wording.Digest(ctx, conn, serverVersion(conn), numbersOf(here))
		if err != nil {
			return unavailable("look at types", err)
		}
		look.Mark += types
		digest, err := kinds.Digest(ctx, conn, serverVersion(conn), numbersOf(here))
		if err != nil {
			return unavailable("look at types", err)
		}
		look.Mark += digest
		if digest, err = s.publicationsDigest(ctx, conn); err != nil {
			return err
		}
		look.Mark += digest
		looks, err := rewrite.Read(ctx, conn, numbersOf(here))
		if err != nil {
			return unavailable("look at files", err)
		}
		look.Files = make(map[uint32]watch.Files, len(here))
		for _, h := range here {
			if now, ok := looks[h.OID]; ok && len(now.Files) > 0 {
				if err := s.files.Complete(ctx, conn, h.OID, h.Files, &now, s.streamedNames(), s.truncated.have); err != nil {
					return unavailable("look at files", err)
				}
				look.Files[h.OID] = s.files.Add(h.OID, h.Files, now)
			}
		}
		if look.Counters, err = countHere(ctx, conn, here); err != nil {
			return err
		}
		if same = look.Mark == last; same && look.Mark == s.seen.mark {
			s.seen.oldest, s.seen.at = now.oldest, now.at
		}
		return nil
	})
	if err == nil && !same {
		err = s.lookAnew(ctx, sel, here, &look, now)
	}
	if err != nil {
		return ingest.Look{}, fmt.Errorf("look at tables: %w", err)
	}
	return look, nil
}

// lookAnew is Look where something has changed. It gives the connection to others between its
// parts, for the stream, which waits for it, may have a table to describe.
func (s *Source) lookAnew(ctx context.Context, sel catalog.TableSelection, here []watch.Here, look *ingest.Look, now seenParts) error {
	err := s.withControl(ctx, func(conn *pgx.Conn) (err error) {
		if look.Known, err = there(ctx, conn, here, &s.seen, &s.truncated); err != nil {
			return err
		}
		found, err := kinds.Read(ctx, conn, serverVersion(conn), numbersOf(here))
		if err != nil {
			return unavailable("look at types", err)
		}
		for _, h := range here {
			look.Types = append(look.Types, found[h.OID]...)
		}
		if err := s.renewParts(ctx, conn, here, look.Known); err != nil {
			return err
		}
		now.mark = look.Mark
		for _, t := range look.Known {
			for _, p := range t.Parts {
				now.marks[p.OID] = p.Mark
			}
		}
		s.seen = now
		return nil
	})
	if err != nil {
		return err
	}
	return s.withControl(ctx, func(conn *pgx.Conn) (err error) {
		if look.Found, err = discover(ctx, conn, sel, &s.cfg); err != nil {
			return err
		}
		if look.Barred, err = s.barred(ctx, conn, here, look.Found); err != nil {
			return err
		}
		return s.lookPublished(ctx, conn, here, look)
	})
}

// renewParts has a server that overlooks it notice at once that partitions have come or gone.
func (s *Source) renewParts(ctx context.Context, conn *pgx.Conn, here []watch.Here, known map[uint32]watch.There) error {
	version := serverVersion(conn)
	st, err := s.current()
	if !overlooks(version) || err != nil {
		return nil // without a stream there is nothing to notice
	}
	var others []ingest.SourceTable
	for _, h := range here {
		t, exists := known[h.OID]
		same := !exists || len(t.Parts) == len(h.Parts)
		for i := range t.Parts { // both ascending
			same = same && t.Parts[i].OID == h.Parts[i] && i < len(h.Marks) && t.Parts[i].Mark>>32 == h.Marks[i]>>32
		}
		if h.Parts != nil && h.Copy == 0 && !same {
			t.Overlooked = overlooked
			known[h.OID] = t
			others = append(others, ingest.SourceTable{OID: h.OID, Parts: h.Parts})
		}
	}
	_, err = renewMembership(ctx, conn, st, others, version) // the session's beginning has warned
	return err
}

// seenParts are the marks that partitions had at a look, and its moment.
type seenParts struct {
	mark   string
	marks  map[uint32]uint64
	oldest int64 // transactions before it had ended
	at     time.Time
}

func numbersOf(here []watch.Here) []uint32 {
	oids := make([]uint32, len(here))
	for i, h := range here {
		oids[i] = h.OID
	}
	return oids
}

// there are the tables of here that exist, before is the last look, truncated what the stream
// has told of.
func there(ctx context.Context, conn *pgx.Conn, here []watch.Here, before *seenParts, truncated *truncations) (map[uint32]watch.There, error) {
	oids := numbersOf(here)
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(thereQuery), oids)
	if err != nil {
		return nil, unavailable("look for tables", err)
	}
	out := map[uint32]watch.There{}
	var t watch.There
	_, err = pgx.ForEachRow(rows, []any{&t.OID, &t.Schema, &t.Name, &t.Root}, func() error {
		said := t
		names.Read(&said.Schema, &said.Name)
		if i := slices.Index(oids, t.OID); !naming.Said(said.Schema, said.Name) && i >= 0 {
			said.Schema, said.Name = here[i].Schema, here[i].Name // the stream stops it with its next change
		}
		out[t.OID] = said
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
			i, known := slices.BinarySearch(h.Parts, p.OID)
			switch {
			case h.Copy != 0 || h.Parts == nil:
			case !known:
				p.Born, err = bornEmpty(ctx, conn, p)
			case i >= len(h.Marks) || p.Mark>>32 != h.Marks[i]>>32: // not known, or attached again
			case truncated.have(h.OID, p.changed):
				p.Same = true
			default:
				p.Same, err = before.same(ctx, conn, p, h.Marks[i])
			}
			if err != nil {
				return nil, err
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
	if code(err) == deadletter.CodeNoUTF8 {
		return false, nil // it has a name that cannot be said
	}
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

// sameQuery says of a partition whose rows are in another file than at the look before whether
// they are the same: some are of transactions that had ended by then, before which TRUNCATE
// leaves none; or there are none, as VACUUM FULL and CLUSTER have counted, and nobody else.
const sameQuery = `
SET LOCAL statement_timeout = %d; SELECT EXISTS (SELECT FROM ONLY %[2]s WHERE pg_catalog.age(xmin) > pg_catalog.age('%[3]d'::xid))
    OR NOT EXISTS (SELECT FROM ONLY %[2]s) AND (SELECT c.reltuples = 0 FROM pg_catalog.pg_class c WHERE c.oid = %[4]d)
       AND coalesce((SELECT greatest(last_vacuum, last_autovacuum, last_analyze, last_autoanalyze) < '%[5]s'
                       FROM pg_catalog.pg_stat_all_tables WHERE relid = %[4]d), true)`

// same says whether a partition that is known by a mark has another file for the same rows:
// it was rewritten. When that cannot be told it has others.
func (b *seenParts) same(ctx context.Context, conn *pgx.Conn, p part, known uint64) (bool, error) {
	if was, ok := b.marks[p.OID]; !ok || was != known || p.Mark == known {
		return p.Mark == known, nil
	}
	name, err := oneRow(ctx, conn.PgConn(), fmt.Sprintf("SELECT %d::oid::regclass::text", p.OID))
	if code(err) == deadletter.CodeNoUTF8 {
		return false, nil
	}
	if err != nil {
		return false, unavailable("look for tables", err)
	}
	results, err := conn.PgConn().Exec(ctx, fmt.Sprintf(sameQuery, fillTimeout.Milliseconds(), name[0], uint32(b.oldest), p.OID,
		b.at.UTC().Format("2006-01-02 15:04:05.999999+00"))).ReadAll()
	switch {
	case err == nil:
		last := results[len(results)-1]
		return len(last.Rows) == 1 && string(last.Rows[0][0]) == "t", nil
	case code(err) == "":
		return false, unavailable("look for tables", err)
	}
	return false, nil
}

// truncations are the transactions that have truncated tables as the stream told, by their
// numbers: the latest. What such a one did to a partition by itself as well is not noticed.
type truncations struct {
	mu     sync.Mutex
	latest map[uint32][]string
}

// truncationsMost is how many are remembered of a table.
const truncationsMost = 16

func (t *truncations) add(table, xid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest == nil {
		t.latest = map[uint32][]string{}
	}
	all := append(t.latest[table], strconv.FormatUint(uint64(xid), 10))
	t.latest[table] = all[max(0, len(all)-truncationsMost):]
}

func (t *truncations) have(table uint32, xid string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.latest[table], xid)
}

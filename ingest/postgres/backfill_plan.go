package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
)

// chunk is a range of pages of one leaf. Its text is durable:
//
//	1:<leaf oid>:<file node>:<first page>:<page after the last, or empty>:<horizon, or empty>
//
// The file node tells whether the table was rewritten (VACUUM FULL, CLUSTER, ALTER
// TYPE …) since the plan: then rows have moved between chunks. The horizon is that of
// the planning session, for a table without a key: rows of such a table can be told
// apart from the stream's only when all were read at one moment.
type chunk struct {
	leaf, file uint32
	first, end uint32
	open       bool // no end: whatever the table has grown to
	horizon    string
	// Not written down with the chunk: the table's filter, and whether leaf is a partition.
	filter string
	part   bool
}

const chunkVersion = "1"

func (c chunk) String() string {
	end := ""
	if !c.open {
		end = strconv.FormatUint(uint64(c.end), 10)
	}
	return fmt.Sprintf("%s:%d:%d:%d:%s:%s", chunkVersion, c.leaf, c.file, c.first, end, c.horizon)
}

func parseChunk(text string) (chunk, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != chunkVersion {
		return chunk{}, fmt.Errorf("chunk %q is unreadable", text)
	}
	var numbers [4]uint32
	c := chunk{open: parts[4] == "", horizon: parts[5]}
	for i, p := range parts[1:5] {
		if i == 3 && c.open {
			continue
		}
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil {
			return chunk{}, fmt.Errorf("chunk %q is unreadable: %w", text, err)
		}
		numbers[i] = uint32(n)
	}
	c.leaf, c.file, c.first, c.end = numbers[0], numbers[1], numbers[2], numbers[3]
	return c, nil
}

// where is the chunk's condition on rows, with the keyword, "" for all rows.
func (c chunk) where() string {
	var terms []string
	if c.first > 0 {
		terms = append(terms, fmt.Sprintf("ctid >= '(%d,0)'::pg_catalog.tid", c.first))
	}
	if !c.open {
		terms = append(terms, fmt.Sprintf("ctid < '(%d,0)'::pg_catalog.tid", c.end))
	}
	if c.filter != "" {
		terms = append(terms, "("+c.filter+"\n)")
	}
	if len(terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(terms, " AND ")
}

// leavesQuery lists the ordinary tables that hold the rows of a table, with the file and
// the size that they have now, and whether the file is that of the session's moment: rows
// in another one are not seen from that moment.
const leavesQuery = `
SELECT c.oid, coalesce(pg_catalog.pg_relation_filenode(c.oid), 0)::oid,
       c.relfilenode IS NOT DISTINCT FROM pg_catalog.pg_relation_filenode(c.oid),
       (coalesce(pg_catalog.pg_relation_size(c.oid), 0) / current_setting('block_size')::int8)::int8
  FROM pg_catalog.pg_class c
 WHERE c.relkind = 'r'
   AND (c.oid = $1::oid
        OR c.oid IN (SELECT t.relid FROM pg_catalog.pg_partition_tree($1::oid::regclass) t WHERE t.isleaf))
 ORDER BY c.oid`

// Plan implements ingest.Backfill.
func (b *backfill) Plan(ctx context.Context, t ingest.SourceTable) (chunks []string, err error) {
	select {
	case conn := <-b.holder:
		defer func() { b.holder <- conn }()
		err = unlocked(ctx, conn.PgConn(), func() error {
			chunks, err = b.plan(ctx, conn, t)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("plan %s.%s: %w", t.Schema, t.Name, err)
		}
		return chunks, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *backfill) plan(ctx context.Context, conn *pgx.Conn, t ingest.SourceTable) ([]string, error) {
	here, _, err := present(ctx, conn, []ingest.SourceTable{t})
	if err != nil {
		return nil, err
	}
	if len(here) == 0 {
		return nil, &ingest.TableError{Reason: "the table was dropped at the source", Hint: dropTable}
	}
	rows, err := conn.Query(ctx, leavesQuery, t.OID)
	if err != nil {
		return nil, unavailable("list files", err)
	}
	defer rows.Close()
	out := []string{}
	for rows.Next() {
		var c chunk
		var pages int64
		var same bool
		if err := rows.Scan(&c.leaf, &c.file, &same, &pages); err != nil {
			return nil, unavailable("list files", err)
		}
		if !same {
			return nil, &ingest.TableError{Reason: "the table was rewritten or truncated before it was copied", Anew: true}
		}
		if len(t.Key) == 0 {
			c.horizon = b.horizon.String()
		}
		out = b.cut(out, c, pages)
	}
	if err := rows.Err(); err != nil {
		return nil, unavailable("list files", err)
	}
	return out, nil
}

// cut appends the chunks of a leaf; the last one is open.
func (b *backfill) cut(out []string, leaf chunk, pages int64) []string {
	step := b.source.cfg.chunkPages
	if b.version < versionTIDRange {
		step = pages + 1
	}
	leaf.open = false
	for first := int64(0); ; first += step {
		leaf.first, leaf.end = uint32(first), uint32(min(first+step, 1<<32-1))
		if first+step >= pages {
			leaf.open = true
			return append(out, leaf.String())
		}
		out = append(out, leaf.String())
	}
}

package published

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Published is how a table is published by the publications that are streamed: those that have it,
// ascending.
type Published []Publication

// Publication is one that has a table.
type Publication struct {
	OID uint32 `json:"oid"`
	// Altered is another number whenever it publishes other operations, in another way, or has
	// another owner or name.
	Altered uint32 `json:"altered"`
	// Members are the entries by which it has the table, which are made anew when it is taken
	// out and put in again, with another filter or other columns; none when it has all tables.
	// Ascending.
	Members []uint32 `json:"members,omitempty"`
	// Moved is another number whenever the table has gone to another schema, or has another name or owner;
	// 0 when it is not had by its schema alone.
	Moved uint32 `json:"moved,omitempty"`
}

// Table is how a table is published.
type Table struct {
	Published
	// Unlogged says that what is written to it cannot be streamed.
	Unlogged bool
}

// Follows says that a table was published without a gap since it was published as was, so far as
// that can be told. What it is published by in addition does no harm.
func (p Published) Follows(was Published) bool {
	return !slices.ContainsFunc(was, func(old Publication) bool {
		return !slices.ContainsFunc(p, func(now Publication) bool { return now.follows(old) })
	})
}

func (p Publication) follows(was Publication) bool {
	if p.OID != was.OID || p.Altered != was.Altered || p.Moved != was.Moved && was.Moved != 0 {
		return false
	}
	return !slices.ContainsFunc(was.Members, func(m uint32) bool { return !slices.Contains(p.Members, m) })
}

// Parse reads what String has written.
func Parse(text string) (Published, error) {
	var p Published
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("parse how a table is published: %w", err)
	}
	return p, nil
}

// String writes p for Parse. It is never empty, and the same of the same.
func (p Published) String() string {
	if p == nil {
		p = Published{}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and texts
	}
	return string(text)
}

// entriesQuery lists by what publications $1 have tables $2. {schemas} are the entries of their
// schemas, which only newer servers have.
const entriesQuery = `
SELECT o.oid, o.unlogged, p.oid, p.xmin::text::int8, p.puballtables, o.moved,
       ARRAY(SELECT r.oid FROM pg_catalog.pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = ANY(o.roots) ORDER BY 1)::oid[],
       {schemas}
  FROM (SELECT c.oid, c.relpersistence = 'u' AS unlogged, y.xmin::text::int8 AS moved,
               ARRAY(SELECT c.oid UNION SELECT a.relid::oid FROM pg_catalog.pg_partition_ancestors(c.oid) a) AS roots
          FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type y ON y.oid = c.reltype WHERE c.oid = ANY($2::oid[])) o,
       pg_catalog.pg_publication p
 WHERE p.pubname = ANY($1::text[])
 ORDER BY 1, 3`

const schemaEntries = `ARRAY(SELECT n.oid FROM pg_catalog.pg_publication_namespace n JOIN pg_catalog.pg_class c ON c.relnamespace = n.pnnspid
                WHERE n.pnpubid = p.oid AND c.oid = ANY(o.roots) ORDER BY 1)::oid[]`

// digestQuery is of all that publications $1 have.
const digestQuery = `
SELECT pg_catalog.md5(coalesce(string_agg(x, ' ' ORDER BY x), '')) FROM (
  SELECT concat_ws(':', p.oid, p.xmin) AS x FROM pg_catalog.pg_publication p WHERE p.pubname = ANY($1::text[])
  UNION ALL
  SELECT concat_ws(':', r.prpubid, r.oid) FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
   WHERE p.pubname = ANY($1::text[]) {schemas}) all_of_them`

const schemasDigest = `
  UNION ALL
  SELECT concat_ws(':', n.pnpubid, n.oid, 'schema') FROM pg_catalog.pg_publication_namespace n JOIN pg_catalog.pg_publication p ON p.oid = n.pnpubid
   WHERE p.pubname = ANY($1::text[])
  UNION ALL
  SELECT concat_ws(':', n.pnpubid, c.oid, y.xmin) FROM pg_catalog.pg_publication_namespace n JOIN pg_catalog.pg_publication p ON p.oid = n.pnpubid
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.pnnspid AND c.relkind IN ('r', 'p') JOIN pg_catalog.pg_type y ON y.oid = c.reltype
   WHERE p.pubname = ANY($1::text[])`

const versionSchemas = 150000

// Read reads how publications have tables. Each of the tables that exist is in what it returns, if a
// publication does.
func Read(ctx context.Context, conn *pgx.Conn, version int, names []string, tables []uint32) (map[uint32]Table, error) {
	schemas := "'{}'::oid[]"
	if version >= versionSchemas {
		schemas = schemaEntries
	}
	rows, err := conn.Query(ctx, strings.ReplaceAll(entriesQuery, "{schemas}", schemas), names, tables)
	if err != nil {
		return nil, fmt.Errorf("read publications: %w", err)
	}
	out := make(map[uint32]Table, len(tables))
	var oid, by uint32
	var altered, moved int64
	var unlogged, all bool
	var named, inSchema []uint32
	_, err = pgx.ForEachRow(rows, []any{&oid, &unlogged, &by, &altered, &all, &moved, &named, &inSchema}, func() error {
		t := out[oid]
		t.Unlogged = unlogged
		if all || len(named)+len(inSchema) > 0 {
			p := Publication{OID: by, Altered: uint32(altered), Members: slices.Concat(named, inSchema)}
			slices.Sort(p.Members)
			if len(named) == 0 && len(inSchema) > 0 {
				p.Moved = uint32(moved)
			}
			t.Published = append(t.Published, p)
		}
		out[oid] = t
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read publications: %w", err)
	}
	return out, nil
}

// Digest is another text whenever Read would return something else for tables that are the same.
func Digest(ctx context.Context, conn *pgx.Conn, version int, names []string) (digest string, err error) {
	schemas := ""
	if version >= versionSchemas {
		schemas = schemasDigest
	}
	if err := conn.QueryRow(ctx, strings.ReplaceAll(digestQuery, "{schemas}", schemas), names).Scan(&digest); err != nil {
		return "", fmt.Errorf("digest publications: %w", err)
	}
	return digest, nil
}

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
	// another owner or name. Operations and Owner tell of most.
	Altered    uint32 `json:"altered"`
	Owner      uint32 `json:"owner"`
	Operations string `json:"operations"`
	// Members are the entries by which it has the table, which are made anew when it is taken
	// out and put in again, with another filter or other columns; none when it has all tables.
	// Ascending.
	Members []uint32 `json:"members,omitempty"`
}

// Follows says that a table was published without a gap since it was published as was, so far as
// that can be told. What it is published by in addition does no harm.
func (p Published) Follows(was Published) bool {
	return !slices.ContainsFunc(was, func(old Publication) bool {
		return !slices.ContainsFunc(p, func(now Publication) bool { return now.follows(old) })
	})
}

func (p Publication) follows(was Publication) bool {
	if p.OID != was.OID || p.Operations != was.Operations || p.Altered != was.Altered && p.Owner == was.Owner {
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
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and texts
	}
	return string(text)
}

// entriesQuery lists by what publications $1 have tables $2. {namespace} is what only newer
// servers have.
const entriesQuery = `
SELECT o.oid, p.oid, p.xmin::text::int8, p.pubowner,
       concat_ws(' ', p.puballtables, p.pubinsert, p.pubupdate, p.pubdelete, p.pubtruncate, {root}), p.puballtables,
       ARRAY(SELECT m.oid FROM (
               SELECT r.oid FROM pg_catalog.pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = ANY(o.roots)
               {namespace}) m ORDER BY 1)::oid[]
  FROM (SELECT t.oid, ARRAY(SELECT t.oid UNION SELECT a.relid::oid FROM pg_catalog.pg_partition_ancestors(t.oid) a) AS roots
          FROM unnest($2::oid[]) t(oid)) o, pg_catalog.pg_publication p
 WHERE p.pubname = ANY($1::text[])
 ORDER BY 1, 2`

const namespaceEntries = `UNION ALL
               SELECT n.oid FROM pg_catalog.pg_publication_namespace n JOIN pg_catalog.pg_class c ON c.relnamespace = n.pnnspid
                WHERE n.pnpubid = p.oid AND c.oid = ANY(o.roots)`

// digestQuery is of all that publications $1 have.
const digestQuery = `
SELECT pg_catalog.md5(coalesce(string_agg(x, ' ' ORDER BY x), '')) FROM (
  SELECT concat_ws(':', p.oid, p.xmin) AS x FROM pg_catalog.pg_publication p WHERE p.pubname = ANY($1::text[])
  UNION ALL
  SELECT concat_ws(':', r.prpubid, r.oid) FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
   WHERE p.pubname = ANY($1::text[]) {namespace}) all_of_them`

const namespaceDigest = `
  UNION ALL
  SELECT concat_ws(':', n.pnpubid, n.oid, 'schema') FROM pg_catalog.pg_publication_namespace n JOIN pg_catalog.pg_publication p ON p.oid = n.pnpubid
   WHERE p.pubname = ANY($1::text[])`

const (
	versionRoot      = 130000
	versionNamespace = 150000
)

func query(version int, text, namespace string) string {
	root := "p.pubviaroot"
	if version < versionNamespace {
		namespace = ""
	}
	if version < versionRoot {
		root = "''"
	}
	return strings.NewReplacer("{namespace}", namespace, "{root}", root).Replace(text)
}

// Read reads how publications have tables. Each of the tables is in what it returns.
func Read(ctx context.Context, conn *pgx.Conn, version int, names []string, tables []uint32) (map[uint32]Published, error) {
	rows, err := conn.Query(ctx, query(version, entriesQuery, namespaceEntries), names, tables)
	if err != nil {
		return nil, fmt.Errorf("read publications: %w", err)
	}
	out := make(map[uint32]Published, len(tables))
	for _, oid := range tables {
		out[oid] = Published{}
	}
	var table uint32
	var altered int64
	var all bool
	var p Publication
	_, err = pgx.ForEachRow(rows, []any{&table, &p.OID, &altered, &p.Owner, &p.Operations, &all, &p.Members}, func() error {
		if all || len(p.Members) > 0 {
			p.Altered, p.Members = uint32(altered), slices.Clone(p.Members)
			out[table] = append(out[table], p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read publications: %w", err)
	}
	return out, nil
}

// Digest is another text whenever Read would return something else for tables that are the same.
func Digest(ctx context.Context, conn *pgx.Conn, version int, names []string) (digest string, err error) {
	if err := conn.QueryRow(ctx, query(version, digestQuery, namespaceDigest), names).Scan(&digest); err != nil {
		return "", fmt.Errorf("digest publications: %w", err)
	}
	return digest, nil
}

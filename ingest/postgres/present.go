package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
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

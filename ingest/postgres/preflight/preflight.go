// Package preflight finds out what tables of a PostgreSQL server lack for being copied
// and streamed by the role that is connected, all at once, and writes the SQL that
// mends it. It only reads. What no SQL mends is not its matter, nor are the server's
// settings.
package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Need is one thing that is missing, with the SQL with which the tables' owner or a
// superuser mends it.
type Need struct {
	What string // a clause
	Fix  string // statements
}

// Report is what Check found.
type Report struct {
	// Schemas are what schemas lack, by name, in order.
	Schemas []Need
	// Tables are what tables lack, by oid, their partitions included.
	Tables map[uint32][]Need
	// Foreign are partitioned tables with a partition that is never in the log,
	// whatever is done.
	Foreign map[uint32]bool
}

// factsQuery tells of tables $1 and their partitions what the role that is connected
// may do with them and what of them is in the log. The copy reads partitions by
// themselves, and locks them, which needs SELECT on the whole table.
const factsQuery = `
SELECT r.root, c.relispartition AND c.oid <> r.root, {{n.nspname}}, {{c.relname}}, c.relkind::text,
       c.relpersistence::text, c.relreplident::text, t.relreplident::text,
       pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
       pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.has_any_column_privilege(c.oid, 'SELECT'),
       pg_catalog.row_security_active(c.oid),
       EXISTS (SELECT FROM pg_catalog.pg_index i
                WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid AND i.indimmediate)
  FROM (SELECT o AS root, o AS relid FROM unnest($1::oid[]) o
        UNION
        SELECT o, t.relid FROM unnest($1::oid[]) o, pg_catalog.pg_partition_tree(o) t WHERE t.isleaf) r
  JOIN pg_catalog.pg_class c ON c.oid = r.relid
  JOIN pg_catalog.pg_class t ON t.oid = r.root
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 ORDER BY n.nspname, c.relname, r.root`

// facts are what factsQuery tells of a table or partition.
type facts struct {
	root                                           uint32
	leaf                                           bool
	schema, name, kind, persistence                string
	identity, rootIdentity                         string // pg_class.relreplident, its table's
	usage, readable, someColumns, hidesRows, keyed bool
}

// Check looks at tables by their oids. role is the name of the role that is connected.
func Check(ctx context.Context, conn *pgx.Conn, role string, oids []uint32) (Report, error) {
	out := Report{Tables: map[uint32][]Need{}, Foreign: map[uint32]bool{}}
	names := naming.Of(conn.PgConn())
	rows, err := conn.Query(ctx, names.SQL(factsQuery), oids)
	if err != nil {
		return out, fmt.Errorf("read what tables lack: %w", err)
	}
	quoted := quote.Name(role)
	var unusable []string
	var f facts
	_, err = pgx.ForEachRow(rows, []any{
		&f.root, &f.leaf, &f.schema, &f.name, &f.kind, &f.persistence, &f.identity, &f.rootIdentity,
		&f.usage, &f.readable, &f.someColumns, &f.hidesRows, &f.keyed,
	}, func() error {
		f := f
		names.Read(&f.schema, &f.name)
		f.schema, f.name = naming.Show(f.schema), naming.Show(f.name)
		if !f.usage && !slices.Contains(unusable, f.schema) {
			unusable = append(unusable, f.schema)
		}
		if f.leaf && f.kind == "f" {
			out.Foreign[f.root] = true
			return nil
		}
		out.Tables[f.root] = merge(out.Tables[f.root], f.needs(quoted))
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("read what tables lack: %w", err)
	}
	for _, s := range unusable {
		out.Schemas = append(out.Schemas, Need{
			What: fmt.Sprintf("role %s may not use schema %s", quoted, s),
			Fix:  fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;", quote.Name(s), quoted),
		})
	}
	return out, nil
}

// merge adds needs to those of a table: one of each kind, which partitions share.
func merge(all, more []Need) []Need {
	for _, n := range more {
		i := slices.IndexFunc(all, func(a Need) bool { return a.What == n.What })
		if i < 0 {
			all = append(all, n)
		} else if !strings.Contains(all[i].Fix, n.Fix) {
			all[i].Fix += " " + n.Fix
		}
	}
	return all
}

// needs are what a table or partition lacks.
func (f facts) needs(role string) []Need {
	var out []Need
	full := quote.Name(f.schema, f.name)
	part := ""
	if f.leaf {
		part = "a partition: "
	}
	need := func(ok bool, what, fix string) {
		if !ok {
			out = append(out, Need{What: part + what, Fix: fix})
		}
	}
	missing := "may not read the table"
	if f.someColumns {
		missing = "may read only some columns of the table; the copy needs all of it, to lock it"
	}
	need(f.readable, "role "+role+" "+missing, fmt.Sprintf("GRANT SELECT ON %s TO %s;", full, role))
	need(!f.hidesRows, "row security hides rows of the table from role "+role, fmt.Sprintf("ALTER ROLE %s BYPASSRLS;", role))
	need(f.persistence != "u", "the table is unlogged, so its changes are not in the source's log", fmt.Sprintf("ALTER TABLE %s SET LOGGED;", full))
	identity := "DEFAULT"
	if f.leaf && f.rootIdentity == "i" {
		identity = "FULL" // of its own indexes none is known to be the table's
	}
	fix := fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY %s;", full, identity)
	silent := f.identity == "n" && f.keyed
	need(!silent, "its replica identity is NOTHING, so updates and deletes are not in the source's log", fix)
	other := f.leaf && f.identity != "f" && (f.identity == "i") != (f.rootIdentity == "i")
	need(silent || !other, "its replica identity is another than the table's, so changes of its rows do not carry the table's key", fix)
	return out
}

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
)

// filterBytesMax bounds a row filter.
const filterBytesMax = 64 << 10

// checkFilters puts the row filters of a selection on its tables, after the server has
// said that it understands them, and refuses those that it could not stream by, or with
// which the user's own updates would fail.
func checkFilters(ctx context.Context, conn *pgx.Conn, tables []ingest.SourceTable, sel catalog.TableSelection) error {
	for i := range tables {
		t := &tables[i]
		if t.Filter = selectedTable(sel, t.Schema, t.Name).Where; t.Filter == "" || t.Unsupported != "" {
			continue
		}
		switch {
		case serverVersion(conn) < versionFilter:
			t.Unsupported = "row filters need PostgreSQL 15 or newer at the source"
			t.Hint = "Take in the whole table, and filter in queries."
		case len(t.Filter) > filterBytesMax:
			t.Unsupported = fmt.Sprintf("its row filter has more than %d bytes", filterBytesMax)
		default:
			if err := checkFilter(ctx, conn, t); err != nil {
				return err
			}
		}
		if t.Unsupported == "" {
			t.Notes = append(t.Notes, fmt.Sprintf("of %s.%s only rows where (%s) are taken in", t.Schema, t.Name, t.Filter))
		}
	}
	return nil
}

// checkFilter judges the filter of one table. The server refuses updates and deletes of
// a published table whose filter looks at columns outside of its replica identity, so
// those must do for the filter.
func checkFilter(ctx context.Context, conn *pgx.Conn, t *ingest.SourceTable) error {
	from := "ONLY " + quoteIdent(t.Schema, t.Name)
	problem, err := tryFilter(ctx, conn, from, t)
	if err != nil {
		return err
	}
	if problem != "" {
		t.Unsupported = "the source does not understand its row filter: " + problem
		t.Hint = filterHint
		return nil
	}
	if len(t.Key) == 0 || t.ReplicaIdentity == "full" {
		return nil
	}
	keys := make([]string, len(t.Key))
	for i, k := range t.Key {
		keys[i] = quoteIdent(k)
	}
	from = fmt.Sprintf("(SELECT %s FROM %s) AS %s", strings.Join(keys, ", "), from, quoteIdent(t.Name))
	if problem, err = tryFilter(ctx, conn, from, t); err != nil || problem == "" {
		return err
	}
	t.Unsupported = "its row filter looks at columns outside of its replica identity, with which updates of the table would fail at the source"
	t.Fix = fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL;", quoteIdent(t.Schema, t.Name))
	t.Hint = fmt.Sprintf("Filter by %s alone, or run at the source: %s", strings.Join(t.Key, ", "), t.Fix)
	return nil
}

// tryFilter has the server read a filter over columns; problem is what it says. Nothing
// is executed, and more than one statement is refused.
func tryFilter(ctx context.Context, conn *pgx.Conn, from string, t *ingest.SourceTable) (problem string, err error) {
	_, err = conn.PgConn().Prepare(ctx, "", fmt.Sprintf("SELECT FROM %s WHERE (%s\n)", from, t.Filter), nil)
	switch c := code(err); {
	case err == nil, c == codePrivilege: // said elsewhere
		return "", nil
	case strings.HasPrefix(c, "42"), strings.HasPrefix(c, "22"), strings.HasPrefix(c, "0A"):
		return serverMessage(err), nil
	}
	return "", unavailable("check row filter", err)
}

// tryPublications refuses tables whose row filter the server reads as SQL and does not take
// for a publication, with its own words: it says so of functions that are not immutable, or
// the user's own, only when a publication is made. One is, and rolled back; it waits for no
// other session's lock. A role that may make none learns what it can when somebody else
// does.
func tryPublications(ctx context.Context, conn *pgx.Conn, tables []ingest.SourceTable) error {
	for i := range tables {
		t := &tables[i]
		if t.Filter == "" || t.Unsupported != "" || conn.PgConn().TxStatus() != 'I' {
			continue
		}
		err := run(ctx, conn.PgConn(), fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = '1ms'; CREATE PUBLICATION %s FOR TABLE %s WITH (%s); ROLLBACK",
			quoteIdent(fmt.Sprintf("skippr_try_%d", t.OID)), list(tables[i:i+1]), publicationOptions(publishInserts, versionFilter)))
		if err == nil {
			continue
		}
		if code(err) == "" {
			return unavailable("check row filter", err)
		}
		if again := run(ctx, conn.PgConn(), "ROLLBACK"); again != nil {
			return unavailable("check row filter", again)
		}
		if c := code(err); strings.HasPrefix(c, "0A") || strings.HasPrefix(c, "22") || c == codeInvalidObject {
			t.Unsupported = "the source does not publish by its row filter: " + strings.TrimSuffix(serverMessage(err), ".")
			t.Hint = filterHint
		}
	}
	return nil
}

const filterHint = "Write a condition on the table's own columns, with functions of pg_catalog that are immutable."

// filter is the row filter of a table as the server writes it: with the names that its
// columns have now, and good for partitions too.
func (b *backfill) filter(ctx context.Context, conn *pgconn.PgConn, t ingest.SourceTable) (string, error) {
	if t.Filter == "" {
		return "", nil
	}
	st, err := b.source.current()
	if err != nil {
		return "", err
	}
	names := make([]string, len(st.Publications))
	for i, p := range st.Publications {
		names[i] = quoteLiteral(p)
	}
	row, err := oneRow(ctx, conn, fmt.Sprintf(`SELECT coalesce(max(pg_catalog.pg_get_expr(r.prqual, r.prrelid)), '')
	  FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
	 WHERE r.prrelid = %d AND p.pubname IN (%s)`, t.OID, strings.Join(names, ", ")))
	if err != nil {
		return "", err
	}
	if row[0] == "" {
		return "", &ingest.TableError{Reason: "the publication has no row filter for it any more", Hint: resync}
	}
	return row[0], nil
}

// dropUnlisted takes the columns away that a publication of somebody else's has not in its
// list of the table's: they are not described. One that is here already is not sent any more: that is
// a problem.
func (s *Source) dropUnlisted(ctx context.Context, conn *pgx.Conn, live *liveTable, t *streamTable) (*ingest.TableError, error) {
	st, err := s.current()
	version := serverVersion(conn)
	if err != nil || len(st.Owned) > 0 || version < versionFilter {
		return nil, err
	}
	for _, name := range st.Publications {
		p, err := readPublication(ctx, conn, name, version)
		if err != nil {
			return nil, err
		}
		list, ok := p.listed[t.Source.OID]
		if !ok {
			continue
		}
		unlisted := func(a liveAttribute) bool { return !a.dropped && !slices.Contains(list, a.name) }
		if slices.ContainsFunc(live.columns, func(a liveAttribute) bool {
			return unlisted(a) && !a.generated && slices.ContainsFunc(t.Schema.Fields, func(f schema.Field) bool { return f.AttNum == a.number })
		}) {
			return &ingest.TableError{
				Reason: fmt.Sprintf("publication %s does not have all columns of the table any more", name),
				Hint: fmt.Sprintf("At the source, as its owner: %s Then here: ALTER PIPELINE … RESYNC TABLE …;",
					strings.Join(p.completion(publishChanges, []ingest.SourceTable{t.Source}, version), " ")),
			}, nil
		}
		live.columns = slices.DeleteFunc(live.columns, unlisted)
	}
	return nil, nil
}

// serverVersion is the server's version to the tens of thousands, as it told when the
// connection began.
func serverVersion(conn *pgx.Conn) int {
	text := conn.PgConn().ParameterStatus("server_version") // "15.8 (Debian …)", "18beta1"
	digits := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if digits >= 0 {
		text = text[:digits]
	}
	n, _ := strconv.Atoi(text) // 0 when it did not tell
	return n * 10000
}

// filterClause is the WHERE of a table in a publication.
func filterClause(t ingest.SourceTable) string {
	if t.Filter == "" {
		return ""
	}
	return " WHERE (" + t.Filter + "\n)"
}

// selectedTable is what a selection says of a table by name.
func selectedTable(sel catalog.TableSelection, schemaName, name string) catalog.SelectedTable {
	i := slices.IndexFunc(sel.Tables, func(t catalog.SelectedTable) bool { return schemaOf(t) == schemaName && t.Name == name })
	if i < 0 {
		return catalog.SelectedTable{}
	}
	return sel.Tables[i]
}

// refilterTables gives the tables of our publications the filters that they have now,
// and returns the state that says so. A table whose filter has changed is copied anew
// afterwards, at a later moment.
func refilterTables(ctx context.Context, conn *pgx.Conn, st *state, tables []ingest.SourceTable, v settings) ([]byte, error) {
	for _, name := range st.Owned {
		if v.version < versionFilter {
			break // there are none
		}
		p, err := readPublication(ctx, conn, name, v.version)
		if err != nil {
			return nil, err
		}
		var other []ingest.SourceTable
		for _, t := range tables {
			if slices.Contains(p.tables, t.OID) && (st.Filters[t.OID] != t.Filter || !p.filtersAlike(t) || !p.has(t)) {
				other = append(other, t)
			}
		}
		if len(other) == 0 {
			continue
		}
		// Out and in again, in the one transaction that a message is: no change is missed.
		quoted := quoteIdent(name)
		sql := fmt.Sprintf("ALTER PUBLICATION %s DROP TABLE %s; ALTER PUBLICATION %s ADD TABLE %s;",
			quoted, list(unfiltered(other)), quoted, list(other))
		if err := run(ctx, conn.PgConn(), sql); err != nil {
			return nil, publicationError(name, sql, err)
		}
	}
	st.published(tables)
	return st.encode()
}

// unfiltered are tables as DROP TABLE names them.
func unfiltered(tables []ingest.SourceTable) []ingest.SourceTable {
	out := slices.Clone(tables)
	for i := range out {
		out[i].Filter = ""
	}
	return out
}

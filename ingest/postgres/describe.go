package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/naming"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// The words for pg_class.relreplident.
var identities = map[string]string{"d": "default", "f": "full", "i": "index", "n": "nothing"}

// describe turns what the catalog says of a relation into a table to take in, or one
// that cannot be.
func describe(r relation, columns []attribute, keys tableKeys, domains map[uint32]domain) ingest.SourceTable {
	t := ingest.SourceTable{
		Schema: r.schema, Name: r.name, OID: r.oid,
		EstimatedRows: r.rows, EstimatedBytes: r.bytes,
		ReplicaIdentity: identities[r.identity],
	}
	var unsent []string
	for _, a := range columns {
		if a.generated && (a.computed == nil || !a.computed.Recipe.Sent) {
			unsent = append(unsent, a.name)
		}
		if a.generated && a.computed == nil {
			t.Notes = append(t.Notes, fmt.Sprintf(
				"column %s of %s.%s is generated and left out: generated_columns = 'skip'", quote.Name(a.name), r.schema, r.name))
			continue
		}
		t.Columns = append(t.Columns, column(a, domains))
	}
	t.Key = keys.primary
	if r.identity == "i" {
		t.Key = keys.identity
	}
	t.Unsupported, t.Hint = unsupported(r, t, keys, unsent)
	t.Schema, t.Name = naming.Show(t.Schema), naming.Show(t.Name)
	if t.Unsupported == "" && r.parent {
		t.Notes = append(t.Notes, fmt.Sprintf(
			"tables inherit from %s.%s: they are tables of their own, and it has its own rows only", r.schema, r.name))
	}
	// The server refuses to change rows of a published table of which it cannot send all.
	barred := r.whole > 0 && slices.ContainsFunc(columns, func(a attribute) bool { return a.virtual })
	t.WholeRow = len(t.Key) == 0 && r.identity == "f" && r.partial == 0 && !barred
	switch {
	case t.Unsupported != "" || t.WholeRow:
	case barred && len(t.Key) > 0:
		t.Unsupported = "it has a VIRTUAL column and replica identity FULL: published, the server would refuse each UPDATE and DELETE of it"
		t.Fix = "ALTER TABLE " + quoteIdent(r.schema, r.name) + " REPLICA IDENTITY DEFAULT;"
		t.Hint = "At the source: " + t.Fix + leavesToo(r) + "."
	case barred:
		t.Notes = append(t.Notes, fmt.Sprintf("table %s.%s has no key: inserts are taken in, updates and deletes cannot be followed,"+
			" since with its VIRTUAL column and REPLICA IDENTITY FULL the server would refuse them, were they published", r.schema, r.name))
	case len(t.Key) == 0:
		t.Notes = append(t.Notes, fmt.Sprintf(
			"table %s.%s has no key: inserts are taken in, updates and deletes cannot be followed unless ALTER TABLE %s"+
				" REPLICA IDENTITY FULL;%s", r.schema, r.name, quoteIdent(r.schema, r.name), leavesToo(r)))
	}
	return t
}

// leavesToo reminds of partitions, whose replica identity is their own.
func leavesToo(r relation) string {
	if r.kind != "p" {
		return ""
	}
	return " the same for each of its partitions"
}

// unnamed says why the names of a table cannot be used here, if so: a database in SQL_ASCII
// can have any bytes in them, and other encodings what UTF-8 has no equivalent of.
func unnamed(r relation, t ingest.SourceTable) (reason, hint string) {
	columns := slices.Clone(t.Key)
	for _, c := range t.Columns {
		columns = append(columns, c.Name)
	}
	bad := slices.IndexFunc(columns, func(name string) bool { return !naming.Said(name) })
	switch {
	case !naming.Said(r.schema):
		return notUTF8("the name of its schema", r.schema), "Rename it: ALTER SCHEMA … RENAME TO …;"
	case !naming.Said(r.name):
		return notUTF8("its name", r.name), "Rename it: ALTER TABLE … RENAME TO …;"
	case bad >= 0:
		return notUTF8("the name of a column", columns[bad]), "Rename it: ALTER TABLE … RENAME … TO …; or list the columns to take in."
	}
	return "", ""
}

func notUTF8(what, name string) string {
	return fmt.Sprintf("%s is not UTF-8, or has what UTF-8 has no equivalent of: %s", what, quote.Name(naming.Show(name)))
}

// unsupported says why a relation cannot be taken in and what helps, or nothing.
func unsupported(r relation, t ingest.SourceTable, keys tableKeys, unsent []string) (reason, hint string) {
	if reason, hint = unnamed(r, t); reason != "" {
		return reason, hint
	}
	full := quoteIdent(r.schema, r.name)
	switch {
	case r.persistence == "t":
		return "the table is temporary", "Only permanent tables are in the source's log."
	case strings.HasPrefix(r.schema, "pg_") || r.schema == "information_schema":
		return "it is a table of the system, whose changes are not published", "Take in tables of users only."
	case r.kind == "v" || r.kind == "m":
		return "it is a view", "Take in the tables under it."
	case r.kind == "f":
		return "it is a foreign table, whose changes are not in the source's log", "Take it in from the server that has it."
	case r.persistence == "u":
		return "the table is unlogged", "ALTER TABLE " + full + " SET LOGGED;"
	case r.alien > 0:
		return "a partition is foreign or unlogged, so its changes are not in the source's log",
			"Make every partition an ordinary logged table."
	case !r.readable:
		role := quoteIdent(r.role)
		return "the role may not read the table", fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT ON %s TO %s;",
			quoteIdent(r.schema), role, full, role) + " The same for its partitions, if it has any."
	case r.hidden:
		return "row security hides rows of the table from the role", fmt.Sprintf("ALTER ROLE %s BYPASSRLS;", quoteIdent(r.role))
	case (r.identity == "n" || r.silent > 0) && len(keys.primary) > 0:
		return "its replica identity is NOTHING, so updates and deletes are not in the source's log",
			"ALTER TABLE " + full + " REPLICA IDENTITY DEFAULT; the same for its partitions."
	case r.mixed > 0 && len(t.Key) > 0:
		return "a partition has another replica identity than the table, so changes of its rows do not carry the table's key",
			"ALTER TABLE … REPLICA IDENTITY FULL for each of its partitions."
	case len(t.Columns) == 0:
		return "it has no columns that can be taken in", ""
	case len(t.Columns) > schema.ColumnsMax:
		return "it has too many columns", ""
	}
	for _, k := range t.Key {
		if slices.Contains(unsent, k) {
			return fmt.Sprintf("key column %s is generated, and the source does not send it", quote.Name(k)),
				fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY USING INDEX …; of a unique index without that column.", full)
		}
	}
	return "", ""
}

// unable says of generated columns why they can never be computed.
func unable(columns []attribute) map[string]string {
	out := map[string]string{}
	for _, a := range columns {
		if a.computed != nil && a.computed.Problem != "" {
			out[a.name] = a.computed.Problem
		}
	}
	return out
}

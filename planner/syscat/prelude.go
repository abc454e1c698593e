package syscat

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
)

// Prelude holds the macros that functions and rewritten statements use.
func (c *Catalog) Prelude() []string {
	return []string{formatType(c.domains), typeName, nameParts}
}

// typeName is the macro of a type's name when nothing is known of a modifier; with one
// of -1 PostgreSQL says bpchar and "bit", which are the names without a length.
const typeName = `CREATE OR REPLACE MACRO skippr_type_name(o) AS CASE o WHEN 1042 THEN 'character' WHEN 1014 THEN 'character[]'
	WHEN 1560 THEN 'bit' WHEN 1561 THEN 'bit[]' ELSE skippr_format_type(o, -1) END`

// nameParts is the macro that reads one part of a possibly quoted, qualified name,
// counted from 1; NULL when there is no such part.
const nameParts = `CREATE OR REPLACE MACRO skippr_name_part(s, i) AS
	CASE WHEN list_extract(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".]+'), i) LIKE '"%'
	THEN replace(trim(list_extract(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".]+'), i), '"'), '""', '"')
	ELSE lower(trim(list_extract(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".]+'), i))) END`

// formatType is the macro behind format_type(oid, typmod), a CASE over the built-in
// types and domains; the names with a modifier are put together in the engine.
func formatType(domains map[uint32]string) string {
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE MACRO skippr_format_type(o, m) AS CASE WHEN o IS NULL THEN NULL")
	b.WriteString(" WHEN m >= 4 AND o = 1043 THEN 'character varying(' || (m - 4) || ')'")
	b.WriteString(" WHEN m >= 4 AND o = 1042 THEN 'character(' || (m - 4) || ')'")
	b.WriteString(" WHEN m >= 4 AND o = 1700 THEN 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 2047) || ')'")
	b.WriteString(" WHEN m >= 0 AND o = 1114 THEN 'timestamp(' || m || ') without time zone'")
	b.WriteString(" WHEN m >= 0 AND o = 1184 THEN 'timestamp(' || m || ') with time zone'")
	b.WriteString(" WHEN m >= 0 AND o = 1083 THEN 'time(' || m || ') without time zone'")
	b.WriteString(" WHEN m >= 0 AND o = 1266 THEN 'time(' || m || ') with time zone'")
	b.WriteString(" WHEN m >= 0 AND o = 1560 THEN 'bit(' || m || ')'")
	b.WriteString(" WHEN m >= 0 AND o = 1562 THEN 'bit varying(' || m || ')'")
	b.WriteString(" ELSE CASE o")
	for _, t := range schema.BuiltinTypes() {
		fmt.Fprintf(&b, " WHEN %d THEN '%s'", t.OID, strings.ReplaceAll(schema.PostgresTypeName(t.OID, -1), "'", "''"))
	}
	for _, oid := range slices.Sorted(maps.Keys(domains)) {
		fmt.Fprintf(&b, " WHEN %d THEN 'information_schema.%s'", oid, domains[oid])
	}
	b.WriteString(" ELSE '???' END END")
	return b.String()
}

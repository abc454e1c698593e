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

// modified are the types whose names have a modifier, from the least that there is, and
// their arrays.
var modified = []struct {
	oid, array, least int
	name              string
}{
	{1043, 1015, 4, "'character varying(' || (m - 4) || ')'"},
	{1042, 1014, 4, "'character(' || (m - 4) || ')'"},
	{1700, 1231, 4, "'numeric(' || ((m - 4) >> 16) || ',' || (xor((m - 4) & 2047, 1024) - 1024) || ')'"},
	{1114, 1115, 0, "'timestamp(' || m || ') without time zone'"},
	{1184, 1185, 0, "'timestamp(' || m || ') with time zone'"},
	{1083, 1183, 0, "'time(' || m || ') without time zone'"},
	{1266, 1270, 0, "'time(' || m || ') with time zone'"},
	{1560, 1561, 0, "'bit(' || m || ')'"},
	{1562, 1563, 0, "'bit varying(' || m || ')'"},
	{1186, 1187, 0, intervalName},
}

// intervalName names an interval by its modifier: the fields in its upper half, the digits of
// seconds in the lower one.
const intervalName = `'interval' || CASE m >> 16 WHEN 4 THEN ' year' WHEN 2 THEN ' month' WHEN 8 THEN ' day' WHEN 1024 THEN ' hour' WHEN 2048 THEN ' minute'
	WHEN 4096 THEN ' second' WHEN 6 THEN ' year to month' WHEN 1032 THEN ' day to hour' WHEN 3080 THEN ' day to minute' WHEN 7176 THEN ' day to second'
	WHEN 3072 THEN ' hour to minute' WHEN 7168 THEN ' hour to second' WHEN 6144 THEN ' minute to second' ELSE '' END
	|| CASE WHEN m & 65535 = 65535 THEN '' ELSE '(' || (m & 65535) || ')' END`

// formatType is the macro behind format_type(oid, typmod), a CASE over the built-in
// types and domains; the names with a modifier are put together in the engine.
func formatType(domains map[uint32]string) string {
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE MACRO skippr_format_type(o, m) AS CASE WHEN o IS NULL THEN NULL WHEN o = 0 THEN '-'")
	for _, t := range modified {
		fmt.Fprintf(&b, " WHEN m >= %d AND o = %d THEN %s", t.least, t.oid, t.name)
		fmt.Fprintf(&b, " WHEN m >= %d AND o = %d THEN %s || '[]'", t.least, t.array, t.name)
	}
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

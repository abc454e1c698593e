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
	return []string{formatType(c.domains), quoteMacro(), nameParts}
}

// nameParts is the macro that reads one part of a possibly quoted, qualified name,
// counted from 1; NULL when there is no such part.
const nameParts = `CREATE OR REPLACE MACRO skippr_name_part(s, i) AS
	CASE WHEN list_extract(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".]+'), i) LIKE '"%'
	THEN replace(trim(list_extract(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".]+'), i), '"'), '""', '"')
	ELSE lower(trim(list_extract(regexp_extract_all(s, '"(?:[^"]|"")*"|[^".]+'), i))) END`

// reservedWords are the key words that quote_ident quotes: those that PostgreSQL does
// not call unreserved.
var reservedWords = strings.Fields(`all analyse analyze and any array as asc asymmetric authorization between bigint binary bit
	boolean both case cast char character check coalesce collate collation column concurrently constraint create cross
	current_catalog current_date current_role current_schema current_time current_timestamp current_user dec decimal default
	deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group
	grouping having ilike in initially inner inout int integer intersect interval into is isnull join lateral leading least left
	like limit localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric offset on only or
	order out outer overlaps overlay placing position precision primary real references returning right row select session_user
	setof similar smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union unique
	user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest
	xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable`)

func quoteMacro() string {
	return `CREATE OR REPLACE MACRO skippr_quote_ident(s) AS CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') AND NOT list_contains(['` +
		strings.Join(reservedWords, "', '") + `'], s) THEN s ELSE '"' || replace(s, '"', '""') || '"' END`
}

// quoteIdent quotes an identifier where SQL needs it.
func quoteIdent(s string) string {
	plain := s != "" && !slices.Contains(reservedWords, s)
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			plain = false
		}
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

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

package pgsql

import (
	"slices"
	"strings"
)

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

// quoteIdentPrelude is the macro of quote_ident.
func quoteIdentPrelude() string {
	return `CREATE OR REPLACE MACRO skippr_quote_ident(s) AS CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') AND NOT list_contains(['` +
		strings.Join(reservedWords, "', '") + `'], s) THEN s ELSE '"' || replace(s, '"', '""') || '"' END`
}

// QuoteIdent quotes an identifier where SQL needs it, as quote_ident does.
func QuoteIdent(s string) string {
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

// Package quote writes names and texts as SQL, of PostgreSQL, of the engine, and of the
// statements that hints suggest.
package quote

import (
	"slices"
	"strings"
)

// Reserved are the key words that quote_ident quotes: those that PostgreSQL does not call
// unreserved. The caller does not change it.
var Reserved = strings.Fields(`all analyse analyze and any array as asc asymmetric authorization between bigint binary bit
	boolean both case cast char character check coalesce collate collation column concurrently constraint create cross
	current_catalog current_date current_role current_schema current_time current_timestamp current_user dec decimal default
	deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group
	grouping having ilike in initially inner inout int integer intersect interval into is isnull join lateral leading least left
	like limit localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric offset on only or
	order out outer overlaps overlay placing position precision primary real references returning right row select session_user
	setof similar smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union unique
	user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest
	xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable`)

// Name writes a name in quotes, a qualified one of several parts.
func Name(parts ...string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(out, ".")
}

// NameIfNeeded writes a name as quote_ident does: in quotes where SQL needs them.
func NameIfNeeded(name string) string {
	plain := name != "" && !slices.Contains(Reserved, name)
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			plain = false
		}
	}
	if plain {
		return name
	}
	return Name(name)
}

// Text writes a text for a grammar in which a backslash means nothing: ours, the engine's,
// that of replication, and PostgreSQL's with standard_conforming_strings.
func Text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Literal writes a text as quote_literal does: it is read right by PostgreSQL whatever
// standard_conforming_strings says.
func Literal(s string) string {
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(Text(s), `\`, `\\`)
	}
	return Text(s)
}

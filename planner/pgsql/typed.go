package pgsql

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
)

// builtinsOfTypes are builtins of ranges, networks and bit strings. Those of ranges stand once
// for all types: {R} is the range's, {M} that of its multiranges, {R|M} either, {E} that of what
// it is of; {oid} and {moid} are numbers of the first two, {in:x} makes text of an element and
// {out:x} an element of text. Lines of the kind o are operators.
//
//go:embed builtins_types.txt
var builtinsOfTypes string

// rangeTypes are the range types: range, multirange, element, from and to text.
var rangeTypes = []struct{ r, m, e, in, out string }{
	{"int4range", "int4multirange", "int4", "CAST(% AS VARCHAR)", "CAST(% AS INTEGER)"},
	{"int8range", "int8multirange", "int8", "CAST(% AS VARCHAR)", "CAST(% AS BIGINT)"},
	{"numrange", "nummultirange", "numeric", "%", "%"},
	{"daterange", "datemultirange", "date", "skippr_era_text(CAST(% AS VARCHAR))", "CAST(skippr_exact_moment(%) AS DATE)"},
	{"tsrange", "tsmultirange", "timestamp", "skippr_era_text(CAST(% AS VARCHAR))", "CAST(skippr_exact_moment(%) AS TIMESTAMP)"},
	{"tstzrange", "tstzmultirange", "timestamptz", "skippr_tz_text(%, 'UTC')", "CAST(skippr_exact_moment(%) AS TIMESTAMPTZ)"},
}

// eachRange writes a line once for every range type.
func eachRange(line string) []string {
	if before, after, ok := strings.Cut(line, "{R|M}"); ok {
		return append(eachRange(before+"{R}"+after), eachRange(before+"{M}"+after)...)
	}
	if !strings.Contains(line, "{R}") && !strings.Contains(line, "{M}") {
		return []string{line}
	}
	var out []string
	for _, t := range rangeTypes {
		oid, moid := strconv.Itoa(int(mustType(t.r))), strconv.Itoa(int(mustType(t.m)))
		one := strings.NewReplacer("{R}", t.r, "{M}", t.m, "{E}", t.e, "{oid}", oid, "{moid}", moid).Replace(line)
		one = within(within(one, "{in:", t.in), "{out:", t.out)
		out = append(out, one)
	}
	return out
}

// within puts what stands in marks into a template.
func within(line, mark, template string) string {
	for {
		before, rest, ok := strings.Cut(line, mark)
		if !ok {
			return line
		}
		inner, after, _ := strings.Cut(rest, "}")
		line = before + strings.ReplaceAll(template, "%", inner) + after
	}
}

// hasOperators reports whether values of a type have operators of that list.
func hasOperators(t Type) bool {
	c := t.category()
	return c == 'R' || c == 'I' || c == 'V'
}

// typedOperator analyses an operator of such types; ok is false when there is none.
func (a *analyzer) typedOperator(op string, args []expr, loc int32) (e expr, ok bool, err error) {
	found := op == "@?" || op == "@@"
	for _, e := range args {
		found = found || hasOperators(e.typ)
	}
	if !found {
		return expr{}, false, nil
	}
	c, ambiguous := choose(builtinIndex()["operator "+op], args)
	if c == nil {
		_ = ambiguous // there is no candidate that is surely meant
		return expr{}, false, nil
	}
	e, err = a.call(c, args, nil, nil)
	e.loc = loc
	return e, true, err
}

// typeKey renders a value that is text here such that it orders and compares by bytes as its
// type does, "" when its text does.
func typeKey(e expr) string {
	if e.typ.User != nil && e.typ.User.ordered() {
		return e.typ.User.orderKey(e.sql)
	}
	oid := e.typ.OID
	if _, _, ok := span.KindOf(oid); ok {
		return "skippr_span_key(" + strconv.Itoa(int(oid)) + ", " + e.sql + ")"
	}
	switch oid {
	case OIDInet, oidCIDR:
		return "skippr_net_key(" + e.sql + ")"
	case oidMoney:
		return "CAST(regexp_replace(" + e.sql + ", '[$,.]', '', 'g') AS BIGINT)"
	case oidLSN:
		return "(lpad(split_part(" + e.sql + ", '/', 1), 8, '0') || lpad(split_part(" + e.sql + ", '/', 2), 8, '0'))"
	}
	return ""
}

// The oids of types of which code asks.
const (
	oidCIDR  = 650
	oidBox   = 603
	oidMoney = 790
	oidLSN   = 3220
)

// spanText is the text of a literal of a range or multirange, as it is kept.
func (a *analyzer) spanText(oid uint32, text string) (string, error) {
	zone, _ := a.env.Setting("TimeZone")
	local, err := pgfunc.Local(zone)
	if err != nil {
		return "", err
	}
	return span.Reader{Input: a.literals(), Local: local}.Canonical(oid, text)
}

// styledSpan renders the text of a range in the session's style and zone.
func (a *analyzer) styledSpan(oid uint32, sql string) string {
	kind, _, ok := span.KindOf(oid)
	if !ok || a.canonical || kind == span.Int4 || kind == span.Int8 || kind == span.Num {
		return sql
	}
	style := a.style()
	zone, _ := a.env.Setting("TimeZone")
	if style == "" && (kind != span.TSTZ || strings.EqualFold(zone, "UTC")) {
		return sql
	}
	if style == "" {
		style = "ISO|postgres|hex|1"
	}
	return "skippr_styled(" + sql + ", " + strconv.Itoa(int(oid)) + ", '" + style + "', " + sessionZone + ")"
}

// typedCast is how eager the cast of one such type to another must be.
func typedCast(from, to uint32) coercion {
	switch {
	case from == oidCIDR, from == OIDBit && to == OIDVarbit, from == OIDVarbit && to == OIDBit:
		return implicit
	case from == OIDInet:
		return assignment
	}
	return explicit
}

// convertsTyped reports whether there is a cast between a network or bit string or range and
// another type that is no text.
func convertsTyped(from, to uint32) bool {
	kind, multi, ok := span.KindOf(to)
	of, manyOf, _ := span.KindOf(from)
	switch {
	case ok:
		return multi && !manyOf && of == kind
	case from == oidCIDR && to == OIDInet, from == OIDInet && to == oidCIDR, from == OIDBit && to == OIDVarbit, from == OIDVarbit && to == OIDBit:
		return true
	case from == OIDBit && (to == OIDInt4 || to == OIDInt8), (from == OIDInt4 || from == OIDInt8) && to == OIDBit:
		return true
	}
	return false
}

// convertTyped renders such a cast.
func (a *analyzer) convertTyped(e expr, to Type) expr {
	out := expr{typ: plain(to.OID), scale: -1, sql: e.sql}
	bits := map[uint32]string{OIDInt4: "32", OIDInt8: "64"}
	switch from := e.typ.OID; {
	case from == oidCIDR:
		out.sql = "skippr_net_inet(" + e.sql + ")"
	case from == OIDInet:
		out.sql = "skippr_net_network(" + e.sql + ")"
	case from == OIDBit && bits[to.OID] != "":
		out.sql = "CAST(skippr_bit_int(" + e.sql + ", " + bits[to.OID] + ") AS " + to.engineType() + ")"
	case to.OID == OIDBit && bits[from] != "":
		out.typ = to
		out.sql = "skippr_bit_of(" + e.sql + ", " + bits[from] + ", " + strconv.Itoa(int(max(to.Mod, 1))) + ")"
		return out
	case to.OID != OIDBit && to.OID != OIDVarbit:
		out.sql = "skippr_span_multi(" + strconv.Itoa(int(from)) + ", " + e.sql + ")"
	}
	return a.applyMod(out, to)
}

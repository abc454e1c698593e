package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// jsonPair is a member of a JSON object; key is its JSON text in the engine's dialect.
type jsonPair struct {
	name  string
	fixed bool // name is the key
	key   string
	value string
}

// buildJSON analyses the functions that make JSON of values: json_build_object,
// json_build_array, to_json, row_to_json and their jsonb twins.
func (a *analyzer) buildJSON(name string, args []expr) (expr, error) {
	binary := strings.Contains(name, "jsonb")
	out := expr{typ: plain(OIDJSON), scale: -1}
	if binary {
		out.typ = plain(OIDJSONB)
	}
	var err error
	switch {
	case strings.HasSuffix(name, "_build_object"):
		out.sql, err = a.jsonObject(args, binary)
	case strings.HasSuffix(name, "_build_array"):
		parts := make([]string, len(args))
		for i, e := range args {
			if parts[i], err = a.jsonValue(e, binary); err != nil {
				return out, err
			}
		}
		out.sql = "concat('[', " + strings.Join(append(intersperse(parts, "', '"), "']'"), ", ") + ")"
	case len(args) == 1 && name == "array_to_json" && !args[0].typ.isArray():
		return out, noFunction(name, args, false)
	case len(args) == 1 && args[0].undecided() && args[0].lit != nil:
		return out, polymorphicUnknown()
	case len(args) == 1 && (name != "row_to_json" || isRecord(args[0])):
		out.sql, err = a.jsonValue(args[0], binary)
		switch { // a NULL stays one
		case args[0].row == nil:
			out.sql = "CASE WHEN " + args[0].sql + " IS NOT NULL THEN " + out.sql + " END"
		default:
			out.sql = args[0].ifThere(out.sql)
		}
	default:
		return out, noFunction(name, args, false)
	}
	if binary && out.sql != "" {
		out.sql = "skippr_j_norm(" + out.sql + ")"
	}
	return out, err
}

func intersperse(parts []string, between string) []string {
	var out []string
	for i, p := range parts {
		if i > 0 {
			out = append(out, between)
		}
		out = append(out, p)
	}
	return out
}

func (a *analyzer) jsonObject(args []expr, binary bool) (string, error) {
	if len(args)%2 != 0 {
		return "", pgerr.New(codes.InvalidParameterValue, "argument list must have even number of elements").
			WithHint("The arguments of json_build_object() must consist of alternating keys and values.")
	}
	var pairs []jsonPair
	for i := 0; i < len(args); i += 2 {
		key, err := a.coerce(args[i], plain(OIDText), explicit)
		if err != nil {
			return "", err
		}
		p := jsonPair{key: "skippr_j_string(" + key.sql + ")"}
		if args[i].lit != nil {
			p.name, p.fixed = *args[i].lit, true
		}
		if p.value, err = a.jsonValue(args[i+1], binary); err != nil {
			return "", err
		}
		pairs = append(pairs, p)
	}
	colon := "' : '"
	if binary {
		colon, pairs = "': '", sortedPairs(pairs)
	}
	return joinPairs(pairs, colon, "', '"), nil
}

// sortedPairs puts members into the order of jsonb, by length and bytes, of equal
// names the last, when all names are known.
func sortedPairs(pairs []jsonPair) []jsonPair {
	if slices.ContainsFunc(pairs, func(p jsonPair) bool { return !p.fixed }) {
		return pairs
	}
	last := map[string]jsonPair{}
	for _, p := range pairs {
		last[p.name] = p
	}
	var out []jsonPair
	for _, p := range last {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y jsonPair) int {
		if len(x.name) != len(y.name) {
			return len(x.name) - len(y.name)
		}
		return strings.Compare(x.name, y.name)
	})
	return out
}

func joinPairs(pairs []jsonPair, colon, comma string) string {
	members := make([]string, len(pairs))
	for i, p := range pairs {
		members[i] = p.key + ", " + colon + ", " + p.value
	}
	return "concat('{', " + strings.Join(append(intersperse(members, comma), "'}'"), ", ") + ")"
}

// jsonValue renders a value as JSON text; NULL is null.
func (a *analyzer) jsonValue(e expr, binary bool) (string, error) {
	if isRecord(e) {
		var pairs []jsonPair
		for _, f := range rowOf(e) {
			v, err := a.jsonValue(f, binary)
			if err != nil {
				return "", err
			}
			pairs = append(pairs, jsonPair{name: f.name, fixed: true, key: quote.Text(`"` + f.name + `"`), value: v})
		}
		sql := e.ifThere(joinPairs(pairs, "':'", "','"))
		if binary {
			sql = e.ifThere(joinPairs(sortedPairs(pairs), "': '", "', '"))
		}
		if strings.HasPrefix(sql, "CASE ") {
			sql = "coalesce(" + sql + ", 'null')"
		}
		return sql, nil
	}
	e, err := a.labelsIfAny(e)
	if err != nil {
		return "", err
	}
	if e.typ.User != nil && (e.typ.User.JSON || e.typ.User.New) {
		return "", unsupported("JSON of %s values is not supported", e.typ.Name()).WithHint("Cast the value to text.")
	}
	text, err := a.coerce(e, plain(OIDText), explicit)
	if err != nil {
		return "", err
	}
	if isDateLike(e.typ.OID) { // of no style
		if text.sql, err = a.canonicalText(e); err != nil {
			return "", err
		}
	}
	if e.typ.OID == OIDBpchar || e.typ.OID == OIDInet {
		text.sql = e.sql // with its blanks, without its mask
	}
	sql := "skippr_j_string(" + text.sql + ")"
	switch oid := e.typ.OID; {
	case isFloat(oid), oid == OIDNumeric && e.text:
		sql = "CASE WHEN " + text.sql + " IN ('NaN', 'Infinity', '-Infinity') THEN '\"' || " + text.sql + " || '\"' ELSE " + text.sql + " END"
	case numericRank(oid) > 0, oid == OIDJSON, oid == OIDJSONB:
		sql = text.sql
	case oid == OIDBool:
		sql = "CASE WHEN " + e.sql + " THEN 'true' WHEN NOT " + e.sql + " THEN 'false' END"
	case oid == OIDTimestamp:
		sql = `'"' || regexp_replace(` + text.sql + `, ' ', 'T') || '"'`
	case oid == OIDTimestamptz:
		sql = `'"' || regexp_replace(regexp_replace(` + text.sql + `, ' ', 'T'), '([+-]\d\d)$', '\1:00') || '"'`
	case shaped(e):
		v := a.alias("v")
		list := flat(e)
		item, err := a.jsonValue(elementOf(list, expr{scale: -1, loc: e.loc}, v), binary)
		if err != nil {
			return "", err
		}
		sql = "skippr_a_json(" + e.sql + ", CAST(to_json(list_transform(" + list.sql + ", lambda " + v + ": " + item + ")) AS VARCHAR), ',')"
	case ElemOf(oid) != 0 && e.typ.isArray():
		v := a.alias("v")
		item, err := a.jsonValue(elementOf(e, expr{scale: -1, loc: e.loc}, v), binary)
		if err != nil {
			return "", err
		}
		sql = "'[' || array_to_string(list_transform(" + e.sql + ", lambda " + v + ": " + item + "), ',') || ']'"
	}
	return "coalesce(" + sql + ", 'null')", nil
}

// aggregateJSON analyses json_agg, json_object_agg and their jsonb twins.
func (a *analyzer) aggregateJSON(name string, n *pg.FuncCall, s *scope) (expr, error) {
	out := expr{typ: plain(OIDJSON), scale: -1}
	if strings.HasPrefix(name, "jsonb") {
		out.typ = plain(OIDJSONB)
	}
	switch {
	case n.Over != nil:
		return out, unsupported("%s with OVER is not supported", name)
	case n.AggDistinct && len(n.AggOrder) > 0 && strings.HasSuffix(name, "_object_agg"):
		return out, unsupported("%s with DISTINCT and ORDER BY is not supported", name)
	case s.noAgg != "":
		return out, pgerr.New(codes.Grouping, "aggregate functions are not allowed in %s", s.noAgg)
	case s.aggDepth > 0:
		return out, pgerr.New(codes.Grouping, "aggregate function calls cannot be nested")
	}
	s.hasAgg = true
	s.aggDepth++
	defer func() { s.aggDepth-- }()
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return out, err
	}
	d, err := a.decorate(n, s, &signature{kind: 'a', name: name})
	if err != nil {
		return out, err
	}
	if strings.HasSuffix(name, "_object_agg") {
		out.sql, err = a.aggregateObject(name, args, n.AggDistinct, d)
		return out, err
	}
	if len(args) != 1 {
		return out, noFunction(name, args, false)
	}
	if args[0].undecided() {
		return out, polymorphicUnknown()
	}
	value, err := a.jsonValue(args[0], name == "jsonb_agg")
	if err != nil {
		return out, err
	}
	array := args[0].typ.isArray() || args[0].typ.User != nil && args[0].typ.User.Elem != nil
	comma, lines := "', '", name == "json_agg" && (isRecord(args[0]) || array)
	if lines { // each but the first, and nulls, on a line
		value = "CASE WHEN " + args[0].sql + " IS NULL THEN 'null' ELSE chr(10) || ' ' || " + value + " END"
	}
	if n.AggDistinct {
		if err := a.equatable(args[0]); err != nil {
			return out, err
		}
		u := distinctOf{value: value, key: sortKey(args[0]), filter: d.filter}
		if u.direction, err = a.distinctDirection(n, s); err != nil {
			return out, err
		}
		out.sql = "('[' || array_to_string(" + u.list() + ", " + comma + ") || ']')"
	} else {
		out.sql, err = a.expand("('[' || @string_agg($1, "+comma+") || ']')", []string{value}, d)
	}
	if lines {
		out.sql = "regexp_replace(" + out.sql + ", '^\\[\\n ', '[')"
	}
	if name == "jsonb_agg" {
		out.sql = "skippr_j_norm(" + out.sql + ")"
	}
	return out, err
}

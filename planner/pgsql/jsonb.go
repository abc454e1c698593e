package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// jsonbTypes are the operators of jsonb.
var jsonbTypes = map[string]jsonbDef{
	"->":  {OIDText, OIDJSONB, map[uint32]string{OIDText: "skippr_j_member", OIDInt4: "skippr_j_element"}},
	"->>": {OIDText, OIDText, map[uint32]string{OIDText: "skippr_j_member_text", OIDInt4: "skippr_j_element_text"}},
	"#>":  {oidTextArray, OIDJSONB, map[uint32]string{oidTextArray: "skippr_j_path"}},
	"#>>": {oidTextArray, OIDText, map[uint32]string{oidTextArray: "skippr_j_path_text"}},
	"||":  {OIDJSONB, OIDJSONB, map[uint32]string{OIDJSONB: "skippr_j_concat"}},
	"-": {OIDText, OIDJSONB, map[uint32]string{
		OIDText: "skippr_j_delete", OIDInt4: "skippr_j_delete_index", oidTextArray: "skippr_j_delete_list",
	}},
	"#-": {oidTextArray, OIDJSONB, map[uint32]string{oidTextArray: "skippr_j_delete_path"}},
	"@>": {OIDJSONB, OIDBool, map[uint32]string{OIDJSONB: "skippr_j_contains"}},
	"?":  {OIDText, OIDBool, map[uint32]string{OIDText: "skippr_j_exists"}},
	"?|": {oidTextArray, OIDBool, map[uint32]string{oidTextArray: "skippr_j_exists_any"}},
	"?&": {oidTextArray, OIDBool, map[uint32]string{oidTextArray: "skippr_j_exists_all"}},
}

// jsonTypes are the operators of json, whose parts are what is written there.
var jsonTypes = map[string]jsonbDef{
	"->":  {OIDText, OIDJSON, map[uint32]string{OIDText: "skippr_js_member", OIDInt4: "skippr_js_element"}},
	"->>": {OIDText, OIDText, map[uint32]string{OIDText: "skippr_js_member_text", OIDInt4: "skippr_js_element_text"}},
	"#>":  {oidTextArray, OIDJSON, map[uint32]string{oidTextArray: "skippr_js_path"}},
	"#>>": {oidTextArray, OIDText, map[uint32]string{oidTextArray: "skippr_js_path_text"}},
}

// jsonbDef is an operator: the type of the right side when it is not decided, the result, and
// the engine's function for each type that the right side may have.
type jsonbDef struct {
	right, result uint32
	functions     map[uint32]string
}

const oidTextArray = 1009

// jsonbOperator analyses an operator with a jsonb on its left; ok is false for those that
// jsonb does not have.
func (a *analyzer) jsonbOperator(op string, l, r expr, loc int32) (expr, bool, error) {
	if op == "<@" {
		op, l, r = "@>", r, l
	}
	if l.undecided() && (r.typ.OID == OIDJSONB) && (op == "||" || op == "@>") {
		d, err := a.coerce(l, plain(OIDJSONB), implicit)
		if err != nil {
			return d, true, err
		}
		l = d
	}
	def, ok := jsonbTypes[op]
	if !ok || l.typ.OID != OIDJSONB {
		return l, false, nil
	}
	out, err := a.jsonAccess(op, def, l, r, loc)
	return out, true, err
}

// jsonOperator analyses -> ->> #> #>> of a json.
func (a *analyzer) jsonOperator(op string, l, r expr, loc int32) (expr, error) {
	if l.undecided() || l.typ.OID != OIDJSON {
		return l, a.noOperator(op, &l, r, loc)
	}
	return a.jsonAccess(op, jsonTypes[op], l, r, loc)
}

func (a *analyzer) jsonAccess(op string, def jsonbDef, l, r expr, loc int32) (expr, error) {
	var err error
	switch {
	case r.undecided():
		r, err = a.coerce(r, plain(def.right), implicit)
	case isInt(r.typ.OID) && def.functions[OIDInt4] != "":
		r, err = a.coerce(r, plain(OIDInt4), assignment)
	case isString(r.typ.OID) && def.functions[OIDText] != "":
		r, err = a.coerce(r, plain(OIDText), implicit)
	}
	if err != nil {
		return r, err
	}
	fn := def.functions[r.typ.OID]
	if fn == "" {
		return l, a.noOperator(op, &l, r, loc)
	}
	out := expr{typ: plain(def.result), loc: loc, scale: -1}
	out.sql = fn + "(" + l.sql + ", " + listArg(r) + ")"
	return out, nil
}

// jsonbSubscript analyses j['member'] and j[0].
func (a *analyzer) jsonbSubscript(e expr, idx *pg.A_Indices, s *scope) (expr, error) {
	key, err := a.expr(idx.Uidx, s)
	if err != nil {
		return key, err
	}
	if !key.undecided() && !isString(key.typ.OID) && key.typ.OID != OIDInt4 && key.typ.OID != OIDInt2 {
		return key, a.errAt(key.loc, pgerr.New(codes.DatatypeMismatch, "subscript type %s is not supported", key.typ.Name()).
			WithHint("jsonb subscript must be coercible to either integer or text."))
	}
	if key, err = a.coerce(key, plain(OIDText), explicit); err != nil {
		return key, err
	}
	path := expr{typ: plain(oidTextArray), scale: -1, sql: "CAST([" + key.sql + "] AS VARCHAR[])"}
	out, _, err := a.jsonbOperator("#>", e, path, e.loc)
	out.name = e.name
	return out, err
}

// listArg renders an argument of a function in Go: a list travels as JSON.
func listArg(e expr) string {
	if e.typ.isArray() {
		return "CAST(to_json(" + e.sql + ") AS VARCHAR)"
	}
	return e.sql
}

// fromJSONB renders the cast of a jsonb to a number or a truth value.
func (a *analyzer) fromJSONB(e expr, to Type) (expr, error) {
	if to.OID == OIDBool {
		return expr{sql: "skippr_j_bool(" + e.sql + ")", typ: to, scale: -1}, nil
	}
	n := expr{typ: plain(OIDNumeric), loc: e.loc}
	n.setText("skippr_j_number(" + e.sql + ", '" + to.Name() + "')")
	return a.coerce(n, to, explicit)
}

// jsonFromText renders the cast of text to json or jsonb.
func jsonFromText(sql string, to uint32) string {
	if to == OIDJSONB {
		return "skippr_j_norm(" + sql + ")"
	}
	return "skippr_json_check(" + sql + ")"
}

// extractPath analyses json_extract_path, jsonb_extract_path and their twins that give text.
func (a *analyzer) extractPath(name string, args []expr) (expr, error) {
	if len(args) < 2 {
		return expr{}, noFunction(name, args, false)
	}
	typ := plain(OIDJSON)
	if strings.HasPrefix(name, "jsonb") {
		typ = plain(OIDJSONB)
	}
	j, err := a.coerce(args[0], typ, implicit)
	if err != nil {
		return j, err
	}
	list := expr{typ: plain(oidTextArray), scale: -1}
	for i, e := range args[1:] {
		c, err := a.coerce(e, plain(OIDText), implicit)
		if err != nil {
			return c, err
		}
		if i > 0 {
			list.sql += ", "
		}
		list.sql += c.sql
	}
	list.sql = "CAST([" + list.sql + "] AS VARCHAR[])"
	op := "#>"
	if strings.HasSuffix(name, "_text") {
		op = "#>>"
	}
	return a.binary(op, j, list, -1)
}

// aggregateObject analyses json_object_agg and jsonb_object_agg.
func (a *analyzer) aggregateObject(name string, args []expr, distinct bool, d decoration) (string, error) {
	if len(args) != 2 {
		return "", noFunction(name, args, false)
	}
	binary := name == "jsonb_object_agg"
	key, err := a.coerce(args[0], plain(OIDText), explicit)
	if err != nil {
		return "", err
	}
	v, err := a.jsonValue(args[1], binary)
	if err != nil {
		return "", err
	}
	pair := "CASE WHEN " + key.sql + " IS NULL THEN error('22023: field name must not be null') ELSE skippr_j_string(" + key.sql +
		") || ' : ' || " + v + " END"
	if cond, ok := strings.CutPrefix(d.filter, " FILTER (WHERE "); ok { // the engine computes what it then filters out
		pair = "CASE WHEN " + strings.TrimSuffix(cond, ")") + " THEN " + pair + " END"
	}
	sql := ""
	if distinct {
		for _, e := range args {
			if err := a.equatable(e); err != nil {
				return "", err
			}
			if err := a.sortable(e); err != nil {
				return "", err
			}
		}
		u := distinctOf{value: pair, key: "row(" + sortKey(args[0]) + ", " + sortKey(args[1]) + ")", direction: " ASC", filter: d.filter}
		sql = "('{ ' || array_to_string(" + u.list() + ", ', ') || ' }')"
	} else {
		sql, err = a.expand("('{ ' || @string_agg($1, ', ') || ' }')", []string{pair}, d)
	}
	if binary {
		sql = "skippr_j_norm(" + sql + ")"
	}
	return sql, err
}

func polymorphicUnknown() *pgerr.Error {
	return pgerr.New(codes.DatatypeMismatch, "could not determine polymorphic type because input has type unknown")
}

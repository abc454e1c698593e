package pgsql

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// namedParams are the names of the arguments of the built-in functions that have such; those behind
// a "=" have a default.
var namedParams = map[string][]string{
	"jsonb_insert":              {"jsonb_in path replacement insert_after=false"},
	"jsonb_path_exists":         {"target path vars={} silent=false"},
	"jsonb_path_exists_tz":      {"target path vars={} silent=false"},
	"jsonb_path_match":          {"target path vars={} silent=false"},
	"jsonb_path_match_tz":       {"target path vars={} silent=false"},
	"jsonb_path_query":          {"target path vars={} silent=false"},
	"jsonb_path_query_tz":       {"target path vars={} silent=false"},
	"jsonb_path_query_array":    {"target path vars={} silent=false"},
	"jsonb_path_query_array_tz": {"target path vars={} silent=false"},
	"jsonb_path_query_first":    {"target path vars={} silent=false"},
	"jsonb_path_query_first_tz": {"target path vars={} silent=false"},
	"jsonb_set":                 {"jsonb_in path replacement create_if_missing=true"},
	"jsonb_set_lax":             {"jsonb_in path replacement create_if_missing=true null_value_treatment=use_json_null"},
	"json_array_element":        {"from_json element_index"},
	"json_array_element_text":   {"from_json element_index"},
	"json_array_elements":       {"from_json"},
	"json_array_elements_text":  {"from_json"},
	"json_each":                 {"from_json"},
	"json_each_text":            {"from_json"},
	"json_object_field":         {"from_json field_name"},
	"json_object_field_text":    {"from_json field_name"},
	"jsonb_array_element":       {"from_json element_index"},
	"jsonb_array_element_text":  {"from_json element_index"},
	"jsonb_array_elements":      {"from_json"},
	"jsonb_array_elements_text": {"from_json"},
	"jsonb_each":                {"from_json"},
	"jsonb_each_text":           {"from_json"},
	"jsonb_object_field":        {"from_json field_name"},
	"jsonb_object_field_text":   {"from_json field_name"},
	"make_date":                 {"year month day"},
	"make_interval":             {"years=0 months=0 weeks=0 days=0 hours=0 mins=0 secs=0"},
	"make_time":                 {"hour min sec"},
	"make_timestamp":            {"year month mday hour min sec"},
	"make_timestamptz":          {"year month mday hour min sec", "year month mday hour min sec timezone"},
	"parse_ident":               {"str strict=true"},
	"pg_terminate_backend":      {"pid timeout=0"},
}

// namedArgs makes a call with named arguments one without.
func (a *analyzer) namedArgs(name string, n *pg.FuncCall, s *scope) (*pg.FuncCall, error) {
	if !slices.ContainsFunc(n.Args, func(arg *pg.Node) bool { return arg.GetNamedArgExpr() != nil }) {
		return allOf(name, n), nil
	}
	var seen []string
	for _, arg := range n.Args {
		named := arg.GetNamedArgExpr()
		switch {
		case named == nil && len(seen) > 0:
			return nil, pgerr.New(codes.Syntax, "positional argument cannot follow named argument")
		case named == nil:
		case slices.Contains(seen, named.Name):
			return nil, pgerr.New(codes.Syntax, "argument name \"%s\" used more than once", named.Name)
		default:
			seen = append(seen, named.Name)
		}
	}
	for _, params := range namedParams[name] {
		if args, ok := placed(strings.Fields(params), n.Args); ok {
			return allOf(name, &pg.FuncCall{Funcname: n.Funcname, Args: args, Location: n.Location, Funcformat: n.Funcformat}), nil
		}
	}
	var shown []string
	for _, arg := range n.Args {
		prefix, node := "", arg
		if named := arg.GetNamedArgExpr(); named != nil {
			prefix, node = named.Name+" => ", named.Arg
		}
		e, err := a.expr(node, s)
		if err != nil {
			return nil, err
		}
		shown = append(shown, prefix+e.typ.Name())
	}
	return nil, pgerr.New(codes.UndefinedFunction, "function %s(%s) does not exist", name, strings.Join(shown, ", ")).
		WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

// placed puts arguments in the places of their names, and defaults before the last of them; ok is
// false where they do not fit.
func placed(params []string, args []*pg.Node) (out []*pg.Node, ok bool) {
	if len(args) > len(params) {
		return nil, false
	}
	out = make([]*pg.Node, len(params))
	last := 0
	for i, arg := range args {
		at, value := i, arg
		if named := arg.GetNamedArgExpr(); named != nil {
			value = named.Arg
			at = slices.IndexFunc(params, func(p string) bool {
				param, _, _ := strings.Cut(p, "=")
				return param == named.Name
			})
		}
		if at < 0 || out[at] != nil {
			return nil, false
		}
		out[at], last = value, max(last, at)
	}
	for i, p := range params {
		_, value, optional := strings.Cut(p, "=")
		switch {
		case out[i] != nil:
		case !optional:
			return nil, false
		case value == "true" || value == "false":
			out[i] = &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{
				Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: value == "true"}}, Location: -1,
			}}}
		case value == "0":
			out[i] = pg.MakeAConstIntNode(0, -1)
		default:
			out[i] = pg.MakeAConstStrNode(value, -1)
		}
	}
	return out[:last+1], true
}

// allOf gives make_interval all its arguments, as constants where they are left out.
func allOf(name string, n *pg.FuncCall) *pg.FuncCall {
	params := strings.Fields(namedParams["make_interval"][0])
	if name != "make_interval" || len(n.Args) >= len(params) || n.FuncVariadic {
		return n
	}
	args := slices.Clone(n.Args)
	for range params[len(args):] {
		args = append(args, pg.MakeAConstIntNode(0, -1))
	}
	return &pg.FuncCall{Funcname: n.Funcname, Args: args, Location: n.Location, Funcformat: n.Funcformat}
}

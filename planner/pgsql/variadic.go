package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// variadics are the functions that take any number of arguments, and so an array after VARIADIC.
var variadics = map[string]bool{
	"concat": true, "concat_ws": true, "format": true, "num_nulls": true, "num_nonnulls": true, "jsonb_extract_path": true,
	"json_extract_path": true, "json_extract_path_text": true,
	"jsonb_extract_path_text": true, "json_build_array": true, "jsonb_build_array": true, "json_build_object": true, "jsonb_build_object": true,
}

// variadicArgs are the arguments of a call with VARIADIC, when the array is written out: its
// elements are arguments like others. ok is false for any other array.
func (a *analyzer) variadicArgs(name string, n *pg.FuncCall, s *scope) (args []expr, ok bool, err error) {
	last := len(n.Args) - 1
	if !variadics[name] {
		args, err := a.exprList(n.Args, s)
		if err == nil {
			err = noFunction(name, args, false)
		}
		return nil, false, err
	}
	if args, err = a.exprList(n.Args[:last], s); err != nil {
		return nil, false, err
	}
	array, err := a.expr(n.Args[last], s)
	if err != nil {
		return nil, false, err
	}
	node := n.Args[last]
	if c := node.GetTypeCast(); c != nil {
		node = c.Arg
	}
	written := node.GetAArrayExpr()
	if !array.typ.isArray() || written == nil || array.text {
		return append(args, array), false, nil
	}
	for i := range written.Elements {
		args = append(args, elementOf(array, expr{scale: -1, loc: array.loc}, fmt.Sprintf("list_extract(%s, %d)", array.sql, i+1)))
	}
	return args, true, nil
}

// variadicCall analyses such a call of an array that is computed.
func (a *analyzer) variadicCall(name string, args []expr, loc int32) (expr, error) {
	last := len(args) - 1
	array := args[last]
	if !array.typ.isArray() {
		return expr{}, a.errAt(loc, unsupported("VARIADIC of what is no array is not supported"))
	}
	out := expr{typ: plain(OIDText), scale: -1, loc: loc}
	switch name {
	case "json_extract_path", "json_extract_path_text", "jsonb_extract_path", "jsonb_extract_path_text":
		op := "#>"
		if strings.HasSuffix(name, "_text") {
			op = "#>>"
		}
		if last != 1 {
			return out, noFunction(name, args, false)
		}
		typ := plain(OIDJSON)
		if strings.HasPrefix(name, "jsonb") {
			typ = plain(OIDJSONB)
		}
		j, err := a.coerce(args[0], typ, implicit)
		if err != nil {
			return out, err
		}
		return a.binary(op, j, array, loc)
	case "num_nulls", "num_nonnulls":
		out.typ = plain(OIDInt4)
		count := "list_count(" + array.sql + ")"
		if name == "num_nulls" {
			count = "len(" + array.sql + ") - " + count
		}
		out.sql = "CAST(" + count + " AS INTEGER)"
		return out, nil
	}
	if strings.HasPrefix(name, "json") && last == 0 {
		return a.variadicJSON(name, array, out)
	}
	if !strings.HasPrefix(name, "concat") && name != "format" {
		return out, a.errAt(loc, unsupported("%s with VARIADIC of an array that is computed is not supported", name))
	}
	list, err := a.textList(array)
	if err != nil {
		return out, err
	}
	separator := expr{sql: "''"}
	if last > 0 {
		if separator, err = a.coerce(args[0], plain(OIDText), explicit); err != nil {
			return out, err
		}
	}
	if name == "format" {
		out.sql = "skippr_format(" + separator.sql + ", CAST(to_json(" + list + ") AS VARCHAR))"
		return out, nil
	}
	out.sql = "CASE WHEN " + array.sql + " IS NOT NULL AND " + separator.sql + " IS NOT NULL THEN " + joining(separator) + "(list_filter(" + list +
		", lambda x: x IS NOT NULL), " + separator.sql + ") END"
	return out, nil
}

// joining is the function that puts texts together with a separator: the engine's takes only one
// that is the same for all rows.
func joining(separator expr) string {
	if separator.con {
		return "array_to_string"
	}
	return "skippr_join"
}

// variadic analyses a call with VARIADIC.
func (a *analyzer) variadic(name string, n *pg.FuncCall, s *scope) (expr, error) {
	args, written, err := a.variadicArgs(name, n, s)
	if err != nil {
		return expr{}, a.errAt(n.Location, err)
	}
	var e expr
	if written {
		a.spread = args
		if a.spread == nil {
			a.spread = []expr{}
		}
		e, _, err = a.specialCall(name, n, s)
	} else {
		e, err = a.variadicCall(name, args, n.Location)
	}
	e.loc, e.name = n.Location, name
	return e, a.errAt(n.Location, err)
}

// variadicJSON is json_build_array or one of its kin of the elements of an array.
func (a *analyzer) variadicJSON(name string, array, out expr) (expr, error) {
	binary := strings.HasPrefix(name, "jsonb")
	out.typ = plain(OIDJSON)
	if binary {
		out.typ = plain(OIDJSONB)
	}
	list := flat(array)
	item := func(sql string) expr { return elementOf(list, expr{scale: -1, loc: array.loc}, sql) }
	if strings.HasSuffix(name, "_array") {
		value, err := a.jsonValue(item("w"), binary)
		if err != nil {
			return out, err
		}
		out.sql = "'[' || array_to_string(list_transform(" + list.sql + ", lambda w: " + value + "), ', ') || ']'"
	} else {
		key, err := a.coerce(item("l[2 * i - 1]"), plain(OIDText), explicit)
		if err != nil {
			return out, err
		}
		value, err := a.jsonValue(item("l[2 * i]"), binary)
		if err != nil {
			return out, err
		}
		out.sql = "list_transform([" + list.sql + "], lambda l: CASE WHEN len(l) % 2 <> 0 " +
			"THEN error('22023: argument list must have even number of elements') WHEN l IS NOT NULL THEN '{' || array_to_string(" +
			"list_transform(generate_series(1, len(l) // 2), lambda i: CASE WHEN " + key.sql + " IS NULL " +
			"THEN error('22023: argument ' || (2 * i - 1) || ' cannot be null') ELSE skippr_j_string(" + key.sql + ") || ' : ' || " + value +
			" END), ', ') || '}' END)[1]"
	}
	if binary {
		out.sql = "skippr_j_norm(" + out.sql + ")"
	}
	return out, nil
}

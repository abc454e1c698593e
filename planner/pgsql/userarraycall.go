package pgsql

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Functions and operators of arrays of enumerated types are those of arrays of texts: labels are
// equal when their texts are. Only where arrays are ordered do the places of labels count.

// userArrayCalls are the functions of arrays of enumerated types, with their arguments and, behind
// ">", their results: a is an array, e an element, and anything else is neither.
var userArrayCalls = map[string][]string{
	"array_append": {"ae>a"}, "array_prepend": {"ea>a"}, "array_cat": {"aa>a"}, "array_remove": {"ae>a"}, "array_replace": {"aee>a"},
	"array_position": {"ae>-", "ae->-"}, "array_positions": {"ae>-"}, "array_length": {"a->-"}, "array_lower": {"a->-"},
	"array_upper": {"a->-"}, "array_ndims": {"a>-"}, "array_dims": {"a>-"}, "cardinality": {"a>-"}, "unnest": {"a>e"},
	"array_to_string": {"a->-", "a-->-"}, "array_to_json": {"a>-", "a->-"}, "generate_subscripts": {"a->-", "a-->-"},
	"trim_array": {"a->a"}, "array_agg": {"e>a"}, "to_json": {"a>-"}, "to_jsonb": {"a>-"},
}

// enumOf is the enumerated type that arguments are of, or are arrays of; nil for none.
func (env *Env) enumOf(args []expr) *UserType {
	for _, e := range args {
		u := e.typ.User
		if u != nil && u.Elem != nil {
			u = u.Elem
		}
		if u != nil && u.Kind == Enumerated && env.arrayOf(u) != nil {
			return u
		}
	}
	return nil
}

// userArrayCall analyses such a call; ok is false for any other.
func (a *analyzer) userArrayCall(n *pg.FuncCall, name string, cands []*signature, args []expr, s *scope) (out expr, ok bool, err error) {
	elem := a.env.enumOf(args)
	if elem == nil {
		return out, false, nil
	}
	for _, shape := range userArrayCalls[name] {
		params, result, _ := strings.Cut(shape, ">")
		if len(params) != len(args) {
			continue
		}
		texts, ok, err := a.labelTexts(params, args, elem)
		if err != nil || !ok {
			return out, err != nil, err
		}
		c, ambiguous, err := chooseFolded(name, cands, texts)
		if err != nil {
			return out, true, err
		}
		if c == nil {
			return out, true, noFunction(name, args, ambiguous)
		}
		if err := a.checkCall(c, n); err != nil {
			return out, true, err
		}
		if out, err = a.call(c, texts, n, s); err != nil {
			return out, true, err
		}
		if n.AggDistinct {
			if len(n.AggOrder) > 0 {
				return out, true, unsupported("%s(DISTINCT … ORDER BY …) of type %s is not supported", name, elem.SQLName())
			}
			out.sql = byLabels(elem, out.sql)
		}
		switch result {
		case "a":
			out, err = a.labelArray(out, elem)
		case "e":
			out.typ = elem.Type()
		}
		return out, true, err
	}
	return out, false, nil
}

// labelTexts are arguments as texts and lists of texts, where params has e and a; ok is false when
// one is of another type.
func (a *analyzer) labelTexts(params string, args []expr, elem *UserType) (texts []expr, ok bool, err error) {
	texts = slices.Clone(args)
	for i, e := range args {
		want := elem.Type()
		switch params[i] {
		case 'a':
			want = a.env.arrayOf(elem).Type()
		case 'e':
		default:
			continue
		}
		if e.undecided() {
			if e, err = a.coerce(e, want, implicit); err != nil {
				return nil, false, err
			}
		}
		if e.typ.OID != want.OID {
			return nil, false, nil
		}
		sql, typ := e.sql, plain(OIDText)
		if params[i] == 'a' {
			if sql, err = a.userList(e); err != nil {
				return nil, false, err
			}
			typ = plain(ArrayOf(OIDText))
		}
		texts[i] = expr{sql: sql, typ: typ, scale: -1, loc: e.loc, con: e.con}
	}
	return texts, true, nil
}

// labelsIfAny is an array of labels as a list of texts, and any other value as it is.
func (a *analyzer) labelsIfAny(e expr) (expr, error) {
	elem := a.env.enumOf([]expr{e})
	if elem == nil || e.typ.User.Elem == nil {
		return e, nil
	}
	texts, _, err := a.labelTexts("a", []expr{e}, elem)
	if err != nil {
		return e, err
	}
	return texts[0], nil
}

// labelArray is a list of labels as an array of their type.
func (a *analyzer) labelArray(list expr, elem *UserType) (expr, error) {
	out := expr{typ: a.env.arrayOf(elem).Type(), scale: -1, loc: list.loc, name: list.name, set: list.set}
	var err error
	out.sql, err = a.textOf(expr{sql: list.sql, typ: plain(ArrayOf(OIDText)), scale: -1})
	return out, err
}

// userArrayOperator analyses ||, @>, <@ and && of such arrays; ok is false for any other.
func (a *analyzer) userArrayOperator(op string, l, r expr, loc int32) (out expr, ok bool, err error) {
	args := []expr{l, r}
	elem := a.env.enumOf(args)
	isArray := func(e expr) bool { return e.typ.User != nil && e.typ.User.Elem != nil }
	if elem == nil || !isArray(l) && !isArray(r) {
		return out, false, nil
	}
	params := []byte("aa")
	for i, e := range args {
		if op == "||" && e.typ.OID == elem.OID {
			params[i] = 'e'
		}
	}
	texts, ok, err := a.labelTexts(string(params), args, elem)
	if err != nil || !ok {
		return out, err != nil, err
	}
	switch op {
	case "||":
		if out, err = a.concat(texts[0], texts[1], loc); err == nil {
			out, err = a.labelArray(out, elem)
		}
	case "@>", "<@", "&&":
		out, err = a.arrayOperator(op, texts[0], texts[1], loc)
	default:
		return out, false, nil
	}
	return out, true, err
}

// labelSubscripts are subscripts of such an array; ok is false of another value. slice says that they
// give an array.
func (a *analyzer) labelSubscripts(e expr, run []*pg.A_Indices, slice bool, s *scope) (out expr, ok bool, err error) {
	elem := a.env.enumOf([]expr{e})
	if elem == nil || e.typ.User.Elem == nil {
		return e, false, nil
	}
	if len(run) > 1 {
		return e, true, a.errAt(e.loc, unsupported("arrays of several dimensions of type %s are not supported", elem.SQLName()))
	}
	texts, _, err := a.labelTexts("a", []expr{e}, elem)
	if err != nil {
		return e, true, err
	}
	if out, err = a.subscript(texts[0], run[0], s); err != nil {
		return out, true, err
	}
	if slice {
		out, err = a.labelArray(out, elem)
	} else {
		out.typ = elem.Type()
	}
	out.name = e.name
	return out, true, err
}

// labelList is what an array of an enumerated type is ordered by: the places of its labels.
func labelList(elem *UserType, sql string) string {
	list := fmt.Sprintf("CAST(skippr_text_in(%s, %d) AS VARCHAR[])", sql, ArrayOf(OIDText))
	return "list_transform(" + list + ", lambda label: " + elem.orderKey("label") + ")"
}

// byLabels sorts a list of labels as DISTINCT does.
func byLabels(elem *UserType, list string) string {
	keyed := "list_transform(" + list + ", lambda label: {'k': coalesce(" + elem.orderKey("label") + ", 2147483647), 'v': label})"
	return "list_transform(list_sort(" + keyed + "), lambda pair: pair.v)"
}

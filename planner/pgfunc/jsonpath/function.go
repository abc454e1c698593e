package jsonpath

import (
	"encoding/json"
	"errors"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Functions are the functions of the package: of a document, a path, variables and whether
// errors are null.
func Functions() []scalar.Function {
	return []scalar.Function{
		{Name: "skippr_jp_text", Params: []scalar.Kind{scalar.Text}, Result: scalar.Text, Call: func(v []scalar.Value) (scalar.Value, error) {
			p, err := parse(string([]byte(v[0].Text)))
			if err != nil {
				return scalar.Value{}, err
			}
			return scalar.OfText(p.canonical()), nil
		}},
		function("skippr_jp_exists", scalar.Bool, func(r *run, n *node) (scalar.Value, error) {
			found := false
			err := r.eval(n, r.root, func(value) error {
				found = true
				if !r.strict {
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				err = nil
			}
			return scalar.OfBool(found), err
		}),
		function("skippr_jp_match", scalar.Bool, func(r *run, n *node) (scalar.Value, error) {
			list, err := r.all(n)
			switch {
			case err != nil:
				return scalar.Value{}, err
			case len(list) == 1 && list[0].kind == boolean:
				return scalar.OfBool(list[0].b), nil
			case len(list) == 1 && list[0].kind == null:
				return scalar.Null, nil
			}
			return scalar.Value{}, failed("22038", "single boolean result is expected")
		}),
		function("skippr_jp_array", scalar.Text, func(r *run, n *node) (scalar.Value, error) {
			list, err := r.all(n)
			return scalar.OfText(value{kind: array, items: list}.json()), err
		}),
		function("skippr_jp_first", scalar.Text, func(r *run, n *node) (scalar.Value, error) {
			list, err := r.all(n)
			if err != nil || len(list) == 0 {
				return scalar.Null, err
			}
			return scalar.OfText(list[0].json()), nil
		}),
		function("skippr_jp_list", scalar.Text, func(r *run, n *node) (scalar.Value, error) {
			list, err := r.all(n)
			texts := make([]string, len(list))
			for i, v := range list {
				texts[i] = v.json()
			}
			if err != nil {
				return scalar.Value{}, err
			}
			out, err := json.Marshal(texts)
			return scalar.OfText(string(out)), err
		}),
	}
}

func (r *run) all(n *node) (list []value, err error) {
	err = r.eval(n, r.root, func(v value) error { list = append(list, v); return nil })
	return list, err
}

func function(name string, result scalar.Kind, f func(*run, *node) (scalar.Value, error)) scalar.Function {
	params := []scalar.Kind{scalar.Text, scalar.Text, scalar.Text, scalar.Bool}
	return scalar.Function{Name: name, Params: params, Result: result, Call: func(v []scalar.Value) (scalar.Value, error) {
		p, err := parse(string([]byte(v[1].Text)))
		if err != nil {
			return scalar.Value{}, err
		}
		r := &run{strict: p.strict, lenient: !p.strict, made: 1}
		if r.root, err = read(v[0].Text); err != nil {
			return scalar.Value{}, err
		}
		if r.vars, err = read(v[2].Text); err != nil {
			return scalar.Value{}, err
		}
		if p.keyed {
			r.root.place(0, 0)
			r.vars.place(0, 1)
		}
		if r.vars.kind != object {
			return scalar.Value{}, pgerr.New(codes.InvalidParameterValue, "\"vars\" argument is not an object").
				WithDetail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
		}
		out, err := f(r, p.expr)
		if e, ok := pgerr.As(err); ok && v[3].Int != 0 && e.Code != codes.UndefinedObject {
			return scalar.Null, nil
		}
		return out, err
	}}
}

package pgfunc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/scalar"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// JSONB is jsonb_in and jsonb_out: the text that jsonb shows of a JSON text.
func JSONB(text string) (string, error) {
	n, err := parseJSON(text)
	if err != nil {
		return "", err
	}
	return n.String(), nil
}

// CheckJSON is json_in: the error of a text that is none.
func CheckJSON(text string) error {
	_, err := (&jsonParser{s: text, raw: true}).all()
	return err
}

// ofJSON makes a function whose first argument is JSON.
func ofJSON(name string, result scalar.Kind, params []scalar.Kind, f func(n *jsonNode, args []value) (value, error)) scalar.Function {
	return scalar.Function{
		Name: name, Params: append(kinds(scalar.Text), params...), Result: result,
		Call: func(args []value) (value, error) {
			n, err := parseJSON(args[0].Text)
			if err != nil {
				return value{}, err
			}
			return f(n, args[1:])
		},
	}
}

func nodeValue(n *jsonNode) value {
	if n == nil {
		return scalar.Null
	}
	return scalar.OfText(n.String())
}

func nodeResult(n *jsonNode, err error) (value, error) {
	if err != nil {
		return value{}, err
	}
	return nodeValue(n), nil
}

func jsonFunctions() []scalar.Function {
	text, list := kinds(scalar.Text), kinds(scalar.Text)
	out := getters("skippr_j_member", scalar.Text, func(s string, arg value) (string, error) { return rawMember(s, arg.Text), nil })
	out = append(out, getters("skippr_j_element", scalar.Int32, func(s string, arg value) (string, error) {
		return rawElement(s, arg.Int), nil
	})...)
	out = append(out, getters("skippr_j_path", scalar.Text, func(s string, arg value) (string, error) {
		names, err := parseList(arg.Text)
		return rawPath(s, names), err
	})...)
	out = append(out, jsonEdits()...)
	return append(out,
		ofJSON("skippr_j_norm", scalar.Text, nil, func(n *jsonNode, _ []value) (value, error) { return nodeValue(n), nil }),
		ofJSON("skippr_j_key", scalar.Blob, nil, func(n *jsonNode, _ []value) (value, error) { return scalar.OfText(n.orderKey()), nil }),
		ofJSON("skippr_j_contains", scalar.Bool, text, func(n *jsonNode, args []value) (value, error) {
			m, err := parseJSON(args[0].Text)
			if err != nil {
				return value{}, err
			}
			return scalar.OfBool(n.contains(m)), nil
		}),
		ofJSON("skippr_j_exists", scalar.Bool, text, func(n *jsonNode, args []value) (value, error) {
			return scalar.OfBool(n.exists(args[0].Text)), nil
		}),
		ofJSON("skippr_j_exists_any", scalar.Bool, list, func(n *jsonNode, args []value) (value, error) {
			names, err := parseList(args[0].Text)
			for _, s := range names {
				if s != nil && n.exists(*s) {
					return scalar.OfBool(true), nil
				}
			}
			return scalar.OfBool(false), err
		}),
		ofJSON("skippr_j_exists_all", scalar.Bool, list, func(n *jsonNode, args []value) (value, error) {
			names, err := parseList(args[0].Text)
			for _, s := range names {
				if s != nil && !n.exists(*s) {
					return scalar.OfBool(false), nil
				}
			}
			return scalar.OfBool(true), err
		}),
		ofJSON("skippr_j_typeof", scalar.Text, nil, func(n *jsonNode, _ []value) (value, error) {
			return scalar.OfText(n.typeName()), nil
		}),
		ofJSON("skippr_j_pretty", scalar.Text, nil, func(n *jsonNode, _ []value) (value, error) {
			var b strings.Builder
			n.write(&b, 0)
			return scalar.OfText(b.String()), nil
		}),
		ofJSON("skippr_j_length", scalar.Int32, nil, func(n *jsonNode, _ []value) (value, error) {
			switch {
			case n.kind == jsonArray:
				return scalar.OfInt(int64(len(n.items))), nil
			case n.kind == jsonObject:
				return value{}, pgerr.New(codes.InvalidParameterValue, "cannot get array length of a non-array")
			}
			return value{}, pgerr.New(codes.InvalidParameterValue, "cannot get array length of a scalar")
		}),
		ofJSON("skippr_j_number", scalar.Text, text, jsonNumeric), ofJSON("skippr_j_bool", scalar.Bool, nil, jsonTruth),
		scalar.Function{
			Name: "skippr_j_string", Params: kinds(scalar.Text), Result: scalar.Text,
			Call: func(args []value) (value, error) {
				var b strings.Builder
				appendJSONString(&b, args[0].Text)
				return scalar.OfText(b.String()), nil
			},
		})
}

// exists is ?: a member of the name, or a string element, or the string itself.
func (n *jsonNode) exists(name string) bool {
	switch n.kind {
	case jsonObject:
		return n.member(name) != nil
	case jsonArray:
		for _, item := range n.items {
			if item.kind == jsonString && item.text == name {
				return true
			}
		}
	case jsonString:
		return n.text == name
	}
	return false
}

// orderKey is a text of bytes that orders as jsonb does, equal for equal values. Outside of
// all else a scalar counts as an array of one.
func (n *jsonNode) orderKey() string {
	var b strings.Builder
	if n.scalar() {
		b.WriteString(arrayRank + count(1) + "0")
	}
	n.writeKey(&b)
	return b.String()
}

const arrayRank = "4"

func count(n int) string { return fmt.Sprintf("%09d", n) }

func (n *jsonNode) writeKey(b *strings.Builder) {
	switch n.kind {
	case jsonNull:
		b.WriteString("0")
	case jsonString:
		b.WriteString("1" + n.text + "\x00")
	case jsonNumber:
		b.WriteString("2" + numberKey(n.text) + "\x00")
	case jsonBool:
		b.WriteString("3" + strconv.Itoa(boolInt(n.truth)))
	case jsonArray:
		b.WriteString(arrayRank + count(len(n.items)) + "1")
	case jsonObject:
		b.WriteString("5" + count(len(n.items)))
	}
	for i, item := range n.items {
		if n.kind == jsonObject {
			b.WriteString(n.names[i] + "\x00")
		}
		item.writeKey(b)
	}
}

func jsonNumeric(n *jsonNode, args []value) (value, error) {
	switch n.kind {
	case jsonNumber:
		return scalar.OfText(n.text), nil
	case jsonNull: // PostgreSQL 15 has no cast of it
	}
	return value{}, cannotCastJSON(n, args[0].Text)
}

func cannotCastJSON(n *jsonNode, to string) error {
	what := map[jsonKind]string{
		jsonNull: "null", jsonString: "string", jsonNumber: "numeric", jsonBool: "boolean", jsonArray: "array", jsonObject: "object",
	}[n.kind]
	return pgerr.New(codes.InvalidParameterValue, "cannot cast jsonb %s to type %s", what, strings.Clone(to))
}

func jsonTruth(n *jsonNode, _ []value) (value, error) {
	if n.kind != jsonBool {
		return value{}, cannotCastJSON(n, "boolean")
	}
	return scalar.OfBool(n.truth), nil
}

func jsonEdits() []scalar.Function {
	text := kinds(scalar.Text)
	change := func(name string, what edit) scalar.Function {
		return ofJSON(name, scalar.Text, kinds(scalar.Text, scalar.Text), func(n *jsonNode, args []value) (value, error) {
			path, err := parseList(args[0].Text)
			if err != nil {
				return value{}, err
			}
			v, err := parseJSON(args[1].Text)
			if err != nil {
				return value{}, err
			}
			return nodeResult(n.change(path, what, v))
		})
	}
	return []scalar.Function{
		change("skippr_j_set", editSet), change("skippr_j_replace", editReplace),
		change("skippr_j_insert", editInsert), change("skippr_j_insert_after", editInsertAfter),
		ofJSON("skippr_j_delete_path", scalar.Text, text, func(n *jsonNode, args []value) (value, error) {
			path, err := parseList(args[0].Text)
			if err != nil {
				return value{}, err
			}
			return nodeResult(n.change(path, editDelete, nil))
		}),
		ofJSON("skippr_j_delete", scalar.Text, text, func(n *jsonNode, args []value) (value, error) {
			return nodeResult(n.without(args[0].Text))
		}),
		ofJSON("skippr_j_delete_list", scalar.Text, text, func(n *jsonNode, args []value) (value, error) {
			list, err := parseList(args[0].Text)
			if err != nil {
				return value{}, err
			}
			var names []string
			for _, s := range list {
				if s != nil {
					names = append(names, *s)
				}
			}
			return nodeResult(n.without(names...))
		}),
		ofJSON("skippr_j_delete_index", scalar.Text, kinds(scalar.Int32), func(n *jsonNode, args []value) (value, error) {
			return nodeResult(n.withoutIndex(args[0].Int))
		}),
		ofJSON("skippr_j_concat", scalar.Text, text, func(n *jsonNode, args []value) (value, error) {
			m, err := parseJSON(args[0].Text)
			if err != nil {
				return value{}, err
			}
			return nodeValue(n.concat(m)), nil
		}),
		ofJSON("skippr_j_strip", scalar.Text, nil, func(n *jsonNode, _ []value) (value, error) { return nodeValue(n.stripNulls()), nil }),
		{
			Name: "skippr_json_check", Params: kinds(scalar.Text), Result: scalar.Text,
			Call: func(args []value) (value, error) {
				return args[0], CheckJSON(args[0].Text)
			},
		},
	}
}

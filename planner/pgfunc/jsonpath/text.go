package jsonpath

import (
	"strconv"
	"strings"
)

// canonical is the text of a path as PostgreSQL writes it.
func (p *path) canonical() string {
	var w writer
	if p.strict {
		w.WriteString("strict ")
	}
	w.node(p.expr, true)
	return w.String()
}

type writer struct{ strings.Builder }

// priority is how strongly an operator binds.
func priority(op string) int {
	switch op {
	case "||":
		return 0
	case "&&":
		return 1
	case "==", "!=", "<", "<=", ">", ">=", "starts with":
		return 2
	case "+", "-":
		return 3
	case "*", "/", "%":
		return 4
	case "unary +", "unary -":
		return 5
	}
	return 6
}

// node writes a part of a path; brackets says that an operator has some around it.
func (w *writer) node(n *node, brackets bool) {
	if n.op == "path" {
		w.operand(n.left, brackets)
		for _, s := range n.steps {
			w.step(s)
		}
		return
	}
	w.operand(n, brackets)
}

// part writes an operand of an operator.
func (w *writer) part(n *node, op string) {
	head := n
	if n.op == "path" {
		head = n.left
	}
	w.node(n, priority(head.op) <= priority(op))
}

func (w *writer) operand(n *node, brackets bool) {
	switch n.op {
	case "group":
		w.node(n.left, brackets)
	case "root":
		w.WriteString("$")
	case "current":
		w.WriteString("@")
	case "last":
		w.WriteString("last")
	case "variable":
		w.WriteString("$")
		w.Write(quotedText(n.text))
	case "literal":
		w.WriteString(n.value.json())
	case "!":
		w.WriteString("!(")
		w.node(n.left, false)
		w.WriteString(")")
	case "is unknown":
		w.WriteString("(")
		w.node(n.left, false)
		w.WriteString(") is unknown")
	case "exists":
		w.WriteString("exists (")
		w.node(n.left, false)
		w.WriteString(")")
	default:
		if brackets {
			w.WriteString("(")
			defer w.WriteString(")")
		}
		w.operator(n)
	}
}

func (w *writer) operator(n *node) {
	if sign, ok := strings.CutPrefix(n.op, "unary "); ok {
		w.WriteString(sign)
		w.part(n.left, n.op)
		return
	}
	w.part(n.left, n.op)
	w.WriteString(" " + n.op + " ")
	if n.op != "like_regex" {
		w.part(n.right, n.op)
		return
	}
	w.Write(quotedText(n.text))
	if n.flags != "" {
		w.WriteString(" flag \"" + n.flags + "\"")
	}
}

func (w *writer) step(n *node) {
	switch n.op {
	case ".":
		w.WriteString(".")
		w.Write(quotedText(n.text))
	case "?":
		w.WriteString("?(")
		w.node(n.left, false)
		w.WriteString(")")
	case "()":
		w.WriteString("." + n.text + "()")
	case ".**":
		w.WriteString(".**" + levelText(n.first, n.last))
	case "[]":
		w.WriteString("[")
		for i, pair := range n.subs {
			if i > 0 {
				w.WriteString(",")
			}
			w.node(pair[0], false)
			if pair[1] != nil {
				w.WriteString(" to ")
				w.node(pair[1], false)
			}
		}
		w.WriteString("]")
	default: // .* and [*]
		w.WriteString(n.op)
	}
}

// levelText are the levels of .**.
func levelText(first, last int64) string {
	one := func(n int64) string {
		if n == deepest {
			return "last"
		}
		return strconv.FormatInt(n, 10)
	}
	switch {
	case first == 0 && last == deepest:
		return ""
	case first == last:
		return "{" + one(first) + "}"
	}
	return "{" + one(first) + " to " + one(last) + "}"
}

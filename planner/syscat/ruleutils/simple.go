package ruleutils

import "strings"

// simple is isSimpleNode: whether an expression needs no parentheses in another, when the
// parentheses that nothing needs are left out.
func simple(n, parent node) bool {
	switch v := n.(type) {
	case *variable, *constant, *subscript, *listed, *word, *aggregate, *function, *caseOf, *literalText:
		return true
	case *relabel:
		return simple(v.arg, v)
	case *operator:
		switch v.kind {
		case nullIf:
			return true
		case anyOrAll:
			return false
		case plainOperator:
			if o, ok := parent.(*operator); ok && o.kind == plainOperator {
				return bindsTighter(v, o)
			}
		}
		return separated(parent)
	case *subLink, *test:
		return separated(parent)
	case *logic:
		if o, ok := parent.(*logic); ok {
			if v.word == "OR" {
				return o.word == "OR"
			}
			return o.word != "NOT"
		}
		return separated(parent)
	}
	return false
}

// separated reports whether the parent sets its parts apart by itself.
func separated(parent node) bool {
	switch o := parent.(type) {
	case *function:
		return o.form == formCall
	case *logic, *subscript, *listed, *aggregate, *caseOf:
		return true
	case *operator:
		return o.kind == nullIf
	}
	return false
}

// bindsTighter is the rule for + - * / % within each other.
func bindsTighter(o, parent *operator) bool {
	if len(o.args) != 2 || len(parent.args) != 2 || len(o.name) != 1 || len(parent.name) != 1 {
		return false
	}
	low, high := strings.Contains("+-", o.name), strings.Contains("*/%", o.name)
	lowParent, highParent := strings.Contains("+-", parent.name), strings.Contains("*/%", parent.name)
	switch {
	case !low && !high, !lowParent && !highParent:
		return false
	case high && lowParent:
		return true
	case low && highParent:
		return false
	}
	return parent.args[0] == node(o)
}

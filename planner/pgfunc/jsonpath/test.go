package jsonpath

import (
	"errors"
	"strings"

	"github.com/skipprd/skipprd/planner/pgfunc/numeric"
)

// test gives the truth of a predicate. Errors of what it compares make it unknown; those of
// missing variables are told.
func (r *run) test(n *node, current value) (logic, error) {
	switch n.op {
	case "group":
		return r.test(n.left, current)
	case "&&", "||":
		return r.connected(n, current)
	case "!":
		t, err := r.test(n.left, current)
		if t != unknown {
			t = ofBool(t == no)
		}
		return t, err
	case "is unknown":
		t, err := r.test(n.left, current)
		return ofBool(t == unknown), err
	case "exists":
		return r.exists(n.left, current)
	}
	left, err := r.sequence(n.left, current)
	if err != nil {
		return unknown, missing(err)
	}
	right := []value{{}}
	if n.op != "like_regex" {
		if right, err = r.sequence(n.right, current); err != nil {
			return unknown, missing(err)
		}
	}
	found, uncertain := false, false
	for _, a := range left {
		for _, b := range right {
			t, err := n.compare(a, b)
			if err != nil {
				return unknown, err
			}
			switch t {
			case unknown:
				if r.strict {
					return unknown, nil
				}
				uncertain = true
			case yes:
				if !r.strict {
					return yes, nil
				}
				found = true
			}
		}
	}
	if !found && uncertain {
		return unknown, nil
	}
	return ofBool(found), nil
}

// missing passes the error of a variable that there is not, which no predicate hides.
func missing(err error) error {
	if strings.Contains(err.Error(), "could not find jsonpath variable") {
		return err
	}
	return nil
}

func (r *run) connected(n *node, current value) (logic, error) {
	decides := no
	if n.op == "||" {
		decides = yes
	}
	left, err := r.test(n.left, current)
	if err != nil || left == decides {
		return left, err
	}
	right, err := r.test(n.right, current)
	if err != nil || right == decides || left != unknown {
		return right, err
	}
	return unknown, nil
}

func (r *run) exists(n *node, current value) (logic, error) {
	found := false
	err := r.eval(n, current, func(value) error {
		found = true
		if !r.strict {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return unknown, missing(err)
	}
	return ofBool(found), nil
}

func (n *node) compare(a, b value) (logic, error) {
	if n.op == "like_regex" {
		return n.matches(a)
	}
	return compare(n.op, a, b), nil
}

func compare(op string, a, b value) logic {
	if op == "starts with" {
		if a.kind != text || b.kind != text {
			return unknown
		}
		return ofBool(strings.HasPrefix(a.s, b.s))
	}
	c := 0
	switch {
	case a.kind != b.kind && (a.kind == null || b.kind == null):
		return ofBool(op == "!=")
	case a.kind != b.kind || a.kind >= array:
		return unknown
	case a.kind == boolean && a.b != b.b:
		c = 1
		if b.b {
			c = -1
		}
	case a.kind == number:
		c = numeric.Cmp(a.n, b.n)
	case a.kind == text:
		c = strings.Compare(a.s, b.s)
	}
	switch op {
	case "==":
		return ofBool(c == 0)
	case "!=":
		return ofBool(c != 0)
	case "<":
		return ofBool(c < 0)
	case "<=":
		return ofBool(c <= 0)
	case ">":
		return ofBool(c > 0)
	}
	return ofBool(c >= 0)
}

package pgsql

import "slices"

// compatibleFunctions are the functions whose arguments PostgreSQL brings to a common type, as
// anycompatible and anycompatiblearray, with their arguments: a is an array, e an element, and any
// other one is not of the type.
var compatibleFunctions = map[string]string{
	"array_append": "ae", "array_prepend": "ea", "array_cat": "aa", "array_position": "ae-", "array_positions": "ae",
	"array_remove": "ae", "array_replace": "aee", "width_bucket": "ea", "lag": "e-e", "lead": "e-e",
}

// compatible brings the arguments of such a function to their common type, text if no argument has
// one. It leaves those alone that have none, for the choice of an overload to refuse.
func (a *analyzer) compatible(name string, args []expr) error {
	shape := compatibleFunctions[name]
	if len(args) < 2 || len(args) > len(shape) || name[0] == 'l' && len(args) < 3 {
		return nil
	}
	var elems []*expr
	unknown := false
	for i, e := range args {
		t := e.typ
		switch {
		case shape[i] == '-':
			continue
		case e.undecided():
			unknown = true
			continue
		case e.row != nil || t.User != nil || t.OID == OIDRecord:
			return nil
		case shape[i] == 'a':
			if t = plain(ElemOf(t.OID)); t.OID == 0 {
				return nil
			}
		}
		elems = append(elems, &expr{typ: t, scale: -1, loc: -1})
	}
	common := plain(OIDText)
	if len(elems) > 0 {
		var err error
		common, err = a.commonType(elems, name)
		if err != nil || !unknown && !slices.ContainsFunc(elems, func(e *expr) bool { return e.typ.OID != common.OID }) {
			common = Type{}
		}
	}
	for i, e := range args {
		to := plain(common.OID)
		if shape[i] == 'a' {
			to = plain(ArrayOf(common.OID))
		}
		if common.OID == 0 || shape[i] == '-' || to.OID == 0 || e.typ.OID == to.OID {
			continue
		}
		c, err := a.coerce(e, to, implicit)
		if err != nil {
			return err
		}
		args[i] = c
	}
	return nil
}

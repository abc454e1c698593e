package pgsql

import (
	"slices"
	"strings"
	"unicode"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Arrays of types that users have made are texts to the engine, as columns have them.

// arrayOf is the type of arrays of a type, nil when there is none.
func (env *Env) arrayOf(e *UserType) *UserType {
	if e == nil || e.Elem != nil || e.Array == 0 {
		return nil
	}
	return env.userType(e.Array)
}

// userList renders such an array as a list of texts.
func (a *analyzer) userList(e expr) (string, error) {
	list, err := a.fromText(expr{sql: e.sql, typ: plain(OIDText), loc: e.loc, scale: -1}, plain(ArrayOf(OIDText)))
	return list.sql, err
}

// userArray renders a list of texts as an array of a type, whose elements they must be.
func (a *analyzer) userArray(list string, of *UserType) (string, error) {
	v := a.alias("v")
	item, err := a.env.read(of.Elem, v)
	if err != nil {
		return "", err
	}
	if item != v {
		list = "list_transform(" + list + ", lambda " + v + ": " + item + ")"
	}
	return a.textOf(expr{sql: list, typ: plain(ArrayOf(OIDText)), scale: -1})
}

// convertUser casts to a type that users have made.
func (a *analyzer) convertUser(e expr, to Type) (expr, error) {
	out := expr{typ: to, scale: -1}
	if to.User.Elem == nil {
		s, err := a.textOf(e)
		if err == nil {
			out.sql, err = a.env.read(to.User, s)
		}
		return out, err
	}
	if shaped(e) {
		return e, unsupported("casts of arrays of several dimensions to type %s are not supported", to.User.SQLName())
	}
	list := e.sql
	if !e.typ.isArray() {
		var err error
		if list, err = a.userList(asText(e)); err != nil {
			return e, err
		}
	}
	var err error
	out.sql, err = a.userArray(list, to.User)
	return out, err
}

// userArrayLiteral is the text of a literal of such an array, as it is kept.
func (env *Env) userArrayLiteral(text string, of *UserType) (string, error) {
	items, err := parseArray(text)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(items))
	for i, it := range items {
		switch {
		case it == nil:
			parts[i] = "NULL"
			continue
		case of.Elem.Kind == Enumerated && !slices.Contains(of.Elem.Labels, *it):
			return "", env.invalidLabel(of.Elem, *it)
		}
		parts[i] = arrayElement(*it)
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

// CheckLabels says of a text that it is no value of an enumerated type, or no array of one; of
// other types it says nothing.
func (env *Env) CheckLabels(t Type, text string) *pgerr.Error {
	e := t.User
	switch {
	case e == nil:
		return nil
	case e.Elem != nil && e.Elem.Kind == Enumerated:
		_, err := env.userArrayLiteral(text, e)
		failed, _ := pgerr.As(err)
		return failed
	case e.Elem == nil && e.Kind == Enumerated && !slices.Contains(e.Labels, text):
		return env.invalidLabel(e, text)
	}
	return nil
}

// arrayElement is a text as an array shows it.
func arrayElement(s string) string {
	odd := func(r rune) bool { return strings.ContainsRune(`{}",\`, r) || r < 128 && unicode.IsSpace(r) }
	if s != "" && !strings.EqualFold(s, "NULL") && !strings.ContainsFunc(s, odd) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// anyUser analyses x = ANY (array), and its like, of arrays of types that users have made; ok is
// false for others.
func (a *analyzer) anyUser(n *pg.A_Expr, op string, l, r expr) (out expr, ok bool, err error) {
	elem := (*UserType)(nil)
	switch {
	case r.typ.User != nil && r.typ.User.Elem != nil:
		elem = r.typ.User.Elem
	case r.undecided() && l.typ.User != nil && a.env.arrayOf(l.typ.User) != nil:
		elem = l.typ.User
		if r, err = a.coerce(r, a.env.arrayOf(elem).Type(), implicit); err != nil {
			return r, true, err
		}
	default:
		return r, false, nil
	}
	if l, err = a.settledLike(l, expr{typ: elem.Type(), scale: -1}); err != nil {
		return l, true, err
	}
	list, err := a.userList(r)
	if err != nil {
		return r, true, err
	}
	all := n.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL
	if cmp := comparisons[op]; (cmp == "=" && !all || cmp == "<>" && all) && l.row == nil {
		out, err = a.contains(l, expr{typ: elem.Type(), sql: "x", loc: r.loc, scale: -1}, list, op, all, n.Location)
		return out, true, err
	}
	v := a.alias("v")
	cmp, err := a.binary(op, l, expr{typ: elem.Type(), sql: v, loc: r.loc, scale: -1}, n.Location)
	return expr{typ: plain(OIDBool), loc: n.Location, scale: -1, sql: quantified(cmp.sql, v, list, all)}, true, err
}

// enumCall analyses enum_first, enum_last and enum_range.
func (a *analyzer) enumCall(name string, args []expr) (expr, error) {
	out := expr{scale: -1, con: true}
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && name != "enum_range" {
		return out, noFunction(name, args, false)
	}
	i := slices.IndexFunc(args, func(e expr) bool { return e.typ.User != nil })
	if i < 0 && !slices.ContainsFunc(args, func(e expr) bool { return !e.undecided() }) {
		return out, polymorphicUnknown()
	}
	if i < 0 || args[i].typ.User.Kind != Enumerated || args[i].typ.User.Elem != nil {
		return out, noFunction(name, args, false)
	}
	e := args[i].typ.User
	if name != "enum_range" {
		n := len(e.Labels)
		if n == 0 {
			return out, pgerr.New(codes.ObjectNotInPrerequisiteState, "enum %s contains no values", e.SQLName())
		}
		out.typ, out.sql = e.Type(), quote.Text(e.Labels[map[string]int{"enum_first": 0, "enum_last": n - 1}[name]])
		return out, nil
	}
	array := a.env.arrayOf(e)
	if array == nil {
		return out, noFunction(name, args, false)
	}
	out.typ = array.Type()
	if len(args) == 1 {
		text, err := a.env.userArrayLiteral("{}", array)
		for i, l := range e.Labels {
			text = strings.TrimSuffix(text, "}") + strings.Repeat(",", min(i, 1)) + arrayElement(l) + "}"
		}
		out.sql = quote.Text(text)
		return out, err
	}
	bounds := [2]string{}
	for i := range args {
		d, err := a.settledLike(args[i], expr{typ: e.Type(), scale: -1})
		if err != nil {
			return out, err
		}
		if d.typ.OID != e.OID {
			return out, noFunction(name, args, false)
		}
		bounds[i] = e.orderKey(d.sql)
	}
	labels := make([]string, len(e.Labels))
	for i, l := range e.Labels {
		labels[i] = quote.Text(l)
	}
	list := "list_slice(CAST([" + strings.Join(labels, ", ") + "] AS VARCHAR[]), coalesce(" + bounds[0] + ", 1), coalesce(" + bounds[1] + ", 1000000))"
	sql, err := a.textOf(expr{sql: list, typ: plain(ArrayOf(OIDText)), scale: -1})
	out.sql, out.con = sql, false
	return out, err
}

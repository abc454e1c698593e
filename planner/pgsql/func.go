package pgsql

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/encname"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// funcCall analyses a call: of a scalar function, an aggregate, a window function
// or a set-returning function.
func (a *analyzer) funcCall(n *pg.FuncCall, s *scope) (expr, error) {
	schema, name := calledName(n)
	if err := misplaced(n, s); err != nil {
		return expr{}, a.errAt(n.Location, err)
	}
	n, err := a.namedArgs(name, n, s)
	if err != nil {
		return expr{}, err
	}
	if n.FuncVariadic {
		return a.variadic(name, n, s)
	}
	if schema == "" || schema == "pg_catalog" {
		if e, ok, err := a.specialCall(name, n, s); ok || err != nil {
			e.loc, e.name = n.Location, name
			return e, a.errAt(n.Location, err)
		}
	}
	if schema == "information_schema" && slices.Contains(infoCalls, name) {
		return a.infoCall(name, n, s)
	}
	cands := a.candidates(schema, name)
	aggregate := len(cands) > 0 && cands[0].kind == 'a'
	if aggregate && n.Over == nil {
		if s.noAgg != "" {
			return expr{}, a.errAt(n.Location, pgerr.New(codes.Grouping, "aggregate functions are not allowed in %s", s.noAgg))
		}
		if s.aggDepth > 0 {
			return expr{}, a.errAt(n.Location, pgerr.New(codes.Grouping, "aggregate function calls cannot be nested"))
		}
		s.hasAgg = true
		s.aggDepth++
		defer func() { s.aggDepth-- }()
	}
	mark := len(s.refs)
	args, err := a.exprList(n.Args, s)
	if err != nil {
		return expr{}, err
	}
	if e, ok, err := a.userArrayCall(n, name, cands, args, s); ok || err != nil {
		e.loc, e.name = n.Location, name
		return a.finished(e, n, mark, s, a.errAt(n.Location, err))
	}
	if err := a.compatible(name, args); err != nil {
		return expr{}, a.errAt(n.Location, err)
	}
	if e, ok, err := a.asciiCall(name, args); ok || err != nil {
		e.loc, e.name = n.Location, name
		return e, a.errAt(n.Location, err)
	}
	c, ambiguous, err := chooseFolded(name, cands, args)
	if err != nil {
		return expr{}, a.errAt(n.Location, err)
	}
	if c == nil {
		return a.uncalled(n, schema, name, args, len(cands) == 0, ambiguous)
	}
	if len(args) == 1 && c.args[0] == OIDAnyElement && unordered(c.name, args[0].typ) {
		return expr{}, a.errAt(n.Location, noFunction(name, args, false))
	}
	if err := a.checkCall(c, n); err != nil {
		return expr{}, a.errAt(n.Location, err)
	}
	e, err := a.call(c, args, n, s)
	e.loc, e.name = n.Location, name
	if err == nil {
		e.coll, err = collated(args...)
	}
	return a.finished(e, n, mark, s, err)
}

// finished is an analysed call, of which the columns from mark on are. One that returns a set may be
// of GROUP BY.
func (a *analyzer) finished(e expr, n *pg.FuncCall, mark int, s *scope, err error) (expr, error) {
	if err == nil && e.set && (s.noAgg == "GROUP BY" || s.grouped && s.aggDepth == 0) {
		return a.groupedSet(e, n, s.refs[mark:], s)
	}
	return e, err
}

// uncalled is a call of no function: a cast to the type of its name, or an error. unknown says that
// there is no function of the name.
func (a *analyzer) uncalled(n *pg.FuncCall, schema, name string, args []expr, unknown, ambiguous bool) (expr, error) {
	if schema != "" && !a.env.Resolver.HasSchema(schema) {
		return expr{}, a.errAt(n.Location, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", schema))
	}
	if len(args) == 1 && unknown {
		if e, ok, err := a.castCall(name, args[0]); ok {
			return e, a.errAt(n.Location, err)
		}
	}
	shown := name
	if schema != "" {
		shown = schema + "." + name
	}
	return expr{}, a.errAt(n.Location, noFunction(shown, args, ambiguous))
}

// calledName is the name of what is called, and its schema if it has one.
func calledName(n *pg.FuncCall) (schema, name string) {
	for _, p := range n.Funcname {
		if name != "" {
			schema = name
		}
		name = p.GetString_().GetSval()
	}
	return schema, name
}

// misplaced refuses window functions and such as return sets where each row has one value.
func misplaced(n *pg.FuncCall, s *scope) error {
	if s == nil || s.noAgg == "" && s.noSets == "" && s.aggDepth == 0 {
		return nil
	}
	switch kind := kindOf(n); {
	case kind == 's' && s.aggDepth > 0:
		return unsupported("aggregate function calls cannot contain set-returning function calls").
			WithHint("You might be able to move the set-returning function into a LATERAL FROM item.")
	case kind == 's' && s.noSets != "":
		return unsupported("set-returning functions are not allowed in %s", s.noSets)
	case kind == 'w' && n.Over != nil:
		return pgerr.New(codes.Windowing, "window functions are not allowed in %s", s.noAgg)
	case kind == 's' && s.noAgg != "" && s.noAgg != inFrom && s.noAgg != "GROUP BY":
		return unsupported("set-returning functions are not allowed in %s", s.noAgg)
	}
	return nil
}

// inFrom is scope.noAgg of functions in FROM.
const inFrom = "functions in FROM"

func (a *analyzer) checkCall(c *signature, n *pg.FuncCall) error {
	agg := c.kind == 'a'
	switch {
	case c.kind == 'w' && n.Over == nil:
		return pgerr.New(codes.WrongObjectType, "window function %s requires an OVER clause", c.name)
	case n.Over != nil && !agg && c.kind != 'w':
		return pgerr.New(codes.WrongObjectType, "OVER specified, but %s is not a window function nor an aggregate function",
			c.name)
	case n.AggStar && (c.name != "count" || !agg):
		return noFunction(c.name, nil, false)
	case !agg && n.AggDistinct:
		return pgerr.New(codes.WrongObjectType, "DISTINCT specified, but %s is not an aggregate function", c.name)
	case !agg && len(n.AggOrder) > 0:
		return pgerr.New(codes.WrongObjectType, "ORDER BY specified, but %s is not an aggregate function", c.name)
	case !agg && n.AggFilter != nil:
		return pgerr.New(codes.WrongObjectType, "FILTER specified, but %s is not an aggregate function", c.name)
	case n.AggDistinct && n.Over != nil:
		return unsupported("DISTINCT is not implemented for window functions")
	case c.name == "count" && len(c.args) == 0 && !n.AggStar:
		return pgerr.New(codes.WrongObjectType, "count(*) must be used to call a parameterless aggregate function")
	}
	return nil
}

// unordered reports whether a call is min or max of a type of which PostgreSQL has none.
func unordered(name string, t Type) bool {
	if name != "min" && name != "max" {
		return false
	}
	switch t.OID {
	case OIDBool, OIDBytea, OIDUUID, OIDJSON, OIDJSONB, OIDXML, OIDRecord, OIDXid, 29, 829, 774, 1560, 1562:
		return true
	}
	return t.category() == 'G' || t.category() == 'R'
}

// castCall is a type name used as a function: int4(x), text(x).
func (a *analyzer) castCall(name string, e expr) (expr, bool, error) {
	oid, ok := TypeNamed(name)
	if !ok || e.undecided() {
		return e, false, nil
	}
	out, err := a.coerce(e, plain(oid), explicit)
	return out, true, err
}

// callNamed calls a built-in by name.
func (a *analyzer) callNamed(name string, args []expr, loc int32) (expr, error) {
	c, ambiguous, err := chooseFolded(name, a.candidates("pg_catalog", name), args)
	if err != nil {
		return expr{}, a.errAt(loc, err)
	}
	if c == nil {
		return expr{}, a.errAt(loc, noFunction(name, args, ambiguous))
	}
	e, err := a.call(c, args, nil, nil)
	e.loc = loc
	return e, err
}

var factMark = regexp.MustCompile(`\{(fact|rel):([^}]*)\}|\{now\}`)

// call prints a call of a chosen overload. n and s are nil for plain scalar calls.
func (a *analyzer) call(c *signature, args []expr, n *pg.FuncCall, s *scope) (expr, error) {
	args, typ, err := a.bindArgs(c, args)
	if err != nil {
		return expr{}, err
	}
	out := expr{typ: typ, scale: -1, set: c.kind == 's', fields: c.fields}
	if (typ.OID == OIDRecord || ElemOf(typ.OID) == OIDRecord) && c.result != OIDRecord && len(args) > 0 {
		out.fields, out.whole = args[0].fields, typ.OID == OIDRecord
	}
	decor := decoration{}
	if n != nil && c.kind != 'f' && c.kind != 's' {
		if decor, err = a.decorate(n, s, c); err != nil {
			return out, err
		}
	}
	if e, ok, err := a.distinctAggregate(c, args, n, s, decor, out); ok || err != nil {
		return e, err
	}
	if e, ok, err := a.shapedCall(c, args, decor, out); ok || err != nil {
		return e, err
	}
	if e, ok, err := a.numericCall(c, args, decor); ok || err != nil {
		return e, err
	}
	if c.kind == 'a' && (c.name == "min" || c.name == "max") {
		if e, ok, err := a.extreme(c, args[0], decor, out); ok || err != nil {
			return e, err
		}
	}
	var parts []string
	for i, e := range args {
		switch {
		case c.args[i] == OIDAny && decor.before != "": // counted by value
			if err := a.equatable(e); err != nil {
				return out, err
			}
			parts = append(parts, equalKey(e))
		case e.typ.OID == OIDNumeric && e.row == nil:
			parts = append(parts, numericPart(c, i, e, decor))
		case c.args[i] == OIDAny && e.row == nil, c.args[i] == OIDBpchar, c.args[i] == OIDAnyElement && e.typ.OID == OIDBpchar:
			parts = append(parts, e.sql)
		case c.name == "string_agg" && i == 1 && e.con:
			parts = append(parts, "coalesce("+e.sql+", '')")
		case c.name == "array_to_string" && i == 0:
			list, err := a.textList(e)
			if err != nil {
				return out, err
			}
			parts = append(parts, list)
		default:
			parts = append(parts, native(e))
		}
	}
	template := keyedElements(c, c.template(args, parts), args, parts)
	if keyed, ok := numericArrays[c.name]; ok && len(args) == 2 && ElemOf(args[0].typ.OID) == OIDNumeric {
		template = keyed
		parts[0], parts[1] = "CAST("+parts[0]+" AS VARCHAR[])", numericText(args[1])
		typ = plain(typ.OID)
		out.typ = typ
	}
	if c.name == "string_agg" && !args[1].con {
		return a.separated(out, parts, decor)
	}
	out.sql, err = a.expand(template, parts, decor)
	if typ.OID == OIDNumeric {
		numericForm(c, args, &out)
	}
	return out, err
}

// extreme is min or max of arrays that are not ordered as the engine orders their elements; ok is false
// of other values.
func (a *analyzer) extreme(c *signature, e expr, d decoration, out expr) (expr, bool, error) {
	if err := a.sortable(e); err != nil {
		return out, false, err
	}
	key := sortKey(e)
	if !e.typ.isArray() || key == e.sql {
		return out, false, nil
	}
	d.before = "" // DISTINCT changes nothing
	var err error
	out.sql, err = a.expand("@arg_"+c.name+"($1, $2)", []string{e.sql, key}, d)
	return out, true, err
}

// template is the engine's expression of a call, whose arguments parts renders: some of them in
// another form.
func (c *signature) template(args []expr, parts []string) string {
	switch {
	case c.name == "array_to_string":
		return strings.ReplaceAll(c.engine, "array_to_string", joining(args[1]))
	case c.name == "width_bucket" && len(args) == 2 && args[0].typ.OID == OIDNumeric:
		parts[0], parts[1] = numericText(args[0]), "CAST("+parts[1]+" AS VARCHAR[])"
		return strings.Replace(c.engine, "x <= $1", "skippr_n_key(x) <= skippr_n_key($1)", 1)
	}
	return c.engine
}

// separated is string_agg with a separator of each row, which stands before the row's value
// unless that is the first. The engine's own takes only one that is the same for all.
func (a *analyzer) separated(out expr, parts []string, d decoration) (expr, error) {
	list := "@list({'v': $1, 's': $2})"
	if d.before != "" {
		if d.after != "" && d.after != " ORDER BY "+parts[0]+" ASC NULLS LAST" || d.over != "" {
			return out, unsupported("string_agg(DISTINCT … ORDER BY …) with a separator of each row is not supported")
		}
		list, d.before, d.after = "list_sort(list_distinct("+list+"))", "", ""
	}
	var err error
	out.sql, err = a.expand("skippr_separated("+list+")", parts, d)
	return out, err
}

// numericArrays are the templates that look for an element in an array of numerics.
var numericArrays = map[string]string{
	"array_position": "CAST(nullif(list_position(list_transform($1, lambda x: skippr_n_key(x)), skippr_n_key($2)), 0) AS INTEGER)",
	"array_remove":   "list_filter($1, lambda x: skippr_n_key(x) IS DISTINCT FROM skippr_n_key($2))",
}

// numericPart renders a numeric argument in the form that a template expects.
func numericPart(c *signature, i int, e expr, d decoration) string {
	switch {
	case c.args[i] == OIDAny && d.before != "":
		return numericKey(e) // counted by value
	case c.args[i] == OIDAny, c.args[i] == OIDAnyElement && c.result == OIDAnyElement:
		return e.sql
	}
	return numericText(e)
}

// numericForm says in which form a template gives a numeric: that of its polymorphic
// argument, or text.
func numericForm(c *signature, args []expr, out *expr) {
	sql := out.sql
	if c.result == OIDAnyElement {
		for i, t := range c.args {
			switch {
			case t == OIDAnyElement && !args[i].text:
				out.setDecimal(sql, args[i].prec, args[i].scale)
				return
			case t == OIDAnyArray:
				*out = elementOf(args[i], *out, sql)
				return
			}
		}
	}
	out.setText(sql)
}

// elementOf makes out an element of an array.
func elementOf(array, out expr, sql string) expr {
	out.typ = plain(ElemOf(array.typ.OID))
	out.sql = sql
	if out.typ.OID == OIDRecord {
		out.fields, out.whole = array.fields, true
	}
	if out.typ.OID != OIDNumeric {
		return out
	}
	if p, s, ok := (Type{OID: OIDNumeric, Mod: array.typ.Mod}).decimal(); ok && array.typ.engineType() != "VARCHAR[]" {
		out.setDecimal(sql, p, s)
	} else {
		out.setText(sql)
	}
	return out
}

// decoration is what stands around the arguments of an aggregate or window call.
type decoration struct{ before, after, filter, over string }

func (a *analyzer) decorate(n *pg.FuncCall, s *scope, c *signature) (decoration, error) {
	var d decoration
	if n.AggDistinct {
		d.before = "DISTINCT "
	}
	var parts []string
	for _, o := range n.AggOrder {
		sb := o.GetSortBy()
		if err := a.checkUsing(sb); err != nil {
			return d, err
		}
		e, err := a.expr(sb.Node, s)
		if err != nil {
			return d, err
		}
		if e, err = a.settled(e); err != nil {
			return d, err
		}
		if err := a.sortable(e); err != nil {
			return d, err
		}
		if !e.con {
			parts = append(parts, sortKey(e)+sortDirection(sb))
		}
	}
	if len(parts) > 0 {
		d.after = " ORDER BY " + strings.Join(parts, ", ")
	}
	if n.AggFilter != nil {
		e, err := a.condition(n.AggFilter, s, "FILTER")
		if err != nil {
			return d, err
		}
		d.filter = " FILTER (WHERE " + e.sql + ")"
	}
	if n.Over != nil {
		w, err := a.window(n.Over, s)
		if err != nil {
			return d, err
		}
		d.over = " OVER (" + w + ")"
	}
	return d, nil
}

// expand fills a template. Nothing that it puts in is looked at again: values of the statement
// and names may have any characters.
func (a *analyzer) expand(tmpl string, args []string, d decoration) (string, error) {
	var failed error
	var facts []string
	tmpl = factMark.ReplaceAllStringFunc(tmpl, func(m string) string {
		text, err := a.factText(m)
		if err != nil {
			failed = err
		}
		facts = append(facts, text)
		return factByte + string(rune('0'+len(facts)))
	})
	if failed != nil {
		return "", failed
	}
	return fillTemplate(tmpl, args, facts, d), nil
}

// factByte stands before the place of a fact in a template, counted from 1.
const factByte = "\x02"

// factText is what stands for a mark of a template.
func (a *analyzer) factText(mark string) (string, error) {
	sub := factMark.FindStringSubmatch(mark)
	switch sub[1] {
	case "":
		return NowMark, nil
	case "fact":
		return quote.Text(a.fact(sub[2])), nil
	}
	schema, name, _ := strings.Cut(sub[2], ".")
	rel, ok := a.env.Resolver.Relation(schema, name)
	if !ok {
		return "", pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", sub[2])
	}
	u := a.use(rel)
	u.Inner = true
	for i := range rel.Columns {
		u.column(i)
	}
	return quote.Name(u.Name), nil
}

// fillTemplate puts arguments and facts in their places, and turns every @f(args) into
// f(DISTINCT args ORDER BY …) FILTER … OVER ….
func fillTemplate(tmpl string, args, facts []string, d decoration) string {
	var b strings.Builder
	for i := 0; i < len(tmpl); i++ {
		switch c := tmpl[i]; {
		case c == '$' && i+1 < len(tmpl) && tmpl[i+1] >= '1' && tmpl[i+1] <= '9':
			b.WriteString(args[tmpl[i+1]-'1'])
			i++
		case c == factByte[0]:
			r, n := utf8.DecodeRuneInString(tmpl[i+1:])
			b.WriteString(facts[r-'1'])
			i += n
		case c == '@':
			open := i + strings.IndexByte(tmpl[i:], '(')
			end := closing(tmpl, open)
			b.WriteString(tmpl[i+1:open] + "(" + d.before + fillTemplate(tmpl[open+1:end], args, facts, d) + d.after + ")" + d.filter + d.over)
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// closing is where the parenthesis at open is closed.
func closing(tmpl string, open int) int {
	depth, end := 0, open
	for ; end < len(tmpl); end++ {
		if tmpl[end] == '(' {
			depth++
		}
		if tmpl[end] == ')' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	return end
}

func (a *analyzer) fact(name string) string {
	switch name {
	case "user":
		return a.env.User
	case "database":
		return a.env.Database
	case "version":
		return a.env.Version
	case "version_text":
		return "PostgreSQL " + a.env.Version + " (skipprd)"
	case "pid":
		return strconv.FormatUint(uint64(a.env.PID), 10)
	case "search_path":
		return strings.Join(a.env.SearchPath, ",")
	case "server_addr", "server_port":
		host, port, err := net.SplitHostPort(a.env.Server)
		if err != nil { // it came by no network
			return ""
		}
		if name == "server_port" {
			return port
		}
		host, _, _ = strings.Cut(host, "%")
		return host
	case "types":
		return a.env.typeNames()
	case "client_encoding":
		name, _ := a.env.Setting("client_encoding")
		own, _ := encname.Own(name)
		return own
	case "temp_schema":
		return a.env.TempSchema
	}
	return ""
}

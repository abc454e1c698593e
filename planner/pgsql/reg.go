package pgsql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

var (
	errNotReg  = errors.New("not a cast of an object id type")
	errRegText = unsupported("text form of object id aliases is not supported here")
)

// regCatalog says where the name of an object id alias is found, which functions of an
// Env render and read it, and what is said of a name that nothing has.
var regCatalog = map[uint32]struct{ relation, oid, name, out, in, missing string }{
	OIDRegclass: {"pg_class", "oid", "relname", "regclassout", "to_regclass", `42P01: relation "%" does not exist`},
	OIDRegtype:  {"pg_type", "oid", "", "regtypeout", "to_regtype", `42704: type "%" does not exist`},
	OIDRegproc:  {"pg_proc", "oid", "proname", "regprocout", "skippr_regproc", `42883: function "%" does not exist`},
	OIDRegnsp:   {"pg_namespace", "oid", "nspname", "regnamespaceout", "to_regnamespace", `3F000: schema "%" does not exist`},
	OIDRegrole:  {"pg_authid", "oid", "rolname", "regroleout", "to_regrole", `42704: role "%" does not exist`},
	2202:        {"pg_proc", "oid", "proname", "regprocedureout", "", `42883: function "%" does not exist`},
	2203:        {"pg_operator", "oid", "oprname", "regoperout", "to_regoper", `42883: operator does not exist: %`},
	2204:        {"pg_operator", "oid", "oprname", "regoperatorout", "", `42883: operator does not exist: %`},
	3734:        {"pg_ts_config", "oid", "cfgname", "regconfigout", "", `42704: text search configuration "%" does not exist`},
	3769:        {"pg_ts_dict", "oid", "dictname", "regdictionaryout", "", `42704: text search dictionary "%" does not exist`},
	4191:        {"pg_collation", "oid", "collname", "regcollationout", "to_regcollation", `42704: collation "%" for encoding "UTF8" does not exist`},
}

// regLiteral resolves a constant of an object id alias type: a name or a number.
func (a *analyzer) regLiteral(text string, to Type) (oid uint32, done bool, err error) {
	v := strings.TrimSpace(text)
	if n, err := strconv.ParseUint(v, 10, 32); err == nil {
		return uint32(n), true, nil
	}
	if v == "-" {
		return 0, true, nil
	}
	names := splitName(v)
	switch to.OID {
	case OIDRegclass:
		schema, name := "", names[len(names)-1]
		if len(names) > 1 {
			schema = names[len(names)-2]
		}
		rel, err := a.relation(schema, name, -1)
		if err != nil {
			if oid, ok := a.index(schema, name); ok {
				return oid, true, nil
			}
			return 0, false, err
		}
		return rel.OID, true, nil
	case OIDRegtype:
		if t, ok := typeBySQLName(v); ok {
			return t, true, nil
		}
		n := &pg.TypeName{Typemod: -1, Location: -1}
		for _, x := range names {
			n.Names = append(n.Names, pg.MakeStrNode(x))
		}
		if t, err := a.env.ResolveType(n); err == nil && t.User != nil {
			return t.OID, true, nil
		}
		if len(a.env.Functions["to_regtype"]) == 0 {
			return 0, false, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", v)
		}
	}
	return 0, false, nil
}

// index finds an index, along the search path if no schema is given.
func (a *analyzer) index(schema, name string) (oid uint32, ok bool) {
	known, ok := a.env.Resolver.(IndexResolver)
	if !ok {
		return 0, false
	}
	path := a.env.SearchPath
	if schema != "" {
		path = []string{schema}
	}
	for _, s := range path {
		if oid, ok := known.Index(s, name); ok {
			return oid, true
		}
	}
	return 0, false
}

// typeBySQLName finds a type by typname or by its SQL name.
func typeBySQLName(s string) (uint32, bool) {
	v := strings.ToLower(strings.TrimPrefix(s, "pg_catalog."))
	array := strings.HasSuffix(v, "[]")
	v = strings.TrimSpace(strings.TrimSuffix(v, "[]"))
	if i := strings.IndexByte(v, '('); i > 0 {
		v = strings.TrimSpace(v[:i])
	}
	p, ok := typeIndex().byName[v]
	if !ok {
		for _, c := range typeIndex().byOID {
			if c.name == v {
				p, ok = c, true
				break
			}
		}
	}
	if !ok {
		return 0, false
	}
	if array {
		return p.array, p.array != 0
	}
	return p.oid, true
}

// splitName cuts a possibly quoted, qualified name.
func splitName(s string) []string {
	var out []string
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && quoted && i+1 < len(s) && s[i+1] == '"':
			b.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			out = append(out, b.String())
			b.Reset()
		case !quoted && c >= 'A' && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		default:
			b.WriteByte(c)
		}
	}
	return append(out, b.String())
}

// castReg renders casts between object id aliases and text, which need the
// catalog's rows. errNotReg: an ordinary cast.
func (a *analyzer) castReg(e expr, to Type) (expr, error) {
	cat, fromReg := regCatalog[e.typ.OID]
	if fromReg && isString(to.OID) {
		sql, err := a.regText(e, cat.relation, cat.oid, cat.name)
		return expr{sql: sql, typ: to, loc: e.loc, scale: -1}, err
	}
	cat, toReg := regCatalog[to.OID]
	if !toReg || e.lit == nil && !isString(e.typ.OID) {
		return e, errNotReg
	}
	if e.lit != nil {
		if _, done, err := a.regLiteral(*e.lit, to); done || err != nil {
			return e, errNotReg // the ordinary cast does it
		}
		if to.OID == 2202 || to.OID == 2204 {
			return a.regSignature(*e.lit, to, e.loc, false)
		}
		e = expr{sql: quote.Text(*e.lit), typ: plain(OIDText), loc: e.loc, scale: -1}
	}
	return a.regOfText(e, to)
}

func (a *analyzer) systemRelation(name string) (*Use, error) {
	rel, ok := a.env.Resolver.Relation("pg_catalog", name)
	if !ok {
		return nil, pgerr.New(codes.UndefinedTable, "relation \"pg_catalog.%s\" does not exist", name)
	}
	u := a.use(rel)
	u.Inner = true
	return u, nil
}

func (a *analyzer) systemColumn(u *Use, name string) string {
	for i, c := range u.Relation.Columns {
		if c.Name == name {
			return u.column(i)
		}
	}
	return name
}

// regText renders the name of an object id, the number itself when it names
// nothing, and "-" for zero.
func (a *analyzer) regText(e expr, relation, oid, name string) (string, error) {
	if e.text { // a name of the source's, as it wrote it
		return e.sql, nil
	}
	if f := regCatalog[e.typ.OID].out; len(a.env.Functions[f]) > 0 {
		out, err := a.callNamed(f, []expr{e}, e.loc)
		return out.sql, err
	}
	if e.typ.OID == OIDRegtype {
		return a.env.typeText(e.sql), nil
	}
	u, err := a.systemRelation(relation)
	if err != nil {
		return "", err
	}
	v := a.alias("r")
	look := "(SELECT min(" + v + "." + quote.Name(a.systemColumn(u, name)) + ") FROM " + quote.Name(u.Name) + " AS " + v +
		" WHERE " + v + "." + quote.Name(a.systemColumn(u, oid)) + " = " + e.sql + ")"
	return "coalesce(" + look + ", CASE WHEN " + e.sql + " = 0 THEN '-' ELSE CAST(" + e.sql + " AS VARCHAR) END)", nil
}

// regOfText renders the oid of what a text names; it is an error when nothing has the name.
func (a *analyzer) regOfText(e expr, to Type) (expr, error) {
	cat := regCatalog[to.OID]
	out := expr{typ: to, loc: e.loc, scale: -1}
	v := a.alias("r")
	text := expr{sql: v + ".v", typ: plain(OIDText), loc: e.loc, scale: -1}
	var found string
	switch {
	case len(a.env.Functions[cat.in]) > 0:
		oid, err := a.callNamed(cat.in, []expr{text}, e.loc)
		if err != nil {
			return out, err
		}
		found = oid.sql
	case cat.name == "" || to.OID == 2202 || to.OID == 2204:
		return out, unsupported("cast of a non-constant text to %s is not supported", to.Name())
	default:
		u, err := a.systemRelation(cat.relation)
		if err != nil {
			return out, err
		}
		w := a.alias("r")
		found = "(SELECT min(" + w + "." + quote.Name(a.systemColumn(u, cat.oid)) + ") FROM " + quote.Name(u.Name) + " AS " + w +
			" WHERE " + w + "." + quote.Name(a.systemColumn(u, cat.name)) + " = replace(regexp_extract(" + text.sql + `, '[^.]*$'), '"', ''))`
	}
	before, after, _ := strings.Cut(cat.missing, "%")
	out.sql = "(SELECT CASE WHEN " + text.sql + " = '-' THEN 0 WHEN regexp_full_match(" + text.sql + ", '[0-9]+') THEN TRY_CAST(" + text.sql +
		" AS BIGINT) WHEN " + text.sql + " IS NOT NULL THEN coalesce(" + found + ", CAST(error(" + quote.Text(before) + " || " + text.sql + " || " +
		quote.Text(after) + ") AS BIGINT)) END FROM (SELECT " + e.sql + " AS v) AS " + v + ")"
	return out, nil
}

// toRegSignature is to_regprocedure and to_regoperator: null for what there is not.
func (a *analyzer) toRegSignature(name string, args []expr, loc int32) (expr, error) {
	to := plain(2202)
	if name == "to_regoperator" {
		to = plain(2204)
	}
	if len(args) != 1 {
		return expr{}, noFunction(name, args, false)
	}
	if args[0].lit == nil {
		return expr{}, unsupported("%s of a text that is no constant is not supported", name)
	}
	return a.regSignature(*args[0].lit, to, loc, true)
}

// regSignature resolves a constant of regprocedure or regoperator: a name with the types
// of its arguments. What there is not is an error, or null with missing.
func (a *analyzer) regSignature(text string, to Type, loc int32, missing bool) (expr, error) {
	out := expr{typ: to, loc: loc, scale: -1}
	cat := regCatalog[to.OID]
	name, args, ok := strings.Cut(strings.TrimSpace(text), "(")
	list, ended := strings.CutSuffix(args, ")")
	if !ok || !ended {
		return out, pgerr.New(codes.InvalidTextRepresentation, "expected a left parenthesis")
	}
	var oids []string
	for _, arg := range strings.Split(list, ",") {
		arg = strings.TrimSpace(arg)
		switch t, known := typeBySQLName(arg); {
		case arg == "" && list == "":
		case strings.EqualFold(arg, "none"):
			oids = append(oids, "0")
		case known:
			oids = append(oids, strconv.FormatUint(uint64(t), 10))
		case missing:
			out.sql = "CAST(NULL AS BIGINT)"
			return out, nil
		default:
			return out, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", arg)
		}
	}
	u, err := a.systemRelation(cat.relation)
	if err != nil {
		return out, err
	}
	v := a.alias("r")
	column := func(name string) string { return v + "." + quote.Name(a.systemColumn(u, name)) }
	names := splitName(name)
	where := column(cat.name) + " = " + quote.Text(names[len(names)-1])
	switch {
	case to.OID == 2202:
		where += " AND " + column("proargtypes") + " = CAST([" + strings.Join(oids, ", ") + "] AS BIGINT[])"
	case len(oids) != 2:
		return out, pgerr.New(codes.InvalidTextRepresentation, "missing argument").WithHint("Use NONE to denote the missing argument of a unary operator.")
	default:
		where += " AND " + column("oprleft") + " = " + oids[0] + " AND " + column("oprright") + " = " + oids[1]
	}
	before, after, _ := strings.Cut(cat.missing, "%")
	none := "CAST(error(" + quote.Text(before+text+after) + ") AS BIGINT)"
	if missing {
		none = "NULL"
	}
	out.sql = "(SELECT coalesce(min(" + column(cat.oid) + "), " + none + ") FROM " + quote.Name(u.Name) + " AS " + v + " WHERE " + where + ")"
	return out, nil
}

// regtypePrelude is the macro that names types.
func regtypePrelude() string {
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE MACRO skippr_regtype(o) AS CASE o WHEN 0 THEN '-'")
	for _, oid := range sortedOIDs() {
		b.WriteString(" WHEN " + strconv.FormatUint(uint64(oid), 10) + " THEN " + quote.Text(lookupType(oid).name))
	}
	b.WriteString(" ELSE CAST(o AS VARCHAR) END")
	return b.String()
}

// regMissing is the error about a name that nothing of the kind has.
var regMissing = map[uint32]string{
	OIDRegclass: `42P01: relation "`, OIDRegtype: `42704: type "`, OIDRegproc: `42883: function "`, OIDRegnsp: `3F000: schema "`,
	OIDRegrole: `42704: role "`,
}

// regParam is the object id that a parameter of an alias type names: a number or a name.
func (a *analyzer) regParam(text string, to Type, missing string) (expr, error) {
	arg := expr{sql: text, typ: plain(OIDText), loc: -1, scale: -1}
	var found expr
	var err error
	if to.OID == OIDRegtype {
		found, err = a.callNamed("to_regtype", []expr{arg}, -1)
	} else {
		found, err = a.castReg(arg, to)
	}
	if err != nil {
		return found, err
	}
	return expr{typ: to, scale: -1, loc: -1, sql: "CASE WHEN " + text + " IS NULL THEN NULL WHEN regexp_full_match(" + text + ", '[0-9]+') THEN CAST(" +
		text + " AS BIGINT) WHEN " + text + " = '-' THEN 0 WHEN " + found.sql + " IS NULL THEN error(" + quote.Text(missing) + " || " + text +
		" || '\" does not exist') ELSE " + found.sql + " END"}, nil
}

// shownByName says that the elements of an array are shown by names which are looked up.
func shownByName(e expr) bool {
	elem := ElemOf(e.typ.OID)
	return !e.text && (e.col == nil || !e.col.stored) && elem != OIDOid && elem != OIDRegtype && regCatalog[elem].relation != ""
}

// regArrays prints a query, with the names of the objects that arrays of object id aliases name.
func (a *analyzer) regArrays(q *query) (string, error) {
	if !slices.ContainsFunc(q.targets, func(t target) bool { return shownByName(t.expr) }) {
		return q.print(true), nil
	}
	all := a.alias("n")
	var list []string
	for i, t := range q.targets {
		c := fmt.Sprintf("%s.c%d", all, i+1)
		if !shownByName(t.expr) {
			list = append(list, fmt.Sprintf("%s AS c%d", c, i+1))
			continue
		}
		names, err := a.regNames(c, ElemOf(t.expr.typ.OID), t.expr.loc)
		if err != nil {
			return "", err
		}
		list = append(list, fmt.Sprintf("%s AS c%d", names, i+1))
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM (" + q.print(false) + ") AS " + all, nil
}

// regNames renders the list of the names of the objects that an array names.
func (a *analyzer) regNames(array string, elem uint32, loc int32) (string, error) {
	cat, v := regCatalog[elem], a.alias("n")
	text, err := a.regText(expr{sql: v + ".w", typ: plain(elem), loc: loc, scale: -1}, cat.relation, cat.oid, cat.name)
	return fmt.Sprintf("CASE WHEN %[1]s IS NOT NULL THEN coalesce((SELECT list(%[2]s ORDER BY %[3]s.o) FROM "+
		"(SELECT unnest(%[1]s) AS w, generate_subscripts(%[1]s, 1) AS o) AS %[3]s), CAST([] AS VARCHAR[])) END", array, text, v), err
}

// regItems is the list of the texts of an array's elements, ok if they are the names of objects.
// What may have an aggregate in it cannot stand in a query of its own.
func (a *analyzer) regItems(e expr) (list string, ok bool, err error) {
	if !shownByName(e) {
		return "", false, nil
	}
	if e.col == nil && !strings.HasPrefix(e.sql, "ARRAY(") {
		return "", true, errRegText
	}
	list, err = a.regNames(e.sql, ElemOf(e.typ.OID), e.loc)
	return list, true, err
}

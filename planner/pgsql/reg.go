package pgsql

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

var (
	errNotReg  = errors.New("not a cast of an object id type")
	errRegText = unsupported("text form of object id aliases is not supported here")
)

// regCatalog says where the name of an object id alias is found.
var regCatalog = map[uint32]struct{ relation, oid, name string }{
	OIDRegclass: {"pg_class", "oid", "relname"},
	OIDRegtype:  {"pg_type", "oid", ""},
	OIDRegproc:  {"pg_proc", "oid", "proname"},
	OIDRegnsp:   {"pg_namespace", "oid", "nspname"},
	OIDRegrole:  {"pg_roles", "oid", "rolname"},
	2202:        {"pg_proc", "oid", "proname"},
	2203:        {"pg_operator", "oid", "oprname"},
}

// regOutput are the functions, of an Env, that render object ids with their schemas.
var regOutput = map[uint32]string{OIDRegclass: "regclassout", OIDRegtype: "regtypeout"}

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
		if table, ok := strings.CutSuffix(name, "_pkey"); ok && err != nil {
			if of, lost := a.relation(schema, table, -1); lost == nil && len(of.Key) > 0 {
				return of.IndexOID, true, nil
			}
		}
		if err != nil {
			return 0, false, err
		}
		return rel.OID, true, nil
	case OIDRegtype:
		if t, ok := typeBySQLName(v); ok {
			return t, true, nil
		}
		return 0, false, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", v)
	}
	return 0, false, nil
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
		e = expr{sql: quote.Text(splitLast(*e.lit)), typ: plain(OIDText), loc: e.loc, scale: -1}
	}
	if to.OID == OIDRegclass {
		return a.regclassOfText(e.sql, expr{typ: to, loc: e.loc, scale: -1})
	}
	if cat.name == "" {
		return e, unsupported("cast of a non-constant text to %s is not supported", to.Name())
	}
	rel, err := a.systemRelation(cat.relation)
	if err != nil {
		return e, err
	}
	v := a.alias("r")
	sql := "(SELECT min(" + v + "." + quote.Name(a.systemColumn(rel, cat.oid)) + ") FROM " + quote.Name(rel.Name) + " AS " + v +
		" WHERE " + v + "." + quote.Name(a.systemColumn(rel, cat.name)) + " = " + e.sql + ")"
	return expr{sql: sql, typ: to, loc: e.loc, scale: -1}, nil
}

func splitLast(s string) string {
	n := splitName(s)
	return n[len(n)-1]
}

func (a *analyzer) systemRelation(name string) (*Use, error) {
	rel, ok := a.env.Resolver.Relation("pg_catalog", name)
	if !ok {
		return nil, pgerr.New(codes.UndefinedTable, "relation \"pg_catalog.%s\" does not exist", name)
	}
	return a.use(rel), nil
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
	if f := regOutput[e.typ.OID]; len(a.env.Functions[f]) > 0 {
		out, err := a.callNamed(f, []expr{e}, e.loc)
		return out.sql, err
	}
	if e.typ.OID == OIDRegtype {
		return regtypeText(e.sql), nil
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

// regtypeText renders the SQL name of a type oid.
func regtypeText(sql string) string {
	return "skippr_regtype(" + sql + ")"
}

// regclassOfText renders the oid of a table named by a non-constant text.
func (a *analyzer) regclassOfText(src string, out expr) (expr, error) {
	if len(a.env.Functions["to_regclass"]) > 0 {
		return a.callNamed("to_regclass", []expr{{sql: src, typ: plain(OIDText), loc: out.loc, scale: -1}}, out.loc)
	}
	u, err := a.systemRelation("pg_class")
	if err != nil {
		return out, err
	}
	v := a.alias("r")
	out.typ = plain(OIDRegclass)
	out.sql = "(SELECT min(" + v + "." + quote.Name(a.systemColumn(u, "oid")) + ") FROM " + quote.Name(u.Name) + " AS " + v +
		" WHERE " + v + "." + quote.Name(a.systemColumn(u,
		"relname")) + " = replace(regexp_extract(" + src + `, '[^.]*$'), '"', ''))`
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

package pgsql

import (
	"regexp"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// All collations that there are sort by code point. They differ in which characters have cases, and are
// letters: those of C and POSIX are ASCII's, those of the default all.

// mixedCollation stands for several that no COLLATE decides between.
const mixedCollation uint32 = 1

// ResolveCollation finds the collation that COLLATE names for a column of a type, 0 for the default.
func ResolveCollation(n *pg.CollateClause, t Type, statement string, env *Env) (uint32, error) {
	a := &analyzer{env: env, sql: statement}
	c, err := findCollation(n.Collname, env)
	switch {
	case err != nil:
		return 0, a.errAt(n.Location, err)
	case !collatable(t):
		return 0, a.errAt(n.Location, pgerr.New(codes.DatatypeMismatch, "collations are not supported by type %s", t.Name()))
	case c.OID == schema.DefaultCollation:
		return 0, nil
	}
	return c.OID, nil
}

func findCollation(list []*pg.Node, env *Env) (schema.Collation, error) {
	name := list[len(list)-1].GetString_().GetSval()
	shown := quote.NameIfNeeded(name)
	space := ""
	if len(list) > 1 {
		space = list[len(list)-2].GetString_().GetSval()
		shown = quote.NameIfNeeded(space) + "." + shown
		if space != "pg_catalog" && !env.Resolver.HasSchema(space) {
			return schema.Collation{}, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", space)
		}
	}
	at := slices.IndexFunc(schema.Collations, func(c schema.Collation) bool { return c.Name == name && (space == "" || space == "pg_catalog") })
	if at < 0 {
		return schema.Collation{}, pgerr.New(codes.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", strings.ReplaceAll(shown, `"`, ""))
	}
	return schema.Collations[at], nil
}

// collatable says whether values of a type have a collation.
func collatable(t Type) bool {
	oid := t.OID
	if elem := ElemOf(oid); elem != 0 {
		oid = elem
	}
	return isString(oid) || oid == OIDName
}

// derived is the collation of an expression, and whether COLLATE says it: the zero value is the
// default, or that of what has none.
type derived struct {
	oid      uint32
	explicit bool
}

// with is that of what is computed from two.
func (d derived) with(o derived) (derived, error) {
	switch {
	case d.explicit && o.explicit && d.oid != o.oid:
		name := func(d derived) string { return schema.CollationName(max(d.oid, schema.DefaultCollation)) }
		if d.oid == 0 {
			d.oid = schema.DefaultCollation
		}
		if o.oid == 0 {
			o.oid = schema.DefaultCollation
		}
		return d, pgerr.New(codes.CollationMismatch, "collation mismatch between explicit collations \"%s\" and \"%s\"", name(d), name(o))
	case d.explicit:
		return d, nil
	case o.explicit, d.oid == 0:
		return o, nil
	case o.oid != 0 && o.oid != d.oid:
		return derived{oid: mixedCollation}, nil
	}
	return d, nil
}

// ascii says whether only ASCII's characters have cases there.
func (d derived) ascii() bool {
	at := slices.IndexFunc(schema.Collations, func(c schema.Collation) bool { return c.OID == d.oid })
	return at >= 0 && !schema.Collations[at].Text
}

// collated is the collation of what is computed from some expressions.
func collated(list ...expr) (d derived, err error) {
	for _, e := range list {
		if d, err = d.with(e.coll); err != nil {
			return d, err
		}
	}
	return d, nil
}

// collFrame is the collation of the parts of an expression that is analysed.
type collFrame struct {
	of    derived
	apart bool
}

// collating analyses an expression by f, and derives its collation from those of its parts.
func (a *analyzer) collating(n *pg.Node, f func() (expr, error)) (expr, error) {
	apart := n.GetSubLink() != nil || n.GetRowExpr() != nil || // of parts that are not of one value
		len(n.GetFuncCall().GetAggOrder()) > 0 || n.GetFuncCall().GetOver() != nil
	a.colls = append(a.colls, collFrame{apart: apart})
	at := len(a.colls) - 1
	e, err := f()
	own := a.colls[at].of
	a.colls = a.colls[:at]
	if err != nil {
		return e, err
	}
	switch {
	case n.GetColumnRef() != nil, n.GetCollateClause() != nil, apart && collatable(e.typ):
		own = e.coll
	case apart, !collatable(e.typ) && !e.undecided():
		own = derived{}
	}
	e.coll = own
	if at > 0 && !a.colls[at-1].apart {
		if a.colls[at-1].of, err = a.colls[at-1].of.with(own); err != nil {
			return e, a.errAt(e.loc, err)
		}
	}
	return e, nil
}

const (
	upperASCII = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowerASCII = "abcdefghijklmnopqrstuvwxyz"
)

// foldsCase are functions whose values depend on which characters have cases or are letters.
var foldsCase = strings.Fields(`lower upper initcap regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace
	regexp_split_to_array regexp_split_to_table regexp_substr texticlike texticnlike texticregexeq texticregexne textregexeq textregexne`)

// asciiCall is a call of lower or upper of strings whose collation knows ASCII alone; ok is false for all
// other calls. Others that depend on it are refused.
func (a *analyzer) asciiCall(name string, args []expr) (e expr, ok bool, err error) {
	if !slices.Contains(foldsCase, name) || len(args) == 0 {
		return e, false, nil
	}
	d, err := collated(args...)
	if err != nil {
		return e, false, err
	}
	if err := mixed(d, name+"() function"); err != nil || !d.ascii() {
		return e, false, err
	}
	if strings.HasPrefix(name, "regexp_") && plainPattern(args) {
		return e, false, nil
	}
	if (name != "lower" && name != "upper") || len(args) != 1 || !isString(args[0].typ.OID) {
		return e, false, unsupported("function %s of strings of collation \"%s\" is not supported", name, schema.CollationName(d.oid)).
			WithHint("COLLATE \"default\" has the cases and letters of all scripts.")
	}
	text, err := a.coerce(args[0], plain(OIDText), implicit)
	text.sql, text.col = foldASCII(text.sql, name == "upper"), nil
	return text, true, err
}

func foldASCII(sql string, upper bool) string {
	from, to := upperASCII, lowerASCII
	if upper {
		from, to = to, from
	}
	return "translate(" + sql + ", '" + from + "', '" + to + "')"
}

// mixed refuses what needs a collation where there are several.
func mixed(d derived, what string) error {
	if d.oid != mixedCollation {
		return nil
	}
	return pgerr.New(codes.IndeterminateCollation, "could not determine which collation to use for %s", what).
		WithHint("Use the COLLATE clause to set the collation explicitly.")
}

// asciiMatch says whether a match of strings ignores the cases of ASCII alone.
func asciiMatch(l, r expr, what string) (bool, error) {
	d, err := collated(l, r)
	if err == nil {
		err = mixed(d, what)
	}
	return d.ascii(), err
}

// plainPattern says whether the arguments of a function of regular expressions are a pattern that says
// nothing of letters or cases, and flags that do not either.
func plainPattern(args []expr) bool {
	if len(args) < 2 || args[1].lit == nil || letterClass.MatchString(*args[1].lit) {
		return false
	}
	last := args[len(args)-1]
	return len(args) == 2 || last.lit != nil && !strings.ContainsAny(*last.lit, "i") || last.typ.OID == OIDInt4
}

// letterClass finds what a regular expression says of letters, or of cases.
var letterClass = regexp.MustCompile(`\\[wWdDsSmMyYbB<>]|\[[:.=]|\(\?|^\*{3}`)

// carried is that of a column of a query.
func (d derived) carried() uint32 {
	if d.oid == schema.DefaultCollation {
		return 0
	}
	return d.oid
}

// column is what a column of it has: that of the database for what no COLLATE decides.
func (d derived) column() uint32 {
	if d.oid == mixedCollation || d.oid == schema.DefaultCollation {
		return 0
	}
	return d.oid
}

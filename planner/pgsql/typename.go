package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// typeName resolves a type name of a statement.
func (a *analyzer) typeName(n *pg.TypeName) (Type, error) {
	t, err := ResolveTypeName(n)
	if err != nil {
		return t, a.errAt(n.Location, err)
	}
	return t, nil
}

// ResolveTypeName resolves a parsed type name; 42704 when there is no such type.
func ResolveTypeName(n *pg.TypeName) (Type, error) {
	var names []string
	for _, x := range n.Names {
		names = append(names, x.GetString_().GetSval())
	}
	name := names[len(names)-1]
	if len(names) > 1 && names[len(names)-2] != "pg_catalog" {
		return Type{}, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", strings.Join(names, "."))
	}
	p, ok := typeIndex().byName[name]
	if !ok && (name == "regoperator" || name == "regconfig" || name == "regdictionary") {
		return Type{}, unsupported("type \"%s\" is not supported", name)
	}
	if !ok || p.category == 'X' {
		return Type{}, pgerr.New(codes.UndefinedObject, "type \"%s\" does not exist", strings.Join(names, "."))
	}
	mod, err := typeMod(p.oid, n.Typmods)
	if err != nil {
		return Type{}, err
	}
	t := Type{OID: p.oid, Mod: mod}
	if len(n.ArrayBounds) > 0 {
		arr := p.array
		if p.elem != 0 {
			arr = p.oid
		}
		t.OID = arr
	}
	return t, nil
}

func typeMod(oid uint32, mods []*pg.Node) (int32, error) {
	if len(mods) == 0 {
		return -1, nil
	}
	var v []int
	for _, m := range mods {
		c := m.GetAConst()
		if c == nil || c.GetIval() == nil {
			return -1, pgerr.New(codes.Syntax, "type modifiers must be simple constants or identifiers")
		}
		v = append(v, int(c.GetIval().Ival))
	}
	switch oid {
	case OIDNumeric:
		scale := 0
		if len(v) > 1 {
			scale = v[1]
		}
		if v[0] < 1 || v[0] > 1000 {
			return -1, pgerr.New(codes.InvalidParameterValue, "NUMERIC precision %d must be between 1 and 1000", v[0])
		}
		if v[0] > maxDigits || scale < 0 || scale > v[0] {
			return -1, unsupported("NUMERIC(%d,%d) is not supported", v[0], scale).
				WithHint("Precision is at most 38 and scale between 0 and the precision.")
		}
		return numericMod(v[0], scale), nil
	case OIDVarchar, OIDBpchar:
		if v[0] < 1 {
			return -1, pgerr.New(codes.InvalidParameterValue, "length for type %s must be at least 1", strings.TrimPrefix(lookupType(oid).internal, "bp"))
		}
		return int32(v[0]) + 4, nil
	case OIDTimestamp, OIDTimestamptz, OIDTime, OIDTimetz:
		return int32(min(v[0], 6)), nil
	case OIDInterval:
		return -1, nil
	}
	return -1, pgerr.New(codes.Syntax, "type modifier is not allowed for type \"%s\"", lookupType(oid).internal)
}

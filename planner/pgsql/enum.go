package pgsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Enum is an enumerated type. Its values are texts to the engine, and compare by the place of
// their label. Immutable.
type Enum struct {
	OID          uint32
	Schema, Name string
	// Labels are its values, ascending.
	Labels []string
}

// Type is the type.
func (e *Enum) Type() Type { return Type{OID: e.OID, Mod: -1, Enum: e} }

// SQLName is its name as format_type writes it where only public is searched.
func (e *Enum) SQLName() string {
	if e.Schema == "public" {
		return quote.NameIfNeeded(e.Name)
	}
	return quote.NameIfNeeded(e.Schema) + "." + quote.NameIfNeeded(e.Name)
}

// place is the place of a label among those of the type, by which values are in order.
func (e *Enum) place(sql string) string {
	list := make([]string, len(e.Labels))
	for i, l := range e.Labels {
		list[i] = quote.Text(l)
	}
	return "list_position([" + strings.Join(list, ", ") + "], " + sql + ")"
}

func (e *Enum) invalid(text string) *pgerr.Error {
	return pgerr.New(codes.InvalidTextRepresentation, "invalid input value for enum %s: \"%s\"", e.SQLName(), text)
}

// read is a text as a value of the type: an error unless it is a label.
func (e *Enum) read(sql string) string {
	list := make([]string, len(e.Labels))
	for i, l := range e.Labels {
		list[i] = quote.Text(l)
	}
	in := "false"
	if len(list) > 0 {
		in = sql + " IN (" + strings.Join(list, ", ") + ")"
	}
	return fmt.Sprintf("CASE WHEN %[1]s IS NULL OR %[2]s THEN %[1]s ELSE error(%[3]s || %[1]s || '\"') END", sql, in,
		quote.Text(fmt.Sprintf("%s: invalid input value for enum %s: \"", codes.InvalidTextRepresentation, e.SQLName())))
}

// Enums finds enumerated types: a Resolver that has some is one, too. Both give nil for none.
type Enums interface {
	Enum(schema, name string) *Enum
	EnumOf(oid uint32) *Enum
	// AllEnums are all, by their oids.
	AllEnums() []*Enum
}

// shown is a type's name as format_type writes it: without its schema if that is searched.
func (env *Env) shown(e *Enum) string {
	for _, schema := range env.SearchPath {
		if schema == e.Schema {
			return quote.NameIfNeeded(e.Name)
		}
		if list, ok := env.Resolver.(Enums); ok && list.Enum(schema, e.Name) != nil {
			break
		}
	}
	return quote.NameIfNeeded(e.Schema) + "." + quote.NameIfNeeded(e.Name)
}

// enumNames are the oids and names of all enumerated types, for functions that show types: each
// is between marks.
func (env *Env) enumNames() string {
	list, ok := env.Resolver.(Enums)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, e := range list.AllEnums() {
		fmt.Fprintf(&b, "\x01%d:%s", e.OID, env.shown(e))
	}
	return b.String()
}

// typeText is the name of the type with an oid, as a regtype is shown.
func (env *Env) typeText(sql string) string {
	names := env.enumNames()
	if names == "" {
		return "skippr_regtype(" + sql + ")"
	}
	return "CASE WHEN " + sql + " > 1073741824 AND " + EnumName(quote.Text(names), sql) + " <> '' THEN " + EnumName(quote.Text(names), sql) +
		" ELSE skippr_regtype(" + sql + ") END"
}

// EnumName is the name of an enumerated type by its oid, out of the fact "types"; an empty text
// when there is none. Both are SQL of the engine.
func EnumName(types, oid string) string {
	return "split_part(split_part(" + types + ", chr(1) || " + oid + " || ':', 2), chr(1), 1)"
}

// enumOf finds an enumerated type by its oid, nil for none.
func (env *Env) enumOf(oid uint32) *Enum {
	if list, ok := env.Resolver.(Enums); ok && oid >= firstUserOID {
		return list.EnumOf(oid)
	}
	return nil
}

// firstUserOID is the first oid of an object that users make.
const firstUserOID = 16384

// TypeOf is the type of an oid.
func (env *Env) TypeOf(oid uint32, mod int32) Type {
	if e := env.enumOf(oid); e != nil {
		return e.Type()
	}
	return Type{OID: oid, Mod: mod}
}

// ResolveType is ResolveTypeName that knows enumerated types too. It puts the schema of such a
// type into the name, so that what is printed of it means the same everywhere.
func (env *Env) ResolveType(n *pg.TypeName) (Type, error) {
	list, ok := env.Resolver.(Enums)
	var names []string
	for _, x := range n.Names {
		names = append(names, x.GetString_().GetSval())
	}
	t, err := ResolveTypeName(n)
	if err == nil || !ok || len(names) > 2 {
		return t, err
	}
	path := env.SearchPath
	if len(names) == 2 {
		path = names[:1]
		if path[0] == "pg_temp" {
			return t, err
		}
	}
	for _, schema := range path {
		e := list.Enum(schema, names[len(names)-1])
		switch {
		case e == nil:
			continue
		case len(n.Typmods) > 0:
			return t, pgerr.New(codes.Syntax, "type modifier is not allowed for type \"%s\"", e.Name)
		case len(n.ArrayBounds) > 0:
			return t, unsupported("arrays of an enumerated type are not supported").WithHint("Take text[].")
		}
		n.Names = []*pg.Node{pg.MakeStrNode(e.Schema), pg.MakeStrNode(e.Name)}
		return e.Type(), nil
	}
	return t, err
}

// WithEnums gives the columns of a relation that are of enumerated types these types.
func (env *Env) WithEnums(rel *Relation) *Relation {
	of := func(c RelationColumn) *Enum { return env.enumOf(c.Type.OID) }
	if !slices.ContainsFunc(rel.Columns, func(c RelationColumn) bool { return of(c) != nil }) {
		return rel
	}
	out := *rel
	out.Columns = slices.Clone(rel.Columns)
	for i, c := range out.Columns {
		if e := of(c); e != nil {
			out.Columns[i].Type = e.Type()
		}
	}
	return &out
}

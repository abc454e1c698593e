package pgsql

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// UserKind says how values of a type compare.
type UserKind byte

// The kinds; see catalog/usertype.
const (
	Enumerated UserKind = iota
	Folded
	Canonical
	Opaque
)

// UserType is a type that users have made, here or at a source. Its values are texts to the
// engine. Immutable.
type UserType struct {
	OID          uint32
	Array        uint32 // the type of its arrays, 0 for none
	Schema, Name string
	Kind         UserKind
	// Labels are the values of an enumerated type, ascending. Former are others that rows may
	// have, by what they are called now.
	Labels []string
	Former map[string]string
	// Foreign says that a source has the type: it may have labels that are not known yet.
	Foreign bool
	// Elem is the type of the elements of an array, nil for any other type. Such an array is the
	// text of one.
	Elem *UserType
	// Composite says that the texts are those of rows; JSON that its values are no strings in JSON.
	Composite, JSON bool
	// Mods are the names of modifiers that columns have, as in "geometry(Point)".
	Mods map[int32]string
	// Length is pg_type.typlen.
	Length int16
	// New says that the type has not been looked at at its source yet. It is announced as text.
	New bool
}

// Type is the type.
func (e *UserType) Type() Type { return Type{OID: e.OID, Mod: -1, User: e} }

// ArrayType is the type of arrays of a type.
func ArrayType(e *UserType, oid uint32) *UserType {
	out := *e
	out.OID, out.Elem, out.Length, out.Labels, out.Former, out.Mods, out.JSON = oid, e, -1, nil, nil, nil, true
	if e.Kind == Enumerated {
		out.Kind = Canonical
	}
	return &out
}

// SQLName is its name as format_type writes it where only public is searched.
func (e *UserType) SQLName() string {
	name := quote.NameIfNeeded(e.Name)
	if e.Schema != "public" && !e.New {
		name = quote.NameIfNeeded(e.Schema) + "." + name
	}
	if e.Elem != nil {
		name += "[]"
	}
	return name
}

// ordered says whether values are in an order that is known here.
func (e *UserType) ordered() bool {
	if e.Elem != nil {
		return e.Elem.Kind == Enumerated
	}
	return e.Kind == Enumerated || e.Kind == Folded
}

// equalKey is a text that is the same for equal values.
func (e *UserType) equalKey(sql string) string {
	if e.Kind == Folded {
		return "lower(" + sql + ")"
	}
	return sql
}

// orderKey is what values are ordered by.
func (e *UserType) orderKey(sql string) string {
	if e.Elem != nil && e.Elem.Kind == Enumerated {
		return labelList(e.Elem, sql)
	}
	if e.Kind != Enumerated || e.Elem != nil {
		return e.equalKey(sql)
	}
	var list, places []string
	for i, l := range e.Labels {
		list, places = append(list, quote.Text(l)), append(places, strconv.Itoa(i+1))
	}
	for _, old := range slices.Sorted(maps.Keys(e.Former)) {
		list, places = append(list, quote.Text(old)), append(places, strconv.Itoa(slices.Index(e.Labels, e.Former[old])+1))
	}
	place := "list_position([" + strings.Join(list, ", ") + "], " + sql + ")"
	if len(e.Former) > 0 {
		place = "list_extract([" + strings.Join(places, ", ") + "], " + place + ")"
	}
	if !e.Foreign {
		return place
	}
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN coalesce(nullif(%s, 0), CAST(error(%s || %s || '\"') AS INTEGER)) END", sql, place,
		quote.Text(fmt.Sprintf("%s: the place of a label of enum %s is not known yet: \"", codes.ObjectNotInPrerequisiteState, e.SQLName())), sql)
}

func (env *Env) invalidLabel(e *UserType, text string) *pgerr.Error {
	return pgerr.New(codes.InvalidTextRepresentation, "invalid input value for enum %s: \"%s\"", env.shown(e), text)
}

// unread says that a text cannot be read as a value of the type, nil when it can.
func (e *UserType) unread() error {
	switch {
	case e.Elem != nil && !e.New:
		return e.Elem.unread()
	case e.Kind == Folded, e.Kind == Enumerated:
		return nil
	case e.New:
		return e.notLooked()
	}
	return unsupported("texts are not read as values of type %s", e.SQLName()).WithHint("Cast the value to text.")
}

func (e *UserType) notLooked() *pgerr.Error {
	return unsupported("type %s has not been looked at at its source yet", e.SQLName()).
		WithHint("It is while its pipeline runs. Or cast the value to text.")
}

// compareUser renders two values, of types of users both, so that they compare as the type does. ok
// is false when their types do not compare.
func compareUser(l, r expr, op string) (ls, rs string, ok bool, err error) {
	if l.typ.OID != r.typ.OID && (l.typ.User == nil || l.typ.User.Kind != Folded || r.typ.User.Kind != Folded) {
		return "", "", false, nil
	}
	if err := uncompared(l.typ); err != nil {
		return "", "", false, err
	}
	if op == "=" || op == "<>" { // of an enum as the log and the lake do
		return equalKey(l), equalKey(r), true, nil
	}
	return sortKey(l), sortKey(r), true, withoutOrder(l.typ)
}

// compositeNull says of the text of a composite value whether all its fields are null, or none is:
// nothing is between the commas of one that is.
func compositeNull(sql string, all bool) string {
	if all {
		return "(" + sql + ` IS NULL OR regexp_full_match(` + sql + `, '\(,*\)'))`
	}
	plain := "regexp_replace(" + sql + `, '"([^"\\]|\\.|"")*"', 'q', 'gs')`
	return "(" + sql + " IS NOT NULL AND NOT regexp_matches(" + plain + `, '[(,][,)]'))`
}

// announced is the type that clients see: text for one that is not known yet.
func announced(t Type) Type {
	if t.User != nil && t.User.New {
		return plain(OIDText)
	}
	return t
}

// uncompared says that values of a type cannot be told apart as PostgreSQL does, nil when they can.
func uncompared(t Type) error {
	switch e := t.User; {
	case t.OID < firstUserOID, e != nil && e.Kind != Opaque:
		return nil
	case e != nil && e.New:
		return e.notLooked()
	}
	return unsupported("comparison of %s values is not supported", t.Name()).WithHint("Cast the value to text.")
}

// withoutOrder says that values of a type are in no order that is known here, nil when they are.
func withoutOrder(t Type) error {
	if err := uncompared(t); err != nil || t.OID < firstUserOID || t.User.ordered() {
		return err
	}
	return unsupported("ordering of %s values is not supported", t.Name()).WithHint("Order by the value cast to text.")
}

// read is a text as a value of a type: an error unless it is a label.
func (env *Env) read(e *UserType, sql string) (string, error) {
	if err := e.unread(); err != nil {
		return "", err
	}
	if e.Kind != Enumerated || e.Elem != nil {
		return sql, nil
	}
	list := make([]string, len(e.Labels))
	for i, l := range e.Labels {
		list[i] = quote.Text(l)
	}
	in := "false"
	if len(list) > 0 {
		in = sql + " IN (" + strings.Join(list, ", ") + ")"
	}
	return fmt.Sprintf("CASE WHEN %[1]s IS NULL OR %[2]s THEN %[1]s ELSE error(%[3]s || %[1]s || '\"') END", sql, in,
		quote.Text(fmt.Sprintf("%s: invalid input value for enum %s: \"", codes.InvalidTextRepresentation, env.shown(e)))), nil
}

// UserTypes finds types that users have made: a Resolver that has some is one, too. Both give nil
// for none.
type UserTypes interface {
	UserType(schema, name string) *UserType
	UserTypeOf(oid uint32) *UserType // arrays, too
	// AllUserTypes are all and their arrays, by their oids.
	AllUserTypes() []*UserType
}

// shown is a type's name as format_type writes it: without its schema if that is searched.
func (env *Env) shown(e *UserType) string {
	name := quote.NameIfNeeded(e.Name)
	if e.Elem != nil {
		name += "[]"
	}
	for _, schema := range env.SearchPath {
		if schema == e.Schema {
			return name
		}
		if list, ok := env.Resolver.(UserTypes); ok && list.UserType(schema, e.Name) != nil {
			break
		}
	}
	return quote.NameIfNeeded(e.Schema) + "." + name
}

// typeNames are the oids and names of all types that users have made, for functions that show
// types: each is between marks. One with a modifier has it behind its oid.
func (env *Env) typeNames() string {
	list, ok := env.Resolver.(UserTypes)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, e := range list.AllUserTypes() {
		fmt.Fprintf(&b, "\x01%d:%s", e.OID, env.shown(e))
		for _, mod := range slices.Sorted(maps.Keys(e.Mods)) {
			fmt.Fprintf(&b, "\x01%d,%d:%s%s", e.OID, mod, env.shown(e), e.Mods[mod])
		}
	}
	return b.String()
}

// typeText is the name of the type with an oid, as a regtype is shown.
func (env *Env) typeText(sql string) string {
	names := env.typeNames()
	if names == "" {
		return "skippr_regtype(" + sql + ")"
	}
	return "CASE WHEN " + sql + " > 1073741824 AND " + UserTypeName(quote.Text(names), sql) + " <> '' THEN " + UserTypeName(quote.Text(names), sql) +
		" ELSE skippr_regtype(" + sql + ") END"
}

// UserTypeName is the name of such a type by its oid, or its oid and modifier, out of the fact
// "types"; an empty text when there is none. Both are SQL of the engine.
func UserTypeName(types, oid string) string {
	return "split_part(split_part(" + types + ", chr(1) || " + oid + " || ':', 2), chr(1), 1)"
}

// userType finds a type that users have made by its oid, nil for none.
func (env *Env) userType(oid uint32) *UserType {
	if list, ok := env.Resolver.(UserTypes); ok && oid >= firstUserOID {
		return list.UserTypeOf(oid)
	}
	return nil
}

// OIDNew stands for types that have not been looked at at their source yet. No other type has it.
const OIDNew = 1<<30 | 1<<28

// firstUserOID is the first oid of an object that users make.
const firstUserOID = 16384

// TypeOf is the type of an oid.
func (env *Env) TypeOf(oid uint32, mod int32) Type {
	return Type{OID: oid, Mod: mod, User: env.userType(oid)}
}

// ResolveType is ResolveTypeName that knows types of users, too. It puts the schema of such a
// type into the name, so that what is printed of it means the same everywhere.
func (env *Env) ResolveType(n *pg.TypeName) (Type, error) {
	list, ok := env.Resolver.(UserTypes)
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
		e := list.UserType(schema, names[len(names)-1])
		switch {
		case e == nil:
			continue
		case len(n.Typmods) > 0 && e.Kind != Enumerated:
			return t, unsupported("modifiers of type %s are not supported here", e.SQLName())
		case len(n.Typmods) > 0:
			return t, pgerr.New(codes.Syntax, "type modifier is not allowed for type \"%s\"", e.Name)
		case len(n.ArrayBounds) > 0:
			array := env.arrayOf(e)
			if array == nil || len(n.ArrayBounds) > 1 {
				return t, unsupported("such arrays of type %s are not supported", e.SQLName())
			}
			t = array.Type()
			n.Names = []*pg.Node{pg.MakeStrNode(e.Schema), pg.MakeStrNode(e.Name)}
			return t, nil
		}
		n.Names = []*pg.Node{pg.MakeStrNode(e.Schema), pg.MakeStrNode(e.Name)}
		return e.Type(), nil
	}
	return t, err
}

// WithUserTypes gives the columns of a relation that are of types of users these types.
func (env *Env) WithUserTypes(rel *Relation) *Relation {
	of := func(c RelationColumn) *UserType { return env.userType(c.Type.OID) }
	if !slices.ContainsFunc(rel.Columns, func(c RelationColumn) bool { return of(c) != nil }) {
		return rel
	}
	out := *rel
	out.Columns = slices.Clone(rel.Columns)
	for i, c := range out.Columns {
		if e := of(c); e != nil {
			out.Columns[i].Type.User = e
		}
	}
	return &out
}

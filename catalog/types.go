package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// Types are all types that users have made, by schema and name.
func (r *reader) Types() []*usertype.Type { return byName(r.facts.types) }

// TypeByName finds a type, or wraps ErrTableNotFound.
func (r *reader) TypeByName(schema, name string) (*usertype.Type, error) {
	if e, ok := r.facts.types[viewKey(schema, name)]; ok {
		return e, nil
	}
	return nil, &NotFoundError{KindType, schema + "." + name}
}

// TypeUser is what is of a type, or names it.
type TypeUser struct {
	// Relation is a view, or what Part is of.
	Relation string
	// Part is a column of a table, a constraint or a default with words for what it is; "": a view.
	Part string
	// Array says that it is of the type's arrays.
	Array bool
}

// TypeUsers are what is of a type, or names it, but for columns of pipelines' tables.
func (r *reader) TypeUsers(e *usertype.Type) []TypeUser {
	var out []TypeUser
	of := func(oid uint32) bool { return oid == e.OID() || oid == e.ArrayOID() }
	named := quote.NameIfNeeded(e.Schema) + "." + quote.NameIfNeeded(e.Name)
	use := func(is bool, relation, format string, args ...any) {
		if is {
			out = append(out, TypeUser{Relation: relation, Part: fmt.Sprintf(format, args...)})
		}
	}
	for _, t := range r.AllTables() {
		table := "table " + t.Name
		for _, f := range t.Current.Fields {
			use(f.Enum && of(f.OID), table, "column %s of", f.Name)
			if f.Enum && f.OID == e.ArrayOID() {
				out[len(out)-1].Array = true
			}
			use(casts(t.Defaults[f.ID], named), table, "default value for column %s of", f.Name)
			use(casts(t.Generated[f.ID], named), table, "column %s of", f.Name)
		}
		for _, k := range t.Checks {
			use(casts(k.SQL, named), table, "constraint %s on", k.Name)
		}
		for _, x := range t.Indexes {
			use(casts(x.Predicate, named) || casts(x.Definition, named) || slices.ContainsFunc(x.Expressions, func(e schema.KeyExpression) bool {
				return of(e.OID) || casts(e.SQL, named)
			}), "index "+x.Name, "")
		}
	}
	for _, v := range r.Queries() {
		view := "view " + v.Name
		use(slices.ContainsFunc(v.Columns, func(c ViewColumn) bool { return of(c.OID) }) || casts(v.SQL, named), view, "")
		for _, c := range v.Columns {
			use(casts(c.Default, named), view, "default value for column %s of", c.Name)
		}
	}
	return out
}

// casts says whether SQL as it is kept casts to a type of a name, or seems to.
func casts(sql, named string) bool {
	for {
		before, after, found := strings.Cut(sql, named)
		if !found {
			return false
		}
		goesOn := after != "" && (after[0] == '_' || after[0] == '$' || after[0] == '"' || after[0] >= utf8.RuneSelf ||
			'a' <= after[0] && after[0] <= 'z' || '0' <= after[0] && after[0] <= '9')
		if !goesOn && (strings.HasSuffix(before, "::") || strings.HasSuffix(strings.ToUpper(before), " AS ")) {
			return true
		}
		sql = after
	}
}

// PutType adds a type, or replaces the one of its name. It has its ID already; its schema is added
// if there is none.
func (t *Txn) PutType(e *usertype.Type) error {
	if e.Name == "" || e.Schema == "" || e.ID == 0 {
		return fmt.Errorf("put type: %w", errName)
	}
	e = e.Clone()
	if e.CreatedAt.IsZero() {
		e.CreatedAt = t.now
	}
	n := objectOf(e)
	if old := t.facts.types[viewKey(e.Schema, e.Name)]; old != nil {
		n.replaces = old.ID
	}
	if err := t.putObject(n, e); err != nil {
		return err
	}
	own(&t.facts.types, &t.owned.types)
	t.facts.types[viewKey(e.Schema, e.Name)] = e
	return nil
}

func objectOf(e *usertype.Type) namedObject {
	return namedObject{kind: "type", prefix: prefixType, schema: e.Schema, name: e.Name, id: e.ID, owner: e.Owner, bits: e.OID()}
}

// DeleteType removes a type, or wraps ErrTableNotFound. Whether columns are of it is the caller's
// to see.
func (t *Txn) DeleteType(schema, name string) error {
	e, err := t.TypeByName(schema, name)
	if err != nil {
		return err
	}
	if err := t.deleteObject(objectOf(e)); err != nil {
		return err
	}
	own(&t.facts.types, &t.owned.types)
	delete(t.facts.types, viewKey(schema, name))
	return nil
}

// DropType is DeleteType, and its schema goes too when nothing else is in it.
func (t *Txn) DropType(e *usertype.Type) error {
	if err := t.DeleteType(e.Schema, e.Name); err != nil {
		return err
	}
	if e.Schema == publicSchema || t.schemaInUse(e.Schema) {
		return nil
	}
	return t.deleteSchema(e.Schema)
}

// leaveTypes ends the types of a pipeline's source: those that something here has still stay, as
// they are.
func (t *Txn) leaveTypes(id change.PipelineID) error {
	for _, e := range t.Types() {
		if e.Source == nil || e.Source.Pipeline != id {
			continue
		}
		if len(t.TypeUsers(e)) == 0 {
			if err := t.DropType(e); err != nil {
				return err
			}
			continue
		}
		next, src := e.Clone(), *e.Source
		src.Pipeline, next.Source = 0, &src
		if err := t.PutType(next); err != nil {
			return err
		}
	}
	return nil
}

package define

import (
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// RelationOf describes a table to the analysis, but for its object ids.
func RelationOf(t *catalog.Table) *pgsql.Relation {
	r := &pgsql.Relation{Schema: t.Schema, Name: t.Name, Pipeline: uint32(t.Pipeline)}
	for i, f := range t.Current.Fields {
		attNum := f.AttNum
		if attNum == 0 {
			attNum = int16(i + 1)
		}
		r.Columns = append(r.Columns, pgsql.RelationColumn{
			Name: f.Name, Type: AnnouncedType(f), Engine: schema.EngineType(f.Type), AttNum: attNum, FieldID: f.ID,
			NotNull: f.NotNull, Collation: f.Collation, Default: t.Defaults[f.ID], Generated: t.Generated[f.ID],
		})
	}
	generatedFrom(r)
	for _, k := range t.Checks {
		r.Checks = append(r.Checks, pgsql.Check{Name: k.Name, SQL: k.SQL})
	}
	for _, x := range t.Indexes {
		if x.Unique {
			u := pgsql.Unique{Name: x.Name, Constraint: x.Constraint, NullsEqual: x.NullsEqual, Predicate: x.Predicate, Deferrable: x.Deferrable, Deferred: x.Deferred}
			for _, e := range x.Expressions {
				u.Expressions = append(u.Expressions, pgsql.RelationColumn{
					Name: e.Name, Type: AnnouncedType(expressionField(e)), Engine: schema.EngineType(e.Type), Collation: e.Collation, Generated: e.SQL,
				})
			}
			for _, id := range x.Uses {
				u.Uses = append(u.Uses, t.Current.Index(id))
			}
			for _, id := range x.Fields {
				at := -1 // an expression
				if id != 0 {
					at = t.Current.Index(id)
				}
				u.Columns = append(u.Columns, at)
			}
			for _, c := range x.Where {
				u.Where = append(u.Where, pgsql.Condition{Column: t.Current.Index(c.Field), Test: c.Test})
			}
			r.Uniques = append(r.Uniques, u)
		}
	}
	r.KeyName = t.PrimaryKey()
	r.Materialized, r.Unpopulated = t.Query != nil, t.Query != nil && !t.Query.Populated
	r.WholeRow, r.Own, r.Temp = t.Current.WholeRow, t.Own, t.Temp != ""
	for _, id := range t.Current.Key {
		if i := slices.IndexFunc(t.Current.Fields, func(f schema.Field) bool { return f.ID == id }); i >= 0 {
			r.Key = append(r.Key, i)
		}
	}
	return r
}

// expressionField is an expression of an index as a column.
func expressionField(e schema.KeyExpression) schema.Field {
	return schema.Field{OID: e.OID, TypMod: e.TypMod, Type: e.Type}
}

// ViewOf describes a view to the analysis, but for its object ids.
func ViewOf(v *catalog.View) *pgsql.Relation {
	r := &pgsql.Relation{Schema: v.Schema, Name: v.Name, View: v.SQL, SecurityInvoker: securityInvoker(v), Check: CheckOption(v)}
	for i, c := range v.Columns {
		r.Columns = append(r.Columns, pgsql.RelationColumn{
			Name: c.Name, Type: pgsql.Type{OID: c.OID, Mod: c.TypMod}, AttNum: int16(i + 1), FieldID: int32(i + 1), Collation: c.Collation, Default: c.Default,
		})
	}
	return r
}

// ColumnType is AnnouncedType for a column of a table, with types of sources that are known.
func ColumnType(t *catalog.Table, f schema.Field, known usertype.Index) pgsql.Type {
	if oid := known.Of(t.Pipeline, f.OID); oid != 0 && !f.Enum {
		return pgsql.Type{OID: oid, Mod: f.TypMod}
	}
	return AnnouncedType(f)
}

// unknownType is the type of a column whose type at the source has not been looked at.
func unknownType(f schema.Field) *pgsql.UserType {
	return &pgsql.UserType{OID: pgsql.OIDNew, Name: f.SQLType(), Kind: pgsql.Opaque, New: true, Length: -1}
}

// KnownTypes gives the columns of a pipeline's table that are of types of its source these types.
func KnownTypes(r *pgsql.Relation, t *catalog.Table, known usertype.Index) {
	for i, f := range t.Current.Fields {
		if f.OID < schema.OIDFirstUser || f.Enum {
			continue
		}
		r.Columns[i].Type = ColumnType(t, f, known)
		if r.Columns[i].Type.OID == pgsql.OIDText {
			r.Columns[i].Type = unknownType(f).Type()
		}
	}
}

// AnnouncedType is the type that clients see for a field: the source's, or text when it
// is none of PostgreSQL's own.
func AnnouncedType(f schema.Field) pgsql.Type {
	if f.Enum {
		return pgsql.Type{OID: f.OID, Mod: f.TypMod}
	}
	if !pgsql.KnownType(f.OID) {
		return pgsql.Type{OID: pgsql.OIDText, Mod: -1}
	}
	return pgsql.Type{OID: f.OID, Mod: f.TypMod}
}

package define

import (
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
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
			NotNull: f.NotNull, Default: t.Defaults[f.ID],
		})
	}
	for _, k := range t.Checks {
		r.Checks = append(r.Checks, pgsql.Check{Name: k.Name, SQL: k.SQL})
	}
	for _, x := range t.Indexes {
		if x.Unique {
			u := pgsql.Unique{Name: x.Name, Constraint: x.Constraint}
			for _, id := range x.Fields {
				u.Columns = append(u.Columns, t.Current.Index(id))
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

// ViewOf describes a view to the analysis, but for its object ids.
func ViewOf(v *catalog.View) *pgsql.Relation {
	r := &pgsql.Relation{Schema: v.Schema, Name: v.Name, View: v.SQL, SecurityInvoker: securityInvoker(v), Check: CheckOption(v)}
	for i, c := range v.Columns {
		r.Columns = append(r.Columns, pgsql.RelationColumn{
			Name: c.Name, Type: pgsql.Type{OID: c.OID, Mod: c.TypMod}, AttNum: int16(i + 1), FieldID: int32(i + 1), Default: c.Default,
		})
	}
	return r
}

// AnnouncedType is the type that clients see for a field: the source's, or text when it
// is none of PostgreSQL's own.
func AnnouncedType(f schema.Field) pgsql.Type {
	if f.Enum {
		return pgsql.Type{OID: f.OID, Mod: -1}
	}
	if !pgsql.KnownType(f.OID) {
		return pgsql.Type{OID: pgsql.OIDText, Mod: -1}
	}
	return pgsql.Type{OID: f.OID, Mod: f.TypMod}
}

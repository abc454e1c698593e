package define_test

import (
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// TestKnownTypes: a column of a type of its source's has the number that the type has here, and
// its modifier; one whose type has not been looked at is like no other type.
func TestKnownTypes(t *testing.T) {
	text := schema.Type{Kind: schema.String}
	table := &catalog.Table{Pipeline: 3, Schema: "shop", Name: "t", Current: &schema.Table{Fields: []schema.Field{
		{ID: 1, Name: "m", Type: text, OID: 16500, TypMod: -1, TypeName: "mood"},
		{ID: 2, Name: "ms", Type: text, OID: 16499, TypMod: -1, TypeName: "mood[]"},
		{ID: 3, Name: "g", Type: text, OID: 16600, TypMod: 8, TypeName: "geometry(Point)"},
		{ID: 4, Name: "x", Type: text, OID: 16700, TypMod: -1, TypeName: "mood"},
		{ID: 5, Name: "v", Type: text, OID: pgsql.OIDVarchar, TypMod: 9},
	}}}
	known := usertype.IndexOf([]*usertype.Type{
		{ID: 7, Source: &usertype.Source{Pipeline: 3, OID: 16500, ArrayOID: 16499, Textual: true}},
		{ID: 8, Kind: usertype.Opaque, Source: &usertype.Source{Pipeline: 3, OID: 16600}},
		{ID: 9, Source: &usertype.Source{Pipeline: 4, OID: 16700, Textual: true}},
	})
	r := define.RelationOf(table)
	define.KnownTypes(r, table, known)
	want := []pgsql.Type{
		{OID: 1<<30 + 7, Mod: -1},
		{OID: 1<<30 + 1<<29 + 7, Mod: -1},
		{OID: 1<<30 + 1<<28 + 8, Mod: 8},
		{OID: pgsql.OIDNew, Mod: -1},
		{OID: pgsql.OIDVarchar, Mod: 9},
	}
	for i, c := range r.Columns {
		if c.Type.OID != want[i].OID || c.Type.Mod != want[i].Mod || (c.Type.User != nil) != (i == 3) {
			t.Errorf("column %s is of %+v, want %+v", c.Name, c.Type, want[i])
		}
	}
}

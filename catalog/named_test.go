package catalog_test

import (
	"errors"
	"testing"

	"github.com/skipprd/skipprd/catalog"
)

// TestNamedTable: a table is found by its name at the source, by the one here, and without
// a schema when no other may be meant.
func TestNamedTable(t *testing.T) {
	table := func(sourceSchema, sourceName, schema, name string) *catalog.Table {
		return &catalog.Table{SourceSchema: sourceSchema, SourceName: sourceName, Schema: schema, Name: name}
	}
	all := []*catalog.Table{
		table("public", "orders", "p_public", "orders"), table("crm", "orders", "p_crm", "orders"),
		table("crm", "people", "p_crm", "people"), table("crm", "Item", "p_crm", "Item"), table("shop", "Item", "P", "Item"),
		table("crm", "moved", "p_crm", "old"), table("shop", "old", "p_shop", "new"), table("x", "there", "public", "here"),
	}
	for _, c := range []struct{ schema, name, want string }{
		{"crm", "orders", "crm.orders"},
		{"p_crm", "orders", "crm.orders"},
		{"", "orders", "public.orders"},
		{"", "people", "crm.people"},
		{"", "moved", "crm.moved"},
		{"", "new", "shop.old"},
		{"", "here", "x.there"},
		{"public", "here", "x.there"},
		{"", "Item", `table name "Item" is ambiguous: it may be p_crm."Item" or "P"."Item"`},
		{"", "old", `table name "old" is ambiguous: it may be p_crm.old or p_shop.new`},
		{"", "nobody", `table "nobody": table does not exist`},
		{"public", "people", `table "public.people": table does not exist`},
	} {
		got, err := catalog.NamedTable(all, catalog.SelectedTable{Schema: c.schema, Name: c.name})
		said := ""
		switch {
		case err == nil:
			said = got.SourceSchema + "." + got.SourceName
		case errors.Is(err, catalog.ErrTableNotFound) || errors.Is(err, catalog.ErrAmbiguous):
			said = err.Error()
		}
		if said != c.want {
			t.Errorf("%q.%q: %s, want %s", c.schema, c.name, said, c.want)
		}
	}
}

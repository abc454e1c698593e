package define

import (
	"cmp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/planner/pgsql"
)

func (a *alteration) setType(n *pg.AlterTableCmd) error {
	def := n.Def.GetColumnDef()
	f, err := a.find(n.Name)
	if err != nil {
		return err
	}
	t, err := a.context.columnType(def.TypeName)
	if err != nil {
		return err
	}
	to, err := newField(f.Name, t)
	if err != nil {
		return err
	}
	from := pgsql.Type{OID: f.OID, Mod: f.TypMod}
	switch {
	case def.RawDefault != nil:
		return unsupported("USING in ALTER COLUMN … TYPE is not supported").WithHint("Add another column, UPDATE it, then drop this one.")
	case def.CollClause != nil:
		return unsupported("COLLATE of columns is not supported")
	case !widens(from, t) || !schema.Widens(f.Type, to.Type):
		return unsupported("changing the type of column \"%s\" from %s to %s is not supported", n.Name, from.Name(), t.Name()).
			WithHint("A type can become one that has all its values. Else add another column, UPDATE it, then drop this one.")
	case slices.Contains(a.table.Current.Key, f.ID),
		slices.ContainsFunc(a.table.Indexes, func(x catalog.Index) bool { return x.Unique && slices.Contains(x.Fields, f.ID) }):
		if err := a.context.checkKeyType(to); err != nil {
			return err
		}
	}
	if at := slices.IndexFunc(a.table.Indexes, func(x catalog.Index) bool { return x.Unique && slices.Contains(x.Uses, f.ID) }); at >= 0 {
		return unsupported("changing the type of a column that unique index \"%s\" computes something of is not supported", a.table.Indexes[at].Name).
			WithHint("Drop the index, and make it again.")
	}
	if err := cmp.Or(a.notGenerated(f), a.unusedInViews(n.Name)); err != nil {
		return err
	}
	list, key := a.fields()
	for i := range list {
		if list[i].Name == n.Name {
			list[i].Type, list[i].OID, list[i].TypMod, list[i].TypeName = to.Type, to.OID, to.TypMod, ""
		}
	}
	if err := a.evolve(list, key); err != nil {
		return err
	}
	return a.retyped(f)
}

// widens says whether every value of a type is, as it is, one of another.
func widens(from, to pgsql.Type) bool {
	length := from.OID == to.OID && (to.Mod < 0 || from.Mod >= 0 && to.Mod >= from.Mod)
	switch from.OID {
	case pgsql.OIDInt2:
		return to.OID == pgsql.OIDInt2 || to.OID == pgsql.OIDInt4 || to.OID == pgsql.OIDInt8
	case pgsql.OIDInt4:
		return to.OID == pgsql.OIDInt4 || to.OID == pgsql.OIDInt8
	case pgsql.OIDFloat4:
		return to.OID == pgsql.OIDFloat4 || to.OID == pgsql.OIDFloat8
	case pgsql.OIDVarchar:
		return length || to.OID == pgsql.OIDText
	case pgsql.OIDText:
		return to.OID == pgsql.OIDText || to.OID == pgsql.OIDVarchar && to.Mod < 0
	case pgsql.OIDNumeric:
		return to.OID == pgsql.OIDNumeric // the lake's types decide
	}
	return from == to
}

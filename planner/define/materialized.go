package define

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// materialized is a kind of object as DROP and messages name it.
const materialized = "materialized view"

// alterMaterialized is the tag of ALTER of one.
const alterMaterialized = "ALTER MATERIALIZED VIEW"

// errMaterialized refuses what is done to tables alone.
func errMaterialized(name string) error {
	return pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", name).
		WithDetail("It is a materialized view.").
		WithHint("DROP MATERIALIZED VIEW, and make it anew; its names and owner can be changed.")
}

// viewObject is a view, or a materialized one, that goes.
func viewObject(v *catalog.View) object {
	kind := "view"
	if v.Materialized {
		kind = materialized
	}
	return object{kind: kind, schema: v.Schema, name: v.Name, id: v.ID}
}

// tableObject is a table, or a materialized view, that goes.
func tableObject(t *catalog.Table) object {
	kind := "table"
	if t.Query != nil {
		kind = materialized
	}
	return object{kind: kind, schema: t.Schema, name: t.Name, id: t.Face()}
}

// CreateMaterialized plans CREATE MATERIALIZED VIEW: a table whose rows are those of a query.
func (c *Context) CreateMaterialized(into *pg.IntoClause, ifNotExists bool, v *pgsql.View) (*Change, error) {
	if c.isTemp(into.Rel.Schemaname) || into.Rel.Relpersistence == "t" {
		return nil, pgerr.New(codes.Syntax, "materialized views cannot be temporary")
	}
	out, err := c.createAs(into, ifNotExists, v.Columns, true)
	if err != nil || out.Makes == nil {
		return out, err
	}
	query := &catalog.Query{SQL: v.SQL, Populated: !into.SkipData}
	query.Reads, query.Uses = c.readsOf(v)
	for name := range c.named(query.Reads) {
		if c.isTemp(name.Schema) {
			return nil, unsupported("materialized views must not use temporary tables or views")
		}
	}
	if c.isTemp(out.Makes.Schema) {
		return nil, pgerr.New(codes.Syntax, "materialized views cannot be temporary")
	}
	out.Makes.Query = query
	reads, apply := c.named(query.Reads), out.Apply
	out.Apply = func(txn *catalog.Txn) error {
		if err := stillThere(txn, reads); err != nil {
			return err
		}
		return apply(txn)
	}
	return out, nil
}

// Refresh plans what REFRESH MATERIALIZED VIEW says of the view: that it has rows, or none.
// It is the only one then that changes it.
func (c *Context) Refresh(n *pg.RefreshMatViewStmt) (*Change, *catalog.Table, error) {
	rel, err := pgsql.FindRelation(n.Relation, c.Env)
	if err != nil {
		return nil, nil, err
	}
	if !rel.Materialized {
		return nil, nil, unsupported("\"%s\" is not a materialized view", rel.Name)
	}
	t, err := c.Snapshot.TableByName(rel.Schema, rel.Name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case n.Concurrent && n.SkipData:
		return nil, nil, pgerr.New(codes.Syntax, "CONCURRENTLY and WITH NO DATA options cannot be used together")
	case n.Concurrent && !t.Query.Populated:
		return nil, nil, unsupported("CONCURRENTLY cannot be used when the materialized view is not populated")
	case n.Concurrent && !slices.ContainsFunc(t.Indexes, func(x catalog.Index) bool { return x.Unique && !x.Partial() && len(x.Expressions) == 0 }):
		return nil, nil, pgerr.New(codes.ObjectNotInPrerequisiteState, "cannot refresh materialized view \"%s\" concurrently", rel.Schema+"."+rel.Name).
			WithHint("Create a unique index with no WHERE clause on one or more columns of the materialized view.")
	}
	a, _, err := c.alteredTable(n.Relation, false, "REFRESH MATERIALIZED VIEW")
	if err != nil {
		return nil, nil, err
	}
	query := *t.Query
	query.Populated = !n.SkipData
	a.table.Query = &query
	if query.Populated == t.Query.Populated {
		return a.out, t, nil
	}
	return a.done("materialized view refreshed"), t, nil
}

// renameInQuery has the query of a materialized view say another name of a column.
func (a *alteration) renameInQuery(from, to string) (err error) {
	if a.table.Query == nil {
		return nil
	}
	query := *a.table.Query
	var columns []pgsql.OutputColumn
	for _, f := range a.table.Current.Fields {
		name := f.Name
		if name == from {
			name = to
		}
		columns = append(columns, pgsql.OutputColumn{Name: name})
	}
	query.SQL, err = pgsql.RenameOutput(query.SQL, columns)
	a.table.Query = &query
	return err
}

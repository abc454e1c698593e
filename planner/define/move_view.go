package define

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// setSchema plans ALTER … SET SCHEMA.
func (c *Context) setSchema(n *pg.AlterObjectSchemaStmt) (*Change, error) {
	other := unsupported("%s is not supported", pgsql.Word(&pg.Node{Node: &pg.Node_AlterObjectSchemaStmt{AlterObjectSchemaStmt: n}}))
	if n.Relation == nil { // a type, a function, …
		return nil, other
	}
	if r, err := pgsql.FindRelation(n.Relation, c.Env); c.isTemp(n.Newschema) || err == nil && c.isTemp(r.Schema) {
		return nil, unsupported("cannot move objects into or out of temporary schemas")
	}
	if systemSchemas[n.Newschema] {
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied for schema %s", n.Newschema)
	}
	if !c.Env.Resolver.HasSchema(n.Newschema) {
		return nil, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", n.Newschema)
	}
	switch n.ObjectType {
	case pg.ObjectType_OBJECT_SEQUENCE:
		return c.moveSequence(n.Relation, n.MissingOk, func(s *sequence.Sequence) { s.Schema = n.Newschema })
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW:
	default:
		return nil, other
	}
	view, tag, err := c.isView(n.Relation, n.ObjectType)
	if err != nil {
		return nil, err
	}
	if view {
		if v, err := c.view(n.Relation); err == nil && v.Schema == n.Newschema {
			return &Change{Tag: tag}, nil
		}
		return c.moveView(n.Relation, tag, func(v *catalog.View) { v.Schema = n.Newschema })
	}
	a, missing, err := c.alteredTable(n.Relation, n.MissingOk, tag)
	if err != nil {
		return nil, err
	}
	if missing || a.table.Schema == n.Newschema {
		return a.out, nil
	}
	if err := a.moveTo(n.Newschema, a.table.Name); err != nil {
		return nil, existsIn(err, a.table.Name, n.Newschema)
	}
	return a.done("table renamed"), nil
}

// existsIn says in which schema a name is taken.
func existsIn(err error, name, schemaName string) error {
	if e, ok := pgerr.As(err); ok && e.Code == codes.DuplicateRelation {
		return pgerr.New(codes.DuplicateRelation, "relation \"%s\" already exists in schema \"%s\"", name, schemaName)
	}
	return err
}

// isView says whether an ALTER means a view, which ALTER TABLE may too; what is no view ALTER
// VIEW must not mean. tag is the statement's.
func (c *Context) isView(r *pg.RangeVar, kind pg.ObjectType) (view bool, tag string, err error) {
	tag = "ALTER TABLE"
	switch kind {
	case pg.ObjectType_OBJECT_VIEW:
		tag = "ALTER VIEW"
	case pg.ObjectType_OBJECT_MATVIEW:
		tag = alterMaterialized
	}
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		return false, tag, nil // it is told where the table is looked for
	}
	if rel.View == "" && kind == pg.ObjectType_OBJECT_VIEW {
		return false, tag, pgerr.New(codes.WrongObjectType, "\"%s\" is not a view", rel.Name)
	}
	if kind == pg.ObjectType_OBJECT_MATVIEW && !rel.Materialized {
		return false, tag, pgerr.New(codes.WrongObjectType, "\"%s\" is not a materialized view", rel.Name)
	}
	return rel.View != "", tag, nil
}

// moveView plans another name of a view.
func (c *Context) moveView(r *pg.RangeVar, tag string, rename func(*catalog.View)) (*Change, error) {
	old, err := c.view(r)
	if err != nil {
		return nil, err
	}
	next := old.Clone()
	rename(next)
	out := &Change{Tag: tag}
	if _, taken := c.Env.Resolver.Relation(next.Schema, next.Name); taken {
		if next.Schema != old.Schema {
			return nil, existsIn(existsError(next.Name), next.Name, next.Schema)
		}
		return nil, existsError(next.Name)
	}
	return out.do(c.isTemp(old.Schema), func(txn *catalog.Txn) error {
		found, err := txn.ViewByName(old.Schema, old.Name)
		if err == nil && found.ID != old.ID {
			err = catalog.ErrTableNotFound
		}
		if err != nil {
			return gone(err, "view", old.Name)
		}
		moved := found.Clone()
		rename(moved)
		if err := cmp.Or(hasSchema(txn, moved.Schema), free(txn, moved.Schema, moved.Name)); err != nil {
			return err
		}
		if err := txn.DeleteView(old.Schema, old.Name); err != nil {
			return gone(err, "view", old.Name)
		}
		if err := txn.PutView(moved); err != nil {
			return err
		}
		return renameInViews(txn, old.ID, pgsql.RelationName{Schema: old.Schema, Name: old.Name}, pgsql.RelationName{Schema: moved.Schema, Name: moved.Name})
	}), nil
}

// renameViewColumn plans another name of a column of a view.
func (c *Context) renameViewColumn(r *pg.RangeVar, tag, from, to string) (*Change, error) {
	old, err := c.view(r)
	if err != nil {
		return nil, err
	}
	named := func(name string) int {
		return slices.IndexFunc(old.Columns, func(c catalog.ViewColumn) bool { return c.Name == name })
	}
	at := named(from)
	switch {
	case at < 0:
		return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", from)
	case named(to) >= 0:
		return nil, pgerr.New(codes.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", to, old.Name)
	}
	readers, err := c.renameInReaders(old.ID, pgsql.RelationName{Schema: old.Schema, Name: old.Name}, from, to)
	if err != nil {
		return nil, err
	}
	next := old.Clone()
	next.Columns[at].Name = to
	var columns []pgsql.OutputColumn
	for _, col := range next.Columns {
		columns = append(columns, pgsql.OutputColumn{Name: col.Name})
	}
	if next.SQL, err = pgsql.RenameOutput(old.SQL, columns); err != nil {
		return nil, err
	}
	out := &Change{Tag: tag}
	return out.do(c.isTemp(old.Schema), func(txn *catalog.Txn) error {
		found, err := txn.ViewByName(old.Schema, old.Name)
		if err != nil {
			return gone(err, "view", old.Name)
		}
		if found.ID != old.ID || found.SQL != old.SQL {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "view \"%s\" was changed meanwhile", old.Name).WithHint("Run the statement again.")
		}
		return cmp.Or(readers.apply(txn, old.ID, c.isTemp(old.Schema)), txn.PutView(next))
	}), nil
}

// renameInViews puts another name of a relation into the views that read it.
func renameInViews(txn *catalog.Txn, id change.TableID, from, to pgsql.RelationName) error {
	for _, v := range txn.Queries() {
		if !slices.Contains(v.Reads, id) {
			continue
		}
		sql, err := pgsql.RenameRelation(v.SQL, from, to)
		if err == nil {
			err = txn.RewordView(v.Schema, v.Name, sql)
		}
		if err != nil {
			return fmt.Errorf("rename %s in view %s: %w", quote.Name(from.Name), quote.Name(v.Name), err)
		}
	}
	return nil
}

// hasSchema refuses a schema that others have dropped meanwhile.
func hasSchema(txn *catalog.Txn, name string) error {
	if _, err := txn.Schema(name); err != nil {
		return pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", name)
	}
	return nil
}

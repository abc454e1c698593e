package define

import (
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// moveTo gives the table another name. Those of views that read it are in their texts.
func (a *alteration) moveTo(schemaName, name string) error {
	if _, taken := a.context.Env.Resolver.Relation(schemaName, name); taken {
		return existsError(name)
	}
	if err := a.unread("rename table "+quote.NameIfNeeded(a.rel.Name), pg.DropBehavior_DROP_RESTRICT); err != nil {
		return err
	}
	a.table.Schema, a.table.Name = schemaName, name
	return nil
}

func (a *alteration) renameColumn(from, to string) error {
	if _, err := a.find(from); err != nil {
		return pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", from)
	}
	if _, ok := a.table.Current.FieldByName(to); ok {
		return pgerr.New(codes.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", to, a.table.Name)
	}
	if err := a.unread("rename column "+quote.Name(from)+" of table "+quote.NameIfNeeded(a.rel.Name), pg.DropBehavior_DROP_RESTRICT); err != nil {
		return err
	}
	a.table.Checks = slices.Clone(a.table.Checks)
	for i, k := range a.table.Checks {
		text, err := pgsql.RenameColumn(k.SQL, from, to)
		if err != nil {
			return fmt.Errorf("rename column in constraint %s: %w", quote.Name(k.Name), err)
		}
		a.table.Checks[i].SQL = text
	}
	list, key := a.fields()
	for i := range list {
		if list[i].Name == from {
			list[i].Name = to
		}
	}
	for i := range key {
		if key[i] == from {
			key[i] = to
		}
	}
	return a.evolve(list, key)
}

// unread refuses what would break views that read the table.
func (a *alteration) unread(what string, behavior pg.DropBehavior) error {
	views := a.context.readers(a.table.Face())
	if len(views) == 0 {
		return nil
	}
	e := pgerr.New(codes.DependentObjectsStillExist, "cannot %s because other objects depend on it", what)
	hint := "Drop the view first, and make it anew afterwards."
	if behavior == pg.DropBehavior_DROP_CASCADE {
		e = unsupported("CASCADE to views is not supported here")
	}
	text := ""
	for i, v := range views {
		if i > 0 {
			text += "\n"
		}
		text += fmt.Sprintf("view %s depends on table %s", shownName(v.Schema, v.Name, a.context.Env), shownName(a.rel.Schema, a.rel.Name, a.context.Env))
	}
	return e.WithDetail("%s", text).WithHint("%s", hint)
}

// setSchema plans ALTER … SET SCHEMA.
func (c *Context) setSchema(n *pg.AlterObjectSchemaStmt) (*Change, error) {
	if systemSchemas[n.Newschema] {
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied for schema %s", n.Newschema)
	}
	if !c.Env.Resolver.HasSchema(n.Newschema) {
		return nil, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", n.Newschema)
	}
	switch n.ObjectType {
	case pg.ObjectType_OBJECT_VIEW:
		return c.moveView(n.Relation, n.MissingOk, func(v *catalog.View) { v.Schema = n.Newschema })
	case pg.ObjectType_OBJECT_TABLE:
	default:
		return nil, unsupported("this kind of SET SCHEMA is not supported")
	}
	a, missing, err := c.alteredTable(n.Relation, n.MissingOk, "ALTER TABLE")
	if err != nil {
		return nil, err
	}
	if missing {
		return a.out, nil
	}
	if a.table.Schema == n.Newschema {
		return a.out, nil
	}
	if err := a.moveTo(n.Newschema, a.table.Name); err != nil {
		e, _ := pgerr.As(err)
		if e != nil && e.Code == codes.DuplicateRelation {
			return nil, pgerr.New(codes.DuplicateRelation, "relation \"%s\" already exists in schema \"%s\"", a.table.Name, n.Newschema)
		}
		return nil, err
	}
	return a.done("table renamed"), nil
}

// moveView plans another name of a view.
func (c *Context) moveView(r *pg.RangeVar, missingOK bool, rename func(*catalog.View)) (*Change, error) {
	out := &Change{Tag: "ALTER VIEW"}
	old, err := c.view(r)
	if e, ok := pgerr.As(err); ok && missingOK && e.Code == codes.UndefinedTable {
		out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", r.Relname))
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	next := old.Clone()
	rename(next)
	if _, taken := c.Env.Resolver.Relation(next.Schema, next.Name); taken {
		return nil, existsError(next.Name)
	}
	if err := c.unreadView(old, "rename view "+quote.NameIfNeeded(old.Name)); err != nil {
		return nil, err
	}
	out.Apply = func(txn *catalog.Txn) error {
		if err := free(txn, next.Schema, next.Name); err != nil {
			return err
		}
		if err := txn.DeleteView(old.Schema, old.Name); err != nil {
			return gone(err, "view", old.Name)
		}
		return txn.PutView(next)
	}
	return out, nil
}

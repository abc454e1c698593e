package define

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// moveTo gives the table another name.
func (a *alteration) moveTo(schemaName, name string) error {
	if _, taken := a.context.Env.Resolver.Relation(schemaName, name); taken {
		return existsError(name)
	}
	if schemaName != a.table.Schema {
		for _, s := range ownedSequences(a.context.Snapshot.Sequences(), a.table.Face(), 0) {
			if _, taken := a.context.Env.Resolver.Relation(schemaName, s.Name); taken {
				return existsError(s.Name)
			}
			before, after := pgsql.Nextval(s.Schema, s.Name), pgsql.Nextval(schemaName, s.Name)
			for field, text := range a.table.Defaults {
				moved, _ := pgsql.RenameNextval(text, before, after)
				a.table.Defaults[field] = moved
			}
			a.also = append(a.also, func(txn *catalog.Txn) error {
				return cmp.Or(free(txn, schemaName, s.Name), moveSequence(txn, s.ID, schemaName, s.Name))
			})
		}
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
	a.breaks = what
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

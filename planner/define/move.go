package define

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"

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
	if a.table.Current.HasKey() { // the constraint keeps its name
		a.table.KeyName = a.table.PrimaryKey()
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
	if err := a.renameInViews(from, to); err != nil {
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
	if err := cmp.Or(a.renameInQuery(from, to), a.renameGenerated(from, to), a.renameInIndexes(from, to)); err != nil {
		return err
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

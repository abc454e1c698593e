package define

import (
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// generation is a column that is generated: by an expression as a statement has it, or, of another
// table's column, by its text.
type generation struct {
	column string
	expr   *pg.Node
	text   string
}

// generate adds the expression of a column.
func (d *definition) generate(f *schema.NewField, c *pg.Constraint) error {
	if slices.ContainsFunc(d.generated, func(g generation) bool { return g.column == f.Name }) {
		return pgerr.New(codes.Syntax, "multiple generation clauses specified for column \"%s\" of table \"%s\"", f.Name, d.table.Name)
	}
	d.generated = append(d.generated, generation{column: f.Name, expr: c.RawExpr})
	return nil
}

// checkGenerated refuses columns that are generated and get values otherwise too.
func (d *definition) checkGenerated() error {
	for _, g := range d.generated {
		word := ""
		if _, ok := d.defaults[g.column]; ok {
			word = "default"
		}
		if slices.ContainsFunc(d.serials, func(s serial) bool { return s.column == g.column }) {
			word = "identity"
		}
		if word != "" {
			return pgerr.New(codes.Syntax, "both %s and generation expression specified for column \"%s\" of table \"%s\"", word, g.column, d.table.Name)
		}
	}
	return nil
}

// settleGenerated gives the table its generated columns, once all columns are known.
func (d *definition) settleGenerated() error {
	if err := d.checkGenerated(); err != nil {
		return err
	}
	for _, g := range d.generated { // none may be named by another
		f, _ := d.table.Current.FieldByName(g.column)
		setText(&d.table.Generated, f.ID, "NULL")
	}
	for _, g := range d.generated {
		f, _ := d.table.Current.FieldByName(g.column)
		if g.expr == nil {
			d.table.Generated[f.ID] = g.text
			continue
		}
		rel := d.context.Env.WithUserTypes(RelationOf(d.table))
		text, err := pgsql.SettleGenerated(g.expr, rel, rel.Columns[d.table.Current.Index(f.ID)], d.context.Env)
		if err != nil {
			return err
		}
		d.table.Generated[f.ID] = text
	}
	return nil
}

// generatedBy are the generated columns that a column has to do with.
func generatedBy(t *catalog.Table, name string) (out []schema.Field, err error) {
	for _, f := range t.Current.Fields {
		text, ok := t.Generated[f.ID]
		if !ok {
			continue
		}
		names, err := pgsql.ConditionColumns(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			out = append(out, f)
		}
	}
	return out, nil
}

// dropGenerated has the columns go that are generated from one that goes, or refuses that.
func (a *alteration) dropGenerated(n *pg.AlterTableCmd) error {
	list, err := generatedBy(a.table, n.Name)
	if err != nil || len(list) == 0 {
		return err
	}
	table := shownName(a.table.Schema, a.table.Name, a.context.Env)
	show := func(name string) string { return "column " + name + " of table " + table }
	var why, gone string
	for _, f := range list {
		why += "\n" + show(f.Name) + " depends on " + show(n.Name)
		gone += "\ndrop cascades to " + show(f.Name)
	}
	if n.Behavior != pg.DropBehavior_DROP_CASCADE {
		return pgerr.New(codes.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", show(n.Name)).
			WithDetail("%s", why[1:]).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	told := notice(codes.SuccessfulCompletion, "%s", gone[1:])
	if len(list) > 1 {
		told = notice(codes.SuccessfulCompletion, "drop cascades to %d other objects", len(list)).WithDetail("%s", gone[1:])
	}
	a.out.Notices = append(a.out.Notices, told)
	for _, f := range list {
		if err := a.dropColumn(&pg.AlterTableCmd{Name: f.Name, Behavior: n.Behavior}); err != nil {
			return err
		}
	}
	return nil
}

// renameGenerated gives a column of expressions another name.
func (a *alteration) renameGenerated(from, to string) error {
	for id, text := range a.table.Generated {
		renamed, err := pgsql.RenameColumn(text, from, to)
		if err != nil {
			f, _ := a.table.Current.Field(id)
			return fmt.Errorf("rename column in generated column %s: %w", quote.Name(f.Name), err)
		}
		a.table.Generated[id] = renamed
	}
	return nil
}

// notGenerated refuses to change the type of a column that a generated one has to do with.
func (a *alteration) notGenerated(f schema.Field) error {
	list, err := generatedBy(a.table, f.Name)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return unsupported("cannot alter type of a column used by a generated column").
			WithDetail("Column \"%s\" is used by generated column \"%s\".", f.Name, list[0].Name)
	}
	if a.table.Generated[f.ID] != "" {
		return unsupported("changing the type of a generated column is not supported").
			WithHint("Drop the column, and add it with the other type.")
	}
	return nil
}

// errGenerated is the error of a default for a generated column.
func errGenerated(t *catalog.Table, name string, drop bool) error {
	e := pgerr.New(codes.Syntax, "column \"%s\" of relation \"%s\" is a generated column", name, t.Name)
	if drop {
		return e.WithHint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
	}
	return e
}

// dropExpression has a column keep the values that it has, and be given others.
func (a *alteration) dropExpression(n *pg.AlterTableCmd) error {
	f, err := a.find(n.Name)
	switch {
	case err != nil:
		return err
	case a.table.Generated[f.ID] != "":
		setText(&a.table.Generated, f.ID, "")
	case n.MissingOk:
		a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion,
			"column \"%s\" of relation \"%s\" is not a stored generated column, skipping", n.Name, a.table.Name))
	default:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "column \"%s\" of relation \"%s\" is not a stored generated column", n.Name, a.table.Name)
	}
	return nil
}

// addGenerated settles the expression of a column that is added: the rows that there are get its values
// once it is there.
func (a *alteration) addGenerated(d *definition) error {
	if len(d.generated) == 0 {
		return nil
	}
	if d.key != nil || len(d.foreign) > 0 {
		a.prove("", unsupported("adding a generated column with a key to a table with rows is not supported").
			WithHint("Add the column first, then the key."))
	}
	a.refills = append(a.refills, a.table.Current.LastFieldID)
	return d.settleGenerated()
}

// refilled are the columns that are to be computed for the rows that there are.
func (a *alteration) refilled() *Refill {
	var out *Refill
	for _, id := range a.refills {
		f, ok := a.table.Current.Field(id)
		if !ok || a.table.Generated[id] == "" {
			continue
		}
		if out == nil {
			out = &Refill{Schema: a.table.Schema, Table: a.table.Name, ID: a.table.Face()}
		}
		out.Columns = append(out.Columns, f.Name)
	}
	return out
}

// checkGeneratedKey refuses actions of a foreign key that would give generated columns values.
func checkGeneratedKey(t *catalog.Table, k catalog.ForeignKey) error {
	if !slices.ContainsFunc(k.Fields, func(id int32) bool { return t.Generated[id] != "" }) {
		return nil
	}
	const message = "invalid %s action for foreign key constraint containing generated column"
	switch k.OnUpdate {
	case catalog.ForeignCascade, catalog.ForeignSetNull, catalog.ForeignSetDefault:
		return pgerr.New(codes.Syntax, message, "ON UPDATE")
	}
	switch k.OnDelete {
	case catalog.ForeignSetNull, catalog.ForeignSetDefault:
		return pgerr.New(codes.Syntax, message, "ON DELETE")
	}
	return nil
}

// generatedFrom says which columns the generated ones of a relation name.
func generatedFrom(r *pgsql.Relation) {
	for i, c := range r.Columns {
		if c.Generated == "" {
			continue
		}
		names, err := pgsql.ConditionColumns(c.Generated)
		for at, other := range r.Columns {
			if err != nil || slices.Contains(names, other.Name) { // what cannot be read fails when it is computed
				r.Columns[i].From = append(r.Columns[i].From, at)
			}
		}
	}
}

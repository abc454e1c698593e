package define

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// alteration is an ALTER TABLE being planned: its steps are done to table one by one, so
// that each sees what those before it did.
type alteration struct {
	context *Context
	table   *catalog.Table
	rel     *pgsql.Relation // as it is before
	out     *Change
	// views is what becomes of the views that read the table, nil where it is nothing to them.
	views *viewChange
	// also is done with the table, in order.
	also []func(*catalog.Txn) error
	// refills are new columns that are generated, by field id.
	refills []int32
}

// alteredTable begins the alteration of a table; missing says that it is not there, and
// that this is no error. It may be a materialized view.
func (c *Context) alteredTable(r *pg.RangeVar, missingOK bool, tag string) (a *alteration, missing bool, err error) {
	t, rel, err := c.stored(r)
	if e, ok := pgerr.As(err); ok && missingOK && e.Code == codes.UndefinedTable {
		n := notice(codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", r.Relname)
		return &alteration{out: &Change{Tag: tag, Notices: []*pgerr.Error{n}}}, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	a = &alteration{context: c, table: t.Clone(), rel: rel, out: &Change{Tag: tag}}
	if t.Temp == "" {
		a.out.Alters = []change.TableID{t.Face()}
	}
	return a, false, nil
}

// done completes the change: the table is to be as it is now.
func (a *alteration) done(what string) *Change {
	id, next, also, views, rekeyed := a.table.ID, a.table, a.also, a.views, a.out.Rekeyed != 0
	before := a.context.Snapshot
	old, _ := before.TableByID(id) // it was just found
	version := old.Current.Version
	views.told(a.out)
	a.out.Session, a.out.Refill = views.session(next.Temp != ""), a.refilled()
	return a.out.do(next.Temp != "", func(txn *catalog.Txn) error {
		t, err := txn.TableByID(id)
		if err != nil {
			return gone(err, "table", next.Name)
		}
		if t.Current.Version != version {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "table \"%s\" was changed meanwhile", next.Name).WithHint("Run the statement again.")
		}
		if err := views.apply(txn, t.Face(), next.Temp != ""); err != nil {
			return err
		}
		from, to := pgsql.RelationName{Schema: t.Schema, Name: t.Name}, pgsql.RelationName{Schema: next.Schema, Name: next.Name}
		if from != to {
			if err := cmp.Or(hasSchema(txn, to.Schema), free(txn, to.Schema, to.Name)); err != nil {
				return err
			}
		}
		t.Schema, t.Name, t.SourceSchema, t.SourceName = next.Schema, next.Name, next.Schema, next.Name
		t.Current, t.Defaults, t.Checks, t.Comments, t.Indexes = next.Current, next.Defaults, next.Checks, next.Comments, next.Indexes
		t.Generated = next.Generated
		t.KeyName, t.KeyComments, t.Storage, t.Query, t.Foreign = next.KeyName, next.KeyComments, next.Storage, next.Query, next.Foreign
		t.Unchecked = next.Unchecked
		if err := upheld(txn, t); err != nil {
			return err
		}
		if rekeyed && next.Temp == "" {
			if err := settled(txn, t); err != nil {
				return err
			}
		}
		if err := txn.PutTable(t.Clone()); err != nil {
			return fmt.Errorf("alter table %s: %w", quote.Name(next.Name), err)
		}
		if from != to {
			if err := renameInViews(txn, t.Face(), from, to); err != nil {
				return err
			}
		}
		for _, do := range also {
			if err := do(txn); err != nil {
				return err
			}
		}
		return tell(txn, t, what)
	})
}

func (c *Context) alterTable(n *pg.AlterTableStmt) (*Change, error) {
	if n.Objtype != pg.ObjectType_OBJECT_TABLE {
		return nil, unsupported("this kind of ALTER %s is not supported", strings.TrimPrefix(n.Objtype.String(), "OBJECT_"))
	}
	if rel, err := pgsql.FindRelation(n.Relation, c.Env); err == nil && rel.View != "" && ofViews(n.Cmds) {
		return c.alterView(n)
	}
	a, missing, err := c.alteredTable(n.Relation, n.MissingOk, "ALTER TABLE")
	if err != nil || missing {
		if err != nil {
			return nil, err
		}
		return a.out, nil
	}
	if a.table.Query != nil {
		return nil, errMaterialized(a.table.Name)
	}
	for _, node := range n.Cmds {
		if err := a.step(node.GetAlterTableCmd()); err != nil {
			return nil, err
		}
	}
	return a.done("table altered"), nil
}

// step does one command of ALTER TABLE.
func (a *alteration) step(n *pg.AlterTableCmd) error {
	switch n.Subtype {
	case pg.AlterTableType_AT_AddColumn:
		return a.addColumn(n)
	case pg.AlterTableType_AT_DropColumn:
		return a.dropColumn(n)
	case pg.AlterTableType_AT_ColumnDefault:
		return a.setDefault(n)
	case pg.AlterTableType_AT_SetNotNull, pg.AlterTableType_AT_DropNotNull:
		return a.setNotNull(n.Name, n.Subtype == pg.AlterTableType_AT_SetNotNull)
	case pg.AlterTableType_AT_DropExpression:
		return a.dropExpression(n)
	case pg.AlterTableType_AT_AddIdentity:
		return a.addIdentity(n)
	case pg.AlterTableType_AT_SetIdentity:
		return a.setIdentity(n)
	case pg.AlterTableType_AT_DropIdentity:
		return a.dropIdentity(n)
	case pg.AlterTableType_AT_AlterColumnType:
		return a.setType(n)
	case pg.AlterTableType_AT_AddConstraint:
		c := n.Def.GetConstraint()
		if c.Contype == pg.ConstrType_CONSTR_CHECK {
			return a.addCheck(c, "")
		}
		if c.Contype == pg.ConstrType_CONSTR_UNIQUE {
			return a.addUniqueConstraint(c)
		}
		if c.Contype == pg.ConstrType_CONSTR_PRIMARY {
			return a.addPrimaryKey(c)
		}
		if c.Contype == pg.ConstrType_CONSTR_FOREIGN {
			return a.addForeign(c)
		}
		return refuseConstraint(c)
	case pg.AlterTableType_AT_SetRelOptions:
		var err error
		a.table.Storage, err = setStorage(a.table.Storage, n.Def.GetList().GetItems())
		return err
	case pg.AlterTableType_AT_ResetRelOptions:
		a.table.Storage = resetStorage(a.table.Storage, n.Def.GetList().GetItems())
		return nil
	case pg.AlterTableType_AT_ValidateConstraint:
		return a.validate(n.Name)
	case pg.AlterTableType_AT_AlterConstraint:
		return a.alterForeign(n.Def.GetConstraint())
	case pg.AlterTableType_AT_DropConstraint:
		return a.dropConstraint(n)
	}
	if known, err := a.storage(n); known {
		return err
	}
	if rowSecurity[n.Subtype] {
		return unsupported("row security is not supported").WithHint("GRANT columns, or a view of the rows that a role may see.")
	}
	return unsupported("this kind of ALTER TABLE is not supported").
		WithHint("ALTER TABLE has ADD and DROP COLUMN, ALTER COLUMN … SET and DROP DEFAULT and NOT NULL, TYPE, ADD and DROP CONSTRAINT, RENAME, and SET SCHEMA.")
}

// fields are the columns of the table, to be changed, and the names of its key's.
func (a *alteration) fields() (list []schema.NewField, key []string) {
	for _, f := range a.table.Current.Fields {
		list = append(list, schema.NewField{
			Name: f.Name, Type: f.Type, OID: f.OID, TypMod: f.TypMod, TypeName: f.TypeName, Enum: f.Enum, NotNull: f.NotNull, Collation: f.Collation, AttNum: f.AttNum,
			Initial: f.Initial, Computed: f.Computed,
		})
	}
	for _, f := range a.table.Current.KeyFields() {
		key = append(key, f.Name)
	}
	return list, key
}

// evolve gives the table other columns.
func (a *alteration) evolve(list []schema.NewField, key []string) error {
	next, err := schema.Evolve(a.table.Current, list, key)
	if err != nil {
		return pgerr.New(codes.InvalidTableDefinition, "%s", err)
	}
	if next != a.table.Current { // the log may have rows, which are void, of a version that nobody was told of
		next.Version = max(next.Version, a.table.VoidVersion+1)
	}
	a.table.Current = next
	return nil
}

func (a *alteration) find(name string) (schema.Field, error) {
	f, ok := a.table.Current.FieldByName(name)
	if !ok {
		return f, pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, a.table.Name)
	}
	return f, nil
}

// place is the table's name in a query of its rows as they are.
func (a *alteration) place() string {
	return quote.NameIfNeeded(a.rel.Schema) + "." + quote.NameIfNeeded(a.rel.Name)
}

// prove asks for a row for which there must be none. A column that the statement itself
// adds or renames is not there yet to be asked for.
func (a *alteration) prove(where string, err *pgerr.Error) {
	err.Schema, err.Table = a.rel.Schema, a.rel.Name
	a.out.Proofs = append(a.out.Proofs, Proof{SQL: "SELECT 1 FROM ONLY " + a.place() + where + " LIMIT 1", Err: err})
}

func (a *alteration) addColumn(n *pg.AlterTableCmd) error {
	def := n.Def.GetColumnDef()
	if _, ok := a.table.Current.FieldByName(def.Colname); ok {
		if n.MissingOk {
			a.out.Notices = append(a.out.Notices, notice(codes.DuplicateColumn,
				"column \"%s\" of relation \"%s\" already exists, skipping", def.Colname, a.table.Name))
			return nil
		}
		return pgerr.New(codes.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", def.Colname, a.table.Name)
	}
	d := &definition{context: a.context, table: a.table}
	if err := d.column(def); err != nil {
		return err
	}
	if d.key != nil && a.table.Current.HasKey() {
		return errSeveralKeys(a.table.Name)
	}
	f := d.fields[0]
	f.NotNull = f.NotNull || d.key != nil
	f.AttNum = int16(a.table.Current.LastFieldID + 1)
	if text := d.defaults[f.Name]; text != "" {
		if err := a.initial(&f, text); err != nil {
			return err
		}
	}
	if len(d.serials) > 0 {
		a.prove("", unsupported("adding a column that a sequence fills to a table with rows is not supported").
			WithHint("Add the column as integer, UPDATE it with nextval(…), then ALTER COLUMN … SET DEFAULT."))
	} else if f.NotNull && f.Initial == nil && len(d.generated) == 0 {
		e := pgerr.New(codes.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", f.Name, a.table.Name)
		e.Column = f.Name
		a.prove("", e)
	}
	list, key := a.fields()
	if err := a.evolve(append(list, f), key); err != nil {
		return err
	}
	if err := cmp.Or(a.addNewKey(d), a.addGenerated(d)); err != nil {
		return err
	}
	if text := d.defaults[f.Name]; text != "" {
		setText(&a.table.Defaults, a.table.Current.LastFieldID, text)
	}
	if len(d.serials) > 0 {
		if err := d.checkDefaults(); err != nil {
			return err
		}
		d.own()
		a.also = append(a.also, func(txn *catalog.Txn) error { return makeSerials(txn, a.table.Face(), d.serials) })
	}
	if err := a.addNewForeign(d, f); err != nil {
		return err
	}
	if err := a.addNewUniques(d, f); err != nil {
		return err
	}
	for i, k := range d.checks {
		if err := a.addNewCheck(k, d.of[i], f); err != nil {
			return err
		}
	}
	return nil
}

// addNewUniques adds the UNIQUE constraints of a column that is added in the same statement.
func (a *alteration) addNewUniques(d *definition, f schema.NewField) error {
	for _, u := range d.uniques {
		if err := a.context.addUnique(a.table, u, true); err != nil {
			return err
		}
		if u.nullsEqual && f.Initial == nil && len(d.generated) == 0 {
			a.proveOne(a.table.Indexes[len(a.table.Indexes)-1].Name, f.Name)
		}
		if f.Initial != nil {
			a.prove("", unsupported("adding a unique column with a default to a table with rows is not supported").
				WithHint("Add the column, UPDATE the rows, then ADD UNIQUE."))
		}
	}
	return nil
}

// initial sets what the rows that there are have in a new column.
func (a *alteration) initial(f *schema.NewField, text string) error {
	volatile, err := pgsql.Volatile(text)
	if err != nil {
		return err
	}
	if volatile {
		return unsupported("adding a column with a default that is another for each row is not supported").
			WithHint("Add the column without it, UPDATE the rows, then ALTER COLUMN … SET DEFAULT.")
	}
	c := columnOf(f, a.context.Env)
	c.Default = text
	f.Initial, err = a.context.Initial(c)
	return err
}

// addNewCheck adds the check of a column that is added in the same statement: rows that
// there are have all the same in it.
func (a *alteration) addNewCheck(k *pg.Constraint, column string, f schema.NewField) error {
	if err := addCheck(a.table, k, column, a.context.Env); err != nil {
		return err
	}
	if len(a.table.Generated) > 0 && slices.Contains(a.refills, a.table.Current.LastFieldID) {
		return nil // which its rows meet when they get their values
	}
	if f.Initial == nil {
		return a.proveNew(f)
	}
	return unsupported("adding a column with both a default and a check is not supported").
		WithHint("Add the column first, then ADD CHECK.")
}

// proveNew asks for a row that the newest check excludes, whose column f is null in all.
func (a *alteration) proveNew(f schema.NewField) error {
	added := a.table.Checks[len(a.table.Checks)-1]
	used, err := pgsql.CheckCondition(added.SQL, a.context.Env.WithUserTypes(RelationOf(a.table)), a.context.Env)
	if err != nil {
		return err
	}
	for _, name := range used {
		if a.asked(name) == (name == f.Name) {
			return errSplit
		}
	}
	from := fmt.Sprintf("(SELECT *, CAST(NULL AS %s) AS %s FROM ONLY %s) AS %s",
		pgsql.Type{OID: f.OID, Mod: -1}.Name(), quote.NameIfNeeded(f.Name), a.place(), quote.NameIfNeeded(a.rel.Name))
	a.proveCheck(added.Name, "SELECT 1 FROM "+from+" WHERE NOT ("+added.SQL+") LIMIT 1")
	return nil
}

func (a *alteration) proveCheck(name, sql string) {
	e := pgerr.New(codes.CheckViolation, "check constraint \"%s\" of relation \"%s\" is violated by some row", name, a.table.Name)
	e.Schema, e.Table, e.Constraint = a.rel.Schema, a.rel.Name, name
	a.out.Proofs = append(a.out.Proofs, Proof{SQL: sql, Err: e})
}

func (a *alteration) dropColumn(n *pg.AlterTableCmd) error {
	f, err := a.find(n.Name)
	if err != nil {
		if n.MissingOk {
			a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion,
				"column \"%s\" of relation \"%s\" does not exist, skipping", n.Name, a.table.Name))
			return nil
		}
		return err
	}
	if err := cmp.Or(a.dropFromViews(n.Name, n.Behavior), a.dropGenerated(n)); err != nil {
		return err
	}
	list, key := a.fields()
	list = slices.DeleteFunc(list, func(x schema.NewField) bool { return x.Name == n.Name })
	if len(list) == 0 {
		return unsupported("tables without columns are not supported")
	}
	for _, k := range slices.Clone(a.table.Checks) {
		used, err := pgsql.CheckCondition(k.SQL, a.context.Env.WithUserTypes(RelationOf(a.table)), a.context.Env)
		if err != nil {
			return err
		}
		if slices.Contains(used, n.Name) { // it goes with the column
			a.table.Checks = slices.DeleteFunc(a.table.Checks, func(c catalog.Check) bool { return c.Name == k.Name })
		}
	}
	setText(&a.table.Defaults, f.ID, "")
	setText(&a.table.Generated, f.ID, "")
	setText(&a.table.Comments, f.ID, "")
	if err := a.dropColumnForeign(n, f); err != nil {
		return err
	}
	dropColumnIndexes(a.table, f)
	a.also = append(a.also, func(txn *catalog.Txn) error { return dropOwned(txn, a.table.Face(), f.ID) })
	if slices.Contains(a.table.Current.Key, f.ID) { // it goes with the column
		a.table.KeyName = ""
		return a.rekey(list, nil)
	}
	return a.evolve(list, key)
}

func (a *alteration) setDefault(n *pg.AlterTableCmd) error {
	f, err := a.find(n.Name)
	if err != nil {
		return err
	}
	if a.table.Generated[f.ID] != "" {
		return errGenerated(a.table, n.Name, n.Def == nil)
	}
	text := ""
	if n.Def != nil {
		nf := schema.NewField{Name: f.Name, OID: f.OID, TypMod: f.TypMod, Type: f.Type}
		if text, err = defaultText(n.Def, &nf, a.context.Env); err != nil {
			return err
		}
	}
	setText(&a.table.Defaults, f.ID, text)
	return nil
}

func (a *alteration) setNotNull(name string, on bool) error {
	f, err := a.find(name)
	if err != nil {
		return err
	}
	if !on && slices.Contains(a.table.Current.Key, f.ID) {
		return pgerr.New(codes.InvalidTableDefinition, "column \"%s\" is in a primary key", name)
	}
	if on && !f.NotNull {
		if !a.asked(name) {
			return errSplit
		}
		e := pgerr.New(codes.NotNullViolation, "column \"%s\" of relation \"%s\" contains null values", name, a.table.Name)
		e.Column = name
		a.prove(" WHERE "+quote.NameIfNeeded(name)+" IS NULL", e)
	}
	list, key := a.fields()
	for i := range list {
		if list[i].Name == name {
			list[i].NotNull = on
		}
	}
	return a.evolve(list, key)
}

// asked says whether a column was there before the statement, under its name.
func (a *alteration) asked(name string) bool {
	return slices.ContainsFunc(a.rel.Columns, func(c pgsql.RelationColumn) bool { return c.Name == name })
}

var errSplit = unsupported("a condition of rows on a column that the same statement adds is not supported").
	WithHint("Add the column in a statement of its own.")

func (a *alteration) addCheck(k *pg.Constraint, column string) error {
	if k.SkipValidation {
		return unsupported("NOT VALID is not supported")
	}
	if err := addCheck(a.table, k, column, a.context.Env); err != nil {
		return err
	}
	added := a.table.Checks[len(a.table.Checks)-1]
	used, err := pgsql.CheckCondition(added.SQL, a.context.Env.WithUserTypes(RelationOf(a.table)), a.context.Env)
	if err != nil {
		return err
	}
	for _, name := range used {
		if !a.asked(name) {
			return errSplit
		}
	}
	a.proveCheck(added.Name, "SELECT 1 FROM ONLY "+a.place()+" WHERE NOT ("+added.SQL+") LIMIT 1")
	return nil
}

func (a *alteration) dropConstraint(n *pg.AlterTableCmd) error {
	at := slices.IndexFunc(a.table.Checks, func(k catalog.Check) bool { return k.Name == n.Name })
	switch {
	case at >= 0:
		a.table.Checks = slices.Delete(slices.Clone(a.table.Checks), at, at+1)
		return nil
	case slices.ContainsFunc(a.table.Foreign, func(k catalog.ForeignKey) bool { return k.Name == n.Name }):
		at := slices.IndexFunc(a.table.Foreign, func(k catalog.ForeignKey) bool { return k.Name == n.Name })
		a.hold(a.table.Foreign[at].Table)
		a.table.Foreign = slices.Delete(slices.Clone(a.table.Foreign), at, at+1)
		return nil
	case constraintIndex(a.table, n.Name) >= 0:
		at := constraintIndex(a.table, n.Name)
		if err := a.releaseIndex(n, a.table.Indexes[at].ID); err != nil {
			return err
		}
		a.table.Indexes = slices.Delete(slices.Clone(a.table.Indexes), at, at+1)
		return nil
	case a.table.Current.HasKey() && n.Name == a.table.PrimaryKey():
		if err := a.releaseIndex(n, 0); err != nil {
			return err
		}
		return a.dropPrimaryKey()
	case n.MissingOk:
		a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion,
			"constraint \"%s\" of relation \"%s\" does not exist, skipping", n.Name, a.table.Name))
		return nil
	}
	return pgerr.New(codes.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", n.Name, a.table.Name)
}

// rename plans the forms of ALTER … RENAME.
func (c *Context) rename(n *pg.RenameStmt) (*Change, error) {
	kind := n.RenameType
	switch kind {
	case pg.ObjectType_OBJECT_SEQUENCE:
		return c.moveSequence(n.Relation, n.MissingOk, func(s *sequence.Sequence) { s.Name = n.Newname })
	case pg.ObjectType_OBJECT_INDEX:
		return c.renameIndex(n)
	case pg.ObjectType_OBJECT_TYPE:
		return c.renameType(n)
	case pg.ObjectType_OBJECT_COLUMN:
		kind = n.RelationType
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_TABCONSTRAINT, pg.ObjectType_OBJECT_MATVIEW:
	default:
		return nil, unsupported("%s is not supported", pgsql.Word(&pg.Node{Node: &pg.Node_RenameStmt{RenameStmt: n}}))
	}
	view, tag, err := c.isView(n.Relation, kind)
	if err != nil {
		return nil, err
	}
	switch {
	case view && n.RenameType == pg.ObjectType_OBJECT_COLUMN:
		return c.renameViewColumn(n.Relation, tag, n.Subname, n.Newname)
	case view && n.RenameType != pg.ObjectType_OBJECT_TABCONSTRAINT:
		return c.moveView(n.Relation, tag, func(v *catalog.View) { v.Name = n.Newname })
	}
	a, missing, err := c.alteredTable(n.Relation, n.MissingOk, tag)
	if err != nil {
		return nil, err
	}
	if missing {
		return a.out, nil
	}
	switch n.RenameType {
	case pg.ObjectType_OBJECT_TABLE, pg.ObjectType_OBJECT_VIEW, pg.ObjectType_OBJECT_MATVIEW:
		err = a.moveTo(a.table.Schema, n.Newname)
	case pg.ObjectType_OBJECT_COLUMN:
		err = a.renameColumn(n.Subname, n.Newname)
	default:
		at := slices.IndexFunc(a.table.Checks, func(k catalog.Check) bool { return k.Name == n.Subname })
		if u := constraintIndex(a.table, n.Subname); u >= 0 {
			if a.context.indexNames(a.table)(n.Newname) {
				return nil, existsError(n.Newname)
			}
			a.table.Indexes = renamed(slices.Clone(a.table.Indexes), a.table.Indexes[u].ID, n.Newname)
			return a.done("table altered"), nil
		}
		if a.table.Current.HasKey() && n.Subname == a.table.PrimaryKey() {
			if err := a.renamePrimaryKey(n.Newname); err != nil {
				return nil, err
			}
			return a.done("table altered"), nil
		}
		if a.renameForeign(n.Subname, n.Newname) {
			return a.done("table altered"), nil
		}
		if at < 0 {
			return nil, pgerr.New(codes.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", n.Subname, a.table.Name)
		}
		if hasConstraint(a.table, n.Newname) {
			return nil, errConstraintExists(a.table, n.Newname)
		}
		a.table.Checks = slices.Clone(a.table.Checks)
		a.table.Checks[at].Name = n.Newname
	}
	if err != nil {
		return nil, err
	}
	return a.done("table renamed"), nil
}

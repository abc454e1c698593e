package define

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/foreign"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// foreignKey makes a foreign key of a table that has its columns; a column that the constraint stands
// with is its FkAttrs.
func (c *Context) foreignKey(t *catalog.Table, n *pg.Constraint) (catalog.ForeignKey, *catalog.Table, error) {
	k := catalog.ForeignKey{
		Name: n.Conname, OnDelete: cmp.Or(catalog.ForeignAction(n.FkDelAction), catalog.ForeignNoAction),
		OnUpdate: cmp.Or(catalog.ForeignAction(n.FkUpdAction), catalog.ForeignNoAction), Full: n.FkMatchtype == "f",
		Deferrable: n.Deferrable || n.Initdeferred, Deferred: n.Initdeferred, Invalid: n.SkipValidation,
	}
	if n.FkMatchtype == "p" {
		return k, nil, unsupported("MATCH PARTIAL not yet implemented")
	}
	parent, err := c.parent(t, n.Pktable)
	if err != nil {
		return k, nil, err
	}
	names := stringsOf(n.FkAttrs)
	if k.Fields, err = foreignFields(t, names); err != nil {
		return k, nil, err
	}
	if err = refer(&k, parent, stringsOf(n.PkAttrs)); err != nil {
		return k, nil, err
	}
	if len(k.Fields) != len(k.Refs) {
		return k, nil, pgerr.New(codes.InvalidForeignKey, "number of referencing and referenced columns for foreign key disagree")
	}
	if err := checkGeneratedKey(t, k); err != nil {
		return k, nil, err
	}
	if k.Name == "" {
		k.Name = freeName(t.Name, strings.Join(names, "_"), "_fkey", func(name string) bool { return hasConstraint(t, name) })
	} else if hasConstraint(t, k.Name) {
		return k, nil, errConstraintExists(t, k.Name)
	}
	if err := comparable(t, parent, k); err != nil {
		return k, nil, err
	}
	for _, name := range stringsOf(n.FkDelSetCols) {
		f, ok := t.Current.FieldByName(name)
		switch {
		case !ok:
			return k, nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" referenced in foreign key constraint does not exist", name)
		case !slices.Contains(k.Fields, f.ID):
			return k, nil, pgerr.New(codes.InvalidColumnReference, "column \"%s\" referenced in ON DELETE SET action must be part of foreign key", name)
		}
		k.Set = append(k.Set, f.ID)
	}
	k.ID, err = c.reserve(t.Schema)
	return k, parent, err
}

func stringsOf(list []*pg.Node) (out []string) {
	for _, n := range list {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}

// parent is the table that a foreign key of a table refers to.
func (c *Context) parent(t *catalog.Table, r *pg.RangeVar) (*catalog.Table, error) {
	if r.Relname == t.Name && (r.Schemaname == t.Schema || r.Schemaname == "") {
		return t, nil // it may not be there yet
	}
	rel, err := pgsql.FindRelation(r, c.Env)
	switch {
	case err != nil:
		return nil, err
	case rel.View != "" || rel.Sequence || rel.Materialized:
		return nil, pgerr.New(codes.WrongObjectType, "referenced relation \"%s\" is not a table", rel.Name)
	case rel.System:
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", rel.Name)
	case !rel.Own:
		return nil, unsupported("foreign keys to tables that a pipeline fills are not supported").
			WithDetail("The rows of \"%s\" come and go at the source, which nothing here can refuse.", rel.Schema+"."+rel.Name)
	case rel.Temp && t.Temp == "":
		return nil, pgerr.New(codes.InvalidTableDefinition, "constraints on permanent tables may reference only permanent tables")
	case !rel.Temp && t.Temp != "":
		return nil, pgerr.New(codes.InvalidTableDefinition, "constraints on temporary tables may reference only temporary tables")
	}
	return c.Snapshot.TableByName(rel.Schema, rel.Name)
}

func foreignFields(t *catalog.Table, names []string) (out []int32, err error) {
	for _, name := range names {
		f, ok := t.Current.FieldByName(name)
		if !ok {
			return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" referenced in foreign key constraint does not exist", name)
		}
		out = append(out, f.ID)
	}
	return out, nil
}

// refer has a foreign key refer to columns of a table, which are its key or unique; none: its key.
func refer(k *catalog.ForeignKey, parent *catalog.Table, names []string) (err error) {
	k.Table = parent.Face()
	if len(names) == 0 {
		if !parent.Current.HasKey() {
			return pgerr.New(codes.UndefinedObject, "there is no primary key for referenced table \"%s\"", parent.Name)
		}
		k.Refs = slices.Clone(parent.Current.Key)
		return nil
	}
	if k.Refs, err = foreignFields(parent, names); err != nil {
		return err
	}
	same := func(fields []int32) bool {
		return len(fields) == len(k.Refs) && !slices.ContainsFunc(fields, func(id int32) bool { return !slices.Contains(k.Refs, id) })
	}
	if same(parent.Current.Key) {
		return nil
	}
	at := slices.IndexFunc(parent.Indexes, func(x catalog.Index) bool { return x.Unique && !x.Partial() && same(x.Fields) })
	if at < 0 {
		return pgerr.New(codes.InvalidForeignKey, "there is no unique constraint matching given keys for referenced table \"%s\"", parent.Name)
	}
	if at = slices.IndexFunc(parent.Indexes, func(x catalog.Index) bool { return x.Unique && !x.Partial() && !x.Deferrable && same(x.Fields) }); at < 0 {
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "cannot use a deferrable unique constraint for referenced table \"%s\"", parent.Name)
	}
	k.Index = parent.Indexes[at].ID
	return nil
}

// families are types whose values can be equal to each other's.
var families = map[uint32]int{
	pgsql.OIDInt2: 1, pgsql.OIDInt4: 1, pgsql.OIDInt8: 1, pgsql.OIDText: 2, pgsql.OIDVarchar: 2, pgsql.OIDFloat4: 3, pgsql.OIDFloat8: 3,
}

// comparable refuses a foreign key whose columns cannot be equal.
func comparable(child, parent *catalog.Table, k catalog.ForeignKey) error {
	for i, id := range k.Fields {
		a, _ := child.Current.Field(id)
		b, _ := parent.Current.Field(k.Refs[i])
		from, to := pgsql.Type{OID: a.OID, Mod: a.TypMod}, pgsql.Type{OID: b.OID, Mod: b.TypMod}
		bare := func(t pgsql.Type) string { return pgsql.Type{OID: t.OID, Mod: -1}.Name() }
		if family := families[a.OID]; a.OID != b.OID && (family == 0 || family != families[b.OID]) {
			return pgerr.New(codes.DatatypeMismatch, "foreign key constraint \"%s\" cannot be implemented", k.Name).
				WithDetail("Key columns \"%s\" and \"%s\" are of incompatible types: %s and %s.", a.Name, b.Name, bare(from), bare(to))
		}
		if a.OID != pgsql.OIDNumeric && a.OID != pgsql.OIDBpchar || from == to {
			continue
		}
		return unsupported("a foreign key from %s to %s is not supported", from.Name(), to.Name()).WithHint("Give both columns one type.")
	}
	return nil
}

// retyped refuses foreign keys whose columns cannot be equal any more.
func (a *alteration) retyped(f schema.Field) error {
	for _, k := range a.table.Foreign {
		parent, err := a.context.Snapshot.TableByFace(k.Table)
		if err != nil || !slices.Contains(k.Fields, f.ID) {
			continue
		}
		if k.Table == a.table.Face() {
			parent = a.table
		}
		if err := comparable(a.table, parent, k); err != nil {
			return err
		}
	}
	for _, r := range a.context.referrers(a.table.Face(), func(k catalog.ForeignKey) bool { return slices.Contains(k.Refs, f.ID) }) {
		if err := comparable(r.table, a.table, r.key); r.table.Face() != a.table.Face() && err != nil {
			return err
		}
	}
	return nil
}

// pair is a foreign key as the analysis knows it, with the names that its tables have.
func pair(child, parent *catalog.Table, k catalog.ForeignKey) *pgsql.Foreign {
	f := &pgsql.Foreign{Name: k.Name, Child: RelationOf(child), Parent: RelationOf(parent)}
	for i, id := range k.Fields {
		f.Columns, f.Refs = append(f.Columns, child.Current.Index(id)), append(f.Refs, parent.Current.Index(k.Refs[i]))
	}
	return f
}

// addForeign is ADD FOREIGN KEY.
func (a *alteration) addForeign(n *pg.Constraint) error {
	k, parent, err := a.context.foreignKey(a.table, n)
	if err != nil {
		return err
	}
	a.include(k, parent)
	if k.Invalid {
		return nil
	}
	return a.proveForeign(k, parent)
}

// include adds a foreign key, whose other table is to stay as it is meanwhile.
func (a *alteration) include(k catalog.ForeignKey, parent *catalog.Table) {
	a.out.Refers = append(a.out.Refers, Reference{parent, k.Refs})
	a.table.Foreign = append(slices.Clip(a.table.Foreign), k)
	a.hold(k.Table)
}

// hold has nobody else write a table while the change is made.
func (a *alteration) hold(id change.TableID) {
	if a.table.Temp == "" && !slices.Contains(a.out.Alters, id) {
		a.out.Alters = append(a.out.Alters, id)
	}
}

// proveForeign has all rows that there are have one in the other table.
func (a *alteration) proveForeign(k catalog.ForeignKey, parent *catalog.Table) error {
	f := pair(a.table, parent, k)
	for _, i := range f.Columns {
		if !a.asked(f.Child.Columns[i].Name) {
			return errSplit
		}
	}
	f.Child.Schema, f.Child.Name = a.rel.Schema, a.rel.Name
	if k.Full {
		a.out.Proofs = append(a.out.Proofs, Proof{SQL: foreign.MixedProof(f), Err: foreign.Mixed(f)})
	}
	a.out.Proofs = append(a.out.Proofs, Proof{
		SQL: foreign.Proof(f), Err: foreign.Absent(f), Detail: func(values []string) string { return foreign.AbsentKey(f, values) },
	})
	return nil
}

// validate is VALIDATE CONSTRAINT.
func (a *alteration) validate(name string) error {
	at := slices.IndexFunc(a.table.Foreign, func(k catalog.ForeignKey) bool { return k.Name == name })
	if at < 0 {
		if hasConstraint(a.table, name) && constraintIndex(a.table, name) < 0 && name != a.table.PrimaryKey() {
			return nil // checks are valid from the start
		}
		if hasConstraint(a.table, name) {
			return pgerr.New(codes.WrongObjectType, "constraint \"%s\" of relation \"%s\" is not a foreign key or check constraint", name, a.table.Name)
		}
		return pgerr.New(codes.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", name, a.table.Name)
	}
	if !a.table.Foreign[at].Invalid {
		return nil
	}
	parent, err := a.context.Snapshot.TableByFace(a.table.Foreign[at].Table)
	if err != nil {
		return err
	}
	a.table.Foreign = slices.Clone(a.table.Foreign)
	a.table.Foreign[at].Invalid = false
	a.hold(a.table.Foreign[at].Table)
	return a.proveForeign(a.table.Foreign[at], parent)
}

// alterForeign is ALTER CONSTRAINT.
func (a *alteration) alterForeign(n *pg.Constraint) error {
	at := slices.IndexFunc(a.table.Foreign, func(k catalog.ForeignKey) bool { return k.Name == n.Conname })
	switch {
	case at < 0 && hasConstraint(a.table, n.Conname):
		return pgerr.New(codes.WrongObjectType, "constraint \"%s\" of relation \"%s\" is not a foreign key constraint", n.Conname, a.table.Name)
	case at < 0:
		return pgerr.New(codes.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", n.Conname, a.table.Name)
	}
	a.table.Foreign = slices.Clone(a.table.Foreign)
	k := &a.table.Foreign[at]
	k.Deferrable, k.Deferred = n.Deferrable || n.Initdeferred, n.Initdeferred
	a.hold(k.Table)
	return nil
}

// referrer is a foreign key, and its table.
type referrer struct {
	table *catalog.Table
	key   catalog.ForeignKey
}

// referrers are the foreign keys that refer to a table.
func (c *Context) referrers(id change.TableID, of func(catalog.ForeignKey) bool) (out []referrer) {
	for _, t := range c.Snapshot.AllTables() {
		for _, k := range t.Foreign {
			if k.Table == id && of(k) {
				out = append(out, referrer{t, k})
			}
		}
	}
	return out
}

func (r referrer) show(c *Context) string {
	return "constraint " + r.key.Name + " on table " + shownName(r.table.Schema, r.table.Name, c.Env)
}

// release has foreign keys go that refer to something of the table which goes, or refuses that. what
// names it, and on what they depend.
func (a *alteration) release(what, on string, behavior pg.DropBehavior, of func(catalog.ForeignKey) bool) error {
	list := a.context.referrers(a.table.Face(), of)
	if len(list) == 0 {
		return nil
	}
	var why []string
	for _, r := range list {
		why = append(why, r.show(a.context)+" depends on "+on)
	}
	if behavior != pg.DropBehavior_DROP_CASCADE {
		return pgerr.New(codes.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
			WithDetail("%s", strings.Join(why, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	a.out.Notices = append(a.out.Notices, cascades(a.context, list)...)
	for _, r := range list {
		if r.table.Face() == a.table.Face() {
			a.table.Foreign = withoutForeign(a.table.Foreign, r.key.ID)
			continue
		}
		a.hold(r.table.Face())
		a.also = append(a.also, func(txn *catalog.Txn) error { return dropForeign(txn, r.table.Face(), r.key.ID) })
	}
	return nil
}

// releaseIndex is release of a unique constraint, by its number, or of the key.
func (a *alteration) releaseIndex(n *pg.AlterTableCmd, id change.TableID) error {
	of := func(k catalog.ForeignKey) bool { return k.Index == id }
	return a.release("constraint "+n.Name+" on table "+shownName(a.table.Schema, a.table.Name, a.context.Env), "index "+n.Name, n.Behavior, of)
}

// dropColumnForeign has the foreign keys go that a column is of, and those that refer to it.
func (a *alteration) dropColumnForeign(n *pg.AlterTableCmd, f schema.Field) error {
	name := "column " + n.Name + " of table " + shownName(a.table.Schema, a.table.Name, a.context.Env)
	lost := func(id change.TableID) bool { // an index that goes with the column
		at := slices.IndexFunc(a.table.Indexes, func(x catalog.Index) bool { return x.ID == id })
		return id == 0 && slices.Contains(a.table.Current.Key, f.ID) || at >= 0 && slices.Contains(a.table.Indexes[at].Fields, f.ID)
	}
	of := func(k catalog.ForeignKey) bool { return slices.Contains(k.Refs, f.ID) || lost(k.Index) }
	if err := a.release(name, name, n.Behavior, of); err != nil {
		return err
	}
	for _, k := range a.table.Foreign {
		if slices.Contains(k.Fields, f.ID) {
			a.hold(k.Table)
		}
	}
	a.table.Foreign = slices.DeleteFunc(slices.Clone(a.table.Foreign), func(k catalog.ForeignKey) bool { return slices.Contains(k.Fields, f.ID) })
	return nil
}

// addNewForeign adds the foreign keys of a column that is added in the same statement: rows that
// there are have all the same in it.
func (a *alteration) addNewForeign(d *definition, f schema.NewField) error {
	for _, n := range d.foreign {
		k, parent, err := a.context.foreignKey(a.table, n)
		if err != nil {
			return err
		}
		a.include(k, parent)
		if f.Initial != nil && !k.Invalid {
			a.prove("", unsupported("adding a column with both a default and a foreign key to a table with rows is not supported").
				WithHint("Add the column, then ADD FOREIGN KEY."))
		}
	}
	return nil
}

// renameForeign gives a foreign key another name, if there is one of the old.
func (a *alteration) renameForeign(from, to string) bool {
	at := slices.IndexFunc(a.table.Foreign, func(k catalog.ForeignKey) bool { return k.Name == from })
	if at >= 0 && !hasConstraint(a.table, to) {
		a.table.Foreign = slices.Clone(a.table.Foreign)
		a.table.Foreign[at].Name = to
		a.hold(a.table.Foreign[at].Table)
		return true
	}
	return false
}

// cascades are the notices of foreign keys that go with something.
func cascades(c *Context, list []referrer) []*pgerr.Error {
	if len(list) == 1 {
		return []*pgerr.Error{notice(codes.SuccessfulCompletion, "drop cascades to %s", list[0].show(c))}
	}
	var all []string
	for _, r := range list {
		all = append(all, "drop cascades to "+r.show(c))
	}
	return []*pgerr.Error{notice(codes.SuccessfulCompletion, "drop cascades to %d other objects", len(list)).WithDetail("%s", strings.Join(all, "\n"))}
}

func withoutForeign(list []catalog.ForeignKey, id change.TableID) []catalog.ForeignKey {
	return slices.DeleteFunc(slices.Clone(list), func(k catalog.ForeignKey) bool { return k.ID == id })
}

// dropForeign takes a foreign key from a table; a table that is gone has none.
func dropForeign(txn *catalog.Txn, table, id change.TableID) error {
	t, err := txn.TableByFace(table)
	if err != nil {
		return gone(err, "table", fmt.Sprint(table))
	}
	next := t.Clone()
	next.Foreign = withoutForeign(t.Foreign, id)
	return txn.PutTable(next)
}

// upheld refuses foreign keys whose other table has been changed meanwhile.
func upheld(txn *catalog.Txn, t *catalog.Table) error {
	for _, k := range t.Foreign {
		parent, err := txn.TableByFace(k.Table)
		if err != nil {
			return gone(err, "table", fmt.Sprint(k.Table))
		}
		unique := k.Index == 0 && parent.Current.HasKey() || slices.ContainsFunc(parent.Indexes, func(x catalog.Index) bool { return x.ID == k.Index })
		if !unique || slices.ContainsFunc(k.Refs, func(id int32) bool { return parent.Current.Index(id) < 0 }) {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "table \"%s\" was changed meanwhile", parent.Name).WithHint("Run the statement again.")
		}
	}
	return nil
}

// withAttributes are the constraints of a column, each with what stands behind it of when it is
// checked.
func withAttributes(list []*pg.Node) (out []*pg.Constraint) {
	for _, n := range list {
		c := n.GetConstraint()
		attribute, ok := attributes[c.Contype]
		if !ok || len(out) == 0 {
			out = append(out, c)
			continue
		}
		last := proto.Clone(out[len(out)-1]).(*pg.Constraint)
		attribute(last)
		out[len(out)-1] = last
	}
	return out
}

// attributes are those that the parser gives for constraints of their own.
var attributes = map[pg.ConstrType]func(*pg.Constraint){
	pg.ConstrType_CONSTR_ATTR_DEFERRABLE:     func(c *pg.Constraint) { c.Deferrable = true },
	pg.ConstrType_CONSTR_ATTR_NOT_DEFERRABLE: func(*pg.Constraint) {},
	pg.ConstrType_CONSTR_ATTR_DEFERRED:       func(c *pg.Constraint) { c.Deferrable, c.Initdeferred = true, true },
	pg.ConstrType_CONSTR_ATTR_IMMEDIATE:      func(*pg.Constraint) {},
}

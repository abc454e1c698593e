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
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// unique is a UNIQUE constraint of a table that is being defined: "" for a name that is
// PostgreSQL's.
type unique struct {
	name    string
	columns []string
	// index says that it was made with CREATE UNIQUE INDEX.
	index bool
	// nullsEqual is NULLS NOT DISTINCT.
	nullsEqual           bool
	deferrable, deferred bool
	// expressions are what it is of where columns has "", at the names that they give; predicate is a
	// condition that where cannot say, and uses are the columns that both name.
	expressions []schema.KeyExpression
	predicate   string
	uses        []string
	// where are what the rows meet that it is of, by the table's columns.
	where []condition
	// comment is that on its index.
	comment string
}

// condition is what rows meet in a column.
type condition struct {
	column string
	test   schema.RowTest
}

// likeUniques adds those of another table, under names of their own.
func (d *definition) likeUniques(rel *pgsql.Relation) error {
	for _, u := range rel.Uniques {
		x := unique{index: !u.Constraint, nullsEqual: u.NullsEqual, predicate: u.Predicate, deferrable: u.Deferrable, deferred: u.Deferred}
		for _, i := range u.Columns {
			name := ""
			if i >= 0 {
				name = rel.Columns[i].Name
			}
			x.columns = append(x.columns, name)
		}
		for _, e := range u.Expressions {
			made, err := keyExpression(pgsql.IndexPart{SQL: e.Generated, Name: e.Name, Type: e.Type, Collation: e.Collation})
			if err != nil {
				return err
			}
			x.expressions = append(x.expressions, made)
		}
		for _, i := range u.Uses {
			x.uses = append(x.uses, rel.Columns[i].Name)
		}
		x.where = conditionsOf(rel, u.Where)
		d.uniques = append(d.uniques, x)
	}
	return nil
}

// keyExpression is an expression as a unique index has it.
func keyExpression(p pgsql.IndexPart) (schema.KeyExpression, error) {
	f, err := newField(p.Name, p.Type)
	if err != nil {
		return schema.KeyExpression{}, err
	}
	return schema.KeyExpression{SQL: p.SQL, Name: p.Name, OID: f.OID, TypMod: f.TypMod, Type: f.Type, Collation: p.Collation}, nil
}

// names are what an index calls its columns.
func (u unique) names() (out []string) {
	list := u.expressions
	for _, name := range u.columns {
		if name == "" {
			name, list = list[0].Name, list[1:]
		}
		base := name
		for i := 1; slices.Contains(out, name); i++ {
			name = fmt.Sprintf("%s%d", base, i)
		}
		out = append(out, name)
	}
	return out
}

func conditionsOf(rel *pgsql.Relation, list []pgsql.Condition) (out []condition) {
	for _, c := range list {
		out = append(out, condition{column: rel.Columns[c.Column].Name, test: c.Test})
	}
	return out
}

// uniqueOf reads a UNIQUE constraint; column is that which it stands with, "" for none.
func uniqueOf(n *pg.Constraint, column string) (unique, error) {
	switch {
	case n.Indexname != "":
		return unique{}, unsupported("UNIQUE USING INDEX is not supported").WithHint("Add the constraint with its columns.")
	case len(n.Including) > 0, n.WhereClause != nil:
		return unique{}, unsupported("such UNIQUE constraints are not supported")
	}
	return unique{name: n.Conname, columns: columnsOf(n, column), nullsEqual: n.NullsNotDistinct, deferrable: n.Deferrable || n.Initdeferred, deferred: n.Initdeferred}, nil
}

// constraintWords name kinds of constraints that we do not have.
var constraintWords = map[pg.ConstrType]string{
	pg.ConstrType_CONSTR_EXCLUSION: "EXCLUDE", pg.ConstrType_CONSTR_IDENTITY: "identity columns",
}

func refuseConstraint(c *pg.Constraint) error {
	word := constraintWords[c.Contype]
	if word == "" {
		word = "such constraints"
	}
	return unsupported("%s of tables is not supported", word).
		WithHint("Tables here may have a PRIMARY KEY, UNIQUE, NOT NULL, CHECK, DEFAULT and identities.")
}

// columnsOf are the columns of a constraint; column is that which it stands with, "" for none.
func columnsOf(n *pg.Constraint, column string) (out []string) {
	if column != "" {
		out = []string{column}
	}
	for _, k := range n.Keys {
		out = append(out, k.GetString_().GetSval())
	}
	return out
}

// indexNames says which names indexes of a table cannot have.
func (c *Context) indexNames(t *catalog.Table) func(string) bool {
	return func(name string) bool {
		if name == t.Name || t.Current.HasKey() && name == t.PrimaryKey() ||
			slices.ContainsFunc(t.Indexes, func(x catalog.Index) bool { return x.Name == name }) {
			return true
		}
		if _, exists := c.Env.Resolver.Relation(t.Schema, name); exists {
			return true
		}
		other, _ := c.index(t.Schema, name)
		return other != nil || c.keyIndex(&pg.RangeVar{Schemaname: t.Schema, Relname: name}) != nil
	}
}

// index finds an index by its name.
func (c *Context) index(schemaName, name string) (*catalog.Table, *catalog.Index) {
	for _, t := range c.Snapshot.AllTables() {
		if t.Schema != schemaName {
			continue
		}
		for i := range t.Indexes {
			if t.Indexes[i].Name == name {
				return t, &t.Indexes[i]
			}
		}
	}
	return nil, nil
}

// addUnique adds what makes values of columns unique to a table that has its columns.
func (c *Context) addUnique(t *catalog.Table, u unique, constraint bool) error {
	x := catalog.Index{
		Name: u.name, Unique: true, Constraint: constraint, NullsEqual: u.nullsEqual, Comments: catalog.IndexComments{Index: u.comment},
		Expressions: u.expressions, Predicate: u.predicate, Deferrable: u.deferrable, Deferred: u.deferred,
	}
	if err := c.checkExpressions(&x); err != nil {
		return err
	}
	for _, name := range u.uses {
		if f, ok := t.Current.FieldByName(name); ok && !slices.Contains(x.Uses, f.ID) {
			x.Uses = append(x.Uses, f.ID)
		}
	}
	for _, name := range u.columns {
		if name == "" {
			x.Fields = append(x.Fields, 0)
			continue
		}
		f, ok := t.Current.FieldByName(name)
		switch {
		case !ok && constraint:
			return pgerr.New(codes.UndefinedColumn, "column \"%s\" named in key does not exist", name)
		case !ok:
			return pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", name)
		case slices.Contains(x.Fields, f.ID) && constraint:
			return pgerr.New(codes.DuplicateColumn, "column \"%s\" appears twice in unique constraint", name)
		}
		nf := schema.NewField{Name: f.Name, OID: f.OID, TypMod: f.TypMod, Type: f.Type}
		if err := c.checkKeyType(&nf); err != nil {
			return err
		}
		x.Fields = append(x.Fields, f.ID)
	}
	for _, w := range u.where {
		if f, ok := t.Current.FieldByName(w.column); ok {
			x.Where = append(x.Where, catalog.Condition{Field: f.ID, Test: w.test})
		}
	}
	taken := c.indexNames(t)
	label := "_key"
	if !constraint {
		label = "_idx"
	}
	if x.Name == "" {
		x.Name = freeName(t.Name, strings.Join(u.names(), "_"), label, taken)
	} else if taken(x.Name) {
		return existsError(x.Name)
	}
	return c.addIndex(t, x)
}

// checkExpressions refuses expressions of types that keys cannot have.
func (c *Context) checkExpressions(x *catalog.Index) error {
	for _, e := range x.Expressions {
		if err := c.checkKeyType(&schema.NewField{Name: e.Name, OID: e.OID, TypMod: e.TypMod, Type: e.Type}); err != nil {
			return err
		}
	}
	return nil
}

// addIndex adds an index under a number of its own.
func (c *Context) addIndex(t *catalog.Table, x catalog.Index) (err error) {
	if x.ID, err = c.reserve(t.Schema); err != nil {
		return err
	}
	t.Indexes = append(slices.Clip(t.Indexes), x)
	return nil
}

// proveNewest has the rows that there are be unique by the newest index.
func (a *alteration) proveNewest() error {
	x := a.table.Indexes[len(a.table.Indexes)-1]
	p := proving{name: x.Name, nullsEqual: x.NullsEqual, where: x.WhereSQL(a.table.Current)}
	for _, id := range append(slices.Clip(x.Fields), x.Uses...) {
		if f, ok := a.table.Current.Field(id); ok && !a.asked(f.Name) {
			return errSplit
		}
	}
	list := x.Expressions
	for _, id := range x.Fields {
		if f, ok := a.table.Current.Field(id); ok {
			p.keys = append(p.keys, quote.NameIfNeeded(f.Name))
			continue
		}
		key := "(" + list[0].SQL + ")"
		if p.where != "" {
			key = "CASE WHEN " + p.where + " THEN " + key + " END"
		}
		p.keys, list = append(p.keys, key), list[1:]
	}
	p.shown = p.keys
	if len(x.Expressions) > 0 {
		p.shown = a.context.IndexColumns(a.table, x)
	}
	a.proveUnique(p)
	return nil
}

// addUniqueConstraint is ADD UNIQUE.
func (a *alteration) addUniqueConstraint(n *pg.Constraint) error {
	if n.Indexname != "" {
		return a.constrainIndex(n)
	}
	u, err := uniqueOf(n, "")
	if err != nil {
		return err
	}
	if u.name != "" && hasConstraint(a.table, u.name) && !a.context.indexNames(a.table)(u.name) {
		return errConstraintExists(a.table, u.name)
	}
	if err := a.context.addUnique(a.table, u, true); err != nil {
		return err
	}
	return a.proveNewest()
}

// constrainIndex is ADD UNIQUE USING INDEX.
func (a *alteration) constrainIndex(n *pg.Constraint) error {
	x, at, err := a.takeIndex(n)
	if err != nil {
		return err
	}
	name := cmp.Or(n.Conname, x.Name)
	switch {
	case name != x.Name && a.context.indexNames(a.table)(name):
		return existsError(name)
	case hasConstraint(a.table, name):
		return errConstraintExists(a.table, name)
	}
	x.Name, x.Constraint, x.Deferrable, x.Deferred = name, true, n.Deferrable || n.Initdeferred, n.Initdeferred
	a.table.Indexes = slices.Insert(a.table.Indexes, at, x)
	return nil
}

// createIndex plans CREATE INDEX.
func (c *Context) createIndex(n *pg.IndexStmt) (*Change, error) {
	a, _, err := c.alteredTable(n.Relation, false, "CREATE INDEX")
	if err != nil {
		return nil, err
	}
	taken := c.indexNames(a.table)
	switch {
	case n.Idxname != "" && taken(n.Idxname) && n.IfNotExists:
		return &Change{Tag: "CREATE INDEX", Notices: []*pgerr.Error{
			notice(codes.DuplicateRelation, "relation \"%s\" already exists, skipping", n.Idxname),
		}}, nil
	case n.Idxname != "" && taken(n.Idxname):
		return nil, existsError(n.Idxname)
	case n.NullsNotDistinct && !n.Unique:
		return nil, unsupported("NULLS NOT DISTINCT of an index that is not unique is not supported")
	}
	u, err := a.readIndex(n)
	if err != nil {
		return nil, err
	}
	if n.Unique {
		return a.createUnique(n, u)
	}
	x := catalog.Index{Name: n.Idxname, Expressions: u.expressions, Predicate: u.predicate}
	for _, name := range u.columns {
		f, ok := a.table.Current.FieldByName(name)
		if !ok && name != "" {
			return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", name)
		}
		x.Fields = append(x.Fields, f.ID)
	}
	for _, name := range u.uses {
		if f, ok := a.table.Current.FieldByName(name); ok {
			x.Uses = append(x.Uses, f.ID)
		}
	}
	if !plainIndex(n) || len(u.expressions) > 0 || u.predicate != "" {
		if x.Definition, err = pgsql.IndexText(n); err != nil {
			return nil, err
		}
	}
	if x.Name == "" {
		x.Name = freeName(a.table.Name, strings.Join(u.names(), "_"), "_idx", taken)
	}
	if err := c.addIndex(a.table, x); err != nil {
		return nil, err
	}
	a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion, "index \"%s\" is a name only: no index is kept, and queries need none", x.Name))
	return a.done("index created"), nil
}

// readIndex reads what an index is of. One that is not unique may be of what is not known to be
// immutable: it is a name only.
func (a *alteration) readIndex(n *pg.IndexStmt) (u unique, err error) {
	u = unique{name: n.Idxname, nullsEqual: n.NullsNotDistinct}
	rel := a.context.Env.WithUserTypes(RelationOf(a.table))
	settle := func(x *pg.Node, part string) (pgsql.IndexPart, error) {
		p, err := pgsql.SettleIndex(x, rel, part, a.context.SQL, a.context.Env)
		if e, ok := pgerr.As(err); ok && e.Code == codes.FeatureNotSupported && !n.Unique && !strings.HasPrefix(e.Message, "cannot use") &&
			!strings.HasPrefix(e.Message, "set-returning") && !strings.HasPrefix(e.Message, "index creation") {
			p, err = pgsql.PartAsWritten(x)
		}
		for _, name := range p.Columns {
			if !slices.Contains(u.uses, name) {
				u.uses = append(u.uses, name)
			}
		}
		return p, err
	}
	for _, p := range n.IndexParams {
		e := p.GetIndexElem()
		if f := e.Expr.GetColumnRef().GetFields(); len(f) == 1 && f[0].GetString_() != nil {
			e.Name, e.Expr = f[0].GetString_().Sval, nil
		}
		u.columns = append(u.columns, e.Name)
		if e.Name != "" {
			if _, ok := a.table.Current.FieldByName(e.Name); !ok {
				return u, pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", e.Name)
			}
			continue
		}
		part, err := settle(e.Expr, pgsql.InIndex)
		if err != nil {
			return u, err
		}
		x := schema.KeyExpression{SQL: part.SQL, Name: part.Name, OID: part.Type.OID, TypMod: part.Type.Mod, Collation: part.Collation}
		if n.Unique {
			if x, err = keyExpression(part); err != nil {
				return u, err
			}
		}
		u.expressions = append(u.expressions, x)
	}
	if n.WhereClause == nil {
		return u, nil
	}
	part, err := settle(n.WhereClause, pgsql.InPredicate)
	if err != nil {
		return u, err
	}
	if list, ok := pgsql.ReadConditions(rel, n.WhereClause); ok && n.Unique {
		u.where = conditionsOf(rel, list)
		return u, nil
	}
	u.predicate = part.SQL
	return u, nil
}

// createUnique is CREATE UNIQUE INDEX.
func (a *alteration) createUnique(n *pg.IndexStmt, u unique) (*Change, error) {
	if !plainIndex(n) {
		return nil, unsupported("unique indexes with options are not supported").
			WithHint("CREATE UNIQUE INDEX … ON table (column or expression, …) is.")
	}
	if err := a.context.addUnique(a.table, u, false); err != nil {
		return nil, err
	}
	if err := a.proveNewest(); err != nil {
		return nil, err
	}
	return a.done("index created"), nil
}

// plainIndex says that an index is one of its columns and expressions alone, in ascending order.
func plainIndex(n *pg.IndexStmt) bool {
	if len(n.IndexIncludingParams) > 0 || len(n.Options) > 0 || n.AccessMethod != "" && n.AccessMethod != "btree" {
		return false
	}
	return !slices.ContainsFunc(n.IndexParams, func(p *pg.Node) bool {
		e := p.GetIndexElem()
		return len(e.Opclass) > 0 || len(e.Collation) > 0 || e.Ordering > pg.SortByDir_SORTBY_ASC || e.NullsOrdering > pg.SortByNulls_SORTBY_NULLS_DEFAULT
	})
}

// renameInIndexes gives a column another name in the expressions and predicates of indexes.
func (a *alteration) renameInIndexes(from, to string) (err error) {
	a.table.Indexes = slices.Clone(a.table.Indexes)
	for i := range a.table.Indexes {
		x := &a.table.Indexes[i]
		x.Expressions = slices.Clone(x.Expressions)
		for k := range x.Expressions {
			if x.Expressions[k].SQL, err = pgsql.RenameColumn(x.Expressions[k].SQL, from, to); err != nil {
				return fmt.Errorf("rename column in index %s: %w", quote.Name(x.Name), err)
			}
		}
		if x.Predicate != "" {
			if x.Predicate, err = pgsql.RenameColumn(x.Predicate, from, to); err != nil {
				return fmt.Errorf("rename column in index %s: %w", quote.Name(x.Name), err)
			}
		}
		if x.Definition != "" {
			if x.Definition, err = pgsql.RenameInIndex(x.Definition, from, to); err != nil {
				return fmt.Errorf("rename column in index %s: %w", quote.Name(x.Name), err)
			}
		}
	}
	return nil
}

// dropIndexes plans DROP INDEX.
func (c *Context) dropIndexes(n *pg.DropStmt) (*Change, error) {
	out := &Change{Tag: "DROP INDEX"}
	temp := false
	for _, o := range n.Objects {
		r := rangeVar(o)
		t, x := c.findIndex(r)
		switch {
		case x == nil && c.keyIndex(r) != nil:
			of := c.keyIndex(r)
			return nil, requiredIndex(r.Relname, r.Relname, shownName(of.Schema, of.Name, c.Env))
		case x == nil && n.MissingOk:
			out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "index \"%s\" does not exist, skipping", r.Relname))
			continue
		case x == nil:
			return nil, pgerr.New(codes.UndefinedObject, "index \"%s\" does not exist", r.Relname)
		case x.Constraint:
			return nil, requiredIndex(x.Name, x.Name, shownName(t.Schema, t.Name, c.Env))
		}
		temp = temp || c.isTemp(t.Schema)
		out.Alters = append(out.Alters, t.Face())
		list := c.referrers(t.Face(), func(k catalog.ForeignKey) bool { return k.Index == x.ID })
		if len(list) > 0 && n.Behavior != pg.DropBehavior_DROP_CASCADE {
			return nil, pgerr.New(codes.DependentObjectsStillExist, "cannot drop index %s because other objects depend on it", x.Name).
				WithDetail("%s depends on index %s", list[0].show(c), x.Name).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
		}
		if len(list) > 0 {
			return nil, unsupported("DROP INDEX … CASCADE to foreign keys is not supported").WithHint("Drop the foreign keys first.")
		}
		before, id := out.Apply, t.Face()
		out.Apply = func(txn *catalog.Txn) error {
			if before != nil {
				if err := before(txn); err != nil {
					return err
				}
			}
			return changeIndexes(txn, id, func(list []catalog.Index) []catalog.Index {
				return slices.DeleteFunc(list, func(o catalog.Index) bool { return o.ID == x.ID })
			})
		}
	}
	if temp {
		out.Apply, out.Session = nil, out.Apply
	}
	return out, nil
}

func requiredIndex(index, constraint, table string) error {
	return pgerr.New(codes.DependentObjectsStillExist, "cannot drop index %s because constraint %s on table %s requires it", index, constraint, table).
		WithHint("You can drop constraint %s on table %s instead.", constraint, table)
}

// changeIndexes changes the indexes of a table.
func changeIndexes(txn *catalog.Txn, id change.TableID, f func([]catalog.Index) []catalog.Index) error {
	t, err := txn.TableByFace(id)
	if err != nil {
		return gone(err, "table", fmt.Sprint(id))
	}
	next := t.Clone()
	next.Indexes = f(slices.Clone(t.Indexes))
	return txn.PutTable(next)
}

// findIndex finds an index along the search path.
func (c *Context) findIndex(r *pg.RangeVar) (*catalog.Table, *catalog.Index) {
	schemas := c.Env.SearchPath
	if r.Schemaname != "" {
		schemas = []string{r.Schemaname}
	}
	for _, s := range schemas {
		if t, x := c.index(s, r.Relname); x != nil {
			return t, x
		}
	}
	return nil, nil
}

// renameIndex plans ALTER INDEX … RENAME.
func (c *Context) renameIndex(n *pg.RenameStmt) (*Change, error) {
	out := &Change{Tag: "ALTER INDEX"}
	t, x := c.findIndex(n.Relation)
	switch {
	case x == nil && n.MissingOk:
		out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "relation \"%s\" does not exist, skipping", n.Relation.Relname))
		return out, nil
	case x == nil && c.keyIndex(n.Relation) != nil:
		return c.renameKeyIndex(c.keyIndex(n.Relation), n)
	case x == nil:
		return nil, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", n.Relation.Relname)
	case c.indexNames(t)(n.Newname):
		return nil, existsError(n.Newname)
	}
	out.Alters = append(out.Alters, t.Face())
	return out.do(c.isTemp(t.Schema), func(txn *catalog.Txn) error {
		return changeIndexes(txn, t.Face(), func(list []catalog.Index) []catalog.Index { return renamed(list, x.ID, n.Newname) })
	}), nil
}

func renamed(list []catalog.Index, id change.TableID, name string) []catalog.Index {
	for i := range list {
		if list[i].ID == id {
			list[i].Name = name
		}
	}
	return list
}

// constraintIndex is the place of a UNIQUE constraint among the indexes, -1 for none.
func constraintIndex(t *catalog.Table, name string) int {
	return slices.IndexFunc(t.Indexes, func(x catalog.Index) bool { return x.Constraint && x.Name == name })
}

// dropColumnIndexes takes the indexes away that have a column.
func dropColumnIndexes(t *catalog.Table, f schema.Field) {
	t.Indexes = slices.DeleteFunc(slices.Clone(t.Indexes), func(x catalog.Index) bool {
		return x.Has(f.ID) || x.Definition != "" && pgsql.IndexNames(x.Definition, f.Name)
	})
}

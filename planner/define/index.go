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
	nullsEqual bool
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

// uniquesOf are those of another table, under names of their own.
func uniquesOf(rel *pgsql.Relation) (out []unique) {
	for _, u := range rel.Uniques {
		x := unique{index: !u.Constraint, nullsEqual: u.NullsEqual}
		for _, i := range u.Columns {
			x.columns = append(x.columns, rel.Columns[i].Name)
		}
		x.where = conditionsOf(rel, u.Where)
		out = append(out, x)
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
	case n.Deferrable || n.Initdeferred:
		return unique{}, unsupported("UNIQUE constraints that are DEFERRABLE are not supported").
			WithHint("Here each statement is checked when it has changed all its rows.")
	case n.Indexname != "":
		return unique{}, unsupported("UNIQUE USING INDEX is not supported").WithHint("Add the constraint with its columns.")
	case len(n.Including) > 0, n.WhereClause != nil:
		return unique{}, unsupported("such UNIQUE constraints are not supported")
	}
	return unique{name: n.Conname, columns: columnsOf(n, column), nullsEqual: n.NullsNotDistinct}, nil
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
	x := catalog.Index{Name: u.name, Unique: true, Constraint: constraint, NullsEqual: u.nullsEqual, Comments: catalog.IndexComments{Index: u.comment}}
	for _, name := range u.columns {
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
		x.Name = freeName(t.Name, strings.Join(u.columns, "_"), label, taken)
	} else if taken(x.Name) {
		return existsError(x.Name)
	}
	return c.addIndex(t, x)
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
func (a *alteration) proveNewest(columns []string) error {
	x := a.table.Indexes[len(a.table.Indexes)-1]
	return a.proveUnique(x.Name, columns, x.NullsEqual, x.WhereSQL(a.table.Current))
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
	return a.proveNewest(u.columns)
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
	x.Name, x.Constraint = name, true
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
	columns, plain := indexColumns(n)
	if n.Unique {
		return a.createUnique(n, columns)
	}
	x := catalog.Index{Name: n.Idxname}
	for _, name := range columns {
		f, ok := a.table.Current.FieldByName(name)
		if !ok {
			return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" does not exist", name)
		}
		x.Fields = append(x.Fields, f.ID)
	}
	if !plain {
		if x.Definition, err = indexText(n); err != nil {
			return nil, err
		}
	}
	if x.Name == "" {
		x.Name = freeName(a.table.Name, strings.Join(columnsOr(columns), "_"), "_idx", taken)
	}
	if err := c.addIndex(a.table, x); err != nil {
		return nil, err
	}
	a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion, "index \"%s\" is a name only: no index is kept, and queries need none", x.Name))
	return a.done("index created"), nil
}

// createUnique is CREATE UNIQUE INDEX of columns.
func (a *alteration) createUnique(n *pg.IndexStmt, columns []string) (*Change, error) {
	u := unique{name: n.Idxname, columns: columns, nullsEqual: n.NullsNotDistinct}
	where := n.WhereClause
	n.WhereClause = nil
	_, plain := indexColumns(n)
	n.WhereClause = where
	if !plain {
		return nil, unsupported("unique indexes of expressions or with options are not supported").
			WithHint("CREATE UNIQUE INDEX … ON table (column, …) is.")
	}
	if where != nil {
		rel := RelationOf(a.table)
		list, ok := pgsql.ReadConditions(rel, where)
		if !ok {
			return nil, unsupported("unique indexes of rows that meet such a condition are not supported").
				WithHint("Conditions that are supported are of one column each, joined by AND: column IS [NOT] NULL, and of a boolean, column, NOT column, and column = true or false.")
		}
		u.where = conditionsOf(rel, list)
	}
	if err := a.context.addUnique(a.table, u, false); err != nil {
		return nil, err
	}
	if err := a.proveNewest(columns); err != nil {
		return nil, err
	}
	return a.done("index created"), nil
}

func columnsOr(columns []string) []string {
	if len(columns) == 0 {
		return []string{"expr"}
	}
	return columns
}

// indexColumns are the columns of an index; plain says that it is one of these alone, in
// ascending order.
func indexColumns(n *pg.IndexStmt) (columns []string, plain bool) {
	plain = n.WhereClause == nil && len(n.IndexIncludingParams) == 0 && (n.AccessMethod == "" || n.AccessMethod == "btree")
	for _, p := range n.IndexParams {
		e := p.GetIndexElem()
		if e.Name == "" {
			plain = false
			continue
		}
		columns = append(columns, e.Name)
		plain = plain && len(e.Opclass) == 0 && len(e.Collation) == 0 && e.Ordering <= pg.SortByDir_SORTBY_ASC && e.NullsOrdering <= pg.SortByNulls_SORTBY_NULLS_DEFAULT
	}
	return columns, plain
}

// indexText is what follows USING.
func indexText(n *pg.IndexStmt) (string, error) {
	tree, err := pg.Parse("SELECT 1")
	if err != nil {
		return "", fmt.Errorf("print index: %w", err)
	}
	tree.Stmts[0].Stmt = &pg.Node{Node: &pg.Node_IndexStmt{IndexStmt: n}}
	text, err := pg.Deparse(tree)
	if err != nil {
		return "", fmt.Errorf("print index: %w", err)
	}
	if _, after, ok := strings.Cut(text, " USING "); ok {
		return after, nil
	}
	_, after, _ := strings.Cut(text, "(")
	return "btree (" + after, nil
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
func dropColumnIndexes(t *catalog.Table, id int32) {
	t.Indexes = slices.DeleteFunc(slices.Clone(t.Indexes), func(x catalog.Index) bool { return x.Has(id) })
}

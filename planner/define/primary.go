package define

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// primary is a PRIMARY KEY of a table that is being defined: "" for a name that is PostgreSQL's.
type primary struct {
	name    string
	columns []string
	// comments are those of the index that it takes.
	comments catalog.IndexComments
}

// primaryOf reads a PRIMARY KEY; column is that which it stands with, "" for none.
func primaryOf(n *pg.Constraint, column string) (primary, error) {
	switch {
	case n.Deferrable || n.Initdeferred:
		return primary{}, unsupported("PRIMARY KEY constraints that are DEFERRABLE are not supported").
			WithHint("Here each statement is checked when it has changed all its rows.")
	case len(n.Including) > 0:
		return primary{}, unsupported("INCLUDE of primary keys is not supported")
	}
	return primary{name: n.Conname, columns: columnsOf(n, column)}, nil
}

func errSeveralKeys(table string) error {
	return pgerr.New(codes.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", table)
}

// keyName is the name of the primary key of a table, which must be free: want, or PostgreSQL's.
func (c *Context) keyName(t *catalog.Table, want string) (string, error) {
	taken := c.indexNames(t)
	if want == "" {
		return freeName(t.Name, "", "_pkey", taken), nil
	}
	if taken(want) {
		return "", existsError(want)
	}
	if hasConstraint(t, want) {
		return "", errConstraintExists(t, want)
	}
	return want, nil
}

// hasConstraint says whether a table has a constraint of a name.
func hasConstraint(t *catalog.Table, name string) bool {
	return t.Current.HasKey() && t.PrimaryKey() == name || constraintIndex(t, name) >= 0 ||
		slices.ContainsFunc(t.Foreign, func(k catalog.ForeignKey) bool { return k.Name == name }) ||
		slices.ContainsFunc(t.Checks, func(k catalog.Check) bool { return k.Name == name })
}

func errConstraintExists(t *catalog.Table, name string) error {
	return pgerr.New(codes.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", name, t.Name)
}

// addPrimaryKey is ADD PRIMARY KEY: rows are told apart by it from here on.
func (a *alteration) addPrimaryKey(n *pg.Constraint) error {
	if a.table.Current.HasKey() {
		return errSeveralKeys(a.table.Name)
	}
	p, err := primaryOf(n, "")
	if err != nil {
		return err
	}
	if n.Indexname != "" {
		x, _, err := a.takeIndex(n)
		if err != nil {
			return err
		}
		p.name = cmp.Or(p.name, x.Name)
		p.comments.Index = x.Comments.Index
		for _, id := range x.Fields {
			if f, ok := a.table.Current.Field(id); ok {
				p.columns = append(p.columns, f.Name)
			}
		}
	}
	list, _ := a.fields()
	for i, name := range p.columns {
		at := slices.IndexFunc(list, func(f schema.NewField) bool { return f.Name == name })
		switch {
		case at < 0:
			return pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, a.table.Name)
		case slices.Contains(p.columns[:i], name):
			return pgerr.New(codes.DuplicateColumn, "column \"%s\" appears twice in primary key constraint", name)
		}
		if err := a.context.checkKeyType(&list[at]); err != nil {
			return err
		}
	}
	name, err := p.name, error(nil)
	if name == "" || name != n.Indexname {
		name, err = a.context.keyName(a.table, name)
	} else if hasConstraint(a.table, name) {
		err = errConstraintExists(a.table, name)
	}
	if err != nil {
		return err
	}
	if n.Indexname == "" {
		how := proving{name: name}
		for _, column := range p.columns {
			if !a.asked(column) {
				return errSplit
			}
			how.keys = append(how.keys, quote.NameIfNeeded(column))
		}
		how.shown = p.columns
		a.proveUnique(how)
	}
	for _, column := range p.columns {
		if err := a.setNotNull(column, true); err != nil {
			return err
		}
	}
	list, _ = a.fields()
	a.table.KeyName, a.table.KeyComments = name, p.comments
	return a.rekey(list, p.columns)
}

// addNewKey makes a column that is added in the same statement the primary key, of a table without
// rows.
func (a *alteration) addNewKey(d *definition) error {
	if d.key == nil {
		return nil
	}
	list, _ := a.fields()
	f := &list[len(list)-1]
	f.NotNull = true
	if err := a.context.checkKeyType(f); err != nil {
		return err
	}
	if f.Initial != nil {
		a.prove("", unsupported("adding a column that is the primary key to a table with rows is not supported").
			WithHint("Add the column, UPDATE the rows, then ADD PRIMARY KEY."))
	}
	name, err := a.context.keyName(a.table, d.keyName)
	if err != nil {
		return err
	}
	a.table.KeyName = name
	return a.rekey(list, d.key)
}

// takeIndex takes a unique index, which becomes a constraint, from its place.
func (a *alteration) takeIndex(n *pg.Constraint) (x catalog.Index, at int, err error) {
	at = slices.IndexFunc(a.table.Indexes, func(x catalog.Index) bool { return x.Name == n.Indexname })
	if at < 0 {
		return x, 0, pgerr.New(codes.UndefinedObject, "index \"%s\" does not exist", n.Indexname)
	}
	x = a.table.Indexes[at]
	switch {
	case x.Constraint:
		return x, 0, pgerr.New(codes.ObjectNotInPrerequisiteState, "index \"%s\" is already associated with a constraint", x.Name)
	case !x.Unique:
		return x, 0, pgerr.New(codes.WrongObjectType, "\"%s\" is not a unique index", x.Name).
			WithDetail("Cannot create a primary key or unique constraint using such an index.")
	case len(x.Expressions) > 0:
		return x, 0, pgerr.New(codes.WrongObjectType, "index \"%s\" contains expressions", x.Name).
			WithDetail("Cannot create a primary key or unique constraint using such an index.")
	case x.Partial():
		return x, 0, pgerr.New(codes.WrongObjectType, "\"%s\" is a partial index", x.Name).
			WithDetail("Cannot create a primary key or unique constraint using such an index.")
	}
	if n.Conname != "" && n.Conname != x.Name {
		a.out.Notices = append(a.out.Notices, notice(codes.SuccessfulCompletion,
			"ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"%s\" to \"%s\"", x.Name, n.Conname))
	}
	a.table.Indexes = slices.Delete(slices.Clone(a.table.Indexes), at, at+1)
	return x, at, nil
}

// dropPrimaryKey is DROP CONSTRAINT of the primary key: rows are told apart by all their columns
// from here on, which stay NOT NULL as they are.
func (a *alteration) dropPrimaryKey() error {
	a.table.KeyName, a.table.KeyComments = "", catalog.IndexComments{}
	list, _ := a.fields()
	return a.rekey(list, nil)
}

// rekey gives the table another key. What the log has of its rows must be in the lake then: the
// log's rules for rows with a key and without one are not the same.
func (a *alteration) rekey(list []schema.NewField, key []string) error {
	if err := a.evolve(list, key); err != nil {
		return err
	}
	next := *a.table.Current
	next.WholeRow = len(key) == 0
	a.table.Current = &next
	a.out.Rekeyed = a.table.Face()
	return nil
}

// errUnsettled means that the log has rows that were written before a table got its key.
func errUnsettled(t *catalog.Table) error {
	return pgerr.New(codes.ObjectInUse, "rows of table \"%s\" are not in the lake yet", t.Name).WithHint("Run the statement again.")
}

// settled refuses a table whose log has rows of before its present version.
func settled(txn *catalog.Txn, t *catalog.Table) error {
	live, err := txn.LiveSlices(t.ID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(live, func(s catalog.Slice) bool { return s.SchemaVersion < t.Current.Version }) {
		return errUnsettled(t)
	}
	return nil
}

// newKeyName is keyName of a table that is made with its key.
func (c *Context) newKeyName(t *catalog.Table, want string) (string, error) {
	bare := *t
	current := *t.Current
	current.Key, bare.Current = nil, &current
	return c.keyName(&bare, want)
}

// renameKeyIndex is ALTER INDEX … RENAME of the index of a primary key.
func (c *Context) renameKeyIndex(t *catalog.Table, n *pg.RenameStmt) (*Change, error) {
	of := &pg.RangeVar{Schemaname: t.Schema, Relname: t.Name, Location: -1}
	a, _, err := c.alteredTable(of, false, "ALTER INDEX")
	if err == nil {
		err = a.renamePrimaryKey(n.Newname)
	}
	if err != nil {
		return nil, err
	}
	return a.done("table altered"), nil
}

// renamePrimaryKey gives the constraint another name.
func (a *alteration) renamePrimaryKey(to string) error {
	name, err := a.context.keyName(a.table, to)
	a.table.KeyName = name
	return err
}

// keyIndex finds the table whose primary key has a name, nil for none.
func (c *Context) keyIndex(r *pg.RangeVar) *catalog.Table {
	schemas := c.Env.SearchPath
	if r.Schemaname != "" {
		schemas = []string{r.Schemaname}
	}
	for _, s := range schemas {
		for _, t := range c.Snapshot.AllTables() {
			if t.Schema == s && t.Current.HasKey() && t.PrimaryKey() == r.Relname {
				return t
			}
		}
	}
	return nil
}

// proving is what rows are to be unique by: what is called name, of keys as SQL, which messages show
// otherwise; of the rows that meet where, "" for all.
type proving struct {
	name        string
	keys, shown []string
	nullsEqual  bool
	where       string
}

// proveUnique has the rows that there are be unique.
func (a *alteration) proveUnique(p proving) {
	var given, texts []string
	for _, c := range p.keys {
		given, texts = append(given, c+" IS NOT NULL"), append(texts, "CASE WHEN ("+c+") IS NULL THEN 'null' ELSE format('%s', ("+c+")) END")
	}
	if p.nullsEqual {
		given = []string{"true"}
	}
	if p.where != "" {
		given = append(given, "("+p.where+")")
	}
	e := pgerr.New(codes.UniqueViolation, "could not create unique index \"%s\"", p.name)
	e.Schema, e.Table, e.Constraint = a.rel.Schema, a.rel.Name, p.name
	a.out.Proofs = append(a.out.Proofs, Proof{
		SQL: "SELECT " + strings.Join(texts, ", ") + " FROM ONLY " + a.place() + " WHERE " + strings.Join(given, " AND ") +
			" GROUP BY " + strings.Join(p.keys, ", ") + " HAVING count(*) > 1 LIMIT 1",
		Err: e,
		Detail: func(values []string) string {
			return "Key (" + strings.Join(p.shown, ", ") + ")=(" + strings.Join(values, ", ") + ") is duplicated."
		},
	})
}

// proveOne asks for a second row, with which a new column that is null in all would not be unique.
func (a *alteration) proveOne(name, column string) {
	e := pgerr.New(codes.UniqueViolation, "could not create unique index \"%s\"", name).
		WithDetail("Key (%s)=(null) is duplicated.", quote.NameIfNeeded(column))
	e.Schema, e.Table, e.Constraint = a.rel.Schema, a.rel.Name, name
	a.out.Proofs = append(a.out.Proofs, Proof{SQL: "SELECT 1 FROM ONLY " + a.place() + " LIMIT 1 OFFSET 1", Err: e})
}

package define

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// createTable plans CREATE TABLE.
func (c *Context) createTable(n *pg.CreateStmt) (*Change, error) {
	if err := checkTable(n); err != nil {
		return nil, err
	}
	d := &definition{context: c, table: &catalog.Table{Name: n.Relation.Relname}}
	schemaName, exists, err := c.newName(n.Relation)
	if err != nil {
		return nil, err
	}
	d.table.Schema = schemaName
	if d.table.Temp, err = c.tempRows(schemaName, n.Oncommit); err != nil {
		return nil, err
	}
	if d.table.Storage, err = setStorage(nil, n.Options); err != nil {
		return nil, err
	}
	out := &Change{Tag: "CREATE TABLE"}
	if exists && n.IfNotExists {
		out.Notices = append(out.Notices, notice(codes.DuplicateRelation, "relation \"%s\" already exists, skipping", n.Relation.Relname))
		return out, nil
	}
	for _, e := range n.TableElts {
		if err := d.element(e); err != nil {
			return nil, err
		}
	}
	if exists {
		return nil, existsError(n.Relation.Relname)
	}
	return out, d.make(out)
}

func checkTable(n *pg.CreateStmt) error {
	switch {
	case n.Partspec != nil || n.Partbound != nil || len(n.InhRelations) > 0:
		return unsupported("partitions and inheritance of tables are not supported")
	case n.OfTypename != nil:
		return unsupported("tables of a composite type are not supported")
	case n.AccessMethod != "" && n.AccessMethod != "heap":
		return pgerr.New(codes.UndefinedObject, "access method \"%s\" does not exist", n.AccessMethod)
	}
	return checkTablespace(n.Tablespacename)
}

// CreateAs plans the table of CREATE TABLE AS and SELECT INTO, whose columns are a query's.
func (c *Context) CreateAs(into *pg.IntoClause, ifNotExists bool, columns []pgsql.OutputColumn) (*Change, error) {
	return c.createAs(into, ifNotExists, columns, false)
}

func (c *Context) createAs(into *pg.IntoClause, ifNotExists bool, columns []pgsql.OutputColumn, materialized bool) (*Change, error) {
	n := &pg.CreateStmt{Relation: into.Rel, Options: into.Options, Tablespacename: into.TableSpaceName, IfNotExists: ifNotExists}
	if len(into.ColNames) > len(columns) {
		return nil, pgerr.New(codes.Syntax, "too many column names were specified")
	}
	if err := checkTable(n); err != nil {
		return nil, err
	}
	d := &definition{context: c, table: &catalog.Table{Name: into.Rel.Relname}, materialized: materialized}
	schemaName, exists, err := c.newName(into.Rel)
	if err != nil {
		return nil, err
	}
	d.table.Schema = schemaName
	if d.table.Temp, err = c.tempRows(schemaName, into.OnCommit); err != nil {
		return nil, err
	}
	if d.table.Storage, err = setStorage(nil, into.Options); err != nil {
		return nil, err
	}
	out := &Change{Tag: "CREATE TABLE AS"}
	switch {
	case exists && ifNotExists:
		out.Notices = append(out.Notices, notice(codes.DuplicateRelation, "relation \"%s\" already exists, skipping", into.Rel.Relname))
		return out, nil
	case exists:
		return nil, existsError(into.Rel.Relname)
	}
	for i, col := range columns {
		name := col.Name
		if i < len(into.ColNames) {
			name = into.ColNames[i].GetString_().GetSval()
		}
		f, err := d.field(name, col.Type)
		if err != nil {
			return nil, err
		}
		f.Collation = col.Collation
		d.fields = append(d.fields, *f)
	}
	return out, d.make(out)
}

// definition is a table being defined.
type definition struct {
	context  *Context
	table    *catalog.Table
	fields   []schema.NewField
	defaults map[string]string
	comments map[string]string
	key      []string
	keyName  string // as given
	checks   []*pg.Constraint
	serials  []serial
	uniques  []unique
	foreign  []*pg.Constraint
	// materialized says that it is a materialized view.
	materialized bool
	// of are the columns that the checks of columns stand with, "" of the table's.
	of []string
	// generated are columns that are.
	generated []generation
}

// element adds a column or a constraint.
func (d *definition) element(e *pg.Node) error {
	switch {
	case e.GetColumnDef() != nil:
		return d.column(e.GetColumnDef())
	case e.GetConstraint() != nil:
		c := e.GetConstraint()
		if c.Contype == pg.ConstrType_CONSTR_CHECK {
			d.checks, d.of = append(d.checks, c), append(d.of, "")
			return nil
		}
		if c.Contype == pg.ConstrType_CONSTR_UNIQUE {
			u, err := uniqueOf(c, "")
			d.uniques = append(d.uniques, u)
			return err
		}
		if c.Contype == pg.ConstrType_CONSTR_FOREIGN {
			d.foreign = append(d.foreign, c)
			return nil
		}
		if c.Contype != pg.ConstrType_CONSTR_PRIMARY {
			return refuseConstraint(c)
		}
		return d.primaryKey(c, "")
	case e.GetTableLikeClause() != nil:
		return d.like(e.GetTableLikeClause())
	}
	return unsupported("this element of CREATE TABLE is not supported")
}

// Options of LIKE, as PostgreSQL's parser numbers them.
const (
	likeComments    = 1 << 0
	likeConstraints = 1 << 2
	likeDefaults    = 1 << 3
	likeGenerated   = 1 << 4
	likeIdentity    = 1 << 5
	likeIndexes     = 1 << 6
)

// like adds the columns of another table.
func (d *definition) like(n *pg.TableLikeClause) error {
	rel, err := pgsql.FindRelation(n.Relation, d.context.Env)
	if err != nil {
		return err
	}
	for _, col := range rel.Columns {
		f, err := d.field(col.Name, col.Type)
		if err != nil {
			return err
		}
		f.NotNull, f.Collation = col.NotNull, col.Collation
		d.fields = append(d.fields, *f)
		switch {
		case col.Identity != "" && n.Options&likeIdentity != 0:
			if err := d.serial(&d.fields[len(d.fields)-1], col.Identity, nil); err != nil {
				return err
			}
		case col.Generated != "" && n.Options&likeGenerated != 0:
			d.generated = append(d.generated, generation{column: col.Name, text: col.Generated})
		case col.Identity == "" && col.Default != "" && n.Options&likeDefaults != 0:
			d.setDefault(col.Name, col.Default)
		}
	}
	if n.Options&likeIndexes != 0 && len(rel.Key) > 0 {
		var key []string
		for _, k := range rel.Key {
			key = append(key, rel.Columns[k].Name)
		}
		if d.key != nil {
			return errSeveralKeys(d.table.Name)
		}
		d.key = key
	}
	if n.Options&likeIndexes != 0 {
		if err := d.likeUniques(rel); err != nil {
			return err
		}
	}
	if n.Options&likeConstraints != 0 {
		for _, k := range rel.Checks {
			d.table.Checks = append(d.table.Checks, catalog.Check{Name: k.Name, SQL: k.SQL})
		}
	}
	if t, err := d.context.Snapshot.TableByName(rel.Schema, rel.Name); err == nil && n.Options&likeComments != 0 {
		d.likeComments(t, n.Options&likeIndexes != 0)
	}
	return nil
}

func (d *definition) setDefault(column, text string) {
	if d.defaults == nil {
		d.defaults = map[string]string{}
	}
	d.defaults[column] = text
}

func (d *definition) primaryKey(n *pg.Constraint, column string) error {
	if d.key != nil {
		return errSeveralKeys(d.table.Name)
	}
	p, err := primaryOf(n, column)
	d.key, d.keyName = p.columns, p.name
	return err
}

// columnsMax is PostgreSQL's.
const columnsMax = 1600

// field is a column without its constraints.
func (d *definition) field(name string, t pgsql.Type) (*schema.NewField, error) {
	if len(d.fields) >= columnsMax {
		return nil, pgerr.New(codes.TooManyColumns, "tables can have at most %d columns", columnsMax)
	}
	if slices.ContainsFunc(d.fields, func(f schema.NewField) bool { return f.Name == name }) {
		return nil, pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", name)
	}
	f, err := newField(name, t)
	if err != nil {
		return nil, err
	}
	if t.User != nil && t.User.Foreign && !d.materialized && d.table.Temp == "" { // a dump makes tables before there are pipelines
		return nil, unsupported("column \"%s\" of type %s, which a pipeline's source has, is not supported in a table", name, t.Name()).
			WithHint("Cast it to text.")
	}
	f.AttNum = int16(len(d.fields) + 1)
	return f, nil
}

// newField is a column of a type, which must be one that statements can write.
func newField(name string, t pgsql.Type) (*schema.NewField, error) {
	if t.User != nil {
		return userField(name, t), nil
	}
	bounds := 0
	if pgsql.ElemOf(t.OID) != 0 {
		bounds = 1
	}
	lake, exact := schema.FromPostgres(t.OID, t.Mod, bounds)
	switch {
	case exact && !pgsql.Computes(t):
		return nil, unsupported("columns of type %s are not supported", t.Name()).WithHint("Keep such values as text.")
	case t.OID == pgsql.OIDTime && t.Mod >= 0 && t.Mod < 6:
		return nil, unsupported("columns of type time(%d) are not supported", t.Mod).WithHint("Take time.")
	}
	return &schema.NewField{Name: name, OID: t.OID, TypMod: t.Mod, Type: lake}, nil
}

// column adds a column.
func (d *definition) column(n *pg.ColumnDef) error {
	typeName, serial := serialType(n.TypeName)
	t, err := d.context.columnType(typeName)
	if err != nil {
		return err
	}
	f, err := d.field(n.Colname, t)
	if err != nil {
		return err
	}
	if len(n.TypeName.ArrayBounds) > 1 {
		return unsupported("columns of type %s of several dimensions are not supported", t.Name()).WithHint("Take jsonb.")
	}
	if err := d.context.collate(f, n, t); err != nil {
		return err
	}
	if serial {
		if err := d.serial(f, "", nil); err != nil {
			return err
		}
	}
	for _, c := range withAttributes(n.Constraints) {
		if err := d.constraint(f, c); err != nil {
			return err
		}
	}
	d.fields = append(d.fields, *f)
	return nil
}

// constraint applies a constraint of a column.
func (d *definition) constraint(f *schema.NewField, c *pg.Constraint) error {
	switch c.Contype {
	case pg.ConstrType_CONSTR_NOTNULL:
		f.NotNull = true
	case pg.ConstrType_CONSTR_NULL:
		if f.NotNull {
			return pgerr.New(codes.Syntax, "conflicting NULL/NOT NULL declarations for column \"%s\" of table \"%s\"", f.Name, d.table.Name)
		}
	case pg.ConstrType_CONSTR_GENERATED:
		return d.generate(f, c)
	case pg.ConstrType_CONSTR_IDENTITY:
		return d.serial(f, c.GeneratedWhen, c.Options)
	case pg.ConstrType_CONSTR_PRIMARY:
		return d.primaryKey(c, f.Name)
	case pg.ConstrType_CONSTR_UNIQUE:
		u, err := uniqueOf(c, f.Name)
		d.uniques = append(d.uniques, u)
		return err
	case pg.ConstrType_CONSTR_FOREIGN:
		n := proto.Clone(c).(*pg.Constraint)
		n.FkAttrs = []*pg.Node{pg.MakeStrNode(f.Name)}
		d.foreign = append(d.foreign, n)
	case pg.ConstrType_CONSTR_CHECK:
		d.checks, d.of = append(d.checks, c), append(d.of, f.Name)
	case pg.ConstrType_CONSTR_DEFAULT:
		text, err := defaultText(c.RawExpr, f, d.context.Env)
		if err != nil {
			return err
		}
		d.setDefault(f.Name, text)
	default:
		return refuseConstraint(c)
	}
	return nil
}

// defaultText is the default of a column, checked.
func defaultText(n *pg.Node, f *schema.NewField, env *pgsql.Env) (string, error) {
	if _, err := pgsql.DefaultSequences(n, env); err != nil {
		return "", err
	}
	text, err := pgsql.SettleDefault(n, columnOf(f, env), env)
	if err != nil {
		return "", err
	}
	return text, pgsql.CheckDefault(text, columnOf(f, env), env)
}

func columnOf(f *schema.NewField, env *pgsql.Env) pgsql.RelationColumn {
	return pgsql.RelationColumn{Name: f.Name, Type: env.TypeOf(f.OID, f.TypMod), Engine: schema.EngineType(f.Type), NotNull: f.NotNull}
}

// make completes the change that makes the table.
func (d *definition) make(out *Change) error {
	t, err := d.finish()
	if err != nil {
		return err
	}
	if t.Temp != "" {
		t.ID, err = d.context.ReserveTemp()
	} else {
		t.Pipeline, t.ID, err = d.context.Reserve()
	}
	if err != nil {
		return err
	}
	out.Makes = t
	for _, n := range d.foreign {
		k, parent, err := d.context.foreignKey(t, n)
		if err != nil {
			return err
		}
		if k.Table != t.ID {
			out.Refers = append(out.Refers, Reference{parent, k.Refs})
		}
		k.Invalid = false // there are no rows
		t.Foreign = append(t.Foreign, k)
		if k.Table != t.ID && t.Temp == "" && !slices.Contains(out.Alters, k.Table) {
			out.Alters = append(out.Alters, k.Table)
		}
	}
	out.do(t.Temp != "", func(txn *catalog.Txn) error {
		if err := cmp.Or(hasSchema(txn, t.Schema), free(txn, t.Schema, t.Name)); err != nil {
			return err
		}
		if err := Make(txn, t.Clone()); err != nil {
			return err
		}
		if err := upheld(txn, t); err != nil {
			return err
		}
		return makeSerials(txn, t.ID, d.serials)
	})
	return nil
}

// tempRows is what becomes of the rows of a new table at a commit, "" if it is not temporary.
func (c *Context) tempRows(schemaName string, on pg.OnCommitAction) (catalog.TempRows, error) {
	temp := c.isTemp(schemaName)
	switch on {
	case pg.OnCommitAction_ON_COMMIT_ACTION_UNDEFINED, pg.OnCommitAction_ONCOMMIT_NOOP:
		if !temp {
			return "", nil
		}
		return catalog.TempKeep, nil
	}
	if !temp {
		return "", pgerr.New(codes.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	switch on {
	case pg.OnCommitAction_ONCOMMIT_DELETE_ROWS:
		return catalog.TempEmpty, nil
	case pg.OnCommitAction_ONCOMMIT_DROP:
		return catalog.TempDrop, nil
	}
	return catalog.TempKeep, nil
}

// Make puts a table of our own in its place, whether there is a draft of it or not.
func Make(txn *catalog.Txn, t *catalog.Table) error {
	t.Own, t.State, t.Backfill.FinishedAt = true, catalog.TableReady, txn.Now()
	t.SourceSchema, t.SourceName = t.Schema, t.Name
	draft, err := txn.TableByID(t.ID)
	switch {
	case err == nil:
		t.OID, t.SourceOID, t.CreatedAt = draft.OID, draft.SourceOID, draft.CreatedAt
		err = txn.PutTable(t)
	case errors.Is(err, catalog.ErrTableNotFound):
		err = txn.CreateTable(t)
		t.SourceOID = t.OID // unique among the pipeline's
		if err == nil {
			err = txn.PutTable(t)
		}
	}
	if err != nil || t.Draft {
		return err
	}
	return tell(txn, t, "table created")
}

func tell(txn *catalog.Txn, t *catalog.Table, what string) error {
	return txn.AddEvent(catalog.Event{At: txn.Now(), Level: "info", Table: t.Schema + "." + t.Name, Kind: what})
}

// finish makes the table.
func (d *definition) finish() (*catalog.Table, error) {
	if len(d.fields) == 0 {
		return nil, unsupported("tables without columns are not supported")
	}
	for i, k := range d.key {
		at := slices.IndexFunc(d.fields, func(f schema.NewField) bool { return f.Name == k })
		if at < 0 {
			return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" named in key does not exist", k)
		}
		if slices.Contains(d.key[:i], k) {
			return nil, pgerr.New(codes.DuplicateColumn, "column \"%s\" appears twice in primary key constraint", k)
		}
		d.fields[at].NotNull = true
		if err := d.context.checkKeyType(&d.fields[at]); err != nil {
			return nil, err
		}
	}
	current, err := schema.New(d.fields, d.key)
	if err != nil {
		return nil, pgerr.New(codes.InvalidTableDefinition, "%s", err)
	}
	current.WholeRow = len(d.key) == 0
	d.table.Current, d.table.Versions, d.table.Own = current, []*schema.Table{current}, true
	if len(d.key) > 0 {
		if d.table.KeyName, err = d.context.newKeyName(d.table, d.keyName); err != nil {
			return nil, err
		}
	}
	for _, f := range current.Fields {
		if text, ok := d.defaults[f.Name]; ok {
			setText(&d.table.Defaults, f.ID, text)
		}
		if text, ok := d.comments[f.Name]; ok {
			setText(&d.table.Comments, f.ID, text)
		}
	}
	if err := cmp.Or(d.checkDefaults(), d.settleGenerated()); err != nil {
		return nil, err
	}
	d.own()
	for _, u := range d.uniques {
		if err := d.context.addUnique(d.table, u, !u.index); err != nil {
			return nil, err
		}
	}
	for i, k := range d.checks {
		if err := addCheck(d.table, k, d.of[i], d.context.Env); err != nil {
			return nil, err
		}
	}
	return d.table, nil
}

// setText sets a text of a field; "" takes it away.
func setText(m *map[int32]string, id int32, text string) {
	if text == "" {
		delete(*m, id)
		return
	}
	if *m == nil {
		*m = map[int32]string{}
	}
	(*m)[id] = text
}

// addCheck adds a CHECK, of a column or of the table, to a table. A name that is not given
// is PostgreSQL's.
func addCheck(t *catalog.Table, n *pg.Constraint, column string, env *pgsql.Env) error {
	text, err := pgsql.SettleCondition(n.RawExpr, env.WithUserTypes(RelationOf(t)), env)
	if err != nil {
		return err
	}
	used, err := pgsql.CheckCondition(text, env.WithUserTypes(RelationOf(t)), env)
	if err != nil {
		return err
	}
	name := n.Conname
	taken := func(name string) bool {
		return hasConstraint(t, name)
	}
	if name == "" {
		if column == "" && len(used) == 1 {
			column = used[0]
		}
		name = freeName(t.Name, column, "_check", taken)
	}
	if taken(name) {
		return pgerr.New(codes.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", name, t.Name)
	}
	t.Checks = append(t.Checks, catalog.Check{Name: name, SQL: text})
	return nil
}

// checkKeyType refuses a key of a type whose values can be equal and yet be kept as
// different ones, such as 1.0 and 1.00: both would find a place beside each other.
func (c *Context) checkKeyType(f *schema.NewField) error {
	if t := c.Env.TypeOf(f.OID, -1); t.User != nil && t.User.Kind != pgsql.Enumerated {
		return unsupported("a key of type %s is not supported", t.Name()).WithHint("Cast it to text.")
	}
	t, hint := pgsql.Type{OID: f.OID, Mod: f.TypMod}, "Take another type for the key."
	if !t.Indexable() {
		return pgerr.New(codes.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", t.Name()).
			WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
	}
	oid := f.OID
	if elem := pgsql.ElemOf(oid); elem != 0 {
		oid = elem
	}
	switch oid {
	case pgsql.OIDNumeric:
		if f.Type.Kind == schema.Decimal || f.Type.Kind == schema.List {
			return nil
		}
		hint = fmt.Sprintf("Take numeric(p,s), with a precision of at most %d.", schema.DecimalPrecisionMax)
	case pgsql.OIDBpchar:
		if f.TypMod >= 0 && oid == f.OID {
			return nil
		}
		hint = "Take char(n) or text."
	case pgsql.OIDInterval, pgsql.OIDJSONB:
	default:
		if !t.SeveralTexts() {
			return nil
		}
	}
	return unsupported("a key of type %s is not supported", t.Name()).WithHint("%s", hint)
}

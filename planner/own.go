package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// outsideBlock refuses a statement that takes effect at once, and could not be rolled
// back, in a transaction block.
func (s *session) outsideBlock(what string) error {
	switch {
	case s.values.Value("transaction_read_only") == "on":
		return pgerr.New(codes.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", what)
	case s.tx.open:
		return pgerr.New(codes.FeatureNotSupported, "%s in a transaction block is not supported", what).
			WithHint("Run it before BEGIN: it takes effect at once.")
	case s.engine.deps.Own == nil:
		return pgerr.New(codes.FeatureNotSupported, "%s is not supported", what)
	}
	return nil
}

// prepareCreateTable prepares CREATE TABLE of a table of our own.
func (s *session) prepareCreateTable(sql string, n *pg.CreateStmt) (pgwire.Statement, error) {
	def, err := s.tableDefinition(sql, n)
	if err != nil {
		return nil, err
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		if err := s.outsideBlock("CREATE TABLE"); err != nil {
			return nil, err
		}
		if s.tableExists(def.Schema, def.Name) {
			e := pgerr.New(codes.DuplicateRelation, "relation \"%s\" already exists", def.Name)
			if !n.IfNotExists {
				return nil, e
			}
			e.Severity, e.Message = "NOTICE", e.Message+", skipping"
			return &result{tag: "CREATE TABLE"}, sink.Notice(e)
		}
		return &result{tag: "CREATE TABLE"}, s.engine.deps.Own.Create(ctx, def)
	}}, nil
}

func (s *session) tableExists(schemaName, name string) bool {
	snap := s.engine.deps.Catalog.Snapshot()
	defer snap.Close()
	_, err := snap.TableByName(schemaName, name)
	return err == nil
}

// creationSchema is where a new table without a schema goes.
func (s *session) creationSchema() (string, error) {
	snap := s.engine.deps.Catalog.Snapshot()
	defer snap.Close()
	n := s.engine.namesOf(snap)
	for _, name := range n.searchPath(s.values.Value("search_path"), s.user()) {
		if name != "pg_catalog" {
			return name, nil
		}
	}
	return "", pgerr.New(codes.InvalidSchemaName, "no schema has been selected to create in")
}

// tableDefinition is the table that a CREATE TABLE makes.
func (s *session) tableDefinition(sql string, n *pg.CreateStmt) (*catalog.Table, error) {
	d := definition{session: s, sql: sql, table: &catalog.Table{Schema: n.Relation.Schemaname, Name: n.Relation.Relname}}
	var err error
	if d.table.Schema == "" {
		if d.table.Schema, err = s.creationSchema(); err != nil {
			return nil, err
		}
	}
	switch {
	case slices.Contains([]string{"pg_catalog", "information_schema", "skippr"}, d.table.Schema):
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied to create \"%s.%s\"", d.table.Schema, d.table.Name).
			WithDetail("System catalog modifications are currently disallowed.")
	case n.Relation.Relpersistence == "t":
		return nil, pgerr.New(codes.FeatureNotSupported, "temporary tables are not supported")
	case n.Partspec != nil || n.Partbound != nil || len(n.InhRelations) > 0:
		return nil, pgerr.New(codes.FeatureNotSupported, "partitions and inheritance of tables are not supported")
	case n.OfTypename != nil, len(n.Options) > 0, n.Tablespacename != "":
		return nil, pgerr.New(codes.FeatureNotSupported, "options of CREATE TABLE are not supported")
	}
	if err := s.schemaFor(d.table.Schema); err != nil {
		return nil, err
	}
	for _, e := range n.TableElts {
		if err := d.element(e); err != nil {
			return nil, err
		}
	}
	return d.finish()
}

// schemaFor refuses a schema that there is not, or that a pipeline fills.
func (s *session) schemaFor(name string) error {
	snap := s.engine.deps.Catalog.Snapshot()
	defer snap.Close()
	if !s.engine.namesOf(snap).HasSchema(name) {
		return pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", name)
	}
	return nil
}

// definition is a table being defined.
type definition struct {
	session  *session
	sql      string
	table    *catalog.Table
	fields   []schema.NewField
	defaults map[string]string
	key      []string
}

// element adds a column or a constraint.
func (d *definition) element(e *pg.Node) error {
	switch {
	case e.GetColumnDef() != nil:
		return d.column(e.GetColumnDef())
	case e.GetConstraint() != nil:
		c := e.GetConstraint()
		if c.Contype != pg.ConstrType_CONSTR_PRIMARY {
			return refuseConstraint(c)
		}
		var key []string
		for _, k := range c.Keys {
			key = append(key, k.GetString_().GetSval())
		}
		return d.primaryKey(key)
	}
	return pgerr.New(codes.FeatureNotSupported, "LIKE in CREATE TABLE is not supported")
}

func (d *definition) primaryKey(key []string) error {
	if d.key != nil {
		return pgerr.New(codes.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", d.table.Name)
	}
	d.key = key
	return nil
}

// constraintWords name kinds of constraints that we do not have.
var constraintWords = map[pg.ConstrType]string{
	pg.ConstrType_CONSTR_CHECK: "CHECK", pg.ConstrType_CONSTR_UNIQUE: "UNIQUE", pg.ConstrType_CONSTR_FOREIGN: "FOREIGN KEY",
	pg.ConstrType_CONSTR_EXCLUSION: "EXCLUDE", pg.ConstrType_CONSTR_IDENTITY: "identity columns",
	pg.ConstrType_CONSTR_GENERATED: "generated columns",
}

func refuseConstraint(c *pg.Constraint) error {
	word := constraintWords[c.Contype]
	if word == "" {
		word = "such constraints"
	}
	return pgerr.New(codes.FeatureNotSupported, "%s of tables is not supported", word).
		WithHint("Tables here may have a PRIMARY KEY, NOT NULL and DEFAULT.")
}

// columnsMax is PostgreSQL's.
const columnsMax = 1600

// column adds a column.
func (d *definition) column(n *pg.ColumnDef) error {
	if len(d.fields) >= columnsMax {
		return pgerr.New(codes.TooManyColumns, "tables can have at most %d columns", columnsMax)
	}
	if slices.ContainsFunc(d.fields, func(f schema.NewField) bool { return f.Name == n.Colname }) {
		return pgerr.New(codes.DuplicateColumn, "column \"%s\" specified more than once", n.Colname)
	}
	t, err := pgsql.ResolveTypeName(n.TypeName)
	if err != nil {
		return err
	}
	lake, exact := schema.FromPostgres(t.OID, t.Mod, len(n.TypeName.ArrayBounds))
	f := schema.NewField{Name: n.Colname, OID: t.OID, TypMod: t.Mod, Type: lake, AttNum: int16(len(d.fields) + 1)}
	if exact && !pgsql.Computes(t) {
		return pgerr.New(codes.FeatureNotSupported, "columns of type %s are not supported", t.Name()).
			WithHint("Keep such values as text.")
	}
	if t.OID == pgsql.OIDTime && t.Mod >= 0 && t.Mod < 6 {
		return pgerr.New(codes.FeatureNotSupported, "columns of type time(%d) are not supported", t.Mod).WithHint("Take time.")
	}
	if lake.Kind == schema.List && t.Mod >= 0 && lake.Elem.Kind != schema.Decimal { // nothing would hold the elements to it
		return pgerr.New(codes.FeatureNotSupported, "columns of type %s with a length or precision are not supported", pgsql.Type{OID: t.OID, Mod: -1}.Name()).
			WithHint("Leave the length or precision out.")
	}
	if n.CollClause != nil {
		return pgerr.New(codes.FeatureNotSupported, "COLLATE of columns is not supported")
	}
	for _, c := range n.Constraints {
		if err := d.constraint(&f, c.GetConstraint()); err != nil {
			return err
		}
	}
	d.fields = append(d.fields, f)
	return nil
}

// constraint applies a constraint of a column.
func (d *definition) constraint(f *schema.NewField, c *pg.Constraint) error {
	switch c.Contype {
	case pg.ConstrType_CONSTR_NOTNULL:
		f.NotNull = true
	case pg.ConstrType_CONSTR_NULL:
	case pg.ConstrType_CONSTR_PRIMARY:
		return d.primaryKey([]string{f.Name})
	case pg.ConstrType_CONSTR_DEFAULT:
		text, err := pgsql.ExpressionText(c.RawExpr)
		if err != nil {
			return err
		}
		column := pgsql.RelationColumn{Name: f.Name, Type: pgsql.Type{OID: f.OID, Mod: f.TypMod}, Engine: schema.EngineType(f.Type)}
		s := d.session
		snap := s.engine.deps.Catalog.Snapshot()
		defer snap.Close()
		if err := pgsql.CheckDefault(text, column, s.env(s.engine.namesOf(snap))); err != nil {
			return err
		}
		if d.defaults == nil {
			d.defaults = map[string]string{}
		}
		d.defaults[f.Name] = text
	default:
		return refuseConstraint(c)
	}
	return nil
}

// finish makes the table.
func (d *definition) finish() (*catalog.Table, error) {
	if len(d.fields) == 0 {
		return nil, pgerr.New(codes.FeatureNotSupported, "tables without columns are not supported")
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
		if err := checkKeyType(&d.fields[at]); err != nil {
			return nil, err
		}
	}
	current, err := schema.New(d.fields, d.key)
	if err != nil {
		return nil, pgerr.New(codes.InvalidTableDefinition, "%s", err)
	}
	current.WholeRow = len(d.key) == 0
	d.table.Current, d.table.Versions = current, []*schema.Table{current}
	for _, f := range current.Fields {
		if text, ok := d.defaults[f.Name]; ok {
			if d.table.Defaults == nil {
				d.table.Defaults = map[int32]string{}
			}
			d.table.Defaults[f.ID] = text
		}
	}
	return d.table, nil
}

// checkKeyType refuses a key of a type whose values can be equal and yet be kept as
// different ones, such as 1.0 and 1.00: both would find a place beside each other.
func checkKeyType(f *schema.NewField) error {
	t, hint := pgsql.Type{OID: f.OID, Mod: f.TypMod}, "Take another type for the key."
	switch f.OID {
	case pgsql.OIDJSON:
		return pgerr.New(codes.UndefinedObject, "data type json has no default operator class for access method \"btree\"")
	case pgsql.OIDNumeric:
		if f.Type.Kind == schema.Decimal {
			return nil
		}
		hint = fmt.Sprintf("Take numeric(p,s), with a precision of at most %d.", schema.DecimalPrecisionMax)
	case pgsql.OIDBpchar:
		if f.TypMod >= 0 {
			return nil
		}
		hint = "Take char(n) or text."
	case pgsql.OIDInterval, pgsql.OIDJSONB, schema.ArrayOID(pgsql.OIDBpchar):
	default:
		return nil
	}
	return pgerr.New(codes.FeatureNotSupported, "a primary key of type %s is not supported", t.Name()).WithHint("%s", hint)
}

// ownTable finds a table of our own by its name in a statement.
func (s *session) ownTable(n *pg.RangeVar) (*pgsql.Relation, error) {
	snap := s.engine.deps.Catalog.Snapshot()
	defer snap.Close()
	names := s.engine.namesOf(snap)
	rel, err := pgsql.FindRelation(n, s.env(names))
	if err != nil {
		return nil, hintElsewhere(err, names)
	}
	return rel, pgsql.CheckWritable(rel)
}

// prepareTruncate prepares TRUNCATE.
func (s *session) prepareTruncate(n *pg.TruncateStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(ctx context.Context, _ pgwire.Sink) (*result, error) {
		var rels []*pgsql.Relation
		for _, r := range n.Relations {
			rel, err := s.ownTable(r.GetRangeVar())
			if err != nil {
				return nil, err
			}
			rels = append(rels, rel)
		}
		for _, rel := range rels {
			t, err := s.writable(ctx, rel, "TRUNCATE TABLE")
			if err != nil {
				return nil, err
			}
			if err := s.tx.changes.Truncate(t); err != nil {
				return nil, err
			}
		}
		return &result{tag: "TRUNCATE TABLE"}, nil
	}}, nil
}

// prepareDropTable prepares DROP TABLE of tables of our own.
func (s *session) prepareDropTable(n *pg.DropStmt) (pgwire.Statement, error) {
	if hint := s.dropHint(n); hint != "" {
		return nil, pgerr.New(codes.ObjectNotInPrerequisiteState, "cannot drop a table that is filled by a pipeline").WithHint("%s", hint)
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		if err := s.outsideBlock("DROP TABLE"); err != nil {
			return nil, err
		}
		var ids []change.TableID
		for _, object := range n.Objects {
			rel, err := s.ownTable(rangeVar(object))
			if e, ok := pgerr.As(err); ok && n.MissingOk && e.Code == codes.UndefinedTable {
				if err := sink.Notice(pgerr.Notice("table \"%s\" does not exist, skipping", rangeVar(object).Relname)); err != nil {
					return nil, err
				}
				continue
			}
			if e, ok := pgerr.As(err); ok && e.Code == codes.UndefinedTable {
				return nil, pgerr.New(codes.UndefinedTable, "table \"%s\" does not exist", rangeVar(object).Relname).WithHint("%s", e.Hint)
			}
			if err != nil {
				return nil, err
			}
			id, _ := TableIDOf(rel.OID)
			if t := s.tx.writes[id]; t != nil && s.tx.changes.Touches(t.ID) { // they could not be committed any more
				return nil, pgerr.New(codes.FeatureNotSupported, "DROP TABLE of a table that the same transaction has changed is not supported").
					WithHint("Run it after the changes are committed.")
			}
			ids = append(ids, id)
		}
		return &result{tag: "DROP TABLE"}, s.drop(ctx, ids)
	}}, nil
}

func (s *session) drop(ctx context.Context, ids []change.TableID) error {
	for _, id := range ids {
		if err := s.lockTable(ctx, id); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	err := s.engine.deps.Own.Drop(ctx, ids)
	if errors.Is(err, catalog.ErrTableNotFound) {
		return pgerr.New(codes.UndefinedTable, "a table was dropped meanwhile")
	}
	return err
}

// rangeVar is a name of DROP.
func rangeVar(object *pg.Node) *pg.RangeVar {
	r := &pg.RangeVar{Location: -1}
	items := object.GetList().GetItems()
	for i, item := range items {
		switch name := item.GetString_().GetSval(); len(items) - 1 - i {
		case 0:
			r.Relname = name
		case 1:
			r.Schemaname = name
		case 2:
			r.Catalogname = name
		}
	}
	return r
}

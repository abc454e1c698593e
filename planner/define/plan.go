package define

import (
	"errors"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// Context is what a statement is planned against.
type Context struct {
	// SQL is the text that the statement is part of.
	SQL      string
	Env      *pgsql.Env
	Snapshot *catalog.Snapshot
	// Reserve gives the pipeline of tables of our own, and a number for a new one.
	Reserve func() (change.PipelineID, change.TableID, error)
	// NextOID gives the object id of a new schema, by which what is granted on it in the same
	// transaction is kept; nil: the catalog gives one at the commit.
	NextOID func() (uint32, error)
	// TempSchema is where temporary tables and views of the session are, or would be; TempFirst
	// says that what is given no schema goes there. ReserveTemp gives a number for a new one, if
	// the session may make any; the schema is there then.
	TempSchema  string
	TempFirst   bool
	ReserveTemp func() (change.TableID, error)
	// Initial evaluates the default of a new column for the rows that there are; nil is null.
	Initial func(c pgsql.RelationColumn) (*string, error)
	// IndexColumns are what an index of a table is of, as PostgreSQL shows them.
	IndexColumns func(*catalog.Table, catalog.Index) []string
	// Superuser says whether the session's role is one.
	Superuser func() bool
	// Step is by how much a change of a sequence raises its Resets: another number each time.
	Step func() uint64
	// Settle says, within the transaction of the catalog, which value a sequence gave last; the
	// next ones follow it.
	Settle func(*sequence.Sequence) (last int64, called, known bool)
}

// Change is what a statement does.
type Change struct {
	// Tag is the command tag.
	Tag     string
	Notices []*pgerr.Error
	// Alters are tables of our own, by face, that are changed or go: nobody else may write
	// them meanwhile, nor may the transaction have written them.
	Alters []change.TableID
	// Makes is the table of our own that is made, nil for none.
	Makes *catalog.Table
	// Refers are columns that its foreign keys refer to.
	Refers []Reference
	// Proofs must hold of the rows that there are.
	Proofs []Proof
	// Rekeyed is the table that gets another primary key, or none, 0 for no table. If others can
	// have written it, all its rows must be in the lake when the change is applied.
	Rekeyed change.TableID
	// Refill has columns that are generated computed for the rows that there are, nil for none.
	Refill *Refill
	// Apply does it; nil: there is nothing to do. What it finds other than it was planned is
	// an error.
	Apply func(*catalog.Txn) error
	// Session is what it does to temporary objects, which is done before and to drafts alone;
	// nil: nothing.
	Session func(*catalog.Txn) error
}

// Draft does all of it, for the session's own view of the catalog.
func (c *Change) Draft(txn *catalog.Txn) error {
	for _, f := range []func(*catalog.Txn) error{c.Session, c.Apply} {
		if f == nil {
			continue
		}
		if err := f(txn); err != nil {
			return err
		}
	}
	return nil
}

// Nothing says that there is nothing to do.
func (c *Change) Nothing() bool { return c.Apply == nil && c.Session == nil }

// do sets what is done, to what is temporary or not.
func (c *Change) do(temp bool, f func(*catalog.Txn) error) *Change {
	if temp {
		c.Session = f
	} else {
		c.Apply = f
	}
	return c
}

// Refill is generated columns of a table, as it is after the change.
type Refill struct {
	Schema, Table string
	ID            change.TableID
	Columns       []string
}

// Reference is columns of a table that a foreign key refers to.
type Reference struct {
	Table  *catalog.Table
	Fields []int32
}

// Proof is a query that must give no row.
type Proof struct {
	SQL string
	// Err is what is told if it gives one.
	Err *pgerr.Error
	// Detail says the row, from its columns, which are texts; nil: the error has its detail.
	Detail func(row []string) string
}

// Planned says whether a statement is one that Plan plans.
func Planned(n *pg.Node) bool {
	switch n.Node.(type) {
	case *pg.Node_CreateStmt, *pg.Node_AlterTableStmt, *pg.Node_RenameStmt, *pg.Node_AlterObjectSchemaStmt,
		*pg.Node_CreateSchemaStmt, *pg.Node_ViewStmt, *pg.Node_CreateSeqStmt, *pg.Node_AlterSeqStmt,
		*pg.Node_CreateEnumStmt, *pg.Node_AlterEnumStmt, *pg.Node_IndexStmt, *pg.Node_ReindexStmt, *pg.Node_ClusterStmt:
		return true
	case *pg.Node_DropStmt:
		return droppable[n.GetDropStmt().RemoveType] != "" || n.GetDropStmt().RemoveType == pg.ObjectType_OBJECT_TYPE
	case *pg.Node_CommentStmt:
		return commentable[n.GetCommentStmt().Objtype]
	}
	return false
}

// Plan plans a statement.
func Plan(n *pg.Node, c *Context) (*Change, error) {
	switch v := n.Node.(type) {
	case *pg.Node_CreateStmt:
		return c.createTable(v.CreateStmt)
	case *pg.Node_AlterTableStmt:
		if v.AlterTableStmt.Objtype == pg.ObjectType_OBJECT_VIEW {
			return c.alterView(v.AlterTableStmt)
		}
		return c.alterTable(v.AlterTableStmt)
	case *pg.Node_RenameStmt:
		return c.rename(v.RenameStmt)
	case *pg.Node_AlterObjectSchemaStmt:
		return c.setSchema(v.AlterObjectSchemaStmt)
	case *pg.Node_CreateSchemaStmt:
		return c.createSchema(v.CreateSchemaStmt)
	case *pg.Node_ViewStmt:
		return c.createView(v.ViewStmt)
	case *pg.Node_CreateSeqStmt:
		return c.createSequence(v.CreateSeqStmt)
	case *pg.Node_IndexStmt:
		return c.createIndex(v.IndexStmt)
	case *pg.Node_CreateEnumStmt:
		return c.createEnum(v.CreateEnumStmt)
	case *pg.Node_AlterEnumStmt:
		return c.alterEnum(v.AlterEnumStmt)
	case *pg.Node_AlterSeqStmt:
		return c.alterSequence(v.AlterSeqStmt)
	case *pg.Node_DropStmt:
		return c.drop(v.DropStmt)
	case *pg.Node_CommentStmt:
		return c.comment(v.CommentStmt)
	case *pg.Node_ReindexStmt:
		return c.reindex(v.ReindexStmt)
	case *pg.Node_ClusterStmt:
		return c.cluster(v.ClusterStmt)
	}
	return nil, unsupported("%s is not supported", pgsql.Word(n))
}

func unsupported(format string, args ...any) *pgerr.Error {
	return pgerr.New(codes.FeatureNotSupported, format, args...)
}

// notice makes a NOTICE of what would be an error.
func notice(code codes.Code, format string, args ...any) *pgerr.Error {
	e := pgerr.New(code, format, args...)
	e.Severity = "NOTICE"
	return e
}

// systemSchemas are those in which nothing can be made.
var systemSchemas = map[string]bool{"pg_catalog": true, "information_schema": true, "skippr": true}

// isTemp says whether a schema is that of the session's temporary objects.
func (c *Context) isTemp(schemaName string) bool {
	return schemaName != "" && (schemaName == c.TempSchema || schemaName == tempAlias)
}

// tempAlias is the name that every session has for its schema of temporary objects.
const tempAlias = "pg_temp"

// reserve gives the number of a new relation in a schema.
func (c *Context) reserve(schemaName string) (id change.TableID, err error) {
	if c.isTemp(schemaName) {
		return c.ReserveTemp()
	}
	_, id, err = c.Reserve()
	return id, err
}

// newName is where a new relation goes, and whether there is one of its name.
func (c *Context) newName(r *pg.RangeVar) (schemaName string, exists bool, err error) {
	temp := c.isTemp(r.Schemaname) || r.Schemaname == "" && (r.Relpersistence == "t" || c.TempFirst)
	switch {
	case temp:
		_, exists = c.Env.Resolver.Relation(c.TempSchema, r.Relname)
		return c.TempSchema, exists, nil
	case r.Relpersistence == "t":
		return "", false, pgerr.New(codes.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema")
	}
	if r.Catalogname != "" && r.Catalogname != c.Env.Database {
		return "", false, unsupported("cross-database references are not implemented: \"%s.%s.%s\"", r.Catalogname, r.Schemaname, r.Relname)
	}
	schemaName = r.Schemaname
	if schemaName == "" {
		for _, name := range c.Env.SearchPath {
			if name != "pg_catalog" && name != c.TempSchema {
				schemaName = name
				break
			}
		}
	}
	switch {
	case schemaName == "":
		return "", false, pgerr.New(codes.InvalidSchemaName, "no schema has been selected to create in")
	case systemSchemas[schemaName]:
		return "", false, pgerr.New(codes.InsufficientPrivilege, "permission denied to create \"%s.%s\"", schemaName, r.Relname).
			WithDetail("System catalog modifications are currently disallowed.")
	case !c.Env.Resolver.HasSchema(schemaName):
		return "", false, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", schemaName)
	}
	_, exists = c.Env.Resolver.Relation(schemaName, r.Relname)
	return schemaName, exists, nil
}

// free refuses a name that a table, view or sequence has by now.
func free(txn *catalog.Txn, schemaName, name string) error {
	_, tableErr := txn.TableByName(schemaName, name)
	_, viewErr := txn.ViewByName(schemaName, name)
	_, sequenceErr := txn.SequenceByName(schemaName, name)
	if txn.HasIndex(schemaName, name) || tableErr == nil || viewErr == nil || sequenceErr == nil {
		return existsError(name)
	}
	return nil
}

func existsError(name string) *pgerr.Error {
	return pgerr.New(codes.DuplicateRelation, "relation \"%s\" already exists", name)
}

// gone is the error of an object that was there when the statement was planned.
func gone(err error, kind, name string) error {
	if errors.Is(err, catalog.ErrTableNotFound) || errors.Is(err, catalog.ErrSchemaNotFound) {
		return pgerr.New(codes.UndefinedTable, "%s \"%s\" was dropped meanwhile", kind, name).WithHint("Run the statement again.")
	}
	return err
}

// table finds a table of our own that a statement changes.
func (c *Context) table(r *pg.RangeVar) (*catalog.Table, *pgsql.Relation, error) {
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		return nil, nil, err
	}
	if rel.Materialized {
		return nil, nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", rel.Name)
	}
	return c.stored(r)
}

// stored finds a table of our own that a statement changes, or a materialized view.
func (c *Context) stored(r *pg.RangeVar) (*catalog.Table, *pgsql.Relation, error) {
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		return nil, nil, err
	}
	if rel.View != "" || rel.Sequence {
		return nil, nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", rel.Name)
	}
	if err := pgsql.CheckWritable(rel); err != nil && !rel.Materialized {
		return nil, nil, err
	}
	t, err := c.Snapshot.TableByName(rel.Schema, rel.Name)
	return t, rel, err
}

// rangeVar is a name in a list of names.
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

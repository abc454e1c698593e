package define

import (
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// createSchema plans CREATE SCHEMA.
func (c *Context) createSchema(n *pg.CreateSchemaStmt) (*Change, error) {
	name := n.Schemaname
	if role := n.Authrole; role != nil {
		owner := role.Rolename
		if role.Roletype != pg.RoleSpecType_ROLESPEC_CSTRING {
			owner = c.Env.User
		}
		if owner != c.Env.User {
			return nil, unsupported("a schema of another role is not supported").WithHint("Leave AUTHORIZATION out.")
		}
		if name == "" {
			name = owner
		}
	}
	switch {
	case len(n.SchemaElts) > 0:
		return nil, unsupported("elements of CREATE SCHEMA are not supported").WithHint("Make them in statements of their own.")
	case strings.HasPrefix(name, "pg_"):
		return nil, pgerr.New(codes.ReservedName, "unacceptable schema name \"%s\"", name).
			WithDetail("The prefix \"pg_\" is reserved for system schemas.")
	}
	out := &Change{Tag: "CREATE SCHEMA"}
	if c.Env.Resolver.HasSchema(name) {
		e := pgerr.New(codes.DuplicateSchema, "schema \"%s\" already exists", name)
		if !n.IfNotExists {
			return nil, e
		}
		out.Notices = append(out.Notices, notice(codes.DuplicateSchema, "%s, skipping", e.Message))
		return out, nil
	}
	made := &catalog.Schema{Name: name, Made: true}
	if c.NextOID != nil {
		var err error
		if made.OID, err = c.NextOID(); err != nil {
			return nil, err
		}
	}
	out.Apply = func(txn *catalog.Txn) error {
		if _, err := txn.Schema(name); err == nil {
			return pgerr.New(codes.DuplicateSchema, "schema \"%s\" already exists", name)
		}
		return txn.CreateSchema(made)
	}
	return out, nil
}

// commentable are the kinds of objects that may have a comment.
var commentable = map[pg.ObjectType]bool{
	pg.ObjectType_OBJECT_TYPE: true, pg.ObjectType_OBJECT_MATVIEW: true, pg.ObjectType_OBJECT_TABLE: true, pg.ObjectType_OBJECT_VIEW: true, pg.ObjectType_OBJECT_COLUMN: true, pg.ObjectType_OBJECT_SCHEMA: true,
	pg.ObjectType_OBJECT_SEQUENCE: true, pg.ObjectType_OBJECT_INDEX: true, pg.ObjectType_OBJECT_TABCONSTRAINT: true,
}

// comment plans COMMENT ON, of a pipeline's table too.
func (c *Context) comment(n *pg.CommentStmt) (*Change, error) {
	switch n.Objtype {
	case pg.ObjectType_OBJECT_TYPE:
		return c.commentType(n)
	case pg.ObjectType_OBJECT_INDEX:
		return c.commentIndex(n)
	case pg.ObjectType_OBJECT_TABCONSTRAINT:
		return c.commentConstraint(n)
	}
	out := &Change{Tag: "COMMENT"}
	if n.Objtype == pg.ObjectType_OBJECT_SCHEMA {
		name := n.Object.GetString_().GetSval()
		if _, err := c.Snapshot.Schema(name); err != nil {
			return nil, pgerr.New(codes.InvalidSchemaName, "schema \"%s\" does not exist", name)
		}
		out.Apply = func(txn *catalog.Txn) error {
			s, err := txn.Schema(name)
			if err != nil {
				return gone(err, "schema", name)
			}
			next := *s
			next.Comment = n.Comment
			return txn.PutSchema(&next)
		}
		return out, nil
	}
	items, column := n.Object.GetList().GetItems(), ""
	if n.Objtype == pg.ObjectType_OBJECT_COLUMN {
		if len(items) < 2 {
			return nil, pgerr.New(codes.Syntax, "column name must be qualified")
		}
		column = items[len(items)-1].GetString_().GetSval()
		items = items[:len(items)-1]
	}
	r := rangeVar(&pg.Node{Node: &pg.Node_List{List: &pg.List{Items: items}}})
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		return nil, err
	}
	switch {
	case rel.System:
		return nil, pgerr.New(codes.InsufficientPrivilege, "permission denied for table %s", rel.Name).WithDetail("It is a system catalog.")
	case n.Objtype == pg.ObjectType_OBJECT_MATVIEW && !rel.Materialized:
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a materialized view", rel.Name)
	case n.Objtype == pg.ObjectType_OBJECT_TABLE && (rel.View != "" || rel.Materialized):
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", rel.Name)
	case n.Objtype == pg.ObjectType_OBJECT_VIEW && rel.View == "":
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a view", rel.Name)
	case rel.View != "":
		return c.commentView(out, rel, column, n.Comment)
	case rel.Sequence && (n.Objtype == pg.ObjectType_OBJECT_TABLE || column != ""):
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a table", rel.Name)
	case rel.Sequence:
		return out.do(c.isTemp(rel.Schema), commentSequence(rel, n.Comment)), nil
	case n.Objtype == pg.ObjectType_OBJECT_SEQUENCE:
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a sequence", rel.Name)
	}
	return c.commentTable(out, rel, column, n.Comment)
}

func (c *Context) commentView(out *Change, rel *pgsql.Relation, column, text string) (*Change, error) {
	v, err := c.Snapshot.ViewByName(rel.Schema, rel.Name)
	if err != nil {
		return nil, err
	}
	place := func(v *catalog.View) int {
		return slices.IndexFunc(v.Columns, func(c catalog.ViewColumn) bool { return c.Name == column })
	}
	missing := pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", column, rel.Name)
	if column != "" && place(v) < 0 {
		return nil, missing
	}
	return out.do(c.isTemp(rel.Schema), func(txn *catalog.Txn) error {
		v, err := txn.ViewByName(rel.Schema, rel.Name)
		if err != nil {
			return gone(err, "view", rel.Name)
		}
		next := v.Clone()
		switch i := place(next); {
		case column == "":
			next.Comment = text
		case i < 0:
			return missing
		default:
			next.Columns[i].Comment = text
			return deniedOf(txn.PutView(next), "relation "+rel.Name)
		}
		return txn.PutView(next)
	}), nil
}

func (c *Context) commentTable(out *Change, rel *pgsql.Relation, column, text string) (*Change, error) {
	t, err := c.Snapshot.TableByName(rel.Schema, rel.Name)
	if err != nil {
		return nil, err
	}
	var id change.TableID = t.Face()
	field := int32(0)
	if column != "" {
		f, ok := t.Current.FieldByName(column)
		if !ok {
			return nil, pgerr.New(codes.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", column, rel.Name)
		}
		field = f.ID
	}
	return out.do(t.Temp != "", func(txn *catalog.Txn) error {
		found, err := txn.TableByFace(id)
		if err != nil {
			return gone(err, "table", rel.Name)
		}
		next := found.Clone()
		if column == "" {
			next.Comment = text
			what := "table "
			if rel.Materialized {
				what = "materialized view "
			}
			return deniedOf(txn.PutTable(next), what+rel.Name)
		}
		setText(&next.Comments, field, text)
		return deniedOf(txn.PutTable(next), "relation "+rel.Name)
	}), nil
}

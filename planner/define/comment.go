package define

import (
	"errors"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// commentIndex plans COMMENT ON INDEX, of a primary key's too.
func (c *Context) commentIndex(n *pg.CommentStmt) (*Change, error) {
	r := rangeVar(n.Object)
	t, x := c.findIndex(r)
	if x == nil {
		t = c.keyIndex(r)
	}
	if t == nil {
		if _, err := pgsql.FindRelation(r, c.Env); err != nil {
			return nil, err
		}
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not an index", r.Relname)
	}
	gone := pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", r.Relname)
	return c.commentWithin(t, "index "+r.Relname, gone, func(next *catalog.Table) bool {
		if x == nil {
			next.KeyComments.Index = n.Comment
			return next.Current.HasKey()
		}
		i := slices.IndexFunc(next.Indexes, func(o catalog.Index) bool { return o.ID == x.ID })
		if i >= 0 {
			next.Indexes[i].Comments.Index = n.Comment
		}
		return i >= 0
	}), nil
}

// commentConstraint plans COMMENT ON CONSTRAINT of a table.
func (c *Context) commentConstraint(n *pg.CommentStmt) (*Change, error) {
	items := n.Object.GetList().GetItems()
	name, items := items[len(items)-1].GetString_().GetSval(), items[:len(items)-1]
	rel, err := pgsql.FindRelation(rangeVar(&pg.Node{Node: &pg.Node_List{List: &pg.List{Items: items}}}), c.Env)
	if err != nil {
		return nil, err
	}
	missing := pgerr.New(codes.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", name, rel.Name)
	t, err := c.Snapshot.TableByName(rel.Schema, rel.Name)
	if rel.System || err != nil || !commentOnConstraint(t.Clone(), name, n.Comment) {
		return nil, missing
	}
	return c.commentWithin(t, "relation "+rel.Name, missing, func(next *catalog.Table) bool { return commentOnConstraint(next, name, n.Comment) }), nil
}

// commentOnConstraint sets the comment on a constraint; ok says that the table has it.
func commentOnConstraint(t *catalog.Table, name, text string) (ok bool) {
	if t.Current.HasKey() && t.PrimaryKey() == name {
		t.KeyComments.Constraint = text
		return true
	}
	if i := constraintIndex(t, name); i >= 0 {
		t.Indexes[i].Comments.Constraint = text
		return true
	}
	if i := slices.IndexFunc(t.Foreign, func(k catalog.ForeignKey) bool { return k.Name == name }); i >= 0 {
		t.Foreign[i].Comment = text
		return true
	}
	i := slices.IndexFunc(t.Checks, func(k catalog.Check) bool { return k.Name == name })
	if i >= 0 {
		t.Checks[i].Comment = text
	}
	return i >= 0
}

// commentWithin changes what a table says of what belongs to it; what names that to who does not
// own the table, and missing is told when set says that it went meanwhile.
func (c *Context) commentWithin(t *catalog.Table, what string, missing error, set func(*catalog.Table) bool) *Change {
	out := &Change{Tag: "COMMENT"}
	return out.do(t.Temp != "", func(txn *catalog.Txn) error {
		found, err := txn.TableByFace(t.Face())
		if err != nil {
			return gone(err, "table", t.Name)
		}
		next := found.Clone()
		if !set(next) {
			return missing
		}
		return deniedOf(txn.PutTable(next), what)
	})
}

// deniedOf names what a role does not own as PostgreSQL does.
func deniedOf(err error, what string) error {
	if denied := (*catalog.DeniedError)(nil); errors.As(err, &denied) {
		return &catalog.DeniedError{Message: "must be owner of " + what}
	}
	return err
}

// likeComments takes the comments on columns of another table over, and those on its indexes and
// checks that were taken over just before.
func (d *definition) likeComments(of *catalog.Table, indexes bool) {
	d.comments = map[string]string{}
	for _, f := range of.Current.Fields {
		if text := of.Comments[f.ID]; text != "" {
			d.comments[f.Name] = text
		}
	}
	for i := range d.table.Checks {
		k := &d.table.Checks[i]
		if at := slices.IndexFunc(of.Checks, func(o catalog.Check) bool { return o.Name == k.Name && o.SQL == k.SQL }); at >= 0 {
			k.Comment = of.Checks[at].Comment
		}
	}
	if !indexes {
		return
	}
	if len(of.Current.Key) > 0 {
		d.table.KeyComments.Index = of.KeyComments.Index
	}
	unique := slices.DeleteFunc(slices.Clone(of.Indexes), func(x catalog.Index) bool { return !x.Unique })
	for i, x := range unique {
		d.uniques[len(d.uniques)-len(unique)+i].comment = x.Comments.Index
	}
}

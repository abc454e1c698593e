package grant

import (
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// comment is COMMENT ON ROLE and DATABASE; ok is false for what else has comments.
func (w World) comment(n *pg.CommentStmt) (p Prepared, ok bool) {
	name := n.Object.GetString_().GetSval()
	switch n.Objtype {
	case pg.ObjectType_OBJECT_ROLE:
		return Prepared{"COMMENT", func() (Op, error) { return commentRole(name, n.Comment), nil }}, true
	case pg.ObjectType_OBJECT_DATABASE:
		return Prepared{"COMMENT", func() (Op, error) { return w.commentDatabase(name, n.Comment), nil }}, true
	}
	return Prepared{}, false
}

func commentRole(name, text string) Op {
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		r, me := e.Named(name), e.Role(who.Current)
		super := me != nil && me.Superuser
		switch {
		case r == nil:
			return noRole(name)
		case r.Superuser && !super:
			return denied("must be superuser")
		case !super && (me == nil || !me.CreateRole):
			return denied("must have CREATEROLE privilege")
		case r.Builtin:
			return reserved(r)
		}
		next := r.Clone()
		next.Comment = text
		e.PutRole(next)
		return nil
	}
}

// commentDatabase warns of another database, as PostgreSQL does for the sake of dumps.
func (w World) commentDatabase(name, text string) Op {
	o := right.Object{Class: right.Database}
	return func(e *right.Editor, who Who, notice func(*pgerr.Error)) error {
		if name != w.Database {
			say(notice, "WARNING", codes.InvalidCatalogName, "database \"%s\" does not exist", name)
			return nil
		}
		if !e.Owns(who.Current, o) {
			return denied("must be owner of database %s", name)
		}
		e.Change(o, func(x *right.Entry) { x.Comment = text })
		return nil
	}
}

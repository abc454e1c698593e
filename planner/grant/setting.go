package grant

import (
	"maps"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// assignment is what a statement does to values with which sessions begin.
type assignment struct {
	name, value string // without a name: to all of them
	sets        bool
}

// on gives the values after it.
func (a assignment) on(values map[string]string) map[string]string {
	if a.name == "" {
		return nil
	}
	out := maps.Clone(values)
	switch {
	case !a.sets:
		delete(out, a.name)
	case out == nil:
		return map[string]string{a.name: a.value}
	default:
		out[a.name] = a.value
	}
	return out
}

func (w World) assignment(n *pg.VariableSetStmt) (a assignment, err error) {
	a.name, a.value, err = w.Setting(n)
	a.sets = n.Kind == pg.VariableSetKind_VAR_SET_VALUE || n.Kind == pg.VariableSetKind_VAR_SET_CURRENT
	return a, err
}

// alterRoleSet is ALTER ROLE … SET, of one role or all of them, in the database or in any.
func (w World) alterRoleSet(n *pg.AlterRoleSetStmt) (Op, error) {
	if n.Database != "" && n.Database != w.Database {
		return nil, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", n.Database)
	}
	a, err := w.assignment(n.Setstmt)
	if err != nil {
		return nil, err
	}
	if n.Role == nil {
		return w.setForAll(a, n.Database != ""), nil
	}
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		oid, err := roleOf(e, who, n.Role, false)
		if err != nil {
			return err
		}
		r, me := e.Role(oid), e.Role(who.Current)
		switch {
		case me != nil && me.Superuser:
		case r.Superuser:
			return denied("must be superuser to alter superusers")
		case me == nil || !me.CreateRole && oid != who.Current:
			return denied("permission denied")
		}
		if r.Builtin {
			return reserved(r)
		}
		c := r.Clone()
		if n.Database != "" {
			c.Local = a.on(c.Local)
		} else {
			c.Settings = a.on(c.Settings)
		}
		e.PutRole(c)
		return nil
	}, nil
}

// alterDatabaseSet is ALTER DATABASE … SET.
func (w World) alterDatabaseSet(n *pg.AlterDatabaseSetStmt) (Op, error) {
	if n.Dbname != w.Database {
		return nil, pgerr.New(codes.InvalidCatalogName, "database \"%s\" does not exist", n.Dbname)
	}
	a, err := w.assignment(n.Setstmt)
	return w.setForAll(a, true), err
}

// setForAll changes the values for all roles: in the database, which its owner may, or in any.
func (w World) setForAll(a assignment, local bool) Op {
	o := right.Object{Class: right.Database}
	return func(e *right.Editor, who Who, _ func(*pgerr.Error)) error {
		switch {
		case local && !e.Owns(who.Current, o):
			return denied("must be owner of database %s", w.Database)
		case !local && !e.Superuser(who.Current):
			return denied("must be superuser to alter settings globally")
		}
		e.Change(o, func(x *right.Entry) {
			if local {
				x.Settings = a.on(x.Settings)
			} else {
				x.RoleSettings = a.on(x.RoleSettings)
			}
		})
		return nil
	}
}

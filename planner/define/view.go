package define

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// view finds the view that a name means.
func (c *Context) view(r *pg.RangeVar) (*catalog.View, error) {
	rel, err := pgsql.FindRelation(r, c.Env)
	if err != nil {
		return nil, err
	}
	if rel.View == "" {
		return nil, pgerr.New(codes.WrongObjectType, "\"%s\" is not a view", r.Relname)
	}
	return c.Snapshot.ViewByName(rel.Schema, rel.Name)
}

// createView plans CREATE VIEW.
func (c *Context) createView(n *pg.ViewStmt) (*Change, error) {
	v, err := c.defineView(n)
	if err == nil {
		v.Options, err = viewOptions(nil, checkOptionOf(n))
	}
	if err == nil {
		err = c.checkable(v)
	}
	if err != nil {
		return nil, err
	}
	out := &Change{Tag: "CREATE VIEW"}
	place := &pg.RangeVar{Schemaname: n.View.Schemaname, Catalogname: n.View.Catalogname, Relname: n.View.Relname, Relpersistence: n.View.Relpersistence}
	if place.Relpersistence != "t" && !c.isTemp(place.Schemaname) && c.readsTemp(v) {
		place.Relpersistence = "t"
		out.Notices = append(out.Notices, notice(codes.SuccessfulCompletion, "view \"%s\" will be a temporary view", place.Relname))
	}
	schemaName, exists, err := c.newName(place)
	if err != nil {
		return nil, err
	}
	temp := c.isTemp(schemaName)
	var old *catalog.View
	if exists {
		if !n.Replace {
			return nil, existsError(n.View.Relname)
		}
		if old, err = c.view(&pg.RangeVar{Schemaname: schemaName, Relname: n.View.Relname, Location: -1}); err != nil {
			return nil, err
		}
	}
	v.Schema, v.Name = schemaName, n.View.Relname
	if err := replaces(old, v, c.Snapshot.Queries()); err != nil {
		return nil, err
	}
	switch {
	case v.ID != 0:
	case temp:
		v.ID, err = c.ReserveTemp()
	default:
		_, v.ID, err = c.Reserve()
	}
	if err != nil {
		return nil, err
	}
	reads := c.named(v.Reads)
	return out.do(temp, func(txn *catalog.Txn) error {
		if err := cmp.Or(hasSchema(txn, v.Schema), stillThere(txn, reads)); err != nil {
			return err
		}
		if old == nil {
			return cmp.Or(free(txn, v.Schema, v.Name), txn.PutView(v))
		}
		found, err := txn.ViewByName(v.Schema, v.Name)
		if err == nil && found.ID != old.ID {
			err = catalog.ErrTableNotFound
		}
		if err != nil {
			return gone(err, "view", v.Name)
		}
		next := v.Clone()
		if err := replaces(found, next, txn.Queries()); err != nil {
			return err
		}
		return txn.PutView(next)
	}), nil
}

// readsTemp says whether a view reads what is temporary.
func (c *Context) readsTemp(v *catalog.View) bool {
	for name := range c.named(v.Reads) {
		if c.isTemp(name.Schema) {
			return true
		}
	}
	return false
}

// named are relations that a view reads, by where they are.
func (c *Context) named(ids []change.TableID) map[pgsql.RelationName]change.TableID {
	out := map[pgsql.RelationName]change.TableID{}
	for _, id := range ids {
		if t, err := c.Snapshot.TableByFace(id); err == nil {
			out[pgsql.RelationName{Schema: t.Schema, Name: t.Name}] = id
		}
	}
	for _, v := range c.Snapshot.Views() {
		if slices.Contains(ids, v.ID) {
			out[pgsql.RelationName{Schema: v.Schema, Name: v.Name}] = v.ID
		}
	}
	return out
}

// stillThere refuses a view of what others have dropped, or given other names, meanwhile.
func stillThere(txn *catalog.Txn, reads map[pgsql.RelationName]change.TableID) error {
	for name, id := range reads {
		if t, err := txn.TableByName(name.Schema, name.Name); err == nil && t.Face() == id {
			continue
		}
		if v, err := txn.ViewByName(name.Schema, name.Name); err == nil && v.ID == id {
			continue
		}
		return pgerr.New(codes.UndefinedTable, "relation \"%s\" was dropped meanwhile", name.Name).WithHint("Run the statement again.")
	}
	return nil
}

// defineView analyses the query of a view.
func (c *Context) defineView(n *pg.ViewStmt) (*catalog.View, error) {
	sel := n.Query.GetSelectStmt()
	if sel == nil {
		return nil, unsupported("only SELECT is supported in a view")
	}
	var names []string
	for _, a := range n.Aliases {
		names = append(names, a.GetString_().GetSval())
	}
	def, err := pgsql.AnalyzeView(c.SQL, sel, names, c.Env)
	if err != nil {
		return nil, err
	}
	if len(names) > len(def.Columns) {
		return nil, pgerr.New(codes.Syntax, "CREATE VIEW specifies more column names than columns")
	}
	v := &catalog.View{SQL: def.SQL}
	for _, col := range def.Columns {
		v.Columns = append(v.Columns, catalog.ViewColumn{Name: col.Name, OID: col.Type.OID, TypMod: col.Type.Mod, Collation: col.Collation})
	}
	v.Reads, v.Uses = c.readsOf(def)
	return v, nil
}

// readsOf are the relations that a view names, and their columns that it does.
func (c *Context) readsOf(def *pgsql.View) (reads []change.TableID, uses []catalog.ViewUse) {
	for _, rel := range def.Reads {
		if id := c.idOf(rel); id != 0 {
			reads = append(reads, id)
		}
	}
	slices.Sort(reads)
	for _, u := range def.Uses {
		use := catalog.ViewUse{ID: c.idOf(u.Relation)}
		for _, i := range u.Columns {
			use.Columns = append(use.Columns, u.Relation.Columns[i].AttNum)
		}
		if use.ID != 0 {
			uses = append(uses, use)
		}
	}
	slices.SortFunc(uses, func(a, b catalog.ViewUse) int { return cmp.Compare(a.ID, b.ID) })
	return reads, uses
}

// idOf is the id of a table or view, 0 for a relation of the system.
func (c *Context) idOf(rel *pgsql.Relation) change.TableID {
	if t, err := c.Snapshot.TableByName(rel.Schema, rel.Name); err == nil {
		return t.Face()
	}
	if v, err := c.Snapshot.ViewByName(rel.Schema, rel.Name); err == nil {
		return v.ID
	}
	return 0
}

// replaces makes v the successor of a view, as far as PostgreSQL lets it be one; all are the
// views that there are.
func replaces(old, v *catalog.View, all []*catalog.View) error {
	if old == nil {
		return nil
	}
	v.ID, v.Comment, v.CreatedAt = old.ID, old.Comment, old.CreatedAt
	if len(v.Columns) < len(old.Columns) {
		return pgerr.New(codes.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i, o := range old.Columns {
		v.Columns[i].Comment, v.Columns[i].Default = o.Comment, o.Default
		n := v.Columns[i]
		switch {
		case n.Name != o.Name:
			return pgerr.New(codes.InvalidTableDefinition, "cannot change name of view column \"%s\" to \"%s\"", o.Name, n.Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		case n.OID != o.OID || n.TypMod != o.TypMod:
			from, to := pgsql.Type{OID: o.OID, Mod: o.TypMod}, pgsql.Type{OID: n.OID, Mod: n.TypMod}
			return pgerr.New(codes.InvalidTableDefinition, "cannot change data type of view column \"%s\" from %s to %s", o.Name, from.Name(), to.Name())
		}
	}
	for _, id := range reach(v.Reads, all) {
		if id == old.ID {
			return pgerr.New(codes.InvalidObjectDefinition, "infinite recursion detected in rules for relation \"%s\"", v.Name)
		}
	}
	return nil
}

// reach are relations, with all that they read in turn.
func reach(ids []change.TableID, all []*catalog.View) []change.TableID {
	out := slices.Clone(ids)
	for i := 0; i < len(out); i++ {
		for _, v := range all {
			if v.ID != out[i] {
				continue
			}
			for _, r := range v.Reads {
				if !slices.Contains(out, r) {
					out = append(out, r)
				}
			}
		}
	}
	return out
}

// readers are the views, also materialized ones, that read a table or view.
func (c *Context) readers(id change.TableID) []*catalog.View {
	var out []*catalog.View
	for _, v := range c.Snapshot.Queries() {
		if slices.Contains(v.Reads, id) {
			out = append(out, v)
		}
	}
	return out
}

// shownName is a name as messages write it: with its schema unless it is found without.
func shownName(schemaName, name string, env *pgsql.Env) string {
	rel, err := pgsql.FindRelation(&pg.RangeVar{Relname: name, Location: -1}, env)
	if err == nil && rel.Schema == schemaName {
		return quote.NameIfNeeded(name)
	}
	return fmt.Sprintf("%s.%s", quote.NameIfNeeded(schemaName), quote.NameIfNeeded(name))
}

package define

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/change"
)

// viewChange is what becomes of the views that read a relation when its columns change. It is
// planned with all that there are: a view that others make or change meanwhile is an error.
type viewChange struct {
	// before are the views by id, after their queries where those change.
	before map[change.TableID]*catalog.View
	after  map[change.TableID]string
	// gone are those that go with a column, and what reads them.
	gone *removal
}

// changeReaders begins a change of what reads a relation.
func (c *Context) changeReaders(id change.TableID) *viewChange {
	v := &viewChange{before: map[change.TableID]*catalog.View{}, after: map[change.TableID]string{}, gone: &removal{context: c}}
	for _, r := range c.readers(id) {
		v.before[r.ID] = r
	}
	return v
}

// views is the change of what reads the table.
func (a *alteration) readers() *viewChange {
	if a.views == nil {
		a.views = a.context.changeReaders(a.table.Face())
	}
	return a.views
}

// each calls f for the views that stay, with their queries as they are by now.
func (v *viewChange) each(f func(view *catalog.View, sql string) error) error {
	for _, view := range sortedViews(v.before) {
		if v.gone.goes(viewObject(view)) {
			continue
		}
		sql, ok := v.after[view.ID]
		if !ok {
			sql = view.SQL
		}
		if err := f(view, sql); err != nil {
			return err
		}
	}
	return nil
}

func sortedViews(m map[change.TableID]*catalog.View) []*catalog.View {
	var out []*catalog.View
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *catalog.View) int { return int(int64(a.ID) - int64(b.ID)) })
	return out
}

// usesColumn says whether the query of a view names a column. One that cannot be analysed, since
// what it reads has changed at its source, may name any.
func (a *alteration) usesColumn(sql, column string) bool {
	uses, err := pgsql.ViewColumns(sql, a.context.Env)
	if err != nil {
		return true
	}
	for _, u := range uses {
		if u.Relation.Schema != a.rel.Schema || u.Relation.Name != a.rel.Name {
			continue
		}
		for _, i := range u.Columns {
			if u.Relation.Columns[i].Name == column {
				return true
			}
		}
	}
	return false
}

// dropFromViews has a column go: with the views that name it, or not at all.
func (a *alteration) dropFromViews(column string, behavior pg.DropBehavior) error {
	v := a.readers()
	of := "column " + quote.NameIfNeeded(column) + " of table " + shownName(a.rel.Schema, a.rel.Name, a.context.Env)
	more := &removal{context: a.context}
	err := v.each(func(view *catalog.View, sql string) error {
		if a.usesColumn(sql, column) {
			o := viewObject(view)
			more.others = append(more.others, o)
			more.why = append(more.why, more.show(o)+" depends on "+of)
			return nil
		}
		pinned, err := pgsql.PinViewColumns(sql, a.context.Env)
		if err == nil && pinned != sql {
			v.after[view.ID] = pinned
		}
		return err
	})
	if err != nil {
		return err
	}
	more.gather()
	if len(more.others) > 0 && behavior != pg.DropBehavior_DROP_CASCADE {
		return pgerr.New(codes.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", of).
			WithDetail("%s", strings.Join(more.why, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	for _, o := range more.others {
		if !v.gone.goes(o) {
			v.gone.others = append(v.gone.others, o)
		}
	}
	return nil
}

// unusedInViews refuses another type for a column that views name.
func (a *alteration) unusedInViews(column string) error {
	return a.readers().each(func(view *catalog.View, sql string) error {
		if !a.usesColumn(sql, column) {
			return nil
		}
		return unsupported("cannot alter type of a column used by a view or rule").
			WithDetail("rule _RETURN on view %s depends on column \"%s\"", shownName(view.Schema, view.Name, a.context.Env), column)
	})
}

// renameInViews has the views that read the table follow another name of a column.
func (a *alteration) renameInViews(from, to string) (err error) {
	of := pgsql.RelationName{Schema: a.rel.Schema, Name: a.rel.Name}
	a.views, err = a.context.renameInReaders(a.table.Face(), of, from, to)
	return err
}

// renameInReaders puts another name of a column into the views that read its relation. One that
// cannot be analysed stays as it is.
func (c *Context) renameInReaders(id change.TableID, of pgsql.RelationName, from, to string) (*viewChange, error) {
	v := c.changeReaders(id)
	return v, v.each(func(view *catalog.View, sql string) error {
		if _, err := pgsql.ViewColumns(sql, c.Env); err != nil {
			return nil
		}
		next, err := pgsql.RenameViewColumn(sql, c.Env, of, from, to)
		if err != nil {
			return fmt.Errorf("rename column %s in view %s: %w", quote.Name(from), quote.Name(view.Name), err)
		}
		v.after[view.ID] = next
		return nil
	})
}

// told adds the notices of the views that go.
func (v *viewChange) told(out *Change) {
	if v != nil {
		out.Notices = append(out.Notices, v.gone.told()...)
	}
}

// parts are the views that go, the session's own and the others.
func (v *viewChange) parts() (temp, kept []object) {
	for _, o := range v.gone.others {
		if v.gone.context.isTemp(o.schema) {
			temp = append(temp, o)
		} else {
			kept = append(kept, o)
		}
	}
	return temp, kept
}

// session is what is done to temporary views of a relation that others see; nil for nothing.
func (v *viewChange) session(temp bool) func(*catalog.Txn) error {
	if v == nil || temp {
		return nil
	}
	gone, _ := v.parts()
	return dropAll(gone)
}

// apply does it. temp says that the relation is temporary, and so is all that reads it. Temporary
// views of others are not in a transaction that is committed.
func (v *viewChange) apply(txn *catalog.Txn, id change.TableID, temp bool) error {
	if v == nil {
		return nil
	}
	gone, kept := v.parts()
	if !temp {
		gone = kept
	}
	if drop := dropAll(gone); drop != nil {
		if err := drop(txn); err != nil {
			return err
		}
	}
	for _, now := range txn.Queries() {
		if !slices.Contains(now.Reads, id) {
			continue
		}
		old := v.before[now.ID]
		if old == nil || old.SQL != now.SQL {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "view \"%s\" was changed meanwhile", now.Name).WithHint("Run the statement again.")
		}
		sql, ok := v.after[now.ID]
		if !ok || sql == now.SQL {
			continue
		}
		if err := txn.RewordView(now.Schema, now.Name, sql); err != nil {
			return err
		}
	}
	return nil
}

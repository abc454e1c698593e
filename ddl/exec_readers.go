package ddl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// readers are the views that read what goes, in an order in which they can be dropped, those that
// others read last; why says for each on what it depends.
type readers struct {
	views []*catalog.View
	why   []string
}

// readersOf finds the views of tables, and the views of those.
func readersOf(snap *catalog.Snapshot, tables []*catalog.Table) (out readers) {
	going := map[change.TableID]string{}
	for _, t := range tables {
		going[t.Face()] = "table " + relationName(t.Schema, t.Name)
	}
	all := snap.Queries()
	for more := true; more; {
		more = false
		for _, v := range all {
			if going[v.ID] != "" {
				continue
			}
			at := slices.IndexFunc(v.Reads, func(id change.TableID) bool { return going[id] != "" })
			if at < 0 {
				continue
			}
			out.why = append(out.why, fmt.Sprintf("%s depends on %s", viewName(v), going[v.Reads[at]]))
			out.views = append(out.views, v)
			going[v.ID], more = viewName(v), true
		}
	}
	slices.Reverse(out.views)
	sorted := out.views[:0:0]
	for left := out.views; len(left) > 0; { // a view may read one that was found after it
		at := max(0, slices.IndexFunc(left, func(v *catalog.View) bool {
			return !slices.ContainsFunc(left, func(o *catalog.View) bool { return slices.Contains(o.Reads, v.ID) })
		}))
		sorted = append(sorted, left[at])
		left = slices.Delete(slices.Clone(left), at, at+1)
	}
	out.views = sorted
	return out
}

func relationName(schema, name string) string {
	return quote.NameIfNeeded(schema) + "." + quote.NameIfNeeded(name)
}

func viewName(v *catalog.View) string {
	if v.Materialized {
		return "materialized view " + relationName(v.Schema, v.Name)
	}
	return "view " + relationName(v.Schema, v.Name)
}

// refuse is the error of dropping what they read.
func (r readers) refuse(what, hint string) error {
	if len(r.views) == 0 {
		return nil
	}
	return pgerr.New(codes.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
		WithDetail("%s", strings.Join(r.why, "\n")).WithHint("%s", hint)
}

// drop drops them in the session's transaction, which commits when what they read is gone.
func (r readers) drop(ctx context.Context, session Session) error {
	if len(r.views) == 0 {
		return nil
	}
	q, ok := session.(Querier)
	if !ok {
		return pgerr.New(codes.FeatureNotSupported, "CASCADE to views is not supported here").WithDetail("%s", strings.Join(r.why, "\n"))
	}
	lines := make([]string, len(r.views))
	for i, v := range r.views {
		lines[i] = "drop cascades to " + viewName(v)
	}
	n := pgerr.Notice("%s", lines[0])
	if len(lines) > 1 {
		slices.Reverse(lines)
		n = pgerr.Notice("drop cascades to %d other objects", len(lines)).WithDetail("%s", strings.Join(lines, "\n"))
	}
	if err := session.Notice(n); err != nil {
		return err
	}
	for _, v := range r.views {
		if _, err := q.Query(ctx, "DROP "+strings.ToUpper(strings.TrimSuffix(viewName(v), " "+relationName(v.Schema, v.Name)))+" "+relationName(v.Schema, v.Name)); err != nil {
			return err
		}
	}
	return nil
}

// unread refuses to take tables out of a pipeline that views read.
func (x *Executor) unread(pipeline string, want []catalog.SelectedTable) error {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline(pipeline)
	if err != nil {
		return nil // who acts on it says so
	}
	for _, w := range want {
		t, err := catalog.NamedTable(snap.Tables(p.ID), w)
		if err != nil {
			continue
		}
		r := readersOf(snap, []*catalog.Table{t})
		if err := r.refuse("table "+relationName(t.Schema, t.Name), "Drop the views first."); err != nil {
			return err
		}
	}
	return nil
}

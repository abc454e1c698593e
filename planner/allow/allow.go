package allow

import (
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// Object is a relation as rights are kept of it.
func Object(rel *pgsql.Relation) right.Object {
	if rel.Sequence {
		return right.Object{Class: right.Sequence, ID: rel.OID}
	}
	return right.Object{Class: right.Relation, ID: rel.OID}
}

// Denied is the error of a relation that a role does not have a privilege on.
func Denied(rel *pgsql.Relation) error {
	kind := "table"
	switch {
	case rel.Sequence:
		kind = "sequence"
	case rel.View != "":
		kind = "view"
	}
	return pgerr.New(codes.InsufficientPrivilege, "permission denied for %s %s", kind, rel.Name)
}

// Columns refuses columns, by index, that a role does not have a privilege on.
func Columns(b *right.Book, role uint32, rel *pgsql.Relation, want right.Set, columns []int) error {
	o := Object(rel)
	if b.Has(role, o, want) == want {
		return nil
	}
	for _, i := range columns {
		if !b.HasColumn(role, o, rel.Columns[i].FieldID, want) {
			return Denied(rel)
		}
	}
	return nil
}

// ActsFor is whose rights count for what a view names, via being its oid, 0 for what the statement
// does: its owner's, or, of a security invoker, the session's role's.
func ActsFor(b *right.Book, role, via uint32, invoker bool) uint32 {
	if via == 0 || invoker {
		return role
	}
	return b.Owner(right.Object{Class: right.Relation, ID: via})
}

// Write refuses what a role may not write, and the owners of the views through which it does. word
// names the statement. What its queries read is not looked at.
func Write(b *right.Book, role uint32, w *pgsql.Write, word string) error {
	if word == "MERGE" {
		return merge(b, role, w)
	}
	invoker := false
	for _, t := range w.Through {
		given := &given{rel: t.View, written: t.Written, arbiter: t.Arbiter, updated: t.Updated, word: word}
		if err := given.check(b, ActsFor(b, role, t.Via, invoker)); err != nil {
			return err
		}
		invoker = t.View.SecurityInvoker
	}
	table := &given{rel: w.Relation, written: w.Written, word: word}
	if c := w.Conflict; c != nil {
		table.updated = c.Written
		if c.Named {
			table.arbiter = append(slices.Clip(c.Columns), w.ViewReads...)
		}
	}
	return table.check(b, ActsFor(b, role, w.Via, invoker))
}

// merge is Write for what each clause of a MERGE does, whether or not there are rows for it. One that
// does nothing needs the right to read.
func merge(b *right.Book, role uint32, w *pgsql.Write) error {
	for _, a := range w.Actions {
		if a.Word == "" {
			if !b.HasAnyColumn(role, Object(w.Relation), right.Select) {
				return Denied(w.Relation)
			}
			continue
		}
		if err := Write(b, role, a, a.Word); err != nil {
			return err
		}
	}
	return nil
}

// given is a relation that a statement writes: the columns that it gives values; of ON CONFLICT those
// that it reads for the arbiter, and those that it gives values.
type given struct {
	rel                       *pgsql.Relation
	written, arbiter, updated []int
	word                      string
}

func (g *given) check(b *right.Book, role uint32) error {
	want := right.Insert
	switch g.word {
	case "DELETE":
		want = right.Delete
	case "UPDATE":
		want = right.Update
	}
	whole := b.Has(role, Object(g.rel), want) == want
	if !whole && (want == right.Delete || len(g.written) == 0 && !b.HasAnyColumn(role, Object(g.rel), want)) {
		return Denied(g.rel)
	}
	for _, x := range []struct {
		want    right.Set
		columns []int
	}{{want, g.written}, {right.Select, g.arbiter}, {right.Update, g.updated}} {
		if err := Columns(b, role, g.rel, x.want, x.columns); err != nil {
			return err
		}
	}
	return nil
}

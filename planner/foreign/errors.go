package foreign

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

func of(f *pgsql.Foreign, e *pgerr.Error) *pgerr.Error {
	e.Schema, e.Table, e.Constraint = f.Child.Schema, f.Child.Name, f.Name
	return e
}

func violated(f *pgsql.Foreign) *pgerr.Error {
	return of(f, pgerr.New(codes.ForeignKeyViolation, "insert or update on table \"%s\" violates foreign key constraint \"%s\"", f.Child.Name, f.Name))
}

// key shows values of columns.
func key(rel *pgsql.Relation, columns []int, values []string) string {
	list := make([]string, len(columns))
	for at, i := range columns {
		list[at] = rel.Columns[i].Name
	}
	return "Key (" + strings.Join(list, ", ") + ")=(" + strings.Join(values, ", ") + ")"
}

// Absent is the error of a row of the child without a row of the parent.
func Absent(f *pgsql.Foreign) *pgerr.Error { return violated(f) }

// AbsentKey is its detail.
func AbsentKey(f *pgsql.Foreign, values []string) string {
	return key(f.Child, f.Columns, values) + " is not present in table \"" + f.Parent.Name + "\"."
}

// Mixed is the error of a row with some values and not all, of MATCH FULL.
func Mixed(f *pgsql.Foreign) *pgerr.Error {
	return violated(f).WithDetail("MATCH FULL does not allow mixing of null and nonnull key values.")
}

// StillReferenced is the error of a row of the parent that goes, or gets other values, while a row of
// the child has them.
func StillReferenced(f *pgsql.Foreign, values []string) *pgerr.Error {
	e := pgerr.New(codes.ForeignKeyViolation, "update or delete on table \"%s\" violates foreign key constraint \"%s\" on table \"%s\"",
		f.Parent.Name, f.Name, f.Child.Name)
	return of(f, e).WithDetail("%s is still referenced from table \"%s\".", key(f.Parent, f.Refs, values), f.Child.Name)
}

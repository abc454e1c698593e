package duckdb

import (
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// contents says where a record whose columns are known has what rows are compared by.
func (r *Relation) contents(columns []int) []merge.Column {
	out := make([]merge.Column, len(columns))
	for i, at := range columns {
		out[i] = merge.Column{Index: at, Initial: r.Columns[i].InitialContent}
		if len(out[i].Initial) == 0 {
			out[i].Initial = merge.NullContent()
		}
	}
	return out
}

// countedBranches is the lake side when equal rows are counted.
func countedBranches(r *Relation, files []File, gone deleted, live *liveView) []string {
	if len(files) == 0 {
		return nil
	}
	lake := strings.Join(lakeBranches(r, files, gone, lakeColumns(r)), " UNION ALL ")
	deletes := make([]string, len(live.groups))
	for i, g := range live.groups {
		deletes[i] = fmt.Sprintf("SELECT %s FROM %s WHERE %s = %d", winnerColumns(r, g), g.source.SQL(), systemColumn(0), change.Delete)
	}
	return withoutRows(r, lake, strings.Join(deletes, " UNION ALL "))
}

// withoutRows are the rows of the text all of which no row of deletes takes one away, and
// what is left of the others. Copies are equal, so it does not matter which are left.
// Nothing is read twice but the rows that deletes are of.
func withoutRows(r *Relation, all, deletes string) []string {
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = quote.Name(c.Name)
	}
	prefixed := func(of string) string { return of + strings.Join(names, ", "+of) }
	less := fmt.Sprintf("SELECT %s, count(*) AS _skippr_n FROM (%s) x GROUP BY %s", prefixed("x."),
		deletes, strings.Join(RowIdentity(r.Columns, "x"), ", "))
	same := SameRow(r.Columns, "l", "d")
	whole := fmt.Sprintf("SELECT %s FROM (%s) l ANTI JOIN (%s) d ON %s", prefixed("l."), all, less, same)
	left := fmt.Sprintf("SELECT %s, count(*) - any_value(d._skippr_n) AS _skippr_n FROM (%s) l JOIN (%s) d ON %s GROUP BY %s",
		prefixed("l."), all, less, same, strings.Join(RowIdentity(r.Columns, "l"), ", "))
	rest := fmt.Sprintf("SELECT %s, unnest(range(r._skippr_n)) AS _skippr_n FROM (%s) r WHERE r._skippr_n > 0", prefixed("r."), left)
	return []string{whole, fmt.Sprintf("SELECT %s FROM (%s) c", prefixed("c."), rest)}
}

// RowIdentity are the expressions, in the engine's dialect, by which rows of a relation
// named of are told apart by some columns, as SameRow does.
func RowIdentity(columns []Column, of string) []string {
	var out []string
	for _, c := range columns {
		out = append(out, of+"."+quote.Name(c.Name))
	}
	for _, c := range columns {
		if e := zeroSign(c, of); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// SameRow is the condition, in the engine's dialect, that rows of a and b are equal in
// some columns, as they are stored: nulls and NaNs are like themselves, both zeros apart.
func SameRow(columns []Column, a, b string) string {
	var terms []string
	for _, c := range columns {
		name := quote.Name(c.Name)
		terms = append(terms, fmt.Sprintf("%s.%s IS NOT DISTINCT FROM %s.%s", a, name, b, name))
		if e := zeroSign(c, a); e != "" {
			terms = append(terms, fmt.Sprintf("%s IS NOT DISTINCT FROM %s", e, zeroSign(c, b)))
		}
	}
	return strings.Join(terms, " AND ")
}

// zeroSign tells zeros apart that are equal to the engine, "" for types without.
func zeroSign(c Column, of string) string {
	name := of + "." + quote.Name(c.Name)
	switch c.EngineType {
	case "DOUBLE", "REAL":
		return "(" + name + " = 0 AND signbit(" + name + "))"
	case "DOUBLE[]", "REAL[]":
		return "CAST(" + name + " AS VARCHAR)"
	}
	return ""
}

// InitialContent is a field's initial value as Column.InitialContent has it.
func InitialContent(f schema.Field) ([]byte, error) {
	a, err := schema.InitialColumn(f, 1)
	if err != nil {
		return nil, fmt.Errorf("initial value: %w", err)
	}
	defer a.Release()
	return merge.Content(nil, a, 0)
}

package duckdb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// own puts what the reading transaction has changed over a relation's text. release frees
// what the text names, after the stream was closed; it is never nil.
func (s *session) own(r *Relation, texts map[string]string) (release func(), err error) {
	base := texts[r.Name]
	if r.Own.Truncated {
		base = emptySubquery(r)
	}
	texts[r.Name] = base
	if len(r.Own.Rows) == 0 {
		return func() {}, nil
	}
	columns, err := ownColumns(r)
	if err != nil {
		return func() {}, err
	}
	source, err := inlineSource(r.Own.Rows, 1+len(r.Own.Fields))
	if err != nil {
		return func() {}, err
	}
	texts[r.Name], err = ownText(r, base, source.SQL(), columns)
	return source.Close, err
}

// ownColumns are the places of the relation's columns among those of its own rows.
func ownColumns(r *Relation) ([]int, error) {
	out := make([]int, len(r.Columns))
	for i, c := range r.Columns {
		at := slices.Index(r.Own.Fields, c.FieldID)
		if at < 0 || r.WithPosition {
			return nil, fmt.Errorf("own rows for column %q: %w", c.Name, ErrPlan)
		}
		out[i] = 1 + at
	}
	return out, nil
}

// ownText is base with the rows of a source over it.
func ownText(r *Relation, base, source string, columns []int) (string, error) {
	var list, keys, names []string
	for i, c := range r.Columns {
		cast := fmt.Sprintf("CAST(%s AS %s) AS %s", systemColumn(columns[i]), c.EngineType, quote.Name(c.Name))
		list = append(list, cast)
		names = append(names, "b."+quote.Name(c.Name))
		if slices.Contains(r.Key, c.Name) {
			keys = append(keys, cast)
		}
	}
	rows := "SELECT " + strings.Join(list, ", ") + " FROM " + source
	var branches []string
	switch {
	case r.Own.Truncated:
	case len(r.Key) > 0:
		branches = append(branches, fmt.Sprintf("SELECT %s FROM (%s) b ANTI JOIN (SELECT %s FROM %s) o ON %s",
			strings.Join(names, ", "), base, strings.Join(keys, ", "), source, keysEqual(r, "b", "o")))
	case r.Own.Deletes:
		branches = withoutRows(r, base, fmt.Sprintf("%s WHERE %s = %d", rows, systemColumn(0), change.Delete))
	default:
		branches = append(branches, base)
	}
	if len(r.Key) > 0 && len(keys) != len(r.Key) {
		return "", fmt.Errorf("own rows without the key: %w", ErrPlan)
	}
	if r.Own.Deletes {
		rows += fmt.Sprintf(" WHERE %s <> %d", systemColumn(0), change.Delete)
	}
	return strings.Join(append(branches, rows), " UNION ALL "), nil
}

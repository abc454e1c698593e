package duckdb

import (
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// antiBranches is the lake side when every live change is newer than every lake row:
// rows whose key has a winner are out, by a set for keys of one integer, else by a
// join. Files that no winner's key can be in are read without either.
func antiBranches(r *Relation, files []File, gone deleted, live *liveView) []string {
	var free, hit []File
	for _, f := range files {
		if len(r.Key) == 1 && f.KeyBounds && !live.mayHold(f.KeyMin, f.KeyMax) {
			free = append(free, f)
		} else {
			hit = append(hit, f)
		}
	}
	branches := lakeBranches(r, free, gone, lakeColumns(r))
	if len(hit) == 0 {
		return branches
	}
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = "l." + quote.Name(c.Name)
	}
	lake := strings.Join(lakeBranches(r, hit, gone, lakeColumns(r)), " UNION ALL ")
	if len(r.Key) == 1 {
		if set := live.keySet(); set != nil {
			return append(branches, fmt.Sprintf("SELECT %s FROM (%s) l WHERE %s",
				strings.Join(names, ", "), lake, set.Lacks("l."+quote.Name(r.Key[0]))))
		}
	}
	return append(branches, fmt.Sprintf("SELECT %s FROM (%s) l ANTI JOIN (%s) w ON %s",
		strings.Join(names, ", "), lake, winnerKeys(r, live), keysEqual(r, "l", "w")))
}

// comparedBranches compares tokens both ways (M2): a lake row stays unless a winner of
// its key is at least as new, and a winner counts unless the lake has a newer row.
func comparedBranches(r *Relation, files []File, gone deleted, live *liveView) []string {
	if len(files) == 0 {
		return nil
	}
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = quote.Name(c.Name)
	}
	prefixed := func(of string) string { return of + strings.Join(names, ", "+of) }
	token := fmt.Sprintf(", coalesce(l.%s, %s) AS %s", fieldName(schema.TokenFieldID), tokenMin, tokenName)
	lake := strings.Join(lakeBranches(r, files, gone, lakeColumns(r)+token), " UNION ALL ")
	winners := make([]string, len(live.groups))
	for i, g := range live.groups {
		winners[i] = fmt.Sprintf("SELECT %s, %s AS %s, %s AS _skippr_op FROM %s",
			winnerColumns(r, g), systemColumn(1), tokenName, systemColumn(0), g.source.SQL())
	}
	all := strings.Join(winners, " UNION ALL ")
	keys := winnerKeys(r, live)
	stays := fmt.Sprintf("SELECT %s FROM (%s) l ANTI JOIN (%s) w ON %s AND w.%s >= l.%s",
		prefixed("l."), lake, keys, keysEqual(r, "l", "w"), tokenName, tokenName)
	stale := fmt.Sprintf("SELECT w.* FROM (%s) w JOIN (%s) l ON %s AND l.%s > w.%s",
		keys, lake, keysEqual(r, "l", "w"), tokenName, tokenName)
	counts := fmt.Sprintf("SELECT %s FROM (%s) c ANTI JOIN (%s) w ON %s WHERE c._skippr_op <> %d",
		prefixed("c."), all, stale, keysEqual(r, "c", "w"), change.Delete)
	return []string{stays, counts}
}

// winnersBranch adds the winners of a group that are not deletes.
func winnersBranch(r *Relation, g liveGroup, deletes bool) string {
	text := "SELECT " + winnerColumns(r, g) + " FROM " + g.source.SQL()
	if deletes {
		text += fmt.Sprintf(" WHERE %s <> %d", systemColumn(0), change.Delete)
	}
	return text
}

// winnerColumns is the select list over a group; columns that its schema version does
// not have have their initial value (D2).
func winnerColumns(r *Relation, g liveGroup) string {
	columns := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		value := "NULL"
		if c.Initial != "" {
			value = c.Initial
		}
		if at := g.columns[i]; at >= 0 {
			value = systemColumn(at)
		}
		columns[i] = fmt.Sprintf("CAST(%s AS %s) AS %s", value, c.EngineType, quote.Name(c.Name))
	}
	return strings.Join(columns, ", ")
}

// winnerKeys selects the key columns and the token of all winners, deletes included,
// as far as they satisfy the key predicate.
func winnerKeys(r *Relation, live *liveView) string {
	isKey := make(map[string]bool, len(r.Key))
	for _, k := range r.Key {
		isKey[k] = true
	}
	parts := make([]string, len(live.groups))
	for i, g := range live.groups {
		var columns []string
		for k, c := range r.Columns {
			if isKey[c.Name] {
				columns = append(columns, fmt.Sprintf("CAST(%s AS %s) AS %s",
					systemColumn(g.columns[k]), c.EngineType, quote.Name(c.Name)))
			}
		}
		parts[i] = fmt.Sprintf("SELECT %s, %s AS %s FROM %s", strings.Join(columns, ", "),
			systemColumn(1), tokenName, g.source.SQL())
	}
	text := strings.Join(parts, " UNION ALL ")
	if r.KeyPredicate == "" {
		return text
	}
	return fmt.Sprintf("SELECT * FROM (%s) k WHERE %s", text, r.KeyPredicate)
}

func keysEqual(r *Relation, a, b string) string {
	terms := make([]string, len(r.Key))
	for i, k := range r.Key {
		terms[i] = fmt.Sprintf("%s.%s = %s.%s", a, quote.Name(k), b, quote.Name(k))
	}
	return strings.Join(terms, " AND ")
}

// systemColumn names column at of a scanned record; scans name columns by place.
func systemColumn(at int) string { return fmt.Sprintf("s%d", at) }

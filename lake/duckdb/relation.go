package duckdb

import (
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// Names of columns inside a relation's subquery. Lake columns are named by field id,
// so that a user's column can neither collide with them nor with the engine's virtual
// columns.
const (
	tokenName    = "_skippr_token"
	fileName     = "_skippr_file"
	positionName = "_skippr_pos"
)

// tokenMin stands for the token of a lake row that has none: older than any change.
const tokenMin = "-9223372036854775808"

// deleteFilterMax is up to how many files are named in the filter on position
// deletes; it prunes their row groups, but a long list costs more than it saves.
const deleteFilterMax = 32

// subquery is the text that stands for relation r. live is the log's side, nil for
// none; gone are the positions deleted in its files, nil to join them. It names every column of r, in order.
func subquery(r *Relation, live *liveView, gone deleted) (string, error) {
	if len(r.Columns) == 0 {
		return "", fmt.Errorf("relation %q without columns: %w", r.Name, ErrPlan)
	}
	if r.WithPosition && live != nil {
		return "", fmt.Errorf("relation %q with positions and live slices: %w", r.Name, ErrPlan)
	}
	files := r.Files
	if live != nil && live.truncated {
		files = nil
	}
	var branches []string
	switch {
	case live != nil && live.deletes > 0 && r.WholeRow:
		branches = countedBranches(r, files, gone, live)
	case live == nil || live.rows == 0 || len(r.Key) == 0:
		branches = lakeBranches(r, files, gone, lakeColumns(r))
	case r.Live.CompareTokens:
		branches = comparedBranches(r, files, gone, live)
	default:
		branches = antiBranches(r, files, gone, live)
	}
	if live != nil && live.rows > 0 && (len(r.Key) == 0 || !r.Live.CompareTokens || len(files) == 0) {
		for _, g := range live.groups {
			branches = append(branches, winnersBranch(r, g, live.deletes > 0))
		}
	}
	if len(branches) == 0 {
		return emptySubquery(r), nil
	}
	return strings.Join(branches, " UNION ALL "), nil
}

// emptySubquery has the relation's columns and no rows; preparing it opens no file.
func emptySubquery(r *Relation) string {
	columns := make([]string, 0, len(r.Columns)+2)
	for _, c := range r.Columns {
		columns = append(columns, fmt.Sprintf("CAST(NULL AS %s) AS %s", c.EngineType, quote.Name(c.Name)))
	}
	if r.WithPosition {
		columns = append(columns, "CAST(NULL AS VARCHAR) AS "+quote.Name(fileName),
			"CAST(NULL AS BIGINT) AS "+quote.Name(positionName))
	}
	return "SELECT " + strings.Join(columns, ", ") + " WHERE false"
}

// lakeColumns is the select list over a lake scan named l.
func lakeColumns(r *Relation) string {
	columns := make([]string, 0, len(r.Columns)+2)
	for _, c := range r.Columns {
		columns = append(columns, fmt.Sprintf("l.%s AS %s", fieldName(c.FieldID), quote.Name(c.Name)))
	}
	if r.WithPosition {
		columns = append(columns, "l.filename AS "+quote.Name(fileName),
			"CAST(l.file_row_number AS BIGINT) AS "+quote.Name(positionName))
	}
	return strings.Join(columns, ", ")
}

func fieldName(id int32) string { return fmt.Sprintf("f%d", id) }

// lakeBranches reads files: those without deletes plainly, the others without their
// deleted positions. columns is a select list over l.
func lakeBranches(r *Relation, files []File, gone deleted, columns string) []string {
	var clean, dirty []File
	for _, f := range files {
		if f.HasDeletes && len(r.PositionDeletes) > 0 && (gone == nil || gone[f.Path] != nil) {
			dirty = append(dirty, f)
		} else {
			clean = append(clean, f)
		}
	}
	var branches []string
	if len(clean) > 0 {
		branches = append(branches, "SELECT "+columns+" FROM "+scanFiles(r, clean)+" l")
	}
	if gone != nil {
		for _, f := range dirty {
			branches = append(branches, "SELECT "+columns+" FROM "+scanFiles(r, []File{f})+" l WHERE "+
				gone[f.Path].Lacks("l.file_row_number"))
		}
		return branches
	}
	if len(dirty) > 0 {
		branches = append(branches, "SELECT "+columns+" FROM "+scanFiles(r, dirty)+" l ANTI JOIN "+
			scanDeletes(r, dirty)+" d ON l.filename = d.file_path AND l.file_row_number = d.pos")
	}
	return branches
}

// scanFiles reads files by field id, the token included.
func scanFiles(r *Relation, files []File) string {
	var rows int64
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = quote.Text(f.Path)
		rows += f.Rows
	}
	fields := make([]string, 0, len(r.Columns)+1)
	add := func(id int32, engineType, initial string) {
		fields = append(fields, fmt.Sprintf("%d:{name:'%s',type:%s,default_value:%s}", id, fieldName(id),
			quote.Text(engineType), initial))
	}
	for _, c := range r.Columns {
		add(c.FieldID, c.EngineType, defaultValue(c))
	}
	add(schema.TokenFieldID, "BIGINT", "NULL")
	return fmt.Sprintf("read_parquet([%s], explicit_cardinality=%d, schema=MAP {%s})",
		strings.Join(paths, ","), max(1, rows), strings.Join(fields, ","))
}

// defaultValue is a column's initial value as a scan wants it: all of a scan are of one
// type, and it casts each to its column's.
func defaultValue(c Column) string {
	if c.Initial == "" || c.Initial == "NULL" {
		return "NULL"
	}
	return "CAST(" + c.Initial + " AS VARCHAR)"
}

func scanDeletes(r *Relation, files []File) string {
	paths := make([]string, len(r.PositionDeletes))
	for i, p := range r.PositionDeletes {
		paths[i] = quote.Text(p)
	}
	where := ""
	if len(files) <= deleteFilterMax {
		names := make([]string, len(files))
		for i, f := range files {
			names[i] = quote.Text(f.Path)
		}
		where = " WHERE file_path IN (" + strings.Join(names, ",") + ")"
	}
	return fmt.Sprintf("(SELECT file_path, pos FROM read_parquet([%s])%s)", strings.Join(paths, ","), where)
}

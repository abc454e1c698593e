package ddl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
)

// planColumns are those of CREATE PIPELINE … WITH (dry_run = true): what there is and
// what will be made, whether it is well, what will happen or what is in the way, how
// much there is to copy, and the SQL that mends what is not well.
var planColumns = []Column{
	{"object", oidText}, {"name", oidText}, {"ok", oidBool}, {"detail", oidText}, {"rows", oidInt8}, {"bytes", oidInt8}, {"fix", oidText},
}

// dryRun says whether a statement asks for the plan alone.
func dryRun(s *CreatePipeline) bool {
	i := slices.IndexFunc(s.Options, func(o Option) bool { return o.Name == "dry_run" })
	if i < 0 {
		return false
	}
	v, err := checkBool(s.Options[i].Value)
	return err == nil && v == "true"
}

// planPipeline tells what CREATE PIPELINE would do and what is in its way. It changes
// nothing, here or at the source.
func (x *Executor) planPipeline(ctx context.Context, s *CreatePipeline, session Session) (*Result, error) {
	snap := x.Catalog.Snapshot()
	defer snap.Close()
	if _, err := snap.Pipeline(s.Name); err == nil && !s.OrReplace {
		return nil, duplicate("pipeline", s.Name)
	}
	p, c, err := x.buildPipeline(snap, s, session)
	if err != nil {
		return nil, err
	}
	findings, err := x.Controller.Validate(ctx, c, p)
	if err != nil {
		return nil, err
	}
	r := &Result{Columns: planColumns}
	bad := map[string]bool{} // tables that have findings of their own
	for _, f := range findings {
		table, ofTable := strings.CutPrefix(f.Check, "table ")
		switch {
		case ofTable && f.OK: // told with its columns
		case ofTable:
			bad[table] = true
			r.Rows = append(r.Rows, planRow("table", table, false, f.Detail, nil, nil, f.Fix))
		default:
			r.Rows = append(r.Rows, planRow("source", f.Check, f.OK, f.Detail, nil, nil, f.Fix))
		}
		if f.Check == "connect" && !f.OK {
			return r, nil
		}
	}
	tables, err := x.Controller.Discover(ctx, c, p.Selection)
	if err != nil {
		return nil, err
	}
	x.planTables(r, tables, bad, p, takenNames(snap, s))
	return r, nil
}

func planRow(object, name string, ok bool, detail string, rows, bytes any, fix string) []any {
	return []any{object, name, ok, orNull(detail), rows, bytes, orNull(fix)}
}

// planTables adds a row for each table and each of its columns, and one for the copy.
func (x *Executor) planTables(r *Result, tables []Discovered, bad map[string]bool, p *catalog.Pipeline, taken map[string]bool) {
	var total, totalBytes int64
	seen := map[string]bool{}
	left := map[string]bool{}
	for _, d := range tables {
		name := d.Schema + "." + d.Table
		if !seen[name] {
			seen[name] = true
			target := strings.ReplaceAll(p.TargetSchema, "%s", d.Schema) + "." + d.Table
			problem := tableProblem(p, d, name, taken)
			switch {
			case bad[name]: // said already, with what mends it
			case problem != nil:
				left[name] = true
				ok := len(p.Selection.Tables) == 0 && !strings.HasPrefix(problem.Message, "table \""+target)
				r.Rows = append(r.Rows, planRow("table", name, ok, strings.TrimSpace("left out: "+problem.Cause.Error()+". "+problem.Hint), nil, nil, ""))
			default:
				detail := strings.Join(append([]string{"becomes " + target}, d.Notes...), "; ")
				r.Rows = append(r.Rows, planRow("table", name, true, detail, known(d.EstimatedRows), d.EstimatedBytes, ""))
				total, totalBytes = total+max(d.EstimatedRows, 0), totalBytes+d.EstimatedBytes
			}
		}
		if d.Column == "" || bad[name] || left[name] {
			continue
		}
		r.Rows = append(r.Rows, planRow("column", name+"."+d.Column, true, columnPlan(d), nil, nil, ""))
	}
	if p.Options["copy_data"] == "false" {
		r.Rows = append(r.Rows, planRow("copy", "existing rows", true, "not copied: copy_data is false", nil, nil, ""))
		return
	}
	detail := "as fast as the source and the disk allow; SHOW STATS says how long it takes"
	if limit, err := strconv.ParseInt(p.Options["backfill_rows_per_second"], 10, 64); err == nil && limit > 0 {
		detail = fmt.Sprintf("about %s at %d rows/s", time.Duration(float64(total)/float64(limit)*float64(time.Second)).Round(time.Second), limit)
	}
	r.Rows = append(r.Rows, planRow("copy", "existing rows", true, detail, total, totalBytes, ""))
}

func known(n int64) any {
	if n < 0 {
		return nil
	}
	return n
}

// columnPlan says what a column becomes.
func columnPlan(d Discovered) string {
	words := []string{d.SourceType + " becomes " + d.LakeType}
	if d.Key {
		words = append(words, "key")
	}
	if d.NotNull {
		words = append(words, "not null")
	}
	if d.Policy != "" {
		words = append(words, d.Policy)
	}
	return strings.Join(words, ", ")
}

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
			planLine{object: "table", name: table, detail: f.Detail, fix: f.Fix}.add(r)
		default:
			planLine{object: "source", name: f.Check, ok: f.OK, detail: f.Detail, fix: f.Fix}.add(r)
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

// planLine is a row of a plan. rows and bytes are nil where there is nothing to count.
type planLine struct {
	object, name string
	ok           bool
	detail       string
	rows, bytes  any
	fix          string
}

func (l planLine) add(r *Result) {
	r.Rows = append(r.Rows, []any{l.object, l.name, l.ok, orNull(l.detail), l.rows, l.bytes, orNull(l.fix)})
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
				planLine{object: "table", name: name, ok: ok, detail: strings.TrimSpace("left out: " + problem.Cause.Error() + ". " + problem.Hint)}.add(r)
			default:
				detail := strings.Join(append([]string{"becomes " + target}, d.Notes...), "; ")
				planLine{object: "table", name: name, ok: true, detail: detail, rows: known(d.EstimatedRows), bytes: d.EstimatedBytes}.add(r)
				total, totalBytes = total+max(d.EstimatedRows, 0), totalBytes+d.EstimatedBytes
			}
		}
		if d.Column == "" || bad[name] || left[name] {
			continue
		}
		planLine{object: "column", name: name + "." + d.Column, ok: true, detail: columnPlan(d)}.add(r)
	}
	if p.Options["copy_data"] == "false" {
		planLine{object: "copy", name: "existing rows", ok: true, detail: "not copied: copy_data is false"}.add(r)
		return
	}
	detail := "as fast as the source and the disk allow; SHOW STATS says how long it takes"
	if limit, err := strconv.ParseInt(p.Options["backfill_rows_per_second"], 10, 64); err == nil && limit > 0 {
		detail = fmt.Sprintf("about %s at %d rows/s", time.Duration(float64(total)/float64(limit)*float64(time.Second)).Round(time.Second), limit)
	}
	planLine{object: "copy", name: "existing rows", ok: true, detail: detail, rows: total, bytes: totalBytes}.add(r)
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

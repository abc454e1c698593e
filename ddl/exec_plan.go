package ddl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/pgerr"
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
	found := map[string]Finding{} // of tables
	for _, f := range findings {
		table, ofTable := strings.CutPrefix(f.Check, "table ")
		switch {
		case ofTable && f.OK: // told with its columns
			found[table] = f
		case ofTable:
			found[table] = f
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
	x.planTables(r, tables, found, p, takenNames(snap, s))
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

// planTables adds a row for each table and each of its columns, and one for the copy. What
// VALIDATE found of a table stands in its row as it stands there.
func (x *Executor) planTables(r *Result, tables []Discovered, found map[string]Finding, p *catalog.Pipeline, taken map[string]bool) {
	var all copyPlan
	seen := map[string]bool{}
	left := map[string]bool{}
	for _, d := range tables {
		name := d.Schema + "." + d.Table
		if !seen[name] {
			seen[name] = true
			f, looked := found[name]
			target := strings.ReplaceAll(p.TargetSchema, "%s", d.Schema) + "." + d.Table
			problem := tableProblem(p, d, name, taken)
			switch {
			case looked && !f.OK: // said already, with what mends it
				left[name] = true
			case problem != nil:
				left[name] = true
				planLeftOut(name, f, problem, p).add(r)
			default:
				if !looked {
					f.Detail = strings.Join(d.Notes, "; ")
				}
				planLine{
					object: "table", name: name, ok: true, detail: strings.TrimSuffix("becomes "+target+"; "+f.Detail, "; "),
					rows: known(d.EstimatedRows), bytes: d.EstimatedBytes,
				}.add(r)
				all.add(d)
			}
		}
		if d.Column == "" || left[name] {
			continue
		}
		planLine{object: "column", name: name + "." + d.Column, ok: true, detail: columnPlan(d)}.add(r)
	}
	all.line(p).add(r)
}

// planLeftOut is the row of a table that is not taken in: with what was found of it, or
// because its name is taken here.
func planLeftOut(name string, f Finding, problem *pgerr.Error, p *catalog.Pipeline) planLine {
	nameTaken := problem.Code == codes.DuplicateRelation
	if f.Detail != "" && !nameTaken {
		return planLine{object: "table", name: name, ok: f.OK, detail: f.Detail, fix: f.Fix}
	}
	return planLine{
		object: "table", name: name, ok: len(p.Selection.Tables) == 0 && !nameTaken,
		detail: strings.TrimSpace("left out: " + problem.Cause.Error() + ". " + problem.Hint),
	}
}

// copyPlan is how much there is to copy, as the source estimates it.
type copyPlan struct {
	rows, bytes int64
	unknown     int // tables whose rows the source has no estimate of
}

func (c *copyPlan) add(d Discovered) {
	c.rows, c.bytes = c.rows+max(d.EstimatedRows, 0), c.bytes+d.EstimatedBytes
	if d.EstimatedRows < 0 {
		c.unknown++
	}
}

// line is the row of the copy. Its rows are null unless there is an estimate of each table.
func (c *copyPlan) line(p *catalog.Pipeline) planLine {
	l := planLine{object: "copy", name: "existing rows", ok: true}
	if p.Options["copy_data"] == "false" {
		l.detail = "not copied: copy_data is false"
		return l
	}
	about := "about"
	if l.rows, l.bytes = c.rows, c.bytes; c.unknown > 0 {
		l.rows, about = nil, "at least"
	}
	l.detail = "as fast as the source and the disk allow; pg_stat_pipeline says how long it takes"
	if limit, err := strconv.ParseInt(p.Options["backfill_rows_per_second"], 10, 64); err == nil && limit > 0 {
		l.detail = fmt.Sprintf("%s %s at %d rows/s", about, time.Duration(float64(c.rows)/float64(limit)*float64(time.Second)).Round(time.Second), limit)
	}
	if c.unknown > 0 {
		l.detail += fmt.Sprintf("; tables whose rows the source has not counted: %d, of which ANALYZE there makes an estimate", c.unknown)
	}
	return l
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

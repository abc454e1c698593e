package own

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// keyOfForeign is the column of the values that a statement of a foreign key is about, and newOfForeign
// the one of those that they become.
const (
	keyOfForeign = "k1"
	newOfForeign = "n1"
)

// ofForeign says whether a plan is of a foreign key: it has values in it.
func ofForeign(p *duckdb.Plan) bool {
	return slices.ContainsFunc(p.Relations, func(r duckdb.Relation) bool {
		return r.Inline != nil && len(r.Columns) > 0 && r.Columns[0].Name == keyOfForeign
	})
}

// exists is a condition of a plan: a relation has a row with the value.
var exists = regexp.MustCompile(`(NOT )?EXISTS \(SELECT 1 AS c1 FROM "(\w+)" AS \w+ WHERE \(\w+\."(\w+)" = \w+\."\w+"\)\)`)

// foreign answers what the foreign keys of a statement ask.
func (r *runner) foreign(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	var given [][]any
	var about *duckdb.Relation
	for i := range p.Relations {
		rel := &p.Relations[i]
		if rel.Inline == nil {
			about = rel
			continue
		}
		in, err := ipc.NewReader(bytes.NewReader(rel.Inline))
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		for in.Next() {
			for _, row := range query.Values(in.RecordBatch()) {
				given = append(given, slices.Clone(row))
			}
		}
		in.Release()
		if in.Err() != nil {
			return nil, in.Err()
		}
	}
	if strings.HasPrefix(p.SQL, "SELECT CAST(") {
		return r.lacking(ctx, p, given)
	}
	return r.act(ctx, p, about, given)
}

// scanned finds a relation of a plan by name, and reads a column of it.
func (r *runner) scanned(ctx context.Context, p *duckdb.Plan, name, column string) ([]any, error) {
	i := slices.IndexFunc(p.Relations, func(rel duckdb.Relation) bool { return rel.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("relation %s: %w", name, duckdb.ErrPlan)
	}
	at := slices.IndexFunc(p.Relations[i].Columns, func(c duckdb.Column) bool { return c.Name == column })
	read, err := r.s.deps.Executor().Scan(ctx, &p.Relations[i])
	if err != nil {
		return nil, err
	}
	out := make([]any, len(read))
	for n, row := range read {
		out[n] = row[at]
	}
	return out, nil
}

// oneText is an answer of one text, or of none.
func oneText(v any, found bool) (planner.Rows, error) {
	text := &source.Version{Columns: []source.Column{{Name: "c1", Type: schema.Type{Kind: schema.String}}}}
	if !found {
		return answer(text, nil, nil)
	}
	return answer(text, nil, [][]any{{fmt.Sprint(v)}})
}

// lacking finds one of the values that meets the conditions of a plan.
func (r *runner) lacking(ctx context.Context, p *duckdb.Plan, given [][]any) (planner.Rows, error) {
	for _, condition := range exists.FindAllStringSubmatch(p.SQL, -1) {
		there, err := r.scanned(ctx, p, condition[2], condition[3])
		if err != nil {
			return nil, err
		}
		given = slices.DeleteFunc(given, func(row []any) bool { return slices.Contains(there, row[0]) == (condition[1] != "") })
	}
	if len(given) == 0 {
		return oneText(nil, false)
	}
	return oneText(given[0][0], true)
}

// unmatched answers the look for rows that a new foreign key does not allow.
func (r *runner) unmatched(ctx context.Context, p *duckdb.Plan) (planner.Rows, error) {
	condition := exists.FindStringSubmatch(p.SQL)
	if condition == nil {
		return nil, fmt.Errorf("proof of a foreign key: %w", duckdb.ErrPlan)
	}
	there, err := r.scanned(ctx, p, condition[2], condition[3])
	if err != nil {
		return nil, err
	}
	other := slices.IndexFunc(p.Relations, func(rel duckdb.Relation) bool { return rel.Name != condition[2] })
	values, err := r.scanned(ctx, p, p.Relations[other].Name, "c")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(values, func(v any) bool { return v != nil && !slices.Contains(there, v) })
	if i < 0 {
		return oneText(nil, false)
	}
	return oneText(values[i], true)
}

// matched is the column of the child in the condition of an action.
var matched = regexp.MustCompile(`\w+\."` + keyOfForeign + `" = \w+\."(\w+)"`)

// assigned is a value that an action gives.
var assigned = regexp.MustCompile(`CAST\((NULL|'?-?\d+'?) AS `)

// act answers the statement that an action of a foreign key runs: of each row of the child that has
// one of the values its key, and what becomes of it.
func (r *runner) act(ctx context.Context, p *duckdb.Plan, child *duckdb.Relation, given [][]any) (planner.Rows, error) {
	m := matched.FindStringSubmatch(p.SQL)
	if m == nil || child == nil {
		return nil, fmt.Errorf("action of a foreign key: %w", duckdb.ErrPlan)
	}
	_, v := r.c.view(childTable)
	if v == nil {
		return nil, fmt.Errorf("table %s is gone while a statement is planned over it", childTable)
	}
	read, err := r.s.deps.Executor().Scan(ctx, child)
	if err != nil {
		return nil, err
	}
	place := make([]int, len(v.Columns))
	for i, c := range v.Columns {
		place[i] = slices.IndexFunc(child.Columns, func(rc duckdb.Column) bool { return rc.Name == c.Name })
	}
	at := slices.IndexFunc(v.Columns, func(c source.Column) bool { return c.Name == m[1] })
	if at < 0 {
		return nil, fmt.Errorf("action of a foreign key on column %s: %w", m[1], duckdb.ErrPlan)
	}
	deletes := !strings.Contains(p.SQL, " AS c2") // it selects the key alone
	old := v.KeyIndexes()
	var out [][]any
	for _, row := range read {
		i := slices.IndexFunc(given, func(g []any) bool { return g[0] == row[place[at]] })
		if i < 0 {
			continue
		}
		var one []any
		for _, k := range old {
			one = append(one, row[place[k]])
		}
		for c := 0; c < len(v.Columns) && !deletes; c++ {
			switch {
			case c != at:
				one = append(one, row[place[c]])
			case len(given[0]) > 1:
				one = append(one, given[i][1])
			default:
				to, err := assignment(p.SQL)
				if err != nil {
					return nil, err
				}
				one = append(one, to)
			}
		}
		out = append(out, one)
	}
	if deletes {
		return answer(&source.Version{}, columnsAt(v, old), out)
	}
	return answer(v, columnsAt(v, old), out)
}

// assignment is the value that an action gives a column.
func assignment(sql string) (any, error) {
	m := assigned.FindStringSubmatch(sql)
	switch {
	case m == nil:
		return nil, fmt.Errorf("action without a value: %w", duckdb.ErrPlan)
	case m[1] == "NULL":
		return nil, nil
	}
	return strconv.ParseInt(strings.Trim(m[1], "'"), 10, 64)
}

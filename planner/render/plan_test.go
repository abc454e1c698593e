package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/planner/render"
)

func tree(t *testing.T, engine string, o render.Options) string {
	t.Helper()
	p, err := render.Tree([]byte(engine), o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), `"Parallel Aware":false,"Async Capable":false`, "…")
}

// What the engine shows of a plan, as PostgreSQL's nodes.
func TestTree(t *testing.T) {
	const scan = `{"name": "SKIPPR_SCAN ", "children": [], "extra_info": {"Function": "SKIPPR_SCAN", "Filters": ["f1>1", "(f2<'x')"], "Estimated Cardinality": "2"}}`
	for name, test := range map[string]struct{ engine, want string }{
		"a scan, with its projection": {
			`[{"name": "PROJECTION", "children": [` + scan + `], "extra_info": {"Projections": "a", "Estimated Cardinality": "2"}}]`,
			`{"Node Type":"Seq Scan",…,"Relation Name":"t","Alias":"t","Filter":"((f1>1) AND (f2<'x'))"}`,
		},
		"groups by a column of a projection, and what is filtered": {
			`[{"name": "FILTER", "extra_info": {"Expression": "(count_star() > 1)"}, "children": [{"name": "HASH_GROUP_BY", "extra_info": {"Groups": ["#1", "#9"]},
				"children": [{"name": "PROJECTION", "extra_info": {"Projections": ["x", "lower(y)"]}, "children": [{"name": "DUMMY_SCAN", "children": []}]}]}]}]`,
			`{"Node Type":"Aggregate","Strategy":"Hashed","Partial Mode":"Simple",…,"Group Key":["lower(y)","#9"],"Filter":"(count_star() > 1)",` +
				`"Plans":[{"Node Type":"Result","Parent Relationship":"Outer",…}]}`,
		},
		"a filter of limited rows": {
			`[{"name": "FILTER", "extra_info": {"Expression": "(a > 1)"}, "children": [{"name": "TOP_N", "extra_info": {"Top": "3", "Order By": "b DESC"}, "children": []}]}]`,
			`{"Node Type":"Subquery Scan",…,"Filter":"(a > 1)","Plans":[{"Node Type":"Sort","Parent Relationship":"Subquery",…,"Sort Key":["b DESC"],"Sort Method":"top-N heapsort"}]}`,
		},
		"a join with a common table expression": {
			`[{"name": "CTE", "extra_info": {"CTE Name": "y", "Table Index": "1"}, "children": [{"name": "EXPRESSION_SCAN"},
				{"name": "HASH_JOIN", "extra_info": {"Join Type": "OUTER", "Conditions": "a = b"}, "children": [
				{"name": "CTE_SCAN", "extra_info": {"CTE Index": "1"}}, {"name": "RANGE", "extra_info": {"Function": "RANGE"}}]}]}]`,
			`{"Node Type":"Hash Join",…,"Join Type":"Full","Hash Cond":"(a = b)","Plans":[{"Node Type":"Values Scan","Parent Relationship":"InitPlan","Subplan Name":"CTE y",…},` +
				`{"Node Type":"CTE Scan","Parent Relationship":"Outer",…,"CTE Name":"y","Alias":"y"},` +
				`{"Node Type":"Function Scan","Parent Relationship":"Inner",…,"Function Name":"range","Alias":"range"}]}`,
		},
		"what PostgreSQL has not": {`[{"name": "RESERVOIR_SAMPLE"}]`, `{"Node Type":"Reservoir Sample",…}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tree(t, test.engine, render.Options{Relation: "t", Schema: "s"}); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// What ANALYZE counts, and what the engine has no number for.
func TestTreeMeasured(t *testing.T) {
	const engine = `{"children": [{"operator_type": "EXPLAIN_ANALYZE", "operator_name": "EXPLAIN_ANALYZE", "children": [
		{"operator_type": "FILTER", "operator_name": "FILTER", "cpu_time": 0.0035, "operator_cardinality": 2, "extra_info": {"Expression": "b"}, "children": [
		{"operator_type": "TABLE_SCAN", "operator_name": "SEQ_SCAN", "cpu_time": 0.001, "operator_cardinality": 9, "extra_info": {"Estimated Cardinality": "7"}, "children": []}]}]}]}`
	want := `{"Node Type":"Seq Scan",…,"Relation Name":"t","Schema":"s","Alias":"t","Startup Cost":0.00,"Total Cost":0.00,"Plan Rows":7,"Plan Width":0,` +
		`"Actual Startup Time":0.000,"Actual Total Time":3.500,"Actual Rows":2,"Actual Loops":1,"Filter":"(b)","Rows Removed by Filter":7}`
	if got := tree(t, engine, render.Options{Costs: true, Timing: true, Verbose: true, Relation: "t", Schema: "s"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{"", "[]", "{}", `"x"`, `[{"name": "A"}, {"name": "B"}]`} {
		if p, err := render.Tree([]byte(bad), render.Options{}); err == nil {
			t.Errorf("%s: %+v", bad, p)
		}
	}
}

package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Plan is a node of a plan as PostgreSQL's EXPLAIN has it, with its keys in its order. Costs and
// widths are 0: the engine has none. Actual times are the engine's processor time in
// milliseconds, with that of the nodes below.
type Plan struct {
	NodeType     string       `json:"Node Type"`
	Strategy     string       `json:"Strategy,omitempty"`
	PartialMode  string       `json:"Partial Mode,omitempty"`
	Operation    string       `json:"Operation,omitempty"`
	Parent       string       `json:"Parent Relationship,omitempty"`
	SubplanName  string       `json:"Subplan Name,omitempty"`
	Parallel     bool         `json:"Parallel Aware"`
	Async        bool         `json:"Async Capable"`
	JoinType     string       `json:"Join Type,omitempty"`
	FunctionName string       `json:"Function Name,omitempty"`
	CTEName      string       `json:"CTE Name,omitempty"`
	Relation     string       `json:"Relation Name,omitempty"`
	Schema       string       `json:"Schema,omitempty"`
	Alias        string       `json:"Alias,omitempty"`
	StartupCost  *json.Number `json:"Startup Cost,omitempty"`
	TotalCost    *json.Number `json:"Total Cost,omitempty"`
	Rows         *int64       `json:"Plan Rows,omitempty"`
	Width        *int64       `json:"Plan Width,omitempty"`
	StartupTime  *Millis      `json:"Actual Startup Time,omitempty"`
	TotalTime    *Millis      `json:"Actual Total Time,omitempty"`
	ActualRows   *int64       `json:"Actual Rows,omitempty"`
	ActualLoops  *int64       `json:"Actual Loops,omitempty"`
	Output       []string     `json:"Output,omitempty"`
	SortKey      []string     `json:"Sort Key,omitempty"`
	SortMethod   string       `json:"Sort Method,omitempty"`
	GroupKey     []string     `json:"Group Key,omitempty"`
	HashCond     string       `json:"Hash Cond,omitempty"`
	MergeCond    string       `json:"Merge Cond,omitempty"`
	JoinFilter   string       `json:"Join Filter,omitempty"`
	Filter       string       `json:"Filter,omitempty"`
	Removed      *int64       `json:"Rows Removed by Filter,omitempty"`
	Plans        []*Plan      `json:"Plans,omitempty"`
}

// Millis is a time in milliseconds; it is written with three digits.
type Millis float64

// MarshalJSON implements json.Marshaler.
func (m Millis) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%.3f", float64(m)), nil }

// Options say what a plan shows.
type Options struct {
	Costs, Timing, Verbose bool
	// Schema and Relation name the only relation that is read, if there is only one: the engine
	// does not say what its scans read.
	Schema, Relation string
}

// operator is a node of the engine's plan: with its names for EXPLAIN, and those for ANALYZE.
type operator struct {
	Name     string                     `json:"name"`
	Operator string                     `json:"operator_name"`
	Type     string                     `json:"operator_type"`
	Rows     *int64                     `json:"operator_cardinality"`
	Seconds  float64                    `json:"cpu_time"`
	Info     map[string]json.RawMessage `json:"extra_info"`
	Children []*operator                `json:"children"`
}

// Tree makes PostgreSQL's tree of the engine's plan, which is the text of its EXPLAIN (FORMAT
// json), with or without ANALYZE.
func Tree(engine []byte, o Options) (*Plan, error) {
	root := &operator{}
	var list []*operator
	err := json.Unmarshal(engine, &list)
	if err != nil {
		err = json.Unmarshal(engine, root)
		list = root.Children
	}
	if err != nil {
		return nil, fmt.Errorf("read the plan of the engine: %w", err)
	}
	for len(list) == 1 && (list[0].name() == "EXPLAIN_ANALYZE" || list[0].name() == "RESULT_COLLECTOR") {
		list = list[0].Children
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("read the plan of the engine: %d roots", len(list))
	}
	t := &tree{Options: o, named: map[string]string{}}
	return t.node(list[0]), nil
}

// Modify is the node of a statement that writes the rows of p. written is nil where it did not.
func Modify(p *Plan, operation, schema, relation string, o Options, written *int) *Plan {
	t := &tree{Options: o}
	out := &Plan{NodeType: "ModifyTable", Operation: operation, Relation: relation, Alias: relation, Plans: []*Plan{p}}
	if o.Verbose {
		out.Schema = schema
	}
	p.Parent = "Outer"
	t.costs(out, 0)
	out.Wrote(written)
	return out
}

// Wrote tells how many rows came of a node whose statement was run without its times.
func (p *Plan) Wrote(rows *int) {
	if rows != nil {
		n, once := int64(*rows), int64(1)
		p.ActualRows, p.ActualLoops = &n, &once
	}
}

type tree struct {
	Options
	named map[string]string // names of common table expressions, by the engine's number
}

func (op *operator) name() string {
	for _, n := range []string{op.Name, op.Operator, op.Type} {
		if n = strings.TrimSpace(n); n != "" {
			return n
		}
	}
	return ""
}

// list are the texts of a key of the engine's.
func (op *operator) list(key string) []string {
	var many []string
	if raw := op.Info[key]; raw != nil && json.Unmarshal(raw, &many) != nil {
		var one string
		if json.Unmarshal(raw, &one) == nil && one != "" {
			many = []string{one}
		}
	}
	return many
}

// keys are the texts of a key, those that mean a column of a projection below as that has it.
func (op *operator) keys(key string) []string {
	list := op.list(key)
	for i, k := range list {
		list[i] = op.resolved(k)
	}
	return list
}

func (op *operator) resolved(k string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(k, "#"))
	if err != nil || !strings.HasPrefix(k, "#") || len(op.Children) != 1 || op.Children[0].name() != "PROJECTION" {
		return k
	}
	below := op.Children[0]
	if list := below.list("Projections"); n >= 0 && n < len(list) {
		return below.resolved(list[n])
	}
	return k
}

func (op *operator) text(key string) string { return strings.Join(op.list(key), ", ") }

// condition are the texts of a key as one condition.
func (op *operator) condition(key string) string {
	list := op.list(key)
	for i, c := range list {
		if !strings.HasPrefix(c, "(") || !strings.HasSuffix(c, ")") {
			list[i] = "(" + c + ")"
		}
	}
	return both(list...)
}

// both are conditions of which all must hold.
func both(list ...string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return "(" + strings.Join(list, " AND ") + ")"
}

func (t *tree) node(op *operator) *Plan {
	name := op.name()
	switch {
	case name == "CTE" && len(op.Children) == 2:
		return t.common(op)
	case name == "PROJECTION" && len(op.Children) == 1:
		return t.projection(op)
	case name == "FILTER" && len(op.Children) == 1:
		return t.filter(op)
	}
	p := &Plan{NodeType: nodeType(op, name)}
	t.detail(p, op, name)
	t.measure(p, op)
	for i, c := range op.Children {
		child := t.node(c)
		child.Parent = [2]string{"Outer", "Inner"}[min(i, 1)]
		if p.NodeType == "Append" {
			child.Parent = "Member"
		}
		p.Plans = append(p.Plans, child)
	}
	return p
}

// measure has what the engine thinks of and has counted at a node.
func (t *tree) measure(p *Plan, op *operator) {
	rows, _ := strconv.ParseInt(op.text("Estimated Cardinality"), 10, 64) // 0 where it does not say
	t.costs(p, rows)
	if op.Rows == nil {
		return
	}
	once := int64(1)
	p.ActualRows, p.ActualLoops = op.Rows, &once
	if t.Timing {
		start, total := Millis(0), Millis(op.Seconds*1000)
		p.StartupTime, p.TotalTime = &start, &total
	}
}

func (t *tree) costs(p *Plan, rows int64) {
	if t.Costs {
		none, width := json.Number("0.00"), int64(0)
		p.StartupCost, p.TotalCost, p.Rows, p.Width = &none, &none, &rows, &width
	}
}

// common is a query with a common table expression, which PostgreSQL has among its nodes.
func (t *tree) common(op *operator) *Plan {
	name := op.text("CTE Name")
	if i := op.text("Table Index"); i != "" {
		t.named[i] = name
	}
	made, p := t.node(op.Children[0]), t.node(op.Children[1])
	made.Parent, made.SubplanName = "InitPlan", "CTE "+name
	p.Plans = append([]*Plan{made}, p.Plans...)
	return p
}

// projection is part of the node below, as in PostgreSQL.
func (t *tree) projection(op *operator) *Plan {
	p := t.node(op.Children[0])
	if t.Verbose {
		p.Output = op.list("Projections")
	}
	t.measureAgain(p, op)
	return p
}

// measureAgain is measure for what became part of the node below.
func (t *tree) measureAgain(p *Plan, op *operator) {
	rows := p.Rows
	t.measure(p, op)
	if op.text("Estimated Cardinality") == "" {
		p.Rows = rows
	}
}

// filter is part of the node below where PostgreSQL has it so.
func (t *tree) filter(op *operator) *Plan {
	p := t.node(op.Children[0])
	switch p.NodeType {
	case "Limit", "Sort", "Append", "Unique", "WindowAgg":
		p.Parent = "Subquery"
		p = &Plan{NodeType: "Subquery Scan", Plans: []*Plan{p}}
	}
	if f := op.condition("Expression"); p.Filter == "" {
		p.Filter = f
	} else {
		p.Filter = both(p.Filter, f)
	}
	before := p.ActualRows
	if before == nil && len(p.Plans) == 1 {
		before = p.Plans[0].ActualRows
	}
	t.measureAgain(p, op)
	if before != nil && op.Rows != nil {
		removed := *before - *op.Rows
		p.Removed = &removed
	}
	return p
}

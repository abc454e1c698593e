package render

import "strings"

// nodeTypes are PostgreSQL's words for the engine's operators.
var nodeTypes = map[string]string{
	"SEQ_SCAN": "Seq Scan", "TABLE_SCAN": "Seq Scan", "SKIPPR_SCAN": "Seq Scan", "INDEX_SCAN": "Index Scan",
	"READ_PARQUET": "Seq Scan", "DUMMY_SCAN": "Result", "EMPTY_RESULT": "Result", "COLUMN_DATA_SCAN": "Values Scan",
	"EXPRESSION_SCAN": "Values Scan", "CHUNK_SCAN": "Values Scan", "DELIM_SCAN": "CTE Scan", "CTE_SCAN": "CTE Scan",
	"REC_CTE": "Recursive Union", "REC_CTE_SCAN": "WorkTable Scan", "REC_REC_CTE_SCAN": "WorkTable Scan",
	"HASH_JOIN": "Hash Join", "MERGE_JOIN": "Merge Join", "PIECEWISE_MERGE_JOIN": "Merge Join", "IE_JOIN": "Merge Join",
	"ASOF_JOIN": "Merge Join", "NESTED_LOOP_JOIN": "Nested Loop", "BLOCKWISE_NL_JOIN": "Nested Loop",
	"CROSS_PRODUCT": "Nested Loop", "POSITIONAL_JOIN": "Nested Loop", "POSITIONAL_SCAN": "Nested Loop",
	"LEFT_DELIM_JOIN": "Nested Loop", "RIGHT_DELIM_JOIN": "Nested Loop", "DELIM_JOIN": "Nested Loop",
	"HASH_GROUP_BY": "Aggregate", "PERFECT_HASH_GROUP_BY": "Aggregate", "PARTITIONED_AGGREGATE": "Aggregate",
	"UNGROUPED_AGGREGATE": "Aggregate", "SIMPLE_AGGREGATE": "Aggregate", "STREAMING_GROUP_BY": "Aggregate",
	"ORDER_BY": "Sort", "TOP_N": "Sort", "LIMIT": "Limit", "STREAMING_LIMIT": "Limit", "LIMIT_PERCENT": "Limit",
	"WINDOW": "WindowAgg", "STREAMING_WINDOW": "WindowAgg", "UNION": "Append", "UNNEST": "ProjectSet",
	"INOUT_FUNCTION": "ProjectSet", "PROJECTION": "Result", "FILTER": "Result",
}

// nodeType is what PostgreSQL calls an operator, or the engine where PostgreSQL has none such.
func nodeType(op *operator, name string) string {
	if n := nodeTypes[name]; n != "" {
		return n
	}
	if op.text("Function") != "" {
		return "Function Scan"
	}
	words := strings.Fields(strings.ToLower(strings.ReplaceAll(name, "_", " ")))
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}

// joinTypes are PostgreSQL's words for the engine's kinds of joins.
var joinTypes = map[string]string{
	"": "Inner", "INNER": "Inner", "LEFT": "Left", "RIGHT": "Right", "OUTER": "Full", "FULL": "Full", "SEMI": "Semi", "ANTI": "Anti",
	"MARK": "Semi", "SINGLE": "Left", "RIGHT_SEMI": "Right Semi", "RIGHT_ANTI": "Right Anti",
}

// detail has what is special of a kind of node.
func (t *tree) detail(p *Plan, op *operator, name string) {
	switch p.NodeType {
	case "Seq Scan", "Index Scan":
		p.Relation, p.Alias = t.Relation, t.Relation
		if t.Verbose {
			p.Schema = t.Schema
		}
		p.Filter = op.condition("Filters")
	case "Function Scan":
		p.FunctionName = strings.ToLower(op.text("Function"))
		p.Alias = p.FunctionName
	case "CTE Scan":
		p.CTEName = t.named[op.text("CTE Index")]
		p.Alias = p.CTEName
	case "Hash Join", "Merge Join", "Nested Loop":
		t.join(p, op)
	case "Aggregate":
		p.Strategy, p.PartialMode = "Hashed", "Simple"
		if p.GroupKey = op.keys("Groups"); len(p.GroupKey) == 0 {
			p.Strategy = "Plain"
		}
	case "Sort":
		p.SortKey = op.keys("Order By")
		if name == "TOP_N" {
			p.SortMethod = "top-N heapsort"
		}
	}
}

func (t *tree) join(p *Plan, op *operator) {
	kind := op.text("Join Type")
	if p.JoinType = joinTypes[kind]; p.JoinType == "" {
		p.JoinType = kind
	}
	c := op.condition("Conditions")
	if c == "" {
		c = op.condition("Condition")
	}
	switch p.NodeType {
	case "Hash Join":
		p.HashCond = c
	case "Merge Join":
		p.MergeCond = c
	default:
		p.JoinFilter = c
	}
}

package ruleutils

// node is an expression as PostgreSQL keeps it: what functions, operators and casts it found.
type node interface {
	// typ and mod are the expression's type and the modifier of it, -1 for none.
	typ() uint32
	mod() int32
}

// form is how a function or cast came into an expression.
type form uint8

const (
	formCall     form = iota // f(x)
	formExplicit             // x::t, written so
	formImplicit             // x, cast to what is wanted
	formSQL                  // EXTRACT(x FROM y)
)

type typed struct {
	oid    uint32
	typmod int32
}

func (t typed) typ() uint32 { return t.oid }
func (t typed) mod() int32  { return t.typmod }

type (
	// variable is a column of a relation in FROM, or of one that joins give it ("" for its
	// relation).
	variable struct {
		typed
		rel  *relation
		name string
	}
	// constant is a value, in the text of its type.
	constant struct {
		typed
		text string
		null bool
	}
	// function is a call, or a cast by a function.
	function struct {
		typed
		name     string
		args     []node
		form     form
		variadic bool
	}
	// operator is one of one or two operands; kind says which of the likes of it.
	operator struct {
		typed
		kind operatorKind
		name string
		args []node
		// any is for operator ANY (array), false for ALL.
		any bool
	}
	// logic is AND, OR and NOT.
	logic struct {
		typed
		word string
		args []node
	}
	// relabel is a cast that changes no value, or is done by way of texts or elements.
	relabel struct {
		typed
		arg  node
		form form
	}
	// caseOf is CASE; arg is nil for the searched one.
	caseOf struct {
		typed
		arg           node
		conds, values []node
		last          node
	}
	// listed is what is written as a word and a list of arguments: COALESCE, ARRAY, ROW.
	listed struct {
		typed
		word, open, end string
		args            []node
	}
	// test is IS NULL and its kin.
	test struct {
		typed
		arg    node
		suffix string
		isNull bool // of IS [NOT] NULL, in which casts are shown
	}
	// word is CURRENT_DATE and its kin.
	word struct {
		typed
		text string
	}
	// aggregate is an aggregate or window call.
	aggregate struct {
		typed
		name     string
		star     bool
		distinct bool
		args     []node
		direct   []node // of an ordered-set aggregate, whose args are its order's
		ordered  bool
		order    []sortKey
		filter   node
		over     *window
		isWindow bool
		variadic bool
	}
	// subLink is a query within an expression.
	subLink struct {
		typed
		kind  string // EXISTS, EXPR, ARRAY, ANY, ALL
		query *query
		left  []node
		op    string
	}
	// subscript is an element or a slice.
	subscript struct {
		typed
		arg node
		// bounds are what stands in brackets, of one part or, for a slice, of two, each of
		// which may be nil.
		bounds [][]node
	}
	// collated is COLLATE.
	collated struct {
		typed
		arg  node
		name string
	}
)

type operatorKind uint8

const (
	plainOperator operatorKind = iota
	distinctFrom
	nullIf
	anyOrAll
)

// sortKey is a part of ORDER BY: an expression, or the number of a column.
type sortKey struct {
	expr       node
	number     int
	desc       bool
	nullsFirst bool
}

// window is a definition of a window.
type window struct {
	name, refName string
	partition     []node
	order         []sortKey
	frame         string // "" for the one that is meant without
	start, end    node
	startWord     string
	endWord       string
	between       bool
	exclude       string
}

// relation is one in FROM.
type relation struct {
	kind relationKind
	// schema and name are those of a table or a query of WITH.
	schema, name string
	// alias is the name that was given, "" for none; aliasColumns those of its columns.
	alias        string
	aliasColumns []string
	columns      []column
	query        *query
	call         node
	ordinality   bool
	lateral      bool
	only         bool
	shown        string // the name that is printed, unique among those that are seen there
}

type relationKind uint8

const (
	tableRelation relationKind = iota
	queryRelation
	callRelation
	withRelation
)

// column is one of a relation or a query.
type column struct {
	name string
	typ  uint32
	mod  int32
}

// join is a part of FROM: a relation, or two that are joined.
type join struct {
	rel         *relation // a leaf
	left, right *join
	word        string
	on          node
	using       []string
	columns     []visible // what it gives, in order
}

// visible is a column that names find: rel is "" of a merged one.
type visible struct {
	name string
	rel  string
	expr node
	// hidden is found only by its relation's name.
	hidden bool
	schema string
}

// query is a resolved query.
type query struct {
	ctes      []*cte
	recursive bool
	relations []*relation
	targets   []target
	from      []*join
	where     node
	group     []groupItem
	groupSets bool
	distinctG bool
	having    node
	windows   []*window
	distinct  bool
	on        []node
	sort      []sortKey
	offset    node
	limit     node
	limitAll  bool
	ties      bool
	values    [][]node
	// A set operation.
	op          string
	all         bool
	left, right *query
}

// groupItem is a part of GROUP BY.
type groupItem struct {
	exprs []node // of a simple one
	word  string // GROUPING SETS, CUBE, ROLLUP, "()" or "" for a simple one
	list  []groupItem
}

type target struct {
	expr node
	name string
}

type cte struct {
	name         string
	columns      []string
	materialized string
	query        *query
}

package are

// The places that an expression asserts, and the two directions to look.
const (
	assertLineStart rune = iota // ^, which is the text's start when lines are not told apart
	assertLineEnd
	assertStart
	assertEnd
	assertWordStart
	assertWordEnd
	assertWordEdge
	assertNoWordEdge
	assertBeforeLine // ^ and $ at lines
	assertAfterLine
	lookAhead
	lookBehind
)

type nodeKind uint8

const (
	nodeEmpty nodeKind = iota
	nodeChar
	nodeSet
	nodeAny  // all but a newline when its set says so
	nodeSeq  // kids one after the other
	nodeAlt  // one of kids
	nodeRep  // kids[0], m to n times
	nodeMust // assert
	nodeLook // kids[0] ahead or behind, or not
)

// node is an expression without groups: what an automaton is made of.
type node struct {
	kind nodeKind
	set  *set
	char rune
	what rune // of an assertion
	not  bool
	kids []*node
	m, n int
}

func seq(kids ...*node) *node {
	var out []*node
	for _, k := range kids {
		switch {
		case k == nil || k.kind == nodeEmpty:
		case k.kind == nodeSeq:
			out = append(out, k.kids...)
		default:
			out = append(out, k)
		}
	}
	switch len(out) {
	case 0:
		return &node{}
	case 1:
		return out[0]
	}
	return &node{kind: nodeSeq, kids: out}
}

func repeat(k *node, m, n int) *node {
	if m == 1 && n == 1 {
		return k
	}
	return &node{kind: nodeRep, kids: []*node{k}, m: m, n: n}
}

// unasserted is the expression without what it asserts of places: a back reference looks for
// the text of a group, not for where the group stood.
func (n *node) unasserted() *node {
	if n.kind == nodeMust || n.kind == nodeLook {
		return &node{}
	}
	if len(n.kids) == 0 {
		return n
	}
	out := *n
	out.kids = make([]*node, len(n.kids))
	for i, k := range n.kids {
		out.kids[i] = k.unasserted()
	}
	return &out
}

// flags are what a part prefers, and what is in it.
type flags uint8

const (
	longer flags = 1 << iota
	shorter
	mixed
	captures
	refers
)

const prefers = longer | shorter

// up is what a part tells of itself to the one that it is in.
func up(f flags) flags {
	out := f &^ prefers
	if f&prefers == prefers {
		out |= mixed
	}
	return out
}

func messy(f flags) bool { return f&(mixed|captures|refers) != 0 }

// combine is a part that is made of two: it prefers what the first does.
func combine(a, b flags) flags {
	p := a & prefers
	if p == 0 {
		p = b & prefers
	}
	return up(a|b) | p
}

type partKind uint8

const (
	partPlain partKind = iota // only where it begins and ends matters
	partRef
	partConcat
	partAlt
	partLoop
	partGroup // a group around a group
)

// part is an expression with groups, as it is divided among them.
type part struct {
	kind  partKind
	flags flags
	group int // that it is, 0 for none
	ref   int
	m, n  int
	kids  []*part
	expr  *node
	id    int
	prog  *program
}

package are

import "strings"

type parser struct {
	lexer
	tok   token
	subs  map[int]*part // the groups that are closed
	depth int
}

// depthMost bounds groups in groups.
const depthMost = 1000

// parse reads an expression.
func parse(expr, letters string) (*parser, *part, error) {
	p := &parser{lexer: lexer{in: []rune(expr), advanced: true}, subs: map[int]*part{}}
	literal, err := p.options([]rune(letters), false)
	if err != nil {
		return nil, nil, err
	}
	if !literal {
		if literal, err = p.prefixes(); err != nil {
			return nil, nil, err
		}
	}
	if literal {
		e := &node{}
		for _, c := range p.in[p.at:] {
			e = seq(e, p.char(c))
		}
		return p, &part{expr: e}, nil
	}
	if err := p.advance(); err != nil {
		return nil, nil, err
	}
	tree, err := p.alternatives(tokEnd, false)
	return p, tree, err
}

// prefixes reads what may stand before an expression.
func (p *parser) prefixes() (literal bool, err error) {
	if p.has("***") {
		switch {
		case p.has("***="):
			p.at += 4
			p.lines, p.anchors = false, false
			return true, nil
		case !p.has("***:"):
			return false, ErrOperand
		}
		p.advanced = true
		p.at += 4
	}
	if !p.advanced || !p.has("(?") || p.at+2 >= len(p.in) || !strings.ContainsRune(letters, p.in[p.at+2]) {
		return false, nil
	}
	from := p.at + 2
	for p.at = from; p.at < len(p.in) && strings.ContainsRune(letters, p.in[p.at]); {
		p.at++
	}
	if literal, err = p.options(p.in[from:p.at], true); err != nil {
		return false, err
	}
	if p.at == len(p.in) || p.in[p.at] != ')' {
		return false, ErrOption
	}
	p.at++
	return literal, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

func (p *parser) char(c rune) *node {
	if p.fold {
		s := &set{}
		if s.add(c, c, true); len(s.ranges) > 2 {
			return &node{kind: nodeSet, set: s}
		}
	}
	return &node{kind: nodeChar, char: c}
}

// alternatives reads up to the stopper, which it takes.
func (p *parser) alternatives(stopper kind, look bool) (*part, error) {
	if p.depth++; p.depth > depthMost {
		return nil, ErrSize
	}
	defer func() { p.depth-- }()
	out := &part{kind: partAlt, flags: longer}
	var exprs []*node
	for {
		b, err := p.branch(stopper, look)
		if err != nil {
			return nil, err
		}
		out.kids = append(out.kids, b)
		exprs = append(exprs, b.expr)
		out.flags |= combine(out.flags, b.flags)
		if p.tok.kind != tokOr {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if p.tok.kind != stopper {
		return nil, ErrParentheses
	}
	if len(out.kids) == 1 {
		return out.kids[0], nil
	}
	out.expr = &node{kind: nodeAlt, kids: exprs}
	if !messy(out.flags) {
		out.kind, out.kids = partPlain, nil
	}
	return out, nil
}

func (p *parser) ends(stopper kind) bool {
	return p.tok.kind == tokOr || p.tok.kind == stopper || p.tok.kind == tokEnd
}

// branch reads one alternative, or the rest of one.
func (p *parser) branch(stopper kind, look bool) (*part, error) {
	top := &part{expr: &node{}}
	for first := true; !p.ends(stopper); first = false {
		var err error
		if top, err = p.atom(stopper, look, top, first); err != nil {
			return nil, err
		}
	}
	return top, nil
}

// atom reads an atom with its quantifier. What is simple joins the plain part top; else top
// becomes a concatenation, and the rest of the branch is read, too.
func (p *parser) atom(stopper kind, look bool, top *part, first bool) (*part, error) {
	tok := p.tok
	var atom *part // nil of a simple one
	var e *node
	switch tok.kind {
	case tokAssert, tokLook:
		a, err := p.assertion(tok)
		if err != nil {
			return nil, err
		}
		top.expr = seq(top.expr, a)
		return top, nil
	case tokQuant:
		return nil, ErrOperand
	case tokOpen:
		var err error
		if atom, err = p.group(tok, look); err != nil {
			return nil, err
		}
		e = atom.expr
	case tokBackRef:
		of := p.subs[int(tok.value)]
		if look || of == nil {
			return nil, ErrBackReference
		}
		e = of.expr.unasserted()
		atom = &part{kind: partRef, flags: refers, ref: int(tok.value), expr: e}
	default:
		var err error
		if e, err = p.simple(tok); err != nil {
			return nil, err
		}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	q := token{m: 1, n: 1, fixed: true}
	if p.tok.kind == tokQuant {
		q = p.tok
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	captured := tok.kind == tokOpen && tok.value == 1 && !look
	return p.joined(piece{tok: tok, atom: atom, expr: e, q: q, captured: captured, first: first}, stopper, look, top)
}

// piece is an atom with its quantifier.
type piece struct {
	tok      token
	atom     *part
	expr     *node
	q        token
	captured bool
	first    bool // of its branch
}

func (q token) prefers() flags {
	switch {
	case q.fixed:
		return 0
	case q.less:
		return shorter
	}
	return longer
}

// joined adds a piece to a branch.
func (p *parser) joined(x piece, stopper kind, look bool, top *part) (*part, error) {
	q := x.q
	if q.m == 0 && q.n == 0 {
		return top, nil
	}
	f := top.flags | q.prefers()
	if x.atom != nil {
		f |= x.atom.flags
	}
	if !x.captured && x.tok.kind != tokBackRef && !messy(up(f)) {
		top.flags = f
		top.expr = seq(top.expr, repeat(x.expr, q.m, q.n))
		return top, nil
	}
	if x.atom == nil {
		x.atom = &part{expr: x.expr}
	}
	t := &part{kind: partConcat, flags: combine(q.prefers(), x.atom.flags)}
	inner := quantified(x.atom, q, x.tok.kind == tokBackRef)
	prefix := top
	out := &part{kind: partConcat, flags: top.flags, kids: []*part{prefix}}
	if p.ends(stopper) {
		if out.flags |= combine(out.flags, inner.flags); x.first {
			return inner, nil
		}
		out.kids = append(out.kids, inner)
		out.expr = seq(prefix.expr, inner.expr)
		return out, nil
	}
	rest, err := p.branch(stopper, look)
	if err != nil {
		return nil, err
	}
	t.flags |= combine(t.flags, rest.flags)
	out.flags |= combine(out.flags, t.flags)
	t.expr = seq(inner.expr, rest.expr)
	out.expr = seq(prefix.expr, t.expr)
	switch {
	case x.first:
		out.kids = []*part{inner, rest}
		return out, nil
	case inner.kind == partPlain && rest.kind == partPlain && !messy(up(inner.flags|rest.flags)) && inner.group == 0 && rest.group == 0:
		t.kind, t.flags = partPlain, combine(inner.flags, rest.flags)
	default:
		t.kids = []*part{inner, rest}
	}
	out.kids = append(out.kids, t)
	return out, nil
}

// quantified is a part that is repeated; a back reference that stands there itself counts its turns.
func quantified(atom *part, q token, ref bool) *part {
	pref := q.prefers()
	whole := repeat(atom.expr, q.m, q.n)
	own := atom.flags & (longer | shorter | mixed)
	switch {
	case ref:
		atom.m, atom.n = q.m, q.n
		atom.flags |= combine(pref, atom.flags)
		atom.expr = whole
		return atom
	case q.m == 1 && q.n == 1 && (pref == 0 || own == 0 || pref == own):
		return atom
	case atom.flags&(captures|refers) == 0:
		return &part{flags: combine(pref, atom.flags), expr: whole}
	case q.m > 0 && atom.flags&refers == 0:
		n := q.n
		if n != unbounded {
			n--
		}
		f := combine(pref, atom.flags)
		before := &part{flags: f & prefers, expr: repeat(atom.expr, q.m-1, n)}
		return &part{kind: partConcat, flags: f, expr: whole, kids: []*part{before, atom}}
	}
	return &part{kind: partLoop, flags: combine(pref, atom.flags), m: q.m, n: q.n, expr: whole, kids: []*part{atom}}
}

// group reads a group after its parenthesis, up to the closing one, which stays.
func (p *parser) group(tok token, look bool) (*part, error) {
	number := 0
	if tok.value == 1 && !look {
		number = p.groups
	}
	if tok.value == 1 && look {
		p.groups-- // it does not count
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	atom, err := p.alternatives(tokClose, look)
	if err != nil || number == 0 {
		return atom, err
	}
	if atom.group == 0 {
		atom.group = number
	} else {
		atom = &part{kind: partGroup, flags: atom.flags, group: number, kids: []*part{atom}, expr: atom.expr}
	}
	atom.flags |= captures
	p.subs[number] = atom
	return atom, nil
}

func (p *parser) assertion(tok token) (*node, error) {
	e := &node{kind: nodeMust, what: tok.value}
	switch {
	case tok.kind == tokLook:
		if err := p.advance(); err != nil {
			return nil, err
		}
		in, err := p.alternatives(tokClose, true)
		if err != nil {
			return nil, err
		}
		e = &node{kind: nodeLook, what: tok.value, not: tok.not, kids: []*node{in.expr}}
	case tok.value == assertLineStart && p.anchors:
		e.what = assertAfterLine
	case tok.value == assertLineEnd && p.anchors:
		e.what = assertBeforeLine
	}
	return e, p.advance()
}

// simple is an atom of one character.
func (p *parser) simple(tok token) (*node, error) {
	switch tok.kind {
	case tokAny:
		return &node{kind: nodeAny, not: p.lines}, nil
	case tokClass:
		return &node{kind: nodeSet, set: &set{classes: []func(rune) bool{escapes[tok.value]}, not: tok.not}}, nil
	case tokBracket:
		s, err := p.bracket()
		return &node{kind: nodeSet, set: s}, err
	case tokClose:
		if p.advanced {
			return nil, ErrParentheses
		}
	}
	return p.char(tok.value), nil
}

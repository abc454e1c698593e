package pgsql

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
)

// inference finds which unique indexes ON CONFLICT (…) WHERE infers: those of just these columns and
// expressions, whose rows are known to be all that meet the condition. Two expressions are the same if the
// engine is asked the same for them.
type inference struct {
	w *writer
	s *scope
	// columns are those that it names, by index into the relation's; expressions the others.
	columns     []int
	expressions []string
	given       *pg.Node
}

// key is what the engine is asked for an expression.
func (f *inference) key(n *pg.Node) (string, error) {
	e, err := f.w.expr(proto.Clone(n).(*pg.Node), f.s)
	if err == nil && e.undecided() {
		e, err = f.w.coerce(e, plain(OIDText), implicit)
	}
	return e.sql, err
}

// newInference is of a relation, whose columns an analysis of its own names: no use of it is one of the
// statement.
func newInference(w *writer, rel *Relation, in *pg.InferClause) (*inference, error) {
	f := &inference{w: &writer{analyzer: &analyzer{env: w.env, sql: w.sql}, named: rel}, given: in.WhereClause}
	src, err := f.w.relationSource(rel, &pg.RangeVar{Relname: rel.Name, Location: -1})
	if err != nil {
		return nil, err
	}
	f.s = &scope{columns: src.columns}
	if err := f.w.addItems(f.s, src.items); err != nil {
		return nil, err
	}
	if f.given != nil {
		if _, err := f.key(f.given); err != nil { // which need not be a boolean
			return nil, err
		}
	}
	return f, nil
}

// element adds what an index is to be of.
func (f *inference) element(n *pg.Node) error {
	key, err := f.key(n)
	if err == nil && !slices.Contains(f.expressions, key) {
		f.expressions = append(f.expressions, key)
	}
	return err
}

// same says whether an index is of the columns and expressions that are named.
func (f *inference) same(u Unique) (bool, error) {
	next := 0
	var columns []int
	var keys []string
	for _, i := range u.Columns {
		if i >= 0 {
			columns = append(columns, i)
			continue
		}
		n, err := ParseExpression(u.Expressions[next].Generated)
		if err != nil {
			return false, err
		}
		next++
		key, err := f.key(n)
		if err != nil {
			return false, err
		}
		keys = append(keys, key)
	}
	return sameSet(columns, f.columns) && sameSet(keys, f.expressions), nil
}

func sameSet[T comparable](a, b []T) bool {
	in := func(list []T) func(T) bool { return func(v T) bool { return !slices.Contains(list, v) } }
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}

// predicate is the condition on the rows that an index is of, nil for none.
func (u Unique) predicate(rel *Relation) (*pg.Node, error) {
	text := u.Predicate
	if text == "" {
		text = strings.Join(u.meets(func(i int) string { return quote.Name(rel.Columns[i].Name) }), " AND ")
	}
	if text == "" {
		return nil, nil
	}
	return ParseExpression(text)
}

// find is the index that is inferred.
func (f *inference) find(rel *Relation) (int, error) {
	found, unclear := -1, false
	for i, u := range rel.Uniques {
		same, err := f.same(u)
		if err != nil {
			return 0, err
		}
		p, err := u.predicate(rel)
		if err != nil {
			return 0, err
		}
		if !same || p != nil && f.given == nil {
			continue
		}
		if u.Deferrable {
			return 0, errDeferrableArbiter
		}
		proved := yes
		if p != nil {
			if proved, err = f.implies(f.given, p); err != nil {
				return 0, err
			}
		}
		switch {
		case proved == maybe:
			unclear = true
		case proved == no:
		case found < 0:
			found = i
		case u.partial() && (rel.Uniques[found].partial() || u.NullsEqual != rel.Uniques[found].NullsEqual), rel.Uniques[found].partial():
			unclear = true
		}
	}
	switch {
	case unclear:
		return 0, errInference
	case found < 0:
		return 0, pgerr.New(codes.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	return found, nil
}

func (u Unique) partial() bool { return len(u.Where) > 0 || u.Predicate != "" }

// What is known of whether a condition implies another.
const (
	no = iota
	maybe
	yes
)

// implies says whether rows that meet a condition are known to meet another, as PostgreSQL's
// predicate_implied_by says it: of AND and OR, of equal parts, and of comparisons with constants.
func (f *inference) implies(given, p *pg.Node) (int, error) {
	given, p = simplified(given, false), simplified(p, false)
	g, and := given.GetBoolExpr(), pg.BoolExprType_AND_EXPR
	q := p.GetBoolExpr()
	switch {
	case q.GetBoolop() == and:
		return f.all(q.Args, func(n *pg.Node) (int, error) { return f.implies(given, n) })
	case g.GetBoolop() == pg.BoolExprType_OR_EXPR:
		return f.all(g.Args, func(n *pg.Node) (int, error) { return f.implies(n, p) })
	case q.GetBoolop() == pg.BoolExprType_OR_EXPR:
		return f.some(q.Args, func(n *pg.Node) (int, error) { return f.implies(given, n) })
	case g.GetBoolop() == and:
		return f.some(g.Args, func(n *pg.Node) (int, error) { return f.implies(n, p) })
	}
	a, err := f.key(given)
	if err != nil {
		return no, err
	}
	b, err := f.key(p)
	if err != nil || a == b {
		return yes, err
	}
	return f.impliesPlain(given, p)
}

func (f *inference) all(list []*pg.Node, each func(*pg.Node) (int, error)) (int, error) {
	least := yes
	for _, n := range list {
		v, err := each(n)
		if err != nil {
			return no, err
		}
		least = min(least, v)
	}
	return least, nil
}

func (f *inference) some(list []*pg.Node, each func(*pg.Node) (int, error)) (int, error) {
	most := no
	for _, n := range list {
		v, err := each(n)
		if err != nil {
			return no, err
		}
		most = max(most, v)
	}
	return most, nil
}

// impliesPlain is implies of two conditions that are not made of others.
func (f *inference) impliesPlain(given, p *pg.Node) (int, error) {
	g, isComparison := comparisonOf(given)
	if t := p.GetNullTest(); t != nil {
		if t.Nulltesttype != pg.NullTestType_IS_NOT_NULL || !isComparison {
			return no, nil
		}
		return f.sameOperand(g.operand, t.Arg)
	}
	q, alsoComparison := comparisonOf(p)
	if !isComparison || !alsoComparison {
		return no, nil
	}
	same, err := f.sameOperand(g.operand, q.operand)
	if err != nil || same == no {
		return no, err
	}
	e, err := f.w.expr(proto.Clone(g.operand).(*pg.Node), f.s)
	if err != nil {
		return no, err
	}
	order, known := compareConstants(e.typ, g.constant, q.constant)
	equality := func(op string) bool { return op == "=" || op == "<>" }
	switch {
	case known == differs && equality(g.op) && equality(q.op):
		order = 1 // either way
	case known != ordered && (g.op == "<>" || q.op == "=" && g.op != "="):
		return no, nil // whatever the constants are
	case known != ordered:
		return maybe, nil
	}
	if impliesBy(g.op, q.op, order) {
		return yes, nil
	}
	return no, nil
}

func (f *inference) sameOperand(a, b *pg.Node) (int, error) {
	x, err := f.key(a)
	if err != nil {
		return no, err
	}
	y, err := f.key(b)
	if err != nil || x == y {
		return yes, err
	}
	return no, nil
}

// impliesBy says whether "x given a" implies "x wanted b", where order is that of a and b.
func impliesBy(given, wanted string, order int) bool {
	switch given {
	case "=":
		return holds(order, wanted)
	case "<>":
		return wanted == "<>" && order == 0
	case "<":
		return (wanted == "<" || wanted == "<=" || wanted == "<>") && order <= 0
	case "<=":
		return wanted == "<=" && order <= 0 || (wanted == "<" || wanted == "<>") && order < 0
	case ">":
		return (wanted == ">" || wanted == ">=" || wanted == "<>") && order >= 0
	case ">=":
		return wanted == ">=" && order >= 0 || (wanted == ">" || wanted == "<>") && order > 0
	}
	return false
}

func holds(order int, op string) bool {
	switch op {
	case "=":
		return order == 0
	case "<>":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// comparison is one with a constant.
type comparison struct {
	op                string
	operand, constant *pg.Node
}

var flipped = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

var negated = map[string]string{"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

func operatorOf(e *pg.A_Expr) string {
	if e.GetKind() != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || e.Lexpr == nil {
		return ""
	}
	return e.Name[0].GetString_().GetSval()
}

func comparisonOf(n *pg.Node) (comparison, bool) {
	e := n.GetAExpr()
	op := operatorOf(e)
	if flipped[op] == "" {
		return comparison{}, false
	}
	if bareConstant(e.Rexpr) != nil {
		return comparison{op, e.Lexpr, e.Rexpr}, true
	}
	if bareConstant(e.Lexpr) != nil {
		return comparison{flipped[op], e.Rexpr, e.Lexpr}, true
	}
	return comparison{}, false
}

// bareConstant is a literal, also one that is cast.
func bareConstant(n *pg.Node) *pg.A_Const {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	if c := n.GetAConst(); c != nil && !c.Isnull {
		return c
	}
	return nil
}

var (
	wholeDay  = regexp.MustCompile(`^\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?$`)
	plainUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// What is known of two constants: nothing, that they differ, which is greater.
const (
	unknownOrder = iota
	differs
	ordered
)

// compareConstants orders two constants of a type, as far as their texts say how.
func compareConstants(t Type, a, b *pg.Node) (order, known int) {
	x, y := bareConstant(a), bareConstant(b)
	if p, q := numberOf(x), numberOf(y); p != nil && q != nil {
		return p.Cmp(q), ordered
	}
	p, q := x.GetSval().GetSval(), y.GetSval().GetSval()
	both := func(r *regexp.Regexp) bool { return r.MatchString(p) && r.MatchString(q) && len(p) == len(q) }
	switch {
	case x.GetSval() == nil || y.GetSval() == nil:
		return 0, unknownOrder
	case p == q:
		return 0, ordered
	case t.OID == OIDText, t.OID == OIDVarchar, (t.OID == OIDDate || t.OID == OIDTimestamp) && both(wholeDay), t.OID == OIDUUID && both(plainUUID):
		return strings.Compare(p, q), ordered
	case t.User != nil && t.User.Kind == Enumerated:
		return 0, differs
	}
	return 0, unknownOrder
}

func numberOf(c *pg.A_Const) *big.Rat {
	switch v := c.GetVal().(type) {
	case *pg.A_Const_Ival:
		return new(big.Rat).SetInt64(int64(v.Ival.GetIval()))
	case *pg.A_Const_Fval:
		if r, ok := new(big.Rat).SetString(v.Fval.GetFval()); ok {
			return r
		}
	}
	return nil
}

// simplified is a condition with NOT at its ends alone, and IN as comparisons.
func simplified(n *pg.Node, not bool) *pg.Node {
	if b := n.GetBoolExpr(); b != nil {
		if b.Boolop == pg.BoolExprType_NOT_EXPR {
			return simplified(b.Args[0], !not)
		}
		kind := b.Boolop
		if not {
			kind = pg.BoolExprType_AND_EXPR + pg.BoolExprType_OR_EXPR - kind
		}
		out := &pg.BoolExpr{Boolop: kind}
		for _, arg := range b.Args {
			out.Args = append(out.Args, simplified(arg, not))
		}
		return &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: out}}
	}
	if t := n.GetNullTest(); t != nil && not {
		kind := pg.NullTestType_IS_NULL + pg.NullTestType_IS_NOT_NULL - t.Nulltesttype
		return &pg.Node{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: t.Arg, Nulltesttype: kind, Location: t.Location}}}
	}
	if e := n.GetAExpr(); e != nil {
		if out := simplifiedOperator(e, not); out != nil {
			return out
		}
	}
	if not {
		return &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_NOT_EXPR, Args: []*pg.Node{n}}}}
	}
	return n
}

// simplifiedOperator is simplified of IN, of a comparison, and of one with true or false; nil for any other.
func simplifiedOperator(e *pg.A_Expr, not bool) *pg.Node {
	name := func(op string) []*pg.Node {
		return []*pg.Node{{Node: &pg.Node_String_{String_: &pg.String{Sval: op}}}}
	}
	if e.Kind == pg.A_Expr_Kind_AEXPR_IN && e.Rexpr.GetList() != nil && len(e.Name) == 1 {
		op, kind := e.Name[0].GetString_().GetSval(), pg.BoolExprType_OR_EXPR
		if not {
			op = negated[op]
		}
		if op == "<>" {
			kind = pg.BoolExprType_AND_EXPR
		}
		out := &pg.BoolExpr{Boolop: kind}
		for _, v := range e.Rexpr.GetList().Items {
			one := &pg.A_Expr{Kind: pg.A_Expr_Kind_AEXPR_OP, Name: name(op), Lexpr: e.Lexpr, Rexpr: v, Location: e.Location}
			out.Args = append(out.Args, &pg.Node{Node: &pg.Node_AExpr{AExpr: one}})
		}
		if len(out.Args) == 1 {
			return out.Args[0]
		}
		return &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: out}}
	}
	op := operatorOf(e)
	if negated[op] == "" {
		return nil
	}
	if b, isBool := e.Rexpr.GetAConst().GetVal().(*pg.A_Const_Boolval); isBool && (op == "=" || op == "<>") {
		return simplified(e.Lexpr, not != (b.Boolval.GetBoolval() == (op == "<>")))
	}
	if not {
		op = negated[op]
	}
	return &pg.Node{Node: &pg.Node_AExpr{AExpr: &pg.A_Expr{Kind: e.Kind, Name: name(op), Lexpr: e.Lexpr, Rexpr: e.Rexpr, Location: e.Location}}}
}

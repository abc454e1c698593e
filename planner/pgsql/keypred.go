package pgsql

import (
	"math"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// restrict finds the conditions of a conjunction that bound the key columns of a
// relation by constants. They hold for every row that can pass, so the log's side
// need not look at other keys.
func (a *analyzer) restrict(n *pg.Node, s *scope) {
	if b := n.GetBoolExpr(); b != nil {
		if b.Boolop == pg.BoolExprType_AND_EXPR {
			for _, arg := range b.Args {
				a.restrict(arg, s)
			}
		}
		return
	}
	x := n.GetAExpr()
	if x == nil {
		return
	}
	switch x.Kind {
	case pg.A_Expr_Kind_AEXPR_OP, pg.A_Expr_Kind_AEXPR_IN, pg.A_Expr_Kind_AEXPR_BETWEEN:
	default:
		return
	}
	c := a.onlyKeyColumn(n, s)
	if c == nil {
		return
	}
	bare := *c
	name := c.item.use.column(c.index)
	bare.sql = func() string { return quote.Name(name) }
	inner := &scope{columns: []*column{&bare}, items: []*item{{
		name: c.item.name, schema: c.item.schema,
		columns: []*column{&bare},
	}}}
	e, err := a.expr(n, inner)
	if err != nil || e.typ.OID != OIDBool || strings.Contains(e.sql, NowMark) {
		return // the condition itself was analysed before; here it only helps
	}
	u := c.item.use
	u.predicates = append(u.predicates, e.sql)
	u.bound(x, c)
}

// onlyKeyColumn returns the single column a condition names, when that is a key
// column and everything else are constants and parameters.
func (a *analyzer) onlyKeyColumn(n *pg.Node, s *scope) *column {
	var found *column
	ok := true
	var visit func(*pg.Node)
	visit = func(n *pg.Node) {
		switch v := n.GetNode().(type) {
		case *pg.Node_ColumnRef:
			c := s.plainColumn(v.ColumnRef)
			if c == nil || found != nil && found != c {
				ok = false
				return
			}
			found = c
		case *pg.Node_AConst, *pg.Node_ParamRef:
		case *pg.Node_TypeCast:
			visit(v.TypeCast.Arg)
		case *pg.Node_List:
			for _, i := range v.List.Items {
				visit(i)
			}
		case *pg.Node_AExpr:
			op := ""
			if len(v.AExpr.Name) > 0 {
				op, _ = operatorName(v.AExpr.Name)
			}
			if _, cmp := comparisons[op]; !cmp && op != "-" && v.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP || op == "<>" {
				ok = false
				return
			}
			if v.AExpr.Lexpr != nil {
				visit(v.AExpr.Lexpr)
			}
			visit(v.AExpr.Rexpr)
		default:
			ok = false
		}
	}
	visit(n)
	if !ok || found == nil || found.item == nil || found.item.use == nil ||
		!slices.Contains(found.item.use.Relation.Key, found.index) {
		return nil
	}
	return found
}

// plainColumn resolves a reference in this scope only, nil when in doubt.
func (s *scope) plainColumn(n *pg.ColumnRef) *column {
	names, star := fieldNames(n.Fields)
	if star || len(names) == 0 || len(names) > 2 {
		return nil
	}
	var found *column
	if len(names) == 1 {
		for _, c := range s.columns {
			if c.name == names[0] && !c.hidden {
				if found != nil {
					return nil
				}
				found = c
			}
		}
	} else {
		for _, it := range s.items {
			if it.name != names[0] {
				continue
			}
			for _, c := range it.columns {
				if c.name == names[1] {
					found = c
				}
			}
		}
	}
	if found == nil || found.merged || found.item == nil || found.item.use == nil || found.index < 0 {
		return nil
	}
	return found
}

// bound narrows the integer bounds of a single-column key by a comparison with an
// integer constant.
func (u *Use) bound(x *pg.A_Expr, c *column) {
	if len(u.Relation.Key) != 1 || !isInt(c.typ.OID) || x.Kind != pg.A_Expr_Kind_AEXPR_OP &&
		x.Kind != pg.A_Expr_Kind_AEXPR_BETWEEN {
		return
	}
	if !u.Bounded {
		u.Min, u.Max = math.MinInt64, math.MaxInt64
	}
	value := func(n *pg.Node) (int64, bool) {
		k := n.GetAConst().GetIval()
		if k == nil {
			return 0, false
		}
		return int64(k.Ival), true
	}
	if x.Kind == pg.A_Expr_Kind_AEXPR_BETWEEN {
		items := x.Rexpr.GetList().GetItems()
		lo, ok1 := value(items[0])
		hi, ok2 := value(items[1])
		if ok1 && ok2 && x.Lexpr.GetColumnRef() != nil {
			u.Bounded, u.Min, u.Max = true, max(u.Min, lo), min(u.Max, hi)
		}
		return
	}
	op, _ := operatorName(x.Name)
	l, r := x.Lexpr, x.Rexpr
	if r.GetColumnRef() != nil {
		l, r = r, l
		op = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}[op]
	}
	v, ok := value(r)
	if !ok || l.GetColumnRef() == nil {
		return
	}
	switch op {
	case "=":
		u.Bounded, u.Min, u.Max = true, max(u.Min, v), min(u.Max, v)
	case "<", "<=":
		u.Bounded, u.Max = true, min(u.Max, v)
	case ">", ">=":
		u.Bounded, u.Min = true, max(u.Min, v)
	}
}

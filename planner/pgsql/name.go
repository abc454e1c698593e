package pgsql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// outputName is the name PostgreSQL gives a target without AS (FigureColname).
func outputName(n *pg.Node) string {
	if name, _ := figureName(n); name != "" {
		return name
	}
	return "?column?"
}

// figureName returns a name and how good it is: 2 real, 1 from a cast's type.
func figureName(n *pg.Node) (string, int) {
	if n == nil {
		return "", 0
	}
	switch v := n.Node.(type) {
	case *pg.Node_ColumnRef:
		for i := len(v.ColumnRef.Fields) - 1; i >= 0; i-- {
			if s := v.ColumnRef.Fields[i].GetString_(); s != nil {
				return s.Sval, 2
			}
		}
	case *pg.Node_AIndirection:
		for i := len(v.AIndirection.Indirection) - 1; i >= 0; i-- {
			if s := v.AIndirection.Indirection[i].GetString_(); s != nil {
				return s.Sval, 2
			}
		}
		return figureName(v.AIndirection.Arg)
	case *pg.Node_FuncCall:
		f := v.FuncCall.Funcname
		return f[len(f)-1].GetString_().GetSval(), 2
	case *pg.Node_AExpr:
		if v.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *pg.Node_TypeCast:
		name, strength := figureName(v.TypeCast.Arg)
		if strength <= 1 && v.TypeCast.TypeName != nil {
			names := v.TypeCast.TypeName.Names
			return names[len(names)-1].GetString_().GetSval(), 1
		}
		return name, strength
	case *pg.Node_CollateClause:
		return figureName(v.CollateClause.Arg)
	case *pg.Node_SubLink:
		return subLinkName(v.SubLink)
	case *pg.Node_CaseExpr:
		if name, s := figureName(v.CaseExpr.Defresult); s > 1 {
			return name, s
		}
		return "case", 1
	}
	return constructName(n)
}

func constructName(n *pg.Node) (string, int) {
	switch v := n.Node.(type) {
	case *pg.Node_AArrayExpr:
		return "array", 2
	case *pg.Node_RowExpr:
		return "row", 2
	case *pg.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg.Node_GroupingFunc:
		return "grouping", 2
	case *pg.Node_MinMaxExpr:
		if v.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return "least", 2
		}
		return "greatest", 2
	case *pg.Node_SqlvalueFunction:
		return valueFunctionName(v.SqlvalueFunction.Op), 2
	}
	return "", 0
}

func subLinkName(n *pg.SubLink) (string, int) {
	switch n.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", 2
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", 2
	case pg.SubLinkType_EXPR_SUBLINK:
		sel := n.Subselect.GetSelectStmt()
		for sel != nil && sel.Larg != nil {
			sel = sel.Larg
		}
		if sel != nil && len(sel.TargetList) > 0 {
			t := sel.TargetList[0].GetResTarget()
			if t.Name != "" {
				return t.Name, 2
			}
			return figureName(t.Val)
		}
	}
	return "", 0
}

func valueFunctionName(op pg.SQLValueFunctionOp) string {
	s := strings.TrimPrefix(op.String(), "SVFOP_")
	return strings.ToLower(strings.TrimSuffix(s, "_N"))
}

package pgsql

import (
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// ConstantText renders an argument of EXECUTE, which must be a constant, as the text
// form of a value of type oid; nil is NULL.
func ConstantText(sql string, n *pg.Node, oid uint32) ([]byte, error) {
	neg := ""
	for {
		if tc := n.GetTypeCast(); tc != nil {
			n = tc.Arg
			continue
		}
		if x := n.GetAExpr(); x != nil && x.Lexpr == nil && len(x.Name) == 1 && x.Name[0].GetString_().GetSval() == "-" && neg == "" {
			neg, n = "-", x.Rexpr
			continue
		}
		break
	}
	c := n.GetAConst()
	if c == nil {
		return nil, unsupported("arguments of EXECUTE must be constants")
	}
	if c.Isnull {
		return nil, nil
	}
	text := ""
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		text = neg + strconv.Itoa(int(v.Ival.Ival))
	case *pg.A_Const_Fval:
		text = neg + v.Fval.Fval
	case *pg.A_Const_Boolval:
		text = strconv.FormatBool(v.Boolval.Boolval)
	case *pg.A_Const_Sval:
		text = v.Sval.Sval
	default:
		return nil, unsupported("bit string constants are not supported")
	}
	if _, err := EngineText(plain(oid), text); err != nil {
		a := &analyzer{sql: sql}
		return nil, a.errAt(c.Location, err)
	}
	return []byte(text), nil
}

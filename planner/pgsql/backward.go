package pgsql

import (
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// Options of DECLARE, as PostgreSQL's parser numbers them.
const (
	CursorBinary      = 0x0001
	CursorScroll      = 0x0002
	CursorNoScroll    = 0x0004
	CursorInsensitive = 0x0008
	CursorAsensitive  = 0x0010
	CursorHold        = 0x0020
)

// CheckDeclare refuses a DECLARE whose options or query cannot be a cursor's.
func CheckDeclare(sql string, n *pg.DeclareCursorStmt) error {
	both := func(a, b int32) bool { return n.Options&a != 0 && n.Options&b != 0 }
	sel := n.Query.GetSelectStmt()
	switch {
	case both(CursorScroll, CursorNoScroll):
		return pgerr.New(codes.InvalidCursorDefinition, "cannot specify both SCROLL and NO SCROLL")
	case both(CursorAsensitive, CursorInsensitive):
		return pgerr.New(codes.InvalidCursorDefinition, "cannot specify both ASENSITIVE and INSENSITIVE")
	case sel.IntoClause != nil:
		return (&analyzer{sql: sql}).errAt(sel.IntoClause.Rel.GetLocation(), pgerr.New(codes.Syntax, "SELECT ... INTO is not allowed here"))
	case Modifies(sel):
		return unsupported("DECLARE CURSOR must not contain data-modifying statements in WITH")
	}
	return nil
}

// CheckReadOnly refuses a DECLARE whose options ask for rows that nobody changes, and whose query
// locks them to be changed.
func CheckReadOnly(n *pg.DeclareCursorStmt) error {
	clauses := n.Query.GetSelectStmt().LockingClause
	if len(clauses) == 0 {
		return nil
	}
	word := lockWords[clauses[0].GetLockingClause().Strength]
	switch {
	case n.Options&CursorHold != 0:
		return unsupported("DECLARE CURSOR WITH HOLD ... %s is not supported", word).WithDetail("Holdable cursors must be READ ONLY.")
	case n.Options&CursorScroll != 0:
		return unsupported("DECLARE SCROLL CURSOR ... %s is not supported", word).WithDetail("Scrollable cursors must be READ ONLY.")
	case n.Options&CursorInsensitive != 0:
		return pgerr.New(codes.InvalidCursorDefinition, "DECLARE INSENSITIVE CURSOR ... %s is not valid", word).
			WithDetail("Insensitive cursors must be READ ONLY.")
	}
	return nil
}

// GoesBack says whether a cursor that is declared with neither SCROLL nor NO SCROLL can go back:
// it can where PostgreSQL runs the query's plan backwards. Where the plan hangs on statistics or
// on indexes, as that of a sort does, it can.
func GoesBack(sel *pg.SelectStmt, env *Env) bool {
	if contains(sel, func(m protoreflect.ProtoMessage) bool { _, is := m.(*pg.LockingClause); return is }) {
		return false
	}
	b := &backward{analyzer: &analyzer{env: env}}
	return b.query(sel)
}

// backward looks at a query and at those that it reads from.
type backward struct {
	*analyzer
	with  []*pg.SelectStmt // those around that have a WITH, the innermost last
	depth int
}

// backwardDepth is how many queries within each other are looked at.
const backwardDepth = 50

func (b *backward) query(sel *pg.SelectStmt) bool {
	if b.depth++; b.depth > backwardDepth {
		return false
	}
	defer func() { b.depth-- }()
	if sel.WithClause != nil {
		b.with = append(b.with, sel)
		defer func() { b.with = b.with[:len(b.with)-1] }()
	}
	sorted := len(sel.SortClause) > 0
	switch {
	case sel.Op == pg.SetOperation_SETOP_UNION && sel.All && !sorted:
		return b.query(sel.Larg) && b.query(sel.Rarg)
	case sel.Op > pg.SetOperation_SETOP_NONE:
		return sorted
	case len(sel.ValuesLists) > 0:
		return len(sel.ValuesLists) > 1
	case sorted:
		on := len(sel.DistinctClause) > 0 && sel.DistinctClause[0].GetNode() != nil
		return !on && (len(sel.FromClause) > 0 || computed(sel))
	case len(sel.DistinctClause) > 0, computed(sel), len(sel.FromClause) != 1, joins(sel.WhereClause):
		return false
	}
	return b.item(sel.FromClause[0])
}

// item says it of the only item of a FROM.
func (b *backward) item(n *pg.Node) bool {
	switch v := n.Node.(type) {
	case *pg.Node_RangeSubselect:
		return b.query(v.RangeSubselect.Subquery.GetSelectStmt())
	case *pg.Node_RangeFunction:
		return true
	case *pg.Node_RangeVar:
		return b.relationGoesBack(v.RangeVar)
	}
	return false
}

// relationGoesBack says it of a scan of what a name in FROM stands for.
func (b *backward) relationGoesBack(n *pg.RangeVar) bool {
	for i := len(b.with) - 1; i >= 0 && n.Schemaname == ""; i-- {
		around := b.with[i]
		for _, node := range around.WithClause.Ctes {
			c := node.GetCommonTableExpr()
			if c.Ctename != n.Relname {
				continue
			}
			whole := c.Ctematerialized == pg.CTEMaterialize_CTEMaterializeAlways || references(around, c.Ctename) > 1
			if whole || around.WithClause.Recursive && mentions(c.Ctequery.GetSelectStmt(), c.Ctename) {
				return true
			}
			outer := b.with
			b.with = b.with[:i+1]
			defer func() { b.with = outer }()
			return b.query(c.Ctequery.GetSelectStmt())
		}
	}
	rel, err := b.relation(n.Schemaname, n.Relname, -1)
	if err != nil {
		return false
	}
	if rel.View == "" {
		return !rel.System || rel.OID < firstViewOID
	}
	p, err := Parse(rel.View)
	return err == nil && p.Node.GetSelectStmt() != nil && (&backward{analyzer: b.analyzer, depth: b.depth}).query(p.Node.GetSelectStmt())
}

// firstViewOID is from where on PostgreSQL numbers the views of its catalog.
const firstViewOID = 10000

// references counts where a query names a table without a schema.
func references(sel *pg.SelectStmt, name string) (n int) {
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if rv, ok := m.(*pg.RangeVar); ok && rv.Relname == name && rv.Schemaname == "" {
			n++
		}
	})
	return n
}

// computed says that rows of a query are made of several of its FROM, or several of one.
func computed(sel *pg.SelectStmt) bool {
	if len(sel.GroupClause) > 0 || sel.HavingClause != nil {
		return true
	}
	for _, t := range sel.TargetList {
		if contains(t, func(m protoreflect.ProtoMessage) bool {
			f, ok := m.(*pg.FuncCall)
			return ok && notScalar(f)
		}) {
			return true
		}
	}
	return false
}

// notScalar says that a call is of an aggregate, a window function or one that returns a set.
func notScalar(f *pg.FuncCall) bool {
	if f.Over != nil || f.AggStar || f.AggDistinct || f.AggFilter != nil || len(f.AggOrder) > 0 {
		return true
	}
	name := f.Funcname[len(f.Funcname)-1].GetString_().GetSval()
	if strings.HasPrefix(name, "json") && strings.HasSuffix(name, "_agg") {
		return true
	}
	sigs := builtinIndex()[name]
	return len(sigs) > 0 && sigs[0].kind != 'f'
}

// joins says that a condition makes a join of a query: EXISTS, IN and = ANY of one that all of it
// depends on.
func joins(n *pg.Node) bool {
	switch v := n.GetNode().(type) {
	case *pg.Node_BoolExpr:
		if v.BoolExpr.Boolop == pg.BoolExprType_AND_EXPR {
			for _, arg := range v.BoolExpr.Args {
				if joins(arg) {
					return true
				}
			}
		}
		negated := v.BoolExpr.Boolop == pg.BoolExprType_NOT_EXPR
		return negated && v.BoolExpr.Args[0].GetSubLink().GetSubLinkType() == pg.SubLinkType_EXISTS_SUBLINK
	case *pg.Node_SubLink:
		kind := v.SubLink.SubLinkType
		return kind == pg.SubLinkType_EXISTS_SUBLINK || kind == pg.SubLinkType_ANY_SUBLINK
	}
	return false
}

// contains looks for a message in a tree, but not in the queries of its expressions.
func contains(m protoreflect.ProtoMessage, is func(protoreflect.ProtoMessage) bool) bool {
	if is(m) {
		return true
	}
	found := false
	m.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.Name() == "subselect":
		case fd.IsList():
			for i := range v.List().Len() {
				found = found || contains(v.List().Get(i).Message().Interface(), is)
			}
		default:
			found = contains(v.Message().Interface(), is)
		}
		return !found
	})
	return found
}

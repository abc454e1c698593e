package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// PartAsWritten is a part of an index of which no more is known than what it says.
func PartAsWritten(n *pg.Node) (out IndexPart, err error) {
	out = IndexPart{Name: indexName(n), Type: plain(OIDText)}
	if out.SQL, err = ExpressionText(n); err != nil {
		return out, err
	}
	out.Columns, err = ConditionColumns(out.SQL)
	return out, err
}

// IndexText is what follows USING.
func IndexText(n *pg.IndexStmt) (string, error) {
	tree, err := pg.Parse("SELECT 1")
	if err != nil {
		return "", fmt.Errorf("print index: %w", err)
	}
	tree.Stmts[0].Stmt = &pg.Node{Node: &pg.Node_IndexStmt{IndexStmt: n}}
	text, err := pg.Deparse(tree)
	if err != nil {
		return "", fmt.Errorf("print index: %w", err)
	}
	if _, after, ok := strings.Cut(text, " USING "); ok {
		return after, nil
	}
	_, after, _ := strings.Cut(text, "(")
	return "btree (" + after, nil
}

// ParseIndex reads what follows USING.
func ParseIndex(definition string) (*pg.IndexStmt, error) {
	tree, err := pg.Parse("CREATE INDEX i ON t USING " + definition)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return tree.Stmts[0].Stmt.GetIndexStmt(), nil
}

// RenameInIndex is what follows USING with another name for a column.
func RenameInIndex(definition, from, to string) (string, error) {
	n, err := ParseIndex(definition)
	if err != nil {
		return "", err
	}
	for _, p := range append(n.IndexParams, n.IndexIncludingParams...) {
		e := p.GetIndexElem()
		if e.Name == from {
			e.Name = to
		}
		if e.Expr != nil {
			renameColumn(e.Expr, from, to)
		}
	}
	if n.WhereClause != nil {
		renameColumn(n.WhereClause, from, to)
	}
	return IndexText(n)
}

// IndexOptions are what an element of an index says besides what it is.
func IndexOptions(e *pg.IndexElem) (out string) {
	name := func(list []*pg.Node) (parts []string) {
		for _, n := range list {
			parts = append(parts, quote.NameIfNeeded(n.GetString_().GetSval()))
		}
		return parts
	}
	if len(e.Collation) > 0 {
		text := e.Collation[len(e.Collation)-1].GetString_().GetSval()
		out += " COLLATE " + quote.Name(text)
	}
	if len(e.Opclass) > 0 {
		out += " " + strings.Join(name(e.Opclass), ".")
	}
	first := e.NullsOrdering == pg.SortByNulls_SORTBY_NULLS_FIRST
	if e.Ordering == pg.SortByDir_SORTBY_DESC {
		out += " DESC"
		if e.NullsOrdering == pg.SortByNulls_SORTBY_NULLS_LAST {
			out += " NULLS LAST"
		}
	} else if first {
		out += " NULLS FIRST"
	}
	return out
}

// IndexIncluding is INCLUDE.
func IndexIncluding(n *pg.IndexStmt) string {
	var list []string
	for _, p := range n.IndexIncludingParams {
		list = append(list, quote.NameIfNeeded(p.GetIndexElem().GetName()))
	}
	if len(list) == 0 {
		return ""
	}
	return " INCLUDE (" + strings.Join(list, ", ") + ")"
}

// IndexStorage is WITH.
func IndexStorage(n *pg.IndexStmt) string {
	var list []string
	for _, o := range n.Options {
		d := o.GetDefElem()
		text := ""
		switch v := d.GetArg().GetNode().(type) {
		case *pg.Node_Integer:
			text = fmt.Sprint(v.Integer.Ival)
		case *pg.Node_Float:
			text = v.Float.Fval
		case *pg.Node_String_:
			text = v.String_.Sval
		case *pg.Node_TypeName:
			text = v.TypeName.Names[len(v.TypeName.Names)-1].GetString_().GetSval()
		default:
			text = "true"
		}
		list = append(list, quote.NameIfNeeded(d.Defname)+"="+quote.Text(text))
	}
	if len(list) == 0 {
		return ""
	}
	return " WITH (" + strings.Join(list, ", ") + ")"
}

// IndexNames says whether what follows USING names a column.
func IndexNames(definition, column string) bool {
	n, err := ParseIndex(definition)
	if err != nil {
		return false
	}
	found := false
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch v := m.(type) {
		case *pg.IndexElem:
			found = found || v.Name == column
		case *pg.ColumnRef:
			if names, _ := fieldNames(v.Fields); len(names) > 0 {
				found = found || names[len(names)-1] == column
			}
		}
	})
	return found
}

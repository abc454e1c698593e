package pgsql

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// RelationName is where a relation is.
type RelationName struct{ Schema, Name string }

// RenameRelation is a view's query, in which all relations have their schemas, with another
// name for one of them. Its columns are still called by its old name there.
func RenameRelation(sql string, from, to RelationName) (string, error) {
	p, err := Parse(sql)
	if err != nil {
		return "", err
	}
	sel := p.Node.GetSelectStmt()
	named, other := false, false
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if n, ok := m.(*pg.RangeVar); ok && n.Relname == from.Name && n.Schemaname != "" {
			named = named || n.Schemaname == from.Schema && n.Alias == nil
			other = other || n.Schemaname != from.Schema && n.Alias == nil
		}
	})
	if named && other { // they are told apart by their schemas, which names in place of theirs have not
		return "", unsupported("a query that reads \"%s\" of two schemas is not supported here", from.Name)
	}
	walk(sel.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch n := m.(type) {
		case *pg.RangeVar:
			if n.Schemaname != from.Schema || n.Relname != from.Name {
				return
			}
			if n.Alias == nil {
				n.Alias = &pg.Alias{Aliasname: from.Name}
			}
			n.Schemaname, n.Relname = to.Schema, to.Name
		case *pg.ColumnRef:
			if len(n.Fields) > 2 && n.Fields[0].GetString_().GetSval() == from.Schema && n.Fields[1].GetString_().GetSval() == from.Name {
				n.Fields = n.Fields[1:]
			}
		}
	})
	return deparse(sel)
}

// RenameOutput is a view's query with another name for a column: columns are its, as they are
// to be.
func RenameOutput(sql string, columns []OutputColumn) (string, error) {
	p, err := Parse(sql)
	if err != nil {
		return "", err
	}
	return deparse(nameTargets(p.Node.GetSelectStmt(), columns))
}

// RenameType has SQL as it is kept cast to a type by its new name. It says whether anything does.
func RenameType(sql string, from, to RelationName) (string, bool, error) {
	scan, err := pg.Scan(sql)
	if err != nil {
		return sql, false, fmt.Errorf("rename type: %w", err)
	}
	text := func(t *pg.ScanToken) string { return sql[t.Start:t.End] }
	tokens := scan.Tokens
	var b strings.Builder
	done := int32(0)
	for i := 0; i+3 < len(tokens); i++ {
		if t := tokens[i].Token; t != pg.Token_TYPECAST && t != pg.Token_AS {
			continue
		}
		if text(tokens[i+1]) != quote.NameIfNeeded(from.Schema) || text(tokens[i+2]) != "." || text(tokens[i+3]) != quote.NameIfNeeded(from.Name) {
			continue
		}
		b.WriteString(sql[done:tokens[i+1].Start] + quote.NameIfNeeded(to.Schema) + "." + quote.NameIfNeeded(to.Name))
		done = tokens[i+3].End
	}
	return b.String() + sql[done:], done > 0, nil
}

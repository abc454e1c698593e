package pgsql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// CheckCondition refuses an expression that cannot be the condition of rows of a relation.
// It returns the columns that it names.
func CheckCondition(sql string, rel *Relation, env *Env) (columns []string, err error) {
	n, err := ParseExpression(sql)
	if err != nil {
		return nil, err
	}
	query := false
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		switch v := m.(type) {
		case *pg.SubLink:
			query = true
		case *pg.ColumnRef:
			names, _ := fieldNames(v.Fields)
			if len(names) > 0 && !slices.Contains(columns, names[len(names)-1]) {
				columns = append(columns, names[len(names)-1])
			}
		}
	})
	if query {
		return nil, unsupported("cannot use subquery in check constraint")
	}
	with := *rel
	with.Checks = []Check{{SQL: sql}}
	a, err := AnalyzeChecks(&with, env)
	if e, ok := pgerr.As(err); ok {
		return nil, e.WithPosition(0) // it is one in sql, not in the statement
	}
	if err == nil && len(a.Uses) > 1 {
		err = unsupported("cannot use subquery in check constraint")
	}
	return columns, err
}

// AnalyzeChecks is a query that says of each row of a relation, for each of its checks,
// whether the row fails it. Its one use stands for the rows.
func AnalyzeChecks(rel *Relation, env *Env) (*Analysis, error) {
	a := &analyzer{env: env}
	src, err := a.relationSource(rel, &pg.RangeVar{Relname: rel.Name, Location: -1})
	if err != nil {
		return nil, err
	}
	s := &scope{noAgg: "check constraints", columns: src.columns}
	if err := a.addItems(s, src.items); err != nil {
		return nil, err
	}
	var list []string
	for i, k := range rel.Checks {
		n, err := ParseExpression(k.SQL)
		if err != nil {
			return nil, err
		}
		a.sql = k.SQL
		e, err := a.condition(n, s, "CHECK")
		if err != nil {
			return nil, err
		}
		list = append(list, fmt.Sprintf("coalesce(NOT (%s), false) AS c%d", e.sql, i+1))
	}
	if len(a.seenParam) > 0 {
		return nil, pgerr.New(codes.UndefinedParameter, "there is no parameter $1")
	}
	if len(a.effects)+len(a.locks) > 0 {
		return nil, unsupported("functions that act on the server are not supported in check constraints")
	}
	out := &Analysis{SQL: "SELECT " + strings.Join(list, ", ") + " FROM " + src.sql, Uses: a.uses}
	for _, u := range a.uses {
		u.close()
	}
	return out, nil
}

// ConditionColumns are the columns that a condition names, each once.
func ConditionColumns(sql string) (columns []string, err error) {
	n, err := ParseExpression(sql)
	if err != nil {
		return nil, err
	}
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if c, ok := m.(*pg.ColumnRef); ok {
			names, _ := fieldNames(c.Fields)
			if len(names) > 0 && !slices.Contains(columns, names[len(names)-1]) {
				columns = append(columns, names[len(names)-1])
			}
		}
	})
	return columns, nil
}

// RenameColumn is a condition with another name for a column.
func RenameColumn(sql, from, to string) (string, error) {
	n, err := ParseExpression(sql)
	if err != nil {
		return "", err
	}
	renameColumn(n, from, to)
	return ExpressionText(n)
}

func renameColumn(n *pg.Node, from, to string) {
	walk(n.ProtoReflect(), func(m protoreflect.ProtoMessage) {
		if c, ok := m.(*pg.ColumnRef); ok && len(c.Fields) > 0 {
			if last := c.Fields[len(c.Fields)-1].GetString_(); last.GetSval() == from {
				last.Sval = to
			}
		}
	})
}

// volatileFunctions give another value at each call: rows that a table has cannot all have
// one of them.
var volatileFunctions = []string{"random", "gen_random_uuid", "uuid_generate_v4", "clock_timestamp", "timeofday", "nextval", "setval"}

// Volatile says whether an expression may have another value for each row.
func Volatile(sql string) (bool, error) {
	n, err := ParseExpression(sql)
	if err != nil {
		return false, err
	}
	return calls(n, volatileFunctions), nil
}

// AnalyzeInitial is a query of one row: the default of a column, as it is stored.
func AnalyzeInitial(c RelationColumn, env *Env) (*Analysis, error) {
	w := &writer{analyzer: &analyzer{env: env}}
	sql, err := w.defaultOf(c)
	if err != nil {
		return nil, err
	}
	return w.finished("SELECT " + sql + " AS c1"), nil
}

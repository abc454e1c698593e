package planner

import (
	"context"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

func (s *session) preparePrepare(sql string, n *pg.PrepareStmt) (pgwire.Statement, error) {
	var types []uint32
	for _, a := range n.Argtypes {
		t, err := pgsql.ResolveTypeName(a.GetTypeName())
		if err != nil {
			return nil, err
		}
		types = append(types, t.OID)
	}
	sel := n.Query.GetSelectStmt()
	if sel == nil {
		return nil, s.refuse(n.Query)
	}
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		if s.prepared.Get(n.Name) != nil {
			return nil, pgerr.New(codes.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", n.Name)
		}
		st, err := s.prepareQuery(sql, sel, types)
		if err != nil {
			return nil, err
		}
		s.prepared.Put(n.Name, &pgwire.Prepared{Statement: st, Text: sql, At: s.engine.deps.Clock.Now(), FromSQL: true})
		return &result{tag: "PREPARE"}, nil
	}}, nil
}

// executeStatement is EXECUTE name(args): a prepared statement with its values.
type executeStatement struct {
	pgwire.Statement
	values [][]byte
}

// Params implements pgwire.Statement.
func (e *executeStatement) Params() []uint32 { return nil }

// Bind implements pgwire.Statement.
func (e *executeStatement) Bind(ctx context.Context, _ [][]byte, _, resultFormats []int16) (pgwire.Portal, error) {
	return e.Statement.Bind(ctx, e.values, make([]int16, len(e.values)), resultFormats)
}

func (s *session) prepareExecute(_ context.Context, sql string, n *pg.ExecuteStmt) (pgwire.Statement, error) {
	p := s.prepared.Get(n.Name)
	if p == nil {
		return nil, pgerr.New(codes.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", n.Name)
	}
	if want := len(p.Params()); want != len(n.Params) {
		return nil, pgerr.New(codes.Syntax, "wrong number of parameters for prepared statement \"%s\"", n.Name).
			WithDetail("Expected %d parameters but got %d.", want, len(n.Params))
	}
	e := &executeStatement{Statement: p.Statement}
	for i, node := range n.Params {
		v, err := pgsql.ConstantText(sql, node, p.Params()[i])
		if err != nil {
			return nil, err
		}
		e.values = append(e.values, v)
	}
	return e, nil
}

func (s *session) prepareDeallocate(n *pg.DeallocateStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		if n.Name == "" {
			s.prepared.DropNamed()
			return &result{tag: "DEALLOCATE ALL"}, nil
		}
		if s.prepared.Get(n.Name) == nil {
			return nil, pgerr.New(codes.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", n.Name)
		}
		s.prepared.Drop(n.Name)
		return &result{tag: "DEALLOCATE"}, nil
	}}, nil
}

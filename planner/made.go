package planner

import (
	"context"
	"fmt"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/wal/mutant"
)

// prepareMade prepares CREATE TABLE AS and CREATE MATERIALIZED VIEW.
func (s *session) prepareMade(sql string, n *pg.CreateTableAsStmt) (pgwire.Statement, error) {
	return s.prepareCreateAs(sql, n.Query, n.Into, n.IfNotExists, n.Objtype == pg.ObjectType_OBJECT_MATVIEW)
}

// prepareCreateAs prepares CREATE TABLE AS and SELECT INTO, and CREATE MATERIALIZED VIEW.
func (s *session) prepareCreateAs(sql string, query *pg.Node, into *pg.IntoClause, ifNotExists, materialized bool) (pgwire.Statement, error) {
	sel := query.GetSelectStmt()
	if sel == nil {
		return nil, pgerr.New(codes.FeatureNotSupported, "CREATE TABLE AS EXECUTE is not supported")
	}
	sel.IntoClause = nil
	tag := "CREATE TABLE AS"
	if materialized {
		tag = "CREATE MATERIALIZED VIEW"
	}
	var names []string
	for _, n := range into.ColNames {
		names = append(names, n.GetString_().GetSval())
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		var view *pgsql.View
		c, err := s.define(ctx, sql, tag, sink, func(c *define.Context) (_ *define.Change, err error) {
			if view, err = pgsql.AnalyzeView(sql, sel, names, c.Env); err != nil {
				return nil, err
			}
			if materialized {
				return c.CreateMaterialized(into, ifNotExists, view)
			}
			return c.CreateAs(into, ifNotExists, view.Columns)
		})
		if err != nil || c.Makes == nil || into.SkipData {
			return &result{tag: tag}, err
		}
		n, err := s.fill(ctx, c.Makes, view.SQL)
		return &result{tag: fmt.Sprintf("SELECT %d", n)}, err
	}}, nil
}

// fill inserts the rows of a query into a table that the transaction makes, or a materialized view
// that it fills anew.
func (s *session) fill(ctx context.Context, t *catalog.Table, sql string) (int, error) {
	p, err := pgsql.Parse(sql)
	if err != nil {
		return 0, err
	}
	insert := &pg.InsertStmt{
		Relation: &pg.RangeVar{Schemaname: t.Schema, Relname: t.Name, Location: -1}, SelectStmt: p.Node,
		Override: pg.OverridingKind_OVERRIDING_NOT_SET,
	}
	s.refreshes = TableOID(t.Face())
	defer func() { s.refreshes = 0 }()
	w, err := s.prepareWrite(&pgsql.Parsed{SQL: sql, Node: &pg.Node{Node: &pg.Node_InsertStmt{InsertStmt: insert}}}, nil, "INSERT")
	if err != nil {
		return 0, err
	}
	portal := &writePortal{queryPortal: &queryPortal{session: s}, statement: w}
	err = portal.write(ctx)
	return portal.count, clientError(ctx, err)
}

// compute has columns that are generated computed for the rows of a table that have been there before.
func (s *session) compute(ctx context.Context, r *define.Refill) error {
	var set []string
	for _, c := range r.Columns {
		set = append(set, quote.NameIfNeeded(c)+" = DEFAULT")
	}
	sql := "UPDATE ONLY " + quote.NameIfNeeded(r.Schema) + "." + quote.NameIfNeeded(r.Table) + " SET " + strings.Join(set, ", ")
	err := s.updateAs(ctx, right.Table(uint32(r.ID)), sql)
	if e, ok := pgerr.As(err); ok && e.Table == r.Table && e.Schema == r.Schema {
		return ofRows(e)
	}
	return err
}

// updateAs updates a table for its owner, who may have no right to write it.
func (s *session) updateAs(ctx context.Context, table right.Object, sql string) error {
	p, err := pgsql.Parse(sql)
	if err != nil {
		return err
	}
	s.acts = s.book().Owner(table)
	defer func() { s.acts = 0 }()
	w, err := s.prepareWrite(p, nil, "UPDATE")
	if err != nil {
		return err
	}
	return clientError(ctx, (&writePortal{queryPortal: &queryPortal{session: s}, statement: w}).write(ctx))
}

// retyped does an ALTER TABLE that computes columns anew; done is false for any other.
func (s *session) retyped(ctx context.Context, sql string, n *pg.AlterTableStmt, sink pgwire.Sink) (done bool, err error) {
	const word = "ALTER TABLE"
	if s.engine.deps.Own == nil {
		return false, nil // which says so
	}
	var r *define.Retyping
	_, err = s.planChange(ctx, sql, func(c *define.Context) (_ *define.Change, err error) {
		r, err = c.Retypes(n)
		return nil, err
	})
	if err != nil || r == nil {
		return false, err
	}
	if s.repeatable() {
		return true, pgerr.New(codes.FeatureNotSupported, "%s that computes columns anew in a REPEATABLE READ or SERIALIZABLE transaction is not supported", word).
			WithHint("Run it in a READ COMMITTED one.")
	}
	step := func(plan func(*define.Context) (*define.Change, error)) error {
		_, err := s.define(ctx, sql, word, sink, func(c *define.Context) (*define.Change, error) {
			change, err := plan(c)
			if err == nil {
				err = s.notInUse(change.Alters, word)
			}
			return change, err
		})
		return err
	}
	alter := func(n *pg.AlterTableStmt) func(*define.Context) (*define.Change, error) {
		return func(c *define.Context) (*define.Change, error) {
			return define.Plan(&pg.Node{Node: &pg.Node_AlterTableStmt{AlterTableStmt: n}}, c)
		}
	}
	if err := step(alter(r.First)); err != nil {
		return true, err
	}
	if err := s.updateAs(ctx, r.Owner, r.Update); err != nil {
		return true, r.ErrorOf(err)
	}
	if err := step(r.Replace); err != nil || r.Last == nil {
		return true, err
	}
	return true, step(alter(r.Last))
}

// ofRows is the error of a row that is written, as that of rows which there are.
func ofRows(e *pgerr.Error) *pgerr.Error {
	out := *e
	switch e.Code {
	case codes.NotNullViolation:
		out.Message, out.Detail = fmt.Sprintf("column \"%s\" of relation \"%s\" contains null values", e.Column, e.Table), ""
	case codes.CheckViolation:
		out.Message, out.Detail = fmt.Sprintf("check constraint \"%s\" of relation \"%s\" is violated by some row", e.Constraint, e.Table), ""
	case codes.UniqueViolation:
		out.Message = fmt.Sprintf("could not create unique index \"%s\"", e.Constraint)
		out.Detail = strings.Replace(e.Detail, "already exists.", "is duplicated.", 1)
	}
	return &out
}

// prepareRefresh prepares REFRESH MATERIALIZED VIEW: its rows go, and those of its query come, in the
// transaction. Who reads it meanwhile has those before, with CONCURRENTLY or without.
func (s *session) prepareRefresh(sql string, n *pg.RefreshMatViewStmt) (pgwire.Statement, error) {
	const tag = "REFRESH MATERIALIZED VIEW"
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		var t *catalog.Table
		_, err := s.define(ctx, sql, tag, sink, func(c *define.Context) (_ *define.Change, err error) {
			var out *define.Change
			if out, t, err = c.Refresh(n); err != nil {
				return nil, err
			}
			if b := s.book(); !b.Owns(s.who(b).Current, right.Table(uint32(t.Face()))) {
				return nil, pgerr.New(codes.InsufficientPrivilege, "must be owner of materialized view %s", t.Name)
			}
			return out, nil
		})
		if err != nil {
			return nil, err
		}
		mark := s.markChanges()
		if err := s.refill(ctx, t, n); err != nil {
			s.rollbackChanges(mark)
			return nil, clientError(ctx, err)
		}
		return &result{tag: tag}, nil
	}}, nil
}

func (s *session) refill(ctx context.Context, t *catalog.Table, n *pg.RefreshMatViewStmt) error {
	snap, release := s.now()
	rel, err := pgsql.FindRelation(&pg.RangeVar{Schemaname: t.Schema, Relname: t.Name, Location: -1}, s.env(s.namesOf(snap)))
	release()
	if err != nil {
		return err
	}
	w, err := s.writable(ctx, rel, "REFRESH MATERIALIZED VIEW")
	if err != nil {
		return err
	}
	if !mutant.On(mutant.RefreshNotEmptied) {
		err = s.changesOf(w).Truncate(w)
	}
	if err != nil || n.SkipData {
		return err
	}
	// Its owner reads, whoever asks for it: the owner could else read what is another's through it.
	s.acts = s.book().Owner(right.Table(uint32(t.Face())))
	defer func() { s.acts = 0 }()
	_, err = s.fill(ctx, t, t.Query.SQL)
	return err
}

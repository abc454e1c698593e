package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/block"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// prepareDo prepares DO, whose statements are those of its session's transaction.
func (s *session) prepareDo(sql string, n *pg.DoStmt) (pgwire.Statement, error) {
	for _, a := range n.Args {
		if d := a.GetDefElem(); d.GetDefname() == "language" && d.Arg.GetString_().GetSval() != "plpgsql" {
			return nil, pgerr.New(codes.UndefinedObject, "language \"%s\" does not exist", d.Arg.GetString_().GetSval())
		}
	}
	b, err := block.Parse(sql)
	if err != nil {
		return nil, err
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		return &result{tag: "DO"}, s.doBlock(ctx, b, sink)
	}}, nil
}

// doBlock runs a block. What a step did that fails is undone before its error is handled.
func (s *session) doBlock(ctx context.Context, b *block.Block, sink pgwire.Sink) error {
	if len(b.Handlers) == 0 {
		return s.doSteps(ctx, b.Steps, sink)
	}
	i := s.mark("")
	err := s.doSteps(ctx, b.Steps, sink)
	if err != nil {
		e, ok := pgerr.As(clientError(ctx, err))
		at := -1
		if ok && ctx.Err() == nil {
			at = slices.IndexFunc(b.Handlers, func(h block.Handler) bool { return h.For(string(e.Code)) })
		}
		if at < 0 {
			s.tx.savepoints = s.tx.savepoints[:i]
			return err
		}
		s.undo(i)
		s.release(i)
		return s.doSteps(ctx, b.Handlers[at].Steps, sink)
	}
	s.release(i)
	return nil
}

func (s *session) doSteps(ctx context.Context, steps []block.Step, sink pgwire.Sink) error {
	for _, step := range steps {
		var err error
		switch {
		case step.Block != nil:
			err = s.doBlock(ctx, step.Block, sink)
		case len(step.If) > 0:
			err = s.doIf(ctx, step, sink)
		case step.Perform != "":
			err = s.doStatement(ctx, step.Perform, doSink{sink, doPlace{step.Perform, "PERFORM", step.Line}}, true)
		default:
			err = s.doStatement(ctx, step.Run, doSink{sink, doPlace{step.Run, "SQL statement", step.Line}}, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) doIf(ctx context.Context, step block.Step, sink pgwire.Sink) error {
	for _, b := range step.If {
		if b.Condition != "" {
			holds, err := (ddlSession{s, sink}).Query(ctx, "SELECT CAST(("+b.Condition+") AS boolean)")
			if err != nil {
				return doPlace{"", "IF", step.Line}.in(clientError(ctx, err))
			}
			if holds[0][0] != "t" {
				continue
			}
		}
		return s.doSteps(ctx, b.Steps, sink)
	}
	return nil
}

// doStatement runs a statement of a block, which must give no rows unless nobody is to see them.
func (s *session) doStatement(ctx context.Context, sql string, sink doSink, rows bool) error {
	err := func() error {
		p, err := pgsql.Parse(sql)
		switch {
		case ddl.IsOurs(sql):
			return pgerr.New(codes.FeatureNotSupported, "statements on pipelines are not supported in DO")
		case err != nil:
			return err
		case p.Node.GetTransactionStmt() != nil:
			return pgerr.New(codes.FeatureNotSupported, "unsupported transaction command in PL/pgSQL")
		case p.Node.GetCopyStmt() != nil && p.Node.GetCopyStmt().Filename == "":
			return pgerr.New(codes.FeatureNotSupported, "cannot COPY to/from client in PL/pgSQL")
		}
		st, err := s.prepareNode(ctx, p, nil)
		if err != nil {
			return err
		}
		if len(st.Columns()) > 0 && !rows {
			e := pgerr.New(codes.Syntax, "query has no destination for result data")
			if p.Node.GetSelectStmt() != nil {
				e = e.WithHint("If you want to discard the results of a SELECT, use PERFORM instead.")
			}
			return e
		}
		portal, err := st.Bind(ctx, nil, nil, make([]int16, len(st.Columns())))
		if err != nil {
			return err
		}
		defer portal.Close()
		_, _, err = portal.Execute(ctx, sink, 0)
		return err
	}()
	if err != nil {
		return sink.place.in(clientError(ctx, err))
	}
	return nil
}

// doPlace is a step of a block, for messages: its statement, its kind, its line.
type doPlace struct {
	sql, kind string
	line      int
}

// in says where an error was. A position is one in the step's statement, not in the block.
func (d doPlace) in(err error) error {
	e, ok := pgerr.As(err)
	if !ok {
		return err
	}
	where := fmt.Sprintf("PL/pgSQL function inline_code_block line %d at %s", d.line, d.kind)
	if e.Position == 0 && d.sql != "" && e.Message != "query has no destination for result data" {
		where = fmt.Sprintf("SQL statement \"%s\"\n", d.sql) + where
	}
	out := *e.WithPosition(0)
	if out.Where != "" {
		where = out.Where + "\n" + where
	}
	out.Where = where
	return &out
}

// doSink is where a step of a block sends rows, which nobody sees, and notices.
type doSink struct {
	pgwire.Sink
	place doPlace
}

// Rows implements pgwire.Sink.
func (doSink) Rows([]byte, int) error { return nil }

// Notice implements pgwire.Sink.
func (d doSink) Notice(e *pgerr.Error) error {
	if n, ok := pgerr.As(d.place.in(e)); ok {
		e = n
	}
	return d.Sink.Notice(e)
}

package own

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/owned"
	"github.com/skipprd/skipprd/wal/env"
)

// MakeTables makes tables of our own in a catalog that nothing else uses, by their CREATE TABLE
// statements.
func MakeTables(c *catalog.Catalog, fake *env.Fake, statements []string) error {
	ctx := context.Background()
	tasks := env.Goroutines(fake)
	e := planner.New(planner.Deps{
		Catalog: c, Runner: empty{}, DDL: noDDL{}, System: noSystem{}, Clock: fake, Version: "15.8", Database: "lake",
		Own: &owned.Tables{
			Tables: &own.Tables{Catalog: c, Pipelines: resting{c}}, Store: own.NewStore(own.Deps{Clock: fake, Tasks: tasks}),
			Locks: own.NewLocks(tasks),
		},
	})
	s, err := e.Open(ctx, pgwire.Startup{User: "postgres", Database: "lake", PID: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, sql := range statements {
		if err := execute(ctx, s, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func execute(ctx context.Context, s pgwire.Session, sql string) error {
	st, err := s.Prepare(ctx, sql, nil)
	if err != nil {
		return err
	}
	p, err := st.Bind(ctx, nil, nil, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	if _, _, err := p.Execute(ctx, silent{}, 0); err != nil {
		return err
	}
	return s.Sync(ctx, false)
}

// empty is an engine over tables without rows.
type empty struct{}

// Query implements planner.Runner.
func (empty) Query(context.Context, *duckdb.Plan) (planner.Rows, error) { return &rows{}, nil }

// silent is a sink of statements that have no rows.
type silent struct{ pgwire.Sink }

// Notice implements pgwire.Sink.
func (silent) Notice(*pgerr.Error) error { return nil }

// ParameterStatus implements pgwire.Sink.
func (silent) ParameterStatus(string, string) error { return nil }

// resting are pipelines that do not run.
type resting struct{ c *catalog.Catalog }

// Still implements own.Pipelines.
func (r resting) Still(_ context.Context, name string, fn func(*catalog.Pipeline) error) error {
	snap := r.c.Snapshot()
	p, err := snap.Pipeline(name)
	snap.Close()
	if err != nil {
		return err
	}
	return fn(p)
}

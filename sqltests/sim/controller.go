package sim

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// controller is the part of a server's ddl.Controller that the world's statements need.
type controller struct {
	ddl.Controller // nil: of what is not below, nothing is asked
	s              *ingest.Supervisor
}

// Start implements ddl.Controller.
func (c controller) Start(ctx context.Context, name string) error { return c.s.Start(ctx, name) }

// Stop implements ddl.Controller.
func (c controller) Stop(ctx context.Context, name string) error { return c.s.Stop(ctx, name) }

// Status implements ddl.Controller.
func (c controller) Status(string) (ddl.PipelineStatus, bool) { return ddl.PipelineStatus{}, false }

// client runs statements and listens to nothing.
type client struct{}

// Notice implements ddl.Session.
func (client) Notice(*pgerr.Error) error { return nil }

// User implements ddl.Session.
func (client) User() string { return "postgres" }

// Role implements ddl.Session.
func (client) Role() uint32 { return 10 }

// execute runs a statement on the pipeline as a session does.
func (p *process) execute(ctx context.Context, action string) error {
	s, err := ddl.Parse("ALTER PIPELINE " + pipelineName + " " + action)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	x := ddl.Executor{Catalog: p.catalog, Controller: controller{s: p.supervisor}, Clock: clock{p}}
	_, err = x.Execute(ctx, s, client{})
	return err
}

func (p *process) pausePipeline(ctx context.Context) error { return p.execute(ctx, "PAUSE") }

func (p *process) resumePipeline(ctx context.Context) error { return p.execute(ctx, "ENABLE") }

package own

import (
	"context"
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// Pipelines is what Tables needs of the supervisor.
type Pipelines interface {
	// Still has fn run while a pipeline stands still; it goes on afterwards, with the
	// tables as the catalog then has them.
	Still(ctx context.Context, name string, fn func(*catalog.Pipeline) error) error
}

// Tables makes and drops tables of our own. Safe for concurrent use.
type Tables struct {
	Catalog   *catalog.Catalog
	Pipelines Pipelines
}

// ErrNameTaken means that a pipeline or connection of somebody's has the name that the
// pipeline of tables of our own needs.
var ErrNameTaken = errors.New("name is taken")

// Create makes a table as its definition says, empty. It wraps catalog.ErrExists.
func (t *Tables) Create(ctx context.Context, def *catalog.Table) error {
	if err := t.ensure(ctx); err != nil {
		return err
	}
	return t.Pipelines.Still(ctx, catalog.OwnPipeline, func(p *catalog.Pipeline) error {
		return t.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			n := def.Clone()
			n.Pipeline, n.Own, n.State = p.ID, true, catalog.TableReady
			n.SourceSchema, n.SourceName = n.Schema, n.Name
			n.Backfill.FinishedAt = txn.Now()
			if err := txn.CreateTable(n); err != nil {
				return fmt.Errorf("create table: %w", err)
			}
			n.SourceOID = n.OID // unique among the pipeline's
			return errors.Join(txn.PutTable(n), txn.AddEvent(catalog.Event{
				At: txn.Now(), Level: "info", Table: n.Schema + "." + n.Name, Kind: "table created",
			}))
		})
	})
}

// ensure makes the pipeline if there is none.
func (t *Tables) ensure(ctx context.Context) error {
	snap := t.Catalog.Snapshot()
	p, err := snap.Pipeline(catalog.OwnPipeline)
	snap.Close()
	if err == nil {
		return checkOurs(p)
	}
	return t.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		if p, err := txn.Pipeline(catalog.OwnPipeline); err == nil {
			return checkOurs(p) // another session made it
		}
		err := txn.CreateConnection(&catalog.Connection{Name: catalog.OwnPipeline, Kind: Kind, Implicit: true})
		if err == nil {
			err = txn.CreatePipeline(&catalog.Pipeline{
				Name: catalog.OwnPipeline, Connection: catalog.OwnPipeline, Enabled: true, State: catalog.PipelineStarting,
				Options: map[string]string{"copy_data": "false", "on_error": "stop"},
			})
		}
		if err != nil {
			return fmt.Errorf("make pipeline %s: %w", quote.Name(catalog.OwnPipeline), errors.Join(ErrNameTaken, err))
		}
		return nil
	})
}

func checkOurs(p *catalog.Pipeline) error {
	if p.Connection != catalog.OwnPipeline {
		return fmt.Errorf("pipeline %s: %w", quote.Name(catalog.OwnPipeline), ErrNameTaken)
	}
	return nil
}

// Drop removes tables with their rows; it wraps catalog.ErrTableNotFound. Nobody else
// changes them meanwhile (Locks).
func (t *Tables) Drop(ctx context.Context, ids []change.TableID) error {
	return t.Pipelines.Still(ctx, catalog.OwnPipeline, func(*catalog.Pipeline) error {
		return t.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			for _, id := range ids {
				old, err := txn.TableByID(id)
				if err != nil {
					return err
				}
				err = errors.Join(txn.DeleteTable(id), txn.LeaveLake(id), txn.AddEvent(catalog.Event{
					At: txn.Now(), Level: "info", Table: old.Schema + "." + old.Name, Kind: "table dropped",
				}))
				if err != nil {
					return fmt.Errorf("drop table %s.%s: %w", old.Schema, old.Name, err)
				}
			}
			return nil
		})
	})
}

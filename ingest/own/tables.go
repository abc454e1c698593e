package own

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// Pipelines is what Tables needs of the supervisor.
type Pipelines interface {
	// Still has fn run while a pipeline stands still; it goes on afterwards, with the
	// tables as the catalog then has them.
	Still(ctx context.Context, name string, fn func(*catalog.Pipeline) error) error
}

// Tables changes what tables of our own there are. Safe for concurrent use.
type Tables struct {
	Catalog   *catalog.Catalog
	Pipelines Pipelines

	mu struct {
		sync.Mutex
		// pipeline is whose tables the numbers at next, left of them, may be given to.
		pipeline change.PipelineID
		next     change.TableID
		left     int
	}
}

// reservedAtOnce is how many numbers of tables are taken from the catalog at once: each time costs
// a commit, after which what transactions have defined is drafted anew. Those that are left when the
// process ends are never used.
const reservedAtOnce = 32

// ErrNameTaken means that a pipeline or connection of somebody's has the name that the
// pipeline of tables of our own needs.
var ErrNameTaken = errors.New("name is taken")

// Reserve makes the pipeline of tables of our own if there is none, and gives out the
// number of a table that is to be made.
func (t *Tables) Reserve(ctx context.Context) (pipeline change.PipelineID, table change.TableID, err error) {
	snap := t.Catalog.Snapshot()
	p, err := snap.Pipeline(catalog.OwnPipeline)
	snap.Close()
	if err == nil {
		if table, ok := t.reserved(p.ID); ok {
			return p.ID, table, nil
		}
	}
	err = t.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		p, err := ensure(txn)
		if err != nil {
			return err
		}
		pipeline, table = p.ID, txn.ReserveTable()
		for range reservedAtOnce - 1 {
			txn.ReserveTable()
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.pipeline, t.mu.next, t.mu.left = pipeline, table+1, reservedAtOnce-1
	return pipeline, table, nil
}

// reserved gives out a number that was taken before.
func (t *Tables) reserved(pipeline change.PipelineID) (table change.TableID, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.pipeline != pipeline || t.mu.left == 0 {
		return 0, false
	}
	table = t.mu.next
	t.mu.next++
	t.mu.left--
	return table, true
}

// Define has fn change the catalog, at once and durably. If it makes, changes or drops
// tables of our own, their pipeline stands still meanwhile, and nobody else writes those
// that it changes or drops (Locks). An error means that nothing has changed: what dropped
// tables have left, and cannot be removed now, is removed by a later session.
func (t *Tables) Define(ctx context.Context, tables bool, fn func(*catalog.Txn) error) error {
	if !tables {
		return t.Catalog.Update(ctx, fn)
	}
	done := false
	err := t.Pipelines.Still(ctx, catalog.OwnPipeline, func(*catalog.Pipeline) error {
		err := t.Catalog.Update(ctx, fn)
		done = err == nil
		return err
	})
	if done && !mutant.On(mutant.DefinedToldRefused) {
		return nil
	}
	return err
}

// Sweep removes the drafts of tables whose transactions ended with the process. It is
// called before the first session, and before the pipeline runs.
func (t *Tables) Sweep(ctx context.Context) error {
	snap := t.Catalog.Snapshot()
	p, err := snap.Pipeline(catalog.OwnPipeline)
	var drafts []change.TableID
	if err == nil {
		for _, tbl := range snap.EveryTableOf(p.ID) {
			if tbl.Draft {
				drafts = append(drafts, tbl.ID)
			}
		}
	}
	snap.Close()
	if len(drafts) == 0 {
		return nil
	}
	return t.Catalog.Update(ctx, func(txn *catalog.Txn) (err error) {
		for _, id := range drafts {
			err = errors.Join(err, txn.DeleteDraft(id))
		}
		return err
	})
}

// ensure makes the pipeline if there is none.
func ensure(txn *catalog.Txn) (*catalog.Pipeline, error) {
	if p, err := txn.Pipeline(catalog.OwnPipeline); err == nil {
		return p, checkOurs(p)
	}
	p := &catalog.Pipeline{
		Name: catalog.OwnPipeline, Connection: catalog.OwnPipeline, Enabled: true, State: catalog.PipelineStarting,
		Options: map[string]string{"copy_data": "false", "on_error": "stop"},
	}
	err := txn.CreateConnection(&catalog.Connection{Name: catalog.OwnPipeline, Kind: Kind, Implicit: true})
	if err == nil {
		err = txn.CreatePipeline(p)
	}
	if err != nil {
		return nil, fmt.Errorf("make pipeline %s: %w", quote.Name(catalog.OwnPipeline), errors.Join(ErrNameTaken, err))
	}
	return p, nil
}

func checkOurs(p *catalog.Pipeline) error {
	if p.Connection != catalog.OwnPipeline {
		return fmt.Errorf("pipeline %s: %w", quote.Name(catalog.OwnPipeline), ErrNameTaken)
	}
	return nil
}

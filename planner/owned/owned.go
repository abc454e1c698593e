// Package owned joins sessions (planner.OwnTables) to the tables of our own (ingest/own), and
// says what a client is told of their errors.
package owned

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// Tables are the tables of our own as sessions use them. Safe for concurrent use once its
// fields are set.
type Tables struct {
	Tables *own.Tables
	Store  *own.Store
	Locks  *own.Locks
	// Lake moves a table's changes into the lake; nil: nothing can.
	Lake interface {
		CompactTable(ctx context.Context, id change.TableID, force bool) error
	}

	once sync.Once
	// drawn gives out values of sequences.
	drawn *own.Sequences
}

var _ planner.OwnTables = (*Tables)(nil)

// Reserve implements planner.OwnTables: it gives out the number of a table.
func (o *Tables) Reserve(ctx context.Context) (change.PipelineID, change.TableID, error) {
	pipeline, table, err := o.Tables.Reserve(ctx)
	return pipeline, table, Error(err)
}

// Define implements planner.OwnTables: it changes what there is.
func (o *Tables) Define(ctx context.Context, tables bool, fn func(*catalog.Txn) error) error {
	return Error(o.Tables.Define(ctx, tables, fn))
}

// Commit implements planner.OwnTables: it makes changes durable.
func (o *Tables) Commit(ctx context.Context, c *write.Changes, settled func()) error {
	return Error(o.Store.Commit(ctx, c, settled))
}

// Sequences implements planner.OwnTables.
func (o *Tables) Sequences() planner.Sequences {
	o.once.Do(func() { o.drawn = own.NewSequences(o.Tables.Catalog) })
	return sequences{o.drawn}
}

type sequences struct{ *own.Sequences }

// Draw implements planner.Sequences.
func (s sequences) Draw(ctx context.Context, id change.TableID, n int64) ([]sequence.Range, error) {
	out, err := s.Sequences.Draw(ctx, id, n)
	return out, Error(err)
}

// Set implements planner.Sequences.
func (s sequences) Set(ctx context.Context, id change.TableID, value int64, called bool) error {
	return Error(s.Sequences.Set(ctx, id, value, called))
}

// Hold implements planner.OwnTables: it makes changes durable, to be completed by Define.
func (o *Tables) Hold(ctx context.Context, c *write.Changes, schemas map[change.TableID]*schema.Table) (planner.HeldRows, error) {
	h, err := o.Store.Hold(ctx, c, schemas)
	if err != nil {
		return nil, Error(err)
	}
	return held{h}, nil
}

type held struct{ *own.Held }

// Complete implements planner.HeldRows.
func (h held) Complete(txn *catalog.Txn) error {
	err := h.Held.Complete(txn)
	if errors.Is(err, own.ErrHeldVoid) {
		return fmt.Errorf("%w: %w", planner.ErrRowsVoid, err)
	}
	return err
}

// settleTries is how often Settle looks whether all is in the lake: others may be at work on it.
const settleTries = 10

// Settle implements planner.OwnTables: it moves what the log has of a table into the lake.
func (o *Tables) Settle(ctx context.Context, id change.TableID) error {
	var last error
	for range settleTries {
		snap := o.Tables.Catalog.Snapshot()
		live, err := snap.LiveSlices(id)
		snap.Close()
		if err != nil || len(live) == 0 {
			return err
		}
		if o.Lake == nil {
			break
		}
		if last = o.Lake.CompactTable(ctx, id, true); last != nil && context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
	}
	e := pgerr.New(codes.ObjectInUse, "the rows of the table cannot be moved into the lake now").
		WithHint("Run the statement again. ALTER PIPELINE %s COMPACT; says what is in the way.", catalog.OwnPipeline)
	if last != nil {
		e = e.WithCause(last)
	}
	return e
}

// Held implements planner.OwnTables.
func (o *Tables) Held() planner.HeldTables { return locks{o.Locks} }

type locks struct{ of *own.Locks }

// Holder implements planner.HeldTables.
func (l locks) Holder(pid uint32) planner.TableHolder { return holder{l.of.Holder(pid)} }

// Graph implements planner.HeldTables.
func (l locks) Graph(name func(change.TableID) string) *circle.Graph { return l.of.Graph(name) }

// List implements planner.HeldTables.
func (l locks) List() (out []planner.TableLock) {
	for _, t := range l.of.List() {
		out = append(out, planner.TableLock{Table: t.Table, PID: t.PID, Granted: t.Granted})
	}
	return out
}

type holder struct{ *own.Holder }

// Lock implements planner.TableHolder.
func (h holder) Lock(ctx context.Context, table change.TableID) error {
	defer waits.On(ctx, waits.Relation)()
	return Error(h.Holder.Lock(ctx, table))
}

// Error says what a client is told of an error of tables of our own.
func Error(err error) error {
	var exists *catalog.ExistsError
	var deadlock *own.DeadlockError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, own.ErrInDoubt):
		return pgerr.New(codes.TransactionResolutionUnknown, "the commit was interrupted, and it is not known whether it takes place").
			WithHint("Look whether its changes are there before you make them again.").WithCause(err)
	case errors.As(err, &deadlock):
		return pgerr.New(codes.DeadlockDetected, "deadlock detected").WithDetail("%s", strings.Join(deadlock.Circle, "\n")).
			WithHint("Run the transaction again.")
	case errors.Is(err, own.ErrTableGone):
		return pgerr.New(codes.SerializationFailure, "a table was dropped or altered while the transaction changed it").WithCause(err)
	case errors.Is(err, own.ErrNoRoom):
		return pgerr.New(codes.DiskFull, "the log has no room for the transaction").
			WithHint("Commit more often, or start the server with a larger --wal-quota-bytes.").WithCause(err)
	case errors.Is(err, own.ErrGivenUp):
		return pgerr.New(codes.System, "the transaction could not be made durable").
			WithHint("The reason of pipeline %s in pg_stat_pipeline says why.", catalog.OwnPipeline).WithCause(err)
	case errors.Is(err, own.ErrNameTaken):
		return pgerr.New(codes.DuplicateObject, "pipeline or connection \"%s\" already exists", catalog.OwnPipeline).
			WithDetail("Tables made with CREATE TABLE need a pipeline of that name.").WithCause(err)
	case errors.Is(err, ingest.ErrNotRunning):
		return pgerr.New(codes.CannotConnectNow, "tables made with CREATE TABLE cannot be used yet").WithDetail("%s", err).
			WithHint("SHOW PIPELINES; says how their log is.").WithCause(err)
	case errors.As(err, &exists) && exists.Kind == catalog.KindTable:
		return pgerr.New(codes.DuplicateRelation, "relation \"%s\" already exists", exists.Name)
	}
	return err
}

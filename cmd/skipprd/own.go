package main

import (
	"context"
	"errors"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// ownTables joins sessions (planner.OwnTables) to the tables of our own.
type ownTables struct {
	tables *own.Tables
	store  *own.Store
	locks  *own.Locks
}

var _ planner.OwnTables = (*ownTables)(nil)

// Reserve gives out the number of a table.
func (o *ownTables) Reserve(ctx context.Context) (change.PipelineID, change.TableID, error) {
	pipeline, table, err := o.tables.Reserve(ctx)
	return pipeline, table, ownError(err)
}

// Define changes what there is.
func (o *ownTables) Define(ctx context.Context, tables bool, fn func(*catalog.Txn) error) error {
	return ownError(o.tables.Define(ctx, tables, fn))
}

// Commit makes changes durable.
func (o *ownTables) Commit(ctx context.Context, c *write.Changes, settled func()) error {
	return ownError(o.store.Commit(ctx, c, settled))
}

// Holder returns a holder of no table.
func (o *ownTables) Holder() planner.TableHolder { return ownHolder{o.locks.Holder()} }

type ownHolder struct{ *own.Holder }

// Lock waits for a table.
func (h ownHolder) Lock(ctx context.Context, table change.TableID) error {
	return ownError(h.Holder.Lock(ctx, table))
}

// ownError says what a client is told of an error of tables of our own.
func ownError(err error) error {
	var exists *catalog.ExistsError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, own.ErrInDoubt):
		return pgerr.New(codes.TransactionResolutionUnknown, "the commit was interrupted, and it is not known whether it takes place").
			WithHint("Look whether its changes are there before you make them again.").WithCause(err)
	case errors.Is(err, own.ErrDeadlock):
		return pgerr.New(codes.DeadlockDetected, "deadlock detected").WithHint("Run the transaction again.")
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

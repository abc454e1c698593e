package planner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest/own/circle"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/advisory"
	"github.com/skipprd/skipprd/planner/copying"
	"github.com/skipprd/skipprd/planner/scroll"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// Deps are the collaborators of an Engine.
type Deps struct {
	Catalog   *catalog.Catalog
	Warehouse Snapshots
	// Pins keeps lake snapshots that statements read; nil: none needs that.
	Pins Pins
	// Logs keeps logs that transactions and cursors read; nil: none can be kept.
	Logs LogPins
	// Positions waits for skippr.read_position; nil: it is not waited for.
	Positions Positions
	// Recovered waits until all that a pipeline had when the server started can be read: a
	// query after a crash must not see less than one before it. Its error says why that takes
	// too long. nil: there is nothing to wait for.
	Recovered func(ctx context.Context, pipeline change.PipelineID) error
	Runner    Runner
	DDL       DDL
	// Own changes tables of our own; nil: there are none.
	Own    OwnTables
	System SystemRelations
	Clock  env.Clock
	// LogDir is where the log of a pipeline lies.
	LogDir func(change.PipelineID) string
	// Sessions lists the client sessions, for pg_stat_activity; nil: none.
	Sessions func() []SessionInfo
	// Cancel ends the running statement of a session (terminate: the session); false
	// when there is no such session. nil: no such function.
	Cancel func(pid uint32, terminate bool) bool
	// Files are those that COPY may use; nil: none.
	Files copying.Files
	// Reload reads files of settings anew: an error says what is wrong with them, and that all
	// is as it was. nil: there are none.
	Reload func() error
	// Spill makes a file for rows of a SCROLL cursor that memory does not keep; nil: there is
	// none for them.
	Spill func() (scroll.File, error)
	// Settings are values with which all sessions begin, by the settings' names, as SHOW renders
	// them; those of their roles and their own go before.
	Settings map[string]string
	// Log takes what sessions log of their statements; nil: nothing.
	Log *slog.Logger
	// Version is the PostgreSQL version we speak, "15.8"; Database the only database's
	// name.
	Version, Database string
	// Started is when the server began.
	Started time.Time
}

// Snapshots reads lake snapshots. Safe for concurrent use; the result is immutable.
// Implemented by lake.Warehouse.
type Snapshots interface {
	Snapshot(ctx context.Context, ident, metadata string, snapshot int64) (*lake.Snapshot, error)
}

// Pins keeps lake snapshots from expiry. Safe for concurrent use. Implemented by
// iceberg.Warehouse.
type Pins interface {
	// Hold keeps the snapshot's files until release is called; calling it again does
	// nothing.
	Hold(metadata string, snapshot int64) (release func())
}

// LogPins keeps a pipeline's log from being reclaimed, for as long as its owner allows.
// Safe for concurrent use.
type LogPins interface {
	// HoldLog keeps segments at or above from until release is called; calling it again
	// does nothing.
	HoldLog(pipeline change.PipelineID, from segment.Seq) (release func())
}

// Runner runs plans in the engine. Safe for concurrent use.
type Runner interface {
	// Query runs a plan to its first rows. It wraps duckdb.ErrSliceLost when a slice of
	// the plan is gone. The caller closes the result.
	Query(ctx context.Context, plan *duckdb.Plan) (Rows, error)
}

// Rows is the answer to a plan. Used by one goroutine.
type Rows interface {
	// Next returns the next frame, io.EOF after the last. Its data is valid until the
	// next call.
	Next(ctx context.Context) (duckdb.Frame, error)
	Close()
}

// PoolRunner makes a Runner of the engine's pool.
type PoolRunner struct{ Pool *duckdb.Pool }

// Query implements Runner.
func (r PoolRunner) Query(ctx context.Context, plan *duckdb.Plan) (Rows, error) {
	s, err := r.Pool.Query(ctx, plan)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// DDL runs statements of ours. Implemented by ddl.Executor.
type DDL interface {
	Execute(ctx context.Context, s ddl.Statement, session ddl.Session) (*ddl.Result, error)
}

// OwnTables changes tables that have no source but statements here. Safe for concurrent
// use. Errors are *pgerr.Error where a user can act on them, or the context's cause.
type OwnTables interface {
	// Reserve gives the pipeline that such tables are of, and the number of one that is to be
	// made; a view has such a number too.
	Reserve(ctx context.Context) (change.PipelineID, change.TableID, error)
	// Define has fn change the catalog, at once and durably. tables says that it makes, changes
	// or drops tables; the caller holds those that there are.
	Define(ctx context.Context, tables bool, fn func(*catalog.Txn) error) error
	// Hold makes changes durable without a commit: Define completes them. schemas are those of
	// tables that the transaction alters. When it returns an error the changes may still be read.
	Hold(ctx context.Context, c *write.Changes, schemas map[change.TableID]*schema.Table) (HeldRows, error)
	// Settle moves what the log has of a table, which the caller holds, into the lake.
	Settle(ctx context.Context, table change.TableID) error
	// Held are the tables that transactions have for themselves.
	Held() HeldTables
	// Commit makes changes durable and visible. settled is called when their fate is known,
	// which may be after Commit has returned with an error.
	Commit(ctx context.Context, c *write.Changes, settled func()) error
	// Sequences are the sequences.
	Sequences() Sequences
}

// HeldRows are changes that are durable, and that nobody sees.
type HeldRows interface {
	// Complete commits them with what else the catalog's transaction does, in which no group of
	// their tables is under way. It wraps ErrRowsVoid when they are lost, and must be held anew.
	Complete(txn *catalog.Txn) error
	// Release says that they need not be held any more. It is called once.
	Release()
}

// ErrRowsVoid means that changes which were held are held no more, and that nothing of them has
// taken place.
var ErrRowsVoid = errors.New("held rows are void")

// HeldTables are tables that transactions have for themselves. Safe for concurrent use.
type HeldTables interface {
	// Holder returns a holder of no table, for the session pid.
	Holder(pid uint32) TableHolder
	// List lists the tables that sessions hold, and wait for.
	List() []TableLock
	// Graph is who waits for whom, for other locks to join; name is how a table is told of.
	Graph(name func(change.TableID) string) *circle.Graph
}

// TableLock is a table, by face, that a session has for itself or, if it is not granted, waits for.
type TableLock struct {
	Table   change.TableID
	PID     uint32
	Granted bool
}

// TableHolder is a transaction as the only one that changes some tables.
type TableHolder interface {
	// Lock waits until no other transaction changes the table.
	Lock(ctx context.Context, table change.TableID) error
	// Part says that the session goes on without it, while its commit is made.
	Part()
	// Mark is where its locks are, to come back to.
	Mark() int
	// ReleaseTo lets go of the tables that it has got since a mark, and returns which.
	ReleaseTo(mark int) []change.TableID
	// Release lets go of all.
	Release()
}

// SystemRelations are the relations and functions that the server makes itself:
// pg_catalog, information_schema and skippr. Safe for concurrent use. Implemented
// by planner/syscat, joined in cmd.
type SystemRelations interface {
	// Lookup finds a relation; schema and name are exact (lower case).
	Lookup(schema, name string) (SystemRelation, bool)
	// Index finds an index of a system table.
	Index(schema, name string) (oid uint32, ok bool)
	// Rows returns the rows of rel as one Arrow IPC stream whose columns are rel's,
	// in order and by name, as env sees them. The caller owns the bytes.
	Rows(ctx context.Context, rel SystemRelation, env *SystemEnv) ([]byte, error)
	// IndexColumns are what an index of a table is of, as PostgreSQL shows them.
	IndexColumns(env *SystemEnv, t *catalog.Table, x catalog.Index) []string
	// Functions are the functions that only a catalog can answer.
	Functions() []SystemFunction
	// Prelude holds statements (CREATE MACRO) that run once in every engine
	// instance before any query.
	Prelude() []string
}

// SystemRelation describes a system relation.
type SystemRelation struct {
	Schema, Name string
	OID          uint32
	Columns      []SystemColumn
}

// SystemColumn is a column of a system relation.
type SystemColumn struct {
	Name string
	// TypeOID and TypMod are announced; EngineType is what Rows delivers, the
	// engine's name for it. Kept together: name → VARCHAR, "char" → VARCHAR, oid,
	// regproc, xid → BIGINT, int2 → SMALLINT or INTEGER, int2vector → SMALLINT[] or
	// INTEGER[], oidvector → BIGINT[], T[] → list, pg_node_tree → VARCHAR.
	TypeOID    uint32
	TypMod     int32
	EngineType string
	NotNull    bool
}

// SystemFunction is a function of pg_catalog (or skippr) on top of the built-in
// list of planner/pgsql.
type SystemFunction struct {
	Schema, Name string
	// Args are the argument type OIDs: 2276 ("any") takes anything, 2283 anyelement.
	Args   []uint32
	Result uint32
	// Set says that the function returns a set; only usable where the built-in
	// set-returning functions are.
	Set bool
	// Fields are the columns of the rows that a function with Result record returns, of
	// which EngineType is not used: Engine makes a struct of them in this order.
	Fields []SystemColumn
	// Engine is the expression in the engine's dialect. In it
	//	$1 … $9            are the arguments, already cast to Args;
	//	{rel:schema.name}  is a system relation: write "(SELECT x.a FROM {rel:pg_catalog.pg_class} x WHERE x.oid = $1)";
	//	{fact:name}        is a quoted string literal with a fact of the session: user,
	//	                   database, version, pid, search_path (comma list, resolved).
	// Column names of a relation are its SystemColumns' names.
	Engine string
}

// SystemEnv is what system relations may depend on.
type SystemEnv struct {
	// Snapshot is the statement's pin; not closed by Rows.
	Snapshot *catalog.Snapshot
	// Now is the statement's time, Started the server's start.
	Now, Started time.Time
	// User, Database and Version ("15.8") as the client sees them.
	User, Database, Version string
	PID                     uint32
	// Rights are the roles, and what they may do; Role is the one that asks, by its id.
	Rights *right.Book
	Role   uint32
	// Shown is the newest value that a sequence has given; nil: its row says it.
	Shown func(*sequence.Sequence) (last int64, called bool)
	// SearchPath is resolved: pg_catalog first when implicit, only existing schemas.
	SearchPath []string
	// Settings are the session's, sorted by name.
	Settings []setting.Shown
	// Sessions lists all client sessions.
	Sessions func() []SessionInfo
	// Prepared and Cursors are the session's own.
	Prepared []PreparedInfo
	Cursors  []CursorInfo
	// Locks lists the advisory locks of all sessions, TableLocks those on tables of our own.
	Locks      func() []advisory.Info
	TableLocks func() []TableLock
	// Copies lists the COPYs of all sessions.
	Copies func() []copying.Info
}

// SessionInfo is a session as pg_stat_activity shows it.
type SessionInfo struct {
	PID                         uint32
	User, Database, Application string
	RemoteAddr                  string
	StartedAt, TxStartedAt      time.Time
	QueryStartedAt, ChangedAt   time.Time
	// State is "active", "idle", "idle in transaction", "idle in transaction
	// (aborted)".
	State, Query string
	// Wait is what it waits for, zero for nothing.
	Wait waits.Event
	// Encryption is that of its connection, nil for none.
	Encryption *pgwire.Encryption
}

// PreparedInfo is a row of pg_prepared_statements.
type PreparedInfo struct {
	Name, SQL string
	At        time.Time
	Params    []uint32
	FromSQL   bool
}

// CursorInfo is a row of pg_cursors.
type CursorInfo struct {
	Name, SQL    string
	Hold, Scroll bool
	Binary       bool
	At           time.Time
}

// Object ids of catalog objects. User tables start above PostgreSQL's first
// normal oid; a table's other objects have their own ranges, so that every oid is
// a positive int4 and permanent.
const (
	tableOIDBase = 20_000
	indexOIDBase = 1 << 29
	typeOIDBase  = 1 << 30
)

// TableOID is the pg_class oid of a table.
func TableOID(id change.TableID) uint32 { return tableOIDBase + uint32(id) }

// TableIDOf is the inverse of TableOID; false for an oid of something else.
func TableIDOf(oid uint32) (change.TableID, bool) {
	if oid <= tableOIDBase || oid >= indexOIDBase {
		return 0, false
	}
	return change.TableID(oid - tableOIDBase), true
}

// IndexOID is the pg_class oid of the primary key index of a table.
func IndexOID(id change.TableID) uint32 { return indexOIDBase + uint32(id) }

// TypeOID is the pg_type oid of the row type of a table.
func TypeOID(id change.TableID) uint32 { return typeOIDBase + uint32(id) }

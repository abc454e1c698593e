package planner

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/advisory"
	"github.com/skipprd/skipprd/planner/copying"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/wal/change"
)

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

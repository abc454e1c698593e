package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/ingest/compute"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// Source is one external system as one pipeline reads it. Methods but Ack and
// Compare are called by one goroutine at a time, except that Backfill's methods run
// beside Stream.
type Source interface {
	// Discover lists the tables that the selection names, with their columns.
	// A table that cannot be taken in is listed with Unsupported set.
	Discover(ctx context.Context, sel catalog.TableSelection) ([]SourceTable, error)
	// Setup makes what the source needs to stream the tables (publication, slot), or
	// finds what is there. It is idempotent: after a crash at any point it is called
	// again with the state it returned last (or nil). created says that the stream
	// begins now, at start; otherwise it resumes where it was acknowledged.
	// It fails, and never starts "from now", when state names a slot that is gone.
	Setup(ctx context.Context, state []byte, tables []SourceTable) (SetupResult, error)
	// Backfill opens a consistent reading session. After Setup with Created it reads
	// the very snapshot at which the stream begins; else a later one.
	Backfill(ctx context.Context) (Backfill, error)
	// Stream delivers changes committed after from, in commit order, until ctx ends or
	// an error. tables are those to deliver, by source OID, with their schema versions; two
	// may have one OID, and each gets its changes as if it were alone; the source stops a
	// single table through sink.StopTable. from is never lower than what was acknowledged;
	// it may be higher while a table is stopped.
	Stream(ctx context.Context, from change.Position, tables []StreamTable, sink Sink) error
	// Ack tells the source that everything up to p is durable here. It never
	// acknowledges beyond p. Safe for concurrent use; takes effect soon after.
	Ack(p change.Position)
	// Compare orders two positions; empty is lowest. Pure.
	Compare(a, b change.Position) int
	// Status reports what the source keeps for us; called from any goroutine.
	Status(ctx context.Context) (SourceStatus, error)
	// Teardown removes what Setup made; what is gone already is no error. left says in
	// sentences what could not be removed and how to do so by hand. An error says that
	// a new Setup would find the rest in its way; trying again may help.
	Teardown(ctx context.Context, state []byte) (left []string, err error)
	// Close ends all connections. Safe to call twice.
	Close() error
}

// SourceTable is a table as the source describes it.
type SourceTable struct {
	Schema, Name string
	OID          uint32
	Columns      []SourceColumn
	// Key are names of the row key's columns, in key order; empty: append only, unless
	// WholeRow.
	Key []string
	// WholeRow says of a table without a key that deletes carry whole rows; see
	// schema.Table.WholeRow. An update of it travels as Delete and Insert.
	WholeRow        bool
	EstimatedRows   int64 // -1 unknown
	EstimatedBytes  int64
	ReplicaIdentity string // default, full, index, nothing
	// Filter is the condition of the rows that are taken in, in the source's SQL; empty:
	// all. Changes of a row that begins or ceases to satisfy it arrive as insert or delete.
	Filter string
	// Unsupported says why the table cannot be taken in, "" when it can; Hint what to
	// do about it, and Fix the SQL in it that helps at the source, "" when there is none.
	Unsupported, Hint, Fix string
	// Parts are the partitions of a partitioned table, at any depth, ascending; nil for
	// any other.
	Parts []uint32
	// PartMarks are those of Parts; see watch.Part.
	PartMarks []uint64
	// Forms is how the source writes values of the columns, nil when it does not say.
	Forms watch.Forms
	// Types are the types of users that its columns are of.
	Types []usertype.Found
	// Files are its files there as they were known last, nil when they are not.
	Files *watch.Files
	// Numbers are those of the columns that the selection names.
	Numbers map[string]int16
	// Notes are sentences on what will be missing though the table is taken in: a
	// generated column that the source does not send, a key that there is none.
	Notes []string
}

// SourceColumn is a column as the source describes it.
type SourceColumn struct {
	Name     string
	OID      uint32
	TypMod   int32
	TypeName string
	NotNull  bool
	AttNum   int16
	Type     schema.Type // the lake type it becomes
	Note     string      // for DISCOVER: "exact text", …
	// Initial is what rows that are older than the column have in it, in the text of
	// schema.FormatInitial; nil: null. It counts when the column is added by Evolve.
	Initial *string
	// Computed is how the source computes the column from others; nil: it does not.
	Computed *schema.Computed
}

// SetupResult is what Setup found or made.
type SetupResult struct {
	State   []byte // to be made durable before anything is streamed or acknowledged
	Created bool
	Start   change.Position // where the stream begins when Created
	// Token is an order token lower than that of every change streamed after Start.
	Token int64
	// Warnings are sentences for the user (settings that will hurt).
	Warnings []string
	// Refused are tables, by OID, whose changes the source will not send, and what helps.
	Refused map[uint32]*TableError
	// Published is how the source publishes tables, by OID, from a moment on that is not later
	// than the first copy after it: what TableWatcher is to compare with. Nil when it does not
	// say.
	Published map[uint32]string
}

// Backfill reads initial copies at one moment of the source.
type Backfill interface {
	// Horizon is the position that the stream must pass before what this session
	// reads is consistent with it.
	Horizon() change.Position
	// Exact says that rows read are exactly those at the stream's start.
	Exact() bool
	// Describe is how tables look at the session's moment, by their numbers at the source.
	// What is selected of each is under its number; that its row filter can be had is not
	// asked again. Those that are not there, or cannot be taken in, are left out. It is
	// called before the other methods.
	Describe(ctx context.Context, wanted map[uint32]catalog.SelectedTable, outOfRangeText bool) (map[uint32]SourceTable, error)
	// Plan cuts a table into chunks: opaque strings, readable by any later session.
	// An error that wraps *TableError, here and from Read, stops that table alone.
	Plan(ctx context.Context, t SourceTable) (chunks []string, err error)
	// Read delivers the rows of one chunk, in batches of at most a few MiB, all
	// change.Insert with token. Several Reads may run at once (at most Parallel).
	// emit takes the batch over, error or not, sets its Table, and may block.
	Read(ctx context.Context, t SourceTable, s *schema.Table, chunk string, token int64, emit func(*change.Batch) error) error
	// Parallel is how many Reads may run at once.
	Parallel() int
	Close() error
}

// Fetcher is a Backfill that reads rows by key, beside its Reads. It is found by a type
// assertion.
type Fetcher interface {
	// Fetch reads rows of t as they are at the session's moment, the key's columns and the
	// wanted fields as in fill.Found. Rows that are not there, or cannot be read as q wants
	// them because the table has changed since, are left out. Close does not run meanwhile.
	Fetch(ctx context.Context, t SourceTable, q *fill.Query, found fill.Found) error
}

// Computer is a Source that computes columns which it does not send (schema.Computed).
type Computer interface {
	// Compute gives the values of columns of the table with an OID as compute.Source does.
	// It may be called beside Stream, and before it. A *TableError says that no row can be
	// computed any more.
	Compute(ctx context.Context, oid uint32, s *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error)
}

// lettersComputer computes what a source does not send of rows that were dead letters.
func lettersComputer(source Source) func(ctx context.Context, t *catalog.Table, b *change.Batch) error {
	return func(ctx context.Context, t *catalog.Table, b *change.Batch) error {
		return computeLetters(ctx, source, t, b)
	}
}

func computeLetters(ctx context.Context, source Source, t *catalog.Table, b *change.Batch) error {
	c, ok := source.(Computer)
	if !ok {
		return fmt.Errorf("%w: its source computes nothing", ErrBadSource)
	}
	err := compute.One(ctx, computerOf{c, t.SourceOID}, t.Current, b)
	var refused *compute.RefusedError
	var problem *TableError
	switch {
	case errors.As(err, &refused):
		for _, why := range refused.Rows {
			return &deadletter.RefusedError{Reason: fmt.Sprintf("column %s %s", quote.Name(why.Column), why.Reason)}
		}
	case errors.As(err, &problem):
		return &deadletter.RefusedError{Reason: problem.Reason}
	case err != nil:
		return sourceError("compute columns", err)
	}
	return nil
}

// computerOf computes columns of one table.
type computerOf struct {
	from Computer
	oid  uint32
}

// Compute implements compute.Source.
func (c computerOf) Compute(ctx context.Context, _ change.TableID, s *schema.Table, rec arrow.RecordBatch) ([]arrow.Array, error) {
	return c.from.Compute(ctx, c.oid, s, rec)
}

// StreamTable is a table that a stream delivers.
type StreamTable struct {
	ID     change.TableID
	Source SourceTable
	Schema *schema.Table
	// Versions are those before, as far as they are known.
	Versions []*schema.Table
	// VoidVersion is the greatest schema version that the log has and the table has not.
	VoidVersion uint32
	// After: changes of transactions committed at or before this position are already
	// durable for this table and are skipped. Empty: none.
	After change.Position
	// Uncomputed are changes with computed values that cannot be taken in; see compute.Known.
	Uncomputed map[compute.RowID]compute.Refusal
	// Copied is the latest moment that rows of the initial copy are of: they may be newer
	// than a change before it.
	Copied change.Position
}

// Sink takes what a stream delivers. Calls come from the streaming goroutine in
// source order. An error ends the stream.
type Sink interface {
	// Begin opens a transaction.
	Begin(token int64, committedAt time.Time) error
	// Builder returns the builder of a table's open batch, to which the source appends
	// rows of the open transaction.
	Builder(t change.TableID) (*change.Builder, error)
	// Truncate records a TRUNCATE at this point of the open transaction.
	Truncate(t change.TableID) error
	// Evolve says that the table has other columns or another key from this point of the
	// open transaction on: rows added before it are of the old version, rows added after
	// it of the one returned, whose fields are in the order of c.Columns. The source asks
	// for a new Builder afterwards. A change that leaves everything as it is returns the
	// version in force. The new version becomes durable with the transaction; until then
	// a stream that begins anew delivers the old one, and must bring the same change again
	// (S1). A change under which old rows cannot be read, or found by their key, stops the
	// table as StopTable does and gives ErrTableStopped.
	Evolve(t change.TableID, c SchemaChange) (*schema.Table, error)
	// Commit closes the transaction: the source resumes after at.
	Commit(at change.Position) error
	// Abort gives up the open transaction: nothing of it ever becomes visible. The
	// stream goes on with the next Begin; the position stays that of the last Commit.
	// A stream that ends inside a transaction gives it up, too.
	//
	// A transaction of any size may be open: a large one goes into the log in parts
	// before it ends, which become visible together with its Commit.
	Abort() error
	// Idle says that the source has sent everything up to at and nothing is pending.
	Idle(at change.Position) error
	// StopTable stops one table at the open transaction: its changes from this
	// transaction on are discarded here and stay at the source, also those already
	// added in it. The source asks for no Builder of the table afterwards (it gets
	// ErrTableStopped). Outside a transaction it stops after the last commit. why is kept
	// as it is; its Anew counts for nothing.
	StopTable(t change.TableID, why *TableError) error
}

// Holder is a Sink that can keep an open transaction, durable and not visible, for somebody else
// to commit: the catalog, with definitions that belong to it (catalog.Txn.CompleteHeld).
type Holder interface {
	// Adopt has rows of a table be of a schema version from here on, which is not the stream's
	// to make durable. A stream that gives the transaction up adopts the one of before again.
	Adopt(t change.TableID, s *schema.Table) error
	// Hold makes durable all that the open transaction has, as so many parts of the transaction
	// id. It stays open, and gets nothing more: it ends with the stream, or with Abort.
	Hold() (id string, parts int, err error)
}

// SchemaChange is how a table of a stream looks from some point on.
type SchemaChange struct {
	// Schema and Name are the table's name at the source now; both empty: unchanged. Its
	// name here stays.
	Schema, Name string
	// Columns are all columns, in order. One that has the number of a column of before is
	// that column, whatever its name; without numbers, one that has its name. A number is
	// never given to another column.
	Columns []SourceColumn
	// Key are names of the row key's columns, in key order.
	Key []string
}

// TableWatcher is a Source that tells what has become of tables beside the stream.
type TableWatcher interface {
	// Look says which tables of a selection the source has, and which of those that are
	// here. last is the Mark of the look before: when nothing can have
	// changed since, the look has that mark and nothing else. It is cheap then. Calls as
	// those of Status, one at a time.
	Look(ctx context.Context, sel catalog.TableSelection, here []watch.Here, last string) (Look, error)
}

// Look is what a TableWatcher saw.
type Look struct {
	Mark  string
	Found []SourceTable
	Known map[uint32]watch.There
	// Types are the types of users that columns of the tables that are here are of.
	Types []usertype.Found
	// Files are those of the tables that are here, by their numbers, also when nothing else
	// has changed.
	Files map[uint32]watch.Files
	// Counters are those of the tables that are here without a key, likewise.
	Counters map[uint32]watch.Counters
	// Barred are tables of Found, by their numbers, that the source could send updates and
	// deletes of, and does not.
	Barred map[uint32]*watch.Barred
	// Published is how tables that are here are published, by their numbers, where nothing was
	// left out since.
	Published map[uint32]string
}

// Starter is a Source that tells how tables are before they are copied, so that what becomes
// of them meanwhile is found out later.
type Starter interface {
	// AtStart tells of tables, by their numbers, as they are now.
	AtStart(ctx context.Context, oids []uint32) (Start, error)
}

// Start is how tables are before they are copied, by their numbers.
type Start struct {
	// Counters count updates and deletes, also those that the source does not send.
	Counters map[uint32]watch.Counters
	Files    map[uint32]watch.Files
}

// Validator is a Source that can say what is missing for replication, all at once.
type Validator interface {
	Validate(ctx context.Context) ([]Finding, error)
}

// Watcher is a Source that can say what its system keeps for a pipeline that does not
// run. state is what Setup returned. It changes nothing there.
type Watcher interface {
	Watch(ctx context.Context, state []byte) (SourceStatus, error)
}

// Pacer is a Source that says itself how close its groups may follow each other; see
// Config.GroupInterval.
type Pacer interface {
	GroupInterval() time.Duration
}

// Rejecter is a Source that can give up the transaction that it is streaming, for which the
// log has no room: nothing of it takes place, and the stream begins anew behind it.
type Rejecter interface {
	Reject(why error)
}

// Finding is one result of Validate.
type Finding struct {
	Check  string
	OK     bool
	Detail string
	Fix    string // SQL that mends it
}

// SourceStatus is what a source says of itself.
type SourceStatus struct {
	Current   change.Position // newest position at the source
	Confirmed change.Position // what it has as acknowledged
	// LagBytes from Confirmed to Current; RetainedBytes the source keeps for us.
	LagBytes, RetainedBytes int64
	SlotState               string // wal_status of the slot
	// WrittenBytes is how much the source has ever written to its log, 0 unknown: what it
	// grows by is what the source keeps more of for us while we do not read.
	WrittenBytes int64
	// Limited says that the source keeps only so much: SafeBytes is what it may still
	// write before it may lose our place.
	Limited   bool
	SafeBytes int64
	// InactiveSince is when somebody last read for us, zero when somebody does or that is
	// not known.
	InactiveSince time.Time
	// Renew says that the session must begin anew: the source is not what it was when the
	// session began, a standby that was promoted.
	Renew bool
	// Warning is a clause on what endangers our place, "" for nothing.
	Warning string
	// Notes are of tables, by their number at the source, that go on but should be
	// looked at.
	Notes map[uint32]TableNote
}

// TableNote says what is not right with a table that goes on.
type TableNote struct {
	Reason string // a clause
	Hint   string // a sentence naming what helps
}

package ddl

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/catalog"
)

// Controller makes statements happen: it reaches sources and runs pipelines. Errors
// that the user caused or can mend are *Problem; all calls end when ctx does.
// Implemented by the ingest supervisor, joined in cmd.
type Controller interface {
	// Discover connects and lists the tables that sel names.
	Discover(ctx context.Context, c *catalog.Connection, sel catalog.TableSelection) ([]Discovered, error)
	// Validate connects and returns everything that is missing for replication by p, which
	// need not exist; nil: by the connection's pipelines, or one of its name for all tables.
	Validate(ctx context.Context, c *catalog.Connection, p *catalog.Pipeline) ([]Finding, error)
	// Start begins or resumes the pipeline's work, which its catalog row describes; it
	// returns once the work is under way, not when it is done.
	Start(ctx context.Context, pipeline string) error
	// Stop ends the pipeline's work and returns when nothing of it runs.
	Stop(ctx context.Context, pipeline string) error
	// Reset forgets all data of the pipeline and begins again with the initial copy.
	Reset(ctx context.Context, pipeline string) error
	// Drop stops the pipeline and removes its slot, publication, log, tables (unless
	// keepData) and catalog rows. left says in sentences what could not be removed.
	Drop(ctx context.Context, pipeline string, keepData bool) (left []string, err error)
	// AddTables takes tables into a pipeline; nil takes in what its selection names
	// and it does not have yet (REFRESH). It returns the names taken in.
	AddTables(ctx context.Context, pipeline string, tables []catalog.SelectedTable) ([]string, error)
	// DropTable takes a table out of a pipeline, with its data.
	DropTable(ctx context.Context, pipeline string, t catalog.SelectedTable) error
	// ResumeTable lets a stopped table go on from where it stopped.
	ResumeTable(ctx context.Context, pipeline string, t catalog.SelectedTable) error
	// ResyncTable copies a table anew.
	ResyncTable(ctx context.Context, pipeline string, t catalog.SelectedTable) error
	// Compact moves all live changes of the pipeline into the lake.
	Compact(ctx context.Context, pipeline string) error
	// Sync runs until the pipeline has caught up with the moment of the call, or for
	// d, and tells progress about once a second.
	Sync(ctx context.Context, pipeline string, d time.Duration, progress func(string)) ([]Synced, error)
	// Verify compares the pipeline's tables with its source at one position, and tells
	// progress at most about once a second.
	Verify(ctx context.Context, r VerifyRequest, progress func(string)) ([]VerifyLine, error)
	// Status is the live state of all tables of a pipeline.
	Status(pipeline string) (PipelineStatus, bool)
}

// Discovered is a column found by Discover; a table without columns has one row.
type Discovered struct {
	Schema, Table string
	Column        string
	SourceType    string
	LakeType      string
	NotNull       bool
	Key           bool
	EstimatedRows int64 // -1 unknown
	// EstimatedBytes is the table's size at the source.
	EstimatedBytes int64
	Policy         string
	Unsupported    string // reason, "" when the table is taken in
	Hint           string // what helps, for an unsupported table
	Missing        bool   // named, but not there
	// Notes are sentences on what will be left out of the table.
	Notes       []string
	TargetTable string
}

// Finding is one result of VALIDATE CONNECTION.
type Finding struct {
	Check  string
	OK     bool
	Detail string
	Fix    string // SQL that mends it
}

// Synced is one table's result of SYNC.
type Synced struct {
	Table       string
	State       string
	Rows, Bytes int64
	LagSeconds  float64
}

// PipelineStatus is what a running pipeline knows of itself.
type PipelineStatus struct {
	State, Reason                 string
	SourcePosition, AckedPosition string
	LagBytes, RetainedBytes       int64
	LagSeconds                    float64 // -1 when not known
	Position, LakePosition        string
	SlotState                     string
	// ConfirmedPosition is what the source has as acknowledged. RetainedBytesPerSecond is
	// how fast what it keeps for the pipeline grows, WrittenBytesPerSecond how fast it
	// writes, over the last minutes.
	ConfirmedPosition                             string
	RetainedBytesPerSecond, WrittenBytesPerSecond float64
	// Limited says that the source keeps only so much: it may lose the pipeline's place
	// after SafeBytes more. SecondsToLoss is in how long, -1 for never.
	Limited                       bool
	SafeBytes                     int64
	SecondsToLoss                 float64
	InactiveSince                 time.Time // when the source was last read; zero: it is
	RowsPerSecond, BytesPerSecond float64
	Rows, Bytes, Transactions     int64
	LastCommitAt                  time.Time
	// LogCommits counts the log's durable writes since it was opened. LogEpoch and LogHost
	// say who writes a log on an object store; of one on disk they are empty.
	LogCommits int64
	LogEpoch   uint32
	LogHost    string
	Tables     []TableStatus
	// Backfill is that of all tables that are being copied.
	Backfill Backfill
}

// Backfill is how far an initial copy is.
type Backfill struct {
	Percent                float64 // 0 to 100
	Rows, Estimated, Bytes int64   // Estimated is -1 when unknown
	RowsPerSecond          float64
	SecondsLeft            float64 // 0 when done, -1 when unknown
	StartedAt              time.Time
}

// TableStatus is one table of PipelineStatus.
type TableStatus struct {
	Schema, Name              string
	State, Reason, Hint       string
	Backfill                  Backfill
	Inserts, Updates, Deletes int64
	LagBytes                  int64
	LagSeconds                float64 // -1 when not known
	LastCommitAt              time.Time
}

// Waiting is the error of a Start that will be done without anybody's help, when what
// the source waits for has ended.
type Waiting struct {
	Reason string // a clause
}

// Error renders the reason.
func (w *Waiting) Error() string { return "pipeline starts later: " + w.Reason }

// Problem is an error that a user can act on.
type Problem struct {
	Kind    ProblemKind
	Message string // lower case, no period
	Detail  string
	Hint    string
	Cause   error
}

// ProblemKind says what sort of trouble it is.
type ProblemKind uint8

// The kinds.
const (
	Unreachable  ProblemKind = iota + 1 // the source does not answer or refuses us
	NotPrepared                         // the source lacks a setting or a grant
	WrongState                          // not now
	NoSuchTable                         // a named table is not there
	NotSupported                        // a table or value that cannot be taken in
	Busy                                // somebody else uses it
	Ambiguous                           // a name may be several tables
)

// Error implements error.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Cause }

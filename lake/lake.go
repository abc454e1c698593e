package lake

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// Ident names a lake table: its namespace and its name in it.
type Ident struct {
	Namespace, Name string
}

// String renders "namespace.name".
func (i Ident) String() string { return i.Namespace + "." + i.Name }

// Spec says which lake table is meant and what it must look like.
type Spec struct {
	Ident Ident
	// Table tells this table from an earlier one of the same name, whose files then
	// go when this one is made.
	Table change.TableID
	// Schema of the next commit.
	Schema *schema.Table
}

// Warehouse holds lake tables. Safe for concurrent use.
type Warehouse interface {
	Recoverer
	// Table opens the table. One of another catalog table that has the name goes; one
	// of this catalog table that has another name is renamed; else it is made, empty.
	// The result is for one goroutine at a time, and there is one committer per table.
	Table(ctx context.Context, spec Spec) (Table, error)
	// Snapshot returns the files of a snapshot. ident is for messages; metadata and
	// snapshot, as Snapshot.Metadata and ID, decide. Wraps ErrNoSnapshot when it has
	// been expired. The result is immutable and shared.
	Snapshot(ctx context.Context, ident, metadata string, snapshot int64) (*Snapshot, error)
	// Drop removes the lake table that belongs to a catalog table. Its files go after
	// the grace period. Dropping one that is not there is no error.
	Drop(ctx context.Context, table change.TableID) error
}

// Table is one lake table.
type Table interface {
	History
	Fencer
	// NewWriter begins data files with rows of the schema.
	NewWriter(s *schema.Table) (Writer, error)
	// WriteDeletes writes one position delete file; positions must be sorted by
	// (file, position) and free of duplicates. The file is durable on return, and
	// belongs to no snapshot until Commit.
	WriteDeletes(ctx context.Context, positions []Position) (*DeleteFile, error)
	// Commit makes a new snapshot, or returns the one that c.CompactionID already
	// made. When an error comes back the outcome was looked up: nothing has happened,
	// because the table has moved on (ErrConflict), belongs to a later writer (ErrFenced)
	// or for another reason, and the caller may Abort; unless it wraps ErrOutcomeUnknown.
	Commit(ctx context.Context, c Commit) (*Snapshot, error)
	// Abort removes files that were written and will not be committed.
	Abort(ctx context.Context, files []DataFile, deletes []DeleteFile)
	// Maintain rewrites small files and those with many deletes, which may make a new
	// head with the same rows; expires snapshots; and removes files that nothing names
	// any more. Wraps ErrFenced as Commit does.
	Maintain(ctx context.Context, p Retention) error
}

// History is what a table's retained snapshots say of the commits that made them.
type History interface {
	// Head is the current snapshot; one with ID 0 and no files before the first
	// commit. Immutable.
	Head() *Snapshot
	// Find returns the retained snapshot that the compaction made, nil if none did.
	// It decides what a commit of unknown outcome did.
	Find(ctx context.Context, compactionID string) (*Snapshot, error)
	// Commits are the compactions that the head's retained snapshots name, oldest first:
	// of all generations, and also those that another process made.
	Commits(ctx context.Context) ([]Committed, error)
}

// Committed is a compaction that a retained snapshot names.
type Committed struct {
	CompactionID string
	Generation   uint32
	Snapshot     int64
	// Slices in log order.
	Slices []segment.SliceRef
}

// Fencer keeps earlier writers of a table out.
type Fencer interface {
	// Fence refuses commits of epochs below epoch from then on, durably: one that is
	// under way has happened before Fence returns, or never will (F1). A commit of a
	// later epoch does so too. The fence of a new table is 0, which refuses nobody. Again with the same epoch it does nothing;
	// with a lower one than the table's it wraps ErrFenced.
	Fence(ctx context.Context, epoch segment.Epoch) error
}

// Writer writes rows into data files of a bounded size. Not safe for concurrent use.
type Writer interface {
	// Write appends rows: the columns of the writer's schema in order, then the
	// order token (int64). It keeps no reference.
	Write(ctx context.Context, rows arrow.RecordBatch) error
	// Close finishes the files: durable, in the order of the rows, and in no
	// snapshot until Commit. On an error it removes what it wrote.
	Close(ctx context.Context) ([]DataFile, error)
	// Discard removes what was written; for use instead of Close.
	Discard()
}

// Position is one row of a data file.
type Position struct {
	File string
	Row  int64
}

// Bounds are the least and the greatest value of a column in a file. For strings
// the true values may lie inside.
type Bounds struct {
	// IsInt says that MinInt and MaxInt hold: bool, integers, date, time, timestamps.
	// Else MinBytes and MaxBytes do, compared bytewise: string, binary, uuid.
	IsInt              bool
	MinInt, MaxInt     int64
	MinBytes, MaxBytes []byte
}

// DataFile is a data file of a snapshot.
type DataFile struct {
	// Path is a plain absolute path.
	Path  string
	Rows  int64
	Bytes int64
	// HasDeletes is false when no delete file of the snapshot can name the file.
	HasDeletes bool
	// Bounds by field id, for the columns that have them.
	Bounds map[int32]Bounds
}

// DeleteFile is a position delete file of a snapshot.
type DeleteFile struct {
	Path  string
	Rows  int64
	Bytes int64
	// MinFile and MaxFile bound the data files it names.
	MinFile, MaxFile string
}

// Snapshot is an immutable state of a table.
type Snapshot struct {
	// ID is 0 for the table before its first commit.
	ID int64
	// Metadata is the location of a metadata file that has the snapshot.
	Metadata string
	// Files in the order in which they came in.
	Files           []DataFile
	PositionDeletes []DeleteFile
	// Rows is those of Files less the deleted positions.
	Rows  int64
	Bytes int64
	// MaxToken is the greatest order token of any change committed since all rows were
	// last replaced.
	MaxToken int64
	// Properties is the snapshot's summary.
	Properties map[string]string
}

// The snapshot summary's keys of ours. The last four of the table's own properties
// have them too, since summaries go with expiry.
const (
	KeyPipeline       = "skippr.pipeline"
	KeyCompactionID   = "skippr.compaction-id"
	KeySlices         = "skippr.wal-slices"
	KeySeq            = "skippr.wal-seq"
	KeySourcePosition = "skippr.source-position"
	KeyGeneration     = "skippr.generation"
	KeyMaxToken       = "skippr.max-token"
	KeyTableID        = "skippr.table-id"
	// KeyFence is a property of the table alone; see Fencer.
	KeyFence = "skippr.fence"
)

// Commit is what one compaction brings in.
type Commit struct {
	// Base is the id of the snapshot the commit was made against; ErrConflict when
	// the table has moved on.
	Base         int64
	CompactionID string
	Pipeline     string
	Generation   uint32
	// Epoch of the log whose slices they are; 0 for a log on a disk. See Fencer.
	Epoch segment.Epoch
	// Slices are the names of what goes in.
	Slices         []segment.SliceRef
	SourcePosition change.Position
	// MaxToken is the greatest order token among the slices, deletes included.
	MaxToken int64
	// Schema in force; nil leaves the table's.
	Schema *schema.Table
	// AddFiles and AddDeletes are of this table's Writer and WriteDeletes. Both may
	// be empty: the snapshot then says only that the slices are in.
	AddFiles   []DataFile
	AddDeletes []DeleteFile
	// ReplaceAll takes every file of the base out in the same step.
	ReplaceAll bool
}

// Retention says what Maintain keeps.
type Retention struct {
	// Snapshots is how many of the newest are kept, at least 2.
	Snapshots int
	// Protect are ids that are kept however old.
	Protect []int64
	// Grace is how long a file stays after the last snapshot that names it has gone,
	// for queries that still read it.
	Grace time.Duration
	// Epoch as in Commit.
	Epoch segment.Epoch
}

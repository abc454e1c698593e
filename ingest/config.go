package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/fill"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Config tunes the supervisor. The zero value of a field means its default.
type Config struct {
	// DataDir holds the logs, one directory per pipeline: DataDir/wal/<id>.
	DataDir string
	// GroupBytes closes a group of stream changes early, and bounds what a stream
	// holds in memory beside one transaction (BUFFER_THRESHOLD_BYTES). Default 8 MiB.
	GroupBytes int64
	// PartBytes is how much of one transaction of the source is held in memory: a larger
	// one goes into the log in parts of this size, which become visible together. About
	// ten times as much is needed while parts are built, encoded and written. Default
	// twice GroupBytes, at most 64 MiB.
	PartBytes int64
	// Freshness is how long a committed transaction may wait for company before its
	// group is appended (BUFFER_THRESHOLD_SECONDS); the pipeline option "freshness"
	// overrides it. Default 0: as soon as the previous append has returned.
	Freshness time.Duration
	// GroupInterval is the least time between two groups of a stream, unless one is
	// full: a lone transaction is appended at once, a busy stream in few large slices,
	// which cost readers less. It bounds what it adds to latency. Default 40 ms.
	GroupInterval time.Duration
	// IdleInterval is the least time between two groups that only move the position
	// of an idle stream; where the source writes much for others it is idleSoon. Default 5 s.
	IdleInterval time.Duration
	// LookInterval is how often a source is asked what has become of its tables, beside
	// the stream. Default 2 s.
	LookInterval time.Duration
	// CopyAgain is how long a table rests after its copy was given up, twice as long each time
	// up to 32 times, before another one is begun that nobody has asked for. Default 10 s.
	CopyAgain time.Duration
	// BackoffMin and BackoffMax bound the wait after an error of the source, which
	// doubles each time, with jitter. Defaults 200 ms and 30 s.
	BackoffMin, BackoffMax time.Duration
	// RestInterval is how often the source of a pipeline that rests is asked what it keeps
	// for it. Default 0: never.
	RestInterval time.Duration
	// StopWait is how long the end of Run waits for a group that is being appended before
	// it closes the log over it: an object store may be away for long. Default 10 s.
	StopWait time.Duration
	// SegmentBytes and QuotaBytes go to the log of each pipeline. Zero: its defaults.
	SegmentBytes, QuotaBytes int64
}

// groupBytesMax is the most that a group may have before the last row: with RowBytesMax it
// stays, encoded, below what segment.Encoder takes, 512 MiB.
const groupBytesMax = 64 << 20

const (
	// idleBytes is how much of a source's log may pass before an idle position becomes durable
	// sooner: a server drops what it keeps for a pipeline only when that is acknowledged.
	idleBytes = 1 << 20
	// idleSoon is the least time between two groups of an idle stream whose source is busy
	// with other things. Each is some hundred bytes, and one wait for the disk.
	idleSoon = time.Second
)

// withDefaults returns a filled copy.
func (c Config) withDefaults() Config {
	if c.GroupBytes == 0 {
		c.GroupBytes = 8 << 20
	}
	if c.PartBytes == 0 {
		c.PartBytes = min(2*c.GroupBytes, groupBytesMax)
	}
	if c.GroupInterval == 0 {
		c.GroupInterval = 40 * time.Millisecond
	}
	if c.IdleInterval == 0 {
		c.IdleInterval = 5 * time.Second
	}
	if c.LookInterval == 0 {
		c.LookInterval = 2 * time.Second
	}
	if c.CopyAgain == 0 {
		c.CopyAgain = 10 * time.Second
	}
	if c.StopWait == 0 {
		c.StopWait = 10 * time.Second
	}
	if c.BackoffMin == 0 {
		c.BackoffMin = 200 * time.Millisecond
	}
	if c.BackoffMax == 0 {
		c.BackoffMax = 30 * time.Second
	}
	return c
}

// Validate reports everything that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("ingest: data directory is empty"))
	}
	if c.GroupBytes < 0 || c.GroupBytes > groupBytesMax {
		errs = append(errs, fmt.Errorf("ingest: group bytes %d are outside 0..%d", c.GroupBytes, groupBytesMax))
	}
	if c.PartBytes < 0 || c.PartBytes > groupBytesMax {
		errs = append(errs, fmt.Errorf("ingest: part bytes %d are outside 0..%d", c.PartBytes, groupBytesMax))
	}
	if c.Freshness < 0 || c.Freshness > time.Hour {
		errs = append(errs, fmt.Errorf("ingest: freshness %v is outside 0..1 h", c.Freshness))
	}
	if c.BackoffMin < 0 || c.BackoffMax < 0 || c.IdleInterval < 0 || c.GroupInterval < 0 || c.LookInterval < 0 || c.CopyAgain < 0 {
		errs = append(errs, errors.New("ingest: an interval is negative"))
	}
	return errors.Join(errs...)
}

// LogDir is where the log of a pipeline lives.
func (c Config) LogDir(p change.PipelineID) string {
	return wal.PipelineDir(c.DataDir, p)
}

// scratchDir is where sources keep files.
func (c Config) scratchDir() string { return filepath.Join(c.DataDir, "spill") }

// Deps are the supervisor's collaborators.
type Deps struct {
	Catalog *catalog.Catalog
	// Sources makes sources, by connection kind.
	Sources map[string]SourceFactory
	// Rows finds rows by key, for values that a source leaves out of an update. nil: a table
	// stops where one cannot be had from the same group.
	Rows fill.Lookup
	// Lake drops lake tables for RESET, RESYNC and DROP.
	Lake       LakeAdmin
	Clock      env.Clock
	IDs        env.IDs
	Log        *slog.Logger
	Failpoints env.Failpoints
	// Tasks runs the parts of pipelines; nil: goroutines.
	Tasks env.Tasks
	// ScratchFS holds the files that sources keep while they live, in DataDir/spill; nil
	// means the disk, or none when OpenLog is given.
	ScratchFS wal.FS
	// session is what the source of a running pipeline gets besides.
	session SourceDeps
	// OpenLog opens a pipeline's log; nil means wal.Open. Tests replace it.
	OpenLog func(ctx context.Context, p change.PipelineID) (Log, error)
	// RemoveLog deletes a dropped pipeline's log; nil means the files in Config.LogDir,
	// or nothing when OpenLog is given.
	RemoveLog func(p change.PipelineID) error
}

// Log is what ingest needs of a pipeline's log; *wal.Log is one.
type Log interface {
	// Append makes g durable and published; it is safe for concurrent use and does
	// not keep g.
	Append(ctx context.Context, g *change.Group) (wal.CommittedGroup, error)
	Close() error
}

// LakeAdmin removes lake tables.
type LakeAdmin interface {
	// DropTable removes the lake side of a table, its files included, when no query
	// reads it any more. It is idempotent; a table without lake side is no error.
	DropTable(ctx context.Context, table change.TableID) error
}

// ResolvedConnection is a connection with its secrets in the clear. It is never
// logged; Options has upper-case names.
type ResolvedConnection struct {
	Name, Kind string
	Options    map[string]string
}

// SourceDeps are a source's collaborators.
type SourceDeps struct {
	Clock env.Clock
	IDs   env.IDs
	Log   *slog.Logger
	// Position is the durable position of the pipeline when the source is made,
	// empty when there is none.
	Position change.Position
	// Scratch is room for files that are of no use after the source; without FS there is
	// none. Only the source of a pipeline's session has it.
	Scratch Scratch
	// Others are what the sources of all other pipelines have as their state now, also of
	// other kinds: what one of them holds at a source is not for this one. Nil: there are none.
	Others func() [][]byte
	// Option is an option of the pipeline as it is now, "" when it has none; nil: as it was
	// when the source was made.
	Option func(name string) string
	// Waiting is told what the source waits for, a clause, and "" when it goes on. Nil:
	// nobody wants to know.
	Waiting func(reason string)
}

// Scratch is a place for files: those in Dir whose names begin with Prefix. Whoever
// gets it removes what is there already.
type Scratch struct {
	FS          wal.FS
	Dir, Prefix string
}

// SourceFactory makes the source of one pipeline. It checks options; it may leave
// connecting to the source's methods.
type SourceFactory func(ctx context.Context, conn ResolvedConnection, p *catalog.Pipeline,
	deps SourceDeps) (Source, error)

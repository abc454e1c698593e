package check

import (
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// View is what checkers see after a step of the world. It is the world's own, reused from
// step to step: keep what you need by value. All of it is to be read only.
type View struct {
	Step int
	Now  time.Time
	// Drained says that the faults have stopped and the world has run until nothing was
	// left to do, or until Stuck.
	Drained bool
	// Stuck says that the drain did not end within its bound (L1).
	Stuck bool
	Hosts []*Host
	// Objects is the object store of the log, nil in the disk mode.
	Objects Bytes
	Source  *Source
	// Events are what happened since the last step, in order.
	Events []Event
}

// Bytes is what a store would still have if everything went down now, by name. The bytes
// must not be changed.
type Bytes interface {
	// Version is another after each change of what the methods below return, so that a
	// checker need not look again.
	Version() uint64
	// Names are the names with a prefix, sorted.
	Names(prefix string) []string
	// Read returns the bytes of a name; nil, false if there is none.
	Read(name string) ([]byte, bool)
}

// stamped are Bytes that know what has changed, so that a checker need not look at the rest.
type stamped interface {
	// Listing is another after each change of the names.
	Listing() uint64
	// Stamp is another after each change of a name's bytes.
	Stamp(name string) uint64
}

// HostState is how a host is.
type HostState uint8

// The states of a host.
const (
	Down    HostState = iota // crashed; disk and key-value store stay
	Opening                  // recovery runs; its catalog may lag behind its log
	Up
	Paused // alive and not scheduled, while its clock runs
)

// Host is a machine.
type Host struct {
	Name string
	// Incarnation counts its processes, from 1.
	Incarnation int
	State       HostState
	// Disk is the machine's disk as a power cut would leave it at worst: only what was
	// synced.
	Disk Bytes
	// LogDir is the directory of the pipeline's log on Disk.
	LogDir string
	// Catalog is the process's, nil while it is down. Reading a snapshot of it does not
	// disturb the run.
	Catalog *catalog.Catalog
	// Epoch is that of the host's log; 0 while it is not open.
	Epoch segment.Epoch
	// Fenced says that the world knows that another writer has superseded this one: what
	// such a host believes may be out of date, what it makes durable must be nothing.
	Fenced bool
}

// Source is the source's side.
type Source struct {
	History *source.History
	// Confirmed is the greatest LSN that was acknowledged on the present slot: what lies at
	// or below is forgotten and cannot come again. Start is where that slot began and
	// Slot its number, from 1 (0: there is none).
	Confirmed, Start int64
	Slot             int
	// Held is the greatest LSN of a transaction that a catalog's has committed, and no group of
	// the log.
	Held int64
}

// Event is something that has happened. The types below are all there are.
type Event interface{ event() }

type (
	// Committed is an append that was answered without an error.
	Committed struct {
		Host     string
		Pipeline change.PipelineID
		Group    wal.CommittedGroup
	}
	// AckSent is a position on its way to the source. Confirmed, the view's, moves later.
	AckSent struct {
		Host     string
		Pipeline change.PipelineID
		Position change.Position
	}
	// ReclaimAsked is a reclaim handed to the log, before it does anything.
	ReclaimAsked struct {
		Host     string
		Pipeline change.PipelineID
		Seqs     []segment.Seq
	}
	// Removed is a name that is about to vanish from a store: deleted, or renamed away. It
	// is not durable yet.
	Removed struct {
		Host string // "" for the object store
		Name string
	}
	// LakeCommitted is a commit that took effect in the lake, whether or not its caller
	// was told. Head is the snapshot that it made; nil when it found itself done.
	LakeCommitted struct {
		Host   string
		Table  change.TableID
		Commit lake.Commit
		Head   *lake.Snapshot
	}
	// LakeDropped is a lake table that was dropped, for a RESET, RESYNC or DROP.
	LakeDropped struct {
		Host  string
		Table change.TableID
	}
	// Updated is a transaction of a catalog that has committed (compactions acked, states
	// moved), and Published groups that it has taken.
	Updated   struct{ Host string }
	Published struct {
		Host     string
		Pipeline change.PipelineID
		Groups   []wal.CommittedGroup
	}
	// PinTaken is a pin of a query; Query numbers the queries of a run.
	PinTaken struct {
		Query int
		Host  string
		Pin   Pin
		// Awaited is a position that its session has waited to see in tables, by OID: everything
		// that the source had committed by then; 0: none.
		Awaited int64
		In      []uint32
	}
	// PinExecuted is a pin that was executed to its end: its rows, or why not. Again says that
	// the pin was executed before, on purpose (P2).
	PinExecuted struct {
		Query int
		Host  string
		Pin   Pin
		Again bool
		Err   error
		// Results by table, as Pin.Tables: each of the columns of its Table.Current.
		Results []*query.Result
	}
	// QueryEnded is the end of a query: Err is what its session would be told.
	QueryEnded struct {
		Query   int
		Host    string
		Repeats int
		Err     error
	}
	// HoldMoved is a hold that its owner took, moved or released.
	HoldMoved struct {
		Host     string
		Pipeline change.PipelineID
		Name     string
		At       segment.SliceRef
		Released bool
	}
	// Statement is a statement that has ended: "reset", "drop", "resync a", "pause", ….
	Statement struct {
		Host, Text string
		Err        error
	}
	// Crashed is the end of a process. Machine says that its disk lost what was not synced;
	// Lost that its catalog is gone, too.
	Crashed struct {
		Host          string
		Machine, Lost bool
	}
	// Opened is the begin of a process whose log is recovered.
	Opened struct {
		Host        string
		Incarnation int
		Epoch       segment.Epoch
		Err         error
	}
)

func (Committed) event()     {}
func (AckSent) event()       {}
func (ReclaimAsked) event()  {}
func (Removed) event()       {}
func (LakeCommitted) event() {}
func (LakeDropped) event()   {}
func (Updated) event()       {}
func (Published) event()     {}
func (PinTaken) event()      {}
func (PinExecuted) event()   {}
func (QueryEnded) event()    {}
func (HoldMoved) event()     {}
func (Statement) event()     {}
func (Crashed) event()       {}
func (Opened) event()        {}

// Pin is what a query reads, as the planner took it in one catalog snapshot.
type Pin struct {
	Tables []PinnedTable
	// Position is the pipeline's offset in the pin's snapshot: the query's watermark; Seq
	// and End are where the log ended there.
	Position change.Position
	Seq      segment.Seq
	End      uint32
	At       time.Time
}

// PinnedTable is one table of a pin.
type PinnedTable struct {
	Table *catalog.Table
	Lake  catalog.LakeState
	Live  []catalog.Slice
}

// Checker asserts one invariant of DESIGN §10 after every step. It may keep state of its
// own; it belongs to one run.
type Checker interface {
	// Label is the invariant's.
	Label() string
	// Check returns why the invariant is broken, nil when it holds.
	Check(v *View) error
}

// Violation is a broken invariant.
type Violation struct {
	Label  string
	Step   int
	Detail string
}

// Error renders the violation.
func (v *Violation) Error() string { return v.Label + ": " + v.Detail }

package script

import "fmt"

// Op is what a record does. The values are part of the compact form: they are never
// reused, and unassigned ones mean Tick.
type Op uint8

// The operations.
const (
	Tick      Op = 0  // time passes
	Run       Op = 1  // everything that is ready goes on, in any order
	Part      Op = 2  // one activity goes on, the others do not
	Txn       Op = 3  // the source commits a transaction
	Crash     Op = 4  // a process or a machine dies
	Query     Op = 5  // a session queries
	Statement Op = 6  // a user's statement
	Hold      Op = 7  // a hold on the log is taken, moved or released
	Compact   Op = 8  // a table is compacted by force
	Seal      Op = 9  // the active segment is sealed
	Pause     Op = 10 // a host stands still, or goes on
	Skew      Op = 11 // a host's clock jumps
	Idle      Op = 12 // the source's position moves without a transaction of ours
	Alter     Op = 13 // a table of the source gets another shape
	Space     Op = 14 // a disk is full, or has space again
	Takeover  Op = 15 // another host takes the log over
	Abort     Op = 16 // the source sends a transaction and gives it up
	Settle    Op = 17 // everything goes on until nothing is left to do for the moment

	// Directed operations, for scripts that say exactly what happens.

	Change Op = 18 // the source's open transaction gets a change
	Commit Op = 19 // it commits, or is given up
	Stop   Op = 20 // everything goes on until an activity is at a place, where it stays
	Go     Op = 21 // what was stopped may go on, or has a fault there
	Wait   Op = 22 // seconds pass, and everything goes on
	Do     Op = 23 // one action, and nothing else moves
	Client Op = 24 // a client of tables of our own sends something
	// ClientMore is Client with the verbs that have no room there. Scripts say client of both.
	ClientMore Op = 25

	opEnd = ClientMore + 1
)

// OpsMax bounds the codes: an op is decoded by its low bits.
const OpsMax = 32

var opNames = [opEnd]string{
	"tick", "run", "part", "txn", "crash", "query", "statement", "hold", "compact", "seal", "pause", "skew", "idle",
	"alter", "space", "takeover", "abort", "settle", "change", "commit", "stop", "go", "wait", "do", "client",
	"client_more",
}

// String names the operation, as scripts do.
func (o Op) String() string {
	if o >= opEnd {
		return fmt.Sprintf("op%d", uint8(o))
	}
	return opNames[o]
}

// Record is one step of a schedule. It carries its own randomness, so that taking one out
// does not change what its neighbours do.
type Record struct {
	Op Op
	// Arg chooses among the ways of the operation.
	Arg uint8
	// Fault happens during the operation, at the first exchange that it fits after some
	// that Rand says; 0: none.
	Fault uint8
	Rand  uint16
}

// ConfigBytes is how many bytes configure a world. All zero is the plainest world.
const ConfigBytes = 12

// RecordsMax bounds a schedule.
const RecordsMax = 1024

// Schedule is a whole run.
type Schedule struct {
	// About says what the schedule shows, in lines. Want are the marks that a run of it must
	// hit. Neither changes a run.
	About []string
	Want  []string

	// Store has hosts whose logs are on one object store, instead of a host with its log on
	// its disk.
	Store bool
	// Own has clients of this server change tables of its own, instead of a source that is
	// another system.
	Own bool
	// Seed decides identities and what crashes keep.
	Seed    uint64
	Config  [ConfigBytes]byte
	Records []Record
}

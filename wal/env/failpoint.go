package env

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// Failpoint names a durable step that a test can end the world at. The set is
// closed.
type Failpoint uint8

// The failpoints, in the order of a change's life.
const (
	// BeforeBody: nothing of the group is written.
	BeforeBody Failpoint = 1 + iota
	// AfterBody: the group's bytes are written, not synced.
	AfterBody
	// AfterMarker: the group is durable, past its commit point, not published.
	AfterMarker
	// AfterPublish: the catalog has the group.
	AfterPublish
	// BeforeAck: the append returned; the source has not been told.
	BeforeAck
	// BeforeSeal: the segment is full; footer and marker are not written.
	BeforeSeal
	// AfterSealMarker: the segment's marker is durable.
	AfterSealMarker
	// BeforeLakeCommit: data files are written; no snapshot names them.
	BeforeLakeCommit
	// AfterLakeCommit: the snapshot is current; the catalog does not know.
	AfterLakeCommit
	// AfterMark: the catalog has the compaction as acked.
	AfterMark
	// BeforeReclaim: the segment is about to be deleted.
	BeforeReclaim
	// BetweenMarkerAndBodyDelete: the marker is gone, the body is not.
	BetweenMarkerAndBodyDelete
	// BeforeUpdate: a catalog transaction is about to begin.
	BeforeUpdate
	// AfterUpdate: it is durable; whoever asked for it does not know.
	AfterUpdate

	failpointEnd
)

var failpointNames = [failpointEnd]string{
	BeforeBody:                 "before_body",
	AfterBody:                  "after_body",
	AfterMarker:                "after_marker",
	AfterPublish:               "after_publish",
	BeforeAck:                  "before_ack",
	BeforeSeal:                 "before_seal",
	AfterSealMarker:            "after_seal_marker",
	BeforeLakeCommit:           "before_lake_commit",
	AfterLakeCommit:            "after_lake_commit",
	AfterMark:                  "after_mark",
	BeforeReclaim:              "before_reclaim",
	BetweenMarkerAndBodyDelete: "between_marker_and_body_delete",
	BeforeUpdate:               "before_update",
	AfterUpdate:                "after_update",
}

// AllFailpoints lists every failpoint.
func AllFailpoints() []Failpoint {
	all := make([]Failpoint, 0, failpointEnd-1)
	for f := BeforeBody; f < failpointEnd; f++ {
		all = append(all, f)
	}
	return all
}

// String is the name ParseFailpoint reads.
func (f Failpoint) String() string {
	if f == 0 || f >= failpointEnd {
		return "failpoint(" + strconv.Itoa(int(f)) + ")"
	}
	return failpointNames[f]
}

// ParseFailpoint reads "name" or "name:n", n ≥ 1: the n-th hit counts. Case and
// underscores do not matter.
func ParseFailpoint(spec string) (f Failpoint, n int, err error) {
	name, count, counted := strings.Cut(spec, ":")
	n = 1
	if counted {
		if n, err = strconv.Atoi(count); err != nil || n < 1 {
			return 0, 0, fmt.Errorf("failpoint %q: count must be a positive number", spec)
		}
	}
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for _, f := range AllFailpoints() {
		if plain(f.String()) == plain(name) {
			return f, n, nil
		}
	}
	return 0, 0, fmt.Errorf("failpoint %q: unknown name", spec)
}

// Failpoints is told when a durable step is reached. Safe for concurrent use.
type Failpoints interface {
	// Hit returns an error to make the step fail, nil to go on.
	Hit(Failpoint) error
}

// NoFailpoints never fails anything.
var NoFailpoints Failpoints = noFailpoints{}

type noFailpoints struct{}

func (noFailpoints) Hit(Failpoint) error { return nil }

// ExitAt is the Failpoints that calls exit at the hit spec names ("name[:n]"). An
// empty spec never exits. exit is os.Exit in the command, with the status of a
// process ended by SIGKILL.
func ExitAt(spec string, exit func(code int)) (Failpoints, error) {
	if spec == "" {
		return NoFailpoints, nil
	}
	f, n, err := ParseFailpoint(spec)
	if err != nil {
		return nil, err
	}
	return &exitAt{at: f, n: int64(n), exit: exit}, nil
}

const exitKilled = 137

type exitAt struct {
	at   Failpoint
	n    int64
	hits atomic.Int64
	exit func(code int)
}

func (e *exitAt) Hit(f Failpoint) error {
	if f == e.at && e.hits.Add(1) == e.n {
		e.exit(exitKilled)
	}
	return nil
}

// FailpointFunc makes a Failpoints of a function.
type FailpointFunc func(Failpoint) error

// Hit calls the function.
func (fn FailpointFunc) Hit(f Failpoint) error { return fn(f) }

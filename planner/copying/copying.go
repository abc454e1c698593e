// Package copying is how far the COPYs that run have come, for pg_stat_progress_copy, and where
// their data comes from and goes to.
package copying

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Copies are the COPYs that run. Safe for concurrent use.
type Copies struct {
	mu struct {
		sync.Mutex
		running map[uint32]*Copy
	}
}

// Copy is one COPY. It is counted by its session, and read by others.
type Copy struct {
	of *Copies
	// PID is the session's, Relation the table's oid, 0 of a query; From says COPY FROM.
	PID, Relation uint32
	From          bool
	kind          string
	total         int64
	// bytes are those of the data; tuples those that were taken or sent, excluded those that
	// WHERE left out.
	bytes, tuples, excluded atomic.Int64
}

// Info is a COPY at one moment.
type Info struct {
	PID, Relation           uint32
	From                    bool
	Bytes, Tuples, Excluded int64
	// Kind is PIPE, FILE or PROGRAM; Total the bytes of the file, 0 where that is not known.
	Kind  string
	Total int64
}

// Begin notes a COPY of a session, which has one at a time. End must be called.
func (c *Copies) Begin(pid, relation uint32, from bool) *Copy {
	x := &Copy{of: c, PID: pid, Relation: relation, From: from, kind: "PIPE"}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.running == nil {
		c.mu.running = map[uint32]*Copy{}
	}
	c.mu.running[pid] = x
	return x
}

// Of says what the data comes from or goes to, and how many bytes there are of it.
func (x *Copy) Of(kind string, total int64) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.kind, x.total = kind, total
}

// Names says which table it is of.
func (x *Copy) Names(relation uint32) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.Relation = relation
}

// End says that the COPY runs no more.
func (x *Copy) End() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	if x.of.mu.running[x.PID] == x {
		delete(x.of.mu.running, x.PID)
	}
}

// Add counts bytes, and rows that were taken or sent.
func (x *Copy) Add(bytes, tuples int) {
	x.bytes.Add(int64(bytes))
	x.tuples.Add(int64(tuples))
}

// Exclude says that so many of the counted rows were left out.
func (x *Copy) Exclude(tuples int) {
	x.tuples.Add(-int64(tuples))
	x.excluded.Add(int64(tuples))
}

// Reader counts the bytes that are read from r.
func (x *Copy) Reader(r io.Reader) io.Reader { return reader{r, x} }

type reader struct {
	from io.Reader
	copy *Copy
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.copy.bytes.Add(int64(n))
	return n, err
}

// List is what runs now, by session.
func (c *Copies) List() []Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Info, 0, len(c.mu.running))
	for _, x := range c.mu.running {
		out = append(out, Info{x.PID, x.Relation, x.From, x.bytes.Load(), x.tuples.Load(), x.excluded.Load(), x.kind, x.total})
	}
	slices.SortFunc(out, func(a, b Info) int { return int(a.PID) - int(b.PID) })
	return out
}

// Package temp keeps what a session has for itself: temporary tables and views, and the rows of
// the tables.
//
// The objects are facts of the catalog as any others, which only drafts of the session have
// (catalog.Temporary): names, constraints, rights and the system relations need to know nothing
// of them. The rows are changes (planner/write) of tables that have no others. All of it is in
// this process: an engine worker gets with each plan what the plan reads, and its end takes
// nothing with it.
//
// A transaction's statements add to the rows, and take them back to a mark; Keep ends it.
package temp

import (
	"fmt"
	"sync/atomic"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// Numbers of temporary tables and views are given out while the process lives, above those of
// all others and below where oids of tables end; oids of schemas are above them.
const (
	firstID    change.TableID = 1<<28 + 1<<16
	lastID     change.TableID = 1<<29 - 1<<16
	firstSpace uint32         = 1 << 29
)

// Server is what the sessions of a server share. Safe for concurrent use.
type Server struct {
	budget *write.Budget
	ids    atomic.Uint32
}

// NewServer returns one without any.
func NewServer() *Server { return &Server{budget: write.NewBudget(write.TempBytesMaxAll)} }

// SchemaName is where the temporary objects of a session are.
func SchemaName(pid uint32) string { return fmt.Sprintf("pg_temp_%d", pid) }

// Space has the temporary objects of one session. Used by one goroutine.
type Space struct {
	server  *Server
	objects *catalog.Temporary
	// Rows are those of its tables.
	Rows *write.Changes
	// kept is the mark of the rows that there were when the transaction began.
	kept int
}

// Open returns a session's space, with nothing in it.
func (s *Server) Open(pid uint32) *Space {
	schema := &catalog.Schema{Name: SchemaName(pid), OID: firstSpace | pid&(firstSpace-1), Made: true, Temp: true}
	return &Space{server: s, objects: &catalog.Temporary{Schema: schema}, Rows: write.NewTemp(s.budget)}
}

// Reserve gives out the number of a table or view.
func (s *Server) Reserve() (change.TableID, error) {
	id := firstID + change.TableID(s.ids.Add(1))
	if id >= lastID {
		return 0, pgerr.New(codes.ProgramLimitExceeded, "too many temporary tables were made since the server started")
	}
	return id, nil
}

// Include adds the objects to a draft, as they were when the transaction began.
func (s *Space) Include(txn *catalog.Txn) { txn.Include(s.objects) }

// Objects are those that there were when the transaction began.
func (s *Space) Objects() *catalog.Temporary { return s.objects }

// After are the objects as a transaction leaves them, of the session's last draft; those with
// ON COMMIT DROP are gone.
func (s *Space) After(draft *catalog.Snapshot) *catalog.Temporary {
	all := draft.Temporary(s.objects.Schema)
	gone := map[change.TableID]bool{}
	out := &catalog.Temporary{Schema: all.Schema}
	for _, t := range all.Tables {
		if t.Temp == catalog.TempDrop {
			gone[t.Face()] = true
			continue
		}
		out.Tables = append(out.Tables, t)
	}
	for more := len(gone) > 0; more; { // views go with what they read
		more = false
		for _, v := range all.Views {
			for _, id := range v.Reads {
				if gone[id] && !gone[v.ID] {
					gone[v.ID], more = true, true
				}
			}
		}
	}
	for _, v := range all.Views {
		if !gone[v.ID] {
			out.Views = append(out.Views, v)
		}
	}
	for _, q := range all.Sequences {
		if q.Table == 0 || !gone[q.Table] {
			out.Sequences = append(out.Sequences, q)
		}
	}
	dropped := map[string]bool{}
	for id := range gone {
		dropped[right.Table(uint32(id)).Key()] = true
	}
	for _, e := range all.Rights {
		if !dropped[e.Object.Key()] {
			out.Rights = append(out.Rights, e)
		}
	}
	return out
}

// Keep ends a transaction that is committed: after is what After gave.
func (s *Space) Keep(after *catalog.Temporary) {
	s.objects = after
	tables := map[change.TableID]*write.Table{}
	for _, t := range after.Tables {
		tables[t.ID] = write.Of(t)
		if t.Temp == catalog.TempEmpty {
			s.Rows.Clear(t.ID)
		}
	}
	s.Rows.Keep(tables)
	s.kept = s.Rows.Mark()
}

// Rollback ends a transaction that is not.
func (s *Space) Rollback() { s.Rows.Rollback(s.kept) }

// Close gives all up.
func (s *Space) Close() {
	s.objects = &catalog.Temporary{Schema: s.objects.Schema}
	s.Rows.Release()
	s.kept = 0
}

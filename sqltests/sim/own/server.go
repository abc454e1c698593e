package own

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/owned"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// Hooks are how a server meets the world.
type Hooks struct {
	// Point is an exchange with a client or the engine: others may go on, it may fail, the
	// process may die there.
	Point func(name string) error
	// Wait waits until ready says so, or the process has died.
	Wait func(ready func() bool) error
	// Split says how many of n bytes come at once, at least one.
	Split func(n int) int
	// Alive says that the process is, Leads that no other is known to have taken its log over.
	Alive, Leads func() bool
	// Faulted says that something has failed which the server may not be able to explain.
	Faulted func() bool
	Mark    func(name string)
	// Say tells the trace.
	Say func(format string, args ...any)
	// Acked is told each position that is acknowledged.
	Acked func(change.Position)
}

// Deps are what a server is made of.
type Deps struct {
	Catalog   *catalog.Catalog
	Warehouse planner.Snapshots
	Pins      planner.Pins
	Logs      planner.LogPins
	// Recovered is planner.Deps.Recovered.
	Recovered func(context.Context, change.PipelineID) error
	Executor  func() *query.Executor
	LogDir    func(change.PipelineID) string
	Epoch     func() segment.Epoch
	Clock     env.Clock
	IDs       env.IDs
	Tasks     env.Tasks
	Log       *slog.Logger
}

// Server is the wire, the sessions and the tables of our own of one process.
type Server struct {
	ledger  *Ledger
	hooks   Hooks
	deps    Deps
	tables  owned.Tables
	wire    *pgwire.Server
	clients map[string]*Client
	// queue are the transactions that the store has and whose fate is open, in the store's
	// order.
	queue []*Txn
}

// NewServer makes the server of a process. It serves once Join has told it of its pipelines.
func NewServer(l *Ledger, h Hooks, d Deps) (*Server, error) {
	s := &Server{ledger: l, hooks: h, deps: d, clients: map[string]*Client{}}
	s.tables.Store = own.NewStore(own.Deps{Clock: d.Clock, Tasks: d.Tasks, Settled: d.Catalog.SettleBackup})
	s.tables.Locks = own.NewLocks(d.Tasks)
	var err error
	s.wire, err = pgwire.New(pgwire.Config{}, pgwire.Deps{Engine: engine{s}, Clock: d.Clock, IDs: d.IDs, Log: d.Log})
	return s, err
}

// Join gives the server its pipelines, and removes what transactions have left that ended with
// their process.
func (s *Server) Join(ctx context.Context, p own.Pipelines) error {
	s.tables.Tables = &own.Tables{Catalog: s.deps.Catalog, Pipelines: p}
	s.ledger.sequence.exact = 0
	return s.tables.Tables.Sweep(ctx)
}

// table is a table as the server has it; nil: it has none of that name.
func (s *Server) table(name string) *source.Table {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	for _, t := range snap.AllTables() {
		if t.Name == name {
			return s.ledger.table(t)
		}
	}
	return nil
}

// version is the version of a table that the server's catalog has.
func (s *Server) version(t *source.Table) *source.Version {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	for _, of := range snap.AllTables() {
		if of.SourceOID != t.OID {
			continue
		}
		have := versionOf(of, t.Current().Number)
		for _, v := range slices.Backward(t.Versions) {
			if columnsText(v) == columnsText(have) {
				return v
			}
		}
		return have
	}
	return t.Current()
}

func (s *Server) has(name string) bool { return s.table(name) != nil }

// planner makes the engine of a client's session.
func (s *Server) planner(c *Client) *planner.Engine {
	d := &s.deps
	return planner.New(planner.Deps{
		Catalog: d.Catalog, Warehouse: d.Warehouse, Pins: d.Pins, Logs: d.Logs, Recovered: d.Recovered, Runner: &runner{s, c},
		DDL: noDDL{}, Own: &session{Tables: &s.tables, client: c}, System: noSystem{}, Clock: d.Clock, LogDir: d.LogDir,
		Version: "15.8", Database: "lake", Started: time.Time{},
	})
}

// engine is a pgwire.Engine whose sessions each have a planner of their own.
type engine struct{ s *Server }

var _ pgwire.Engine = engine{}

// Role implements pgwire.Engine.
func (e engine) Role(ctx context.Context, user string) (pgwire.Role, error) {
	return e.s.planner(nil).Role(ctx, user)
}

// Open implements pgwire.Engine.
func (e engine) Open(ctx context.Context, st pgwire.Startup) (pgwire.Session, error) {
	return e.s.planner(e.s.clients[st.Params["application_name"]]).Open(ctx, st)
}

// session is what the shipped code has for a session, and what becomes of its commits.
type session struct {
	*owned.Tables
	client *Client
}

var _ planner.OwnTables = (*session)(nil)

// unknownCode is what a client is told when the fate of its commit is open.
const unknownCode = "08007"

// completionCode is what a client is told when that of its statement is.
const completionCode = "40003"

// Commit implements planner.OwnTables.
func (o *session) Commit(ctx context.Context, changes *write.Changes, settled func()) error {
	s := o.client.server
	if s == nil || !s.hooks.Alive() {
		return errBroken
	}
	t := o.client.committing()
	o.defines(t)
	s.queue = append(s.queue, t)
	err := o.Tables.Commit(ctx, changes, func() {
		s.leave(t)
		settled()
	})
	if !s.hooks.Alive() {
		return err
	}
	e, _ := pgerr.As(err)
	switch {
	case err == nil:
		s.hooks.Mark("own commit")
		s.ledger.commit(t)
	case e != nil && string(e.Code) == unknownCode:
		s.hooks.Mark("own commit in doubt")
	case len(t.edits) > 0: // rows of drafts
		s.hooks.Mark("own definitions refused")
	default:
		s.hooks.Mark("own commit refused")
		s.ledger.refuse(t)
	}
	return err
}

func (s *Server) leave(t *Txn) {
	s.queue = slices.DeleteFunc(s.queue, func(q *Txn) bool { return q == t })
}

// defines notes that a transaction may change definitions from now on.
func (o *session) defines(t *Txn) {
	if len(t.edits) > 0 {
		t.server = o.client.server
		o.client.ledger.begins(t)
	}
}

// Hold implements planner.OwnTables.
func (o *session) Hold(ctx context.Context, changes *write.Changes, schemas map[change.TableID]*schema.Table) (planner.HeldRows, error) {
	s := o.client.server
	if s == nil || !s.hooks.Alive() {
		return nil, errBroken
	}
	t := o.client.committing()
	o.defines(t)
	if t.held {
		s.hooks.Mark("own transaction held anew")
	}
	t.held, t.token = true, 0
	s.queue = append(s.queue, t)
	held, err := o.Tables.Hold(ctx, changes, schemas)
	s.leave(t)
	return held, err
}

// Define implements planner.OwnTables.
func (o *session) Define(ctx context.Context, tables bool, fn func(*catalog.Txn) error) error {
	s := o.client.server
	if s == nil || !s.hooks.Alive() {
		return errBroken
	}
	t := o.client.committing()
	o.defines(t)
	if err := s.hooks.Point("define"); err != nil {
		return err
	}
	if slices.ContainsFunc(t.edits, func(e edit) bool { return e.restarts }) {
		s.ledger.sequence.forget()
		defer s.ledger.sequence.forget()
	}
	return o.Tables.Define(ctx, tables, fn)
}

// Reserve implements planner.OwnTables.
func (o *session) Reserve(ctx context.Context) (change.PipelineID, change.TableID, error) {
	p, id, err := o.Tables.Reserve(ctx)
	if st := o.client.sent; err == nil && st != nil {
		st.reserved = append(st.reserved, id)
	}
	return p, id, err
}

// given is the transaction that the stream is given under a token: that which has it already,
// or the next that has none.
func (s *Server) given(token int64) (*Txn, error) {
	for _, t := range s.queue {
		if t.token == token || t.token == 0 {
			t.token = token
			return t, nil
		}
	}
	return nil, fmt.Errorf("nothing was committed under token %d", token)
}

// noDDL refuses statements of ours.
type noDDL struct{}

var errNoDDL = errors.New("no such statements in a simulated world")

// Execute implements planner.DDL.
func (noDDL) Execute(context.Context, ddl.Statement, ddl.Session) (*ddl.Result, error) {
	return nil, errNoDDL
}

// noSystem has no system relations.
type noSystem struct{}

var _ planner.SystemRelations = noSystem{}

// Lookup implements planner.SystemRelations.
func (noSystem) Index(string, string) (uint32, bool) { return 0, false }

func (noSystem) Lookup(string, string) (planner.SystemRelation, bool) {
	return planner.SystemRelation{}, false
}

// Rows implements planner.SystemRelations.
func (noSystem) Rows(context.Context, planner.SystemRelation, *planner.SystemEnv) ([]byte, error) {
	return nil, errNoDDL
}

// Functions implements planner.SystemRelations.
func (noSystem) Functions() []planner.SystemFunction { return nil }

// Prelude implements planner.SystemRelations.
func (noSystem) Prelude() []string { return nil }

// IndexColumns implements planner.SystemRelations.
func (noSystem) IndexColumns(*planner.SystemEnv, *catalog.Table, catalog.Index) []string { return nil }

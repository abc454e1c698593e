package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/planner/owned"
	"github.com/skipprd/skipprd/sqltests/sim/own"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// ownWorld is the part of a world whose tables are changed by clients here.
type ownWorld struct {
	ledger  *own.Ledger
	clients []*own.Client
}

// ownTemplate is a catalog with the tables of our own that clients change.
var ownTemplate = sync.OnceValues(func() (*memkv.Store, error) {
	fake := env.NewFake(origin, 1)
	store := memkv.New()
	c, err := catalog.Open(context.Background(), store, catalog.Deps{Clock: fake, IDs: fake, Key: catalogKey[:]})
	if err != nil {
		return nil, err
	}
	err = own.MakeTables(c, fake, []string{
		"CREATE TABLE ints (id bigint PRIMARY KEY, v text, n integer)",
		"CREATE TABLE texts (a text, f double precision, b text, PRIMARY KEY (b, a))",
		"CREATE TABLE log (at bigint, what text)",
	})
	if err != nil {
		return nil, fmt.Errorf("make tables of our own: %w", err)
	}
	return store, c.Close()
})

// template is a catalog that has not run, with what the world's pipeline has.
func (w *World) template() (*memkv.Store, error) {
	if w.own != nil {
		return ownTemplate()
	}
	return template()
}

// beginOwn makes the tables ones that clients here change.
func (w *World) beginOwn() error {
	w.pipeline, w.loadAt = catalog.OwnPipeline, time.Time{}
	w.own = &ownWorld{ledger: own.NewLedger(w.db, w.fail)}
	for _, name := range script.Clients() {
		w.own.clients = append(w.own.clients, own.NewClient(name, w.own.ledger))
	}
	from, err := ownTemplate()
	if err != nil {
		return err
	}
	c, err := catalog.Open(context.Background(), from.Crash(), catalog.Deps{
		Clock: worldClock{w}, IDs: &ids{}, Key: catalogKey[:],
	})
	if err != nil {
		return err
	}
	w.own.ledger.Learn(c)
	w.tables = w.db.Tables
	return c.Close()
}

// serveOwn makes what a process has for clients.
func (p *process) serveOwn() error {
	w := p.world
	if w.own == nil {
		return nil
	}
	var err error
	p.server, err = own.NewServer(w.own.ledger, own.Hooks{
		Point: p.ownPoint, Wait: func(ready func() bool) error { return p.wait(context.Background(), ready) },
		Split: func(n int) int {
			if w.rng.one(3) {
				return 1 + w.rng.n(n)
			}
			return n
		},
		Alive: func() bool { return !p.dead }, Faulted: func() bool { return p.faulted || w.objects != nil },
		Leads: func() bool { return !p.superseded && !p.dead && p.epoch != 0 && p.epoch >= w.reign }, Mark: w.mark, Say: w.say,
		Acked: func(at change.Position) { p.acked(at) },
	}, own.Deps{
		Catalog: p.catalog, Warehouse: warehouse{p}, Pins: warehouse{p}, Logs: ownHolds{p}, LogDir: p.logDir,
		Recovered: func(ctx context.Context, id change.PipelineID) error {
			return owned.Error(p.supervisor.Recovered(ctx, id))
		},
		Executor: func() *query.Executor { return p.executor() }, Epoch: func() segment.Epoch { return p.epoch },
		Clock: clock{p}, IDs: p.ids, Tasks: tasks{p}, Log: w.logger(),
	})
	return err
}

// ownPoint is an exchange of a server with its clients, its engine or its pipeline.
func (p *process) ownPoint(name string) error {
	kind := atSource
	switch name {
	case "receive", "reply":
		kind = atClient
	case "run":
		kind = atQuery
	}
	return p.exchange(kind, name, func() error { return nil })
}

// ownHolds is a planner.LogPins.
type ownHolds struct{ p *process }

// HoldLog implements planner.LogPins.
func (h ownHolds) HoldLog(id change.PipelineID, from segment.Seq) (release func()) {
	return h.p.compactor.HoldLog(id, from).Release
}

// durableOwn tells the ledger how far the log is known to be durable.
func (p *process) durableOwn() {
	if p.world.own == nil || p.superseded {
		return
	}
	snap := p.catalog.Snapshot()
	defer snap.Close()
	if at, err := snap.Offset(pipelineID); err == nil {
		p.world.own.ledger.Durable(source.LSN(at.Position))
	}
}

// loseClients ends the connections of a process that has died.
func (w *World) loseClients(p *process) {
	if w.own != nil {
		for _, c := range w.own.clients {
			c.Lose(p.server)
		}
	}
}

// connect connects a client to a host that serves, its own choice first.
func (w *World) connect(c *own.Client, h *host) bool {
	p := h.proc
	if p == nil || !p.serving || p.server == nil || h.paused {
		if p = w.leader(); p == nil || !p.serving || p.server == nil || p.host.paused {
			return false
		}
	}
	w.mark("client connected")
	w.spawn(p, "client "+c.Name, c.Connect(p.server))
	return true
}

// clientRows are rows of a table's that have some numbers.
func (w *World) clientRows(s script.ClientStep) []source.Row {
	t := w.own.ledger.Shape(s.Table)
	var out []source.Row
	for n := s.First; n <= s.Last; n++ {
		switch {
		case len(t.Current().Key) == 0, s.Shape == "":
			out = append(out, w.row(&w.rng, t, n))
		default:
			out = append(out, w.shaped(t, n, s.Shape))
		}
	}
	return out
}

// clientStep has a client do something, if it can; else nothing happens.
func (w *World) clientStep(s script.ClientStep) {
	c := w.own.clients[s.Client]
	if c.Free() {
		if !w.connect(c, w.host(uint8(s.Client))) || s.Verb == script.Connect {
			return
		}
		w.goOn(going{points: 6, only: func(t *task) bool { return t.name == "client "+c.Name }}) // it is greeted
	}
	switch {
	case s.Verb == script.Vanish:
		c.Vanish()
	case s.Verb == script.Cancel:
		if serve := c.Cancel(); serve != nil {
			w.spawn(w.processOf(c.Server()), "cancel "+c.Name, serve)
		}
	case !c.Connected() || c.Waiting():
	case c.Copying():
		w.clientData(c, s)
	default:
		w.clientStatement(c, s)
	}
}

// processOf is the process that has a server.
func (w *World) processOf(s *own.Server) *process {
	for _, h := range w.hosts {
		if h.proc != nil && h.proc.server == s {
			return h.proc
		}
	}
	return nil
}

// clientData has a client send something of a COPY.
func (w *World) clientData(c *own.Client, s script.ClientStep) {
	switch s.Verb {
	case script.Rows:
		s.Table = c.Table()
		c.Rows(w.clientRows(s), func(int) int { return 0 })
	case script.Half:
		s.Table = c.Table()
		c.Rows(w.clientRows(s), func(n int) int { return 1 + w.rng.n(n) })
	case script.Empty:
		c.Empty()
	case script.Bad:
		c.Bad()
	case script.Done:
		c.Done()
	case script.Fail:
		c.Fail()
	}
}

// clientStatement has a client send a statement.
func (w *World) clientStatement(c *own.Client, s script.ClientStep) {
	switch s.Verb {
	case script.Copy, script.CopyCSV:
		c.Copy(s.Table, s.Verb == script.CopyCSV)
	case script.Insert:
		c.Insert(s.Table, w.clientRows(s))
	case script.Update, script.Delete:
		w.serial++
		c.Change(s.Table, w.clientRows(s), s.Verb == script.Update, w.serial)
	case script.Truncate:
		c.Truncate(s.Table)
	case script.Begin:
		c.Begin()
	case script.CommitBlock:
		c.Commit()
	case script.Rollback:
		c.Rollback()
	case script.Savepoint:
		c.Savepoint()
	case script.Back:
		c.Back()
	case script.Create:
		c.Create()
	case script.Drop:
		c.Drop()
	case script.Leave:
		c.Leave()
	}
}

// The verbs that clients draw among, by what they are at; each as often as it stands here.
var (
	copyVerbs = []script.Verb{
		script.Rows, script.Rows, script.Rows, script.Rows, script.Half, script.Half, script.Done, script.Done, script.Done,
		script.Empty, script.Bad, script.Fail, script.Vanish, script.Cancel,
	}
	blockVerbs = []script.Verb{
		script.Insert, script.Insert, script.Insert, script.Copy, script.Copy, script.Update, script.Update, script.Delete,
		script.Truncate, script.Savepoint, script.Savepoint, script.Back, script.Back, script.Rollback, script.CommitBlock,
		script.CommitBlock, script.CommitBlock,
	}
	idleVerbs = []script.Verb{
		script.Copy, script.Copy, script.Copy, script.Copy, script.CopyCSV, script.Insert, script.Insert, script.Update,
		script.Update, script.Delete, script.Delete, script.Truncate, script.Begin, script.Begin, script.Begin, script.Create,
		script.Drop, script.Leave,
	}
)

// drawClients has some clients do something of their own accord.
func (w *World) drawClients(arg uint8) {
	for range 2 + int(arg&3) {
		w.drawClient()
		w.goOn(going{points: 4 + w.rng.n(20), time: 20 * time.Millisecond})
	}
}

func (w *World) drawClient() {
	s := script.ClientStep{Client: w.rng.n(len(w.own.clients)), First: w.rng.n(2 * w.cfg.keys())}
	c := w.own.clients[s.Client]
	s.Last = s.First + w.rng.n(3)
	s.Table = script.OwnTables()[w.rng.n(3)]
	if w.own.ledger.Spare() && w.rng.one(3) {
		s.Table = script.OwnTables()[3]
	}
	verbs := idleVerbs
	switch {
	case c.Copying():
		verbs = copyVerbs
	case c.Waiting() && w.rng.one(6):
		verbs = []script.Verb{script.Vanish, script.Cancel, script.Cancel}
	case c.Open():
		verbs = blockVerbs
	}
	s.Verb = verbs[w.rng.n(len(verbs))]
	w.clientStep(s)
	if s.Verb == script.CommitBlock && w.rng.one(4) { // it cannot wait for the answer
		w.goOn(going{points: w.rng.n(8)})
		s.Verb = script.Cancel
		w.clientStep(s)
	}
}

// endClients has clients come to an end of what they do.
func (w *World) endClients() {
	if w.own == nil {
		return
	}
	for i, c := range w.own.clients {
		switch {
		case !c.Connected() || c.Waiting():
		case c.Copying():
			c.Done()
		case c.Open() && i != 1:
			c.Commit()
		case c.Open():
			c.Rollback()
		default:
			c.Leave()
		}
	}
}

// clientsEnded says whether a client is still at something.
func (w *World) clientsEnded() error {
	if w.own != nil {
		for _, c := range w.own.clients {
			if !c.Free() {
				return fmt.Errorf("client %s is at something", c.Name)
			}
		}
	}
	return nil
}

// readOwn has a client read all tables at the end of a run.
func (w *World) readOwn() {
	if p := w.leader(); w.own != nil && p != nil && w.violation == nil {
		w.readAll(p)
	}
}

package sim

import (
	"fmt"
	"time"

	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// step executes a record.
func (w *World) step(r script.Record) {
	w.rng = random{w.cfg.Seed ^ uint64(r.Op)<<56 ^ uint64(r.Arg)<<48 ^ uint64(r.Fault)<<40 ^ uint64(r.Rand)<<8 ^ 0x51}
	w.armed = armed{}
	if f := Fault(r.Fault); f != NoFault && f < faultEnd {
		w.armed = armed{fault: f, after: w.rng.n(8)}
		if f == KillAt || f == CutAt {
			all := env.AllFailpoints()
			w.armed, w.lying = armed{}, lying{fault: f, at: all[w.rng.n(len(all))]}
		}
	}
	op := r.Op % script.OpsMax
	w.note(uint64(op)<<16 | uint64(r.Arg))
	w.say("- %v %d fault %v", op, r.Arg, w.armed.fault)
	w.mark("op " + op.String())
	w.deliver()
	if !w.directed(r) {
		w.drawRetry()
		w.operation(op)(w, r.Arg)
	}
	w.armed = armed{}
	w.reap()
	w.look()
}

// operation executes a record of one kind. What changes the source of another system has
// clients do something where there is none.
func (w *World) operation(op script.Op) func(*World, uint8) {
	if w.own != nil {
		switch op {
		case script.Idle, script.Txn, script.Statement, script.Abort, script.Alter:
			return (*World).drawClients
		}
	}
	return operation(op)
}

// operation executes a record of one kind; nil for a code that has none.
func operation(op script.Op) func(*World, uint8) {
	switch op {
	case script.Run:
		return func(w *World, arg uint8) { w.goOn(going{points: 8 + int(arg)/2, time: 100 * time.Millisecond}) }
	case script.Part:
		return func(w *World, arg uint8) { w.part(arg, 4+w.rng.n(40)) }
	case script.Settle:
		return func(w *World, _ uint8) { w.settle() }
	case script.Idle:
		return func(w *World, _ uint8) { w.db.Idle(); w.mark("idle position") }
	case script.Txn:
		return (*World).commit
	case script.Crash:
		return (*World).die
	case script.Query:
		return (*World).query
	case script.Statement:
		return (*World).statement
	case script.Compact:
		return (*World).compact
	case script.Seal:
		return (*World).seal
	case script.Pause:
		return (*World).pause
	case script.Skew:
		return (*World).skew
	case script.Space:
		return (*World).space
	case script.Abort:
		return (*World).abort
	case script.Hold:
		return (*World).hold
	case script.Alter:
		return (*World).alter
	case script.Takeover:
		return (*World).takeover
	}
	return (*World).tick
}

// host is the host that an operation is about.
func (w *World) host(arg uint8) *host { return w.hosts[int(arg)%len(w.hosts)] }

// tick lets time pass, and what waited for it go on a little.
func (w *World) tick(arg uint8) {
	d := time.Duration(1+int(arg)) * 20 * time.Millisecond
	w.goOn(going{points: 60, time: d})
}

func (w *World) commit(arg uint8) {
	changes, huge := w.txn(&w.rng, arg)
	t := w.db.Commit(changes, huge)
	w.say("  transaction %d, %d changes", t.LSN, len(changes))
	for i := range changes {
		if w.verbose {
			c := &changes[i]
			w.say("    %s op %d truncate %v: %q to %q", c.Table.Name, c.Op, c.Truncate, c.Old, c.New)
		}
	}
	w.mark("transaction")
	if arg&1 == 1 {
		w.goOn(going{points: w.rng.n(30)})
	}
}

func (w *World) abort(arg uint8) {
	changes, _ := w.txn(&w.rng, arg)
	w.db.Abort(changes)
	w.mark("aborted transaction")
}

func (w *World) die(arg uint8) {
	h := w.host(arg >> 1)
	if h.proc == nil {
		return
	}
	w.crash(h, arg&1 == 1, arg&0xc0 == 0xc0 && w.objects == nil && w.cfg.backups())
}

func (w *World) query(arg uint8) {
	h := w.host(arg >> 5)
	p := h.proc
	if p == nil || h.paused || !p.serving {
		return
	}
	w.queries++
	s := &session{p: p, id: w.queries, held: arg&3 == 3, queries: 1, again: arg&4 != 0}
	if s.held {
		s.queries = 2 + w.rng.n(3)
	}
	if uint64(w.queries)*0x9E3779B97F4A7C15>>62 == 0 { // no draw of its own
		s.wants = w.db.LSN
	}
	if arg&8 != 0 {
		s.nap = time.Duration(1+w.rng.n(4000)) * time.Millisecond
	}
	if w.cfg.busy() && arg&0x38 == 0x38 {
		s.nap = 8 * time.Second // longer than what it reads stays in the log
		w.slow++
		s.ended = func() { w.slow-- }
		w.mark("slow reader")
	}
	w.spawn(p, fmt.Sprintf("query %d", s.id), s.run)
	w.goOn(going{points: w.rng.n(20)})
}

// compact has a table compacted whatever the thresholds say.
func (w *World) compact(arg uint8) {
	p := w.host(arg >> 5).proc
	if p == nil || !p.serving {
		return
	}
	snap := p.catalog.Snapshot()
	tables := snap.EveryTable()
	snap.Close()
	if len(tables) == 0 {
		return
	}
	t := tables[int(arg)%len(tables)]
	w.spawn(p, "statement compact", func() { _, _ = p.compactor.StepTable(p.ctx, t.ID, true) })
	w.mark("forced compaction")
	w.goOn(going{points: w.rng.n(40)})
}

func (w *World) seal(arg uint8) {
	p := w.host(arg).proc
	if p == nil {
		return
	}
	for _, l := range p.logs { // there is one pipeline
		w.spawn(p, "statement seal", func() { _ = l.Seal() })
	}
}

// pause has a host stand still while time passes, or go on.
func (w *World) pause(arg uint8) {
	h := w.host(arg >> 1)
	if h.proc == nil {
		return
	}
	h.paused = !h.paused
	w.mark("host paused or resumed")
	if h.paused {
		w.advance(time.Duration(1+w.rng.n(20)) * time.Second)
	}
}

// skew has a host's clock jump.
func (w *World) skew(arg uint8) {
	h := w.host(arg >> 1)
	d := time.Duration(1+w.rng.n(3600)) * time.Second
	if arg&1 == 1 {
		d = -d
		w.mark("clock jumps back")
	} else {
		w.mark("clock jumps ahead")
	}
	h.skew += d
}

// space fills a disk, or empties it.
func (w *World) space(arg uint8) {
	h := w.host(arg >> 1)
	if arg&1 == 1 {
		h.disk.SetSpace(int64(w.rng.n(16 << 10)))
		w.mark("disk full")
		return
	}
	h.disk.SetSpace(-1)
}

// alter gives a table of the source another shape, among transactions that change it.
func (w *World) alter(arg uint8) {
	t := w.tables[int(arg)%len(w.tables)]
	only := 0x10 | uint8(int(arg)%len(w.tables))<<6
	if w.rng.one(2) {
		w.commit(only)
	}
	w.reshape(t, arg)
	if w.rng.one(2) {
		w.commit(only)
	}
}

func (w *World) reshape(t *source.Table, arg uint8) {
	v := t.Current()
	switch {
	case arg&0x80 == 0 || len(v.Columns) > 6:
		for i, c := range v.Columns {
			if i != 0 && c.OID == oidInt4 && arg&0x40 != 0 {
				w.db.RetypeColumn(t, i, int64Type, oidInt8)
				w.mark("column widened")
				return
			}
		}
		i := len(v.Columns) - 1
		if len(v.Columns) <= 3 || isKey(v, i) {
			return
		}
		w.db.DropColumn(t, i)
		w.mark("column dropped")
	case arg&0x40 != 0:
		for i := range v.Columns {
			if !isKey(v, i) {
				w.serial++
				w.db.RenameColumn(t, i, fmt.Sprintf("r%d", w.serial))
				w.mark("column renamed")
				return
			}
		}
	default:
		w.serial++
		c := source.Column{Name: fmt.Sprintf("c%d", w.serial), Type: int32Type, OID: oidInt4, TypMod: -1}
		w.db.AddColumn(t, c)
		w.mark("column added")
	}
}

func isKey(v *source.Version, column int) bool {
	for _, i := range v.KeyIndexes() {
		if i == column {
			return true
		}
	}
	return false
}

// hooks are how a process's connections meet the world.
func (p *process) hooks() source.Hooks {
	return source.Hooks{
		Point: func(name string) error { return p.exchange(atSource, name, func() error { return nil }) },
		Wait:  p.wait,
		Alive: func() bool { return !p.dead },
		Created: func() {
			if w := p.world; w.cfg.early() {
				for range 1 + w.rng.n(3) {
					changes, _ := w.txn(&w.rng, 0)
					w.db.Commit(changes, false)
				}
				w.mark("changes while tables are copied")
			}
		},
		Late:       func() { p.world.mark("columns changed after the moment of a copy") },
		Fetched:    func() { p.world.mark("unchanged values fetched") },
		Computed:   func() { p.world.mark("columns computed") },
		Uncomputed: func() { p.world.mark("computed value refused") },
		Acked:      func(at change.Position) { p.acked(at) },
	}
}

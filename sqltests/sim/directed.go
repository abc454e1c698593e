package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim/script"
)

// directed executes the operations of scripts that say exactly what happens; false for the
// others.
func (w *World) directed(r script.Record) bool {
	switch r.Op {
	case script.Change:
		if len(w.open) < openMost {
			w.open = append(w.open, r)
		}
	case script.Commit:
		if w.own == nil {
			w.commitOpen(r)
		}
	case script.Stop:
		w.stop(r)
	case script.Go:
		w.letGo(r)
	case script.Wait:
		w.wait(time.Duration(r.Rand) * time.Second)
	case script.Do:
		w.do(r)
	case script.Client, script.ClientMore:
		if w.own != nil {
			w.clientStep(r.Client())
		}
	default:
		return false
	}
	return true
}

// openMost bounds the changes of an open transaction.
const openMost = 256

// trap is a place where the next task of an activity stops.
type trap struct {
	activity string // the begin of a task's name
	point    point
	any      bool   // at any point
	name     string // of the exchange; empty: any
	// begin and part are of the name of a request to the object store; empty: any.
	begin, part string
}

// activityNames are the begins of tasks' names, by the words of scripts that differ.
var activityNames = map[string]string{
	"any": "", "owner": "log owner", "commits": "log commits", "background": "log background", "bodies": "log bodies",
	"session": "go",
}

// places are what the words of scripts stand for; a word that is not here is a failpoint's
// name.
var places = map[string]trap{
	"anywhere": {any: true}, "read": {point: atRead}, "write": {point: atWrite}, "sync": {point: atSync},
	"synced": {point: atDone, name: "synced"}, "names": {point: atNames}, "named": {point: atDone, name: "named"},
	"open": {point: atOpen}, "lake_open": {point: atLakeRead, name: "open lake table"}, "lake_read": {point: atLakeRead},
	"find": {point: atLakeRead, name: "find compaction"}, "write_files": {point: atLakeWrite, name: "write data files"},
	"write_deletes": {point: atLakeWrite, name: "write deletes"}, "lake_commit": {point: atLakeCommit},
	"lake_committed": {point: atDone, name: "lake commit"}, "maintain": {point: atLakeWrite, name: "maintain"},
	"drop_lake": {point: atLakeWrite, name: "drop lake table"}, "publish": {point: atPublish},
	"rest": {point: atQuery, name: "rest"}, "executed": {point: atQuery, name: "executed"},
	"append": {point: atQuery, name: "append"}, "connect": {point: atSource, name: "connect"},
	"discover": {point: atSource, name: "discover"}, "setup": {point: atSource, name: "setup"},
	"slot_created": {point: atSource, name: "slot created"}, "start_stream": {point: atSource, name: "start stream"},
	"stream": {point: atSource, name: "stream"}, "stream_part": {point: atSource, name: "stream part"},
	"backfill": {point: atSource, name: "backfill"}, "plan_copy": {point: atSource, name: "plan copy"},
	"receive": {point: atClient, name: "receive"}, "reply": {point: atClient, name: "reply"},
	"run": {point: atQuery, name: "run"}, "deliver": {point: atSource, name: "deliver"},
	"hold": {point: atSource, name: "hold"}, "define": {point: atSource, name: "define"},
	"describe": {point: atSource, name: "describe"}, "read_chunk": {point: atSource, name: "read chunk"}, "teardown": {point: atSource, name: "teardown"},
	"torn_down": {point: atSource, name: "torn down"}, "object": {point: atObject},
	"marker_put":     {point: atObject, begin: "put ", part: ".seg.commit "},
	"marker_was_put": {point: atDone, begin: "put ", part: ".seg.commit "},
	"body_put":       {point: atObject, begin: "put ", part: ".seg "}, "body_was_put": {point: atDone, begin: "put ", part: ".seg "},
	"fence":              {point: atObject, begin: "put " + logPrefix + "/fence "},
	"checkpoint":         {point: atObject, begin: "put " + logPrefix + "/checkpoint "},
	"fence_was_put":      {point: atDone, begin: "put " + logPrefix + "/fence "},
	"checkpoint_was_put": {point: atDone, begin: "put " + logPrefix + "/checkpoint "},
	"get":                {point: atObject, begin: "get "}, "list": {point: atObject, begin: "list "},
	"delete": {point: atObject, begin: "delete "},
}

// placeOf is what a word stands for.
func placeOf(word string) trap {
	if t, ok := places[word]; ok {
		return t
	}
	return trap{point: atFailpoint, name: word}
}

// catches says whether a task that is at a place is caught.
func (t *trap) catches(task *task, k point, name string) bool {
	return (t.any || t.point == k) && (t.name == "" || t.name == name) && strings.HasPrefix(name, t.begin) &&
		strings.Contains(name, t.part) && strings.HasPrefix(task.name, t.activity)
}

// arrive stops the current task if it is where a trap waits for it.
func (w *World) arrive(k point, name string) {
	if t := w.current; w.trap != nil && t != nil && w.trap.catches(t, k, name) {
		t.stopped, w.trap = true, nil
	}
}

// The bounds of the wait for a place, and of all that a script waits: fuzzed ones would wait
// for days.
const (
	waitMost   = 20 * time.Minute
	stopPoints = 6000
	stopTime   = 90 * time.Second
)

// stop lets everything go on until a task of the record's activity is at its place. There it
// stays.
func (w *World) stop(r script.Record) {
	word := r.Activity()
	name, ok := activityNames[word]
	if !ok {
		name = word
	}
	at := placeOf(r.Place())
	at.activity = name
	w.trap = &at
	begin, points, end := w.now, w.points+stopPoints, w.now.Add(min(stopTime, waitMost-w.waited))
	for w.trap != nil && w.violation == nil && w.points < points && w.now.Before(end) {
		w.goOn(going{points: 1, time: min(time.Second, end.Sub(w.now))})
	}
	w.waited += w.now.Sub(begin)
	if w.trap == nil {
		w.mark("stopped " + word + " at " + r.Place())
		w.say("  stopped")
	}
	w.trap = nil
}

// letGo lets the stopped tasks of an activity go on. The record's fault happens to them where
// they are, if it can.
func (w *World) letGo(r script.Record) {
	f := w.armed.fault
	w.armed = armed{}
	word := r.Activity()
	name, ok := activityNames[word]
	if !ok {
		name = word
	}
	for _, t := range w.tasks {
		if t.stopped && strings.HasPrefix(t.name, name) {
			t.stopped, t.fault = false, f
		}
	}
	if f != NoFault {
		w.goOn(going{points: 1, only: func(t *task) bool { return t.fault != NoFault }})
	}
}

// freeAll lets everything go on.
func (w *World) freeAll() {
	for _, t := range w.tasks {
		t.stopped = false
	}
}

// wait lets time pass, and everything go on as it likes.
func (w *World) wait(d time.Duration) {
	d = min(d, waitMost-w.waited)
	w.waited += d
	for end := w.now.Add(d); w.now.Before(end) && w.violation == nil; {
		before := w.now
		w.goOn(going{points: 2000, time: end.Sub(w.now)})
		if w.now.Equal(before) {
			return // somebody is always ready
		}
	}
}

// do executes one action; what it starts has not moved when it is done.
func (w *World) do(r script.Record) {
	a := r.Action()
	if w.doHost(a, r) || w.doWorld(a, r) {
		return
	}
	h := w.host(0)
	switch a {
	case script.AskQuery, script.AskHeld, script.AskTwice, script.SealSegment, script.TakeHold, script.MoveHold,
		script.ReleaseHold:
		h = w.named(r.Rand)
	}
	p := h.proc
	if p != nil && p.catalog == nil { // it stands by
		p = w.leader()
	}
	if p == nil || p.host.paused {
		w.mark("action without a host")
		return
	}
	w.doProcess(p, a, r)
}

// named is the host that a script's word stands for: one by its place, the one that has the
// log, one that stands by, or one that is paused.
func (w *World) named(code uint16) *host {
	for _, h := range w.hosts {
		p := h.proc
		switch {
		case code == 3 && p != nil && p == w.leader(), code == 5 && h.paused,
			code == 4 && p != nil && p.catalog == nil && !h.paused:
			return h
		}
	}
	return w.host(uint8(code))
}

// doHost executes what happens to a machine.
func (w *World) doHost(a script.Action, r script.Record) bool {
	h := w.named(r.Rand)
	switch a {
	case script.KillHost:
		w.crash(h, false, false)
	case script.CutPower:
		w.crash(h, true, false)
	case script.PauseHost:
		h.paused = true
		w.mark("host paused or resumed")
	case script.GoOnHost:
		h.paused = false
	default:
		return false
	}
	return true
}

// doWorld executes what happens around machines; the first host is meant.
func (w *World) doWorld(a script.Action, r script.Record) bool {
	h := w.hosts[0]
	switch a {
	case script.Nothing:
	case script.ClockAhead:
		h.skew += time.Duration(r.Rand) * time.Second
		w.mark("clock jumps ahead")
	case script.ClockBack:
		h.skew -= time.Duration(r.Rand) * time.Second
		w.mark("clock jumps back")
	case script.FillDisk:
		h.disk.SetSpace(int64(r.Rand) << 10)
		w.mark("disk full")
	case script.FreeDisk:
		h.disk.SetSpace(-1)
	case script.IdleSource:
		if w.own != nil {
			break
		}
		w.db.Idle()
		w.mark("idle position")
	case script.TakeOver:
		if w.objects != nil {
			w.takeover(uint8(r.Rand))
		}
	case script.DropSlot:
		if w.own != nil {
			break
		}
		w.db.DropSlot()
		w.mark("slot dropped")
	default:
		return false
	}
	return true
}

// doProcess starts what a user does.
func (w *World) doProcess(p *process, a script.Action, r script.Record) {
	table := catalog.SelectedTable{Schema: "s", Name: w.tables[int(r.Rand)%len(w.tables)].Name}
	switch a {
	case script.AskQuery, script.AskHeld, script.AskTwice:
		w.queries++
		q := &session{p: p, id: w.queries, held: a == script.AskHeld, queries: 1, again: a == script.AskTwice}
		if q.held {
			q.queries = 3
		}
		w.spawn(p, fmt.Sprintf("query %d", q.id), q.run)
	case script.CompactTable:
		w.compactTable(p, table.Name)
	case script.SealSegment:
		for _, l := range p.logs { // there is one pipeline
			w.spawn(p, "statement seal", func() { _ = l.Seal() })
		}
	case script.TakeHold:
		w.takeHold(p)
	case script.MoveHold:
		w.moveHold(p, 0)
	case script.ReleaseHold:
		w.releaseHold(p, 0)
	default:
		if w.own == nil { // nobody may act on the server's own pipeline
			w.doPipeline(p, a, table)
		}
	}
}

// doPipeline starts a user's statement on the pipeline.
func (w *World) doPipeline(p *process, a script.Action, table catalog.SelectedTable) {
	s := p.supervisor
	switch a {
	case script.ResetPipeline:
		w.execute(p, "reset", func(ctx context.Context) error { return s.Reset(ctx, pipelineName) })
	case script.ResyncTable:
		w.execute(p, "resync "+table.Name, func(ctx context.Context) error { return s.ResyncTable(ctx, pipelineName, table) })
	case script.DropTable:
		w.execute(p, "drop table "+table.Name, func(ctx context.Context) error { return s.DropTable(ctx, pipelineName, table) })
	case script.AddTable:
		w.execute(p, "add tables", func(ctx context.Context) error {
			_, err := s.AddTables(ctx, pipelineName, []catalog.SelectedTable{table})
			return err
		})
	case script.ResumeTable:
		w.execute(p, "resume table "+table.Name, func(ctx context.Context) error { return s.ResumeTable(ctx, pipelineName, table) })
	case script.RetryLetters:
		w.retryMeanwhile(p)
	case script.PausePipeline:
		w.execute(p, "pause", p.pausePipeline)
	case script.ResumePipeline:
		w.execute(p, "resume", p.resumePipeline)
	case script.SyncPipeline:
		w.execute(p, "sync", p.sync)
	}
}

// compactTable has the table of a name compacted whatever the thresholds say.
func (w *World) compactTable(p *process, name string) {
	snap := p.catalog.Snapshot()
	defer snap.Close()
	for _, t := range snap.AllTables() {
		if t.Name == name {
			w.mark("forced compaction")
			w.spawn(p, "statement compact", func() { _, _ = p.compactor.StepTable(p.ctx, t.ID, true) })
		}
	}
}

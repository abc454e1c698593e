package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// point is a kind of exchange with the world, at which a task may lose its turn and a fault
// may happen.
type point uint8

const (
	atRead point = iota
	atWrite
	atSync
	atNames // rename, remove, sync of a directory
	atOpen  // open, create, list, allocate, truncate
	atLakeRead
	atLakeWrite
	atLakeCommit
	atPublish
	atFailpoint
	atSource
	atQuery
	atObject // of the object store
	atDone   // after an effect, before its reply
	atClient // of a client's connection

	pointEnd
)

var pointNames = [pointEnd]string{
	"read", "write", "sync", "names", "open", "lake read", "lake write", "lake commit", "publish", "failpoint",
	"source", "query", "object", "done", "client",
}

// Fault is what the outside does wrong. The values are part of schedules.
type Fault uint8

// The faults.
const (
	NoFault       Fault = iota
	FailBefore          // error, and no effect
	FailAfter           // effect, and an error: the reply is lost
	Torn                // half of a write
	FailSync            // error, and what was to be written is gone
	FlipRead            // a flipped bit in what is read, once
	Misdirect           // other bytes of the same file are read, once
	FullDisk            // no space for a while
	Kill                // the process dies
	PowerCut            // the machine dies
	Late                // the exchange takes seconds
	Disconnect          // the source's connection ends
	LakeConflict        // somebody else says that it has committed to the lake table
	Conflict            // 409: the object store gives way to another write
	LostRequest         // a request is lost, and nobody knows
	LateWrite           // a write is under way when its caller has given up
	Duplicate           // a write arrives again, later
	Repeat              // a write happens twice, and the second answer counts
	Partly              // some objects are not deleted
	PartlyUnknown       // nobody knows whether some objects are deleted
	ShortPage           // a list comes in small pages
	Damaged             // a read notices damage
	StaleVersion        // a read gives a version that has gone
	KillAt              // the process dies at the next hit of a failpoint, be it later
	CutAt               // the machine does
	LostBackup          // the store does what it is asked to do with backups of a catalog, and answers nothing for a while

	faultEnd
)

var faultNames = [faultEnd]string{
	"none", "fail_before", "fail_after", "torn", "fail_sync", "flip_read", "misdirect", "full_disk", "kill",
	"power_cut", "late", "disconnect", "lake_conflict", "conflict", "lost_request", "late_write", "duplicate", "repeat",
	"partly", "partly_unknown", "short_page", "damaged", "stale_version",
	"kill_at", "cut_at", "lost_backup",
}

// String names the fault, as scripts do.
func (f Fault) String() string {
	if f >= faultEnd {
		return fmt.Sprintf("fault(%d)", uint8(f))
	}
	return faultNames[f]
}

func kinds(points ...point) (set uint32) {
	for _, p := range points {
		set |= 1 << p
	}
	return set
}

// everywhere is where a process can die.
const everywhere = 1<<pointEnd - 1

// faultPlaces are the points at which a fault can happen.
var faultPlaces = [faultEnd]uint32{
	FailBefore: kinds(atRead, atWrite, atSync, atNames, atOpen, atLakeRead, atLakeWrite, atLakeCommit, atPublish, atSource, atObject, atClient),
	FailAfter:  kinds(atWrite, atNames, atLakeCommit, atSource, atObject, atClient),
	Torn:       kinds(atWrite, atObject), FailSync: kinds(atSync), FlipRead: kinds(atRead, atObject),
	Misdirect: kinds(atRead, atObject),
	Conflict:  kinds(atObject), LostRequest: kinds(atObject), LateWrite: kinds(atObject), Duplicate: kinds(atObject),
	Repeat: kinds(atObject), Partly: kinds(atObject), PartlyUnknown: kinds(atObject), ShortPage: kinds(atObject),
	Damaged: kinds(atObject), StaleVersion: kinds(atObject), KillAt: kinds(atFailpoint), CutAt: kinds(atFailpoint),
	LostBackup: kinds(atFailpoint),
	FullDisk:   everywhere, Kill: everywhere, PowerCut: everywhere, Late: everywhere,
	Disconnect: kinds(atSource, atClient), LakeConflict: kinds(atLakeCommit),
}

// errInjected is the cause of every error that a fault makes.
var errInjected = errors.New("injected fault")

// armed is the fault that waits for its moment.
type armed struct {
	fault Fault
	after int // points at which it can happen that it lets pass
}

// at is where a task meets the world: it may lose its turn. The result is the fault that
// happens here; Kill and PowerCut have happened, and are errDead.
func (p *process) at(k point, name string) (Fault, error) {
	w := p.world
	w.points++
	if w.current != nil {
		w.note(uint64(w.current.id)<<8 | uint64(k))
		if w.verbose {
			w.say("%s %s %s", w.current.name, pointNames[k], name)
		}
	}
	w.arrive(k, name)
	t := w.current
	if err := w.park(nil, time.Time{}); err != nil || p.dead {
		return NoFault, errDead
	}
	if t != nil && t.fault != NoFault {
		return p.directedFault(t, k, name)
	}
	if f := w.ambush(k, name); f != NoFault {
		return p.strike(f, k, name)
	}
	a := &w.armed
	if a.fault == NoFault || faultPlaces[a.fault]&(1<<k) == 0 {
		return NoFault, nil
	}
	if a.after > 0 {
		a.after--
		return NoFault, nil
	}
	if misreads := a.fault == FlipRead || a.fault == Misdirect; misreads && w.current != nil {
		if w.current.misread {
			return NoFault, nil
		}
		w.current.misread = true
	}
	f := a.fault
	a.fault = NoFault
	return p.strike(f, k, name)
}

// directedFault is what a script has happen to a task where it was stopped.
func (p *process) directedFault(t *task, k point, name string) (Fault, error) {
	f := t.fault
	if t.fault = NoFault; faultPlaces[f]&(1<<k) == 0 {
		return NoFault, nil
	}
	return p.strike(f, k, name)
}

// lying is a crash that waits at a failpoint for as long as it takes.
type lying struct {
	fault Fault
	at    env.Failpoint
}

// ambush says whether the crash that waits is here.
func (w *World) ambush(k point, name string) Fault {
	if w.lying.fault == NoFault || k != atFailpoint || w.lying.at.String() != name {
		return NoFault
	}
	f := w.lying.fault
	w.lying.fault = NoFault
	w.mark("fault " + f.String())
	w.say("! %s at %s", f, name)
	if f == KillAt {
		return Kill
	}
	return PowerCut
}

// strike lets the faults happen that are not the caller's to execute.
func (p *process) strike(f Fault, k point, name string) (Fault, error) {
	w := p.world
	w.mark("fault " + f.String())
	w.mark("fault " + f.String() + " at " + pointNames[k])
	w.say("! %s at %s %s", f, pointNames[k], name)
	switch f {
	case Kill, PowerCut:
		if k == atFailpoint {
			w.mark("crash at failpoint " + name)
		}
		w.crash(p.host, f == PowerCut, false)
		return NoFault, errDead
	case FullDisk:
		p.host.disk.SetSpace(int64(w.rng.n(8 << 10)))
		w.mark("disk full")
		return NoFault, nil
	case Late:
		until := w.now.Add(time.Duration(1+w.rng.n(20)) * time.Second)
		if err := w.park(func() bool { return false }, until); err != nil {
			return NoFault, err
		}
		return NoFault, nil
	}
	p.faulted = true
	return f, nil
}

// injected is the error of a fault at a place.
func injected(f Fault, name string) error { return fmt.Errorf("%s: %w (%s)", name, errInjected, f) }

// muteTime is how long LostBackup lasts.
const muteTime = 5 * time.Second

// failpoints is a process's env.Failpoints.
type failpoints struct{ p *process }

var _ env.Failpoints = failpoints{}

// Hit implements env.Failpoints.
func (f failpoints) Hit(fp env.Failpoint) error {
	if fp == env.AfterUpdate {
		f.p.world.updated(f.p)
	}
	fault, err := f.p.at(atFailpoint, fp.String())
	if fault == LostBackup {
		f.p.mute = f.p.world.now.Add(muteTime)
	}
	return err
}

// exchange is at for exchanges that can only fail before or after their effect: do is the
// effect.
func (p *process) exchange(k point, name string, do func() error) error {
	f, err := p.at(k, name)
	if err != nil {
		return err
	}
	if f != NoFault && f != FailAfter {
		return injected(f, name)
	}
	if err := do(); err != nil {
		return err
	}
	if f == FailAfter {
		return injected(f, name)
	}
	return nil
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/objbackup"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/objstore"
	"github.com/skipprd/skipprd/wal/objstore/faultstore"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// objects is the object store that hosts share, and what is still on its way to it.
type objects struct {
	*memstore.Store
	version uint64
	ways    []*faultstore.Store
}

var _ check.Bytes = (*objects)(nil)

// Version implements check.Bytes.
func (o *objects) Version() uint64 { return o.version }

// Names implements check.Bytes.
func (o *objects) Names(prefix string) []string {
	out := make([]string, 0, 16)
	for name := range o.All() {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

// Read implements check.Bytes.
func (o *objects) Read(name string) ([]byte, bool) {
	got, err := o.Get(context.Background(), name, objstore.Range{})
	return got.Data, err == nil
}

const (
	logPrefix = "p1"
	backupKey = "catalog"
	leaseTTL  = 3 * time.Second
)

// storeConfig is that of the pipeline's log.
func (p *process) storeConfig(pipeline change.PipelineID) wal.Config {
	linger := time.Duration(-1)
	if l := p.world.cfg.c[byLinger] % 4; l > 0 {
		linger = time.Duration(l) * 50 * time.Millisecond
	}
	return wal.Config{
		Dir: p.logDir(pipeline), Pipeline: pipeline, GroupBytes: p.world.cfg.segmentBytes(), Prefix: logPrefix,
		Owner: p.host.name, Linger: linger, LeaseTTL: leaseTTL,
	}
}

// connectStore gives a process its way to the object store.
func (p *process) connectStore() {
	o := p.world.objects
	p.store = faultstore.New(o.Store, faultstore.Hooks{Before: p.beforeRequest, After: p.afterRequest})
	o.ways = append(o.ways, p.store)
}

// storeFaults are what faults do to requests.
var storeFaults = map[Fault]faultstore.Kind{
	FailBefore: faultstore.Refused, FailAfter: faultstore.LostReply, Torn: faultstore.Torn,
	FlipRead: faultstore.Flipped, Misdirect: faultstore.Misdirected, Conflict: faultstore.Conflicted,
	LostRequest: faultstore.LostRequest, LateWrite: faultstore.Late, Duplicate: faultstore.Duplicated,
	Repeat: faultstore.Repeated, Partly: faultstore.Partly, PartlyUnknown: faultstore.PartlyUnknown,
	ShortPage: faultstore.ShortPage, Damaged: faultstore.Damaged, StaleVersion: faultstore.StaleVersion,
}

// nameOf is what an exchange with the object store is called, if anybody reads that.
func (w *World) nameOf(op faultstore.Op) string {
	if w.out == nil && w.trap == nil {
		return ""
	}
	return op.String()
}

func (p *process) beforeRequest(_ context.Context, op faultstore.Op) faultstore.Fault {
	w := p.world
	f, err := p.at(atObject, w.nameOf(op))
	if err != nil {
		return faultstore.Fault{Kind: faultstore.Failed, Err: err}
	}
	if op.Verb == faultstore.Delete {
		for _, key := range op.Keys {
			w.emit(check.Removed{Name: key})
		}
	}
	kind := storeFaults[f]
	if f != NoFault && !op.Applies(kind) { // it waits for a request that it fits
		w.armed.fault = f
		return faultstore.Fault{}
	}
	if op.Write() {
		w.objects.version++
		w.dirty = true
	}
	return faultstore.Fault{Kind: kind, N: w.rng.next() >> 8, Key: op.Key + "x"}
}

func (p *process) afterRequest(_ context.Context, op faultstore.Op, _ error) faultstore.Fault {
	if !op.Write() {
		return faultstore.Fault{}
	}
	p.world.objects.version++
	p.world.dirty = true
	if _, err := p.at(atDone, p.world.nameOf(op)); err != nil {
		return faultstore.Fault{Kind: faultstore.LostReply, Err: err}
	}
	return faultstore.Fault{}
}

// deliver lets writes that are under way reach the store, or get lost: also those of the
// dead.
func (w *World) deliver() {
	if w.objects == nil {
		return
	}
	for _, way := range w.objects.ways {
		for range way.Late() {
			switch w.rng.n(6) {
			case 0:
				op, err := way.Deliver(context.Background(), 0)
				w.objects.version++
				w.dirty = true
				w.mark("late write arrives")
				w.say("  %s arrives late: %v", op, err)
			case 1:
				way.Drop(0)
				w.mark("late write is lost")
			}
		}
	}
}

// deliverAll ends what is under way.
func (w *World) deliverAll() {
	for pending := w.objects != nil; pending; {
		w.deliver()
		pending = false
		for _, way := range w.objects.ways {
			pending = pending || len(way.Late()) > 0
		}
	}
}

// stand waits until the log is free, or a user says that this host is to take it, and then
// leads.
func (p *process) stand() {
	cfg := p.storeConfig(pipelineID)
	for !p.seize {
		c, err := wal.NewCandidate(cfg, wal.Deps{Store: p.store, Clock: clock{p}})
		if err != nil {
			p.world.fail("BOOT", err.Error())
			return
		}
		for !p.seize && !p.dead {
			free, _, err := c.Step(p.ctx)
			if err == nil && free {
				p.seize = true
				p.world.mark("log is free")
				break
			}
			if err := (tasks{p}).Wait(p.ctx, leaseTTL/3, p.wake); err != nil {
				return
			}
		}
		if p.dead {
			return
		}
	}
	if err := p.lead(); err != nil && !p.dead {
		p.world.mark("host gives up to lead")
		p.world.say("  %s gives up: %v", p.host.name, err)
		p.stepDown()
	}
}

// lead begins with what the object store has.
func (p *process) lead() error {
	w := p.world
	w.say("  %s leads", p.host.name)
	kv := memkv.New()
	if _, first := w.objects.Read(backupKey); !first {
		from, err := w.template()
		if err != nil {
			return err
		}
		kv = from.Crash()
	}
	p.host.kv = memStore{kv}
	p.backup = objbackup.New(faultstore.New(w.objects.Store, faultstore.Hooks{Before: p.muted}), backupKey, p.ids)
	if err := p.openCatalog(); err != nil {
		return err
	}
	if err := p.catalog.Backup(p.ctx); err != nil {
		return err
	}
	return p.serve()
}

// guard is a backup store that notices when it has been taken over.
type guard struct {
	catalog.BackupStore
	p *process
}

// Write implements catalog.BackupStore. It does not park.
func (g guard) Write(image []byte) error {
	if g.p.dead {
		return errDead
	}
	if g.p.world.objects != nil {
		g.p.world.objects.version++
	}
	err := g.BackupStore.Write(image)
	if errors.Is(err, objbackup.ErrSuperseded) {
		g.p.world.mark("backup taken over")
		g.p.stepDown()
	}
	return err
}

// muted loses what the store answers while a backup is written of which nobody is to know.
func (p *process) muted(context.Context, faultstore.Op) faultstore.Fault {
	if !p.world.now.Before(p.mute) {
		return faultstore.Fault{}
	}
	p.world.mark("backup without an answer")
	return faultstore.Fault{Kind: faultstore.LostReply}
}

// fenceLake is the wal.Deps.FenceLake of a process: it is the log's from here on. Like the
// server it looks, after it has raised the log's epoch, whether it still leads: who took the
// lead since is going to raise it further, and what this one knows may be of before.
func (p *process) fenceLake(ctx context.Context, epoch segment.Epoch) error {
	if err := p.catalog.Backup(ctx); err != nil {
		return err
	}
	p.epoch = epoch
	return compact.FenceTables(ctx, p.catalog, warehouse{p}, pipelineID, epoch)
}

// tookOver notes that a process's take-over is complete: what earlier ones still do is void.
func (p *process) tookOver() {
	p.world.mark("log taken over")
	p.world.reign = max(p.world.reign, p.epoch)
	p.superseded = p.epoch < p.world.reign
	for _, h := range p.world.hosts {
		if q := h.proc; q != nil && q != p && q.epoch != 0 && q.epoch < p.epoch {
			q.superseded = true
		}
	}
}

// fenced has a process that was told so end some time later.
func (p *process) fenced(err error) {
	if errors.Is(err, wal.ErrFenced) {
		p.world.mark("writer fenced")
		p.stepDown()
	}
}

// stepDown has the process end soon: its next life stands by.
func (p *process) stepDown() {
	if p.ending || p.dead {
		return
	}
	p.ending = true
	p.world.spawn(p, "step down", func() {
		if err := (clock{p}).Sleep(p.ctx, time.Duration(200+p.world.rng.n(3000))*time.Millisecond); err == nil {
			p.world.crash(p.host, false, false)
		}
	})
}

// takeover has a standing host take the log.
func (w *World) takeover(arg uint8) {
	for i := range w.hosts {
		h := w.hosts[(int(arg)+i)%len(w.hosts)]
		if p := h.proc; p != nil && !h.paused && p.catalog == nil && !p.seize {
			p.seize = true
			select {
			case p.wake <- struct{}{}:
			default:
			}
			w.mark("take-over asked")
			w.say("  %s is to take over", h.name)
			return
		}
	}
}

// leader is the process that has the log, nil when none has.
func (w *World) leader() *process {
	var out *process
	for _, h := range w.hosts {
		p := h.proc
		if p == nil || p.catalog == nil || len(p.logs) == 0 || p.superseded {
			continue // or it does not know yet that another has come after it
		}
		if out == nil || p.epoch > out.epoch {
			out = p
		}
	}
	return out
}

// errNoLeader says that no host has the log.
var errNoLeader = fmt.Errorf("no host has the log")

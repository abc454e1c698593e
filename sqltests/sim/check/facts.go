package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// facts is what the checkers of a run share: the stores' bytes, parsed; what the lake was
// given; what each catalog showed when it was looked at last; and what was promised to
// whom. It is brought up to date once a step.
type facts struct {
	hosts  map[string]*hostFacts
	shared logBytes // of the object store
	// durable has, of a shared log, the epoch that committed each group, also when its segment
	// is gone: who has taken over may reclaim a group before its slow writer answers it.
	durable map[place]segment.Epoch
	oracle  *oracle
	// healing: what was refused is being taken in; healed: it has been.
	healing, healed bool
	lakes           map[change.TableID]*lakeFacts
	// owed are the slices of groups whose append was answered, and that the lake does not
	// have: the log must have them (A2).
	owed map[owedKey]*owedSlice
	// asked are the segments that were handed to a reclaim.
	asked map[segmentKey]bool
	// acked is the greatest position told to the source, by pipeline.
	acked map[change.PipelineID]int64
	holds map[holdKey]hold
	pins  map[int]*pinFacts // by query, the latest
	// lived are the slices that were ever live, with their generation; begins where tables
	// that were not copied begin.
	lived  map[owedKey]uint32
	begins map[lifeKey]int64
	// verdicts are of this step's executed pins.
	verdicts []*verdict
	full     bool
	thorough *thorough // nil: what is known need not be read again
	looks    []string  // hosts whose catalog is to be looked at in this step
	// sharedChanged and lakeChanged: by this step.
	sharedChanged, lakeChanged bool
}

type (
	owedKey struct {
		pipeline change.PipelineID
		ref      segment.SliceRef
	}
	segmentKey struct {
		pipeline change.PipelineID
		seq      segment.Seq
	}
	holdKey struct {
		host string
		name string
	}
)

type owedSlice struct {
	host  string
	table change.TableID
	// seen: A2 found it, and its segment is to be read again only when that has changed.
	seen bool
}

type hold struct {
	pipeline change.PipelineID
	at       segment.SliceRef
	since    time.Time
}

// hostFacts is what is known of a host.
type hostFacts struct {
	incarnation int
	log         logBytes
	// logChanged says that the bytes are others than at the last step.
	logChanged bool
	// looked says that the catalog was looked at in this step, and then was has what it
	// showed before; nil at the first look of a process.
	looked      bool
	now, before *catalogFacts
	// known are the slices that were ever live, by table, of its present generation.
	known map[change.TableID]*knownSlices
}

// knownSlices has, by slice, where the log ended when it was seen to be live first.
type knownSlices struct {
	generation uint32
	refs       map[segment.SliceRef]place
}

func newFacts() *facts {
	return &facts{
		hosts: map[string]*hostFacts{}, oracle: newOracle(), lakes: map[change.TableID]*lakeFacts{},
		durable: map[place]segment.Epoch{}, owed: map[owedKey]*owedSlice{}, asked: map[segmentKey]bool{}, acked: map[change.PipelineID]int64{},
		holds: map[holdKey]hold{}, pins: map[int]*pinFacts{}, lived: map[owedKey]uint32{}, begins: map[lifeKey]int64{},
	}
}

// update takes in a step.
func (f *facts) update(v *View) error {
	f.full = v.Drained || v.Step%fullEvery == 0 || slices.ContainsFunc(v.Events, processChanged)
	f.verdicts, f.lakeChanged, f.sharedChanged = nil, false, false
	f.looks = f.looks[:0]
	for _, e := range v.Events {
		if host := f.note(v, e); host != "" {
			f.looks = append(f.looks, host)
		}
	}
	if v.Objects != nil {
		var err error
		if f.sharedChanged, err = f.shared.update(v.Objects, "", f.full); err != nil {
			return err
		}
		f.noteDurable()
		if f.thorough != nil {
			if err := f.thorough.log(&f.shared, v.Objects); err != nil {
				return err
			}
		}
	}
	for _, h := range v.Hosts {
		if err := f.updateHost(v, h, slices.Contains(f.looks, h.Name)); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	f.settle(v)
	return f.judge(v)
}

// processChanged says that a process ended or began, so that everything is looked at.
func processChanged(e Event) bool {
	switch e.(type) {
	case Crashed, Opened:
		return true
	}
	return false
}

// note takes in an event. It returns the host whose catalog is to be looked at.
func (f *facts) note(v *View, e Event) string {
	switch e := e.(type) {
	case Committed:
		if f.asked[segmentKey{e.Pipeline, e.Group.Seq}] {
			return "" // a superseded writer answers late: the one that leads has let it go (R1)
		}
		for i := range e.Group.Slices {
			s := &e.Group.Slices[i]
			if l := f.lakes[s.Table]; l != nil && l.has(s.Ref) {
				continue // likewise, and that one has compacted it
			}
			f.owed[owedKey{e.Pipeline, s.Ref}] = &owedSlice{host: e.Host, table: s.Table}
		}
	case AckSent:
		f.acked[e.Pipeline] = max(f.acked[e.Pipeline], source.LSN(e.Position))
	case ReclaimAsked:
		for _, seq := range e.Seqs {
			f.asked[segmentKey{e.Pipeline, seq}] = true
		}
	case LakeCommitted:
		f.noteLake(e)
	case LakeDropped:
		if l := f.lakes[e.Table]; l != nil {
			l.anew()
		}
	case PinTaken:
		f.notePin(v, e)
	case HoldMoved:
		f.noteHold(v, e)
	case Crashed:
		f.noteCrash(e)
	case Updated:
		return e.Host
	case Published:
		return e.Host
	case Opened:
		return e.Host
	}
	return ""
}

// noteDurable takes in the groups that the last update of a shared log found.
func (f *facts) noteDurable() {
	if !f.sharedChanged {
		return
	}
	for _, seq := range f.shared.changed {
		s := f.shared.segs[seq]
		if s == nil || !s.committed(true) {
			continue
		}
		for i := range s.groups {
			f.durable[place{seq, s.groups[i].End}] = s.mark.Epoch
		}
	}
}

// reclaimed says whether a group that was durable in a shared log was handed to a reclaim.
func (f *facts) reclaimed(x Committed) bool {
	_, was := f.durable[place{x.Group.Seq, x.Group.End}]
	return was && f.asked[segmentKey{x.Pipeline, x.Group.Seq}]
}

func (f *facts) noteHold(v *View, e HoldMoved) {
	if e.Released {
		delete(f.holds, holdKey{e.Host, e.Name})
		return
	}
	f.holds[holdKey{e.Host, e.Name}] = hold{pipeline: e.Pipeline, at: e.At, since: v.Now}
}

// noteCrash forgets what died with a process.
func (f *facts) noteCrash(e Crashed) {
	for k := range f.holds {
		if k.host == e.Host {
			delete(f.holds, k)
		}
	}
	if h := f.hosts[e.Host]; h != nil {
		h.now, h.before = nil, nil
		h.known = map[change.TableID]*knownSlices{}
	}
}

func (f *facts) updateHost(v *View, h *Host, look bool) error {
	hf := f.hosts[h.Name]
	if hf == nil {
		hf = &hostFacts{known: map[change.TableID]*knownSlices{}}
		f.hosts[h.Name] = hf
	}
	if hf.incarnation != h.Incarnation {
		hf.incarnation, hf.now, hf.before = h.Incarnation, nil, nil
		look = true
	}
	hf.logChanged, hf.looked = false, false
	if h.Disk != nil && v.Objects == nil {
		var err error
		if hf.logChanged, err = hf.log.update(h.Disk, h.LogDir, f.full); err != nil {
			return err
		}
		if f.thorough != nil {
			if err := f.thorough.log(&hf.log, h.Disk); err != nil {
				return err
			}
		}
	}
	if h.Catalog == nil || h.State == Down || !look && (!f.full || hf.now == nil) {
		return nil
	}
	if err := hf.look(h.Catalog); err != nil {
		return err
	}
	for _, t := range hf.now.tables {
		if t.table.State == catalog.TableReady {
			f.begin(v, t.table)
		}
		for i := range t.fresh() {
			f.lived[owedKey{t.table.Pipeline, t.fresh()[i].Ref}] = t.fresh()[i].Generation
		}
	}
	if f.thorough != nil {
		return f.thorough.catalog(f, hf, h.Catalog)
	}
	return nil
}

// look reads the catalog.
func (hf *hostFacts) look(c *catalog.Catalog) error {
	now, err := readCatalog(c, hf.now)
	if err != nil {
		return err
	}
	for _, t := range now.tables {
		at := now.offset(t.table.Pipeline)
		hf.remember(t, place{at.Seq, at.End})
	}
	hf.before, hf.now, hf.looked = hf.now, now, true
	return nil
}

func (hf *hostFacts) remember(t *tableFacts, end place) {
	k, live := hf.known[t.table.ID], t.fresh()
	if k == nil || k.generation != t.table.Generation {
		k, live = &knownSlices{generation: t.table.Generation, refs: map[segment.SliceRef]place{}}, t.live
		hf.known[t.table.ID] = k
	}
	for i := range live {
		if _, ok := k.refs[live[i].Ref]; !ok {
			k.refs[live[i].Ref] = end
		}
	}
}

// settle takes out of what is owed the slices that the lake has, and those of tables that
// are gone or were begun anew.
func (f *facts) settle(v *View) {
	looked := false
	for _, h := range f.hosts {
		looked = looked || h.looked
	}
	if !looked && !f.lakeChanged {
		return
	}
	for k, s := range f.owed {
		if l := f.lakes[s.table]; l != nil && l.has(k.ref) {
			delete(f.owed, k)
			continue
		}
		if f.letGo(v, k, s) {
			delete(f.owed, k)
		}
	}
}

// letGo says whether a slice's table is gone or was begun anew, in a catalog that has got as
// far as the slice: that of the host that appended it or, of a shared log, of whoever leads.
func (f *facts) letGo(v *View, k owedKey, s *owedSlice) bool {
	for _, host := range v.Hosts {
		h := f.hosts[host.Name]
		if h == nil || !h.looked {
			continue
		}
		if host.Name != s.host && (v.Objects == nil || host.Fenced || host.State != Up || h.now.offset(k.pipeline).Seq < k.ref.Seq) {
			continue
		}
		t := h.now.table(s.table)
		if generation, lived := f.lived[k]; t == nil || lived && t.table.Generation != generation {
			return true
		}
	}
	return false
}

// logOf is the log as durable for a host.
func (f *facts) logOf(v *View, host string) *logBytes {
	if v.Objects != nil {
		return &f.shared
	}
	if h := f.hosts[host]; h != nil {
		return &h.log
	}
	return &logBytes{}
}

// host finds a host of the view.
func (v *View) host(name string) *Host {
	for _, h := range v.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// logChanged says whether the log of a host is another than at the last step.
func (f *facts) logChanged(v *View, h *Host) bool {
	if v.Objects != nil {
		return f.sharedChanged
	}
	return f.hosts[h.Name].logChanged
}

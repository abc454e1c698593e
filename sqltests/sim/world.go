package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/skipprd/skipprd/lake/memlake"
	"github.com/skipprd/skipprd/sqltests/sim/check"
	"github.com/skipprd/skipprd/sqltests/sim/script"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/objstore/memstore"
	"github.com/skipprd/skipprd/wal/segment"
)

// World is one run. Not safe for concurrent use: one thing happens at a time.
type World struct {
	cfg     settings
	now     time.Time
	hosts   []*host
	lake    Lake
	objects *objects      // nil: logs are on disks
	reign   segment.Epoch // of the latest take-over that is complete
	db      *source.DB
	tables  []*source.Table
	// own is nil when the source is another system. pipeline is the only pipeline's name.
	own      *ownWorld
	pipeline string
	tasks    []*task
	timers   []*timer
	current  *task
	trap     *trap // of the script
	// open are the changes of the script's open transaction.
	open   []script.Record
	waited time.Duration // by the script
	graves []*process
	idle   []*coroutine

	taskCount, ended, queries int
	// points is how many exchanges there were, steps how often checkers looked.
	points, steps int
	// rng is the record's own.
	rng   random
	armed armed
	lying lying
	// loadAt is when the source has a transaction of its own accord next.
	loadAt time.Time
	// slow is how many readers there are for whom the source stays busy.
	slow int
	// dirty: something durable has changed since the checkers looked.
	dirty bool

	view      check.View
	suite     *check.Suite
	violation *check.Violation
	hash      uint64
	marks     map[string]int
	out       io.Writer
	verbose   bool
	// serial makes new keys and values.
	serial int64
}

// origin is when every world begins.
var origin = time.Unix(1_700_000_000, 0).UTC()

// The parameters of FNV-1a over 64-bit words.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

// note adds a number to the trace.
func (w *World) note(n uint64) { w.hash = (w.hash ^ n) * hashPrime }

func (w *World) noteText(s string) {
	for i := range len(s) {
		w.note(uint64(s[i]))
	}
}

// say adds a line to the trace that people read, and to the hash.
func (w *World) say(format string, args ...any) {
	if w.out == nil {
		return
	}
	fmt.Fprintf(w.out, "%8.3f %5d  ", w.now.Sub(origin).Seconds(), w.steps)
	fmt.Fprintf(w.out, format, args...)
	fmt.Fprintln(w.out)
}

// emit tells the checkers of an event, unless who reports it is dead.
func (w *World) emit(ev check.Event) {
	if w.current != nil && w.current.dead() {
		if _, crash := ev.(check.Crashed); !crash {
			return
		}
	}
	w.view.Events = append(w.view.Events, ev)
	w.noteEvent(ev)
}

// noteEvent adds what tells an event from others to the trace.
func (w *World) noteEvent(ev check.Event) {
	switch ev := ev.(type) {
	case check.Committed:
		w.note(1)
		w.note(uint64(ev.Group.Seq)<<32 | uint64(ev.Group.End))
		w.say("= committed %d:%d position %s, %d slices", ev.Group.Seq, ev.Group.End, ev.Group.Position, len(ev.Group.Slices))
	case check.AckSent:
		w.note(2)
		w.noteText(string(ev.Position))
		w.say("= acknowledged %s", ev.Position)
	case check.ReclaimAsked:
		w.note(3)
		for _, s := range ev.Seqs {
			w.note(uint64(s))
		}
		w.say("= reclaim of %v", ev.Seqs)
	case check.Removed:
		w.note(4)
		w.noteText(ev.Name)
	case check.LakeCommitted:
		w.note(5)
		w.noteText(ev.Commit.CompactionID)
		w.say("= lake commit of table %d, slices %v, done before %v", ev.Table, ev.Commit.Slices, ev.Head == nil)
	case check.Updated:
		w.note(6)
	case check.Published:
		w.note(7)
		w.note(uint64(len(ev.Groups)))
	case check.PinTaken:
		w.note(8)
		w.note(uint64(ev.Query))
		w.say("= query %d pins position %s", ev.Query, ev.Pin.Position)
		if w.verbose {
			w.sayPin(&ev.Pin)
		}
	case check.PinExecuted:
		w.note(9)
		w.noteResults(ev)
	case check.QueryEnded:
		w.note(10)
		w.note(uint64(ev.Repeats))
		w.say("= query %d ends: %v", ev.Query, ev.Err)
	case check.HoldMoved:
		w.note(11)
	case check.Statement:
		w.note(12)
		w.noteText(ev.Text)
		w.say("= statement %s ends: %v", ev.Text, ev.Err)
	case check.Crashed:
		w.note(13)
	case check.Opened:
		w.note(14)
		w.say("= log of %s open, epoch %d: %v", ev.Host, ev.Epoch, ev.Err)
	}
}

func (w *World) sayPin(p *check.Pin) {
	for _, t := range p.Tables {
		w.say("    %s %s: snapshot %d, %d rows", t.Table.Name, t.Table.State, t.Lake.Snapshot, t.Lake.Rows)
		for i := range t.Live {
			s := &t.Live[i]
			w.say("      slice %s version %d, %d rows, tokens %d to %d, truncate %v, copy %v", s.Ref, s.SchemaVersion,
				s.Rows, s.Counts.MinToken, s.Counts.MaxToken, s.Truncate, s.Backfill)
		}
	}
}

func (w *World) noteResults(ev check.PinExecuted) {
	rows := 0
	for _, r := range ev.Results {
		rows += r.Digest.Rows
		w.note(r.Digest.Sum)
	}
	w.say("= query %d executed, again %v: %d rows, %v", ev.Query, ev.Again, rows, ev.Err)
}

// fail notes the first violation.
func (w *World) fail(label, detail string) {
	if w.violation == nil {
		w.violation = &check.Violation{Label: label, Step: w.steps, Detail: detail}
		w.say("VIOLATION %s: %s", label, detail)
	}
}

// look has the checkers look, if something has happened.
func (w *World) look() {
	if len(w.view.Events) == 0 && !w.dirty || w.violation != nil {
		return
	}
	w.steps++
	w.refresh()
	w.dirty = false
	if w.suite != nil {
		if v := w.suite.Check(&w.view); v != nil {
			w.fail(v.Label, v.Detail)
		}
	}
	w.view.Events = w.view.Events[:0]
}

// refresh brings the view up to date.
func (w *World) refresh() {
	v := &w.view
	v.Step, v.Now = w.steps, w.now
	v.Source.Confirmed, v.Source.Start, v.Source.Slot = w.db.Confirmed()
	if w.own != nil {
		v.Source.Held = w.own.ledger.Held
	}
	for i, h := range w.hosts {
		c := v.Hosts[i]
		c.Incarnation, c.Disk = h.incs, h.disk.Durable()
		c.Catalog, c.State = nil, check.Down
		if h.proc == nil {
			continue
		}
		c.Catalog, c.State = h.proc.catalog, check.Opening
		if len(h.proc.logs) > 0 {
			c.State = check.Up
		}
		if h.paused {
			c.State = check.Paused
		}
		c.Epoch, c.Fenced = 0, h.proc.superseded
		if len(h.proc.logs) > 0 {
			c.Epoch = h.proc.epoch
		}
	}
}

// newWorld makes the world of a schedule.
func newWorld(c Config) (*World, error) {
	s := c.Schedule
	w := &World{now: origin, lake: memlake.New(), marks: map[string]int{}, hash: hashStart}
	if c.Lake != nil {
		var err error
		if w.lake, err = c.Lake(worldClock{w}, &ids{random{s.Seed ^ 0x1a4e}}); err != nil {
			return nil, err
		}
	}
	w.cfg = settingsOf(s)
	w.db = source.NewDB(func() time.Time { return w.now })
	w.rng = random{s.Seed}
	if w.cfg.busy() {
		w.loadAt = w.now.Add(loadInterval)
	}
	w.pipeline = pipelineName
	if s.Own {
		if err := w.beginOwn(); err != nil {
			return nil, err
		}
	} else {
		w.createTables()
	}
	w.view.Source = &check.Source{History: &w.db.History}
	kv, err := w.newStore(c.Pebble)
	if err != nil {
		return nil, err
	}
	names := []string{"a"}
	if c.Store {
		names = []string{"a", "b", "c"}
		w.objects = &objects{Store: memstore.New()}
		w.view.Objects = w.objects
	}
	for _, name := range names {
		w.hosts = append(w.hosts, newHost(w, name, kv))
		w.view.Hosts = append(w.view.Hosts, &check.Host{Name: name, LogDir: (&process{}).logDir(1)})
	}
	return w, nil
}

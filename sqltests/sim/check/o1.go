package check

import (
	"fmt"

	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// o1 checks "O1 An offset is never ahead of the committed log, never regresses, across
// reopen too; the acknowledged position is the minimum over tables".
type o1 struct {
	f *facts
	// answered is how far appends were answered, by pipeline.
	answered map[change.PipelineID]answered
}

type answered struct {
	place place
	lsn   int64
}

func newO1(f *facts) *o1 { return &o1{f, map[change.PipelineID]answered{}} }

// Label implements Checker.
func (*o1) Label() string { return "O1" }

// Check implements Checker.
func (c *o1) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case Committed:
			c.note(x)
		case AckSent:
			if err := c.minimum(x); err != nil {
				return err
			}
		}
	}
	for _, h := range v.Hosts {
		if hf := c.f.hosts[h.Name]; hf.looked && h.State == Up && !h.Fenced {
			if err := c.host(v, h, hf); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
		}
	}
	return nil
}

func (c *o1) note(x Committed) {
	a := c.answered[x.Pipeline]
	if p := (place{x.Group.Seq, x.Group.End}); a.place.less(p) {
		a.place = p
	}
	a.lsn = max(a.lsn, source.LSN(x.Group.Position))
	c.answered[x.Pipeline] = a
}

// minimum: no table of the pipeline is behind what is acknowledged.
func (c *o1) minimum(x AckSent) error {
	hf := c.f.hosts[x.Host]
	if hf == nil || hf.now == nil {
		return nil
	}
	for _, f := range hf.now.tables {
		t := f.table
		if t.Pipeline == x.Pipeline && t.StoppedAt != "" && source.LSN(x.Position) > source.LSN(t.StoppedAt) {
			return fmt.Errorf("acknowledged %s, table %s.%s is at %s", x.Position, t.Schema, t.Name, t.StoppedAt)
		}
	}
	return nil
}

func (c *o1) host(v *View, h *Host, hf *hostFacts) error {
	l := c.f.logOf(v, h.Name)
	for i := range hf.now.pipelines {
		id, at := hf.now.pipelines[i].id, hf.now.pipelines[i].offset
		have := place{at.Seq, at.End}
		if l.last.less(have) && l.segs[at.Seq] != nil {
			return fmt.Errorf("offset of pipeline %d is %d:%d, its log ends at %d:%d", id, at.Seq, at.End, l.last.seq, l.last.end)
		}
		a := c.answered[id]
		if have.less(a.place) || source.LSN(at.Position) < a.lsn {
			return fmt.Errorf("offset of pipeline %d is %d:%d at %q, answered was %d:%d at %d", id, at.Seq, at.End, at.Position,
				a.place.seq, a.place.end, a.lsn)
		}
	}
	return nil
}

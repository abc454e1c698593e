package check

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// l1 checks "L1 When faults stop, the log drains to empty and the offsets reach the
// source's end within a bounded number of steps".
type l1 struct{ f *facts }

func newL1(f *facts) *l1 { return &l1{f} }

// Label implements Checker.
func (*l1) Label() string { return "L1" }

// Check implements Checker.
func (c *l1) Check(v *View) error {
	if v.Stuck {
		return errors.New("the world did not come to rest")
	}
	if !v.Drained {
		return nil
	}
	for _, h := range v.Hosts {
		hf := c.f.hosts[h.Name]
		if h.State != Up || h.Fenced || hf.now == nil {
			continue
		}
		if err := c.rest(v, hf); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	return nil
}

func (c *l1) rest(v *View, hf *hostFacts) error {
	stopped := false
	for _, t := range hf.now.tables {
		if t.table.State == catalog.TableStopped {
			if strings.HasSuffix(t.table.Reason, ingest.ReasonRowUnknown) {
				return fmt.Errorf("table %s.%s stopped: %s", t.table.Schema, t.table.Name, t.table.Reason)
			}
			stopped = true
			continue
		}
		if t.table.State != catalog.TableReady {
			return fmt.Errorf("table %s.%s is %s", t.table.Schema, t.table.Name, t.table.State)
		}
		if n := len(t.live); n > 0 {
			return fmt.Errorf("table %s.%s has %d live slices, the first %s", t.table.Schema, t.table.Name, n, t.live[0].Ref)
		}
	}
	for _, p := range hf.now.pipelines {
		if s := p.segments; len(s) > 0 && s[0].Seq < p.offset.Seq && !stopped {
			return fmt.Errorf("segment %d is not reclaimed, the log ends in %d", s[0].Seq, p.offset.Seq)
		}
	}
	h := v.Source.History
	if len(h.Txns) == 0 || len(hf.now.pipelines) == 0 || v.Source.Slot == 0 {
		return nil
	}
	end := h.Txns[len(h.Txns)-1].LSN
	for _, p := range hf.now.pipelines {
		if source.LSN(p.offset.Position) < end && v.Source.Start < end {
			return fmt.Errorf("pipeline %d is at %q, the source at %d", p.id, p.offset.Position, end)
		}
	}
	if v.Source.Confirmed < end && !stopped {
		return fmt.Errorf("acknowledged up to %d, the source is at %d", v.Source.Confirmed, end)
	}
	return nil
}

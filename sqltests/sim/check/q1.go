package check

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// q1 checks "Q1 A query whose watermark is X returns exactly the changes below X; X is
// never below what was acknowledged when it planned, nor below an earlier pin of its
// session, nor below a position that it has waited for". Rows are compared with the oracle; what another label explains better is
// reported there.
type q1 struct {
	f *facts
	// seen is the greatest watermark of a pin, by pipeline.
	seen map[change.PipelineID]int64
}

func newQ1(f *facts) *q1 { return &q1{f, map[change.PipelineID]int64{}} }

// Label implements Checker.
func (*q1) Label() string { return "Q1" }

// Check implements Checker.
func (c *q1) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(PinTaken)
		if !ok || len(x.Pin.Tables) == 0 {
			continue
		}
		if h := v.host(x.Host); h == nil || h.Fenced || h.State == Opening {
			continue
		}
		id, at := x.Pin.Tables[0].Table.Pipeline, source.LSN(x.Pin.Position)
		if acked := c.f.acked[id]; at < acked && v.Source.Start < acked {
			return fmt.Errorf("query %d is as of %d, acknowledged was %d", x.Query, at, acked)
		}
		if at < c.seen[id] {
			return fmt.Errorf("query %d is as of %d, an earlier one was as of %d", x.Query, at, c.seen[id])
		}
		c.seen[id] = at
		if err := lacks(v.Source.History, x, at); err != nil {
			return fmt.Errorf("query %d: %w", x.Query, err)
		}
		if err := ahead(v.Source.History, x.Pin, at); err != nil {
			return fmt.Errorf("query %d: %w", x.Query, err)
		}
	}
	for name, h := range c.f.hosts {
		if err := answers(h); err != nil {
			return fmt.Errorf("host %s: %w", name, err)
		}
	}
	return c.f.of(c.Label())
}

// lacks makes sure that a pin has what its session has waited for, in the log or in copies.
func lacks(h *source.History, x PinTaken, at int64) error {
	if x.Awaited <= at {
		return nil
	}
	until := h.Until(x.Awaited)
	for n := len(until) - 1; n >= 0 && until[n].LSN > at; n-- {
		for _, p := range x.Pin.Tables {
			t := p.Table
			if source.LSN(t.Backfill.Horizon) >= until[n].LSN || !slices.Contains(x.In, t.SourceOID) {
				continue
			}
			if slices.ContainsFunc(until[n].Changes, func(c source.Change) bool { return c.Table.OID == t.SourceOID }) {
				return fmt.Errorf("it waited for %d, is as of %d, and lacks transaction %d of table %s", x.Awaited, at, until[n].LSN, t.Name)
			}
		}
	}
	return nil
}

// ahead makes sure that no table of a pin is as of a later moment than the pin: that its copy
// saw no transaction which the others do not have.
func ahead(h *source.History, p Pin, at int64) error {
	pinned := map[uint32]bool{}
	for i := range p.Tables {
		pinned[p.Tables[i].Table.SourceOID] = true
	}
	for i := range p.Tables {
		t := p.Tables[i].Table
		until := h.Until(source.LSN(t.Backfill.Horizon))
		for n := len(until) - 1; n >= 0 && until[n].LSN > at; n-- {
			if slices.ContainsFunc(until[n].Changes, func(c source.Change) bool { return pinned[c.Table.OID] }) {
				return fmt.Errorf("table %s is as of its copy, %s, with transaction %d, the pin as of %d",
					t.Name, t.Backfill.Horizon, until[n].LSN, at)
			}
		}
	}
	return nil
}

// answers makes sure that a table which answered goes on to, in the same place or in that
// of its copy, unless it was dropped, resumed from where it stopped, or all begin anew.
func answers(h *hostFacts) error {
	if !h.looked || h.before == nil || h.now == nil {
		return nil
	}
	now, kept := map[change.TableID]*catalog.Table{}, 0
	for _, t := range h.now.tables {
		if t.table.CopyOf == 0 {
			now[t.table.Face()] = t.table
		}
	}
	var lost *catalog.Table
	for _, b := range h.before.tables {
		t := now[b.table.Face()]
		if b.table.CopyOf != 0 || !b.table.Answers() || t == nil {
			continue
		}
		switch {
		case t.Answers():
			kept++
		case t.Generation > b.table.Generation:
			lost = t
		}
	}
	if lost != nil && kept > 0 {
		return fmt.Errorf("table %s answered, and does not while it is copied anew", lost.Name)
	}
	return nil
}

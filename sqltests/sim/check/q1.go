package check

import (
	"fmt"

	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// q1 checks "Q1 A query whose watermark is X returns exactly the changes below X; X is
// never below what was acknowledged when it planned, nor below an earlier pin of its
// session". Rows are compared with the oracle; what another label explains better is
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
	}
	return c.f.of(c.Label())
}

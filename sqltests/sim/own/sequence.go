package own

import (
	"context"
	"fmt"

	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/wal/change"
)

// sequenceFate is what is known of the one sequence that clients draw from. Used by one goroutine.
type sequenceFate struct {
	// given are the values given since it began anew, floor is the last before them, and exact
	// the first of them if nothing may be left out.
	given        map[int64]bool
	floor, exact int64
	// era counts how often it began anew, draws the draws that have ended; setting and drawing
	// are the calls under way.
	era, draws       int
	setting, drawing int
}

// forget has the sequence begin anew, nobody knows where.
func (f *sequenceFate) forget() {
	f.era++
	clear(f.given)
	f.floor, f.exact = 0, 0
}

// Sequences implements planner.OwnTables.
func (o *session) Sequences() planner.Sequences {
	return recordingSequences{o.Tables.Sequences(), o.client}
}

// recordingSequences notes the values that clients are given.
type recordingSequences struct {
	planner.Sequences
	client *Client
}

// Draw implements planner.Sequences.
func (r recordingSequences) Draw(ctx context.Context, id change.TableID, n int64) ([]sequence.Range, error) {
	c, f := r.client, &r.client.ledger.sequence
	if f.drawing > 0 {
		f.exact = 0
	}
	era, st, s := f.era, c.sent, c.server
	f.drawing++
	out, err := r.Sequences.Draw(ctx, id, n)
	f.drawing--
	f.draws++
	if err != nil || st == nil || s == nil || !s.hooks.Alive() {
		return out, err
	}
	known := era == f.era && f.setting == 0 && s.hooks.Leads()
	if known && f.exact != 0 && out[0].First != f.exact {
		c.ledger.Fail(labelValue, fmt.Sprintf("the first value behind setval is %d, not %d", out[0].First, f.exact))
	}
	for _, part := range out {
		for i := range part.Count {
			v := part.At(i)
			st.drawn = append(st.drawn, v)
			switch {
			case !known:
			case f.given[v]:
				c.ledger.Fail(labelValue, fmt.Sprintf("value %d is given again", v))
			case v <= f.floor:
				c.ledger.Fail(labelValue, fmt.Sprintf("value %d is given, and the sequence was set to %d", v, f.floor))
			default:
				f.given[v] = true
			}
		}
	}
	if known {
		f.exact = 0
	}
	s.hooks.Mark("values drawn")
	return out, nil
}

// Set implements planner.Sequences.
func (r recordingSequences) Set(ctx context.Context, id change.TableID, value int64, called bool) error {
	f, s := &r.client.ledger.sequence, r.client.server
	f.forget()
	era, draws := f.era, f.draws
	f.setting++
	err := r.Sequences.Set(ctx, id, value, called)
	f.setting--
	alone := era == f.era && f.setting == 0
	f.forget()
	if err != nil || !alone || s == nil || !s.hooks.Alive() || !s.hooks.Leads() {
		return err
	}
	s.hooks.Mark("sequence set")
	if f.floor = value; !called {
		f.floor--
	}
	if f.drawing == 0 && draws == f.draws {
		f.exact = f.floor + 1
	}
	return nil
}

package verify

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// Reworked compares tables by themselves that were rewritten at the source as one of their
// columns was changed (catalog.Table.Reworked): ALTER … TYPE may have given older rows other
// values, which the stream does not tell, or, as a rule, the same. One whose rows differ is
// copied anew. What it finds is durable in the catalog; what a death interrupts begins
// again. Used by one goroutine.
type Reworked struct {
	Comparer *Comparer
	// Telling is told the share of a table that is compared, negative when that is over.
	Telling func(p change.PipelineID, table change.TableID, share float64)
	Log     *slog.Logger
	// Rest is how long a table is left alone that could not be compared; twice as long after
	// each further time, at most 32 times.
	Rest time.Duration

	tries map[change.TableID]try
}

// try is a comparison that came to nothing.
type try struct {
	at    time.Time
	times int
	// here counts those that failed for the table's own sake.
	here int
}

// hereMost is how often a table may refuse to be compared before it is copied anew unseen.
const hereMost = 3

// Step compares one table, if any is due.
func (r *Reworked) Step(ctx context.Context) (more bool, err error) {
	p, t := r.due()
	if t == nil {
		return false, nil
	}
	outcome, why := r.compare(ctx, p, t)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	tried := r.tries[t.ID]
	tried.at, tried.times = r.Comparer.Clock.Now(), tried.times+1
	if outcome == Skipped {
		if ofTable(why) {
			tried.here++
		}
		r.Log.Warn("rewritten table not compared", env.KeyPipeline, p.Name, env.KeyTable, t.Schema+"."+t.Name, env.KeyError, why)
		if tried.here < hereMost {
			if r.tries == nil {
				r.tries = map[change.TableID]try{}
			}
			r.tries[t.ID] = tried
			return true, nil
		}
		outcome = Differs // or it would stay in doubt for good
	}
	delete(r.tries, t.ID)
	r.Log.Info("rewritten table compared", env.KeyPipeline, p.Name, env.KeyTable, t.Schema+"."+t.Name, "outcome", string(outcome))
	return true, r.Comparer.Catalog.Update(ctx, func(txn *catalog.Txn) error { return settle(txn, t, outcome) })
}

// ofTable says that it is for the table's own sake that it was not compared, and will be so again.
func ofTable(why error) bool {
	var refusal *Refusal
	var skip *SkipError
	switch {
	case errors.As(why, &refusal), errors.Is(why, ingest.ErrSourceUnavailable):
		return false
	case errors.As(why, &skip):
		return !skip.Passes
	}
	return true
}

// due is a table to compare now, nil for none.
func (r *Reworked) due() (*catalog.Pipeline, *catalog.Table) {
	snap := r.Comparer.Catalog.Snapshot()
	defer snap.Close()
	for _, p := range snap.Pipelines() {
		if !ingest.Compares(p) {
			continue
		}
		for _, t := range snap.Tables(p.ID) {
			if compares(t) && snap.CopyFor(t.ID) == nil && !r.Comparer.Clock.Now().Before(r.until(t.ID)) {
				return p, t
			}
		}
	}
	return nil, nil
}

func compares(t *catalog.Table) bool {
	return t.Reworked() && t.State == catalog.TableReady && t.Away == ""
}

func (r *Reworked) until(id change.TableID) time.Time {
	tried, ok := r.tries[id]
	if !ok {
		return time.Time{}
	}
	return tried.at.Add(r.Rest << min(tried.times-1, 5))
}

// compare says whether a table is as at the source, or Skipped, and why that is not known.
func (r *Reworked) compare(ctx context.Context, p *catalog.Pipeline, t *catalog.Table) (State, error) {
	if r.Telling != nil {
		r.Telling(p.ID, t.ID, 0)
		defer r.Telling(p.ID, t.ID, -1)
	}
	lines, err := r.Comparer.compareOne(ctx, p.Name, t, func(share float64) {
		if r.Telling != nil {
			r.Telling(p.ID, t.ID, share)
		}
	})
	if err != nil {
		return Skipped, err
	}
	outcome, why := Equal, error(nil)
	for _, l := range lines {
		switch l.State {
		case Differs:
			return Differs, nil
		case Skipped:
			outcome, why = Skipped, &SkipError{Reason: l.Detail, Passes: l.passes}
		}
	}
	return outcome, why
}

// freezeMost is how long transactions at the source are waited for, during which nothing of
// the pipeline goes into the lake.
const freezeMost = time.Minute

// waitMost is how long a pipeline may take to reach the position of a comparison.
const waitMost = 10 * time.Minute

// compareOne compares one table, without a look for the keys that differ.
func (c *Comparer) compareOne(ctx context.Context, pipeline string, t *catalog.Table, share func(float64)) ([]Line, error) {
	p, err := c.running(pipeline)
	if err != nil {
		return nil, err
	}
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	began := c.Clock.Now()
	perSecond, _ := strconv.ParseInt(p.Options["backfill_rows_per_second"], 10, 64) // checked when it was set; 0: unlimited
	s, err := c.freeze(inner, p, Request{
		Pipeline: pipeline, Tables: []catalog.SelectedTable{{Schema: t.SourceSchema, Name: t.SourceName}}, Wait: waitMost, RowsPerSecond: perSecond,
	}, func(string) {
		switch gone := c.gone(p); {
		case gone != nil:
			end(gone)
		case c.Clock.Since(began) > freezeMost:
			end(&Refusal{Kind: NotNow, Message: "transactions are open at the source, whose end a comparison waits for"})
		}
	})
	if err != nil { // nothing of the table was read
		return nil, &Refusal{Kind: NotNow, Message: err.Error(), Cause: err}
	}
	defer s.close()
	if len(s.tables) != 1 || s.tables[0].ID != t.ID {
		return nil, &Refusal{Kind: NotNow, Message: "another table has its name"}
	}
	return Run(ctx, s.tables, s.frozen, s.here, Options{RangesOnly: true}, func(_ string, done float64) {
		s.keeper.keep(c.Clock.Now())
		share(done)
	})
}

// settle makes the outcome of a comparison durable, unless the table was copied anew or
// rewritten again meanwhile.
func settle(txn *catalog.Txn, was *catalog.Table, outcome State) error {
	t, err := txn.TableByID(was.ID)
	if errors.Is(err, catalog.ErrTableNotFound) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case !compares(t) || copiedAt(t) != copiedAt(was):
		return nil
	case outcome == Differs:
		return ingest.ReworkedDiffers(txn, t.ID)
	}
	t.Compared = was.Files.Reworked
	return txn.PutTable(t)
}

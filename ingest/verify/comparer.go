package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// Comparer compares pipelines with their sources: it brings both sides to one position.
// Safe for concurrent use.
type Comparer struct {
	Catalog   *catalog.Catalog
	Pipelines Pipelines
	Lake      Lake
	Mirror    Mirror
	Clock     env.Clock
}

// Pipelines are those of a server. Safe for concurrent use.
type Pipelines interface {
	// OpenSource makes a pipeline's source, which the caller closes. One that implements
	// Freezer can be compared.
	OpenSource(ctx context.Context, p *catalog.Pipeline) (ingest.Source, error)
	// Await returns when everything of before a position can be seen, or with ctx's cause;
	// an error that wraps ingest.ErrTableStopped is of a table that will not get there.
	Await(ctx context.Context, t ingest.Target) error
	// Status and Position say how a pipeline is, and up to where readers see it.
	Status(name string) (ingest.PipelineStatus, bool)
	Position(p change.PipelineID) change.Position
}

// Lake is what takes the log of pipelines into the lake, and reclaims it. Safe for
// concurrent use.
type Lake interface {
	// Rest keeps what is published from now on out of the lake until end is called.
	Rest(p change.PipelineID) (end func())
	// HoldLog keeps a pipeline's log from a segment on, until Release and for as long as
	// the lake allows since the last Move.
	HoldLog(p change.PipelineID, from segment.Seq) LogHold
}

// LogHold keeps a log from being reclaimed. Used by one goroutine.
type LogHold interface {
	Move(to segment.Seq)
	Release()
}

// Mirror reads tables here as they were at a moment. Safe for concurrent use.
type Mirror interface {
	// Pin pins the tables of a snapshot that have no Skip; one for which that cannot be done
	// gets its reason there. The caller releases what is pinned.
	Pin(ctx context.Context, snap *catalog.Snapshot, tables []*Table, at Moment) (Pinned, error)
}

// Pinned is our side of a comparison. Release may be called again.
type Pinned interface {
	Here
	Release()
}

// Moment is what both sides are read at.
type Moment struct {
	// Before is an order token: the moment has the changes with a lower one.
	Before int64
	// Known is a place in the log that all before it is of before the moment.
	Known segment.SliceRef
}

// Freezer is a source that can be read at one moment whose position is exact; see
// ingest.Source for who may call it. waits is told, from another goroutine and not after the
// return, what the source waits for, a clause; "" when for nothing.
type Freezer interface {
	Freeze(ctx context.Context, state []byte, rowsPerSecond int64, waits func(reason string)) (Source, error)
}

// Request is what to compare.
type Request struct {
	Pipeline string
	Tables   []catalog.SelectedTable // empty: all
	Options  Options
	// RowsPerSecond bounds the reading at the source, 0 does not.
	RowsPerSecond int64
	// Wait bounds how long the pipeline may take to reach the position of the comparison.
	Wait time.Duration
}

// momentsMost is how many moments are tried before tables are left out that are truncated
// all the time.
const momentsMost = 3

// Compare compares tables of a pipeline with its source, and tells progress about once a
// second. What is in the way of all of them is a *Refusal, of one of them a line.
func (c *Comparer) Compare(ctx context.Context, r Request, progress func(string)) ([]Line, error) {
	p, err := c.running(r.Pipeline)
	if err != nil {
		return nil, err
	}
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	lines, err := c.compare(inner, p, r, func(line string) { // each wait and each reading comes by here, if with nothing to tell
		switch gone := c.gone(p); {
		case gone != nil:
			end(gone)
		case line != "":
			progress(line)
		}
	})
	if ctx.Err() != nil {
		return lines, err
	}
	// Whatever failed or was skipped when the pipeline went away is of that.
	if gone := c.gone(p); gone != nil {
		return nil, gone
	}
	return lines, err
}

// gone says that a pipeline was dropped, also if there is one of its name again.
func (c *Comparer) gone(p *catalog.Pipeline) *Refusal {
	snap := c.Catalog.Snapshot()
	defer snap.Close()
	if _, err := snap.PipelineByID(p.ID); err != nil {
		return &Refusal{Kind: NotNow, Message: fmt.Sprintf("pipeline %s was dropped while it was compared", quote.Name(p.Name))}
	}
	return nil
}

func (c *Comparer) compare(ctx context.Context, p *catalog.Pipeline, r Request, progress func(string)) ([]Line, error) {
	for tried := 1; ; tried++ {
		s, err := c.freeze(ctx, p, r, progress)
		if err != nil {
			return nil, err
		}
		if tried < momentsMost && slices.ContainsFunc(s.tables, func(t *Table) bool { return t.Skip == SkipTruncated }) {
			s.close()
			continue
		}
		defer s.close()
		return Run(ctx, s.tables, s.frozen, s.here, r.Options, c.teller(s.keeper, progress))
	}
}

// running is a pipeline that streams, or tries to.
func (c *Comparer) running(name string) (*catalog.Pipeline, error) {
	snap := c.Catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline(name)
	if err != nil {
		return nil, err
	}
	refusal := &Refusal{Kind: NotNow, Cause: ingest.ErrNotRunning}
	switch quoted := quote.Name(name); {
	case !p.Enabled:
		refusal.Message, refusal.Hint = fmt.Sprintf("pipeline %s is disabled", quoted), "ALTER PIPELINE … ENABLE; starts it."
	case p.Paused:
		refusal.Message, refusal.Hint = fmt.Sprintf("pipeline %s is paused", quoted), "ALTER PIPELINE … RESUME; lets it go on."
	case len(p.SourceState) == 0:
		refusal.Message, refusal.Hint = fmt.Sprintf("pipeline %s has not begun to stream", quoted), "pg_stat_pipeline says what it waits for."
	default:
		return p, nil
	}
	return nil, refusal
}

// sides are both sides of a comparison at one position.
type sides struct {
	tables []*Table
	copies map[change.TableID]copied // as they were before the position
	source ingest.Source
	frozen Source
	here   Pinned
	keeper *keeper
}

// close lets go of both sides.
func (s *sides) close() {
	if s.here != nil {
		s.here.Release()
		s.keeper.end()
	}
	if s.frozen != nil {
		s.frozen.Close()
	}
	_ = s.source.Close() // only read
}

// freeze brings both sides to one position.
func (c *Comparer) freeze(ctx context.Context, p *catalog.Pipeline, r Request, progress func(string)) (out *sides, err error) {
	// From here on nothing that is published goes into the lake, until both sides are
	// pinned: then the lake has nothing past the position, which is taken later.
	endRest := c.Lake.Rest(p.ID)
	defer endRest()
	s := &sides{copies: map[change.TableID]copied{}}
	known, err := c.tables(p, r.Tables, s)
	if err != nil {
		return nil, err
	}
	if s.source, err = c.Pipelines.OpenSource(ctx, p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	f, ok := s.source.(Freezer)
	if !ok {
		return nil, &Refusal{Kind: NotSupported, Message: fmt.Sprintf("the source of pipeline %s cannot be compared", quote.Name(p.Name))}
	}
	told := ""
	waits := func(reason string) {
		if reason == told {
			reason = ""
		}
		if reason != "" {
			told = reason
		}
		progress(reason)
	}
	if s.frozen, err = f.Freeze(ctx, p.SourceState, r.RowsPerSecond, waits); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("comparing at position %s", s.frozen.Position()))
	if err := c.await(ctx, p, s, r.Wait); err != nil {
		return nil, err
	}
	err = c.pin(ctx, p, s, Moment{Before: s.frozen.Before(), Known: known})
	return s, err
}

// await waits until everything before the position is here.
func (c *Comparer) await(ctx context.Context, p *catalog.Pipeline, s *sides, most time.Duration) error {
	at := s.frozen.Position()
	target := ingest.Target{Pipeline: p.ID, At: at, Compare: s.source.Compare}
	for _, t := range s.tables {
		if t.Skip == "" {
			target.Tables = append(target.Tables, t.ID)
		}
	}
	began := c.Clock.Now()
	for {
		soon, cancel := context.WithTimeoutCause(ctx, time.Second, errLook)
		err := c.Pipelines.Await(soon, target)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ingest.ErrTableStopped):
			target.Tables = nil // it says so when it is pinned
			continue
		case !errors.Is(err, errLook):
			return err
		}
		if gone := c.gone(p); gone != nil {
			return gone
		}
		status, _ := c.Pipelines.Status(p.Name)
		if status.Throttled { // the rest that we ask for may be why
			return &Refusal{
				Kind: Crowded, Message: "the log is full, so the pipeline does not reach the position of the comparison",
				Hint: "Run the statement again when the log has room: see wal-quota-bytes.",
			}
		}
		if c.Clock.Since(began) >= most {
			return &Refusal{
				Kind: NotNow, Message: fmt.Sprintf("pipeline %s did not reach position %s within %s", quote.Name(p.Name), at, most),
				Detail: fmt.Sprintf("It is at %s, its state is %s.", c.Pipelines.Position(p.ID), status.State),
				Hint:   "VERIFY PIPELINE … WITH (wait = '30 min'); waits longer; pg_stat_pipeline shows how far it is.",
			}
		}
	}
}

// teller tells progress about once a second, and keeps the log meanwhile.
func (c *Comparer) teller(k *keeper, progress func(string)) func(table string, share float64) {
	var told time.Time
	return func(table string, share float64) {
		now := c.Clock.Now()
		if now.Sub(told) < time.Second {
			return
		}
		told = now
		k.keep(now)
		progress(fmt.Sprintf("%s: %.0f%% compared", table, 100*share))
	}
}

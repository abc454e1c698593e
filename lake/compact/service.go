package compact

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// Searcher finds lake rows by key.
type Searcher interface {
	// Superseded runs plan and yields its rows: a data file's path and a row's position
	// in it. The order does not matter; a row may come twice. An error ends it.
	Superseded(ctx context.Context, plan *duckdb.Plan) iter.Seq2[lake.Position, error]
}

// SliceReader reads slices of one pipeline's log. wal.Reader is one.
type SliceReader interface {
	// ReadSlice returns the slice's rows, system columns first; nil if it has none. The
	// caller releases it.
	ReadSlice(ctx context.Context, s wal.Slice) (arrow.RecordBatch, error)
}

// Log is the part of a pipeline's open log that reclaims. wal.Log is one.
type Log interface {
	// Reclaim deletes sealed segments. Of those that are gone it does nothing.
	Reclaim(ctx context.Context, seqs []segment.Seq) error
}

// Deps are the service's collaborators; all but Logger, Failpoints, Epoch and Tasks are required.
type Deps struct {
	Catalog   *catalog.Catalog
	Warehouse lake.Warehouse
	Searcher  Searcher
	// Reader gives the reader of a pipeline's log.
	Reader func(change.PipelineID) SliceReader
	// Log gives the open log of a pipeline; false when it is not open, then nothing of
	// it is reclaimed.
	Log        func(change.PipelineID) (Log, bool)
	Clock      env.Clock
	Logger     *slog.Logger
	Failpoints env.Failpoints
	// Epoch is the epoch of a pipeline's open log, for the lake's fence; nil: 0, a log on
	// a disk.
	Epoch func(change.PipelineID) segment.Epoch
	// Tasks waits for a table's turn; nil: as goroutines do.
	Tasks env.Tasks
}

// Service compacts all tables of all pipelines, maintains their lake tables and
// reclaims the logs. Safe for concurrent use.
type Service struct {
	cfg  Config
	deps Deps
	log  *slog.Logger
	mu   struct {
		sync.Mutex
		tables map[change.TableID]*tableTurn
		// idle is since when a segment has had no live slice.
		idle  map[segmentKey]time.Time
		swept time.Time
		// stuck is when a pipeline's log went no further than a segment it needs.
		stuck map[change.PipelineID]time.Time
		// late is the work on tables that steps do not wait for any more.
		late map[change.TableID]*tableWork
		// resting is how many ask that nothing of a pipeline goes into the lake.
		resting map[change.PipelineID]*rest
		// holds by number, which counts up.
		holds    map[uint64]held
		nextHold uint64
	}
}

type segmentKey struct {
	pipeline change.PipelineID
	seq      segment.Seq
}

// tableTurn lets one at a time work on a lake table.
type tableTurn struct {
	token chan struct{} // size 1: holds the token while nobody works
	// Below: only with the token.
	commits int // since Maintain; the first commit of a process maintains too
	seen    bool
	errors  int
	retryAt time.Time
	// name is the lake table's, once a table that took another's place has made sure of it.
	name lake.Ident
}

// New makes a service. Nothing runs before Run, Step or Compact.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("compaction: %w", err)
	}
	s := &Service{cfg: cfg.withDefaults(), deps: deps, log: deps.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.deps.Failpoints == nil {
		s.deps.Failpoints = env.NoFailpoints
	}
	if s.deps.Tasks == nil {
		s.deps.Tasks = env.Goroutines(deps.Clock)
	}
	s.mu.tables = map[change.TableID]*tableTurn{}
	s.mu.late = map[change.TableID]*tableWork{}
	s.mu.idle = map[segmentKey]time.Time{}
	s.mu.stuck = map[change.PipelineID]time.Time{}
	s.mu.holds = map[uint64]held{}
	s.mu.resting = map[change.PipelineID]*rest{}
	return s, nil
}

// Compact moves all live changes of a pipeline into the lake that may go there: while
// the initial copy of a table runs, only its copied rows. The errors of tables are
// joined; each is tried.
func (s *Service) Compact(ctx context.Context, pipeline string) error {
	snap := s.deps.Catalog.Snapshot()
	p, err := snap.Pipeline(pipeline)
	if err != nil {
		snap.Close()
		return fmt.Errorf("compact: %w", err)
	}
	tables := snap.EveryTableOf(p.ID)
	snap.Close()
	var errs []error
	for _, t := range tables {
		errs = append(errs, s.CompactTable(ctx, t.ID, true))
	}
	return errors.Join(errs...)
}

// CompactTable compacts a table until nothing is left to do of what is live now; without
// force only what the thresholds want. Changes that come meanwhile are not waited for; with
// force the end of a rest of the pipeline is.
func (s *Service) CompactTable(ctx context.Context, id change.TableID, force bool) error {
	last, found, err := s.lastLive(id)
	if err != nil || !found {
		return err
	}
	for {
		more, err := s.StepTable(ctx, id, force)
		if errors.Is(err, ErrResting) {
			if err = s.awaitRest(ctx, id); err == nil {
				continue
			}
		}
		if err != nil || !more {
			return err
		}
		first, found, err := s.firstLive(id)
		if err != nil || !found || last.Less(first) {
			return err
		}
	}
}

// firstLive and lastLive are the ends of a table's live side.
func (s *Service) firstLive(id change.TableID) (ref segment.SliceRef, found bool, err error) {
	live, err := s.live(id)
	if err != nil || len(live) == 0 {
		return ref, false, err
	}
	return live[0].Ref, true, nil
}

func (s *Service) lastLive(id change.TableID) (ref segment.SliceRef, found bool, err error) {
	live, err := s.live(id)
	if err != nil || len(live) == 0 {
		return ref, false, err
	}
	return live[len(live)-1].Ref, true, nil
}

func (s *Service) live(id change.TableID) ([]catalog.Slice, error) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	return snap.LiveSlices(id)
}

// StepTable does one compaction of a table, or none. A table that is gone is no error.
func (s *Service) StepTable(ctx context.Context, id change.TableID, force bool) (more bool, err error) {
	turn, err := s.take(ctx, id)
	if err != nil {
		return false, err
	}
	defer turn.give()
	if !force && s.deps.Clock.Now().Before(turn.retryAt) {
		return false, nil
	}
	j, err := s.next(id, force)
	switch {
	case err != nil:
	case j != nil:
		err = s.run(ctx, turn, j)
	default:
		if err = s.settleName(ctx, turn, id); err == nil {
			return false, nil
		}
	}
	switch {
	case errors.Is(err, catalog.ErrTableNotFound):
		return false, nil
	case errors.Is(err, catalog.ErrStale):
		return false, s.giveUp(ctx, id, err)
	case err != nil && context.Cause(ctx) != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, ErrResting):
		return false, err
	case errors.Is(err, ErrNoCopy):
		err = errors.Join(err, s.stopTable(ctx, j.table))
	}
	s.settle(ctx, turn, id, err)
	if err != nil {
		return false, fmt.Errorf("compact table %d: %w", id, err)
	}
	return true, nil
}

// settleName gives the lake table of a copy that took a table's place that one's name, for
// other engines: a compaction does, and there may be none to do.
func (s *Service) settleName(ctx context.Context, turn *tableTurn, id change.TableID) error {
	snap := s.deps.Catalog.Snapshot()
	t, err := snap.TableByID(id)
	state := snap.LakeState(id)
	snap.Close()
	if err != nil {
		return err
	}
	ident := lake.Ident{Namespace: t.Schema, Name: t.Name}
	if t.FaceID == 0 || t.CopyOf != 0 || state.Snapshot == 0 || turn.name == ident {
		return nil
	}
	if _, err := s.deps.Warehouse.Table(ctx, lake.Spec{Ident: ident, Table: id, Schema: t.Current}); err != nil {
		return err
	}
	turn.name = ident
	return nil
}

// giveUp forgets the plans of a table that has moved on: it was reset. What they put
// into the lake goes with the first compaction after the reset.
func (s *Service) giveUp(ctx context.Context, id change.TableID, why error) error {
	s.log.Info("compaction given up", env.KeyTable, uint32(id), env.KeyReason, why)
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		for _, c := range txn.PlannedCompactions(id) {
			if err := txn.DropCompaction(c.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("give up compactions of table %d: %w", id, err)
	}
	return nil
}

// DropTable removes the lake side of a table that was dropped or reset. A compaction of
// it that runs is waited for. One that has lake rows of its present generation keeps
// them: they have replaced the old ones already. Idempotent.
func (s *Service) DropTable(ctx context.Context, id change.TableID) error {
	turn, err := s.take(ctx, id)
	if err != nil {
		return err
	}
	defer turn.give()
	snap := s.deps.Catalog.Snapshot()
	state := snap.LakeState(id)
	t, err := snap.TableByID(id)
	snap.Close()
	if state.Snapshot != 0 {
		return nil
	}
	if err == nil && t.Current != nil { // begun anew: another writer may have rows in it by now
		if err := s.ours(ctx, t); err != nil {
			return err
		}
	}
	return s.deps.Warehouse.Drop(ctx, id)
}

// ours fails when a newer epoch than this writer's has a lake table (F1).
func (s *Service) ours(ctx context.Context, t *catalog.Table) error {
	if s.deps.Epoch == nil {
		return nil
	}
	epoch := s.deps.Epoch(t.Pipeline)
	if epoch == 0 {
		return nil
	}
	tbl, err := s.deps.Warehouse.Table(ctx, lake.Spec{
		Ident: lake.Ident{Namespace: t.Schema, Name: t.Name}, Table: t.ID, Schema: t.Current,
	})
	if err != nil {
		return err
	}
	return tbl.Fence(ctx, epoch)
}

// The pauses of a table whose compaction failed, and the failure in a row from which
// on users are told.
const (
	retryMin   = time.Second
	retryMax   = time.Minute
	tellErrors = 3
)

// settle remembers how a compaction ended.
func (s *Service) settle(ctx context.Context, turn *tableTurn, id change.TableID, cause error) {
	if cause == nil {
		turn.errors, turn.retryAt = 0, time.Time{}
		return
	}
	turn.errors++
	pause := min(retryMin<<min(turn.errors-1, 6), retryMax)
	turn.retryAt = s.deps.Clock.Now().Add(pause)
	s.log.Warn("compaction failed", env.KeyTable, uint32(id), env.KeyAttempt, turn.errors, env.KeyError, cause)
	if turn.errors != tellErrors {
		return
	}
	err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		t, err := txn.TableByID(id)
		if err != nil {
			return err
		}
		p, err := txn.PipelineByID(t.Pipeline)
		if err != nil {
			return err
		}
		return txn.AddEvent(catalog.Event{
			At: txn.Now(), Level: "warning", Pipeline: p.Name, Table: t.Schema + "." + t.Name,
			Kind: "compaction failed", Detail: cause.Error(),
		})
	})
	if err != nil {
		s.log.Warn("event not recorded", env.KeyTable, uint32(id), env.KeyError, err)
	}
}

// take waits for a table's turn.
func (s *Service) take(ctx context.Context, id change.TableID) (*tableTurn, error) {
	s.mu.Lock()
	turn := s.mu.tables[id]
	if turn == nil {
		turn = &tableTurn{token: make(chan struct{}, 1)}
		turn.token <- struct{}{}
		s.mu.tables[id] = turn
	}
	s.mu.Unlock()
	if err := s.deps.Tasks.Wait(ctx, 0, turn.token); err != nil {
		return nil, err
	}
	return turn, nil
}

func (t *tableTurn) give() { t.token <- struct{}{} }

// commitInterval and commitBytes are the pipeline's, or the service's.
func (s *Service) commitInterval(p *catalog.Pipeline) time.Duration {
	if d, err := time.ParseDuration(p.Options["commit_interval"]); err == nil && d > 0 {
		return d
	}
	return s.cfg.CommitInterval
}

func (s *Service) commitBytes(p *catalog.Pipeline) int64 {
	if n, err := strconv.ParseInt(p.Options["commit_bytes"], 10, 64); err == nil && n > 0 {
		return n
	}
	return s.cfg.WantBytes
}

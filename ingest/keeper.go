package ingest

import (
	"context"
	"time"

	"github.com/skipprd/skipprd/catalog"
)

const (
	// keepInterval is how often rates are sampled at least.
	keepInterval = time.Second
	// statusEvery is how often the source is asked how it is: a query there.
	statusEvery   = 5 * time.Second
	statusTimeout = 10 * time.Second
)

// keeper looks after a running session. Owned by its goroutine.
type keeper struct {
	session *session
	version uint64 // of the catalog when tables were looked at last
	waiting bool   // a table waits for the stream to pass its horizon
	sampled time.Time
	asked   time.Time
	cleaned bool
	// placed says that a copy has taken a table's place, so that the session is to begin
	// anew, when nothing is being copied, with end.
	placed bool
	end    context.CancelCauseFunc
}

func (k *keeper) step(ctx context.Context) (more bool, err error) {
	s := k.session
	now := s.deps.Clock.Now()
	if now.Sub(k.sampled) >= keepInterval {
		k.sampled = now
		s.live.sample()
	}
	if now.Sub(k.asked) >= statusEvery {
		k.asked = now
		k.askSource(ctx)
	}
	k.clean(ctx)
	if err := k.promote(ctx); err != nil {
		return false, err
	}
	if k.placed && !s.copying.Load() {
		k.end(errRestart)
	}
	return false, nil
}

// askSource keeps the last answer when there is none now: the stream tells of a lost
// source.
func (k *keeper) askSource(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if status, err := k.session.source.Status(ctx); err == nil {
		k.session.live.source(status)
	}
}

// promote makes tables ready whose copy the stream has passed, and the pipeline
// running when nothing is left to copy.
func (k *keeper) promote(ctx context.Context) error {
	s := k.session
	snap := s.deps.Catalog.Snapshot()
	version := snap.Version()
	if version == k.version && !k.waiting {
		snap.Close()
		return nil
	}
	tables := snap.EveryTableOf(s.pipeline.ID)
	p, err := snap.PipelineByID(s.pipeline.ID)
	snap.Close()
	if err != nil {
		return err
	}
	state, due := catalog.PipelineRunning, false
	k.waiting = false
	for _, t := range tables {
		switch t.State {
		case catalog.TablePending, catalog.TableBackfill:
			state = catalog.PipelineBackfill
		case catalog.TableCatchup:
			due = due || s.caughtUp(t)
			k.waiting = true
		}
	}
	if due || p.State != state || p.Reason != "" {
		if err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			return s.recordStates(txn, state)
		}); err != nil {
			return err
		}
	}
	placed, err := k.replace(ctx, tables)
	k.placed = k.placed || placed
	if err != nil {
		return err
	}
	k.version = version
	return nil
}

// caughtUp says whether a copied table is consistent now.
func (s *session) caughtUp(t *catalog.Table) bool {
	return t.State == catalog.TableCatchup && t.StoppedAt == "" &&
		s.progress.compare(s.progress.passed(), t.Backfill.Horizon) >= 0
}

func (s *session) recordStates(txn *catalog.Txn, state catalog.PipelineState) error {
	for _, t := range txn.EveryTableOf(s.pipeline.ID) {
		if !s.caughtUp(t) {
			continue
		}
		t.State, t.Reason, t.Hint = catalog.TableReady, "", ""
		if err := txn.PutTable(t); err != nil {
			return err
		}
	}
	return putState(txn, s.pipeline.ID, state, "")
}

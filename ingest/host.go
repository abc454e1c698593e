package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// errHeld ends a session because a statement needs the pipeline to stand still.
var errHeld = errors.New("pipeline is held")

// host keeps one pipeline: it opens its log, and runs one session after another while
// the catalog says that it should and nobody holds it.
type host struct {
	id   change.PipelineID
	cfg  Config
	deps Deps
	out  *slog.Logger
	live *live

	// kick wakes run: something it waits for may have changed. Signalled under mu.
	kick chan struct{}
	// opening holds a token while nobody opens the log; recovered is closed when it was
	// opened first, and so the catalog has all that is durable.
	opening, recovered chan struct{}

	mu struct {
		sync.Mutex
		log     Log
		ended   bool // run has returned
		stopped bool // by Stop, until Start
		held    int
		// cancel ends the running session, nil without one; still is closed when none
		// runs.
		cancel context.CancelCauseFunc
		still  chan struct{}
		// outcomes are told the result of the next start.
		outcomes []*outcome
		source   Source // of the running session
		// progress of the running or last session.
		progress *progress
		reason   string
		waits    string // what the source waits for in the session that starts
		lost     error  // why no later session can go on
	}
}

func newHost(id change.PipelineID, name string, cfg Config, deps Deps) *host {
	h := &host{
		id: id, cfg: cfg, deps: deps, out: deps.Log.With(env.KeyPipeline, name),
		live: newLive(deps.Clock), kick: make(chan struct{}, 1), opening: make(chan struct{}, 1),
		recovered: make(chan struct{}),
	}
	h.opening <- struct{}{}
	h.mu.still = make(chan struct{})
	close(h.mu.still)
	return h
}

// run keeps the pipeline until ctx ends or it is gone from the catalog.
func (h *host) run(ctx context.Context) {
	defer h.end()
	backoff := h.cfg.BackoffMin
	for context.Cause(ctx) == nil {
		p, err := h.pipeline()
		if err != nil {
			return // dropped
		}
		if err := h.openLog(ctx); err != nil {
			h.failed(ctx, err)
			_ = h.deps.Tasks.Wait(ctx, h.jitter(&backoff)) // ctx is looked at above
			continue
		}
		if !p.Enabled || p.Paused || h.isHeld() {
			if !p.Enabled || p.Paused { // who holds it for a moment may be about to complete them
				h.voidParts(ctx)
			}
			h.rest(ctx, p)
			h.watch(ctx, p)
			_ = h.deps.Tasks.Wait(ctx, h.cfg.RestInterval, h.kick) // likewise
			continue
		}
		began := h.deps.Clock.Now()
		err = h.session(ctx, p)
		if h.deps.Clock.Since(began) > h.cfg.BackoffMax {
			backoff = h.cfg.BackoffMin
		}
		if !h.failed(ctx, err) {
			backoff = h.cfg.BackoffMin
			continue
		}
		wait := h.jitter(&backoff)
		if large := (*TransactionError)(nil); errors.As(err, &large) {
			h.voidParts(ctx)
			if p, err := h.pipeline(); err == nil && p.State == catalog.PipelineError {
				wait = 0 // it would read as much in vain: until a statement acts, of which the state tells
			}
		}
		_ = h.deps.Tasks.Wait(ctx, wait, h.kick) // likewise
	}
}

// rest records that a pipeline which is not to run does not; the last session may have
// recorded otherwise since.
func (h *host) rest(ctx context.Context, p *catalog.Pipeline) {
	state, reason := catalog.PipelineDisabled, ""
	switch {
	case p.Enabled && !p.Paused:
		return // held for a moment
	case p.Enabled:
		state, reason = catalog.PipelinePaused, "paused by the user"
	}
	if h.refuseStart(p) || p.State == state {
		return
	}
	if err := h.putState(ctx, state, reason); err != nil {
		h.out.Warn("pipeline state not recorded", env.KeyError, err)
	}
}

// refuseStart tells whoever waits for a start of a pipeline that it does not run, unless it is
// to by now: who waits had recorded that before.
func (h *host) refuseStart(p *catalog.Pipeline) (starts bool) {
	h.mu.Lock()
	waiting := h.mu.outcomes
	h.mu.outcomes = nil
	h.mu.Unlock()
	if now, err := h.pipeline(); len(waiting) > 0 && err == nil && now.Enabled && !now.Paused {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.outcomes = append(waiting, h.mu.outcomes...)
		signal(h.kick)
		return true
	}
	for _, o := range waiting {
		o.tell(fmt.Errorf("pipeline %s: %w", quote.Name(p.Name), ErrNotRunning))
	}
	return false
}

// waitTold is how long a start may wait for something at the source before who waits for
// the start is told that it will take time.
const waitTold = 3 * time.Second

// watchTimeout bounds a look at the source of a pipeline that rests.
const watchTimeout = 10 * time.Second

// watch keeps what the source of a pipeline that rests says of itself: it keeps its log
// for us meanwhile. One that does not answer is left alone until the next time.
func (h *host) watch(ctx context.Context, p *catalog.Pipeline) {
	if h.cfg.RestInterval == 0 || len(p.SourceState) == 0 || p.Enabled && !p.Paused {
		return
	}
	snap := h.deps.Catalog.Snapshot()
	c, err := snap.Connection(p.Connection)
	snap.Close()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	source, err := newSource(ctx, h.deps, c, p, "")
	if err != nil {
		return
	}
	defer func() { _ = source.Close() }() // only read
	if w, ok := source.(Watcher); ok {
		if status, err := w.Watch(ctx, p.SourceState); err == nil {
			h.live.source(status)
		}
	}
}

// voidParts lets go of a transaction in parts that the last session left, so that its
// segments can be reclaimed while none runs. The next session does so too, before it
// streams; this one may fail.
func (h *host) voidParts(ctx context.Context) {
	snap := h.deps.Catalog.Snapshot()
	_, pending := snap.Pending(h.id)
	snap.Close()
	if !pending {
		return
	}
	err := h.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error { return txn.VoidPending(h.id) })
	if err != nil {
		h.out.Warn("parts of a transaction kept for now", env.KeyError, err)
	}
}

// session runs one session, unless somebody holds the pipeline.
func (h *host) session(ctx context.Context, p *catalog.Pipeline) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h.mu.Lock()
	if h.mu.held > 0 || h.mu.stopped {
		h.mu.Unlock()
		return errHeld
	}
	h.mu.cancel, h.mu.still = cancel, make(chan struct{})
	log := h.mu.log
	h.mu.Unlock()
	defer h.ended()

	if err := h.putState(ctx, catalog.PipelineStarting, ""); err != nil {
		return err
	}
	s := &session{
		cfg: h.cfg, deps: h.deps, live: h.live, out: h.out, pipeline: p,
		writer: &writer{
			log: log, clock: h.deps.Clock, out: h.out, live: h.live,
			stuck: func() (int64, error) { return stuck(h.deps.Catalog, h.id) },
		},
		advanced: make(chan struct{}, 1), fetching: make(chan struct{}, 1),
	}
	s.fetching <- struct{}{}
	began := h.deps.Clock.Now()
	s.waiting = func(reason string) {
		h.mu.Lock()
		h.mu.waits = reason
		h.mu.Unlock()
		if reason != "" && h.deps.Clock.Since(began) >= waitTold {
			h.tell(&WaitingError{Reason: reason}) // whoever waits for the start waits no longer
		}
	}
	s.ready = func() {
		h.mu.Lock()
		h.mu.source, h.mu.progress, h.mu.reason, h.mu.waits, h.mu.lost = s.source, s.progress, "", "", nil
		select { // what kicked so far has this session, or ends it
		case <-h.kick:
		default:
		}
		h.mu.Unlock()
		h.tell(nil)
	}
	err := s.run(ctx)
	if s.writer.failed.Load() {
		h.closeLog() // before a statement acts: opening it publishes what is durable
	}
	if cause := context.Cause(ctx); errors.Is(cause, errHeld) {
		return errHeld
	}
	return err
}

// ended notes that no session runs.
func (h *host) ended() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.cancel, h.mu.source, h.mu.waits = nil, nil, ""
	close(h.mu.still)
}

// failed records why a session ended and says whether to wait before the next.
func (h *host) failed(ctx context.Context, err error) bool {
	if context.Cause(ctx) != nil || errors.Is(err, errHeld) {
		return false
	}
	if errors.Is(err, errRestart) {
		return false
	}
	if logFailed(err) {
		h.closeLog() // opening it reads what is durable
	}
	h.live.sourceError()
	h.out.Warn("pipeline session ended", env.KeyError, err)
	h.mu.Lock()
	h.mu.reason, h.mu.lost = reasonOf(err), nil
	if errors.Is(err, ErrLost) {
		h.mu.lost = err
	}
	h.mu.Unlock()
	if stateErr := h.putState(ctx, catalog.PipelineError, reasonOf(err)); stateErr != nil {
		h.out.Error("pipeline state not recorded", env.KeyError, stateErr)
	}
	h.tell(err)
	return true
}

// logFailed says whether err leaves open what is in the log.
func logFailed(err error) bool {
	var l *logError
	return errors.As(err, &l) || errors.Is(err, wal.ErrPoisoned) || errors.Is(err, wal.ErrClosed)
}

// jitter is the next wait after an error, and doubles backoff.
func (h *host) jitter(backoff *time.Duration) time.Duration {
	d := *backoff
	*backoff = min(2*d, h.cfg.BackoffMax)
	return d/2 + time.Duration(h.deps.IDs.Uint64()%uint64(d/2+1))
}

func (h *host) pipeline() (*catalog.Pipeline, error) {
	snap := h.deps.Catalog.Snapshot()
	defer snap.Close()
	return snap.PipelineByID(h.id)
}

func (h *host) putState(ctx context.Context, state catalog.PipelineState, reason string) error {
	return h.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		return putState(txn, h.id, state, reason)
	})
}

// putState records what a pipeline does, if that is new; an error is an event, too.
func putState(txn *catalog.Txn, id change.PipelineID, state catalog.PipelineState, reason string) error {
	p, err := txn.PipelineByID(id)
	if err != nil {
		return err
	}
	reason = p.Exact(reason)
	if p.State == state && p.Reason == reason {
		return nil
	}
	resting := state == catalog.PipelinePaused || state == catalog.PipelineDisabled
	if (!p.Enabled || p.Paused) && !resting {
		return nil // a statement has stopped it meanwhile
	}
	if state == catalog.PipelineStarting && p.State == catalog.PipelineError {
		return nil // an error stays visible until the pipeline runs again
	}
	p.State, p.Reason = state, reason
	if err := txn.PutPipeline(p); err != nil {
		return err
	}
	level := "info"
	if state == catalog.PipelineError {
		level = "error"
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: level, Pipeline: p.Name, Kind: "pipeline " + string(state), Detail: reason,
	})
}

// end closes the log for good.
func (h *host) end() {
	h.mu.Lock()
	h.mu.ended = true
	h.mu.Unlock()
	h.closeLog()
}

// openLog opens the log unless it is open. What it holds and the catalog does not
// know is published before it returns: a statement that begins a table anew needs that
// too, or the rows of before would be published into what has begun.
func (h *host) openLog(ctx context.Context) error {
	if err := h.deps.Tasks.Wait(ctx, 0, h.opening); err != nil {
		return err
	}
	defer func() { h.opening <- struct{}{} }()
	h.mu.Lock()
	open := h.mu.log != nil
	h.mu.Unlock()
	if open {
		return nil
	}
	log, err := h.deps.OpenLog(ctx, h.id)
	if err != nil {
		return &logError{fmt.Errorf("open log: %w", err)}
	}
	h.mu.Lock()
	ended := h.mu.ended
	if !ended {
		h.mu.log = log
		select {
		case <-h.recovered:
		default:
			close(h.recovered)
		}
	}
	h.mu.Unlock()
	if ended {
		return errors.Join(ErrNotRunning, log.Close())
	}
	return nil
}

func (h *host) closeLog() {
	h.mu.Lock()
	log := h.mu.log
	h.mu.log = nil
	h.mu.Unlock()
	if log == nil {
		return
	}
	if err := log.Close(); err != nil {
		h.out.Warn("log not closed cleanly", env.KeyError, err)
	}
}

func (h *host) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.held > 0 || h.mu.stopped
}

// hold ends the session and keeps others from beginning until release; it returns when
// none runs.
func (h *host) hold(ctx context.Context) (release func(), err error) {
	h.mu.Lock()
	h.mu.held++
	h.mu.lost = nil // the statement may mend it
	if h.mu.cancel != nil {
		h.mu.cancel(errHeld)
	}
	still := h.mu.still
	h.mu.Unlock()
	release = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.mu.held--
		signal(h.kick)
	}
	if err := h.deps.Tasks.Wait(ctx, 0, still); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// outcome is the result of a start.
type outcome struct {
	told chan struct{} // closed when err is set
	err  error         // nil when streaming
}

func (o *outcome) tell(err error) {
	o.err = err
	close(o.told)
}

// await returns what will have the result of the next start, or of the one under way.
func (h *host) await() *outcome {
	o := &outcome{told: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.source != nil {
		o.tell(nil)
		return o
	}
	h.mu.outcomes = append(h.mu.outcomes, o)
	signal(h.kick)
	return o
}

// tell passes the result of a start to those who await it.
func (h *host) tell(err error) {
	h.mu.Lock()
	waiting := h.mu.outcomes
	h.mu.outcomes = nil
	h.mu.Unlock()
	for _, o := range waiting {
		o.tell(err)
	}
}

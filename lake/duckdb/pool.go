package duckdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/lake/duckdb/admission"
	"github.com/skipprd/skipprd/pgwire/waits"
)

// Pool runs plans in a worker process that it supervises. Safe for concurrent use.
//
// As many run at once as the engine's memory is meant for, others wait their turn (package
// admission); a query holds its place from Query to Stream.Close, but loses it to one that
// waits while its reader asks for nothing, and then waits in Next for another. One that
// runs out of memory before its first rows, while others run, runs again when they have
// ended. When the worker dies its queries end with ErrWorkerDied, and the next ones wait
// for the new worker.
type Pool struct {
	cfg        PoolConfig
	deps       Deps
	places     *admission.Queue
	supervisor *supervisor
	described  describeCache
	closed     atomic.Bool
	count      counters
	mu         struct {
		sync.Mutex
		idle []*wire
	}
}

// counters are monotonic but for active and waiting.
type counters struct {
	queries, failures, bytes, rows, retries atomic.Int64
	active, waiting                         atomic.Int64
}

// Stats is the state of a pool.
type Stats struct {
	// PID of the worker process, 0 while none is up.
	PID int
	// Restarts since the pool was opened.
	Restarts int64
	// Queries, Failures, Rows and Bytes count since the pool was opened; Retries are
	// queries that ran again because others had the memory, each counted as a query and a
	// failure too.
	Queries, Failures, Rows, Bytes, Retries int64
	// Active queries run now, Waiting ones are not admitted yet.
	Active, Waiting int64
}

// NewPool starts a worker and its supervisor, and returns when the worker is up. The
// worker process is this executable with the argument "engine-worker", which calls
// ServeWorker.
func NewPool(cfg PoolConfig, deps Deps) (*Pool, error) {
	cfg = cfg.withDefaults()
	p := &Pool{cfg: cfg, deps: deps, places: admission.New(cfg.limits(), deps.Clock)}
	p.described.init()
	s, err := startSupervisor(cfg, deps, p.dropIdle)
	if err != nil {
		return nil, err
	}
	p.supervisor = s
	return p, nil
}

// Query admits a plan and runs it to its first rows; errors of the statement and lost
// slices come here or, after rows, from Stream.Next. The caller closes the stream.
// When ctx ends the error is its cause.
func (p *Pool) Query(ctx context.Context, plan *Plan) (*Stream, error) {
	seat := &admission.Seat{Light: light(plan)}
	for try := 0; ; try++ {
		s, err := p.try(ctx, plan, seat)
		if !errors.Is(err, ErrOutOfMemory) {
			return s, err
		}
		if again := p.again(ctx, seat, try); !again {
			return nil, err
		}
		p.count.retries.Add(1)
	}
}

// try runs a plan to its first rows once.
func (p *Pool) try(ctx context.Context, plan *Plan, seat *admission.Seat) (*Stream, error) {
	s := &Stream{pool: p, place: seat}
	if err := p.admit(ctx, seat); err != nil {
		return nil, err
	}
	p.count.queries.Add(1)
	p.count.active.Add(1)
	w, err := p.wire(ctx)
	if err != nil {
		p.leave(seat, err)
		return nil, err
	}
	s.wire = w
	if err := s.begin(ctx, plan); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// A query that needs next to no memory, and finds none, tries again lightTries times, with
// pauses from lightPause on that double, before it waits for all of the memory.
const (
	lightTries = 3
	lightPause = 100 * time.Millisecond
)

// again reports whether a query that ran out of memory may run again. It changes what the seat
// waits for.
func (p *Pool) again(ctx context.Context, seat *admission.Seat, try int) bool {
	if seat.Light && try < lightTries {
		defer waits.On(ctx, waits.EngineMemory)()
		return p.deps.Clock.Sleep(ctx, lightPause<<try) == nil
	}
	return p.places.Again(seat)
}

// Describe tells the columns and parameters of a plan without running it. Answers are
// remembered by SQL and columns.
func (p *Pool) Describe(ctx context.Context, plan *Plan) (*Description, error) {
	key := describeKey(plan)
	if d, ok := p.described.get(key); ok {
		return d, nil
	}
	w, err := p.wire(ctx)
	if err != nil {
		return nil, err
	}
	kind, _, err := w.request(ctx, frameDescribe, describedPlan(plan))
	d := &Description{}
	if err == nil {
		if kind != frameTold {
			err = fmt.Errorf("frame %d answers describe: %w", kind, ErrWorkerDied)
		} else if err = w.messages.decode(d); err != nil {
			err = fmt.Errorf("%w: %w", ErrWorkerDied, err)
		}
	}
	p.giveBack(w, err)
	if err != nil {
		return nil, ended(ctx, err)
	}
	p.described.put(key, d)
	return d, nil
}

// Stats tells the pool's state now.
func (p *Pool) Stats() Stats {
	pid, restarts := p.supervisor.state()
	return Stats{
		PID: pid, Restarts: restarts,
		Queries: p.count.queries.Load(), Failures: p.count.failures.Load(),
		Rows: p.count.rows.Load(), Bytes: p.count.bytes.Load(), Retries: p.count.retries.Load(),
		Active: p.count.active.Load(), Waiting: p.count.waiting.Load(),
	}
}

// Close ends the worker. Queries in flight end with ErrWorkerDied.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	p.supervisor.close()
	p.dropIdle()
}

func (p *Pool) admit(ctx context.Context, at *admission.Seat) error {
	if p.closed.Load() {
		return ErrClosed
	}
	p.count.waiting.Add(1)
	defer p.count.waiting.Add(-1)
	return p.places.Enter(ctx, at)
}

func (p *Pool) leave(at *admission.Seat, err error) {
	if err != nil {
		p.count.failures.Add(1)
	}
	p.count.active.Add(-1)
	p.places.Leave(at)
}

// wire takes a connection to the worker that is up.
func (p *Pool) wire(ctx context.Context) (*wire, error) {
	for {
		w, err := p.supervisor.current(ctx)
		if err != nil {
			return nil, err
		}
		if idle := p.takeIdle(w); idle != nil {
			return idle, nil
		}
		conn, err := w.dial(ctx)
		if err == nil {
			return newWire(conn, w, p.deps.Clock, p.cfg.CancelTimeout), nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect: %w", context.Cause(ctx))
		}
		if !p.seenDead(w) {
			return nil, fmt.Errorf("connect: %w: %w", ErrWorkerDied, err)
		}
	}
}

// takeIdle takes an idle connection to worker w, nil when there is none.
func (p *Pool) takeIdle(w *process) *wire {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.mu.idle); n > 0; n = len(p.mu.idle) {
		idle := p.mu.idle[n-1]
		p.mu.idle = p.mu.idle[:n-1]
		if idle.owner == w {
			return idle
		}
		_ = idle.conn.Close() // its worker is gone
	}
	return nil
}

// deathNotice is how long a worker that does not answer may take to be seen dead.
const deathNotice = time.Second

func (p *Pool) seenDead(w *process) bool {
	timeout, stop := p.deps.Clock.Timer(deathNotice)
	defer stop()
	select {
	case <-w.done:
		return true
	case <-timeout:
		return false
	}
}

// giveBack keeps a connection for the next query, unless err or its state says that
// it is of no more use. When the worker has died it returns when that is known here, so
// that whoever is told, and runs the query again, gets another worker.
func (p *Pool) giveBack(w *wire, err error) {
	died := errors.Is(err, ErrWorkerDied)
	if w.broken || died {
		_ = w.conn.Close() // nothing more is said on it
	}
	if died {
		p.seenDead(w.owner)
	}
	if w.broken || died {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() || len(p.mu.idle) >= p.cfg.MaxQueries {
		_ = w.conn.Close()
		return
	}
	p.mu.idle = append(p.mu.idle, w)
}

func (p *Pool) dropIdle() {
	p.mu.Lock()
	idle := p.mu.idle
	p.mu.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		_ = w.conn.Close()
	}
}

// ended makes ctx's cause the error when ctx is what ended the request.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("query: %w", context.Cause(ctx))
	}
	return err
}

package death

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// workers are the engine's processes.
func (g *rig) workers() []int { return harness.Children(g.s.PID()) }

func (g *rig) signal(sig syscall.Signal) {
	for _, pid := range g.workers() {
		_ = syscall.Kill(pid, sig) // may have ended
	}
}

// readers read a sum that never changes until stop; an engine that died may be the
// answer, another sum may not.
type readers struct {
	wg         sync.WaitGroup
	stopped    atomic.Bool
	held, died atomic.Int64
}

const sums = "SELECT ((SELECT sum(amount) FROM " + pipeline + ".balance_a) + (SELECT sum(amount) FROM " + pipeline + ".balance_b))::text"

func (g *rig) read(sessions int) *readers {
	r := &readers{}
	for range sessions {
		r.wg.Go(func() {
			c, err := pgx.Connect(g.t.Context(), g.s.DSN)
			if err != nil {
				g.t.Errorf("connect: %v", err)
				return
			}
			defer func() { _ = c.Close(context.Background()) }()
			for !r.stopped.Load() && !g.t.Failed() {
				var sum string
				err := c.QueryRow(g.t.Context(), sums).Scan(&sum)
				var e *pgconn.PgError
				switch {
				case errors.As(err, &e) && e.Code == "58000" && e.Hint != "":
					r.died.Add(1)
				case harness.TooOld(err): // it is read again
				case err != nil || sum != "200000":
					g.t.Errorf("the sum is %q, %v", sum, err)
				default:
					r.held.Add(1)
				}
			}
		})
	}
	return r
}

func (r *readers) stop() { r.stopped.Store(true); r.wg.Wait() }

// TestEngine kills and stops the engine while queries and compactions use it: they end
// with a clear error, nothing else does, and the next ones run.
func TestEngine(t *testing.T) {
	g := newRig(t, options{pace: time.Millisecond})
	g.check("before", g.verify())
	r := g.read(3)
	kills, held := 0, int64(0)
	met := harness.Until(2*harness.Patience, func() bool {
		// An engine is killed after it has been of use, however slow the machine is.
		if !harness.Until(harness.Patience, func() bool { return r.held.Load() > held || t.Failed() }) {
			g.fail("killed", fmt.Errorf("after %d deaths no read holds", kills))
		}
		g.wait(time.Duration(g.r.IntN(800)) * time.Millisecond)
		g.signal(syscall.SIGKILL)
		kills, held = kills+1, r.held.Load()
		return kills >= 3+rounds(3) && r.died.Load() > 0 || t.Failed()
	})
	r.stop()
	t.Logf("%d times killed: %d sums held, %d reads ended with the engine", kills, r.held.Load(), r.died.Load())
	if !met {
		t.Errorf("the deaths met %d reads of %d", r.died.Load(), r.held.Load())
	}
	g.check("killed", g.verifyLake())

	g.s.Stop()
}

// TestEngineStopped stops the engine's process: statements end when their time is up or
// when they are canceled, and after half a minute the server sees by itself that the
// engine is as good as dead.
func TestEngineStopped(t *testing.T) {
	if short() {
		t.Skip("takes minutes: make deaths")
	}
	g := newRig(t, options{pace: time.Millisecond})
	g.check("before", g.verify())
	limited, open := harness.Connect(t, g.s.DSN), harness.Connect(t, g.s.DSN)
	g.check("limit", g.execOn(limited, "SET statement_timeout = '2s'"))
	g.signal(syscall.SIGSTOP)
	canceled := make(chan error, 1)
	go func() { canceled <- g.execOn(open, sums) }()
	began := time.Now()
	err := g.execOn(limited, sums)
	var e *pgconn.PgError
	if took := time.Since(began); !errors.As(err, &e) || e.Code != "57014" && e.Code != "58000" || took > 20*time.Second {
		t.Errorf("stopped: a statement with a limit of 2 s ended after %s with %v", took, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	g.check("cancel", open.PgConn().CancelRequest(ctx))
	if err := <-canceled; !errors.As(err, &e) || e.Code != "57014" && e.Code != "58000" {
		t.Errorf("stopped: a canceled statement ended with %v", err)
	}
	t.Logf("stopped: both ended %.1f s after the stop", time.Since(began).Seconds())
	g.check("stopped", g.verifyLake())

	g.signal(syscall.SIGSTOP)
	if err := g.verifyLake(); err != nil && (!errors.As(err, &e) || e.Code != "58000") {
		g.fail("stopped for good, and nobody asks", err)
	}
	g.check("after the engine was replaced", g.verifyLake())

	pid := g.workers()[0]
	g.signal(syscall.SIGSTOP)
	g.wait(2 * time.Second)
	g.signal(syscall.SIGCONT)
	g.check("after a short stop", g.verifyLake())
	if now := g.workers(); len(now) != 1 || now[0] != pid {
		t.Errorf("after a short stop the engine is %v, it was %d", now, pid)
	}
	g.s.Stop()
}

func (g *rig) execOn(c *pgx.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), 2*harness.Patience)
	defer cancel()
	_, err := c.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// TestEngineOutOfMemory lets the kernel kill the engine for its memory: its queries end
// with a clear error, and the next ones run.
func TestEngineOutOfMemory(t *testing.T) {
	g := newRig(t, options{pace: time.Millisecond, args: []string{"--engine-memory", "2GiB"}})
	g.check("before", g.verify())
	c := harness.Connect(t, g.s.DSN)
	for range rounds(1) {
		workers := g.workers()
		if len(workers) != 1 {
			t.Fatalf("engine processes: %v", workers)
		}
		LimitMemory(t, workers[0], 300<<20)
		err := g.execOn(c, "SELECT count(*) FROM (SELECT a, row_number() OVER (ORDER BY a::text DESC) FROM generate_series(1, 20000000) g (a)) s")
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "58000" || e.Hint == "" {
			t.Errorf("a query beyond the memory ended with %v", err)
		}
		g.check("out of memory", g.execOn(c, sums))
		g.check("out of memory", g.verifyLake())
		t.Logf("out of memory: %v", err)
	}
	g.s.Stop()
}

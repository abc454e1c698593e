package duckdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/wal/env"
)

// process is a worker that is up.
type process struct {
	connector
	pid  int
	done <-chan struct{} // closed when it ended
	// pulses counts its signs of life; nil when it gives none.
	pulses *atomic.Int64
	// stop ends it and waits.
	stop func()
}

// supervisor keeps one worker up: it starts another one when it dies, with growing
// pauses while they die young.
type supervisor struct {
	start  func() (*process, error)
	clock  env.Clock
	log    *slog.Logger
	cfg    PoolConfig
	onDead func()
	cancel context.CancelFunc
	ended  chan struct{}
	mu     struct {
		sync.Mutex
		process  *process
		changed  chan struct{} // closed and replaced when process changes
		restarts int64
		closed   bool
	}
}

func startSupervisor(cfg PoolConfig, deps Deps, onDead func()) (*supervisor, error) {
	s := &supervisor{clock: deps.Clock, log: deps.Log, cfg: cfg, onDead: onDead, ended: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.start = func() (*process, error) { return startProcess(cfg, deps) }
	if cfg.InProcess {
		s.start = func() (*process, error) { return startInProcess(cfg, deps) }
	} else {
		removeLeftSockets(os.TempDir())
	}
	s.mu.changed = make(chan struct{})
	first, err := s.start()
	if err != nil {
		return nil, fmt.Errorf("start engine worker: %w", err)
	}
	s.publish(first)
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.run(ctx, first)
	return s, nil
}

// run watches workers until close.
func (s *supervisor) run(ctx context.Context, p *process) {
	defer close(s.ended)
	backoff := s.cfg.BackoffMin
	for {
		began := s.clock.Now()
		if p != nil {
			if !s.watch(ctx, p) {
				s.publish(nil)
				p.stop()
				return
			}
			s.publish(nil)
			s.onDead()
			s.log.Error("engine worker died", "pid", p.pid)
			if s.clock.Since(began) > time.Minute {
				backoff = s.cfg.BackoffMin
			}
		}
		if s.clock.Sleep(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, s.cfg.BackoffMax)
		var err error
		if p, err = s.start(); err != nil {
			s.log.Error("engine worker not started", env.KeyError, err)
			continue
		}
		s.mu.Lock()
		s.mu.restarts++
		s.mu.Unlock()
		s.publish(p)
		s.log.Info("engine worker started", "pid", p.pid)
	}
}

// silentTicks is in how many looks for a sign of life a worker's time to give one is
// divided. Looks are counted and not time, which also passes while the machine sleeps.
const silentTicks = 10

// watch waits until a worker has ended, and ends one that gives no sign of life. It
// returns false when ctx ended first.
func (s *supervisor) watch(ctx context.Context, p *process) bool {
	seen, silent := int64(0), 0
	for {
		fired, stop := s.clock.Timer(s.cfg.SilenceTimeout / silentTicks)
		select {
		case <-p.done:
			stop()
			return true
		case <-ctx.Done():
			stop()
			return false
		case <-fired:
		}
		if p.pulses == nil {
			continue
		}
		if now := p.pulses.Load(); now != seen {
			seen, silent = now, 0
			continue
		}
		if silent++; silent >= silentTicks {
			s.log.Error("engine worker gives no sign of life", "pid", p.pid)
			p.stop()
			return true
		}
	}
}

func (s *supervisor) publish(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.process = p
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
}

// current waits for a worker that is up, StartTimeout at most.
func (s *supervisor) current(ctx context.Context) (*process, error) {
	var timeout <-chan time.Time
	for {
		s.mu.Lock()
		p, changed, closed := s.mu.process, s.mu.changed, s.mu.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case p != nil && !isClosed(p.done):
			return p, nil
		}
		if timeout == nil {
			fired, stop := s.clock.Timer(s.cfg.StartTimeout)
			defer stop()
			defer waits.On(ctx, waits.EngineStart)()
			timeout = fired
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, fmt.Errorf("no engine worker after %s: %w", s.cfg.StartTimeout, ErrWorkerDied)
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the engine worker: %w", context.Cause(ctx))
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *supervisor) state() (pid int, restarts int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.process != nil {
		pid = s.mu.process.pid
	}
	return pid, s.mu.restarts
}

func (s *supervisor) close() {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.cancel()
	<-s.ended
	s.publish(nil)
}

// startProcess starts a worker process and returns when it listens. The process ends
// with this one: its standard input is our pipe, and on Linux the kernel kills it when
// the thread that started it ends, so that thread waits for it.
func startProcess(cfg PoolConfig, deps Deps) (*process, error) {
	dir, err := socketDir()
	if err != nil {
		return nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own executable: %w", err)
	}
	worker := cfg.Worker
	worker.Socket = filepath.Join(dir, socketName)
	cmd := exec.Command(executable, "engine-worker")
	cmd.Stderr = deps.Stderr
	cmd.Env = workerEnviron(os.Environ())
	tieToParent(cmd)
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, fmt.Errorf("pipes of the worker: %w", err)
	}
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread lives as long as the child
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended does not matter; the log has its stderr
		}
		_ = os.RemoveAll(dir)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", executable, err)
	}
	p := &process{connector: socket{worker.Socket}, pid: cmd.Process.Pid, done: done, pulses: &atomic.Int64{}}
	p.stop = func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill() // fails when it is gone already
		<-done
	}
	if err := greet(cfg, deps, stdin, io.TeeReader(stdout, counter{p.pulses}), worker); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// workerEnviron keeps of the environment what a process needs to run, and none of the
// server's secrets.
func workerEnviron(environ []string) []string {
	kept := []string{} // not nil: that would be all of it
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "TZ", "LANG", "LD_LIBRARY_PATH":
			kept = append(kept, v)
		default:
			if strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "MALLOC_") {
				kept = append(kept, v)
			}
		}
	}
	return kept
}

// counter counts writes.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(1)
	return len(b), nil
}

// greet hands the worker its configuration and waits until it is ready.
func greet(cfg PoolConfig, deps Deps, stdin io.Writer, stdout io.Reader, worker WorkerConfig) error {
	ready := make(chan error, 1)
	go func() { // ends with the worker at the latest
		if err := writeWorkerConfig(stdin, worker); err != nil {
			ready <- fmt.Errorf("configure worker: %w", err)
			return
		}
		out := bufio.NewReader(stdout)
		line, err := out.ReadString('\n')
		if err == nil && line != readyLine {
			err = fmt.Errorf("it said %.40q", line)
		}
		ready <- err
		_, _ = io.Copy(io.Discard, out)
	}()
	timeout, stop := deps.Clock.Timer(cfg.StartTimeout)
	defer stop()
	select {
	case err := <-ready:
		if err != nil {
			return fmt.Errorf("wait for the worker: %w: %w", ErrWorkerDied, err)
		}
		return nil
	case <-timeout:
		return fmt.Errorf("worker not ready after %s: %w", cfg.StartTimeout, ErrWorkerDied)
	}
}

// startInProcess runs the worker's code here.
func startInProcess(cfg PoolConfig, deps Deps) (*process, error) {
	config := cfg.Worker
	config.Slices = deps.Slices
	w, err := openWorker(config, deps.Encoder)
	if err != nil {
		return nil, err
	}
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.close()
		_ = w.serve(ctx, listener, nil) // ends by cancel only
	}()
	return &process{
		connector: listener, pid: os.Getpid(), done: done,
		stop: func() { cancel(); <-done },
	}, nil
}

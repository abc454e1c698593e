package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// serve answers connections until ctx ends or parent reaches its end.
func (w *worker) serve(ctx context.Context, listener net.Listener, parent io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept returns
	defer stop()
	if parent != nil {
		go func() { // ends with the process at the latest: a read of stdin cannot be stopped
			_, _ = io.Copy(io.Discard, parent)
			cancel()
		}()
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			select {
			case err := <-w.fatal:
				return err
			default:
			}
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept from the engine pool: %w", err)
		}
		all.Go(func() {
			if err := w.answer(ctx, conn); err != nil {
				select {
				case w.fatal <- err:
				default: // one is enough
				}
				_ = listener.Close()
			}
		})
	}
}

// pulseInterval is how often a worker gives a sign of life.
const pulseInterval = time.Second

// pulse gives a sign of life on w until stop is called or nobody reads it.
func pulse(w io.Writer) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(pulseInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			if _, err := io.WriteString(w, pulseLine); err != nil {
				return // the server is gone
			}
		}
	}()
	return func() { close(done) }
}

// socketBytes is what a connection holds of rows that were not read yet: a frame, so
// that the session goes on with the next one.
const socketBytes = 2 * frameRowsBytes

// answer serves one connection until its other end closes it. Requests come one at a
// time; while one is answered only a cancel may come. The error is one that makes the
// engine of no more use.
func (w *worker) answer(ctx context.Context, conn net.Conn) (fatal error) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // unblocks reads and writes
	defer stop()
	if c, ok := conn.(*net.UnixConn); ok {
		_ = c.SetWriteBuffer(socketBytes) // the system may give less
	}
	m := newMessages(conn, conn)
	s, err := newSession(w)
	if err != nil {
		_ = m.send(frameFailed, failureOf(err)) // the pool sees the close otherwise
		return fatalOf(err)
	}
	defer s.close()
	requests, done := make(chan request), make(chan struct{})
	canceler := &canceler{}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(requests)
		readRequests(m, canceler, requests, done)
		canceler.cancel() // the other end is gone
	})
	for r := range requests {
		if err := s.answer(ctx, r, m); err != nil {
			fatal = fatalOf(err)
			break
		}
	}
	close(done)
	_ = conn.Close() // ends the reader
	reader.Wait()
	return fatal
}

// fatalOf is err if it is fatal.
func fatalOf(err error) error {
	var engine *EngineError
	if errors.As(err, &engine) && engine.Fatal {
		return err
	}
	return nil
}

// request is one frame that wants an answer. ctx ends when it is canceled.
type request struct {
	kind     byte
	plan     *Plan
	canceled context.Context
	finish   func()
}

// canceler cancels the request being answered. A cancel that comes between requests
// is for one that is over, and does nothing.
type canceler struct {
	mu struct {
		sync.Mutex
		current *context.CancelFunc
	}
}

func (c *canceler) begin() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	mine := &cancel
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.current = mine
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.current == mine { // the next request may have begun already
			c.mu.current = nil
		}
	}
}

func (c *canceler) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.current != nil {
		(*c.mu.current)()
	}
}

// readRequests reads frames until the connection ends or one makes no sense.
func readRequests(m *messages, c *canceler, requests chan<- request, done <-chan struct{}) {
	for {
		kind, _, err := m.receive()
		if err != nil {
			return
		}
		if kind == frameCancel {
			c.cancel()
			continue
		}
		var message planMessage
		if (kind != frameQuery && kind != frameDescribe) || m.decode(&message) != nil {
			return
		}
		p, err := message.plan()
		if err != nil {
			return
		}
		ctx, finish := c.begin()
		select {
		case requests <- request{kind: kind, plan: p, canceled: ctx, finish: finish}:
		case <-done:
			finish()
			return
		}
	}
}

// answer answers one request. An error ends the connection.
func (s *session) answer(ctx context.Context, r request, m *messages) error {
	defer r.finish()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(r.canceled, func() { cancel(errCanceled) })
	defer stop()
	var err error
	if r.kind == frameDescribe {
		var d *Description
		if d, err = guarded(func() (*Description, error) { return s.describe(r.plan) }); err == nil {
			return m.send(frameTold, d)
		}
	} else {
		_, err = guarded(func() (struct{}, error) { return struct{}{}, s.query(ctx, r.plan, m) })
	}
	var network *net.OpError
	switch {
	case err == nil:
		return m.send(frameDone, nil)
	case errors.As(err, &network) || errors.Is(err, io.ErrClosedPipe):
		return err
	}
	return errors.Join(m.send(frameFailed, failureOf(err)), fatalOf(err))
}

// guarded turns a panic into an error of the one query that met it.
func guarded[T any](f func() (T, error)) (out T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &EngineError{Kind: KindInternal, Message: fmt.Sprintf("panic: %v", r)}
		}
	}()
	return f()
}

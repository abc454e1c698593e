package duckdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// wire is the pool's end of a connection to a worker: one request at a time, by one
// goroutine.
type wire struct {
	conn     net.Conn
	owner    *process
	messages *messages
	clock    env.Clock
	// patience is how long a canceled request may take to end.
	patience time.Duration
	// broken says that the two ends no longer agree where they are.
	broken bool
	// sending guards writes: a cancel may come while nothing else is sent, but from
	// another goroutine.
	sending sync.Mutex
}

// wireBuffer holds a small answer whole, so that it costs one read.
const wireBuffer = 32 << 10

func newWire(conn net.Conn, owner *process, clock env.Clock, patience time.Duration) *wire {
	return &wire{
		conn: conn, owner: owner, clock: clock, patience: patience,
		messages: newMessages(bufio.NewReaderSize(conn, wireBuffer), conn),
	}
}

// request sends a request and returns the first frame of the answer.
func (w *wire) request(ctx context.Context, kind byte, p *Plan) (byte, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, context.Cause(ctx)
	}
	w.sending.Lock()
	err := w.messages.send(kind, messageOf(p))
	w.sending.Unlock()
	if err != nil {
		w.broken = true
		if errors.Is(err, ErrPlan) {
			return 0, nil, err
		}
		return 0, nil, fmt.Errorf("%w: %w", ErrWorkerDied, err)
	}
	return w.receive(ctx)
}

// receive returns the next frame of the answer; a failure is returned as its error.
// When ctx ends the worker is told, and receive goes on until the worker says that
// the request is over, so that the connection can be used again.
func (w *wire) receive(ctx context.Context) (kind byte, rows []byte, err error) {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		w.cancel()
	})
	defer func() {
		if !stop() {
			<-told
			_ = w.conn.SetReadDeadline(time.Time{}) // a closed connection shows at the next use
		}
	}()
	for {
		kind, rows, err = w.messages.receive()
		if err != nil {
			w.broken = true
			return 0, nil, fmt.Errorf("%w: %w", ErrWorkerDied, err)
		}
		switch {
		case kind == frameFailed:
			return kind, nil, w.failure()
		case kind == frameRows && ctx.Err() != nil:
			continue // rows that nobody wants any more
		}
		return kind, rows, nil
	}
}

func (w *wire) failure() error {
	var f failure
	if err := w.messages.decode(&f); err != nil {
		w.broken = true
		return fmt.Errorf("%w: %w", ErrWorkerDied, err)
	}
	return f.err()
}

// cancel asks the worker to end the request, and gives it limited time.
func (w *wire) cancel() {
	w.sending.Lock()
	defer w.sending.Unlock()
	_ = w.conn.SetDeadline(w.clock.Now().Add(w.patience)) // a dead connection shows in receive
	_, _ = w.conn.Write([]byte{1, 0, 0, 0, frameCancel})
	_ = w.conn.SetWriteDeadline(time.Time{})
}

package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// statusInterval is how often the server hears from us at least. It ends
	// connections that are silent for wal_sender_timeout, a minute by default.
	statusInterval = 10 * time.Second
	// silentTicks is after how many intervals without a message from the server,
	// which answers every status, the connection is given up.
	silentTicks = 6
)

// feedback tells the server, beside the stream, what is durable here: soon after an
// Ack, when it asks, and every statusInterval. It also ends the stream when its
// context ends.
//
// It alone writes to the connection while the stream reads, so that the server hears
// from us also while the sink makes the stream wait.
type feedback struct {
	source *Source
	conn   *pgconn.PgConn
	// asked wakes the loop for a status at once.
	asked  chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
	// reads counts starts and ends of reads: odd while one waits for the server.
	reads atomic.Uint64
	err   atomic.Pointer[error]
}

var errSilent = errors.New("the server has fallen silent")

// startFeedback starts the loop; stop ends it.
func (s *Source) startFeedback(ctx context.Context, conn *pgconn.PgConn) *feedback {
	ctx, cancel := context.WithCancel(ctx)
	f := &feedback{source: s, conn: conn, asked: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go f.loop(ctx)
	return f
}

// stop ends the loop and waits for it. The last status has been sent then.
func (f *feedback) stop() {
	f.cancel()
	<-f.done
}

// failed is why the loop ended the stream, nil if it did not.
func (f *feedback) failed() error {
	if p := f.err.Load(); p != nil {
		return unavailable("send status", *p)
	}
	return nil
}

// reply asks for a status at once.
func (f *feedback) reply() {
	select {
	case f.asked <- struct{}{}:
	default: // one is due already
	}
}

// reading and read enclose a read of the stream.
func (f *feedback) reading() { f.reads.Add(1) }
func (f *feedback) read()    { f.reads.Add(1) }

// How often, and how long, the server is asked what the making of a slot waits for.
const (
	slotWatchInterval = time.Second
	slotWatchMost     = 5 * time.Second
)

// watchSlot tells, while a slot is made by a process of the server, what that waits
// for; told is nil for nobody. The result ends it.
func (s *Source) watchSlot(ctx context.Context, pid uint32, ask asker, told func(reason string)) (stop func()) {
	if told == nil {
		return func() {}
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer told("")
		for {
			fired, cancel := s.clock.Timer(slotWatchInterval)
			select {
			case <-end:
				cancel()
				return
			case <-fired:
			}
			// Not under ctx: a question that is broken off costs the connection.
			ctx, cancelAsk := context.WithTimeout(context.WithoutCancel(ctx), slotWatchMost)
			_ = ask(ctx, func(conn *pgx.Conn) error { // what cannot be told is left out
				text, err := blocker(ctx, conn, pid)
				if err == nil {
					told(text)
				}
				return err
			})
			cancelAsk()
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

func (f *feedback) loop(ctx context.Context) {
	defer close(f.done)
	// Closing the connection is what ends a read that waits.
	defer func() { _ = f.conn.Conn().Close() }()
	var seen uint64
	silent := 0
	for {
		fired, stop := f.source.clock.Timer(statusInterval)
		tick := false
		select {
		case <-ctx.Done():
			stop()
			_ = f.send(false) // a last word, if it still arrives
			return
		case <-f.source.ackWake:
		case <-f.asked:
		case <-fired:
			tick = true
		}
		stop()
		if tick {
			now := f.reads.Load()
			silent++
			if now != seen || now%2 == 0 {
				seen, silent = now, 0
			}
		}
		err := f.send(tick)
		if silent >= silentTicks {
			err = errSilent
		}
		if err != nil {
			f.err.CompareAndSwap(nil, &err)
			return
		}
	}
}

// statusSize is a CopyData with a standby status update in it.
const statusSize = 1 + 4 + 1 + 8 + 8 + 8 + 8 + 1

// send writes a status: everything acknowledged is written, flushed and applied, and
// nothing else is. Zero, before the first Ack, leaves the slot as it is.
func (f *feedback) send(answer bool) error {
	var b [statusSize]byte
	b[0] = 'd'
	binary.BigEndian.PutUint32(b[1:], statusSize-1)
	b[5] = 'r'
	acked := f.source.acked.Load()
	for i := range 3 {
		binary.BigEndian.PutUint64(b[6+8*i:], acked)
	}
	if f.source.noStandby.Load() {
		binary.BigEndian.PutUint64(b[14:], 0) // who has flushed nothing is none, and the slot stays as it is
	}
	binary.BigEndian.PutUint64(b[30:], uint64(f.source.clock.Now().UnixMicro()-postgresEpoch))
	if answer {
		b[38] = 1
	}
	_, err := f.conn.Conn().Write(b[:])
	return err
}

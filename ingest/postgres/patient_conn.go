package postgres

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/wal/env"
)

const (
	// connectMost is how long a connection may take to be made, unless the user says
	// otherwise with connect_timeout.
	connectMost = 30 * time.Second
	// silenceMost is how long the server may take for the next bytes of an answer. It is
	// long, because an answer may wait for a lock; without it a link that is half open
	// would hold up a copy or a question for ever.
	silenceMost = 5 * time.Minute
)

// patient makes connections whose reads end after silenceMost.
func patient(dial pgconn.DialFunc, clock env.Clock) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &patientConn{Conn: conn, clock: clock, limit: silenceMost}, nil
	}
}

// patientConn bounds how long a read waits, besides the deadlines that its user sets.
// Safe for concurrent use as a net.Conn is.
type patientConn struct {
	net.Conn
	clock env.Clock
	limit time.Duration
	mu    struct {
		sync.Mutex
		user time.Time // the user's deadline of reads, zero for none
	}
}

// Read implements net.Conn.
func (c *patientConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	err := c.Conn.SetReadDeadline(c.untilLocked())
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// SetReadDeadline implements net.Conn.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.user = t
	return c.Conn.SetReadDeadline(c.untilLocked())
}

// SetDeadline implements net.Conn.
func (c *patientConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *patientConn) untilLocked() time.Time {
	until := c.clock.Now().Add(c.limit)
	if u := c.mu.user; !u.IsZero() && u.Before(until) {
		return u
	}
	return until
}

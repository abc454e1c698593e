package postgres

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

const (
	// readInterval is the least time between reads of a stream under load, which is
	// what load adds to a change's latency at most. The server writes every message by
	// itself; a reader that is faster than the server would spend several times as long
	// in system calls as in decoding.
	readInterval = time.Millisecond
	// readBurst is how many reads may come at once after a quiet time, so that single
	// transactions are not delayed.
	readBurst = 16
	// readPlenty is from how many bytes on a read is not counted: there is enough.
	readPlenty = 16 << 10
)

// pacedReader lets small reads of a busy stream wait, so that they become fewer and
// larger. Not safe for concurrent use.
type pacedReader struct {
	from  io.Reader
	clock env.Clock
	// socket, once known, is kept from waking us while we pause: the runtime's poller
	// otherwise wakes for every segment that arrives.
	socket syscall.RawConn
	// due is when the small reads so far have had their time.
	due time.Time
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	if wait := p.due.Sub(p.clock.Now()); wait > 0 {
		setWakeBytes(p.socket, readPlenty)
		err := p.clock.Sleep(context.Background(), wait)
		setWakeBytes(p.socket, 1)
		if err != nil {
			return 0, err
		}
	}
	n, err := p.from.Read(b)
	if n >= readPlenty {
		return n, err
	}
	if earliest := p.clock.Now().Add(-readBurst * readInterval); p.due.Before(earliest) {
		p.due = earliest
	}
	p.due = p.due.Add(readInterval)
	return n, err
}

// rawSocket is the socket under a connection, nil when there is none to be had.
func rawSocket(conn net.Conn) syscall.RawConn {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	under, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

package pgwire

import (
	"context"
	"io"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/mutant"
)

// copyReader is the client's data of a COPY FROM STDIN. The data of a CopyData
// message are not buffered, however long it is.
type copyReader struct {
	session *session
	ctx     context.Context // of the statement
	end     error           // once the stream is over
}

// Read implements CopyReader.
func (r *copyReader) Read(p []byte) (int, error) {
	if r.end != nil || len(p) == 0 {
		return 0, r.end
	}
	stop := context.AfterFunc(r.ctx, r.session.conn.interruptRead)
	defer stop()
	n, err := r.read(p)
	r.end = err
	return n, err
}

func (r *copyReader) read(p []byte) (int, error) {
	s := r.session
	for s.copyLeft == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.conn.in.Read(p[:min(len(p), s.copyLeft)])
	s.copyLeft -= n
	if n > 0 || err == nil {
		return n, nil
	}
	return 0, r.lost()
}

// lost is what the reader of the data sees of a read that failed: why the statement
// was interrupted, or a broken connection. Never io.EOF, which would be the proper
// end of the data.
func (r *copyReader) lost() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if mutant.On(mutant.CopyLostIsEnd) {
		return io.EOF
	}
	return &connError{io.ErrUnexpectedEOF}
}

// next reads the header of the next message of the copy.
func (r *copyReader) next() error {
	c := r.session.conn
	kind, n, err := c.readHeader()
	if err != nil {
		if _, ok := pgerr.As(err); ok {
			return err
		}
		return r.lost()
	}
	switch kind {
	case 'd':
		r.session.copyLeft = n
		return nil
	case 'c':
		if err := c.discard(n); err != nil {
			return err
		}
		return io.EOF
	case 'f':
		body, err := c.readBody(n)
		if err != nil {
			return err
		}
		m := &reader{body: body, from: r.session.charmap()}
		why := m.text()
		if m.err != nil {
			return m.err
		}
		if mutant.On(mutant.CopyFailIsEnd) {
			return io.EOF
		}
		return pgerr.New(codes.QueryCanceled, "COPY from stdin failed: %s", why)
	case 'H', 'S': // sent by clients that do not look; PostgreSQL ignores them here too
		return c.discard(n)
	}
	r.session.lost = true
	return pgerr.New(codes.ProtocolViolation, "unexpected message type 0x%02X during COPY from stdin", kind)
}

package pgwire

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// sink is the session's side of a running statement.
type sink struct {
	session *session
	ctx     context.Context // of the running statement
	// owed are columns that the client has not been told of, and must be before rows.
	owed []Column
	// formats are those of the owed columns, nil for text.
	formats []int16
}

func (k *sink) begin(ctx context.Context) *sink {
	k.ctx, k.owed, k.formats = ctx, nil, nil
	return k
}

// pay tells the columns that are owed.
func (k *sink) pay() error {
	if k.owed == nil {
		return nil
	}
	columns := k.owed
	k.owed = nil
	return k.session.rowDescription(columns, k.formats)
}

// cause is the reason why the statement must stop, nil to go on. Asked after each
// batch, so that a client that reads slowly does not keep a canceled statement alive.
func (k *sink) cause() error {
	if k.ctx.Err() != nil {
		return context.Cause(k.ctx)
	}
	return nil
}

// Rows implements Sink.
func (k *sink) Rows(messages []byte, n int) error {
	if err := k.pay(); err != nil {
		return err
	}
	if err := k.session.conn.write(messages); err != nil {
		return err
	}
	k.session.server.metrics.rows.add(int64(n))
	return k.cause()
}

// Notice implements Sink.
func (k *sink) Notice(e *pgerr.Error) error {
	m := pgproto3.NoticeResponse(errorResponse(e))
	if err := k.session.conn.send(&m); err != nil {
		return err
	}
	return k.session.conn.flush()
}

// ParameterStatus implements Sink.
func (k *sink) ParameterStatus(name, value string) error {
	k.session.change(name, value)
	return nil
}

// CopyOut implements Sink.
func (k *sink) CopyOut(format int16, columns int) error {
	m := &pgproto3.CopyOutResponse{OverallFormat: byte(format), ColumnFormatCodes: copyFormats(format, columns)}
	return k.session.conn.send(m)
}

func copyFormats(format int16, columns int) []uint16 {
	out := make([]uint16, columns)
	for i := range out {
		out[i] = uint16(format)
	}
	return out
}

// CopyData implements Sink.
func (k *sink) CopyData(messages []byte, n int) error { return k.Rows(messages, n) }

// CopyDone implements Sink.
func (k *sink) CopyDone() error {
	k.session.conn.out = append(k.session.conn.out, 'c', 0, 0, 0, 4)
	return k.session.conn.flushIfFull()
}

// CopyIn implements Sink.
func (k *sink) CopyIn(format int16, columns int) (CopyReader, error) {
	c := k.session.conn
	m := &pgproto3.CopyInResponse{OverallFormat: byte(format), ColumnFormatCodes: copyFormats(format, columns)}
	if err := c.send(m); err != nil {
		return nil, err
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	_ = c.tcp.SetReadDeadline(time.Time{}) // fails on a closed socket only
	return &copyReader{session: k.session, ctx: k.ctx}, nil
}

package pgwire

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire/clienttext"
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
	// rows are the columns of what Rows gets.
	rows []clienttext.Column
	// converted is where rows are put into the client's encoding.
	converted []byte
}

func (k *sink) begin(ctx context.Context) *sink {
	k.ctx, k.owed, k.formats, k.rows = ctx, nil, nil, k.rows[:0]
	return k
}

// of says what columns the rows have, and in which formats, nil for text.
func (k *sink) of(columns []Column, formats []int16) *sink {
	for i, c := range columns {
		column := clienttext.Column{OID: c.TypeOID}
		if i < len(formats) {
			column.Format = formats[i]
		}
		k.rows = append(k.rows, column)
	}
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
	if to := k.session.charmap(); to != nil && len(k.rows) > 0 {
		var err error
		if k.converted, err = clienttext.Rows(k.converted[:0], to, messages, k.rows); err != nil {
			return errors.Join(k.session.conn.write(k.converted), textError(err)) // the rows before it
		}
		messages = k.converted
		if cap(k.converted) > keepBytes {
			k.converted = nil
		}
	}
	return k.put(messages, n)
}

// put sends messages as they are.
func (k *sink) put(messages []byte, n int) error {
	if err := k.session.conn.write(messages); err != nil {
		return err
	}
	k.session.server.metrics.rows.add(int64(n))
	return k.cause()
}

// Notice implements Sink.
func (k *sink) Notice(e *pgerr.Error) error {
	r := errorResponse(e)
	if problem := k.session.encodeResponse(&r); problem != nil {
		return pgerr.OfText(problem)
	}
	m := pgproto3.NoticeResponse(r)
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
func (k *sink) CopyData(messages []byte, n int) error { return k.put(messages, n) }

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

package pgwire

import (
	"encoding/binary"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// reader takes a message's body apart, as strictly as PostgreSQL, and with its errors: the
// first one stays, and what is read after it is empty. They end the statement and not the
// session: where a message ends, its length says.
type reader struct {
	body []byte
	err  error
}

func (r *reader) fail(message string) {
	if r.err == nil {
		r.err = pgerr.New(codes.ProtocolViolation, "%s", message)
	}
	r.body = nil
}

// text reads a text that ends in a zero byte.
func (r *reader) text() string {
	if r.err != nil {
		return ""
	}
	text, rest, ended := strings.Cut(string(r.body), "\x00")
	if !ended {
		r.fail("invalid string in message")
		return ""
	}
	r.body = r.body[len(r.body)-len(rest):]
	if err := pgerr.BadUTF8(text); err != nil {
		r.err = err
		return ""
	}
	return text
}

// bytes reads n bytes, which are of the message.
func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.body) {
		r.fail("insufficient data left in message")
		return nil
	}
	b := r.body[:n:n]
	r.body = r.body[n:]
	return b
}

func (r *reader) kind() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) int16() int {
	if b := r.bytes(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// formats reads a count and as many format codes.
func (r *reader) formats() []int16 {
	var out []int16
	for n := r.int16(); n > 0 && r.err == nil; n-- {
		out = append(out, int16(r.int16()))
	}
	return out
}

// values reads a count and as many values, nil for NULL.
func (r *reader) values() [][]byte {
	var out [][]byte
	for n := r.int16(); n > 0 && r.err == nil; n-- {
		size := int(r.int32())
		if size == -1 {
			out = append(out, nil)
			continue
		}
		out = append(out, r.bytes(size))
	}
	return out
}

// end returns the first error; there must be nothing left.
func (r *reader) end() error {
	if r.err == nil && len(r.body) > 0 {
		r.fail("invalid message format")
	}
	return r.err
}

func readParse(body []byte) (*pgproto3.Parse, error) {
	r := &reader{body: body}
	m := &pgproto3.Parse{Name: r.text(), Query: r.text()}
	for n := r.int16(); n > 0 && r.err == nil; n-- {
		m.ParameterOIDs = append(m.ParameterOIDs, uint32(r.int32()))
	}
	return m, r.end()
}

// readBind reads the names, for which err is; rest reads the rest, once they are known to
// be good.
func readBind(body []byte) (m *pgproto3.Bind, rest func() error, err error) {
	r := &reader{body: body}
	m = &pgproto3.Bind{DestinationPortal: r.text(), PreparedStatement: r.text()}
	return m, func() error {
		m.ParameterFormatCodes, m.Parameters, m.ResultFormatCodes = r.formats(), r.values(), r.formats()
		return r.end()
	}, r.err
}

func readDescribe(body []byte) (*pgproto3.Describe, error) {
	r := &reader{body: body}
	m := &pgproto3.Describe{ObjectType: r.kind(), Name: r.text()}
	return m, r.end()
}

func readExecute(body []byte) (*pgproto3.Execute, error) {
	r := &reader{body: body}
	m := &pgproto3.Execute{Portal: r.text(), MaxRows: uint32(r.int32())}
	return m, r.end()
}

func readClose(body []byte) (*pgproto3.Close, error) {
	r := &reader{body: body}
	m := &pgproto3.Close{ObjectType: r.kind(), Name: r.text()}
	return m, r.end()
}

// readFunctionCall reads what function is meant; rest reads the rest, once it is known.
func readFunctionCall(body []byte) (m *pgproto3.FunctionCall, rest func() error, err error) {
	r := &reader{body: body}
	m = &pgproto3.FunctionCall{Function: uint32(r.int32())}
	return m, func() error {
		for _, f := range r.formats() {
			m.ArgFormatCodes = append(m.ArgFormatCodes, uint16(f))
		}
		m.Arguments, m.ResultFormatCode = r.values(), uint16(r.int16())
		return r.end()
	}, r.err
}

func readQuery(body []byte) (string, error) {
	r := &reader{body: body}
	sql := r.text()
	return sql, r.end()
}

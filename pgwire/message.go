package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/charmap"
	"github.com/skipprd/skipprd/pgwire/clienttext"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/env"
)

// reader takes a message's body apart, as strictly as PostgreSQL, and with its errors: the
// first one stays, and what is read after it is empty. They end the statement and not the
// session: where a message ends, its length says.
type reader struct {
	body []byte
	err  error
	// from is the encoding of the texts, nil for UTF-8.
	from *charmap.Charmap
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
	if r.from != nil {
		converted, problem := r.from.Decode(nil, []byte(text))
		if problem != nil {
			r.err = pgerr.OfText(problem)
			return ""
		}
		return string(converted)
	}
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

func readParse(body []byte, from *charmap.Charmap) (*pgproto3.Parse, error) {
	r := &reader{body: body, from: from}
	m := &pgproto3.Parse{Name: r.text(), Query: r.text()}
	for n := r.int16(); n > 0 && r.err == nil; n-- {
		m.ParameterOIDs = append(m.ParameterOIDs, uint32(r.int32()))
	}
	return m, r.end()
}

// readBind reads the names, for which err is; rest reads the rest, once they are known to
// be good.
func readBind(body []byte, from *charmap.Charmap) (m *pgproto3.Bind, rest func() error, err error) {
	r := &reader{body: body, from: from}
	m = &pgproto3.Bind{DestinationPortal: r.text(), PreparedStatement: r.text()}
	return m, func() error {
		m.ParameterFormatCodes, m.Parameters, m.ResultFormatCodes = r.formats(), r.values(), r.formats()
		return r.end()
	}, r.err
}

func readDescribe(body []byte, from *charmap.Charmap) (*pgproto3.Describe, error) {
	r := &reader{body: body, from: from}
	m := &pgproto3.Describe{ObjectType: r.kind(), Name: r.text()}
	return m, r.end()
}

func readExecute(body []byte, from *charmap.Charmap) (*pgproto3.Execute, error) {
	r := &reader{body: body, from: from}
	m := &pgproto3.Execute{Portal: r.text(), MaxRows: uint32(r.int32())}
	return m, r.end()
}

func readClose(body []byte, from *charmap.Charmap) (*pgproto3.Close, error) {
	r := &reader{body: body, from: from}
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

func readQuery(body []byte, from *charmap.Charmap) (string, error) {
	r := &reader{body: body, from: from}
	sql := r.text()
	return sql, r.end()
}

// clientEncoding is an encoding by its name: charmap is nil for UTF-8, and for SQL_ASCII, which
// says that the client takes what there is.
type clientEncoding struct {
	name    string
	charmap *charmap.Charmap
}

// charmap is what the client's texts are converted by, nil where they are not: it may be another
// one after each statement.
func (s *session) charmap() *charmap.Charmap {
	e, ok := s.sql.(EncodedSession)
	if !ok {
		return nil
	}
	if name := e.ClientEncoding(); name != s.client.name {
		c, err := charmap.Of(name)
		if err != nil { // a table of the binary that cannot be read
			s.log.Error("client encoding", env.KeyError, err)
		}
		s.client = clientEncoding{name, c}
	}
	return s.client.charmap
}

// decodeValues makes the client's parameters UTF-8, in place.
func (s *session) decodeValues(values [][]byte, types []uint32, formats []int16) error {
	from := s.charmap()
	if from == nil {
		return nil
	}
	for i, v := range values {
		converted, problem := clienttext.Parameter(from, v, types[i], formats[i])
		if problem != nil {
			e := pgerr.OfText(problem)
			e.Where = fmt.Sprintf("parameter $%d", i+1)
			return e
		}
		values[i] = converted
	}
	return nil
}

// encodeResponse puts the texts of an error or a notice into the client's encoding.
func (s *session) encodeResponse(m *pgproto3.ErrorResponse) *charmap.Error {
	to := s.charmap()
	if to == nil {
		return nil
	}
	for _, text := range []*string{
		&m.Message, &m.Detail, &m.Hint, &m.Where, &m.SchemaName, &m.TableName, &m.ColumnName, &m.DataTypeName, &m.ConstraintName,
	} {
		converted, problem := to.Encode(nil, []byte(*text))
		if problem != nil {
			return problem
		}
		*text = string(converted)
	}
	return nil
}

// legible is a text in the client's encoding, with question marks for what that has not.
func (s *session) legible(text string) string {
	to := s.charmap()
	if to == nil {
		return text
	}
	var out []byte
	for _, r := range text {
		var problem *charmap.Error
		if out, problem = to.Encode(out, []byte(string(r))); problem != nil {
			out = append(out, '?')
		}
	}
	return string(out)
}

// tellNotification sends what a NOTIFY said.
func (s *session) tellNotification(m Notification) error {
	if to := s.charmap(); to != nil {
		for _, text := range []*string{&m.Channel, &m.Payload} {
			converted, problem := to.Encode(nil, []byte(*text))
			if problem != nil {
				return s.failed(pgerr.OfText(problem))
			}
			*text = string(converted)
		}
	}
	return s.conn.send(&pgproto3.NotificationResponse{PID: m.PID, Channel: m.Channel, Payload: m.Payload})
}

// textError is what the conversion of rows failed with.
func textError(err error) error {
	var problem *charmap.Error
	if errors.As(err, &problem) {
		return pgerr.OfText(problem)
	}
	return err
}

// withoutWhere is an error without where it arose.
func withoutWhere(err error) error {
	e, ok := pgerr.As(err)
	if !ok {
		return err
	}
	c := *e
	c.Where = ""
	return &c
}

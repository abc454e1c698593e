package engine

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/sim/query"
)

// Session is a session of the planner on a world. Used by one goroutine.
type Session struct {
	engine  *Engine
	prefix  string
	session pgwire.Session
}

// Close ends the session.
func (s *Session) Close() {
	s.session.Close()
	s.engine.slices.remove(s.prefix)
}

// Exec runs a statement and drops its rows.
func (s *Session) Exec(ctx context.Context, sql string) error {
	_, err := s.run(ctx, sql)
	return err
}

// Table returns all rows of a table, sorted: its fields in order, rendered as
// query.AppendRow does.
func (s *Session) Table(ctx context.Context, t *catalog.Table) ([]string, error) {
	name := quote.Name(t.Schema) + "." + quote.Name(t.Name)
	rows, err := s.run(ctx, "SELECT * FROM "+name)
	if err != nil {
		return nil, fmt.Errorf("select from %s: %w", name, err)
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		values := make([]any, len(row))
		for c, text := range row {
			if values[c], err = value(t.Current.Fields[c].Type.Kind, text); err != nil {
				return nil, fmt.Errorf("column %s of %s: %w", t.Current.Fields[c].Name, name, err)
			}
		}
		out[i] = string(query.AppendRow(nil, values))
	}
	slices.Sort(out)
	return out, nil
}

// value reads PostgreSQL's text of a value; nil is null.
func value(kind schema.Kind, text *string) (any, error) {
	if text == nil {
		return nil, nil
	}
	switch kind {
	case schema.Bool:
		return *text == "t", nil
	case schema.Int32, schema.Int64:
		return strconv.ParseInt(*text, 10, 64)
	case schema.Float32, schema.Float64:
		return strconv.ParseFloat(*text, 64)
	case schema.Binary:
		return hex.DecodeString(strings.TrimPrefix(*text, `\x`))
	}
	return *text, nil
}

// run executes a statement by the extended protocol, all columns as text.
func (s *Session) run(ctx context.Context, sql string) ([][]*string, error) {
	st, err := s.session.Prepare(ctx, sql, nil)
	if err != nil {
		return nil, err
	}
	p, err := st.Bind(ctx, nil, nil, make([]int16, len(st.Columns())))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var sink rows
	_, _, err = p.Execute(ctx, &sink, 0)
	if syncErr := s.session.Sync(ctx, err != nil); err == nil {
		err = syncErr
	}
	return sink.rows, err
}

// rows is a sink that keeps rows.
type rows struct{ rows [][]*string }

var _ pgwire.Sink = (*rows)(nil)

// The frame of a DataRow: type, length, number of columns.
const dataRowHeader = 1 + 4 + 2

// Rows implements pgwire.Sink.
func (r *rows) Rows(messages []byte, _ int) error {
	for len(messages) > 0 {
		end := 1 + int(binary.BigEndian.Uint32(messages[1:]))
		if end < dataRowHeader || end > len(messages) {
			return io.ErrUnexpectedEOF
		}
		row := make([]*string, binary.BigEndian.Uint16(messages[5:]))
		b := messages[dataRowHeader:end]
		for i := range row {
			n := int32(binary.BigEndian.Uint32(b))
			b = b[4:]
			if n >= 0 {
				text := string(b[:n])
				row[i], b = &text, b[n:]
			}
		}
		r.rows, messages = append(r.rows, row), messages[end:]
	}
	return nil
}

// Notice implements pgwire.Sink.
func (*rows) Notice(*pgerr.Error) error { return nil }

// ParameterStatus implements pgwire.Sink.
func (*rows) ParameterStatus(string, string) error { return nil }

// CopyOut implements pgwire.Sink.
func (*rows) CopyOut(int16, int) error { return nil }

// CopyData implements pgwire.Sink.
func (*rows) CopyData([]byte, int) error { return nil }

// CopyDone implements pgwire.Sink.
func (*rows) CopyDone() error { return nil }

// CopyIn implements pgwire.Sink.
func (*rows) CopyIn(int16, int) (pgwire.CopyReader, error) { return nil, io.ErrUnexpectedEOF }

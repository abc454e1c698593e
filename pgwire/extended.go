package pgwire

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// extended serves a message of the extended protocol. After an error everything is
// dropped until Sync.
func (s *session) extended(kind byte, body []byte) error {
	ctx, err := s.serve(kind, body)
	if err == nil {
		return s.conn.flushIfFull()
	}
	s.skipping = true
	return s.failedIn(ctx, err)
}

// serve does what a message asks; ctx is that of the statement, if it is one that runs.
func (s *session) serve(kind byte, body []byte) (ctx context.Context, err error) {
	ctx = context.Background()
	switch kind {
	case 'P':
		m, err := readParse(body, s.charmap())
		if err != nil {
			return ctx, err
		}
		return s.within("parse", m.Query, func(ctx context.Context) error { return s.parse(ctx, m) })
	case 'B':
		m, rest, err := readBind(body, s.charmap())
		if err != nil {
			return ctx, err
		}
		return s.within("bind", s.textOf(m.PreparedStatement), func(ctx context.Context) error { return s.bind(ctx, m, rest) })
	case 'E':
		m, err := readExecute(body, s.charmap())
		if err != nil {
			return ctx, err
		}
		text := ""
		if p := s.portals[m.Portal]; p != nil {
			text = p.statement.Text
		}
		return s.within("execute", text, func(ctx context.Context) error { return s.execute(ctx, m) })
	case 'D':
		m, err := readDescribe(body, s.charmap())
		if err == nil {
			err = s.describe(m)
		}
		return ctx, err
	case 'C':
		m, err := readClose(body, s.charmap())
		if err == nil {
			err = s.close(m)
		}
		return ctx, err
	}
	if err := (&reader{body: body}).end(); err != nil { // 'H'
		return ctx, err
	}
	return ctx, s.conn.flush()
}

// within runs f as a statement that can be canceled.
func (s *session) within(step, text string, f func(context.Context) error) (context.Context, error) {
	ctx, end := s.begin(text)
	ended := s.watch(step, text)
	err := f(ctx)
	ended()
	end()
	return ctx, err
}

// watch tells the session, if it wants to know, of a statement; ended tells it of its end.
func (s *session) watch(step, text string) (ended func()) {
	w, ok := s.sql.(StatementWatcher)
	if !ok {
		return func() {}
	}
	s.served = served{step, text}
	w.Began(step, text)
	clock := s.server.deps.Clock
	began := clock.Now()
	return func() { w.Ended(step, text, clock.Since(began)) }
}

func (s *session) textOf(name string) string {
	if st := s.statements.Get(name); st != nil {
		return st.Text
	}
	return ""
}

func (s *session) parse(ctx context.Context, m *pgproto3.Parse) error {
	if m.Name == "" {
		s.statements.Drop("")
	}
	st, err := s.prepare(ctx, m.Query, m.ParameterOIDs)
	if err != nil {
		return err
	}
	if m.Name != "" && s.statements.Get(m.Name) != nil {
		return pgerr.New(codes.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", m.Name)
	}
	s.statements.Put(m.Name, &Prepared{Statement: st, Text: m.Query, At: s.server.deps.Clock.Now()})
	s.conn.out = append(s.conn.out, '1', 0, 0, 0, 4)
	return nil
}

func (s *session) statement(name string) (*Prepared, error) {
	if st := s.statements.Get(name); st != nil {
		return st, nil
	}
	if name == "" {
		return nil, pgerr.New(codes.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerr.New(codes.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", name)
}

func (s *session) portal(name string) (*portal, error) {
	if p := s.live(name); p != nil {
		return p, nil
	}
	if c := s.cursor(name); c != nil {
		return &portal{Portal: c, statement: &Prepared{Statement: cursorStatement{}}}, nil
	}
	return nil, pgerr.New(codes.InvalidCursorName, "portal \"%s\" does not exist", name)
}

// cursor is the cursor of DECLARE of a name, nil when there is none.
func (s *session) cursor(name string) Portal {
	if h, ok := s.sql.(CursorHolder); ok && name != "" {
		return h.Cursor(name)
	}
	return nil
}

// cursorStatement stands for the query of a cursor of DECLARE.
type cursorStatement struct{ Statement }

// Empty implements Statement.
func (cursorStatement) Empty() bool { return false }

// AllowedInAborted implements Statement.
func (cursorStatement) AllowedInAborted() bool { return false }

// bind makes a portal. The message's values live until the next read: the engine
// copies what it keeps.
func (s *session) bind(ctx context.Context, m *pgproto3.Bind, rest func() error) error {
	st, err := s.statement(m.PreparedStatement)
	if err != nil {
		return err
	}
	if err := rest(); err != nil {
		return err
	}
	if n := len(m.ParameterFormatCodes); n > 1 && n != len(m.Parameters) {
		return pgerr.New(codes.ProtocolViolation, "bind message has %d parameter formats but %d parameters",
			n, len(m.Parameters))
	}
	if len(m.Parameters) != len(st.Params()) {
		return pgerr.New(codes.ProtocolViolation,
			"bind message supplies %d parameters, but prepared statement \"%s\" requires %d",
			len(m.Parameters), m.PreparedStatement, len(st.Params()))
	}
	if err := s.admit(st); err != nil {
		return err
	}
	if err := s.freePortal(m.DestinationPortal); err != nil {
		return err
	}
	p := &portal{statement: st}
	if err := s.bindPortal(ctx, p, m); err != nil {
		return ofPortal(m.DestinationPortal, err)
	}
	s.portals[m.DestinationPortal] = p
	s.conn.out = append(s.conn.out, '2', 0, 0, 0, 4)
	return nil
}

// freePortal makes room for a portal of a name: the unnamed one gives way.
func (s *session) freePortal(name string) error {
	switch {
	case name == "":
		s.unbind("")
	case s.live(name) != nil || s.cursor(name) != nil:
		return pgerr.New(codes.DuplicateCursor, "cursor \"%s\" already exists", name)
	}
	return nil
}

// bindPortal gives a portal its values and formats.
func (s *session) bindPortal(ctx context.Context, p *portal, m *pgproto3.Bind) error {
	paramFormats, bad := expandFormats(m.ParameterFormatCodes, len(m.Parameters))
	if bad >= 0 {
		e := errFormat(paramFormats[bad])
		e.Where = fmt.Sprintf("parameter $%d", bad+1)
		return e
	}
	columns := len(p.statement.Columns())
	if n := len(m.ResultFormatCodes); n > 1 && n != columns {
		return pgerr.New(codes.ProtocolViolation, "bind message has %d result formats but query has %d columns",
			n, columns)
	}
	formats, bad := expandFormats(m.ResultFormatCodes, columns)
	p.formats = formats
	if bad >= 0 { // as in PostgreSQL, it is not looked at until there are rows to send
		p.bad = &formats[bad]
		formats = make([]int16, columns)
	}
	if p.statement.Empty() {
		return nil
	}
	if err := s.decodeValues(m.Parameters, p.statement.Params(), paramFormats); err != nil {
		return err
	}
	var err error
	p.Portal, err = p.statement.Bind(ctx, m.Parameters, paramFormats, formats)
	return err
}

func errFormat(code int16) *pgerr.Error {
	return pgerr.New(codes.InvalidParameterValue, "unsupported format code: %d", code)
}

// ofPortal completes where an error of a parameter arose: the engine does not know the
// portal.
func ofPortal(name string, err error) error {
	e, ok := pgerr.As(err)
	if !ok || !strings.HasPrefix(e.Where, "parameter $") {
		return err
	}
	c := *e
	c.Where = "unnamed portal " + e.Where
	if name != "" {
		c.Where = "portal \"" + name + "\" " + e.Where
	}
	return &c
}

// expandFormats gives each of n values its format code. bad is the first that has one
// that there is not, -1 when there is none.
func expandFormats(given []int16, n int) (out []int16, bad int) {
	out = make([]int16, n)
	bad = -1
	for i := range out {
		switch len(given) {
		case 0:
		case 1:
			out[i] = given[0]
		default:
			out[i] = given[i]
		}
		if out[i] != 0 && out[i] != 1 && bad < 0 {
			bad = i
		}
	}
	return out, bad
}

func (s *session) describe(m *pgproto3.Describe) error {
	var columns []Column
	var formats []int16
	switch m.ObjectType {
	case 'S':
		st, err := s.statement(m.Name)
		if err != nil {
			return err
		}
		columns = st.Columns()
		if columns != nil && s.sql.Status() == Aborted {
			return errAborted()
		}
		if err := s.conn.send(&pgproto3.ParameterDescription{ParameterOIDs: st.Params()}); err != nil {
			return err
		}
	case 'P':
		p, err := s.portal(m.Name)
		if err != nil {
			return err
		}
		if p.Portal != nil {
			columns, formats = p.Columns(), p.formats
		}
		if columns != nil && s.sql.Status() == Aborted {
			return errAborted()
		}
	default:
		return pgerr.New(codes.ProtocolViolation, "invalid DESCRIBE message subtype %d", m.ObjectType)
	}
	if columns == nil {
		s.conn.out = append(s.conn.out, 'n', 0, 0, 0, 4)
		return nil
	}
	return s.rowDescription(columns, formats)
}

func (s *session) execute(ctx context.Context, m *pgproto3.Execute) error {
	p, err := s.portal(m.Portal)
	if err != nil {
		return err
	}
	if err := s.admit(p.statement); err != nil {
		return err
	}
	switch {
	case p.Portal == nil:
		s.conn.out = append(s.conn.out, 'I', 0, 0, 0, 4)
		return nil
	case p.done:
		if p.Columns() == nil {
			return pgerr.New(codes.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", m.Portal)
		}
		return s.complete(emptyTag(p.doneTag))
	case p.failed:
		return pgerr.New(codes.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", m.Portal)
	case p.bad != nil:
		return errFormat(*p.bad)
	}
	s.server.metrics.queries.add(1)
	limit := int(int32(m.MaxRows)) // negative: no limit, as in PostgreSQL
	tag, done, err := p.Execute(ctx, s.sink.begin(ctx).of(p.Columns(), p.formats), max(limit, 0))
	if err != nil {
		p.failed = true
		return err
	}
	if !done {
		s.conn.out = append(s.conn.out, 's', 0, 0, 0, 4)
		return nil
	}
	p.done, p.doneTag = true, tag
	return s.complete(tag)
}

// emptyTag is the tag of a portal that is executed again after its end: no rows.
func emptyTag(tag string) string {
	for i := len(tag); i > 0; i-- {
		if tag[i-1] == ' ' {
			return tag[:i] + "0"
		}
	}
	return tag
}

// close drops a statement or a portal; one that does not exist is no error.
func (s *session) close(m *pgproto3.Close) error {
	switch m.ObjectType {
	case 'S':
		s.statements.Drop(m.Name)
	case 'P':
		if s.portals[m.Name] != nil {
			s.unbind(m.Name)
		} else if c := s.cursor(m.Name); c != nil {
			c.Close()
		}
	default:
		return pgerr.New(codes.ProtocolViolation, "invalid CLOSE message subtype %d", m.ObjectType)
	}
	s.conn.out = append(s.conn.out, '3', 0, 0, 0, 4)
	return nil
}

package pgwire

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/clienttext"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// query serves a Query message: several statements, one implicit transaction.
func (s *session) query(body []byte) error {
	sql, err := readQuery(body, s.charmap())
	if err != nil {
		return s.finishQuery(context.Background(), err)
	}
	s.dropUnnamed()
	ctx, end := s.begin(sql)
	ended := s.watch("statement", sql)
	err = s.runAll(ctx, sql)
	ended()
	end()
	return s.finishQuery(ctx, err)
}

func (s *session) finishQuery(ctx context.Context, err error) error {
	if err != nil {
		if err := s.failedIn(ctx, err); err != nil {
			return err
		}
		if err := s.endImplicit(ctx, true); err != nil {
			if err := s.failed(err); err != nil {
				return err
			}
		}
	}
	return s.ready()
}

// dropUnnamed forgets the unnamed statement and portal, as a simple query does.
func (s *session) dropUnnamed() {
	s.statements.Drop("")
	if p := s.portals[""]; p != nil {
		p.close()
		delete(s.portals, "")
	}
}

func (s *session) runAll(ctx context.Context, sql string) error {
	parts, err := s.sql.Split(sql)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		s.conn.out = append(s.conn.out, 'I', 0, 0, 0, 4)
		return s.endImplicit(ctx, false)
	}
	for i, part := range parts {
		if err := s.runOne(ctx, part, i == len(parts)-1); err != nil {
			return err
		}
	}
	return nil
}

// runOne runs a statement of a simple query. After the last one the implicit
// transaction is committed before the client hears that it succeeded.
func (s *session) runOne(ctx context.Context, sql string, last bool) error {
	st, err := s.prepare(ctx, sql, nil)
	if err != nil {
		return err
	}
	if st.Empty() {
		if last {
			return s.endImplicit(ctx, false)
		}
		return nil
	}
	if len(st.Params()) > 0 {
		return pgerr.New(codes.UndefinedParameter, "there is no parameter $1")
	}
	formats := make([]int16, len(st.Columns()))
	b, ok := st.(BinaryStatement)
	binary := ok && b.Binary()
	for i := range formats {
		if binary {
			formats[i] = 1
		}
	}
	p, err := st.Bind(ctx, nil, nil, formats)
	if err != nil {
		return err
	}
	defer p.Close()
	sink := s.sink.begin(ctx).of(p.Columns(), formats)
	if binary {
		sink.formats = formats
	}
	if sink.owed = p.Columns(); sink.owed != nil && !isConstant(p) {
		if err := sink.pay(); err != nil {
			return err
		}
	}
	s.server.metrics.queries.add(1)
	tag, _, err := p.Execute(ctx, sink, 0)
	if err == nil {
		err = sink.pay()
	}
	if err != nil {
		return err
	}
	if last {
		if err := s.endImplicit(ctx, false); err != nil {
			return err
		}
	}
	return s.complete(tag)
}

// functionCall serves a function call message: one call, as if selected.
func (s *session) functionCall(body []byte) error {
	ctx, end := s.begin("<FASTPATH> function call")
	err := s.callFunction(ctx, body)
	end()
	return s.finishQuery(ctx, err)
}

func (s *session) callFunction(ctx context.Context, body []byte) error {
	if s.sql.Status() == Aborted {
		return errAborted()
	}
	m, rest, err := readFunctionCall(body)
	if err != nil {
		return err
	}
	caller, ok := s.sql.(FunctionCaller)
	if !ok {
		return pgerr.New(codes.UndefinedFunction, "function with OID %d does not exist", m.Function)
	}
	sql, types, err := caller.Function(ctx, m.Function)
	if err != nil {
		return err
	}
	if err := rest(); err != nil {
		return err
	}
	p, err := s.bindCall(ctx, m, sql, types)
	if err != nil {
		return err
	}
	defer p.Close()
	one := &callSink{sink: s.sink.begin(ctx).of(p.Columns(), []int16{int16(m.ResultFormatCode)})}
	if _, _, err := p.Execute(ctx, one, 0); err != nil {
		return err
	}
	if err := s.endImplicit(ctx, false); err != nil {
		return err
	}
	s.conn.out = append(append(s.conn.out, 'V', 0, 0, 0, 0), one.value...)
	binary.BigEndian.PutUint32(s.conn.out[len(s.conn.out)-len(one.value)-4:], uint32(len(one.value)+4))
	return s.conn.flushIfFull()
}

// bindCall binds the call of a function to the message's arguments.
func (s *session) bindCall(ctx context.Context, m *pgproto3.FunctionCall, sql string, types []uint32) (Portal, error) {
	if len(m.Arguments) != len(types) {
		return nil, pgerr.New(codes.ProtocolViolation, "function call message contains %d arguments but function requires %d",
			len(m.Arguments), len(types))
	}
	given := make([]int16, len(m.ArgFormatCodes))
	for i, f := range m.ArgFormatCodes {
		given[i] = int16(f)
	}
	if n := len(given); n > 1 && n != len(m.Arguments) {
		return nil, pgerr.New(codes.ProtocolViolation, "function call message contains %d argument formats but %d arguments", n, len(m.Arguments))
	}
	formats, bad := expandFormats(given, len(m.Arguments))
	if bad >= 0 {
		return nil, errFormat(formats[bad])
	}
	if f := int16(m.ResultFormatCode); f != 0 && f != 1 {
		return nil, errFormat(f)
	}
	st, err := s.sql.Prepare(ctx, sql, types)
	if err != nil {
		return nil, err
	}
	if err := s.decodeValues(m.Arguments, types, formats); err != nil {
		return nil, withoutWhere(err)
	}
	return st.Bind(ctx, m.Arguments, formats, []int16{int16(m.ResultFormatCode)})
}

// callSink keeps the value of the one row of a function call, with its length.
type callSink struct {
	*sink
	value []byte
}

// Rows implements Sink.
func (k *callSink) Rows(messages []byte, _ int) error {
	const head = 1 + 4 + 2
	if to := k.session.charmap(); to != nil {
		var err error
		if messages, err = clienttext.Rows(nil, to, messages, k.rows); err != nil {
			return textError(err)
		}
	}
	k.value = append([]byte(nil), messages[head:]...)
	return k.cause()
}

// isConstant says that a portal's errors come before its columns.
func isConstant(p Portal) bool {
	c, ok := p.(ConstantPortal)
	return ok && c.Constant()
}

// prepare analyses a statement, refusing it in an aborted transaction unless it is
// one that ends it.
func (s *session) prepare(ctx context.Context, sql string, types []uint32) (Statement, error) {
	st, err := s.sql.Prepare(ctx, sql, types)
	if err != nil {
		if e, ok := pgerr.As(err); s.sql.Status() == Aborted && !(ok && e.Code == codes.Syntax) {
			return nil, errAborted()
		}
		return nil, err
	}
	return st, s.admit(st)
}

// admit refuses statements in an aborted transaction.
func (s *session) admit(st Statement) error {
	if s.sql.Status() == Aborted && !st.Empty() && !st.AllowedInAborted() {
		return errAborted()
	}
	return nil
}

func errAborted() *pgerr.Error {
	return pgerr.New(codes.InFailedSQLTransaction,
		"current transaction is aborted, commands ignored until end of transaction block")
}

func (s *session) complete(tag string) error {
	n := len(tag) + 5
	s.conn.out = append(s.conn.out, 'C', byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	s.conn.out = append(append(s.conn.out, tag...), 0)
	return s.conn.flushIfFull()
}

// rowDescription announces columns; formats is nil for text.
func (s *session) rowDescription(columns []Column, formats []int16) error {
	fields := make([]pgproto3.FieldDescription, len(columns))
	to := s.charmap()
	for i, c := range columns {
		name, problem := clienttext.Value(to, []byte(c.Name), 0, 0)
		if problem != nil {
			return pgerr.OfText(problem)
		}
		fields[i] = pgproto3.FieldDescription{
			Name: name, TableOID: c.TableOID, TableAttributeNumber: c.AttNum,
			DataTypeOID: c.TypeOID, DataTypeSize: c.TypeSize, TypeModifier: c.TypMod,
		}
		if formats != nil {
			fields[i].Format = formats[i]
		}
	}
	return s.conn.send(&pgproto3.RowDescription{Fields: fields})
}

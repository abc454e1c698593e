package pgwire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/wal/env"
)

// toyEngine answers a handful of fixed statements.
type toyEngine struct {
	mu       sync.Mutex
	roles    map[string]string // verifiers
	copied   []string          // what ended COPY FROM STDIN statements received
	running  chan string       // statements that block tell their start here
	canceled chan error        // and the cause of their end
	flooded  atomic.Int64      // rows made by floods
	mail     []pgwire.Notification
	wakes    []func() // of the sessions
}

func newToy() *toyEngine {
	return &toyEngine{roles: map[string]string{"postgres": ""}, running: make(chan string, 16), canceled: make(chan error, 16)}
}

func (t *toyEngine) Role(_ context.Context, user string) (pgwire.Role, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.roles[user]
	if !ok {
		return pgwire.Role{}, pgerr.New(codes.InvalidAuthorizationSpecification, "role \"%s\" does not exist", user)
	}
	return pgwire.Role{Name: user, CanLogin: user != "nologin", Verifier: v}, nil
}

func (t *toyEngine) Open(_ context.Context, s pgwire.Startup) (pgwire.Session, error) {
	if s.Database == "nowhere" {
		return nil, pgerr.New(codes.InvalidCatalogName, "database \"nowhere\" does not exist")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakes = append(t.wakes, s.Wake)
	return &toySession{engine: t, startup: s, status: pgwire.Idle}, nil
}

type toySession struct {
	engine  *toyEngine
	startup pgwire.Startup
	status  pgwire.TxStatus
	cursor  pgwire.Portal
}

// notify has mail for whoever asks first, and wakes all.
func (t *toyEngine) notify(payload string) {
	t.mu.Lock()
	t.mail = append(t.mail, pgwire.Notification{PID: 1, Channel: "mail", Payload: payload})
	wakes := t.wakes
	t.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

func (s *toySession) Listens() bool { return true }

func (s *toySession) Notifications() []pgwire.Notification {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	mail := s.engine.mail
	s.engine.mail = nil
	return mail
}

func (s *toySession) Parameters() map[string]string {
	return map[string]string{"server_version": "15.7"}
}

func (s *toySession) Split(sql string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(sql, ";") {
		part = strings.TrimSpace(part)
		if strings.HasPrefix(part, "syntax") {
			return nil, pgerr.New(codes.Syntax, "syntax error at or near \"syntax\"").WithPosition(1)
		}
		if part != "" && !strings.HasPrefix(part, "--") {
			out = append(out, part)
		}
	}
	return out, nil
}

func (s *toySession) Prepare(_ context.Context, sql string, types []uint32) (pgwire.Statement, error) {
	parts, err := s.Split(sql)
	if err != nil {
		return nil, err
	}
	st := &toyStatement{session: s}
	if len(parts) > 0 {
		st.words = strings.Fields(parts[0])
	}
	switch st.word(0) {
	case "rows": // rows n: n rows of (int4, text)
		st.columns = []pgwire.Column{
			{Name: "n", TypeOID: 23, TypeSize: 4, TypMod: -1}, {Name: "t", TypeOID: 1043, TypeSize: -1, TypMod: 14},
		}
	case "select": // select $1 …: the parameters as text
		for range strings.Count(sql, "$") {
			st.params = append(st.params, 25)
			st.columns = append(st.columns, pgwire.Column{Name: "p", TypeOID: 25, TypeSize: -1, TypMod: -1})
		}
		for i, oid := range types {
			if i < len(st.params) && oid != 0 {
				st.params[i] = oid
			}
		}
		if len(st.params) == 0 {
			st.columns = []pgwire.Column{{Name: "?column?", TypeOID: 25, TypeSize: -1, TypMod: -1}}
		}
	case "missing":
		return nil, pgerr.New(codes.UndefinedTable, "relation \"missing\" does not exist")
	}
	return st, nil
}

func (s *toySession) Status() pgwire.TxStatus { return s.status }

func (s *toySession) Fail() {
	if s.status == pgwire.InTx {
		s.status = pgwire.Aborted
	}
}

func (s *toySession) Sync(context.Context, bool) error { return nil }

func (s *toySession) Close() {}

type toyStatement struct {
	session *toySession
	words   []string
	params  []uint32
	columns []pgwire.Column
}

func (st *toyStatement) word(i int) string {
	if i < len(st.words) {
		return strings.ToLower(st.words[i])
	}
	return ""
}

func (st *toyStatement) Empty() bool              { return len(st.words) == 0 }
func (st *toyStatement) Params() []uint32         { return st.params }
func (st *toyStatement) Columns() []pgwire.Column { return st.columns }
func (st *toyStatement) AllowedInAborted() bool {
	return st.word(0) == "rollback" || st.word(0) == "commit"
}

func (st *toyStatement) Bind(_ context.Context, values [][]byte, pf, rf []int16) (pgwire.Portal, error) {
	p := &toyPortal{toyStatement: st, formats: rf}
	for i, v := range values {
		if v == nil {
			p.values = append(p.values, nil)
			continue
		}
		text, err := encode.DecodeParam(st.params[i], pf[i], v)
		if err != nil {
			return nil, err
		}
		p.values = append(p.values, text)
	}
	return p, nil
}

type toyPortal struct {
	*toyStatement
	values  []any
	formats []int16
	sent    int
	closed  bool
}

func (p *toyPortal) Close() { p.closed = true }

// toyCursor is the cursor of a session, one whose Close makes it go.
type toyCursor struct{ *toyPortal }

func (c toyCursor) Close() { c.session.cursor = nil }

// Cursor knows the one of the statement "declare", which has five rows.
func (s *toySession) Cursor(name string) pgwire.Portal {
	if s.cursor == nil || name != "c" {
		return nil
	}
	return s.cursor
}

func (p *toyPortal) Execute(ctx context.Context, sink pgwire.Sink, maxRows int) (string, bool, error) {
	s := p.session
	switch p.word(0) {
	case "rows":
		return p.rows(sink, maxRows)
	case "select":
		if len(p.values) == 0 {
			p.values = []any{strings.Join(p.words[1:], " ")}
		}
		cols := make([]encode.Column, len(p.columns))
		for i, c := range p.columns {
			cols[i] = encode.Column{Name: c.Name, TypeOID: c.TypeOID, Format: p.formats[i]}
		}
		return "SELECT 1", true, sink.Rows(encode.AppendDataRow(nil, cols, p.values), 1)
	case "declare":
		columns := make([]pgwire.Column, 2)
		rows := &toyStatement{session: s, words: []string{"rows", "5"}, columns: columns}
		s.cursor = toyCursor{&toyPortal{toyStatement: rows, formats: make([]int16, 2)}}
		return "DECLARE CURSOR", true, nil
	case "fetched": // what FETCH would find
		return fmt.Sprintf("FOUND %t", s.startup.Portal(p.word(1)) != nil), true, nil
	case "closed": // as CLOSE does
		s.startup.Unbind(p.word(1))
		return "CLOSE CURSOR", true, nil
	case "begin":
		s.status = pgwire.InTx
		return "BEGIN", true, nil
	case "commit", "rollback":
		s.status = pgwire.Idle
		return strings.ToUpper(p.word(0)), true, nil
	case "fail":
		return "", false, pgerr.New(codes.DivisionByZero, "division by zero").WithDetail("Detail.").WithHint("Hint.")
	case "oops":
		return "", false, errors.New("a broken thing with a secret")
	case "panic":
		panic("toy")
	case "set":
		return "SET", true, sink.ParameterStatus(p.word(1), p.word(2))
	case "notice":
		return "NOTICE", true, sink.Notice(pgerr.Notice("something to %s", "know"))
	case "sleep":
		s.engine.running <- "sleep"
		<-ctx.Done()
		s.engine.canceled <- context.Cause(ctx)
		return "", false, context.Cause(ctx)
	case "limited": // limited 5s: a statement_timeout of its own
		d, err := time.ParseDuration(p.word(1))
		if err != nil {
			return "", false, err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, d, pgwire.ErrStatementTimeout)
		defer cancel()
		<-ctx.Done()
		return "", false, context.Cause(ctx)
	case "timeout":
		return "", false, fmt.Errorf("run query: %w", pgwire.ErrStatementTimeout)
	case "flood": // rows until stopped
		s.engine.running <- "flood"
		row := encode.AppendDataRow(nil, []encode.Column{{TypeOID: 25}}, []any{strings.Repeat("x", 8000)})
		for {
			s.engine.flooded.Add(1)
			if err := sink.Rows(row, 1); err != nil {
				s.engine.canceled <- err
				return "", false, err
			}
		}
	case "copyout":
		return p.copyOut(sink)
	case "copyin":
		return p.copyIn(sink)
	}
	return "", false, pgerr.New(codes.Syntax, "syntax error at or near \"%s\"", p.words[0])
}

func (p *toyPortal) rows(sink pgwire.Sink, maxRows int) (string, bool, error) {
	total, _ := strconv.Atoi(p.word(1))
	n := total - p.sent
	if maxRows > 0 {
		n = min(n, maxRows)
	}
	cols := []encode.Column{{Name: "n", TypeOID: 23, Format: p.formats[0]}, {Name: "t", TypeOID: 25, Format: p.formats[1]}}
	var buf []byte
	for i := range n {
		buf = encode.AppendDataRow(buf, cols, []any{p.sent + i, fmt.Sprintf("row %d", p.sent+i)})
	}
	p.sent += n
	if err := sink.Rows(buf, n); err != nil {
		return "", false, err
	}
	if maxRows > 0 && n == maxRows {
		return "", false, nil
	}
	return fmt.Sprintf("SELECT %d", n), true, nil
}

func (p *toyPortal) copyOut(sink pgwire.Sink) (string, bool, error) {
	if err := sink.CopyOut(0, 2); err != nil {
		return "", false, err
	}
	if err := sink.CopyData([]byte("d\x00\x00\x00\x081\ta\nd\x00\x00\x00\x082\tb\n"), 2); err != nil {
		return "", false, err
	}
	return "COPY 2", true, sink.CopyDone()
}

func (p *toyPortal) copyIn(sink pgwire.Sink) (string, bool, error) {
	r, err := sink.CopyIn(0, 2)
	if err != nil {
		return "", false, err
	}
	if p.word(1) == "refuse" {
		var b [4]byte
		if _, err := r.Read(b[:]); err != nil {
			return "", false, err
		}
		return "", false, pgerr.New(codes.BadCopyFileFormat, "missing data for column \"b\"")
	}
	p.session.engine.running <- "copyin"
	data, err := io.ReadAll(r)
	if err != nil {
		p.session.engine.canceled <- err
		return "", false, err
	}
	p.session.engine.mu.Lock()
	p.session.engine.copied = append(p.session.engine.copied, string(data))
	p.session.engine.mu.Unlock()
	return fmt.Sprintf("COPY %d", strings.Count(string(data), "\n")), true, nil
}

// startServer serves engine on a loopback port and shuts down with the test.
func startServer(t testing.TB, engine pgwire.Engine, config pgwire.Config) (*pgwire.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, engine, config, l), l.Addr().String()
}

// startOn is startServer on a listener.
func startOn(t testing.TB, engine pgwire.Engine, config pgwire.Config, l net.Listener) *pgwire.Server {
	t.Helper()
	clock, ids := env.System()
	s, err := pgwire.New(config, pgwire.Deps{Engine: engine, Clock: clock, IDs: ids, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = s.Shutdown(ctx) // sessions that a test left running are cut off
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

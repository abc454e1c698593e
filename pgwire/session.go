package pgwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/wal/env"
)

// session is one client's connection, from its first byte to its end. All but what
// stands below mu, busy, ending and activity is owned by the connection's goroutine.
type session struct {
	server     *Server
	conn       *conn
	log        *slog.Logger
	sql        Session
	version    uint32
	pid        uint32
	role       string // that it logged in as; the server's mutex guards it
	key        []byte
	statements Statements
	portals    map[string]*portal
	// skipping drops messages until Sync, after an error in the extended protocol.
	skipping bool
	// lost says that nobody knows where the next message begins.
	lost bool
	// copyLeft is what is still on the wire of the CopyData that is being read.
	copyLeft int
	sink     sink
	// served is the statement that is served, or was last.
	served served
	// changed are parameters to report before ReadyForQuery, told what was reported.
	changed, told map[string]string
	activity      activity
	// client is the encoding of the client's texts, by its name: see charmap.
	client clientEncoding
	// busy says that a statement runs.
	busy atomic.Bool
	// ending is the cause for which the session shall end at its next wait.
	ending atomic.Pointer[error]
	mu     struct {
		sync.Mutex
		cancel context.CancelCauseFunc
		// waiting says that it reads for the next message and may be woken.
		waiting, interrupted bool
	}
}

// served is a statement with the kind of message that it came in.
type served struct{ step, text string }

// portal is a bound statement. Portal is nil for an empty one.
type portal struct {
	Portal
	statement *Prepared
	// formats are as the client gave them; bad is the first that there is not, and of a
	// column, or nil.
	formats []int16
	bad     *int16
	// failed says that it ended in an error: it cannot be run again.
	failed bool
	// done says that it ran to its end, with tag doneTag.
	done    bool
	doneTag string
}

func newSession(s *Server, tcp net.Conn) *session {
	ss := &session{
		server: s, conn: newConn(tcp, &s.metrics.bytes),
		portals: map[string]*portal{}, told: map[string]string{},
	}
	ss.sink.session = ss
	ss.conn.writing = ss.activity.writing
	return ss
}

// errDone ends a session in agreement with its client.
var errDone = errors.New("session is over")

// run serves the connection. It returns when nothing is left to be said.
func (s *session) run() {
	s.log = s.server.deps.Log.With("remote", s.conn.tcp.RemoteAddr().String())
	defer func() {
		r := recover()
		s.release()
		if r == nil {
			return
		}
		s.log.Error("session panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
		_ = s.conn.tcp.SetWriteDeadline(s.server.deps.Clock.Now().Add(farewell)) // fails on a closed socket only
		s.conn.out = s.conn.out[:0]                                              // may end in half a message
		s.say(fatal(codes.Internal, "internal error"))
	}()
	err := s.start()
	if err == nil {
		for err == nil {
			err = s.step()
		}
	} else if !errors.Is(err, errDone) {
		s.server.metrics.rejected.add(1)
	}
	s.end(err)
}

// farewell is how long the last message may take.
const farewell = time.Second

// end sends the error that ends the session, if it is one for the client.
func (s *session) end(err error) {
	if errors.Is(err, errDone) {
		return
	}
	s.log.Debug("session ended", env.KeyError, err)
	if e, ok := pgerr.As(err); ok {
		_ = s.conn.tcp.SetWriteDeadline(s.server.deps.Clock.Now().Add(farewell)) // fails on a closed socket only
		s.say(e)
	}
}

func (s *session) say(e *pgerr.Error) {
	if s.sendError(e) == nil {
		_ = s.conn.flush() // the last attempt
	}
}

// release gives back what the session holds.
func (s *session) release() {
	defer s.server.unregister(s.pid)
	if s.sql == nil {
		return
	}
	s.closePortals()
	s.sql.Close()
	s.sql = nil
}

// start brings the connection to its first ReadyForQuery.
func (s *session) start() error {
	clock := s.server.deps.Clock
	_ = s.conn.tcp.SetDeadline(clock.Now().Add(s.server.config.StartupTimeout)) // fails on a closed socket only
	if s.server.closing.Load() {
		return errDone
	}
	st, err := s.negotiate()
	if err != nil || st == nil {
		if err == nil {
			err = errDone
		}
		return err
	}
	s.conn.startReading()
	request, err := st.request()
	if err != nil {
		return err
	}
	if s.server.config.RequireTLS && s.conn.tls() == nil {
		return fatal(codes.InvalidAuthorizationSpecification, "connection requires TLS").
			WithHint("Connect with sslmode=require.")
	}
	role, err := s.authenticate(request)
	if err != nil {
		return err
	}
	if err := s.server.register(s, role); err != nil {
		return err
	}
	if s.server.closing.Load() {
		return fatal(codes.CannotConnectNow, "the database system is shutting down")
	}
	_ = s.conn.tcp.SetDeadline(time.Time{}) // fails on a closed socket only
	s.conn.bodyMax = s.server.config.MessageBytesMax
	s.version = st.version
	if err := s.open(request); err != nil {
		return err
	}
	return s.ready()
}

// open starts the SQL session and greets the client.
func (s *session) open(request Startup) error {
	if err := splitOptions(request); err != nil {
		return err
	}
	request.PID, request.TLS, request.Statements, request.Portal = s.pid, s.conn.tls() != nil, &s.statements, s.bound
	request.Unbind, request.Wake = s.unbind, s.wake
	request.RemoteAddr, request.LocalAddr = s.conn.tcp.RemoteAddr().String(), s.conn.tcp.LocalAddr().String()
	now := s.server.deps.Clock.Now()
	s.activity.update(func(i *SessionInfo) {
		*i = SessionInfo{
			PID: s.pid, User: request.User, Database: request.Database, RemoteAddr: request.RemoteAddr,
			ApplicationName: request.Params["application_name"], TLS: request.TLS, BackendStart: now, StateChange: now,
			Encryption: s.conn.encryption(),
		}
	})
	ctx, end := s.begin("start-up")
	defer end()
	sql, err := s.server.deps.Engine.Open(ctx, request)
	if err != nil {
		return asFatal(Translate(ctx, err))
	}
	s.sql = sql
	s.key = make([]byte, 4)
	if s.version >= pgproto3.ProtocolVersion32 {
		s.key = make([]byte, 32)
	}
	s.server.deps.IDs.Read(s.key)
	s.changed = defaultStatus(request)
	maps.Copy(s.changed, sql.Parameters())
	if err := s.tellChanges(); err != nil {
		return err
	}
	return s.conn.send(&pgproto3.BackendKeyData{ProcessID: s.pid, SecretKey: s.key})
}

// change notes a parameter that the client is to be told of, if it does not know it so.
func (s *session) change(name, value string) {
	if name == "application_name" {
		s.activity.update(func(i *SessionInfo) { i.ApplicationName = value })
	}
	s.changed[name] = value
}

// tellChanges reports the parameters that are not what the client was told last.
func (s *session) tellChanges() error {
	if len(s.changed) == 0 {
		return nil
	}
	// In PostgreSQL's order, which is blind to case.
	byName := func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }
	for _, name := range slices.SortedFunc(maps.Keys(s.changed), byName) {
		value := s.changed[name]
		if told, ok := s.told[name]; ok && told == value {
			continue
		}
		if err := s.conn.send(&pgproto3.ParameterStatus{Name: name, Value: s.legible(value)}); err != nil {
			return err
		}
		s.told[name] = value
	}
	clear(s.changed)
	return nil
}

// defaultStatus is the set of parameters that drivers rely on, for those that the
// engine does not report.
func defaultStatus(request Startup) map[string]string {
	return map[string]string{
		"server_version": "15.0", "server_encoding": "UTF8", "client_encoding": "UTF8",
		"application_name": request.Params["application_name"], "session_authorization": request.User,
		"is_superuser": "on", "default_transaction_read_only": "off", "in_hot_standby": "off",
		"DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC",
		"integer_datetimes": "on", "standard_conforming_strings": "on",
	}
}

// ready ends a round: portals of a finished transaction go, and the client may send.
func (s *session) ready() error {
	status := s.sql.Status()
	if status == Idle {
		s.closePortals()
	}
	s.activity.idle(s.server.deps.Clock.Now(), status)
	if _, err := s.tellNotifications(); err != nil {
		return err
	}
	if err := s.tellChanges(); err != nil {
		return err
	}
	s.conn.out = append(s.conn.out, 'Z', 0, 0, 0, 5, byte(status))
	return s.conn.flush()
}

// wake has an idle session tell its client what has come. Safe for concurrent use.
func (s *session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.waiting {
		s.mu.interrupted = true
		s.conn.interruptRead()
	}
}

// wait lets others wake the session until stop is called, and sets how long it may wait.
// What is to be told is to be looked at behind it: who wakes it has put that in place before.
func (s *session) wait(deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.waiting, s.mu.interrupted = true, false
	_ = s.conn.tcp.SetReadDeadline(deadline) // fails on a closed socket only
}

// woken ends wait: from here on nobody interrupts a read.
func (s *session) woken(deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.waiting = false
	if !deadline.IsZero() || s.mu.interrupted {
		_ = s.conn.tcp.SetReadDeadline(time.Time{}) // fails on a closed socket only
		if s.ending.Load() != nil {                 // which may have been set just before
			s.conn.interruptRead()
		}
	}
}

// tellNotifications sends what has come for a client outside of a transaction.
func (s *session) tellNotifications() (told bool, err error) {
	n, ok := s.sql.(Notifier)
	if !ok || !n.Listens() || s.sql.Status() != Idle {
		return false, nil
	}
	for _, m := range n.Notifications() {
		told = true
		if err := s.tellNotification(m); err != nil {
			return true, err
		}
	}
	return told, nil
}

// bound is the portal of a name as the engine made it, nil when there is none.
func (s *session) bound(name string) Portal {
	if p := s.live(name); p != nil {
		return p.Portal
	}
	return nil
}

// live is the portal of a name; one that is gone meanwhile is forgotten.
func (s *session) live(name string) *portal {
	p := s.portals[name]
	if p == nil {
		return nil
	}
	if v, ok := p.Portal.(VanishingPortal); ok && v.Gone() {
		s.unbind(name)
		return nil
	}
	return p
}

func (s *session) unbind(name string) {
	if p := s.portals[name]; p != nil {
		p.close()
		delete(s.portals, name)
	}
}

func (s *session) closePortals() {
	for name, p := range s.portals {
		p.close()
		delete(s.portals, name)
	}
}

func (p *portal) close() {
	if p.Portal != nil {
		p.Portal.Close()
	}
}

// begin starts the context of a statement; end must be called.
func (s *session) begin(text string) (ctx context.Context, end func()) {
	s.activity.running(s.server.deps.Clock.Now(), text)
	return s.cancelable()
}

// cancelable starts a context that a cancel request ends, or the session's end; end must be
// called.
func (s *session) cancelable() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(waits.With(context.Background(), &s.activity))
	s.mu.Lock()
	s.mu.cancel = cancel
	s.mu.Unlock()
	s.busy.Store(true)
	if cause := s.ending.Load(); cause != nil {
		cancel(*cause)
	}
	return ctx, func() {
		s.busy.Store(false)
		s.mu.Lock()
		s.mu.cancel = nil
		s.mu.Unlock()
		cancel(nil)
	}
}

// cancel cancels the running statement, if any. Safe for concurrent use.
func (s *session) cancel(cause error) {
	s.mu.Lock()
	cancel := s.mu.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// terminate ends the session: its running statement is canceled; an idle one wakes.
// Safe for concurrent use.
func (s *session) terminate(cause error) {
	s.ending.Store(&cause)
	s.cancel(cause)
	s.conn.interruptRead()
	_ = s.conn.tcp.SetWriteDeadline(s.server.deps.Clock.Now().Add(farewell)) // a client that does not read
}

// sendError sends and counts an error; like PostgreSQL, it is written out at once.
func (s *session) sendError(e *pgerr.Error) error { return s.sendResponse(e, s.response(e)) }

// response is an error as the client gets it, in the encoding that it has now.
func (s *session) response(e *pgerr.Error) pgproto3.ErrorResponse {
	m := errorResponse(e)
	if problem := s.encodeResponse(&m); problem != nil { // of which PostgreSQL tells instead
		other := *pgerr.OfText(problem)
		other.Severity = e.Severity
		return errorResponse(&other)
	}
	return m
}

func (s *session) sendResponse(e *pgerr.Error, m pgproto3.ErrorResponse) error {
	s.server.metrics.countError(string(e.Code))
	if err := s.conn.send(&m); err != nil {
		return err
	}
	return s.conn.flush()
}

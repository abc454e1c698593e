package pgwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/wal/env"
)

// Server accepts connections and keeps the register of sessions. Safe for concurrent
// use.
type Server struct {
	config  Config
	deps    Deps
	mock    mockVerifier
	metrics metrics
	closing atomic.Bool
	pid     atomic.Uint32
	conns   atomic.Int64 // sockets, authenticated or not
	done    sync.WaitGroup
	mu      struct {
		sync.Mutex
		listeners map[net.Listener]struct{}
		sessions  map[uint32]*session
		sockets   map[*session]struct{}
	}
}

// New makes a server. It serves nothing until Serve.
func New(config Config, deps Deps) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("pgwire configuration: %w", err)
	}
	s := &Server{config: config.withDefaults(), deps: deps}
	if s.config.TLS != nil {
		s.config.TLS = s.config.TLS.Clone()
		s.config.TLS.NextProtos = []string{alpnProtocol}
	}
	deps.IDs.Read(s.mock.key[:])
	s.pid.Store(1000)
	s.mu.listeners = map[net.Listener]struct{}{}
	s.mu.sessions = map[uint32]*session{}
	s.mu.sockets = map[*session]struct{}{}
	return s, nil
}

// Serve accepts connections from l until Shutdown, then returns nil. Errors of
// accepting, such as a lack of file descriptors, are waited out: nothing but Shutdown
// or a listener closed by others ends the loop. Several listeners may be served at
// the same time.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.mu.listeners[l] = struct{}{}
	s.mu.Unlock()
	if s.closing.Load() {
		_ = l.Close() // nobody uses it
		return errServerClosed
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.done.Go(func() { s.watchPeers(ctx) })
	var delay time.Duration
	for {
		tcp, err := l.Accept()
		if err == nil {
			delay = 0
			s.accepted(tcp)
			continue
		}
		if s.closing.Load() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept connection: %w", err)
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		s.deps.Log.Warn("connection not accepted", env.KeyError, err, "retry", delay)
		if s.deps.Clock.Sleep(ctx, delay) != nil {
			return nil
		}
	}
}

// socketsFactor bounds sockets, with those that are still starting up and cancel
// requests, to a multiple of the sessions.
const socketsFactor = 2

func (s *Server) accepted(tcp net.Conn) {
	s.metrics.connections.add(1)
	n := s.conns.Add(1)
	if n > int64(s.config.ConnectionsMax)*socketsFactor+16 || s.closing.Load() {
		s.conns.Add(-1)
		s.metrics.rejected.add(1)
		_ = tcp.Close() // refused
		return
	}
	ss := s.enter(tcp)
	s.done.Go(func() {
		defer s.conns.Add(-1)
		defer s.leave(ss)
		defer func() { // a panic outside of the session's own guard
			if r := recover(); r != nil {
				s.deps.Log.Error("connection panicked", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			}
		}()
		ss.run()
	})
}

// ServeConn serves a connection that the caller has accepted, on the caller's goroutine and
// until it is over, and closes it. It is for callers that schedule their sessions themselves:
// limits on sockets, and Shutdown's wait, are not for it.
func (s *Server) ServeConn(tcp net.Conn) {
	ss := s.enter(tcp)
	defer s.leave(ss)
	ss.run()
}

// enter makes a connection's session.
func (s *Server) enter(tcp net.Conn) *session {
	ss := newSession(s, tcp)
	s.mu.Lock()
	s.mu.sockets[ss] = struct{}{}
	s.mu.Unlock()
	return ss
}

func (s *Server) leave(ss *session) {
	s.mu.Lock()
	delete(s.mu.sockets, ss)
	s.mu.Unlock()
	if t := ss.conn.tls(); t != nil {
		_ = t.CloseWrite() // else who reads takes the end for one that somebody has cut
	}
	_ = ss.conn.tcp.Close() // the session is over either way
}

// Shutdown stops accepting, ends idle sessions with 57P01, and waits for running
// statements until ctx ends; then these are canceled, and what is left a second later
// is cut off. It returns nil when no statement had to be canceled, ctx's cause
// otherwise.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	s.mu.Lock()
	for l := range s.mu.listeners {
		_ = l.Close() // only stops Accept
	}
	for ss := range s.mu.sockets {
		if !ss.busy.Load() {
			ss.conn.interruptRead()
		}
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.done.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, ss := range s.all() {
		ss.terminate(ErrShutdown)
	}
	fired, stop := s.deps.Clock.Timer(time.Second)
	defer stop()
	select {
	case <-done:
	case <-fired:
		s.mu.Lock()
		for ss := range s.mu.sockets {
			_ = ss.conn.tcp.Close() // cut off
		}
		s.mu.Unlock()
		<-done
	}
	return context.Cause(ctx)
}

// watchPeers cancels statements whose client is gone, until ctx or the server ends.
func (s *Server) watchPeers(ctx context.Context) {
	for s.deps.Clock.Sleep(ctx, s.config.PeerCheckInterval) == nil {
		for _, ss := range s.all() {
			if ss.busy.Load() && peerGone(ss.conn.tcp) {
				ss.cancel(ErrClientGone)
				_ = ss.conn.tcp.SetDeadline(past) // frees a blocked read or write
			}
		}
	}
}

// register makes the session of a role known under a fresh PID, unless there are too many.
func (s *Server) register(ss *session, role Role) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch left := s.config.ConnectionsMax - len(s.mu.sessions); {
	case left <= 0:
		return fatal(codes.TooManyConnections, "sorry, too many clients already")
	case left <= s.config.ReservedMax && !role.Superuser:
		return fatal(codes.TooManyConnections, "remaining connection slots are reserved for non-replication superuser connections")
	}
	if role.Limited && !role.Superuser {
		n := 0
		for _, other := range s.mu.sessions {
			if other.role == role.Name {
				n++
			}
		}
		if n >= role.ConnectionsMax {
			return fatal(codes.TooManyConnections, "too many connections for role \"%s\"", role.Name)
		}
	}
	ss.role = role.Name
	for {
		ss.pid = s.pid.Add(1) & 0x3fffffff
		if _, taken := s.mu.sessions[ss.pid]; !taken && ss.pid != 0 {
			break
		}
	}
	s.mu.sessions[ss.pid] = ss
	return nil
}

func (s *Server) unregister(pid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.sessions, pid)
}

func (s *Server) session(pid uint32) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.sessions[pid]
}

func (s *Server) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*session, 0, len(s.mu.sessions))
	for _, ss := range s.mu.sessions {
		out = append(out, ss)
	}
	return out
}

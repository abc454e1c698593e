package pgwire

import (
	"crypto/tls"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skipprd/skipprd/pgwire/waits"
)

// SessionInfo is a session as pg_stat_activity shows it.
type SessionInfo struct {
	PID             uint32
	User, Database  string
	ApplicationName string
	RemoteAddr      string
	TLS             bool
	// Encryption is that of its connection, nil for none.
	Encryption *Encryption
	// BackendStart is when the session began, QueryStart when its current or last
	// statement did, StateChange when State last changed.
	BackendStart, QueryStart, StateChange time.Time
	// TxStart is when its transaction began, zero outside one.
	TxStart time.Time
	// State is pg_stat_activity's: active, idle, idle in transaction, idle in
	// transaction (aborted).
	State string
	// Query is the text of the current or last statement, cut to what
	// track_activity_query_size leaves of it.
	Query string
	// Wait is what it waits for, zero for nothing.
	Wait waits.Event
}

// activity is the record that other goroutines may read.
type activity struct {
	mu struct {
		sync.Mutex
		info SessionInfo
		// aborted says that its transaction is: it is over then, but for its name.
		aborted bool
	}
}

// queryTextMax is track_activity_query_size without the zero at the end.
const queryTextMax = 1<<10 - 1

func (a *activity) update(f func(*SessionInfo)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.mu.info)
}

func (a *activity) read() SessionInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	info := a.mu.info
	if a.mu.aborted {
		info.TxStart = time.Time{}
	}
	return info
}

func (a *activity) running(now time.Time, query string) {
	if len(query) > queryTextMax {
		query = strings.ToValidUTF8(query[:queryTextMax], "") // not half a character at the end
	}
	a.update(func(i *SessionInfo) {
		i.State, i.Query, i.QueryStart, i.StateChange = "active", query, now, now
		i.Wait = waits.Event{}
		if i.TxStart.IsZero() {
			i.TxStart = now
		}
	})
}

var _ waits.Observer = (*activity)(nil)

// Waiting implements waits.Observer.
func (a *activity) Waiting(e waits.Event) { a.update(func(i *SessionInfo) { i.Wait = e }) }

// writing notes that the client is being written to; done says so no more.
func (a *activity) writing() (done func()) {
	var before waits.Event
	a.update(func(i *SessionInfo) { before, i.Wait = i.Wait, waits.ClientWrite })
	return func() { a.Waiting(before) }
}

func (a *activity) idle(now time.Time, status TxStatus) {
	state := "idle"
	switch status {
	case InTx:
		state = "idle in transaction"
	case Aborted:
		state = "idle in transaction (aborted)"
	}
	a.update(func(i *SessionInfo) {
		if i.State != state {
			i.State, i.StateChange = state, now
		}
		i.Wait, a.mu.aborted = waits.ClientRead, status == Aborted
		if status == Idle {
			i.TxStart = time.Time{}
		}
	})
}

// Sessions returns the sessions, by PID. Safe for concurrent use.
func (s *Server) Sessions() []SessionInfo {
	var out []SessionInfo
	for _, ss := range s.all() {
		out = append(out, ss.activity.read())
	}
	slices.SortFunc(out, func(a, b SessionInfo) int { return int(a.PID) - int(b.PID) })
	return out
}

// Cancel cancels the running statement of a session, as pg_cancel_backend does; false
// means that there is no such session.
func (s *Server) Cancel(pid uint32) bool {
	ss := s.session(pid)
	if ss != nil {
		ss.cancel(ErrClientCancel)
	}
	return ss != nil
}

// Terminate ends a session, as pg_terminate_backend does; false means that there is
// no such session.
func (s *Server) Terminate(pid uint32) bool {
	ss := s.session(pid)
	if ss != nil {
		ss.terminate(ErrTerminated)
	}
	return ss != nil
}

// Encryption is how a connection is encrypted, in OpenSSL's words.
type Encryption struct {
	Version, Cipher string
	// Bits is the length of the key.
	Bits int
}

// encryption is that of the connection, nil for none. The handshake is over.
func (c *conn) encryption() *Encryption {
	t := c.tls()
	if t == nil {
		return nil
	}
	state := t.ConnectionState()
	e := encryptionOf(tls.CipherSuiteName(state.CipherSuite))
	e.Version = strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1)
	return &e
}

// encryptionOf reads the name of a cipher suite: OpenSSL has other names before TLS 1.3.
func encryptionOf(suite string) Encryption {
	e := Encryption{Cipher: suite, Bits: 128}
	switch {
	case strings.Contains(suite, "AES_256"), strings.Contains(suite, "CHACHA20"):
		e.Bits = 256
	case strings.Contains(suite, "3DES"):
		e.Bits = 168
	}
	before, after, older := strings.Cut(strings.TrimPrefix(suite, "TLS_"), "_WITH_")
	if !older {
		return e
	}
	after = strings.NewReplacer("AES_128", "AES128", "AES_256", "AES256", "_CBC", "").Replace(after)
	if strings.HasPrefix(after, "CHACHA20") {
		after = strings.TrimSuffix(after, "_SHA256")
	}
	if before != "RSA" {
		after = before + "_" + after
	}
	e.Cipher = strings.ReplaceAll(after, "_", "-")
	return e
}

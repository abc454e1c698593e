package pgwire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
)

func cancelRequest(pid uint32, key []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(key)))
	b = binary.BigEndian.AppendUint32(b, 1234<<16|5678)
	return append(binary.BigEndian.AppendUint32(b, pid), key...)
}

func TestCancelRequest(t *testing.T) {
	toy := newToy()
	_, addr := startServer(t, toy, pgwire.Config{})
	c := login(t, addr)
	c.send(query("sleep"))
	<-toy.running
	wrong := dialRaw(t, addr)
	wrong.raw(cancelRequest(c.pid, []byte{1, 2, 3, 4}))
	if got := wrong.until(""); got != "EOF" {
		t.Errorf("answer to a cancel request: %s", got)
	}
	right := dialRaw(t, addr)
	right.raw(cancelRequest(c.pid, c.key))
	if cause := <-toy.canceled; !errors.Is(cause, pgwire.ErrClientCancel) {
		t.Errorf("cause: %v", cause)
	}
	if got := c.until("Z"); got != "E:57014 Z:I" {
		t.Errorf("canceled: %s", got)
	}
	c.send(query("select 1"))
	if got := c.until("Z"); got != "T:?column?/-1/0 D[1] C:SELECT_1 Z:I" {
		t.Errorf("after the cancel: %s", got)
	}
}

// A cancel must free a COPY that waits for its client, and leave the stream in step.
func TestCancelWaitingCopy(t *testing.T) {
	toy := newToy()
	s, addr := startServer(t, toy, pgwire.Config{})
	c := login(t, addr)
	c.send(query("copyin"))
	c.raw([]byte{'d', 0}) // a header that is not whole
	<-toy.running
	if !s.Cancel(c.pid) || s.Cancel(c.pid+1000) {
		t.Error("Cancel told wrong who is there")
	}
	if got := c.until("Z"); got != "CopyInResponse E:57014 Z:I" {
		t.Errorf("canceled: %s", got)
	}
	c.raw([]byte{0, 0, 5, 'x'})
	c.send(&pgproto3.CopyDone{}, query("select 1"))
	if got := c.until("Z"); got != "T:?column?/-1/0 D[1] C:SELECT_1 Z:I" {
		t.Errorf("after the cancel: %s", got)
	}
}

func TestLostClientCancels(t *testing.T) {
	for _, sql := range []string{"sleep", "flood"} {
		t.Run(sql, func(t *testing.T) {
			toy := newToy()
			_, addr := startServer(t, toy, pgwire.Config{PeerCheckInterval: 5 * time.Millisecond})
			c := login(t, addr)
			c.send(query(sql))
			<-toy.running
			_ = c.conn.Close()
			select {
			case cause := <-toy.canceled:
				if cause == nil {
					t.Error("ended without a cause")
				}
			case <-time.After(3 * time.Minute):
				t.Error("statement of a lost client still runs")
			}
		})
	}
}

func TestShutdown(t *testing.T) {
	toy := newToy()
	s, addr := startServer(t, toy, pgwire.Config{})
	idle, busy := login(t, addr), login(t, addr)
	half := dialRaw(t, addr)
	half.raw([]byte{0, 0})
	busy.send(query("sleep"))
	<-toy.running
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	if got := idle.until(""); got != "F:57P01 EOF" {
		t.Errorf("idle: %s", got)
	}
	if got := half.until(""); got != "EOF" {
		t.Errorf("half-open: %s", got)
	}
	cancel()
	if cause := <-toy.canceled; !errors.Is(cause, pgwire.ErrShutdown) {
		t.Errorf("cause: %v", cause)
	}
	if got := busy.until(""); got != "F:57P01 EOF" {
		t.Errorf("busy: %s", got)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still listening")
	}
}

func TestTerminateAndSessions(t *testing.T) {
	toy := newToy()
	s, addr := startServer(t, toy, pgwire.Config{})
	idle, busy := login(t, addr), login(t, addr)
	busy.send(query("begin"))
	busy.until("Z")
	infos := s.Sessions()
	if len(infos) != 2 || infos[0].State != "idle" || infos[1].State != "idle in transaction" || infos[1].Query != "begin" {
		t.Errorf("sessions: %+v", infos)
	}
	busy.send(query("sleep"))
	<-toy.running
	if infos := s.Sessions(); infos[1].State != "active" || infos[1].User != "postgres" || infos[1].Database != "lake" {
		t.Errorf("sessions: %+v", infos)
	}
	s.Terminate(busy.pid)
	s.Terminate(idle.pid)
	for _, c := range []*rawClient{busy, idle} {
		if got := c.until(""); got != "F:57P01 EOF" {
			t.Errorf("terminated: %s", got)
		}
	}
}

func TestLimits(t *testing.T) {
	// A session that is to live has no limit in time that it could come to.
	_, addr := startServer(t, newToy(), pgwire.Config{ConnectionsMax: 1, IdleTxTimeout: 50 * time.Millisecond})
	c := login(t, addr)
	second := dialRaw(t, addr)
	second.send(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "postgres"}})
	if got := second.until(""); got != "R F:53300 EOF" {
		t.Errorf("too many: %s", got)
	}
	c.send(query("begin"))
	if got := c.until(""); got != "C:BEGIN Z:T F:25P03 EOF" {
		t.Errorf("idle in transaction: %s", got)
	}
	_, addr = startServer(t, newToy(), pgwire.Config{ConnectionsMax: 1, IdleTimeout: 50 * time.Millisecond})
	for {
		idle := dialRaw(t, addr)
		idle.send(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "postgres"}})
		got := idle.until("")
		if got == "F:53300 EOF" { // the first session is not gone yet
			continue
		}
		if !strings.HasSuffix(got, "Z:I F:57P05 EOF") {
			t.Errorf("idle: %s", got)
		}
		return
	}
}

// A start that stays half ends when its time is over.
func TestHalfStartup(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{StartupTimeout: 50 * time.Millisecond})
	c := dialRaw(t, addr)
	c.raw([]byte{0, 0, 0, 20, 0})
	if got := c.until("Z"); got != "EOF" {
		t.Errorf("half a packet: %s", got)
	}
}

func TestStartup(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{})
	packet := func(version uint32, body string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
		return append(binary.BigEndian.AppendUint32(b, version), body...)
	}
	user := "user\x00postgres\x00database\x00lake\x00\x00"
	ssl, gss := packet(1234<<16|5679, ""), packet(1234<<16|5680, "")
	for _, test := range []struct {
		name string
		send []byte
		skip int // bytes of answers that are no messages
		want string
	}{
		{"plain", packet(3<<16, user), 0, "R K4 Z:I"},
		{"3.2", packet(3<<16|2, user), 0, "R K32 Z:I"},
		{"3.9", packet(3<<16|9, user), 0, "v:3.2[] R K32 Z:I"},
		{"3.1", packet(3<<16|1, user), 0, "v:3.0[] R K4 Z:I"},
		{"extension", packet(3<<16, "_pq_.x\x001\x00"+user), 0, "v:3.0[_pq_.x] R K4 Z:I"},
		{"4.0", packet(4<<16, user), 0, "F:0A000 EOF"},
		{"bytes behind SSL", append(append([]byte{}, ssl...), gss...), 1, "F:08P01 EOF"},
		{"bytes behind GSS", append(append([]byte{}, gss...), packet(3<<16, user)...), 1, "F:08P01 EOF"},
		{"direct TLS without TLS", []byte{0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5}, 0, "EOF"},
		{"no user", packet(3<<16, "\x00"), 0, "F:28000 EOF"},
		{"unknown user", packet(3<<16, "user\x00nobody\x00\x00"), 0, "R F:28000 EOF"},
		{"no login", packet(3<<16, "user\x00nologin\x00\x00"), 0, "R F:28000 EOF"},
		{"unknown database", packet(3<<16, "user\x00postgres\x00database\x00nowhere\x00\x00"), 0, "R F:3D000 EOF"},
		{"replication", packet(3<<16, "replication\x00database\x00"+user), 0, "F:0A000 EOF"},
		{"options", packet(3<<16, "options\x00-c a=b --c-d=e\\ f\x00"+user), 0, "R K4 Z:I"},
		{"bad options", packet(3<<16, "options\x00-x\x00"+user), 0, "R F:42601 EOF"},
		{"no terminator", packet(3<<16, "user\x00x"), 0, "F:08P01 EOF"},
		{"odd fields", packet(3<<16, "user\x00"), 0, "F:08P01 EOF"},
		{"too long", packet(3<<16, strings.Repeat("x", 10000)), 0, "F:08P01 EOF"},
		{"too short", []byte{0, 0, 0, 4, 0, 0, 0, 0}, 0, "F:08P01 EOF"},
	} {
		c := dialRaw(t, addr)
		c.raw(test.send)
		for range test.skip {
			var b [1]byte
			if _, err := c.conn.Read(b[:]); err != nil || b[0] != 'N' {
				t.Errorf("%s: refused with %q, %v", test.name, b[0], err)
			}
		}
		if got := c.until("Z"); got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
}

// A listener whose Accept fails for a while must not end the server.
func TestAcceptErrors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := startServer(t, newToy(), pgwire.Config{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(&flakyListener{Listener: inner, failures: 3}) }()
	login(t, inner.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Shutdown(ctx)
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

type flakyListener struct {
	net.Listener
	failures int
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

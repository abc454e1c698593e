package pgwire_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire"
)

// pipeListener hands out connections that tests make.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// exchange sends b to a fresh session and waits until the server hangs up.
func exchange(t testing.TB, l *pipeListener, b []byte) {
	t.Helper()
	client, server := net.Pipe()
	l.conns <- server
	_ = client.SetDeadline(time.Now().Add(time.Minute))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, client)
	}()
	_, _ = client.Write(b)                             // the server may hang up first
	_, _ = client.Write([]byte{'X', 0, 0, 0, 4, 0, 0}) // as may a Terminate that is in step
	_ = client.Close()
	<-done
}

func encodeMessages(ms ...pgproto3.FrontendMessage) []byte {
	var b []byte
	for _, m := range ms {
		b, _ = m.Encode(b)
	}
	return b
}

// FuzzSession feeds arbitrary bytes to sessions, before and after start-up. The server
// must neither die nor hang.
func FuzzSession(f *testing.F) {
	f.Add(true, encodeMessages(query("select 1; rows 2"), &pgproto3.Parse{Query: "select $1"}, &pgproto3.Bind{Parameters: [][]byte{[]byte("x")}},
		&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{MaxRows: 1}, &pgproto3.Sync{}))
	f.Add(true, encodeMessages(query("copyin refuse"), &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyFail{Message: "no"}, query("fail")))
	f.Add(true, encodeMessages(&pgproto3.Close{ObjectType: 'S', Name: "a"}, &pgproto3.Flush{}, &pgproto3.FunctionCall{}))
	f.Add(false, encodeMessages(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "postgres"}}))
	f.Add(false, []byte("\x00\x00\x00\x08\x04\xd2\x16\x2f\x00\x00\x00\x08\x04\xd2\x16\x30"))
	f.Add(false, cancelRequest(1001, []byte{1, 2, 3, 4}))
	l := newPipeListener()
	startOn(f, newToy(), pgwire.Config{MessageBytesMax: 1 << 16}, l)
	start := encodeMessages(&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "postgres"}})
	f.Fuzz(func(t *testing.T, started bool, b []byte) {
		for _, word := range []string{"sleep", "flood", "copyin"} { // these wait for the test
			if strings.Contains(strings.ToLower(string(b)), word) {
				t.Skip()
			}
		}
		if started {
			b = append(append([]byte{}, start...), b...)
		}
		exchange(t, l, b)
	})
}

// allocated is the total of bytes ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// The length of a message must not allocate what did not arrive.
func TestHugeLengthAllocatesNothing(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{MessageBytesMax: 1 << 30})
	clients := make([]*rawClient, 20)
	for i := range clients {
		clients[i] = login(t, addr)
	}
	before := allocated()
	for _, c := range clients {
		c.raw(append(binary.BigEndian.AppendUint32([]byte{'Q'}, 1<<29), "select"...))
	}
	clients[0].raw([]byte{'x'})
	login(t, addr)
	if grown := allocated() - before; grown > 200<<20 {
		t.Errorf("%d MiB for messages that did not come", grown>>20)
	}
}

package pgwire_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/wal/env"
)

// testTLS is a self-signed server configuration.
func testTLS(t testing.TB) *tls.Config {
	t.Helper()
	clock, ids := env.System()
	cert, key, err := pgwire.SelfSigned(clock, ids, []string{"localhost", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// withPassword gives roles a password.
func withPassword(t testing.TB, toy *toyEngine, user, password string) {
	t.Helper()
	toy.roles[user] = catalog.SCRAMVerifier(password, []byte("0123456789abcdef"), catalog.SCRAMIterations)
}

func connect(addr, options string) (*pgconn.PgConn, error) {
	host, port, _ := net.SplitHostPort(addr)
	return pgconn.Connect(context.Background(), fmt.Sprintf("host=%s port=%s %s", host, port, withDatabase(options)))
}

func sqlstate(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestAuthentication(t *testing.T) {
	toy := newToy()
	withPassword(t, toy, "ana", "geheim u\u0308²") // normalised by SASLprep
	withPassword(t, toy, "nologin", "x")
	config := pgwire.Config{AuthLoopback: pgwire.AuthSCRAM, TLS: testTLS(t)}
	_, addr := startServer(t, toy, config)
	for _, test := range []struct{ name, options, want string }{
		{"plain", "user=ana password='geheim ü2' sslmode=disable", ""},
		{"TLS with channel binding", "user=ana password='geheim ü2' sslmode=require channel_binding=require", ""},
		{"TLS without channel binding", "user=ana password='geheim ü2' sslmode=require channel_binding=disable", ""},
		{"direct TLS", "user=ana password='geheim ü2' sslmode=require sslnegotiation=direct", ""},
		{"protocol 3.2", "user=ana password='geheim ü2' sslmode=disable max_protocol_version=3.2", ""},
		{"wrong password", "user=ana password=falsch sslmode=disable", "28P01"},
		{"wrong password over TLS", "user=ana password=falsch sslmode=require", "28P01"},
		{"unknown user", "user=nobody password=x sslmode=disable", "28P01"},
		{"user without a password", "user=postgres password=x sslmode=disable", "28P01"},
		{"no login", "user=nologin password=x sslmode=disable", "28000"},
	} {
		c, err := connect(addr, test.options)
		if got := sqlstate(err); got != test.want {
			t.Errorf("%s: %s, want %q", test.name, got, test.want)
		}
		if err == nil {
			_ = c.Close(context.Background())
		}
	}
}

func TestRejectAndRequireTLS(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{AuthLoopback: pgwire.AuthReject})
	if _, err := connect(addr, "user=postgres sslmode=disable"); sqlstate(err) != "28000" {
		t.Errorf("rejected: %v", err)
	}
	_, addr = startServer(t, newToy(), pgwire.Config{TLS: testTLS(t), RequireTLS: true})
	if _, err := connect(addr, "user=postgres sslmode=disable"); sqlstate(err) != "28000" {
		t.Errorf("plaintext: %v", err)
	}
	c, err := connect(addr, "user=postgres sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close(context.Background())
}

// Plaintext that follows an SSLRequest must never be taken for what came encrypted.
func TestPlaintextInjection(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{TLS: testTLS(t)})
	c := dialRaw(t, addr)
	c.raw([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f" + "Q\x00\x00\x00\x0dselect 1\x00"))
	var b [1]byte
	if _, err := c.conn.Read(b[:]); err != nil || b[0] != 'S' {
		t.Fatalf("%q, %v", b[0], err)
	}
	if got := c.conn; tls.Client(got, &tls.Config{InsecureSkipVerify: true}).Handshake() == nil {
		t.Error("TLS began after injected plaintext")
	}
}

// CancelRequest comes over TLS too, with a key of either length.
func TestCancelOverTLS(t *testing.T) {
	for _, version := range []string{"3.0", "3.2"} {
		toy := newToy()
		_, addr := startServer(t, toy, pgwire.Config{TLS: testTLS(t)})
		c, err := connect(addr, "user=postgres sslmode=require max_protocol_version="+version)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Exec(context.Background(), "sleep").ReadAll()
			done <- err
		}()
		<-toy.running
		if err := c.CancelRequest(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; sqlstate(err) != "57014" {
			t.Errorf("%s: %v", version, err)
		}
		_ = c.Close(context.Background())
	}
}

// recording keeps what is read from a connection.
type recording struct {
	net.Conn
	read []byte
}

func (r *recording) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.read = append(r.read, b[:n]...)
	return n, err
}

// The end of a session over TLS is said, so that nobody takes it for one that was cut.
func TestTLSCloseNotify(t *testing.T) {
	_, addr := startServer(t, newToy(), pgwire.Config{TLS: testTLS(t), AuthLoopback: pgwire.AuthReject})
	c := dialRaw(t, addr)
	c.raw([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f"))
	var b [1]byte
	if _, err := c.conn.Read(b[:]); err != nil || b[0] != 'S' {
		t.Fatalf("%q, %v", b[0], err)
	}
	wire := &recording{Conn: c.conn}
	over := tls.Client(wire, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if _, err := over.Write([]byte("\x00\x00\x00\x15\x00\x03\x00\x00user\x00postgr\x00\x00")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(over); err != nil {
		t.Fatal(err)
	}
	last := byte(0)
	for rest := wire.read; len(rest) >= 5; rest = rest[5+int(binary.BigEndian.Uint16(rest[3:])):] {
		last = rest[0]
	}
	const alert = 21
	if last != alert {
		t.Errorf("the last record is of type %d", last)
	}
}

func TestConfigValidate(t *testing.T) {
	for name, config := range map[string]pgwire.Config{
		"TLS required":   {RequireTLS: true},
		"no certificate": {TLS: &tls.Config{}},
		"negative":       {ConnectionsMax: -1},
		"method":         {AuthRemote: 9},
	} {
		if _, err := pgwire.New(config, pgwire.Deps{}); err == nil || !strings.HasPrefix(err.Error(), "pgwire configuration: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package pgwire

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const (
	startupBytesMax = 10000
	codeCancel      = 1234<<16 | 5678
	codeSSL         = 1234<<16 | 5679
	codeGSS         = 1234<<16 | 5680
	alpnProtocol    = "postgresql"
	aheadBytes      = 1 << 10
	// tlsHandshake is the first byte of a TLS record: TLS without an SSLRequest.
	tlsHandshake = 0x16
)

// startup is what a StartupMessage says.
type startup struct {
	version uint32 // negotiated
	params  map[string]string
}

// negotiate reads packets until a StartupMessage. It returns nil without an error
// when the connection was only a cancel request.
//
// Plaintext that came with an SSLRequest is refused: it must not be taken for something
// that came encrypted. What comes later goes into the TLS handshake and breaks it.
func (s *session) negotiate() (*startup, error) {
	plain := &startupConn{Conn: s.conn.tcp}
	s.conn.Conn = plain
	if err := plain.fill(); err != nil {
		return nil, &connError{err}
	}
	if plain.ahead[0] == tlsHandshake {
		if s.server.config.TLS == nil {
			return nil, &connError{fmt.Errorf("direct TLS but none configured")}
		}
		if err := s.startTLS(true); err != nil {
			return nil, err
		}
	}
	sawSSL, sawGSS := false, false
	for {
		code, body, err := readStartup(s.conn)
		if err != nil {
			return nil, err
		}
		switch {
		case code == codeSSL && !sawSSL && s.conn.tls() == nil:
			sawSSL = true
			if err := s.answerSSL(plain); err != nil {
				return nil, err
			}
		case code == codeGSS && !sawGSS && s.conn.tls() == nil:
			sawGSS = true
			if err := s.refuseEncryption(plain, "GSSAPI encryption"); err != nil {
				return nil, err
			}
		case code == codeCancel:
			if len(body) > 4 {
				s.server.cancelByKey(binary.BigEndian.Uint32(body), body[4:])
			}
			return nil, nil
		case code>>16 == 3:
			return parseStartup(code, body, s.conn)
		default:
			e := fatal(codes.FeatureNotSupported,
				"unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", code>>16, code&0xffff)
			if code>>16 < 3 { // they read errors of another form
				return nil, errors.Join(errDone, s.conn.put([]byte("EFATAL:  "+e.Message+"\n\x00")))
			}
			return nil, e
		}
	}
}

func (s *session) answerSSL(plain *startupConn) error {
	if s.server.config.TLS == nil {
		return s.refuseEncryption(plain, "SSL")
	}
	if err := s.conn.put([]byte{'S'}); err != nil {
		return err
	}
	if len(plain.ahead) > 0 {
		return errAhead("SSL")
	}
	return s.startTLS(false)
}

// refuseEncryption answers a request for encryption that there is not.
func (s *session) refuseEncryption(plain *startupConn, kind string) error {
	if err := s.conn.put([]byte{'N'}); err != nil {
		return err
	}
	if len(plain.ahead) > 0 {
		return errAhead(kind)
	}
	return nil
}

// errAhead is the error of bytes that came with a request for encryption: somebody may
// have put them there.
func errAhead(kind string) *pgerr.Error {
	return fatal(codes.ProtocolViolation, "received unencrypted data after %s request", kind).
		WithDetail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.")
}

// startTLS runs the handshake, bounded by the start-up deadline.
func (s *session) startTLS(direct bool) error {
	t := tls.Server(s.conn.Conn, s.server.config.TLS)
	if err := t.Handshake(); err != nil {
		return &connError{fmt.Errorf("TLS handshake: %w", err)}
	}
	if direct && t.ConnectionState().NegotiatedProtocol != alpnProtocol {
		return &connError{fmt.Errorf("direct TLS without ALPN protocol %q", alpnProtocol)}
	}
	s.conn.Conn = t
	return nil
}

// startupConn knows what a client has sent beyond the packet that is read.
type startupConn struct {
	net.Conn
	ahead []byte
}

// fill waits for bytes.
func (c *startupConn) fill() error {
	buf := make([]byte, aheadBytes)
	n, err := io.ReadAtLeast(c.Conn, buf, 1)
	c.ahead = buf[:n]
	return err
}

// Read implements net.Conn.
func (c *startupConn) Read(b []byte) (int, error) {
	if len(c.ahead) == 0 {
		if len(b) > aheadBytes {
			return c.Conn.Read(b)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil
	}
	return n, nil
}

// readStartup reads one packet of the start-up phase and nothing beyond it.
func readStartup(r io.Reader) (code uint32, body []byte, err error) {
	var h [8]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, &connError{err}
	}
	n := binary.BigEndian.Uint32(h[:])
	if n < 8 || n > startupBytesMax {
		return 0, nil, fatal(codes.ProtocolViolation, "invalid length of startup packet")
	}
	body = make([]byte, n-8)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, &connError{err}
	}
	return binary.BigEndian.Uint32(h[4:]), body, nil
}

// parseStartup reads the parameters and settles the protocol version, telling the
// client when it is not what was asked for.
func parseStartup(version uint32, body []byte, c *conn) (*startup, error) {
	if len(body) == 0 || body[len(body)-1] != 0 {
		return nil, errTerminator()
	}
	st := &startup{params: map[string]string{}}
	var unknown []string
	rest := string(body[:len(body)-1])
	for rest != "" {
		name, after, _ := strings.Cut(rest, "\x00")
		if name == "" {
			return nil, errTerminator() // something is behind the end
		}
		value, next, ended := strings.Cut(after, "\x00")
		if !ended {
			return nil, errTerminator()
		}
		rest = next
		if strings.HasPrefix(name, "_pq_.") {
			unknown = append(unknown, name)
			continue
		}
		st.params[name] = value
	}
	if err := validUTF8(st.params); err != nil {
		return nil, err
	}
	st.version = min(version, pgproto3.ProtocolVersion32)
	if st.version == 3<<16|1 { // 3.1 was never released
		st.version = pgproto3.ProtocolVersion30
	}
	if version != st.version || len(unknown) > 0 {
		m := &pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: st.version, UnrecognizedOptions: unknown}
		if err := c.send(m); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func errTerminator() *pgerr.Error {
	return fatal(codes.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
}

// cancelByKey serves a CancelRequest. Whether the key was right is not told.
func (s *Server) cancelByKey(pid uint32, key []byte) {
	ss := s.session(pid)
	if ss != nil && subtle.ConstantTimeCompare(ss.key, key) == 1 {
		ss.cancel(ErrClientCancel)
	}
}

package pgwire

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"
)

const (
	startupBytesMax = 10000
	codeCancel      = 1234<<16 | 5678
	codeSSL         = 1234<<16 | 5679
	codeGSS         = 1234<<16 | 5680
	alpnProtocol    = "postgresql"
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
// Packets are read byte for byte: nothing is buffered, so plaintext that follows an
// SSLRequest goes into the TLS handshake and breaks it, instead of being taken for
// something that came encrypted.
func (s *session) negotiate() (*startup, error) {
	var first [1]byte
	if _, err := io.ReadFull(s.conn, first[:]); err != nil {
		return nil, &connError{err}
	}
	s.conn.Conn = &prefixedConn{Conn: s.conn.tcp, prefix: first[:]}
	if first[0] == tlsHandshake {
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
			if err := s.answerSSL(); err != nil {
				return nil, err
			}
		case code == codeGSS && !sawGSS && s.conn.tls() == nil:
			sawGSS = true
			if err := s.conn.put([]byte{'N'}); err != nil {
				return nil, err
			}
		case code == codeCancel:
			if len(body) > 4 {
				s.server.cancelByKey(binary.BigEndian.Uint32(body), body[4:])
			}
			return nil, nil
		case code>>16 == 3:
			return parseStartup(code, body, s.conn)
		case code == codeSSL || code == codeGSS:
			return nil, fatal(codes.ProtocolViolation, "encryption was already negotiated")
		default:
			return nil, fatal(codes.FeatureNotSupported,
				"unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", code>>16, code&0xffff)
		}
	}
}

func (s *session) answerSSL() error {
	if s.server.config.TLS == nil {
		return s.conn.put([]byte{'N'})
	}
	if err := s.conn.put([]byte{'S'}); err != nil {
		return err
	}
	return s.startTLS(false)
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

// prefixedConn gives back bytes that were read to look at.
type prefixedConn struct {
	net.Conn
	prefix []byte
}

func (p *prefixedConn) Read(b []byte) (int, error) {
	if len(p.prefix) > 0 {
		n := copy(b, p.prefix)
		p.prefix = p.prefix[n:]
		return n, nil
	}
	return p.Conn.Read(b)
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
		return nil, fatal(codes.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
	}
	st := &startup{params: map[string]string{}}
	var unknown []string
	fields := strings.Split(string(body[:len(body)-1]), "\x00")
	for i := 0; i < len(fields) && fields[i] != ""; i += 2 {
		if i+1 == len(fields) {
			return nil, fatal(codes.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
		}
		if strings.HasPrefix(fields[i], "_pq_.") {
			unknown = append(unknown, fields[i])
			continue
		}
		st.params[fields[i]] = fields[i+1]
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

// cancelByKey serves a CancelRequest. Whether the key was right is not told.
func (s *Server) cancelByKey(pid uint32, key []byte) {
	ss := s.session(pid)
	if ss != nil && subtle.ConstantTimeCompare(ss.key, key) == 1 {
		ss.cancel(ErrClientCancel)
	}
}

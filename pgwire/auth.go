package pgwire

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"hash"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/hba"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

const (
	mechanism     = "SCRAM-SHA-256"
	mechanismPlus = "SCRAM-SHA-256-PLUS"
)

// authenticate checks that the client is the user it says, as the rule for it asks.
func (s *session) authenticate(request Startup) (Role, error) {
	user := request.User
	ctx, end := s.begin("authentication")
	role, roleErr := s.server.deps.Engine.Role(ctx, user)
	end()
	if roleErr != nil {
		e := Translate(ctx, roleErr)
		if e.Code != codes.InvalidAuthorizationSpecification {
			return role, asFatal(e)
		}
		roleErr = asFatal(e)
	}
	rule, err := s.rule(request, role)
	if err != nil {
		return role, err
	}
	known := roleErr == nil && (role.ValidUntil.IsZero() || s.server.deps.Clock.Now().Before(role.ValidUntil))
	switch rule.Method {
	case hba.SCRAM:
		err = s.scram(user, role, known)
	case hba.Password:
		err = s.password(user, role, known)
	}
	if err != nil { // else the user's name is believed, or its certificate's was checked
		return role, err
	}
	if err := s.conn.send(&pgproto3.AuthenticationOk{}); err != nil {
		return role, err
	}
	if err = roleErr; err == nil && !role.CanLogin {
		err = fatal(codes.InvalidAuthorizationSpecification, "role \"%s\" is not permitted to log in", user)
	}
	return role, err
}

func asFatal(e *pgerr.Error) *pgerr.Error {
	c := *e
	c.Severity = "FATAL"
	return &c
}

func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return a.Network() == "pipe" // in-process
}

func errMalformed() *pgerr.Error {
	return fatal(codes.ProtocolViolation, "malformed SCRAM message")
}

// scram runs the server's side of RFC 5802. The exchange is the same for a user that
// does not exist or has no password; only its end tells, and not which it was.
func (s *session) scram(user string, role Role, known bool) error {
	v, ok := parseVerifier(role.Verifier)
	if !known || !ok {
		v, known = s.server.mock.verifier(user), false
	}
	binding, mechanisms, err := s.channelBinding()
	if err != nil {
		return err
	}
	if err := s.conn.send(&pgproto3.AuthenticationSASL{AuthMechanisms: mechanisms}); err != nil {
		return err
	}
	first, err := s.scramFirst(binding)
	if err != nil {
		return err
	}
	var random [18]byte
	s.server.deps.IDs.Read(random[:])
	nonce := first.nonce + base64.StdEncoding.EncodeToString(random[:])
	serverFirst := fmt.Sprintf("r=%s,s=%s,i=%d", nonce, base64.StdEncoding.EncodeToString(v.salt), v.iterations)
	if err := s.conn.send(&pgproto3.AuthenticationSASLContinue{Data: []byte(serverFirst)}); err != nil {
		return err
	}
	body, err := s.saslMessage()
	if err != nil {
		return err
	}
	var response pgproto3.SASLResponse
	if err := response.Decode(body); err != nil {
		return errMalformed()
	}
	withoutProof, proof, ok := splitProof(string(response.Data))
	want := "c=" + base64.StdEncoding.EncodeToString(append([]byte(first.header), first.binding...)) + ",r=" + nonce
	if !ok || withoutProof != want {
		return fatal(codes.ProtocolViolation, "SCRAM channel binding check failed or malformed message")
	}
	message := first.bare + "," + serverFirst + "," + withoutProof
	clientKey := mac(v.storedKey, message)
	subtle.XORBytes(clientKey, clientKey, proof)
	if sum := sha256.Sum256(clientKey); subtle.ConstantTimeCompare(sum[:], v.storedKey) != 1 || !known {
		return fatal(codes.InvalidPassword, "password authentication failed for user \"%s\"", user)
	}
	final := "v=" + base64.StdEncoding.EncodeToString(mac(v.serverKey, message))
	return s.conn.send(&pgproto3.AuthenticationSASLFinal{Data: []byte(final)})
}

func splitProof(data string) (withoutProof string, proof []byte, ok bool) {
	i := strings.LastIndex(data, ",p=")
	if i < 0 {
		return "", nil, false
	}
	proof, err := base64.StdEncoding.DecodeString(data[i+3:])
	return data[:i], proof, err == nil && len(proof) == sha256.Size
}

// clientFirst is the client's first message.
type clientFirst struct {
	header  string // GS2 header
	binding []byte // channel binding data, with -PLUS
	bare    string
	nonce   string
}

// saslMessage waits for a message of type p.
func (s *session) saslMessage() ([]byte, error) {
	if err := s.conn.flush(); err != nil {
		return nil, err
	}
	kind, n, err := s.conn.readHeader()
	if err != nil {
		return nil, err
	}
	if kind != 'p' {
		return nil, fatal(codes.ProtocolViolation, "expected SASL response, got message type %d", kind)
	}
	return s.conn.readBody(n)
}

func (s *session) scramFirst(binding []byte) (clientFirst, error) {
	var f clientFirst
	body, err := s.saslMessage()
	if err != nil {
		return f, err
	}
	var m pgproto3.SASLInitialResponse
	if err := m.Decode(body); err != nil {
		return f, errMalformed()
	}
	plus := m.AuthMechanism == mechanismPlus
	if !plus && m.AuthMechanism != mechanism || plus && binding == nil {
		return f, fatal(codes.ProtocolViolation, "client selected an invalid SASL authentication mechanism")
	}
	text := string(m.Data)
	for _, h := range []string{"n,,", "y,,", "p=tls-server-end-point,,"} {
		if strings.HasPrefix(text, h) {
			f.header = h
		}
	}
	switch {
	case f.header == "" || plus != (f.header[0] == 'p'):
		return f, errMalformed()
	case f.header[0] == 'y' && binding != nil: // -PLUS was offered: somebody took it away
		return f, fatal(codes.InvalidAuthorizationSpecification, "SCRAM channel binding negotiation error").
			WithDetail("The client supports SCRAM channel binding but thinks the server does not.  " +
				"However, this server does support channel binding.")
	case plus:
		f.binding = binding
	}
	f.bare = text[len(f.header):]
	_, nonce, ok := strings.Cut(f.bare, ",r=")
	if !ok || !strings.HasPrefix(f.bare, "n=") {
		return f, errMalformed()
	}
	f.nonce, _, _ = strings.Cut(nonce, ",")
	if f.nonce == "" {
		return f, errMalformed()
	}
	return f, nil
}

// channelBinding returns the tls-server-end-point data (RFC 5929), nil in plaintext,
// and the mechanisms to offer.
func (s *session) channelBinding() ([]byte, []string, error) {
	if s.conn.tls() == nil || len(s.server.config.TLS.Certificates) == 0 {
		return nil, []string{mechanism}, nil
	}
	sum, err := endPoint(&s.server.config.TLS.Certificates[0])
	if err != nil {
		return nil, nil, fmt.Errorf("hash server certificate: %w", err)
	}
	return sum, []string{mechanismPlus, mechanism}, nil
}

func endPoint(cert *tls.Certificate) ([]byte, error) {
	leaf := cert.Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return nil, err
		}
	}
	var h hash.Hash
	switch leaf.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		h = sha512.New384()
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS, x509.PureEd25519:
		h = sha512.New()
	default: // MD5 and SHA-1 too, as the RFC says
		h = sha256.New()
	}
	h.Write(leaf.Raw) // never fails
	return h.Sum(nil), nil
}

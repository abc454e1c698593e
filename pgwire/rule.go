package pgwire

import (
	"crypto/subtle"
	"net"
	"net/netip"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/pgwire/hba"
)

// rule is what decides how a client proves who it is: the first rule that is for it, or the
// defaults for its kind of address when there are no rules.
func (s *session) rule(request Startup, role Role) (*hba.Rule, error) {
	address := s.conn.tcp.RemoteAddr()
	var rules *hba.Rules
	if s.server.config.Rules != nil {
		rules = s.server.config.Rules()
	}
	if rules == nil {
		method := s.server.config.AuthRemote
		if isLocal(address) {
			method = s.server.config.AuthLoopback
		}
		methods := map[AuthMethod]hba.Method{AuthTrust: hba.Trust, AuthSCRAM: hba.SCRAM}
		if m, ok := methods[method]; ok {
			return &hba.Rule{Method: m}, nil
		}
		return nil, fatal(codes.InvalidAuthorizationSpecification, "no authentication method admits host \"%s\", user \"%s\"", address, request.User)
	}
	c := hba.Client{
		Local: true, TLS: s.conn.tls() != nil, Database: request.Database, User: request.User, MemberOf: role.MemberOf, Own: ownNetworks,
	}
	host := "[local]"
	if tcp, ok := address.(*net.TCPAddr); ok {
		c.Local = false
		c.Address, _ = netip.AddrFromSlice(tcp.IP)
		host = c.Address.Unmap().String()
	}
	encryption := "no encryption"
	if c.TLS {
		encryption = "SSL encryption"
	}
	r := rules.Find(c)
	switch {
	case r == nil:
		return nil, fatal(codes.InvalidAuthorizationSpecification, "no pg_hba.conf entry for host \"%s\", user \"%s\", database \"%s\", %s",
			host, request.User, request.Database, encryption)
	case r.Method == hba.Reject:
		return nil, fatal(codes.InvalidAuthorizationSpecification, "pg_hba.conf rejects connection for host \"%s\", user \"%s\", database \"%s\", %s",
			host, request.User, request.Database, encryption)
	}
	return r, s.certificate(r, rules, request.User)
}

// certificate checks what a rule asks of the client's certificate. That it is of an authority
// that we trust was checked in the handshake.
func (s *session) certificate(r *hba.Rule, rules *hba.Rules, user string) error {
	if r.ClientCert == "" {
		return nil
	}
	if t := s.conn.tls(); t != nil {
		chains := t.ConnectionState().VerifiedChains
		if len(chains) > 0 && len(chains[0]) > 0 {
			name := chains[0][0].Subject.CommonName
			if r.ClientCert == "verify-ca" || name != "" && rules.Maps.Admits(r.Map, name, user) {
				return nil
			}
			return fatal(codes.InvalidAuthorizationSpecification, "certificate authentication failed for user \"%s\"", user)
		}
	}
	return fatal(codes.InvalidAuthorizationSpecification, "connection requires a valid client certificate")
}

// ownNetworks are those of this machine's addresses.
func ownNetworks() []netip.Prefix {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil // then the rule is for nobody
	}
	var out []netip.Prefix
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// passwordBytesMax bounds a password in clear text.
const passwordBytesMax = 1024

// password asks for the password in clear text, which only TLS protects.
func (s *session) password(user string, role Role, known bool) error {
	failed := fatal(codes.InvalidPassword, "password authentication failed for user \"%s\"", user)
	if s.conn.tls() == nil {
		return failed
	}
	if err := s.conn.send(&pgproto3.AuthenticationCleartextPassword{}); err != nil {
		return err
	}
	body, err := s.saslMessage()
	if err != nil {
		return err
	}
	var m pgproto3.PasswordMessage
	if err := m.Decode(body); err != nil || m.Password == "" || len(m.Password) > passwordBytesMax {
		return failed
	}
	v, ok := parseVerifier(role.Verifier)
	if !known || !ok {
		v, known = s.server.mock.verifier(user), false
	}
	got, _ := parseVerifier(catalog.SCRAMVerifier(m.Password, v.salt, v.iterations))
	if subtle.ConstantTimeCompare(got.storedKey, v.storedKey) != 1 || !known {
		return failed
	}
	return nil
}

package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/outage"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/env"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.pem, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	block, _ := pem.Decode(a.pem)
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a certificate with a key of its own, signed by a, or by itself before a has one.
func (a *authority) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

const tlsRules = `local all all trust
host all postgres 127.0.0.1/32 trust
hostnossl all plain 127.0.0.1/32 trust
hostssl all tls 127.0.0.1/32 scram-sha-256
hostssl all certified 127.0.0.1/32 cert
`

// Each TLS mode connects, for questions and for replication, exactly where it should,
// and says otherwise what is wrong and which option mends it. No error has the password.
func TestTLS(t *testing.T) {
	const password = "pass-ß-word"
	p := pgtest.StartPrivate(t)
	if lib := (&rig{T: t, dsn: p.DSN}).ask("SHOW ssl_library"); lib == "" {
		t.Skip("SKIPPED: this PostgreSQL is built without TLS")
	}
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	server, key := ours.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	p.Write(t, "server.crt", server)
	p.Write(t, "server.key", keyPEM(t, key))
	p.Write(t, "root.crt", ours.pem)
	p.Write(t, "pg_hba.conf", []byte(tlsRules))
	p.Exec(t, p.DSN, "CREATE ROLE plain LOGIN REPLICATION", "CREATE ROLE certified LOGIN REPLICATION",
		"CREATE ROLE tls LOGIN REPLICATION PASSWORD '"+password+"'", "ALTER SYSTEM SET ssl = on", "ALTER SYSTEM SET ssl_ca_file = 'root.crt'")
	p.Control(t, "restart", "-m", "fast")
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad := file("good.crt", ours.pem), file("bad.crt", others.pem)
	client, clientKey := ours.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "certified"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	cert := map[string]string{"SSLCERT": file("client.crt", client), "SSLKEY": file("client.key", keyPEM(t, clientKey))}

	cases := []struct {
		name, mode, user, root, host string
		more                         map[string]string
		detail, hint                 string // "" when it connects
	}{
		{name: "disable", mode: "disable", user: "plain"},
		{name: "disable where TLS is asked for", mode: "disable", user: "tls", detail: "no encryption", hint: "pg_hba.conf"},
		{name: "prefer", mode: "prefer", user: "tls"},
		{name: "prefer falls back", mode: "prefer", user: "plain"},
		{name: "require", mode: "require", user: "tls"},
		{name: "require where it is refused", mode: "require", user: "plain", detail: "SSL encryption", hint: "pg_hba.conf"},
		{name: "verify-ca", mode: "verify-ca", user: "tls", root: good},
		{name: "verify-ca, another name", mode: "verify-ca", user: "tls", root: good, host: "localhost"},
		{name: "verify-ca, wrong authority", mode: "verify-ca", user: "tls", root: bad, detail: "unknown authority", hint: "SSLROOTCERT"},
		{name: "verify-full", mode: "verify-full", user: "tls", root: good},
		{name: "verify-full, another name", mode: "verify-full", user: "tls", root: good, host: "localhost", detail: "localhost", hint: "SSLMODE"},
		{name: "verify-full, wrong authority", mode: "verify-full", user: "tls", root: bad, detail: "unknown authority", hint: "SSLROOTCERT"},
		{name: "client certificate", mode: "verify-full", user: "certified", root: good, more: cert},
		{name: "without client certificate", mode: "require", user: "certified", detail: "certificate", hint: "SSLCERT"},
		{name: "wrong password", mode: "require", user: "tls", more: map[string]string{"PASSWORD": password + "!"}, detail: "password authentication failed", hint: "PASSWORD"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			options := map[string]string{
				"HOST": "127.0.0.1", "PORT": strconv.Itoa(p.Port), "DATABASE": "postgres", "USER": c.user, "SSLMODE": c.mode, "PASSWORD": password,
			}
			if c.host != "" {
				options["HOST"] = c.host
			}
			if c.root != "" {
				options["SSLROOTCERT"] = c.root
			}
			for k, v := range c.more {
				options[k] = v
			}
			clock, ids := env.System()
			made, err := New(t.Context(), ingest.ResolvedConnection{Name: "c", Options: options}, &catalog.Pipeline{Name: "p"},
				ingest.SourceDeps{Clock: clock, IDs: ids})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = made.Close() }()
			src := made.(*Source)
			_, replication := src.identify(t.Context())
			control := src.withControl(t.Context(), func(conn *pgx.Conn) error { return conn.Ping(t.Context()) })
			for _, err := range []error{replication, control} {
				if c.detail == "" {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				e, ok := outage.Explain(err)
				if !ok || !strings.Contains(e.Detail, c.detail) || !strings.Contains(e.Hint, c.hint) {
					t.Errorf("%v: %+v", err, e)
				}
				if strings.Contains(err.Error()+e.Detail+e.Hint, "pass-") {
					t.Errorf("the password is told: %v", err)
				}
			}
		})
	}
}

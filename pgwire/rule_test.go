package pgwire_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/hba"
)

// authority makes client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, dir: t.TempDir()}
	a.cert = a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, key, nil)
	return a
}

// sign makes a certificate of key; parent nil: signed by itself.
func (a *authority) sign(t *testing.T, c *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate) *x509.Certificate {
	t.Helper()
	c.NotBefore, c.NotAfter = time.Unix(0, 0), time.Unix(1<<33, 0)
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// client makes a certificate with a name; it returns the options to connect with it.
func (a *authority) client(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key, a.cert)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(suffix, kind string, b []byte) string {
		path := filepath.Join(a.dir, name+suffix)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return " sslmode=require sslcert=" + write(".crt", "CERTIFICATE", c.Raw) + " sslkey=" + write(".key", "PRIVATE KEY", der)
}

// TestRules: the rule for a client says how it proves who it is.
func TestRules(t *testing.T) {
	maps, err := hba.ParseMaps("ident", "people ana@example.org ana\n")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := hba.Parse("hba", `
hostssl   certs   all       all  cert
hostssl   mapped  all       all  cert map=people
hostssl   both    all       all  scram-sha-256 clientcert=verify-full
hostssl   clear   all       all  password
hostnossl plain   all       all  trust
host      scram   ana       all  scram-sha-256
host      closed  all       all  reject
`, maps)
	if err != nil {
		t.Fatal(err)
	}
	toy := newToy()
	withPassword(t, toy, "ana", "geheim")
	a := newAuthority(t)
	config := pgwire.Config{TLS: testTLS(t), Rules: func() *hba.Rules { return rules }}
	config.TLS.ClientAuth, config.TLS.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
	config.TLS.ClientCAs.AddCert(a.cert)
	_, addr := startServer(t, toy, config)
	ana, mapped, stranger := a.client(t, "ana"), a.client(t, "ana@example.org"), newAuthority(t).client(t, "ana")
	for name, test := range map[string]struct{ options, want string }{
		"certificate":                 {"dbname=certs user=ana" + ana, ""},
		"another's certificate":       {"dbname=certs user=postgres" + ana, "28000"},
		"no certificate":              {"dbname=certs user=ana sslmode=require", "28000"},
		"certificate in plaintext":    {"dbname=certs user=ana sslmode=disable", "28000"},
		"mapped":                      {"dbname=mapped user=ana" + mapped, ""},
		"not mapped":                  {"dbname=mapped user=ana" + ana, "28000"},
		"certificate and password":    {"dbname=both user=ana password=geheim" + ana, ""},
		"certificate, wrong password": {"dbname=both user=ana password=falsch" + ana, "28P01"},
		"password alone":              {"dbname=both user=ana password=geheim sslmode=require", "28000"},
		"clear password":              {"dbname=clear user=ana password=geheim sslmode=require", ""},
		"wrong clear password":        {"dbname=clear user=ana password=falsch sslmode=require", "28P01"},
		"clear password of nobody":    {"dbname=clear user=nobody password=x sslmode=require", "28P01"},
		"clear password in plaintext": {"dbname=clear user=ana password=geheim sslmode=disable", "28000"},
		"trust":                       {"dbname=plain user=postgres sslmode=disable", ""},
		"trust of nobody":             {"dbname=plain user=nobody sslmode=disable", "28000"},
		"scram":                       {"dbname=scram user=ana password=geheim sslmode=disable", ""},
		"scram of another":            {"dbname=scram user=postgres password=x sslmode=disable", "28000"},
		"reject":                      {"dbname=closed user=ana password=geheim sslmode=disable", "28000"},
		"no rule":                     {"dbname=other user=ana password=geheim sslmode=disable", "28000"},
	} {
		c, err := connect(addr, test.options)
		if got := sqlstate(err); got != test.want {
			t.Errorf("%s: %s, want %q", name, got, test.want)
		}
		if err == nil {
			_ = c.Close(context.Background())
		}
	}
	if c, err := connect(addr, "dbname=certs user=ana"+stranger); err == nil {
		_ = c.Close(context.Background())
		t.Error("a certificate of an authority that is not trusted is taken")
	}
}

// withDatabase names the database unless the options do.
func withDatabase(options string) string {
	if strings.Contains(options, "dbname=") {
		return options
	}
	return "dbname=lake " + options
}

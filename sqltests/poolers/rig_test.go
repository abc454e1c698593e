// Package poolers puts what pools connections in front of skipprd, and of a PostgreSQL 15 with
// the same tables, and compares what clients see through it: pgbouncer in its three modes, with
// TLS and SCRAM to the server, and pgpool-II. What is not installed is skipped and said;
// .ci/clients installs it.
package poolers

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// database is the name of skipprd's database, and of PostgreSQL's here.
const database = "lake"

// limit is how long a client may take, on a machine that does much else.
const limit = 10 * time.Minute

// schema is made on both servers. The last statements are what "pgbench -i" makes.
var schema = []string{
	"CREATE ROLE app LOGIN PASSWORD 'of app'",
	"CREATE ROLE listed LOGIN PASSWORD 'of listed'",
	"CREATE ROLE pooler LOGIN PASSWORD 'of pooler'",
	"GRANT SELECT ON pg_catalog.pg_shadow TO pooler",
	"CREATE TABLE public.notes (id int PRIMARY KEY, body text, at timestamptz)",
	"INSERT INTO notes VALUES (1, 'one', '2024-02-29 12:00:00+00'), (2, NULL, NULL)",
	"CREATE TABLE public.pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88))",
	"CREATE TABLE public.pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))",
	"CREATE TABLE public.pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
	"CREATE TABLE public.pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
	"INSERT INTO pgbench_branches VALUES (1, 0, '')",
	"INSERT INTO pgbench_tellers SELECT i, 1, 0, '' FROM generate_series(1, 10) i",
	"INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, 100000) i",
	"GRANT ALL ON notes, pgbench_branches, pgbench_tellers, pgbench_accounts, pgbench_history TO app, listed",
}

// rules of who may connect: the test itself as it likes, what pools only over TLS and with
// its password.
const rules = "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"

// target is a server that a pooler stands before.
type target struct {
	name string
	port int
	// restart stops the server, calls while it is down, and starts it again.
	restart func(t *testing.T, down func())
}

func (s target) dsn() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=%s sslmode=disable", s.port, database)
}

// rig is skipprd and a PostgreSQL with the same tables and the same certificate.
type rig struct {
	ours, theirs target
	// dir is readable for the user that poolers run as; ca is in it.
	dir, ca string
	// bin is where PostgreSQL 15's own programs are.
	bin string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	const bin = "/usr/lib/postgresql/15/bin"
	if _, err := os.Stat(bin + "/pgbench"); err != nil {
		skip(t, "PostgreSQL 15's pgbench is not here")
	}
	r := &rig{bin: bin, dir: openDir(t)}
	cert, key := r.certificates(t)
	pg := pgtest.StartVersion(t, 15, "timezone = 'UTC'", "log_timezone = 'UTC'", "lc_messages = 'C'", "max_connections = 100")
	pg.Exec(t, pg.DSN, "CREATE DATABASE "+database+" TEMPLATE template0 LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'")
	pg.Write(t, "server.crt", cert)
	pg.Write(t, "server.key", key)
	pg.Write(t, "pg_hba.conf", []byte(rules))
	pg.Exec(t, pg.DSN, "ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
	r.theirs = target{name: "postgresql", port: pg.Port, restart: func(t *testing.T, down func()) {
		t.Helper()
		pg.Control(t, "stop", "-m", "fast")
		down()
		pg.Control(t, "start")
	}}
	write(t, filepath.Join(r.dir, "hba"), rules)
	s := harness.New(t, t.TempDir(), "--hba-file", filepath.Join(r.dir, "hba"),
		"--tls-cert", filepath.Join(r.dir, "server.crt"), "--tls-key", filepath.Join(r.dir, "server.key"))
	s.Start()
	r.ours = target{name: "skipprd", port: s.Port, restart: func(t *testing.T, down func()) {
		t.Helper()
		s.Stop()
		down()
		s.Start()
	}}
	for _, one := range r.both() {
		harness.Exec(t, one.dsn(), schema...)
	}
	return r
}

func (r *rig) both() []target { return []target{r.theirs, r.ours} }

// openDir is a directory that ends with the test and that others may read.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "skipprd-pooler-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left is in a temporary directory
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// certificates makes an authority and a certificate of it for 127.0.0.1.
func (r *rig) certificates(t *testing.T) (cert, key []byte) {
	t.Helper()
	make := func(n int64, name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(48 * time.Hour), BasicConstraintsValid: true, IsCA: parent == nil,
		}
		if parent == nil {
			parent, by = c, own
			c.KeyUsage = x509.KeyUsageCertSign
		} else {
			c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		}
		raw, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = x509.ParseCertificate(raw); err != nil {
			t.Fatal(err)
		}
		return c, own
	}
	ca, by := make(1, "skipprd test authority", nil, nil)
	server, own := make(2, "127.0.0.1", ca, by)
	raw, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Raw})
	key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
	r.ca = filepath.Join(r.dir, "ca.crt")
	write(t, r.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})))
	write(t, filepath.Join(r.dir, "server.crt"), string(cert))
	write(t, filepath.Join(r.dir, "server.key"), string(key))
	return cert, key
}

// program is a program of the system, or the test is skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	skip(t, name+" is not here; .ci/clients installs it")
	return ""
}

// hold runs a daemon until its standard input ends, which it does with us, however we end.
const hold = `signal=$1; shift
"$@" </dev/null & daemon=$!
cat >/dev/null
kill -$signal $daemon
(sleep 30; kill -9 $daemon) & late=$!
wait $daemon
kill $late`

// daemon is what runs until the test ends.
type daemon struct {
	port int
	log  string
	// signal ends it at once, and its children.
	signal string
	line   []string
}

// start runs a daemon that ends with the test, as user postgres where we are root, and waits
// until it listens.
func start(t *testing.T, d daemon) {
	t.Helper()
	line := d.line
	if os.Geteuid() == 0 {
		if _, err := user.Lookup("postgres"); err != nil {
			skip(t, "running as root and there is no user postgres")
		}
		line = append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"}, line...)
	}
	out, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", hold, "hold", d.signal}, line...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // ends it
		_ = cmd.Wait()    // its end is the last kill's
		_ = out.Close()   // was written by others
		if t.Failed() {
			text, _ := os.ReadFile(d.log) // no log, nothing to say
			t.Logf("%s:\n%s", d.log, text[max(0, len(text)-6000):])
		}
	})
	if !harness.Until(harness.Patience, func() bool {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)))
		if err != nil {
			return false
		}
		return c.Close() == nil
	}) {
		t.Fatalf("%s does not listen", d.line[0])
	}
}

// What two servers, or two runs, cannot but say differently.
var masks = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`port \d+`), "port PORT"},
	{regexp.MustCompile(`with PID \d+`), "with PID PID"},
	{regexp.MustCompile(`(?m)^LOCATION:.*\n`), ""}, // a place in a server's source code
	{regexp.MustCompile(`(?m)^psql:[^ ]*: `), ""},
}

// client runs a program of PostgreSQL's as a user of a database behind a port, and returns
// what it prints.
func (r *rig) client(t *testing.T, port int, user, db, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(r.bin, program), args...)
	clean := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
	cmd.Env = append(clean, "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", port), "PGUSER="+user, "PGPASSWORD=of "+user, "PGDATABASE="+db,
		"PGSSLMODE=disable", "PGAPPNAME=pooled", "LC_ALL=C.UTF-8", "TZ=UTC")
	cmd.WaitDelay = time.Minute
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(&out, "ended with %v\n", err)
	}
	text := out.String()
	for _, m := range masks {
		text = m.text.ReplaceAllString(text, m.by)
	}
	return text
}

// skip ends a test that lacks its program, loudly: "go test" hides what a passing package
// prints, so that it is written, too, to the file that SKIPPRD_SKIPPED names.
func skip(t *testing.T, reason string) {
	t.Helper()
	if path := os.Getenv("SKIPPRD_SKIPPED"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = fmt.Fprintf(f, "poolers: SKIPPED %s: %s\n", t.Name(), reason)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatalf("report what was skipped: %v", err)
		}
	}
	t.Skipf("SKIPPED: %s", reason)
}

// Package pgtest runs a private PostgreSQL server for tests.
//
// One server serves a whole test binary, or as many as it has tests at a time; it is started
// by Start and ends, with its files, when the test process ends in whatever way. SKIPPRD_PG=17 takes another
// major version than the system's; SKIPPRD_TEST_PG_DSN names a server to use instead,
// SKIPPRD_TEST_PG_BIN a directory of server binaries. Where neither a server nor binaries
// are found, Start skips the test and says so.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/proc"
)

// Server is a running PostgreSQL with wal_level = logical, trust authentication for
// everybody, and the superuser postgres.
type Server struct {
	// DSN reaches the database postgres as its superuser, in keyword form.
	DSN  string
	Host string
	Port int

	errNone error // why there is no server; nil when there is one
	skip    bool
}

var databases atomic.Uint32

// Start returns a server that no other test has meanwhile: one of this test binary that is
// free, or a new one. A test and its subtests have the same. Safe for concurrent use. Tests
// that need room to themselves use CreateDatabase; slots are server-wide, so a test drops its
// own.
func Start(t testing.TB) *Server {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	s := servers.take(test)
	t.Cleanup(func() { servers.giveBack(test) })
	if s.skip {
		skip(t, s.errNone)
	}
	if s.errNone != nil {
		t.Fatalf("start postgresql: %v", s.errNone)
	}
	return s
}

// CreateDatabase makes an empty database for one test and returns a DSN that reaches
// it; options are CREATE DATABASE's. The database is dropped, with its slots and
// sessions, when the test ends.
func (s *Server) CreateDatabase(t testing.TB, options ...string) string {
	t.Helper()
	name := fmt.Sprintf("t_%d_%d", os.Getpid(), databases.Add(1))
	s.Exec(t, s.DSN, "CREATE DATABASE "+name+" "+strings.Join(options, " "))
	t.Cleanup(func() { s.dropDatabase(t, name) })
	return s.WithDatabase(name)
}

// WithDatabase is the server's DSN with another database.
func (s *Server) WithDatabase(name string) string {
	cfg, err := pgx.ParseConfig(s.DSN)
	if err != nil {
		return s.DSN
	}
	dsn := fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", cfg.Host, cfg.Port, cfg.User, name)
	if cfg.Password != "" {
		dsn += " password=" + cfg.Password
	}
	return dsn
}

// Exec runs statements on a connection of its own and fails the test on an error.
func (s *Server) Exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("exec %.200s: %v", sql, err)
		}
	}
}

// dropDatabase ends what still uses the database, then drops it.
func (s *Server) dropDatabase(t testing.TB, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN)
	if err != nil {
		t.Logf("drop database: connect: %v", err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	// A session ends when it comes to it, and its slot is free only then.
	const dropSlots = `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = $1 AND NOT active`
	const endSessions = `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()`
	const countSlots = `SELECT count(*), pg_sleep(0.02) FROM pg_replication_slots WHERE database = $1`
	for left := 1; left > 0; {
		for _, sql := range []string{endSessions, dropSlots} {
			if _, err := conn.Exec(ctx, sql, name); err != nil {
				t.Logf("drop database %s: %v", name, err)
			}
		}
		if err := conn.QueryRow(ctx, countSlots, name).Scan(&left, nil); err != nil {
			t.Logf("drop database %s: %v", name, err)
			break
		}
	}
	if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		t.Logf("drop database %s: %v", name, err)
	}
}

// start finds or starts a server.
func start() *Server {
	if dsn := os.Getenv("SKIPPRD_TEST_PG_DSN"); dsn != "" {
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return &Server{errNone: fmt.Errorf("SKIPPRD_TEST_PG_DSN: %w", err)}
		}
		return &Server{DSN: dsn, Host: cfg.Host, Port: int(cfg.Port)}
	}
	bin, err := binaries(0)
	if err != nil {
		return &Server{errNone: err, skip: true}
	}
	s, _, err := run(bin, "", "")
	if err != nil {
		return &Server{errNone: err}
	}
	return s
}

// script makes the cluster, says READY and where, waits for the end of its standard input,
// which is the end of the test process, and clears up. Signals to the whole process
// group (Ctrl-C) are for the tests, not for it.
const script = `
set -e
trap '' INT TERM HUP
dir=$(mktemp -d "${TMPDIR:-/tmp}/pgtest.XXXXXX")
trap 'PATH="$1:$PATH" pg_ctl -D "$dir/data" -m immediate -w stop >/dev/null 2>&1; rm -rf "$dir"' EXIT
if [ -n "$4" ]; then
  mkdir -m 700 "$dir/data"
  tar -x -C "$dir/data" -f - <&3 2>"$dir/log" || { cat "$dir/log"; exit 1; }
  touch "$dir/data/standby.signal"
else
  "$1/initdb" -D "$dir/data" -A trust -U postgres -E UTF8 --no-locale --no-sync >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
fi
cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $2
unix_socket_directories = '$dir'
wal_level = logical
fsync = off
synchronous_commit = off
full_page_writes = off
max_replication_slots = 20
max_wal_senders = 20
max_connections = 100
max_prepared_transactions = 8
shared_buffers = 256MB
max_wal_size = 4GB
timezone = 'UTC'
CONF
if [ -n "$4" ]; then
  echo "primary_conninfo = '$4'" >>"$dir/data/postgresql.conf"
  echo "wal_retrieve_retry_interval = 200ms" >>"$dir/data/postgresql.conf"
fi
printf '%s\n' "$3" >>"$dir/data/postgresql.conf"
"$1/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 180 start >/dev/null 2>&1 || { cat "$dir/log"; exit 1; }
echo "READY $dir"
cat >/dev/null || true
`

// run starts a private cluster under a shell that outlives us just long enough to
// stop it, with further lines of configuration: an empty one, or a standby of the
// server that primary reaches.
func run(bin, config, primary string) (s *Server, own *cluster, err error) {
	port, err := proc.FreePort()
	if err != nil {
		return nil, nil, err
	}
	args, err := stepDown("/bin/sh", "-c", script, "pgtest", bin, strconv.Itoa(port), config, primary)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	if primary != "" {
		archive, err := backupFile(primary)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = archive.Close() }() // read, and by others
		cmd.ExtraFiles = []*os.File{archive}
	}
	// The write end stays open, unused, until the process ends.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	var output proc.Output
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if _, dir, ready := strings.Cut(output.String(), "READY "); ready && strings.Contains(dir, "\n") {
			own := &cluster{bin: bin, dir: strings.TrimSpace(dir), stdin: stdin, exited: exited}
			return &Server{
				DSN:  fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable", port),
				Host: "127.0.0.1", Port: port,
			}, own, nil
		}
		select {
		case err := <-exited:
			return nil, nil, fmt.Errorf("server start: %w: %s", err, output.String())
		case <-tick.C:
		}
	}
	return nil, nil, fmt.Errorf("server start took too long: %s", output.String())
}

// stepDown is a command line for the user that a server runs as: it refuses to run as
// root, so root becomes postgres.
func stepDown(args ...string) ([]string, error) {
	if os.Geteuid() != 0 {
		return args, nil
	}
	if _, err := user.Lookup("postgres"); err != nil {
		return nil, fmt.Errorf("running as root and there is no user postgres: %w", err)
	}
	return append([]string{"runuser", "-u", "postgres", "--"}, args...), nil
}

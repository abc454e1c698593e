package poolers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// bouncer is a pgbouncer before a server. Its databases are named by their modes; "…_one"
// has a single connection to the server.
type bouncer struct {
	*rig
	before target
	port   int
	// follows says that it knows prepared statements whatever connection they are on.
	follows bool
}

// bounce starts a pgbouncer that looks up the passwords of those that its list does not have.
func (r *rig) bounce(t *testing.T, path string, before target) *bouncer {
	t.Helper()
	verifier, err := harness.Text(before.dsn(), "SELECT passwd FROM pg_shadow WHERE usename = 'listed'")
	if err != nil || !strings.HasPrefix(verifier, "SCRAM-SHA-256$4096:") {
		t.Fatalf("verifier of a role: %q, %v", verifier, err)
	}
	b := &bouncer{rig: r, before: before, port: harness.FreePort(t), follows: follows(t, path)}
	dir := filepath.Join(r.dir, before.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("[databases]\n")
	for mode, size := range map[string]int{"session": 12, "transaction": 4, "statement": 4} {
		server := fmt.Sprintf("host=127.0.0.1 port=%d dbname=%s pool_mode=%s", before.port, database, mode)
		fmt.Fprintf(&text, "%s = %s pool_size=%d\n%s_one = %s pool_size=1\n", mode, server, size, mode, server)
	}
	for _, line := range []string{
		"[pgbouncer]", "listen_addr = 127.0.0.1", fmt.Sprintf("listen_port = %d", b.port), "unix_socket_dir =",
		"auth_type = scram-sha-256", "auth_file = " + dir + "/users", "auth_user = pooler",
		"auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename=$1", "admin_users = admin",
		"server_tls_sslmode = verify-full", "server_tls_ca_file = " + r.ca,
		"server_reset_query = DISCARD ALL", "server_check_query = select 1", "server_check_delay = 0",
		"ignore_startup_parameters = extra_float_digits, options", "server_login_retry = 0.2", "query_wait_timeout = 600",
	} {
		text.WriteString(line + "\n")
	}
	if b.follows {
		text.WriteString("max_prepared_statements = 20\n")
	}
	write(t, filepath.Join(dir, "conf"), text.String())
	write(t, filepath.Join(dir, "users"), fmt.Sprintf("\"pooler\" \"of pooler\"\n\"admin\" \"of admin\"\n\"listed\" %q\n", verifier))
	start(t, daemon{port: b.port, log: filepath.Join(dir, "log"), signal: "TERM", line: []string{path, filepath.Join(dir, "conf")}})
	return b
}

// follows says whether a pgbouncer is of version 1.21 or newer.
func follows(t *testing.T, path string) bool {
	t.Helper()
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor); err != nil {
		t.Fatalf("version of pgbouncer: %q: %v", out, err)
	}
	return major > 1 || minor >= 21
}

func (b *bouncer) dsn(db string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=app password='of app' dbname=%s sslmode=disable application_name=pooled", b.port, db)
}

// TestPoolers: what goes through a pooler to skipprd and to PostgreSQL comes back the same.
func TestPoolers(t *testing.T) {
	r := newRig(t)
	t.Run("pgpool", r.pgpool)
	t.Run("pgbouncer", r.pgbouncer)
}

func (r *rig) pgbouncer(t *testing.T) {
	path := program(t, "pgbouncer")
	theirs, ours := r.bounce(t, path, r.theirs), r.bounce(t, path, r.ours)
	for _, step := range []struct {
		name string
		run  func(t *testing.T, b *bouncer) string
	}{
		{"session", script("session", "session")},
		{"nothing is left", script("session_one", "left", "after")},
		{"transaction", script("transaction", "transaction")},
		{"statement", script("statement", "statement")},
		{"SCRAM", listed},
		{"parameters", parameters},
		{"extended", extended},
		{"cancel", cancel},
		{"pgbench", bench},
		{"lifetime", lifetime},
		{"pools", pools},
		{"restart", restart},
	} {
		t.Run(step.name, func(t *testing.T) {
			if want, got := step.run(t, theirs), step.run(t, ours); want != got {
				t.Errorf("through pgbouncer skipprd says\n%s\npostgresql says\n%s", got, want)
			} else {
				t.Log(got)
			}
		})
	}
}

// script runs psql scripts of testdata, each in a session of its own.
func script(db string, names ...string) func(t *testing.T, b *bouncer) string {
	return func(t *testing.T, b *bouncer) string {
		t.Helper()
		out := ""
		for _, name := range names {
			out += b.client(t, b.port, "app", db, "psql", "-X", "-f", filepath.Join("testdata", name+".sql"))
		}
		return out
	}
}

// listed logs in as a role whose verifier, not password, pgbouncer has.
func listed(t *testing.T, b *bouncer) string {
	t.Helper()
	out := b.client(t, b.port, "listed", "session", "psql", "-X", "-At", "-c", "SELECT current_user, inet_client_addr() IS NOT NULL")
	return out + b.client(t, b.port, "nobody", "session", "psql", "-X", "-At", "-c", "SELECT 1")
}

// parameters are those that pgbouncer keeps for each of two clients that share a connection.
func parameters(t *testing.T, b *bouncer) string {
	t.Helper()
	var out strings.Builder
	var conns []*pgx.Conn
	for _, more := range []string{
		" timezone=UTC application_name=first", " timezone=Asia/Tokyo datestyle=German",
	} {
		conns = append(conns, harness.Connect(t, b.dsn("transaction_one")+more))
	}
	for range 2 {
		for i, c := range conns {
			for _, sql := range []string{
				"SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('client_encoding')," +
					" current_setting('standard_conforming_strings'), current_setting('application_name'), timestamptz '2024-02-29 12:00:00+00'",
				"SET application_name = 'second'", "SET DateStyle = 'SQL, DMY'",
			} {
				fmt.Fprintf(&out, "%d: %s\n", i, simple(t, c, sql))
			}
			for _, name := range []string{"TimeZone", "DateStyle", "client_encoding", "standard_conforming_strings", "application_name"} {
				fmt.Fprintf(&out, "%d: %s = %s\n", i, name, c.PgConn().ParameterStatus(name))
			}
		}
	}
	return out.String()
}

// simple is the answer to a simple query.
func simple(t *testing.T, c *pgx.Conn, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	results, err := c.PgConn().Exec(ctx, sql).ReadAll()
	var out []string
	for _, r := range results {
		for _, row := range r.Rows {
			out = append(out, fmt.Sprintf("%q", row))
		}
		out = append(out, r.CommandTag.String())
	}
	if err != nil {
		out = append(out, problem(err))
	}
	return strings.Join(out, " ")
}

// problem is what a server says is wrong, without where it was said.
func problem(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return fmt.Sprintf("%s %s: %s", e.Severity, e.Code, e.Message)
	}
	return err.Error()
}

// extended sends statements without names, pipelines and COPY in each mode.
func extended(t *testing.T, b *bouncer) string {
	t.Helper()
	var out strings.Builder
	for _, db := range []string{"session", "transaction", "statement"} {
		c := harness.Connect(t, b.dsn(db))
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		for i := range 3 {
			r := c.PgConn().ExecParams(ctx, "SELECT $1::int + 1, body FROM notes WHERE id <= $1::int ORDER BY id", [][]byte{fmt.Append(nil, i)}, nil, nil, nil).Read()
			fmt.Fprintf(&out, "%s %q %v %v\n", db, r.Rows, r.CommandTag, r.Err)
		}
		batch := &pgconn.Batch{}
		for i := range 3 {
			batch.ExecParams("INSERT INTO notes VALUES ($1, 'batch', NULL)", [][]byte{fmt.Append(nil, 10+i)}, nil, nil, nil)
		}
		batch.ExecParams("SELECT 1 / $1::int", [][]byte{[]byte("0")}, nil, nil, nil)
		_, err := c.PgConn().ExecBatch(ctx, batch).ReadAll()
		fmt.Fprintf(&out, "%s %s, %s\n", db, problem(err), simple(t, c, "SELECT count(*) FROM notes"))
		tag, err := c.PgConn().CopyFrom(ctx, strings.NewReader("20\tcopied\t\\N\n21\t\\N\t\\N\n"), "COPY notes FROM STDIN")
		fmt.Fprintf(&out, "%s %v %v\n", db, tag, err)
		_, err = c.PgConn().CopyFrom(ctx, strings.NewReader("30\tbad\n"), "COPY notes FROM STDIN")
		fmt.Fprintf(&out, "%s %s\n", db, problem(err))
		tag, err = c.PgConn().CopyTo(ctx, &out, "COPY (SELECT * FROM notes ORDER BY id) TO STDOUT")
		fmt.Fprintf(&out, "%s %v %v %s\n", db, tag, err, simple(t, c, "DELETE FROM notes WHERE id > 2"))
		cancel()
	}
	return out.String()
}

// cancel asks pgbouncer to cancel what runs.
func cancel(t *testing.T, b *bouncer) string {
	t.Helper()
	var out strings.Builder
	for _, db := range []string{"session", "transaction", "statement"} {
		c := harness.Connect(t, b.dsn(db))
		ctx, end := context.WithTimeout(t.Context(), limit)
		asked := make(chan error, 1)
		go func() {
			running := harness.Until(harness.Patience, func() bool {
				n, err := harness.Text(b.before.dsn(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(600)'")
				return err == nil && n == "1"
			})
			if !running {
				asked <- errors.New("the query does not run")
				return
			}
			asked <- c.PgConn().CancelRequest(ctx)
		}()
		_, err := c.PgConn().Exec(ctx, "SELECT pg_sleep(600)").ReadAll()
		fmt.Fprintf(&out, "%s: %s, %v, %s\n", db, problem(err), <-asked, simple(t, c, "SELECT 'lives'"))
		end()
	}
	return out.String()
}

// benchSays are the lines that are not about speed.
var benchSays = regexp.MustCompile(`processed|failed transactions: [^0]|ERROR|error|ended with`)

// bench runs pgbench through all modes: how fast it was is not compared.
func bench(t *testing.T, b *bouncer) string {
	t.Helper()
	var out strings.Builder
	for _, db := range []string{"session", "transaction", "statement"} {
		for protocol, script := range map[string]string{"simple": "-S", "extended": "--file=testdata/bench.sql", "prepared": "-S"} {
			if protocol == "prepared" && db != "session" && !b.follows { // its names are the same in all clients
				continue
			}
			text := b.client(t, b.port, "app", db, "pgbench", "-n", "-c", "8", "-t", "4", "-M", protocol, script)
			for line := range strings.Lines(text) {
				if !strings.Contains(line, "processed: 32/32") && benchSays.MatchString(line) {
					fmt.Fprintf(&out, "%s %s: %s", db, protocol, line)
				}
			}
		}
	}
	text := b.client(t, b.port, "app", "transaction", "pgbench", "-n", "-c", "4", "-t", "2", "-b", "tpcb-like")
	for line := range strings.Lines(text) {
		if benchSays.MatchString(line) {
			out.WriteString(line)
		}
	}
	return out.String() + b.client(t, b.before.port, "postgres", database, "psql", "-XAtc",
		"SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history), count(*) FROM pgbench_history")
}

// admin is a session with pgbouncer's own console.
func (b *bouncer) admin(t *testing.T) *pgx.Conn {
	t.Helper()
	return harness.Connect(t, fmt.Sprintf("host=127.0.0.1 port=%d user=admin password='of admin' dbname=pgbouncer sslmode=disable", b.port))
}

// lifetime waits until pgbouncer has closed a connection for its age and opened another.
func lifetime(t *testing.T, b *bouncer) string {
	t.Helper()
	admin := b.admin(t)
	out := simple(t, admin, "SET server_lifetime = 1")
	pid := func() string {
		text, err := harness.Text(b.dsn("transaction_one"), "SELECT pg_backend_pid()")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := pid()
	if !harness.Until(harness.Patience, func() bool { return pid() != first }) {
		t.Error("the connection does not grow old")
	}
	return out + simple(t, admin, "SET server_lifetime = 3600")
}

// pools looks at what pgbouncer knows of its connections.
func pools(t *testing.T, b *bouncer) string {
	t.Helper()
	c := harness.Connect(t, b.dsn("session"))
	used := simple(t, c, "SELECT 1")
	results, err := b.admin(t).PgConn().Exec(t.Context(), "SHOW POOLS").ReadAll()
	if err != nil || len(results) != 1 {
		t.Fatalf("SHOW POOLS: %v", err)
	}
	at := map[string]int{}
	for i, f := range results[0].FieldDescriptions {
		at[f.Name] = i
	}
	for _, row := range results[0].Rows {
		if string(row[at["database"]]) == "session" && string(row[at["user"]]) == "app" {
			for _, name := range []string{"cl_active", "cl_waiting", "sv_active", "sv_login", "maxwait", "pool_mode"} {
				used += fmt.Sprintf(" %s=%s", name, row[at[name]])
			}
		}
	}
	return used
}

// restart restarts the server under clients: they see it go, and the pool comes back.
func restart(t *testing.T, b *bouncer) string {
	t.Helper()
	c := harness.Connect(t, b.dsn("session"))
	out := simple(t, c, "SELECT 'before'") + "\n"
	b.before.restart(t, func() {
		ctx, end := context.WithTimeout(t.Context(), limit)
		defer end()
		_, err := c.PgConn().Exec(ctx, "SELECT 'down'").ReadAll()
		out += fmt.Sprintf("%t %t\n", err != nil, c.PgConn().IsClosed())
	})
	back := harness.Until(harness.Patience, func() bool {
		text, err := harness.Text(b.dsn("transaction"), "SELECT body FROM notes WHERE id = 1")
		return err == nil && text == "one"
	})
	return out + fmt.Sprint(back)
}

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/skipprd/skipprd/cmd/skipprd/serverfile"
	"github.com/skipprd/skipprd/ddl"
)

// setting is one value that a user may set: by flag, environment, file, in this
// order of precedence, else its default.
type setting struct {
	name  string // flag and file name; the environment's is its upper case with _
	env   string // when it differs
	was   string // an earlier name, still taken
	value string // default, then effective
	help  string
	check func(string) error
	// secret values are shown as ********.
	secret bool
	origin string
}

// config is the effective settings of the server.
type config struct {
	settings []*setting
	byName   map[string]*setting
}

func newConfig() *config {
	c := &config{byName: map[string]*setting{}}
	c.settings = []*setting{
		{name: "config", value: "", help: "file with settings, one 'name = value' a line (default DATA_DIR/skipprd.conf if it exists)"},
		{name: "data-dir", value: "./data", help: "directory of the log, the catalog and the embedded warehouse"},
		{name: "listen", value: "127.0.0.1:5432", help: "address for Postgres clients", check: checkAddr},
		{name: "http", value: "127.0.0.1:8080", help: "address for /metrics, /healthz and /readyz; empty: none", check: checkAddr},
		{name: "database", value: "lake", help: "name of the database"},
		{name: "password", env: "POSTGRES_PASSWORD", value: "", help: "password of role postgres, set at start; needed off loopback", secret: true},
		{name: "password-file", env: "POSTGRES_PASSWORD_FILE", value: "", help: "file with the password"},
		{name: "tls-cert", value: "", help: "server certificate, PEM (off loopback without one, a self-signed one is made)"},
		{name: "tls-key", value: "", help: "server key, PEM"},
		{name: "tls-client-ca", value: "", help: "authorities, PEM, whose client certificates are taken"},
		{name: "hba-file", value: "", help: "rules of who may connect, as in pg_hba.conf (default: trust from this machine, password and TLS from others)"},
		{name: "ident-file", value: "", help: "maps from names of certificates to roles, as in pg_ident.conf, for hba-file"},
		{name: "server-files", value: string(serverfile.Off), help: "what COPY may use of this machine, for roles that may: off, files, or programs too", check: checkOneOf("off", "files", "programs")},
		{name: "insecure", value: "false", help: "allow clients from other hosts without password and TLS", check: checkBool},
		{name: "lake-dir", value: "", help: "directory of the embedded warehouse (default DATA_DIR/lake)"},
		{name: "log", env: "WAL_STORAGE", was: "wal-storage", value: onDisk, help: "where the log is kept: disk, or s3://BUCKET/PREFIX", check: checkLog},
		{name: "log-endpoint", value: "", help: "URL of the log's object store, unless it is AWS"},
		{name: "log-region", value: "", help: "region of the log's bucket (default: that of the environment, AWS_REGION)"},
		{name: "log-path-style", value: "false", help: "the bucket is in the path of requests, as most stores other than AWS need it", check: checkBool},
		{name: "log-access-key-id", value: "", help: "key for the object store (default: the usual chain, AWS_ACCESS_KEY_ID, files, machine role)"},
		{name: "log-secret-access-key", value: "", help: "secret of log-access-key-id; better in the environment than as a flag", secret: true},
		{name: "log-session-token", value: "", help: "session token of log-access-key-id", secret: true},
		{name: "log-ca-file", value: "", help: "certificates, PEM, to trust for the object store instead of the system's"},
		{name: "log-linger", value: "250ms", help: "how long a commit to the object store waits for company", check: checkDuration},
		{name: "log-lease", value: "15s", help: "after how long without a sign of life another node takes the log over", check: checkDuration},
		{name: "node-name", value: "", help: "name of this node in the object store, for people (default: the host's name)"},
		{name: "wal-segment-bytes", value: "64MiB", help: "size of a log segment", check: checkSize},
		{name: "wal-quota-bytes", value: "0", help: "most bytes of log per pipeline; 0: the disk's end", check: checkSize},
		{name: "buffer-threshold-bytes", value: "8MiB", help: "bytes of changes that are made durable at once", check: checkSize},
		{name: "buffer-threshold-seconds", value: "0", help: "longest time changes are collected first; 0: as soon as possible", check: checkSeconds},
		{name: "commit-interval", value: "1min", help: "how often changes go from the log to the lake", check: checkDuration},
		{name: "engine-memory", value: "", help: "memory of the query engine (default: a third of the machine's)", check: checkSize},
		{name: "engine-query-memory", value: "", help: "memory that a query may count on: no more run at once than engine-memory has room for (default: 64MiB for each thread, at least 128MiB)", check: checkSize},
		{name: "engine-temp-limit", value: "", help: "disk that queries may use for what memory does not hold, all together (default: half of what is free at start)", check: checkSize},
		{name: "engine-threads", value: "0", help: "threads of the query engine; 0: one per core", check: checkCount},
		{name: "max-connections", value: "100", help: "client connections at once", check: checkCount},
		{name: "max-queries", value: "16", help: "queries that run at once; more wait", check: checkCount},
		{name: "settings", value: "", help: "values of PostgreSQL's settings with which all sessions begin, 'name=value; name=value': log_min_duration_statement=1s; log_connections=on", check: checkSettings},
		{name: "shutdown-timeout", value: "10s", help: "how long running statements may go on at shutdown", check: checkDuration},
		{name: "secret-key", env: "SKIPPRD_SECRET_KEY", value: "", help: "key that seals secrets, 64 hex digits (default: made in DATA_DIR/secret.key)", secret: true},
		{name: "log-level", value: "info", help: "debug, info, warn or error", check: checkOneOf("debug", "info", "warn", "error")},
		{name: "log-format", value: "text", help: "text or json", check: checkOneOf("text", "json")},
	}
	for _, s := range c.settings {
		c.byName[s.name] = s
		if s.was != "" {
			c.byName[s.was] = s
		}
		s.origin = "default"
		if s.env == "" {
			s.env = strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
		}
	}
	return c
}

// flags registers every setting with fs.
func (c *config) flags(fs *flag.FlagSet) {
	for _, s := range c.settings {
		help := s.help + " [" + s.env + "]"
		if s.value != "" && !s.secret {
			help += " (default " + s.value + ")"
		}
		set := func(v string) error {
			s.value, s.origin = v, "flag"
			return nil
		}
		fs.Func(s.name, help, set)
		if s.was != "" {
			fs.Func(s.was, "earlier name of "+s.name, set)
		}
	}
}

// resolve fills in environment and file below what flags have set, and checks all.
// It reports every problem at once.
func (c *config) resolve(getenv func(string) (string, bool)) error {
	for _, s := range c.settings {
		if v, ok := getenv(s.env); ok && s.origin == "default" {
			s.value, s.origin = v, "environment"
		}
	}
	path := c.get("config")
	if path == "" {
		path = filepath.Join(c.get("data-dir"), "skipprd.conf")
		if _, err := os.Stat(path); err != nil {
			path = ""
		}
	}
	var problems []error
	if path != "" {
		problems = append(problems, c.readFile(path))
	}
	for _, s := range c.settings {
		if s.check != nil && s.value != "" {
			if err := s.check(s.value); err != nil {
				problems = append(problems, fmt.Errorf("%s (from %s): %w", s.name, s.origin, err))
			}
		}
	}
	if (c.get("tls-cert") == "") != (c.get("tls-key") == "") {
		problems = append(problems, errors.New("tls-cert and tls-key go together"))
	}
	if o := c.objectLog(); o != nil {
		problems = append(problems, o.problems(c)...)
	}
	return errors.Join(problems...)
}

func (c *config) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	defer f.Close()
	return c.read(f, path)
}

// read takes settings from the text of the file of a name.
func (c *config) read(text io.Reader, path string) error {
	var problems []error
	sc := bufio.NewScanner(text)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
		s := c.byName[name]
		if !ok || s == nil || name == "config" {
			problems = append(problems, fmt.Errorf("%s:%d: unknown setting %q", path, n, name))
			continue
		}
		if s.origin == "default" {
			s.value, s.origin = strings.Trim(strings.TrimSpace(value), `'"`), path
		}
	}
	return errors.Join(append(problems, sc.Err())...)
}

func (c *config) get(name string) string { return c.byName[name].value }

func (c *config) bool(name string) bool { v, _ := strconv.ParseBool(c.get(name)); return v }

func (c *config) int(name string) int { n, _ := strconv.Atoi(c.get(name)); return n }

func (c *config) bytes(name string) int64 { n, _ := parseSize(c.get(name)); return n }

// lakeDir is the directory of the embedded warehouse.
func (c *config) lakeDir() string {
	if dir := c.get("lake-dir"); dir != "" {
		return dir
	}
	return filepath.Join(c.get("data-dir"), "lake")
}

func (c *config) duration(name string) time.Duration {
	d, _ := ddl.ParseDuration(c.get(name))
	return d
}

// runConfig prints the effective settings.
func runConfig(_ context.Context, args []string) error {
	c := newConfig()
	fs := newFlags("config", "[flags]", "Prints every setting, its effective value and where it comes from.\nPrecedence: flag, environment, file, default.")
	c.flags(fs)
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	problem := c.resolve(os.LookupEnv)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tORIGIN\tENVIRONMENT")
	for _, s := range c.settings {
		v := s.value
		if s.secret && v != "" {
			v = "********"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.name, v, s.origin, s.env)
	}
	return errors.Join(w.Flush(), problem)
}

func checkAddr(s string) error {
	if _, _, err := net.SplitHostPort(s); err != nil {
		return fmt.Errorf("an address is host:port, got %q", s)
	}
	return nil
}

func checkBool(s string) error {
	if _, err := strconv.ParseBool(s); err != nil {
		return fmt.Errorf("true or false is needed, got %q", s)
	}
	return nil
}

func checkCount(s string) error {
	if n, err := strconv.Atoi(s); err != nil || n < 0 {
		return fmt.Errorf("a number from 0 is needed, got %q", s)
	}
	return nil
}

func checkSize(s string) error { _, err := parseSize(s); return err }

func checkSeconds(s string) error { return checkDuration(s) }

func checkDuration(s string) error {
	if _, err := ddl.ParseDuration(s); err != nil {
		return fmt.Errorf("a duration such as 10s or 1min is needed, got %q", s)
	}
	return nil
}

func checkLog(s string) error {
	if s != onDisk && !strings.HasPrefix(s, s3Scheme) {
		return fmt.Errorf("disk or s3://BUCKET/PREFIX is needed, got %q", s)
	}
	return nil
}

func checkOneOf(values ...string) func(string) error {
	return func(s string) error {
		for _, v := range values {
			if s == v {
				return nil
			}
		}
		return fmt.Errorf("one of %s is needed, got %q", strings.Join(values, ", "), s)
	}
}

// parseSize reads a byte count with an optional unit: 67108864, 64MiB, 64MB, 1GiB.
// MB and MiB both are 2^20, as in postgresql.conf.
func parseSize(s string) (int64, error) {
	units := []struct {
		suffix string
		shift  uint
	}{{"kib", 10}, {"kb", 10}, {"k", 10}, {"mib", 20}, {"mb", 20}, {"m", 20}, {"gib", 30}, {"gb", 30}, {"g", 30}, {"b", 0}}
	text := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), " ", ""))
	var shift uint
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, shift = rest, u.shift
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("a size such as 64MiB is needed, got %q", s)
	}
	return n << shift, nil
}

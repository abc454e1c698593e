// Package clients runs what people connect with, psql, drivers, object mappers and tools,
// against skipprd and against a PostgreSQL 15 with the same tables, and compares what they
// print. Scripts in testdata print one section after another, "## name" and then lines: a
// section that differs fails its test, unless it is a known gap. What is not installed is
// skipped and said; .ci/clients installs it. "make clients" does all of it, and with
// SKIPPRD_CLIENTS=1 a client that fails on PostgreSQL, too, fails its test.
package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// database is the name of skipprd's database, and of PostgreSQL's here.
const database = "lake"

// schema is made at the source of a pipeline, and in the database to compare with.
var schema = []string{
	"CREATE SCHEMA shop",
	`CREATE TABLE shop.customers (id bigint PRIMARY KEY, name varchar(20) NOT NULL, email text, tags text[], paid boolean NOT NULL,
		doc jsonb, u uuid, d date, f4 real, f8 float8, i2 smallint, b bytea, ts timestamp(3), tz timestamptz, t time, n numeric(12,2), big numeric,
		i interval, ints int[], c char(4))`,
	`CREATE TABLE shop.orders (id int, line int, customer bigint NOT NULL, total numeric(10,2), at timestamptz, PRIMARY KEY (id, line))`,
	`CREATE TABLE shop."Odd Names" ("order id" bigint PRIMARY KEY, "No" int, "select" text)`,
	`INSERT INTO shop.customers VALUES
		(1, 'ada', 'ada@example.org', '{a,NULL,"b c"}', true, '{"k": [1, 2, {"x": null}]}', '5f2c6a1e-0d7b-4c3a-9a51-2f60c5d3a111', '2024-02-29', 1.5, 1e300, -7,
			'\x00ff', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789+02', '23:59:59.999999', 1234567890.12, 123456789012345678901234567890.5,
			'1 year 2 mons 3 days 04:05:06.7', '{1,2,3}', 'ab'),
		(2, 'Zoë', NULL, '{}', false, NULL, NULL, '0001-01-01', '-Infinity', 'NaN', 32767, '', '1970-01-01', '1900-01-01 00:00:00+00', '00:00', -0.01, 0, '-1 days', NULL, NULL),
		(3, '', '', NULL, true, '[]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{NULL}', '    ')`,
	`INSERT INTO shop.orders SELECT i, l, i % 3 + 1, i * 1.25, timestamptz '2024-01-01 00:00:00+00' + i * interval '1 hour'
		FROM generate_series(1, 50) i, generate_series(1, 2) l`,
	`INSERT INTO shop."Odd Names" VALUES (1, 2, 'three'), (4, NULL, NULL)`,
}

// own are tables that clients write to.
var own = []string{
	"CREATE TABLE public.notes (id int PRIMARY KEY, body text, at timestamptz)",
	"CREATE TABLE public.loads (id bigint PRIMARY KEY, v text, n numeric(10,2))",
}

// target is a server that clients connect to.
type target struct {
	name string
	port int
}

func (s target) dsn() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=%s sslmode=disable", s.port, database)
}

// rig is skipprd and a PostgreSQL with the same tables.
type rig struct {
	ours, theirs target
	// bin is where PostgreSQL 15's own programs are, whose statements fit us.
	bin string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	bin := findBin(t)
	pg := pgtest.StartVersion(t, 15, "timezone = 'UTC'", "log_timezone = 'UTC'")
	pg.Exec(t, pg.DSN, "CREATE DATABASE "+database+" TEMPLATE template0 LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'", "CREATE DATABASE source")
	r := &rig{theirs: target{"postgresql", pg.Port}, bin: bin}
	source := pg.WithDatabase("source")
	harness.Exec(t, source, schema...)
	harness.Exec(t, r.theirs.dsn(), schema...)
	s := harness.New(t, t.TempDir())
	s.Start()
	r.ours = target{"skipprd", s.Port}
	harness.Exec(t, r.ours.dsn(), "CREATE PIPELINE shop FROM POSTGRES '"+source+"' FOR TABLES IN SCHEMA shop")
	harness.Exec(t, r.ours.dsn(), "SYNC PIPELINE shop UNTIL CAUGHT UP")
	for _, s := range []target{r.ours, r.theirs} {
		harness.Exec(t, s.dsn(), own...)
	}
	return r
}

// environment is what a client of s is told by libpq's variables.
func (s target) environment() []string {
	clean := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
	return append(clean, "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", s.port), "PGUSER=postgres", "PGPASSWORD=unused",
		"PGDATABASE="+database, "PGSSLMODE=disable", "LC_ALL=C.UTF-8", "PAGER=cat", "PYTHONDONTWRITEBYTECODE=1", "TZ=UTC")
}

// limit is how long a client may take, on a machine that does much else.
const limit = 15 * time.Minute

// output is what a client prints, for people and for the comparison.
type output struct {
	text string
	// aside is what it says beside that, where the two are not mixed.
	aside string
}

// run is what a client prints, and an error if it ends with one, or never.
func (s target) run(t *testing.T, c client, command []string) (output, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if c.inside != nil {
		return output{text: mask(c.inside(ctx, s.dsn()))}, nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = s.environment()
	if c.stdin != nil {
		cmd.Stdin = strings.NewReader(c.stdin(t))
	}
	cmd.WaitDelay = time.Minute
	var out, aside bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &aside
	if c.mixed {
		cmd.Stderr = &out
	}
	err := cmd.Run()
	return output{mask(out.String()), aside.String()}, err
}

// What two servers, or two runs, cannot but say differently.
var masks = []struct {
	text *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`port "\d+"`), `port "PORT"`},
	{regexp.MustCompile(`with PID \d+`), "with PID PID"},
	{regexp.MustCompile(`(?m)^LOCATION:.*\n`), ""}, // a place in a server's source code
	{regexp.MustCompile(`(?m)^(\\(un)?restrict \S+|-- Dumped from database version .*)\n`), ""},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.text.ReplaceAllString(text, m.by)
	}
	return text
}

// section is a named part of what a client prints.
type section struct{ name, text string }

// beforeFirst is the name of what comes before the first section, where nothing should.
const beforeFirst = "before the first"

func sections(out string) []section {
	var all []section
	seen := map[string]int{}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			name = strings.TrimSpace(name)
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s, time %d", name, seen[name])
			}
			all = append(all, section{name: name})
			continue
		}
		if len(all) == 0 {
			all = append(all, section{name: beforeFirst})
		}
		all[len(all)-1].text += line
	}
	return all
}

// failure is what a script prints where something went wrong that should not.
const failure = "FAILED"

// same runs a client on both servers and compares section by section. Those in gaps
// differ; one that closes is said, and to leave the list.
func (r *rig) same(t *testing.T, c client, command []string) {
	t.Helper()
	want, err := r.theirs.run(t, c, command)
	theirs := sections(want.text)
	if err != nil || strings.Contains(want.text, failure) || len(theirs) == 0 || theirs[0].name == beforeFirst {
		unfit(t, fmt.Sprintf("it fails on PostgreSQL: %v\n%s\n%s", err, want.text, want.aside))
	}
	got, err := r.ours.run(t, c, command)
	ours := sections(got.text)
	if err != nil {
		t.Errorf("%v\n%s", err, got.aside)
	}
	for _, w := range theirs {
		i := slices.IndexFunc(ours, func(s section) bool { return s.name == w.name })
		equal := i >= 0 && ours[i].text == w.text
		if _, gap := c.gaps[w.name]; gap == !equal {
			continue
		}
		switch {
		case equal:
			t.Logf("%s is equal by now: take it off the list of gaps", w.name)
		case i < 0:
			t.Errorf("%s is missing in\n%s", w.name, got.text)
		default:
			t.Errorf("%s: skipprd says\n%s\npostgresql says\n%s\n%s", w.name, ours[i].text, w.text, got.aside)
		}
	}
	t.Logf("%d sections, %d gaps", len(theirs), len(c.gaps))
}

// unfit ends the test of a client that does not do its work on PostgreSQL either: that
// says nothing of us. "make clients" takes it for an error, of the client's script.
func unfit(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("SKIPPRD_CLIENTS") == "1" {
		t.Fatal(reason)
	}
	skip(t, reason)
}

func findBin(t *testing.T) string {
	t.Helper()
	const bin = "/usr/lib/postgresql/15/bin"
	if _, err := os.Stat(bin + "/psql"); err != nil {
		skip(t, "PostgreSQL 15's psql is not here")
	}
	return bin
}

// installed is a file of a set that .ci/clients has put into the cache, complete and made
// of these files, or the test is skipped.
func installed(t *testing.T, set string, made []string, elements ...string) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache")
	}
	sum := sha256.New()
	for _, name := range made {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
	place := fmt.Sprintf("%s-%x", set, sum.Sum(nil)[:8])
	path := filepath.Join(append([]string{cache, "skipprd", "clients", place}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		skip(t, path+" is not here; .ci/clients installs it")
	}
	return path
}

// works skips the test of a client that does not start here.
func works(t *testing.T, command ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		skip(t, fmt.Sprintf("%s: %v: %s", strings.Join(command, " "), err, out))
	}
}

// onPath is a program of the system, or the test is skipped.
func onPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		skip(t, name+" is not here")
	}
	return path
}

func link(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err == nil {
		err = os.Symlink(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// skip ends a test that lacks its client, loudly: "go test" hides what a passing package
// prints, so that it is written, too, to the file that SKIPPRD_SKIPPED names.
func skip(t *testing.T, reason string) {
	t.Helper()
	if path := os.Getenv("SKIPPRD_SKIPPED"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatalf("report what was skipped: %v", err)
		}
		first, _, _ := strings.Cut(reason, "\n")
		_, err = fmt.Fprintf(f, "clients: SKIPPED %s: %s\n", t.Name(), first)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			t.Fatalf("report what was skipped: %v", err)
		}
	}
	t.Skipf("SKIPPED: %s", reason)
}

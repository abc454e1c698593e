package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestDump: skipprd dump | psql makes on a new server what dumps as the same text again, rows and
// passwords too.
func TestDump(t *testing.T) {
	t.Parallel()
	psql := findPsql(t)
	first, second := harness.New(t, t.TempDir()), harness.New(t, t.TempDir())
	for _, s := range []*harness.Server{first, second} {
		s.Setenv("ODD_TOKEN=secret")
		s.Start()
	}
	input, err := os.ReadFile("testdata/dump.sql")
	if err != nil {
		t.Fatal(err)
	}
	reload(t, psql, first, string(input))
	definitions, rows := dumped(t, first, "--data", "--role-passwords")
	for _, word := range []string{"temporary", "tempseq", "pg_temp", "********", "ODD_TOKEN=secret"} {
		if strings.Contains(definitions, word) {
			t.Errorf("%s is in the dump", word)
		}
	}
	for _, text := range []string{
		`INDEX public.expr_i IS 'index'`, `INDEX public.mat_k IS 'of rows kept'`, `INDEX public."The Key" IS 'key''s'`,
		`CONSTRAINT "The Key" ON public.named_key IS 'key'`, `CONSTRAINT "Named" ON public.serials IS 'unique'`,
		`CONSTRAINT "Odd Check" ON "Odd Schema"."My ""Table""" IS 'check'`, `CONSTRAINT "To Key" ON public."To Parent" IS 'foreign'`,
		`ROLE "Odd Role" IS 'role'`, `DATABASE lake IS 'database'`,
	} {
		if !strings.Contains(definitions, "COMMENT ON "+text+";") {
			t.Errorf("no comment on %s in the dump", text)
		}
	}
	if len(rows) == 0 || !strings.Contains(definitions, "SCRAM-SHA-256$") {
		t.Fatalf("no rows or passwords in the dump:\n%s", definitions)
	}
	text, _ := dump(t, first, "--data", "--role-passwords")
	reload(t, psql, second, text)
	again, rowsAgain := dumped(t, second, "--data", "--role-passwords")
	if again != definitions {
		t.Errorf("reloaded and dumped:\n%s\nfirst dump:\n%s", again, definitions)
	}
	if !slices.Equal(rowsAgain, rows) {
		t.Errorf("rows\n%s\nfirst dump\n%s", rowsAgain, rows)
	}
	if plain, _ := dumped(t, first); strings.Contains(plain, "SCRAM-SHA-256$") || strings.Contains(plain, "COPY ") {
		t.Errorf("rows or passwords that nobody asked for:\n%s", plain)
	}
}

// TestDumpOfOthers: who is no superuser dumps what it may see, and no passwords.
func TestDumpOfOthers(t *testing.T) {
	t.Parallel()
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE ROLE ana LOGIN PASSWORD 'x'", "CREATE TABLE hers (a int)", "ALTER TABLE hers OWNER TO ana",
		"CREATE TABLE other (a int)", "CREATE SECRET own AS 'hidden value'")
	text, ok := dump(t, s, "--url", strings.Replace(s.DSN, "user=postgres", "user=ana password=x", 1), "--role-passwords")
	if !ok || !strings.Contains(text, "CREATE TABLE public.hers") || strings.Contains(text, "other") || strings.Contains(text, "SCRAM") ||
		strings.Contains(text, "SECRET") {
		t.Errorf("a role's dump:\n%s", text)
	}
	if text, _ = dump(t, s); strings.Contains(text, "hidden value") || !strings.Contains(text, "-- CREATE SECRET own AS '********';") {
		t.Errorf("a secret:\n%s", text)
	}
}

// dump runs skipprd dump.
func dump(t *testing.T, s *harness.Server, args ...string) (text string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Binary(t), append([]string{"dump", "--url", s.DSN}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("skipprd dump: %v\n%s", err, said.String())
	}
	return string(out), err == nil
}

// dumped is a dump, and the rows of it, in their own order as tables have none.
func dumped(t *testing.T, s *harness.Server, args ...string) (definitions string, rows []string) {
	t.Helper()
	text, _ := dump(t, s, args...)
	in := ""
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case in != "" && line == "\\.\n":
			in = ""
		case in != "":
			rows = append(rows, in+line)
			continue
		case strings.HasPrefix(line, "COPY "):
			in = line
		}
		b.WriteString(line)
	}
	slices.Sort(rows)
	return b.String(), rows
}

// reload runs SQL, none of which may fail.
func reload(t *testing.T, psql string, s *harness.Server, sql string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", s.DSN, "-f", "-")
	cmd.Stdin = strings.NewReader(sql)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGCLIENTENCODING=UTF8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
}

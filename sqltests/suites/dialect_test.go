package suites

import (
	"context"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/slt"
)

// corpora are files in the dialects of other engines' suites.
var corpora = []string{"../slt/testdata/sqlite", "../slt/testdata/duckdb", "../slt/testdata/risingwave", "../slt/testdata/cockroach/*"}

// TestDialectsSkipprd runs files of other engines' suites on our server, unchanged, as
// sqltests/slt runs them on a real PostgreSQL.
func TestDialectsSkipprd(t *testing.T) {
	s := harness.New(t, t.TempDir())
	s.Start()
	list, err := slt.Collect(corpora, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, extended := range []bool{false, true} {
		t.Run(mode(extended), func(t *testing.T) {
			suite := slt.Suite{Files: list, Jobs: 2, Config: slt.Config{
				DSN: s.DSN, Labels: []string{"postgres", "postgresql", "skipprd"}, Extended: extended, System: true,
				Env: func(name string) (string, bool) { return "from the environment", name == "SLT_TEST_ENV" },
			}}
			for _, o := range suite.Run(context.Background()).Outcomes {
				want := slt.Passed
				if filepath.Base(o.File) == "require.test" { // what it needs is not there
					want = slt.Skipped
				}
				if o.Status() != want {
					t.Errorf("%s %s: %v %s", o.File, o.Status(), o.Failure, o.Rest)
				}
			}
		})
	}
	t.Run("command", func(t *testing.T) { runCommand(t, s.DSN) })
}

// runCommand runs "skipprd slt" as a user does, on a suite of a user.
func runCommand(t *testing.T, dsn string) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.slt":     "onlyif skipprd\nquery T\nSELECT 'ours'\n----\nours\n\nonlyif postgres\nquery I\nSELECT 1\n----\n1\n",
		"shell.slt":    "system ok\ntouch " + filepath.Join(dir, "ran") + "\n",
		"bad/bad.test": "query I nosort\nSELECT 1\n----\n2\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	junit := filepath.Join(dir, "report.xml")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--junit", junit, dir}, 1, "files: 1 passed, 1 failed, 1 skipped"},
		{[]string{"-j", "2", filepath.Join(dir, "*.slt")}, 0, "files: 1 passed, 0 failed, 1 skipped"},
		{[]string{"--override", filepath.Join(dir, "bad")}, 0, "1 rewritten"},
		{[]string{"-q", filepath.Join(dir, "bad")}, 0, "files: 1 passed"},
		{[]string{filepath.Join(dir, "none")}, 2, "no test file there"},
	} {
		cmd := exec.Command(harness.Binary(t), append([]string{"slt", "--url", dsn}, c.args...)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("slt %v: exit code %d, want %d and %q in\n%s", c.args, code, c.code, c.want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a shell command ran that nobody allowed")
	}
	var report struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	text, err := os.ReadFile(junit)
	if err == nil {
		err = xml.Unmarshal(text, &report)
	}
	if err != nil || report.Tests != 3 || report.Failures != 1 || report.Skipped != 1 {
		t.Errorf("JUnit: %v\n%s", err, text)
	}
}

package sim_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/script"
)

// scripts are the files of scripts below a directory, with their schedules.
func scripts(t testing.TB, dir string) map[string]script.Schedule {
	t.Helper()
	out := map[string]script.Schedule{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sim" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s, err := sim.ReadSchedule(strings.NewReader(string(text)))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		out[path] = s
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing is found yet
		t.Fatal(err)
	}
	return out
}

// TestScripts runs the named scripts: all invariants hold, and each hits the marks that it
// wants, so that none passes by doing nothing.
func TestScripts(t *testing.T) {
	for path, s := range scripts(t, "testdata/scripts") {
		t.Run(strings.TrimPrefix(path, "testdata/scripts/"), func(t *testing.T) {
			if len(s.About) == 0 || len(s.Want) == 0 {
				t.Error("a script says what it shows, and which marks it must hit")
			}
			r := runScript(t, s)
			for _, m := range s.Want {
				if r.Marks[m] == 0 {
					t.Errorf("mark %q is not hit", m)
				}
			}
			if again := runScript(t, s); again.TraceHash != r.TraceHash {
				t.Errorf("a second run has another trace: %x and %x", r.TraceHash, again.TraceHash)
			}
		})
	}
}

// TestFound runs the schedules that once found a bug.
func TestFound(t *testing.T) {
	for path, s := range scripts(t, "testdata/found") {
		t.Run(filepath.Base(path), func(t *testing.T) { runScript(t, s) })
	}
}

func runScript(t testing.TB, s script.Schedule) sim.Result {
	t.Helper()
	c := sim.Config{Schedule: s}
	if os.Getenv("SKIPPRD_SIM_TRACE") != "" {
		c.Trace, c.Verbose = os.Stderr, true
	}
	r, err := sim.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Violation != nil {
		t.Fatalf("%s at step %d: %s", r.Violation.Label, r.Violation.Step, r.Violation.Detail)
	}
	return r
}

// TestForms: text and compact form say the same.
func TestForms(t *testing.T) {
	all := scripts(t, "testdata/scripts")
	for seed := range uint64(50) {
		all[string(rune('0'+seed))] = script.Generate(seed, 0)
	}
	for name, s := range all {
		s.About, s.Want = nil, nil
		back, err := sim.ReadSchedule(strings.NewReader(sim.FormatSchedule(s)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(back, s) {
			t.Errorf("%s: text gives\n%+v, not\n%+v", name, back, s)
		}
		if back, err = script.Decode(script.Encode(s)); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: compact form gives\n%+v, %v, not\n%+v", name, back, err, s)
		}
	}
}

// Package suites runs our .slt files: all of them on skipprd, and those without
// pipeline words on a real PostgreSQL too, which so is the oracle of what they expect.
package suites

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/sqltests/slt"
)

func files(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := filepath.Glob(pattern)
	if err != nil || len(out) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	return out
}

func runAll(t *testing.T, cfg slt.Config, list []string) {
	t.Helper()
	for _, f := range list {
		t.Run(f, func(t *testing.T) {
			out := slt.NewRunner(cfg).Run(context.Background(), f)
			if out.Failure != nil {
				t.Error(out.Failure)
			}
			t.Logf("%d records, %d skipped", out.Records, len(out.Skipped))
		})
	}
}

// ourLocale is that of a database that sorts and folds as ours do.
const ourLocale = "TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"

// TestSuitesPostgres checks our expectations rather than our memory of them.
func TestSuitesPostgres(t *testing.T) {
	pg := pgtest.Start(t)
	var list []string
	for _, dir := range pure {
		list = append(list, files(t, filepath.Join(dir, "*.slt"))...)
	}
	for _, extended := range []bool{false, true} {
		t.Run(mode(extended), func(t *testing.T) {
			runAll(t, slt.Config{
				DSN: pg.CreateDatabase(t, ourLocale), Labels: []string{"postgres", "postgresql"}, Extended: extended, Strict: true,
			}, list)
		})
	}
}

// pure are the directories whose files have no pipeline words.
var pure = []string{"select", "types", "errors", "session", "catalog", "write", "rights"}

func mode(extended bool) string {
	if extended {
		return "extended"
	}
	return "simple"
}

// TestSuitesSkipprd runs everything on our own server.
func TestSuitesSkipprd(t *testing.T) {
	s := harness.New(t, t.TempDir())
	s.Start()
	var list []string
	for _, dir := range pure {
		list = append(list, files(t, filepath.Join(dir, "*.slt"))...)
	}
	for _, extended := range []bool{false, true} {
		t.Run(mode(extended), func(t *testing.T) {
			runAll(t, slt.Config{DSN: s.DSN, Labels: []string{"skipprd"}, Extended: extended, Strict: true}, list)
		})
	}
	t.Run("pipeline", func(t *testing.T) {
		for _, f := range files(t, "pipeline/*.slt") {
			t.Run(f, func(t *testing.T) {
				source := pgtest.Start(t).CreateDatabase(t)
				cfg := slt.Config{
					DSN: s.DSN, Labels: []string{"skipprd"}, Vars: map[string]string{"SOURCE": source}, Source: source, Strict: true,
				}
				if out := slt.NewRunner(cfg).Run(context.Background(), f); out.Failure != nil {
					t.Error(out.Failure)
				}
			})
		}
	})
}

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Versions are major versions for a test to run on: some, and with SKIPPRD_PG_ALL=1 more.
func Versions(some []int, more ...int) []int {
	if os.Getenv("SKIPPRD_PG_ALL") == "" {
		return some
	}
	all := append(slices.Clone(some), more...)
	slices.Sort(all)
	return all
}

// binaries is the directory of the binaries of a major version, else of the one that
// SKIPPRD_PG names, else of the newest of the system's own, else of the newest there is.
func binaries(major int) (string, error) {
	if dir := os.Getenv("SKIPPRD_TEST_PG_BIN"); dir != "" && major == 0 {
		return dir, nil
	}
	if text := os.Getenv("SKIPPRD_PG"); text != "" && major == 0 {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return "", fmt.Errorf("SKIPPRD_PG is %q, not a major version", text)
		}
		major = n
	}
	for _, dir := range directories() {
		if major == 0 || majorOf(dir) == major {
			return filepath.Join(dir, "bin"), nil
		}
	}
	if major != 0 {
		return "", fmt.Errorf("no PostgreSQL %d under /usr/lib/postgresql, nor from .ci/setup, which gets it where there is npm", major)
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", fmt.Errorf("no initdb under /usr/lib/postgresql or in PATH; set SKIPPRD_TEST_PG_DSN or SKIPPRD_TEST_PG_BIN")
}

// directories are those of servers: the system's, the newest first, then what .ci/setup
// got, the newest first.
func directories() []string {
	patterns := []string{"/usr/lib/postgresql/*/bin/initdb"}
	cache, err := os.UserCacheDir()
	if err == nil && (os.Geteuid() != 0 || os.Getenv("XDG_CACHE_HOME") != "") {
		patterns = append(patterns, filepath.Join(cache, "skipprd", "postgresql-*", "bin", "initdb"))
	}
	if os.Geteuid() == 0 { // the server's user cannot look into root's home
		patterns = append(patterns, "/var/cache/skipprd/postgresql-*/bin/initdb")
	}
	var out []string
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // the patterns are well formed
		for i, path := range found {
			found[i] = filepath.Dir(filepath.Dir(path))
		}
		slices.SortStableFunc(found, func(a, b string) int { return majorOf(b) - majorOf(a) })
		out = append(out, found...)
	}
	return out
}

// majorOf is the major version in the name of a server's directory, "17" or
// "postgresql-17.10.0-beta.17"; 0 for another name.
func majorOf(dir string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "postgresql-"), ".")
	n, _ := strconv.Atoi(text)
	return n
}

// skip ends a test that lacks its server, loudly: "go test" hides what a passing package
// prints, so that it is written, too, to the file that SKIPPRD_SKIPPED names.
func skip(t testing.TB, reason error) {
	t.Helper()
	if path := os.Getenv("SKIPPRD_SKIPPED"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatalf("report what was skipped: %v", err)
		}
		_, err = fmt.Fprintf(f, "servers: SKIPPED %s: %v\n", t.Name(), reason)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			t.Fatalf("report what was skipped: %v", err)
		}
	}
	t.Skipf("SKIPPED, NO POSTGRESQL: %v", reason)
}

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func resolve(t *testing.T, args []string, env map[string]string) (*config, error) {
	t.Helper()
	c := newConfig()
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	c.flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c, c.resolve(func(k string) (string, bool) { v, ok := env[k]; return v, ok })
}

func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "skipprd.conf")
	text := "# comment\nlisten = '127.0.0.1:1'\nhttp = 127.0.0.1:1\nmax_connections = 1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := resolve(t, []string{"--data-dir", dir, "--listen", "127.0.0.1:3"},
		map[string]string{"LISTEN": "127.0.0.1:2", "HTTP": "127.0.0.1:2", "BUFFER_THRESHOLD_BYTES": "1024"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]string{
		"listen":                 {"127.0.0.1:3", "flag"},
		"http":                   {"127.0.0.1:2", "environment"},
		"max-connections":        {"1", file},
		"database":               {"lake", "default"},
		"buffer-threshold-bytes": {"1024", "environment"},
	} {
		if s := c.byName[name]; s.value != want[0] || s.origin != want[1] {
			t.Errorf("%s: got %s from %s, want %v", name, s.value, s.origin, want)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "skipprd.conf"), []byte("nonsense = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := resolve(t, []string{"--data-dir", dir, "--listen", "nowhere", "--wal-storage", "tape", "--tls-key", "k"}, nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"nonsense", "listen", "log (from flag)", "tls-cert"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "64MiB": 64 << 20, "64 MB": 64 << 20, "1g": 1 << 30, "7": 7, "8kB": 8 << 10} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "-1", "x", "1e3", "9999999999G"} {
		if _, err := parseSize(in); err == nil {
			t.Errorf("%q accepted", in)
		}
	}
}

package pgtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Private is a server of one test alone, which may stop it, break it, and set it up in
// its own way.
type Private struct {
	*Server
	own *cluster
}

// cluster is a running private server.
type cluster struct {
	bin, dir string
	stdin    io.Closer
	exited   chan error
}

// StartPrivate starts a server with further lines of postgresql.conf; it ends with the
// test. Where there are no server binaries of our own to run, the test is skipped.
func StartPrivate(t testing.TB, config ...string) *Private {
	t.Helper()
	if os.Getenv("SKIPPRD_TEST_PG_DSN") != "" && os.Getenv("SKIPPRD_TEST_PG_BIN") == "" {
		t.Skip("SKIPPED: the PostgreSQL of SKIPPRD_TEST_PG_DSN is not ours to restart; SKIPPRD_TEST_PG_BIN names binaries")
	}
	return startVersion(t, 0, config)
}

// StartVersion is StartPrivate of a server of a major version.
func StartVersion(t testing.TB, major int, config ...string) *Private {
	t.Helper()
	return startVersion(t, major, config)
}

func startVersion(t testing.TB, major int, config []string) *Private {
	t.Helper()
	bin, err := binaries(major)
	if err != nil {
		skip(t, err)
	}
	return startPrivate(t, bin, strings.Join(config, "\n"), "")
}

// Standby starts a standby of p, which follows it, with further lines of
// postgresql.conf; it ends with the test. Control(t, "promote") makes it a primary.
func (p *Private) Standby(t testing.TB, config ...string) *Private {
	t.Helper()
	return startPrivate(t, p.own.bin, strings.Join(config, "\n"), p.DSN)
}

func startPrivate(t testing.TB, bin, config, primary string) *Private {
	t.Helper()
	s, own, err := run(bin, config, primary)
	if err != nil {
		t.Fatalf("start postgresql: %v", err)
	}
	t.Cleanup(func() {
		_ = own.stdin.Close() // ends the script, which stops the server
		select {
		case <-own.exited:
		case <-time.After(3 * time.Minute):
			t.Errorf("the private postgresql in %s does not stop", own.dir)
		}
	})
	return &Private{Server: s, own: own}
}

// DataDir is the cluster's directory.
func (p *Private) DataDir() string { return filepath.Join(p.own.dir, "data") }

// Version is the server's major version.
func (p *Private) Version(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.DataDir(), "PG_VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Write puts a file into the cluster's directory, for the server's user alone.
func (p *Private) Write(t testing.TB, name string, content []byte) {
	t.Helper()
	path := filepath.Join(p.DataDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	owner, err := os.Stat(p.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := owner.Sys().(*syscall.Stat_t); ok {
		for _, path := range []string{filepath.Dir(path), path} {
			if err := os.Chown(path, int(st.Uid), int(st.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Control runs pg_ctl on the server: Control(t, "restart", "-m", "immediate").
func (p *Private) Control(t testing.TB, args ...string) {
	t.Helper()
	line := append([]string{
		filepath.Join(p.own.bin, "pg_ctl"), "-D", filepath.Join(p.own.dir, "data"),
		"-l", filepath.Join(p.own.dir, "log"), "-w", "-t", "180",
	}, args...)
	line, err := stepDown(line...)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = "/"
	// Not to a pipe: the server that is started would keep it open.
	if err := cmd.Run(); err != nil {
		t.Fatalf("pg_ctl %s: %v", strings.Join(args, " "), err)
	}
}

package pgtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	bin, err := binaries()
	if err != nil {
		t.Skipf("SKIPPED, NO POSTGRESQL: %v", err)
	}
	s, own, err := run(bin, strings.Join(config, "\n"))
	if err != nil {
		t.Fatalf("start postgresql: %v", err)
	}
	t.Cleanup(func() {
		_ = own.stdin.Close() // ends the script, which stops the server
		select {
		case <-own.exited:
		case <-time.After(30 * time.Second):
			t.Errorf("the private postgresql in %s does not stop", own.dir)
		}
	})
	return &Private{Server: s, own: own}
}

// Control runs pg_ctl on the server: Control(t, "restart", "-m", "immediate").
func (p *Private) Control(t testing.TB, args ...string) {
	t.Helper()
	line := append([]string{
		filepath.Join(p.own.bin, "pg_ctl"), "-D", filepath.Join(p.own.dir, "data"),
		"-l", filepath.Join(p.own.dir, "log"), "-w", "-t", "60",
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

// Package harness runs the skipprd binary as a user would, for end-to-end tests,
// benchmarks and the kill loops: build, start, kill, wait, compare with the source.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/proc"
)

var (
	buildOnce sync.Once
	binary    string
	buildErr  error
)

// Binary builds skipprd once per test process and returns its path. SKIPPRD_BIN names
// one that is built already.
func Binary(t testing.TB) string {
	t.Helper()
	buildOnce.Do(func() {
		if binary = os.Getenv("SKIPPRD_BIN"); binary != "" {
			return
		}
		dir, err := os.MkdirTemp("", "skipprd-bin-")
		if err != nil {
			buildErr = err
			return
		}
		binary = filepath.Join(dir, "skipprd")
		out, err := exec.Command("go", "build", "-o", binary, "github.com/skipprd/skipprd/cmd/skipprd").CombinedOutput()
		if err != nil {
			buildErr = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return binary
}

// Server is a running skipprd process on a data directory of its own.
type Server struct {
	DSN     string
	HTTP    string
	DataDir string
	Port    int

	t    testing.TB
	env  []string
	args []string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
}

// New prepares a server; Start runs it. args are further flags of "skipprd serve".
func New(t testing.TB, dataDir string, args ...string) *Server {
	t.Helper()
	port, httpPort := FreePort(t), FreePort(t)
	s := &Server{
		t: t, DataDir: dataDir, Port: port, args: args,
		DSN:  fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=lake sslmode=disable", port),
		HTTP: fmt.Sprintf("http://127.0.0.1:%d", httpPort),
	}
	s.args = append([]string{
		"serve", "--data-dir", dataDir, "--listen", fmt.Sprintf("127.0.0.1:%d", port),
		"--http", fmt.Sprintf("127.0.0.1:%d", httpPort),
	}, args...)
	logFile, err := os.OpenFile(filepath.Join(t.TempDir(), "server.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.log = logFile
	t.Cleanup(s.cleanup)
	return s
}

// Setenv adds an environment variable for the next Start.
func (s *Server) Setenv(kv string) { s.env = append(s.env, kv) }

// Unsetenv forgets what Setenv added.
func (s *Server) Unsetenv() { s.env = nil }

// FreePort finds a free TCP port on loopback.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := proc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Start runs the process and waits until it is ready.
func (s *Server) Start() {
	s.t.Helper()
	s.Launch()
	s.WaitReady(Patience)
}

// Launch runs the process without waiting.
func (s *Server) Launch() {
	s.t.Helper()
	s.cmd = exec.Command(Binary(s.t), s.args...)
	s.cmd.Env = append(os.Environ(), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	s.done = done
	cmd := s.cmd
	go func() {
		_ = cmd.Wait() // the exit code is looked at through ProcessState
		close(done)
	}()
}

// WaitReady polls /readyz.
func (s *Server) WaitReady(limit time.Duration) {
	s.t.Helper()
	if err := s.TryReady(limit); err != nil {
		s.t.Fatalf("%v:\n%s", err, s.Log(60))
	}
}

// TryReady is WaitReady for a server that may well not come up.
func (s *Server) TryReady(limit time.Duration) error {
	ok := Until(limit, func() bool {
		if s.Dead() {
			return true
		}
		resp, err := http.Get(s.HTTP + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if s.Dead() {
		return errors.New("server died at start")
	}
	if !ok {
		return fmt.Errorf("server is not ready after %s", limit)
	}
	return nil
}

// Dead reports whether the process has ended.
func (s *Server) Dead() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Kill ends the process with SIGKILL, its workers with it, and waits.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill() // dead already is as good
	<-s.done
}

// Stop asks the process to end and waits; it fails the test if it does not.
func (s *Server) Stop() {
	s.t.Helper()
	if s.Dead() {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // dead already is as good
	select {
	case <-s.done:
	case <-time.After(Patience):
		s.t.Errorf("server does not stop:\n%s", s.Log(60))
		s.Kill()
	}
}

// WaitDead waits until the process has ended by itself.
func (s *Server) WaitDead(limit time.Duration) bool {
	select {
	case <-s.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// exitKilled is what the server exits with at a failpoint.
const exitKilled = 137

// DiedAtFailpoint waits until the process, launched with SKIPPRD_FAILPOINT, has died
// there. That it ended otherwise, as it does when it refuses the failpoint, is an error.
func (s *Server) DiedAtFailpoint(limit time.Duration) (bool, error) {
	if !s.WaitDead(limit) {
		return false, nil
	}
	if code := s.cmd.ProcessState.ExitCode(); code != exitKilled {
		return false, fmt.Errorf("the server was to die at a failpoint, and exited with %d:\n%s", code, s.Log(20))
	}
	return true, nil
}

// WaitFailpoint is DiedAtFailpoint whose error fails the test.
func (s *Server) WaitFailpoint(limit time.Duration) bool {
	s.t.Helper()
	died, err := s.DiedAtFailpoint(limit)
	if err != nil {
		s.t.Fatal(err)
	}
	return died
}

// WaitGroupDead waits until the dead server's children, which are of its process group,
// have ended too.
func (s *Server) WaitGroupDead(limit time.Duration) bool {
	return Until(limit, func() bool { return len(group(s.cmd.Process.Pid)) == 0 })
}

// PID is the process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns the last lines of what the server logged.
func (s *Server) Log(lines int) string {
	b, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (s *Server) cleanup() {
	if s.cmd != nil && s.done != nil && !s.Dead() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.done
	}
	if s.cmd != nil && s.cmd.Process != nil {
		s.WaitGroupDead(Patience) // or its engine may yet make a file in a directory that is removed next
	}
	if s.t.Failed() {
		s.t.Logf("server log:\n%s", s.Log(80))
	}
	s.log.Close()
}

// Patience is how long tests wait for what must come. It costs nothing where it comes, and a
// machine that does much else takes its time.
const Patience = 3 * time.Minute

// Until polls f about every 20 ms until it is true or limit has passed. A limit below Patience
// is for what need not come.
func Until(limit time.Duration, f func() bool) bool {
	deadline := time.Now().Add(limit)
	for {
		if f() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Connect opens a session that ends with the test.
func Connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Exec runs statements and fails the test on an error.
func Exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := c.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%.300s: %v", sql, err)
		}
	}
}

// Text returns the single value of a query as text, or the error.
func Text(dsn, sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close(ctx) }()
	res, err := c.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return "", err
	}
	last := res[len(res)-1]
	if len(last.Rows) != 1 || len(last.Rows[0]) < 1 {
		return "", fmt.Errorf("%s: %d rows", sql, len(last.Rows))
	}
	return string(last.Rows[0][0]), nil
}

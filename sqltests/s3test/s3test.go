// Package s3test runs a private S3 server for tests: versitygw over a temporary
// directory. It can be killed and started again.
//
// .ci/setup builds the server into the user's cache directory; SKIPPRD_TEST_S3_SERVER
// names another binary of it. Where there is none, Start skips the test and says so.
package s3test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/proc"
)

// What every server takes.
const (
	AccessKeyID     = "skipprd"
	SecretAccessKey = "skipprd-test"
	Region          = "us-east-1"
)

// binaryName is what .ci/setup calls the server, in "skipprd" of the user's cache
// directory. The version is that of .ci/tools/versitygw.mod.
const binaryName = "versitygw-v1.8.0"

// Server is a running S3 server with path-style buckets. Not safe for concurrent use,
// but its clients may be.
type Server struct {
	// Endpoint is its URL. It stays the same over Kill and Restart.
	Endpoint string

	binary, dir string
	port        int
	process     *process
	buckets     atomic.Uint32
}

// Start starts a server that ends with the test, or with the test's process.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, err := find()
	if err != nil {
		t.Skipf("SKIPPED, NO S3 SERVER: %v", err)
	}
	s := &Server{binary: binary, dir: t.TempDir()}
	for range 5 { // somebody may take the port before the server does
		if s.port, err = proc.FreePort(); err != nil {
			t.Fatal(err)
		}
		s.Endpoint = "http://127.0.0.1:" + strconv.Itoa(s.port)
		if err = s.run(); err == nil {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatalf("start s3 server: %v", err)
	return nil
}

// CreateBucket makes an empty bucket.
func (s *Server) CreateBucket(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// Kill ends the server at once (kill -9), also if it is in the middle of requests.
// What it has answered is kept. A server that was killed stays so.
func (s *Server) Kill() {
	if s.process != nil {
		s.process.kill()
		s.process = nil
	}
}

// Restart starts the server again after Kill, on the same port and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatalf("restart s3 server: %v", err)
	}
}

func find() (string, error) {
	if path := os.Getenv("SKIPPRD_TEST_S3_SERVER"); path != "" {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "skipprd", binaryName)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not there: run .ci/setup, or set SKIPPRD_TEST_S3_SERVER", path)
	}
	return path, nil
}

// process is a server under a shell that kills it when its own standard input ends,
// which is when we end in whatever way. Signals to the process group are for the tests.
type process struct {
	pid    int
	stdin  io.Closer
	exited chan struct{}
}

const script = `
trap '' INT TERM HUP
"$@" </dev/null &
echo "PID $! "
cat >/dev/null || true
kill -9 $! 2>/dev/null
wait
`

func (s *Server) run() error {
	const health = "/server-is-up"
	cmd := exec.Command("/bin/sh", "-c", script, "s3test", s.binary,
		"--port", "127.0.0.1:"+strconv.Itoa(s.port), "--access", AccessKeyID, "--secret", SecretAccessKey,
		"--region", Region, "--quiet", "--keep-alive", "--health", health, "posix", s.dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var output proc.Output
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{stdin: stdin, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it ends by a signal
		close(p.exited)
	}()
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if p.pid == 0 {
			if _, rest, ok := strings.Cut(output.String(), "PID "); ok {
				p.pid, _ = strconv.Atoi(strings.SplitN(rest, " ", 2)[0])
			}
		}
		if p.pid != 0 && syscall.Kill(p.pid, 0) != nil {
			break // it has ended
		}
		if answer, err := http.Get(s.Endpoint + health); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK && p.pid != 0 {
				s.process = p
				return nil
			}
		}
	}
	p.kill()
	return fmt.Errorf("it does not answer: %s", output.String())
}

func (p *process) kill() {
	if p.pid != 0 {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended
	}
	_ = p.stdin.Close()
	<-p.exited
}

package death

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Faults are injected into the system calls of a running process until Stop.
type Faults struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

// Inject attaches strace to a process. Each fault is what strace -e inject= takes:
// "fdatasync:error=EIO:when=2+5" fails the second and every fifth further call of each
// thread. Only calls on one of the paths are hit; none means all. Where the machine has
// no strace or forbids it, the test is skipped.
func Inject(t testing.TB, pid int, paths []string, faults ...string) *Faults {
	t.Helper()
	program, err := exec.LookPath("strace")
	if err != nil {
		Skip(t, "there is no strace")
	}
	f := &Faults{log: filepath.Join(t.TempDir(), "strace"), done: make(chan error, 1)}
	args := []string{"-f", "-o", f.log, "-p", strconv.Itoa(pid)}
	for _, p := range paths {
		args = append(args, "-P", p)
	}
	for _, fault := range faults {
		args = append(args, "-e", "inject="+fault)
	}
	f.cmd = exec.Command(program, args...)
	var said bytes.Buffer
	f.cmd.Stderr = &said
	if err := f.cmd.Start(); err != nil {
		Skip(t, fmt.Sprintf("strace does not run: %v", err))
	}
	go func() { f.done <- f.cmd.Wait() }()
	if !f.attached(pid) {
		f.Stop()
		Skip(t, fmt.Sprintf("strace may not attach: %.200s", said.String()))
	}
	t.Cleanup(func() { f.Stop() })
	return f
}

// attached waits until the process is traced.
func (f *Faults) attached(pid int) bool {
	tracer := fmt.Appendf(nil, "TracerPid:\t%d\n", f.cmd.Process.Pid)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && bytes.Contains(b, tracer) {
			return true
		}
	}
	return false
}

// Hits is how many calls were tampered with so far.
func (f *Faults) Hits() int {
	b, err := os.ReadFile(f.log)
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("(INJECTED)")) + bytes.Count(b, []byte("(DELAYED)"))
}

// Stop detaches and returns the number of hits. The process goes on.
func (f *Faults) Stop() int {
	if f.done == nil {
		return f.Hits()
	}
	_ = f.cmd.Process.Signal(syscall.SIGTERM) // it may have ended with the process
	select {
	case <-f.done:
	case <-time.After(time.Minute):
		_ = f.cmd.Process.Kill() // the kernel detaches
		<-f.done
	}
	f.done = nil
	return f.Hits()
}

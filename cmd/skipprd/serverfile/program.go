package serverfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/copying"
	"github.com/skipprd/skipprd/wal/env"
)

const (
	// programDelay is how long a program's children may hold its pipes when it has ended.
	programDelay = 5 * time.Second
	// complaintBytesMax is how much of what a program complains of is kept for the log.
	complaintBytesMax = 8 << 10
)

// Run implements copying.Files: the shell runs the command, in a group of processes that ends
// with ctx.
func (f *Files) Run(ctx context.Context, command string, reads bool) (copying.Program, error) {
	if err := f.permitted(true); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = "/", environment(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = programDelay
	p := &program{cmd: cmd, command: command, log: f.log}
	cmd.Stderr = &p.complaints
	var err error
	if reads {
		p.in, err = cmd.StdinPipe()
	} else {
		p.out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fileError(err, "could not execute command \"%s\"", command)
	}
	p.unwatch = context.AfterFunc(ctx, p.closePipe)
	return p, nil
}

// environment is what a program gets of the server's: nothing that may be a setting or a secret.
func environment(all []string) []string {
	return slices.DeleteFunc(all, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR":
			return false
		}
		return !strings.HasPrefix(name, "LC_")
	})
}

// program is a program that COPY reads from, or writes to.
type program struct {
	cmd        *exec.Cmd
	command    string
	in         io.WriteCloser // one of the two
	out        io.ReadCloser
	ended      bool // out
	unwatch    func() bool
	complaints complaints
	log        *slog.Logger
}

// closePipe has nobody wait for a program: its children may have left its group, and hold the pipe.
func (p *program) closePipe() {
	if p.in != nil {
		_ = p.in.Close() // how it ends tells more
	} else {
		_ = p.out.Close()
	}
}

// Read implements copying.Program.
func (p *program) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if err == io.EOF {
		p.ended = true
	} else if err != nil {
		err = fileError(err, "could not read from COPY program")
	}
	return n, err
}

// Write implements copying.Program.
func (p *program) Write(b []byte) (int, error) {
	n, err := p.in.Write(b)
	if errors.Is(err, syscall.EPIPE) { // why it ended says more
		if failed := p.Close(); failed != nil {
			return n, failed
		}
	}
	if err != nil {
		return n, fileError(err, "could not write to COPY program")
	}
	return n, nil
}

// Kill implements copying.Program.
func (p *program) Kill() {
	if p.cmd.ProcessState != nil { // it is gone, and its number may be another's
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	p.unwatch()
	p.closePipe()
	_ = p.cmd.Wait() // who kills it knows why
}

// Close implements copying.Program.
func (p *program) Close() error {
	p.unwatch()
	p.closePipe()
	err := p.cmd.Wait()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it went well, and left a child behind
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fileError(err, "could not close pipe to external command")
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && brokenPipe(status) && p.out != nil && !p.ended {
		return nil // nobody read on
	}
	p.log.Warn("program of COPY failed", "status", exit.String(), "stderr", p.complaints.String(), env.KeyError, err)
	return pgerr.New("38000", "program \"%s\" failed", p.command).WithDetail("%s", ending(status))
}

// brokenPipe says whether a process, or one that a shell waited for, ended since nobody reads what
// it writes.
func brokenPipe(status syscall.WaitStatus) bool {
	const signaled = 128 // and the signal, as shells tell it
	return status.Signaled() && status.Signal() == syscall.SIGPIPE || status.ExitStatus() == signaled+int(syscall.SIGPIPE)
}

// ending is how a process ended, in PostgreSQL's words.
func ending(status syscall.WaitStatus) string {
	switch code := status.ExitStatus(); {
	case status.Signaled():
		name := status.Signal().String()
		return fmt.Sprintf("child process was terminated by signal %d: %s", status.Signal(), strings.ToUpper(name[:1])+name[1:])
	case code == 127:
		return "command not found"
	case code == 126:
		return "command not executable"
	default:
		return fmt.Sprintf("child process exited with exit code %d", code)
	}
}

// complaints are the first bytes of what a program complains of.
type complaints struct{ strings.Builder }

// Write implements io.Writer.
func (c *complaints) Write(b []byte) (int, error) {
	c.Builder.Write(b[:min(len(b), complaintBytesMax-min(c.Len(), complaintBytesMax))])
	return len(b), nil
}

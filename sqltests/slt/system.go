package slt

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// system runs a shell command, where that is allowed.
func (s *run) system(ctx context.Context, rec *Record) error {
	if !s.cfg.System {
		return &restError{fmt.Sprintf("%s:%d: system is not allowed", rec.File, rec.Line)}
	}
	s.shared.ran()
	command, err := s.special(rec.SQL)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		if err = s.shell(ctx, rec, command); err == nil || try >= rec.RetryCount {
			return s.settle(rec, err)
		}
		if err := s.cfg.Sleep(ctx, rec.RetryDelay); err != nil {
			return err
		}
	}
}

// special replaces $__TEST_DIR__ and its like in a command. All else is the shell's,
// which has the variables in its environment.
func (s *run) special(command string) (string, error) {
	for _, name := range []string{"__TEST_DIR__", "__NOW__", "__DATABASE__"} {
		if !s.subst || !strings.Contains(command, name) {
			continue
		}
		value, _, err := s.lookup(name)
		if err != nil {
			return "", err
		}
		command = strings.NewReplacer("$"+name, value, "${"+name+"}", value).Replace(command)
	}
	return command, nil
}

// shell runs a command and holds its output against what is expected. A command that
// ends in & is not waited for.
func (s *run) shell(ctx context.Context, rec *Record, command string) error {
	shell := "bash" // as sqllogictest-rs
	if _, err := exec.LookPath(shell); err != nil {
		shell = "sh"
	}
	cmd := exec.CommandContext(ctx, shell, "-c", command)
	cmd.Env = os.Environ()
	for name, value := range s.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if strings.HasSuffix(strings.TrimSpace(command), "&") {
		return cmd.Run()
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("system: %w: %s%s", err, text, stderr.String())
	}
	if !rec.Checked {
		return nil
	}
	want, got := trimmed(rec.Expected), strings.Split(strings.TrimSpace(string(text)), "\n")
	if sameLines(want, got, false) {
		return nil
	}
	return difference(want, got).over(rec.block, got)
}

// trimmed leaves out blank lines at both ends.
func trimmed(lines []string) []string {
	return strings.Split(strings.TrimSpace(strings.Join(lines, "\n")), "\n")
}

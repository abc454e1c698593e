package duckdb

import (
	"os/exec"
	"syscall"
)

// tieToParent has the kernel kill the child when the thread that starts it ends.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

package death

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// LimitMemory puts a process into a memory group of its own with a limit in bytes, at
// which the kernel kills it. Where the machine does not allow it, the test is skipped.
func LimitMemory(t testing.TB, pid int, bytes int64) {
	t.Helper()
	root, files := "/sys/fs/cgroup/memory", []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}
	if b, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); err == nil && strings.Contains(string(b), "memory") {
		root, files = "/sys/fs/cgroup", []string{"memory.max", "memory.swap.max"}
	}
	dir := filepath.Join(root, fmt.Sprintf("skipprd-deaths-%d-%d", os.Getpid(), pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		Skip(t, fmt.Sprintf("no memory group can be made: %v", err))
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // empty by then
	err := os.WriteFile(filepath.Join(dir, files[0]), []byte(strconv.FormatInt(bytes, 10)), 0o644)
	if err == nil {
		_ = os.WriteFile(filepath.Join(dir, files[1]), []byte(strconv.FormatInt(bytes, 10)), 0o644) // there may be no swap
		err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
	}
	if err != nil {
		Skip(t, fmt.Sprintf("no memory group can be used: %v", err))
	}
}

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, which is 100 on every Linux that Go supports.
const ticksPerSecond = 100

// CPUSeconds is the user and system time of a process, its threads and its living
// children, since it began.
func CPUSeconds(pid int) (float64, error) {
	total := 0.0
	for _, p := range append([]int{pid}, Children(pid)...) {
		f, err := statFields(p)
		if err != nil {
			if p == pid {
				return 0, err
			}
			continue // a child that ended
		}
		// Fields 14 and 15 of proc(5), counted from 1; f starts at field 3.
		for _, i := range []int{11, 12} {
			ticks, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return 0, fmt.Errorf("read cpu time of %d: %w", p, err)
			}
			total += ticks / ticksPerSecond
		}
	}
	return total, nil
}

func statFields(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The second field is the name in parentheses, which may hold spaces.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return nil, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(f))
	}
	return f, nil
}

// Children are the processes whose parent is pid, and theirs.
func Children(pid int) []int {
	var out []int
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, l := range lists {
		b, err := os.ReadFile(l)
		if err != nil {
			continue
		}
		for _, w := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(w); err == nil {
				out = append(append(out, n), Children(n)...)
			}
		}
	}
	return out
}

// group are the processes of a process group that have not ended, the dead among them that
// nobody has waited for not counted.
func group(id int) (out []int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		// The first field that statFields returns is the state, the third the group.
		if f, err := statFields(pid); err == nil && f[2] == strconv.Itoa(id) && f[0] != "Z" && f[0] != "X" {
			out = append(out, pid)
		}
	}
	return out
}

// PeakBytes is the sum of the largest resident sizes of a process and its children.
func PeakBytes(pid int) int64 {
	var total int64
	for _, p := range append([]int{pid}, Children(pid)...) {
		total += OwnPeakBytes(p)
	}
	return total
}

// OwnPeakBytes is the largest resident size of a process alone, 0 when it is gone.
func OwnPeakBytes(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

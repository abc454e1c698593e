package death

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Clock is the wall clock of one process, which can be moved without touching the
// machine's: the page that the kernel lends every process for reading the time is
// replaced, in that process, by code that adds an offset. Its monotonic clock stays.
type Clock struct {
	pid  int
	slot int64 // address of the offset, seconds
}

// NewClock takes over the wall clock of a running process; where the machine does not
// allow it, the test is skipped.
func NewClock(t testing.TB, pid int) *Clock {
	t.Helper()
	c, err := takeClock(pid)
	if err != nil {
		Skip(t, fmt.Sprintf("the clock of a process cannot be taken over: %v", err))
	}
	return c
}

// Move sets the wall clock ahead of the machine's by a number of seconds, or behind it.
func (c *Clock) Move(by time.Duration) error {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.pid), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("move clock: %w", err)
	}
	defer mem.Close()
	b := binary.LittleEndian.AppendUint64(nil, uint64(int64(by/time.Second)))
	if _, err := mem.WriteAt(b, c.slot); err != nil {
		return fmt.Errorf("move clock: %w", err)
	}
	return nil
}

// The replacements of the functions that tell the wall clock: the system call, then the
// offset added to the seconds if it was the wall clock that was asked for. The four
// bytes before the last two instructions are the distance to the offset.
var (
	// clock_gettime(edi: clock, rsi: time); the offset's slot follows at byte 24.
	clockGettime = []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 0x0a, // jne ret
		0x48, 0x8b, 0x0d, 6, 0, 0, 0, // mov rcx, [rip+6]
		0x48, 0x01, 0x0e, // add [rsi], rcx
		0xc3, 0x90, 0x90, // ret
		0, 0, 0, 0, 0, 0, 0, 0,
	}
	// gettimeofday(rdi: time or 0, rsi: zone).
	gettimeofday = []byte{
		0xb8, 0x60, 0, 0, 0, // mov eax, 96
		0x0f, 0x05, // syscall
		0x48, 0x85, 0xff, // test rdi, rdi
		0x74, 0x0a, // je ret
		0x48, 0x8b, 0x0d, 0, 0, 0, 0, // mov rcx, [rip+…]
		0x48, 0x01, 0x0f, // add [rdi], rcx
		0xc3, // ret
	}
)

const (
	slotOffset         = 24
	gettimeofdayLoad   = 15 // the distance in gettimeofday
	gettimeofdayOrigin = 19 // what it counts from
)

var errBusyClock = errors.New("a thread is reading the clock")

func takeClock(pid int) (*Clock, error) {
	base, image, err := readVDSO(pid)
	if err != nil {
		return nil, err
	}
	symbols, err := vdsoSymbols(image)
	if err != nil {
		return nil, err
	}
	get, day := symbols["__vdso_clock_gettime"], symbols["__vdso_gettimeofday"]
	if int(get.Size) < len(clockGettime) || int(day.Size) < len(gettimeofday) {
		return nil, fmt.Errorf("clock functions of %d and %d bytes leave no room", get.Size, day.Size)
	}
	slot := base + int64(get.Value) + slotOffset
	dayCode := bytes.Clone(gettimeofday)
	distance := slot - (base + int64(day.Value) + gettimeofdayOrigin)
	binary.LittleEndian.PutUint32(dayCode[gettimeofdayLoad:], uint32(int32(distance)))
	for range 200 {
		err = whileStopped(pid, func(threads []int) error {
			for _, tid := range threads {
				var regs syscall.PtraceRegs
				if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
					return err
				}
				if at := int64(regs.Rip); at >= base && at < base+int64(len(image)) {
					return errBusyClock
				}
			}
			_, err := syscall.PtracePokeText(pid, uintptr(base+int64(get.Value)), clockGettime)
			if err == nil {
				_, err = syscall.PtracePokeText(pid, uintptr(base+int64(day.Value)), dayCode)
			}
			return err
		})
		if !errors.Is(err, errBusyClock) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		return nil, err
	}
	return &Clock{pid: pid, slot: slot}, nil
}

// readVDSO returns where the kernel's page of functions lies in a process, and its bytes.
func readVDSO(pid int) (base int64, image []byte, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, nil, err
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if !strings.HasSuffix(line, "[vdso]") {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil || to-from > 1<<20 {
			return 0, nil, fmt.Errorf("no place in %q: %w", line, err)
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			return 0, nil, err
		}
		defer mem.Close()
		image = make([]byte, to-from)
		_, err = mem.ReadAt(image, from)
		return from, image, err
	}
	return 0, nil, errors.New("the process has no vdso")
}

func vdsoSymbols(image []byte) (map[string]elf.Symbol, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("read vdso: %w", err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("read vdso: %w", err)
	}
	out := map[string]elf.Symbol{}
	for _, s := range symbols {
		out[s.Name] = s
	}
	return out, nil
}

// whileStopped runs f with every thread of a process stopped under ptrace.
func whileStopped(pid int, f func(threads []int) error) error {
	runtime.LockOSThread() // ptrace obeys the thread that attached
	defer runtime.UnlockOSThread()
	var threads []int
	defer func() {
		for _, tid := range threads {
			_ = syscall.PtraceDetach(tid) // gone is as good
		}
	}()
	seen := map[int]bool{}
	for more := true; more; {
		more = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || seen[tid] {
				continue
			}
			seen[tid], more = true, true
			if err := syscall.PtraceAttach(tid); err != nil {
				return fmt.Errorf("attach to thread %d: %w", tid, err)
			}
			threads = append(threads, tid)
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(tid, &status, syscall.WALL, nil); err != nil {
				return fmt.Errorf("wait for thread %d: %w", tid, err)
			}
		}
	}
	return f(threads)
}

package death

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// clockOf names, to a run of this executable as a helper, the process whose clock it
// takes over. That is done by a process of its own, because to the waits of the one that
// started the server every stop under ptrace would look like its end.
const clockOf = "SKIPPRD_DEATH_CLOCK_OF"

// NewClock takes over the wall clock of a running process; where the machine does not
// allow it, the test is skipped.
func NewClock(t testing.TB, pid int) *Clock {
	t.Helper()
	executable, err := os.Executable()
	must(t, err)
	helper := exec.Command(executable)
	helper.Env = append(os.Environ(), clockOf+"="+strconv.Itoa(pid))
	out, err := helper.CombinedOutput()
	c := &Clock{pid: pid}
	if err == nil {
		_, err = fmt.Sscanf(string(out), "slot %d\n", &c.slot)
	}
	if err != nil {
		Skip(t, fmt.Sprintf("the clock of a process cannot be taken over: %v: %.300s", err, out))
	}
	return c
}

// Helper does what this process was started for if it is a helper of a test, and says
// whether it was. TestMain calls it first.
func Helper() (was bool, code int) {
	text, was := os.LookupEnv(clockOf)
	if !was {
		return false, 0
	}
	pid, err := strconv.Atoi(text)
	if err == nil {
		var slot int64
		if slot, err = takeClock(pid); err == nil {
			fmt.Printf("slot %d\n", slot)
			return true, 0
		}
	}
	fmt.Println(err)
	return true, 1
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

// takeClock returns the address of the offset.
func takeClock(pid int) (slot int64, err error) {
	base, image, err := readVDSO(pid)
	if err != nil {
		return 0, err
	}
	symbols, err := vdsoSymbols(image)
	if err != nil {
		return 0, err
	}
	get, day := symbols["__vdso_clock_gettime"], symbols["__vdso_gettimeofday"]
	if int(get.Size) < len(clockGettime) || int(day.Size) < len(gettimeofday) {
		return 0, fmt.Errorf("clock functions of %d and %d bytes leave no room", get.Size, day.Size)
	}
	slot = base + int64(get.Value) + slotOffset
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
		return 0, err
	}
	return slot, nil
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

// Requests of ptrace(2) that the syscall package has no functions for.
const (
	ptraceDetach    = 17
	ptraceSeize     = 0x4206
	ptraceInterrupt = 0x4207
	stopLimit       = time.Minute
)

func ptrace(request, tid int, data uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// whileStopped runs f with every thread of a process stopped under ptrace. A signal that
// a thread was about to take, it takes afterwards.
func whileStopped(pid int, f func(threads []int) error) error {
	runtime.LockOSThread() // ptrace obeys the thread that attached
	defer runtime.UnlockOSThread()
	var threads []int
	pending := map[int]uintptr{}
	defer func() {
		for _, tid := range threads {
			_ = ptrace(ptraceDetach, tid, pending[tid]) // gone is as good
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
			signal, err := stopThread(tid)
			if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ECHILD) {
				continue // it has ended
			}
			if err != nil {
				return fmt.Errorf("stop thread %d: %w", tid, err)
			}
			threads, pending[tid] = append(threads, tid), signal
		}
	}
	return f(threads)
}

// stopThread attaches to a thread and waits until it stands. It returns the signal that
// the thread was about to take, 0 for none.
func stopThread(tid int) (signal uintptr, err error) {
	if err := ptrace(ptraceSeize, tid, 0); err != nil {
		return 0, err
	}
	if err := ptrace(ptraceInterrupt, tid, 0); err != nil {
		return 0, err
	}
	for deadline := time.Now().Add(stopLimit); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(tid, &status, syscall.WALL|syscall.WNOHANG, nil)
		switch {
		case err != nil:
			return 0, err
		case got != tid:
			continue
		case !status.Stopped():
			return 0, syscall.ESRCH
		case uint32(status)>>16 != 0: // the stop that was asked for
			return 0, nil
		}
		return uintptr(status.StopSignal()), nil
	}
	return 0, errors.New("it does not stop")
}

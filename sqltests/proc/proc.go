// Package proc holds what tests need to run another program: a port for it to listen on
// and a buffer for what it prints. It imports nothing of ours, so tests of any layer may
// use it.
package proc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// The ports that FreePort gives out lie below those that the system gives to connections: a
// server that is down for a while finds its port free when it starts again.
const (
	portLowest = 2_000
	portEnd    = 32_000
	portCount  = 20_000
)

var portsAsked atomic.Uint32

// ports are the first port to give out, and how many there are.
func ports() (first, count uint32) {
	end := portEnd
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		var low int
		if _, err := fmt.Sscan(string(text), &low); err == nil && low > 2*portLowest {
			end = min(end, low)
		}
	}
	start := max(portLowest, end-portCount)
	return uint32(start), uint32(end - start)
}

// FreePort finds a TCP port on loopback that nobody listens on now, and that no other call of
// it, in this process or another, gives out while this process lives.
func FreePort() (int, error) {
	dir := filepath.Join(os.TempDir(), "skipprd-test-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	var last error
	first, count := ports()
	for range count {
		n := uint32(os.Getpid())*7919 + portsAsked.Add(1)*2654435761>>8
		port := int(first + n%count)
		if last = reserve(filepath.Join(dir, strconv.Itoa(port)), port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// reserve locks the file that stands for a port, for as long as the process lives, if nobody
// listens on the port.
func reserve(name string, port int) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			err = l.Close()
		}
	}
	if err != nil {
		_ = f.Close() // the lock goes with it
		return err
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.files = append(reserved.files, f)
	return nil
}

// reserved keeps the locks.
var reserved struct {
	sync.Mutex
	files []*os.File
}

// Output is a buffer that one writes while another looks. Safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

package duckdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// connector makes connections to a worker.
type connector interface {
	dial(ctx context.Context) (net.Conn, error)
}

// socketPathMax is what the kernel takes in a unix address, with its final zero.
const socketPathMax = 107

type socket struct{ path string }

func (s socket) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", s.path)
}

// socketName is a worker's socket in its directory.
const socketName = "engine.sock"

// removeLeftSockets removes from base the directories of sockets that nobody listens to
// any more: those of servers that were killed. Another user's are let alone.
func removeLeftSockets(base string) {
	left, _ := filepath.Glob(filepath.Join(base, "skipprd-*", socketName)) // the pattern is well formed
	for _, path := range left {
		conn, err := net.Dial("unix", path)
		if err == nil {
			_ = conn.Close()
			continue
		}
		if errors.Is(err, syscall.ECONNREFUSED) && os.Remove(path) == nil {
			_ = os.Remove(filepath.Dir(path)) // fails when something else is in it
		}
	}
}

// socketDir makes a private directory whose path leaves room for the socket's name.
func socketDir() (string, error) {
	for _, base := range []string{os.TempDir(), "/tmp"} {
		dir, err := os.MkdirTemp(base, "skipprd-") // 0700
		if err != nil {
			return "", fmt.Errorf("directory of the worker's socket: %w", err)
		}
		if len(filepath.Join(dir, socketName)) <= socketPathMax {
			return dir, nil
		}
		_ = os.Remove(dir)
	}
	return "", errors.New("no temporary directory with a short path")
}

// pipeListener is a listener over net.Pipe.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept is net.Listener's.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is net.Listener's.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is net.Listener's.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

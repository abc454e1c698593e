package pgwire

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerGone asks the kernel, without reading, whether the client closed or reset the
// connection.
func peerGone(c net.Conn) (gone bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	err = rc.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n == 1 && p[0].Revents&(unix.POLLRDHUP|unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone || err != nil
}

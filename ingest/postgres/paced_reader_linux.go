package postgres

import "syscall"

// setWakeBytes sets how many bytes must have arrived before the socket counts as
// readable. A read that is tried takes what is there all the same.
func setWakeBytes(socket syscall.RawConn, n int) {
	if socket == nil {
		return
	}
	// Only speed depends on it.
	_ = socket.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n)
	})
}

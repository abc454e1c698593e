//go:build !linux

package postgres

import "syscall"

// setWakeBytes does nothing: only Linux lets sleepers sleep.
func setWakeBytes(syscall.RawConn, int) {}

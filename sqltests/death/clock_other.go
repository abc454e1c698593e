//go:build !linux || !amd64

package death

import (
	"errors"
	"testing"
	"time"
)

// Clock is the wall clock of one process.
type Clock struct{}

// NewClock skips the test: taking over a clock is machine code, of amd64 so far.
func NewClock(t testing.TB, _ int) *Clock {
	t.Helper()
	Skip(t, "the clock of a process can be taken over on amd64 Linux only")
	return nil
}

// Move is never reached.
func (c *Clock) Move(time.Duration) error { return errors.ErrUnsupported }

// Helper says that this process is no helper of a test.
func Helper() (was bool, code int) { return false, 0 }

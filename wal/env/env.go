// Package env is the injected world: clock, ids, randomness, the one background
// loop, the closed enum of failpoints. Nothing outside this package, the store
// implementations and cmd reads the time, draws entropy or starts a timer.
package env

import (
	"context"
	"time"
)

// Clock is the only source of time. Implementations are safe for concurrent use.
type Clock interface {
	// Now is the wall clock. It may jump; never use it for safety.
	Now() time.Time
	// Since is monotonic where the platform allows it.
	Since(t time.Time) time.Duration
	// Sleep waits for d or until ctx ends, whose cause it returns.
	Sleep(ctx context.Context, d time.Duration) error
	// Timer fires once after d on the returned channel; stop releases it.
	Timer(d time.Duration) (fired <-chan time.Time, stop func())
}

// IDs is the only source of identities and entropy. Safe for concurrent use.
type IDs interface {
	// UUID returns a random version 4 UUID.
	UUID() [16]byte
	// Uint64 returns a uniformly random number.
	Uint64() uint64
	// Read fills b with cryptographically secure random bytes.
	Read(b []byte)
}

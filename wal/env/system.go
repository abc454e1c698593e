package env

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"
)

// System returns the real world: the machine's clock and its secure entropy.
func System() (Clock, IDs) { return systemClock{}, systemIDs{} }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Since(t time.Time) time.Duration { return time.Since(t) }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func (systemClock) Timer(d time.Duration) (fired <-chan time.Time, stop func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

type systemIDs struct{}

func (s systemIDs) UUID() [16]byte {
	var id [16]byte
	s.Read(id[:])
	setVersion4(&id)
	return id
}

func (s systemIDs) Uint64() uint64 {
	var b [8]byte
	s.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Read cannot fail: crypto/rand ends the process when the system has no entropy.
func (systemIDs) Read(b []byte) { _, _ = rand.Read(b) }

// setVersion4 turns 16 random bytes into a random UUID (RFC 9562, variant 10).
func setVersion4(id *[16]byte) {
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
}

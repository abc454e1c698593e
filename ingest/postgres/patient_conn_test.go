package postgres

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// TestPatientConn: a read of a silent connection ends by itself, or sooner when its user
// says so; one that is answered does not, however long the connection rested before.
func TestPatientConn(t *testing.T) {
	clock, _ := env.System()
	dial := func(limit time.Duration) (near *patientConn, far net.Conn) {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		return &patientConn{Conn: a, clock: clock, limit: limit}, b
	}
	buf := make([]byte, 8)
	for name, set := range map[string]func(*patientConn) error{
		"its own limit":         func(*patientConn) error { return nil },
		"limit after a reset":   func(c *patientConn) error { return c.SetDeadline(time.Time{}) },
		"limit below a far one": func(c *patientConn) error { return c.SetDeadline(clock.Now().Add(time.Hour)) },
	} {
		c, _ := dial(10 * time.Millisecond)
		if err := set(c); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, far := dial(time.Hour)
	read := make(chan error)
	go func() { _, err := c.Read(buf); read <- err }()
	if err := c.SetDeadline(clock.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("canceled: %v", err)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = far.Write([]byte("x")) }()
	if n, err := c.Read(buf); n != 1 || err != nil {
		t.Errorf("answered: %d, %v", n, err)
	}
}

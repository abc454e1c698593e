package proc_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/skipprd/skipprd/sqltests/proc"
)

// TestFreePort: each call gives another port, on which one can listen, again and again.
func TestFreePort(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := proc.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d is given out twice", port)
		}
		seen[port] = true
		for range 2 {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

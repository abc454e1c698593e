package digit_test

import (
	"strconv"
	"testing"

	"github.com/skipprd/skipprd/pgwire/digit"
)

// TestDigits: every byte is read as strconv reads it.
func TestDigits(t *testing.T) {
	for c := range 256 {
		for base, read := range map[int]func(byte) int{16: digit.Hex, 8: digit.Octal} {
			want := -1
			if n, err := strconv.ParseUint(string([]byte{byte(c)}), base, 8); err == nil {
				want = int(n)
			}
			if got := read(byte(c)); got != want {
				t.Errorf("byte %d in base %d: %d, want %d", c, base, got, want)
			}
		}
	}
}

package generate

import (
	"testing"

	"github.com/skipprd/skipprd/wal/change"
)

// A generator's options, chunks and positions are read or refused, whatever they are.
func FuzzTexts(f *testing.F) {
	f.Add("SCALE", "10")
	f.Add("RATE", "1e3")
	f.Add("SEED", "-1")
	f.Add("0:100", "7")
	f.Fuzz(func(t *testing.T, name, value string) {
		if c, err := ParseConfig(map[string]string{name: value}); err == nil {
			if c.Products() < 1 || c.Accounts() < 1 || c.Customers < 0 || c.Orders < 0 {
				t.Errorf("%s=%s is %+v", name, value, c)
			}
		}
		_, _, _ = parseChunk(name)
		if n, err := parsePosition(change.Position(value)); err == nil {
			if back, err := parsePosition(position(n)); err != nil || back != n {
				t.Errorf("position %q is %d, which is written as %q", value, n, position(n))
			}
		}
	})
}

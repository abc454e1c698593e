package encode

import "testing"

// Both ways must agree, and daysFromCivil undo them, over the whole range of the fast
// one and beyond it.
func TestCivil(t *testing.T) {
	for days := int64(-13_000_000); days < 13_000_000; days += 97 {
		y, m, d := civil(days)
		if y2, m2, d2 := slowCivil(days); y != y2 || m != m2 || d != d2 {
			t.Fatalf("%d: %d-%d-%d, slowly %d-%d-%d", days, y, m, d, y2, m2, d2)
		}
		if back := daysFromCivil(y, m, d); back != days {
			t.Fatalf("%d: %d-%d-%d is day %d", days, y, m, d, back)
		}
	}
	for days := int64(-1000); days < 40000; days++ {
		y, m, d := civil(days)
		if y2, m2, d2 := slowCivil(days); y != y2 || m != m2 || d != d2 {
			t.Fatalf("%d: %d-%d-%d, slowly %d-%d-%d", days, y, m, d, y2, m2, d2)
		}
	}
}

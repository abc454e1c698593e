package sim

import (
	"testing"
	"time"
)

// The clock's times are those that it is told, and are compared by their monotonic readings.
func TestWithMonotonic(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	a, b := withMonotonic(at, time.Second), withMonotonic(at.Add(-time.Hour), 3*time.Second)
	if !a.Round(0).Equal(at) || a.Nanosecond() != 789 || a.Unix() != at.Unix() {
		t.Errorf("%v became %v", at, a)
	}
	if d := b.Sub(a); d != 2*time.Second || !a.Before(b) {
		t.Errorf("differ by %v", d)
	}
	if d := b.Round(0).Sub(a); d != -time.Hour {
		t.Errorf("without readings they differ by %v", d)
	}
}

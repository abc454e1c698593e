package ingest

import (
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal/env"
)

// What the source keeps grows by what was seen over the last minutes, however often it
// was asked, and a forecast is made only where there is a limit and growth.
func TestGrowth(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var g growth
	if g.perSecond() != 0 {
		t.Fatal("grows before anything is known")
	}
	for i := range 1000 { // 100 a second, then, for over five minutes, 7
		value := int64(100 * i)
		if i > 500 {
			value = 50_000 + int64(7*(i-500))
		}
		g.add(at.Add(time.Duration(i)*time.Second), value)
		if got := g.perSecond(); i > 20 && i <= 500 && got != 100 {
			t.Fatalf("after %d s: %v", i, got)
		}
	}
	if got := g.perSecond(); got != 7 {
		t.Fatalf("in the end: %v", got)
	}
}

func TestForecast(t *testing.T) {
	fake := env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	for _, c := range []struct {
		grows   int64
		limited bool
		safe    int64
		want    float64
	}{{10, true, 5000, 500}, {10, true, -3, 0}, {10, false, 5000, -1}, {0, true, 5000, -1}, {-10, true, 5000, -1}} {
		l := newLive(fake)
		for i := range int64(5) {
			l.source(SourceStatus{RetainedBytes: 1000 + i*10*c.grows, Limited: c.limited, SafeBytes: c.safe, Warning: "look"})
			fake.Advance(10 * time.Second)
		}
		var st PipelineStatus
		l.fill(&st)
		if st.SecondsToLoss != c.want || st.Reason != "look" {
			t.Errorf("%+v: %v s, %q", c, st.SecondsToLoss, st.Reason)
		}
	}
}

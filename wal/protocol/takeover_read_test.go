package protocol

import (
	"testing"

	"github.com/skipprd/skipprd/wal/segment"
)

// The markers below the low seq are looked at a window at a time, each of them once, and
// then deleted before the bodies.
func TestSweepWindow(t *testing.T) {
	const low = 8
	x := &Takeover{cfg: TakeoverConfig{Window: 3}, next: 20, markers: map[segment.Seq]bool{}}
	x.checkpoint.Low, x.fence.Epoch = low, 2
	for seq := segment.Seq(1); seq < low; seq++ {
		x.bodies, x.markers[seq] = append(x.bodies, BodyKey{Seq: seq, Epoch: 1}), true
	}
	x.sweep()
	asked := map[segment.Seq]int{}
	for len(x.out) > 0 && len(asked) < 2*low {
		if len(x.out) > 3 {
			t.Fatalf("%d effects at a time", len(x.out))
		}
		e := x.out[0]
		x.out = x.out[1:]
		switch e := e.(type) {
		case ReadMarker:
			asked[e.Seq]++
			m := segment.Marker{Seq: e.Seq, Epoch: 1, Length: segment.HeaderBytes}.Encode()
			x.sweepFound(MarkerRead{Seq: e.Seq, Data: m[:]})
		case DeleteMarkers:
			if len(asked) != low-1 || len(e.Seqs) != low-1 {
				t.Errorf("%d markers deleted after %d were looked at", len(e.Seqs), len(asked))
			}
			x.swept(nil)
		case DeleteBodies:
			if len(e.Bodies) != low-1 {
				t.Errorf("%d bodies deleted", len(e.Bodies))
			}
			x.swept(nil)
		case Recovered:
		default:
			t.Fatalf("%T", e)
		}
	}
	for seq := segment.Seq(1); seq < low; seq++ {
		if asked[seq] != 1 {
			t.Errorf("marker %d was asked for %d times", seq, asked[seq])
		}
	}
	if x.phase != ended {
		t.Error("not ended")
	}
}

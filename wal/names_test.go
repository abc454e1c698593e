package wal

import (
	"testing"

	"github.com/skipprd/skipprd/wal/segment"
)

// A name in the log's directory or store is one that we write, or none of ours.
func FuzzNames(f *testing.F) {
	f.Add("0000000000000001.seg")
	f.Add("00000000000000ff.seg.commit")
	f.Add("0000000000000001-00000002.seg")
	f.Add("spare-3")
	f.Fuzz(func(t *testing.T, name string) {
		for _, suffix := range []string{bodySuffix, markerSuffix} {
			if seq, ok := parseSeq(name, suffix); ok && seq.ID()+suffix != name {
				t.Errorf("%q reads as %v", name, seq)
			}
		}
		if n, ok := parseSpare(name); ok && n < 0 {
			t.Errorf("%q reads as spare %d", name, n)
		}
		if k, ok := parseBodyKey(name); ok {
			r := remote{}
			if got := r.bodyKey(k); got != segmentsKey+name || k.Seq == segment.Seq(0) {
				t.Errorf("%q reads as %+v, which is %q", name, k, got)
			}
		}
	})
}

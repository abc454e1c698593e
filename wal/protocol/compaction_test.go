package protocol

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/wal/segment"
)

// slicesOf reads one letter per slice: b backfill, s streamed, t truncate; upper case
// is due. Each has 10 rows and 100 bytes, and its index as seq.
func slicesOf(text string) []CompactionSlice {
	var out []CompactionSlice
	for i, r := range text {
		s := CompactionSlice{Ref: segment.SliceRef{Seq: segment.Seq(i + 1), Start: 64}, Rows: 10, Bytes: 100}
		low := strings.ToLower(string(r))
		s.Due = low != string(r)
		s.Backfill, s.Truncate = low == "b", low == "t"
		out = append(out, s)
	}
	return out
}

func TestPickCompaction(t *testing.T) {
	lim := CompactionLimits{
		WantBytes: 1000, WantRows: 1000, MostBytes: 350, MostRows: 1e6, MostBackfillBytes: 500,
		MostSlice: 100,
	}
	ready := CompactionState{Ready: true}
	copying := CompactionState{BackfillOpen: true}
	catchup := CompactionState{}
	forced := func(s CompactionState) CompactionState { s.Forced = true; return s }
	for _, c := range []struct {
		name, live string
		state      CompactionState
		want       string // seqs, then shape
	}{
		{"nothing live", "", forced(ready), ""},
		{"not worth while", "sss", ready, ""},
		{"forced", "sss", forced(ready), "1 2 3 from=0"},
		{"one is due", "Sss", ready, "1 2 3 from=0"},
		{"a later one is due", "ssS", ready, "1 2 3 from=0"},
		{"capped by bytes", "Sssss", ready, "1 2 3 from=0"},
		{"bytes are enough", "ssssssssss", ready, "1 2 3 from=0"},
		{"the copy goes first", "sBsb", ready, "2 4 from=0 append"},
		{"the copy is capped by its own limit", "Bbbbbbb", copying, "1 2 3 4 5 from=0 append"},
		{"streamed changes wait for the copy", "SSSS", copying, ""},
		{"even when forced", "ssss", forced(copying), ""},
		{"catching up", "SSSS", catchup, ""},
		{"catching up, forced", "ss", forced(catchup), "1 2 from=0"},
		{"copied rows while catching up", "SBS", catchup, "2 from=0 append"},
		{"truncate", "sstss", forced(ready), "1 2 3 4 5 from=2 replace"},
		{"the last truncate counts", "tstsT", ready, "1 2 3 4 5 from=4 replace"},
		{"what was truncated away is not counted", "sssssssstsS", ready, "1 2 3 4 5 6 7 8 9 10 11 from=8 replace"},
		{"the cap counts from the truncate on", "ssTssssss", ready, "1 2 3 4 5 from=2 replace"},
		{"a truncate waits for the copy's rows", "btb", forced(ready), "1 3 from=0 append"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pick, ok := PickCompaction(slicesOf(c.live), c.state, lim)
			got := ""
			if ok {
				for _, r := range pick.Refs {
					got += fmt.Sprintf("%d ", r.Seq)
				}
				got += fmt.Sprintf("from=%d", pick.From)
				if pick.ReplaceAll {
					got += " replace"
				}
				if pick.AppendOnly {
					got += " append"
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A slice larger than every limit is still taken, alone.
func TestPickCompactionHugeSlice(t *testing.T) {
	live := slicesOf("SS")
	live[0].Bytes, live[0].Rows = 1<<40, 1<<40
	pick, ok := PickCompaction(live, CompactionState{Ready: true}, CompactionLimits{
		MostBytes: 1, MostRows: 1,
		MostSlice: 1,
	})
	if !ok || len(pick.Refs) != 1 {
		t.Errorf("picked %v, %v", pick.Refs, ok)
	}
}

// Whatever is live, picking until nothing is left takes every slice once, every
// streamed slice after every copied one, and streamed ones in order.
func TestPickCompactionDrains(t *testing.T) {
	lim := CompactionLimits{MostBytes: 250, MostRows: 1e6, MostBackfillBytes: 250, MostSlice: 3}
	letters := "bst"
	for n := range 3 * 3 * 3 * 3 * 3 * 3 {
		text := ""
		for v := n; len(text) < 6; v /= 3 {
			text += letters[v%3 : v%3+1]
		}
		live := slicesOf(text)
		var last segment.Seq
		streamed, taken := false, 0
		for len(live) > 0 {
			pick, ok := PickCompaction(live, CompactionState{Ready: true, Forced: true}, lim)
			if !ok || len(pick.Refs) == 0 {
				t.Fatalf("%s: stuck with %d slices", text, len(live))
			}
			if streamed && pick.AppendOnly {
				t.Fatalf("%s: copied rows after streamed ones", text)
			}
			if !pick.AppendOnly {
				streamed = true
				if pick.Refs[0].Seq <= last {
					t.Fatalf("%s: out of order", text)
				}
				last = pick.Refs[len(pick.Refs)-1].Seq
			}
			in := map[segment.SliceRef]bool{}
			for _, r := range pick.Refs {
				in[r] = true
			}
			var left []CompactionSlice
			for _, s := range live {
				if !in[s.Ref] {
					left = append(left, s)
				}
			}
			taken += len(live) - len(left)
			live = left
		}
		if taken != 6 {
			t.Fatalf("%s: took %d slices", text, taken)
		}
	}
}

func TestCompactionID(t *testing.T) {
	refs := []segment.SliceRef{{Seq: 1, Start: 2}, {Seq: 3, Start: 4}}
	id := CompactionID(7, 1, refs)
	if id != CompactionID(7, 1, refs) || len(id) != 32 {
		t.Errorf("id %q is not a function of its slices", id)
	}
	for name, other := range map[string]string{
		"table": CompactionID(8, 1, refs), "generation": CompactionID(7, 2, refs), "slices": CompactionID(7, 1, refs[:1]),
	} {
		if other == id {
			t.Errorf("another %s has the same id", name)
		}
	}
}

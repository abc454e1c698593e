package lake

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skipprd/skipprd/wal/segment"
)

// FormatSlices renders slice refs for a snapshot summary: "seq:start,start;seq:start".
// Refs must be in log order.
func FormatSlices(refs []segment.SliceRef) string {
	var b strings.Builder
	for i, r := range refs {
		switch {
		case i == 0:
			b.WriteString(r.String())
		case refs[i-1].Seq == r.Seq:
			b.WriteByte(',')
			b.WriteString(strconv.FormatUint(uint64(r.Start), 10))
		default:
			b.WriteByte(';')
			b.WriteString(r.String())
		}
	}
	return b.String()
}

// ParseSlices reads what FormatSlices wrote.
func ParseSlices(s string) ([]segment.SliceRef, error) {
	if s == "" {
		return nil, nil
	}
	var refs []segment.SliceRef
	for group := range strings.SplitSeq(s, ";") {
		seqText, starts, ok := strings.Cut(group, ":")
		if !ok {
			return nil, fmt.Errorf("slice refs: group without a colon")
		}
		seq, err := strconv.ParseUint(seqText, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("slice refs: segment: %w", err)
		}
		for start := range strings.SplitSeq(starts, ",") {
			n, err := strconv.ParseUint(start, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("slice refs: start: %w", err)
			}
			refs = append(refs, segment.SliceRef{Seq: segment.Seq(seq), Start: uint32(n)})
		}
	}
	return refs, nil
}

// CommittedOf reads what a snapshot's summary says of the compaction that made it; ok is
// false when none of ours did.
func CommittedOf(snapshot int64, summary map[string]string) (c Committed, ok bool, err error) {
	c = Committed{CompactionID: summary[KeyCompactionID], Snapshot: snapshot}
	if c.CompactionID == "" || summary[KeySlices] == "" {
		return c, false, nil
	}
	if c.Slices, err = ParseSlices(summary[KeySlices]); err != nil {
		return c, false, fmt.Errorf("summary of snapshot %d: %w", snapshot, err)
	}
	generation, err := strconv.ParseUint(summary[KeyGeneration], 10, 32)
	if err != nil {
		return c, false, fmt.Errorf("summary of snapshot %d: generation: %w", snapshot, err)
	}
	c.Generation = uint32(generation)
	return c, true, nil
}

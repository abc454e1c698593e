package check

import (
	"fmt"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// w3 checks "W3 The visible log is a gapless prefix in seq": segments follow each other, but
// for those that were handed to a reclaim, and so do their groups' numbers; a segment that
// had groups does not vanish otherwise, and no seq is used twice.
type w3 struct {
	f *facts
	// writers are the headers that committed segments were seen with.
	headers map[segmentKey]segment.Header
}

func newW3(f *facts) *w3 { return &w3{f, map[segmentKey]segment.Header{}} }

// Label implements Checker.
func (*w3) Label() string { return "W3" }

// Check implements Checker.
func (c *w3) Check(v *View) error {
	for _, h := range v.Hosts {
		if !c.f.logChanged(v, h) {
			continue
		}
		if err := c.log(c.f.logOf(v, h.Name), v.Objects != nil); err != nil {
			return fmt.Errorf("log of host %s: %w", h.Name, err)
		}
		if v.Objects != nil {
			return nil // one log for all
		}
	}
	return nil
}

func (c *w3) log(l *logBytes, shared bool) error {
	var last *segmentBytes
	for _, seq := range l.seqs {
		s := l.segs[seq]
		if !s.committed(shared) || len(s.groups) == 0 {
			continue
		}
		k := segmentKey{s.header.Pipeline, seq}
		had, seen := c.headers[k]
		if seen && had.FirstGroup != s.header.FirstGroup {
			return fmt.Errorf("segment %d begins with group %d, one of that number began with %d", seq, s.header.FirstGroup,
				had.FirstGroup)
		}
		if !seen {
			c.headers[k] = s.header
		}
		if last != nil {
			if err := c.follows(l, last, s); err != nil {
				return err
			}
		}
		last = s
	}
	return nil
}

func (c *w3) follows(l *logBytes, a, b *segmentBytes) error {
	for seq := a.seq + 1; seq < b.seq; seq++ {
		s := l.segs[seq]
		takeover := s != nil && s.marker != nil && s.mark.Flags&segment.Takeover != 0
		if s == nil && !c.gone(b.header.Pipeline, seq) {
			return fmt.Errorf("segment %d is missing between %d and %d", seq, a.seq, b.seq)
		}
		if s == nil || !takeover && s.marker == nil {
			return nil // the numbers of its groups are not known
		}
	}
	if want := a.header.FirstGroup + uint64(len(a.groups)); b.header.FirstGroup != want {
		return fmt.Errorf("segment %d begins with group %d, want %d", b.seq, b.header.FirstGroup, want)
	}
	return nil
}

// gone says whether a segment may be missing.
func (c *w3) gone(pipeline change.PipelineID, seq segment.Seq) bool {
	return c.f.asked[segmentKey{pipeline, seq}] || !c.seen(pipeline, seq)
}

func (c *w3) seen(pipeline change.PipelineID, seq segment.Seq) bool {
	_, ok := c.headers[segmentKey{pipeline, seq}]
	return ok
}

package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/segment"
)

// TestSlicesBefore: which live slices are of before a moment: all that the log had when it
// was not yet taken, copies, and those that begin before it. A TRUNCATE that nothing tells
// the place of is an error.
func TestSlicesBefore(t *testing.T) {
	slice := func(seq int, flags string, low, high int64) catalog.Slice {
		var s catalog.Slice
		s.Ref = segment.SliceRef{Seq: segment.Seq(seq)}
		s.Truncate, s.Backfill = strings.Contains(flags, "truncate"), strings.Contains(flags, "copy")
		if low > 0 {
			s.Rows, s.Counts.MinToken, s.Counts.MaxToken = 1, low, high
		}
		return s
	}
	at := &Moment{Before: 100, Known: segment.SliceRef{Seq: 5}}
	for name, c := range map[string]struct {
		live []catalog.Slice
		want string // seqs, with * for those that are cut
		err  error
	}{
		"known":                         {[]catalog.Slice{slice(3, "", 10, 20), slice(4, "truncate", 0, 0)}, "3 4", nil},
		"before and after":              {[]catalog.Slice{slice(6, "", 90, 99), slice(7, "", 100, 110)}, "6", nil},
		"the moment lies in a slice":    {[]catalog.Slice{slice(6, "", 90, 100), slice(7, "", 120, 130)}, "6*", nil},
		"a copy":                        {[]catalog.Slice{slice(6, "copy", 1, 1)}, "6", nil},
		"truncated before":              {[]catalog.Slice{slice(6, "truncate", 99, 150)}, "6*", nil},
		"truncated about":               {[]catalog.Slice{slice(6, "truncate", 0, 0)}, "", ErrTruncatedSince},
		"truncated, then changed after": {[]catalog.Slice{slice(6, "truncate", 100, 100)}, "", ErrTruncatedSince},
		"nothing":                       {nil, "", nil},
	} {
		before := slices.Clone(c.live)
		got, cut, err := at.slicesBefore(c.live)
		var words []string
		for _, s := range got {
			word := fmt.Sprint(uint64(s.Ref.Seq))
			if cut[s.Ref] {
				word += "*"
			}
			words = append(words, word)
		}
		if !errors.Is(err, c.err) || strings.Join(words, " ") != c.want {
			t.Errorf("%s: %v, %v", name, words, err)
		}
		if !slices.Equal(before, c.live) {
			t.Errorf("%s: the list, which is shared, was changed", name)
		}
	}
}

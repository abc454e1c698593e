package watch_test

import (
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/ingest/watch"
)

// TestForms: a label that was renamed is another text of rows that are here; one that was
// added is not.
func TestForms(t *testing.T) {
	state := watch.Form{Column: 2, ID: "t", Text: "900"}
	labels := []watch.Form{state, {Column: 2, ID: "e1", Text: "open"}, {Column: 2, ID: "e2", Text: "shut"}}
	with := func(more ...watch.Form) []watch.Form { return append(labels[:len(labels):len(labels)], more...) }
	renamed := []watch.Form{state, labels[1], {Column: 2, ID: "e2", Text: "closed"}}
	other := func(column int16, late bool) []watch.Form {
		return []watch.Form{{Column: column, ID: "t", Text: "901"}, {Column: column, ID: "e7", Text: "x", Late: late}}
	}
	for _, c := range []struct {
		name string
		was  []watch.Form // nil: not known
		now  []watch.Form
		copy uint32
		want []int16 // columns reworded
		kept bool    // nothing to do at all
	}{
		{name: "the same", was: labels, now: labels, kept: true},
		{name: "not known", now: labels},
		{name: "renamed", was: labels, now: renamed, want: []int16{2}},
		{name: "renamed while it is copied", was: labels, now: renamed, copy: 10, kept: true},
		{name: "added", was: labels, now: with(watch.Form{Column: 2, ID: "e3", Text: "lost"})},
		{name: "added after the column", was: labels, now: with(watch.Form{Column: 2, ID: "e3", Text: "lost", Late: true})},
		{name: "column of another type", was: labels, now: append(other(2, false), watch.Form{Column: 2, ID: "e3", Text: "lost"}), want: []int16{2}},
		{name: "column dropped", was: labels, now: []watch.Form{}},
		{name: "new column", was: labels, now: with(other(3, false)...)},
		{name: "new column, changed since", was: labels, now: with(other(3, true)...), want: []int16{3}},
		{name: "renamed in a column that is left out", was: with(other(4, false)...), now: with(watch.Form{Column: 4, ID: "t", Text: "1"})},
		{name: "two columns", was: with(other(3, false)...), now: append(renamed, watch.Form{Column: 3, ID: "t", Text: "1"}), want: []int16{2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := watch.Here{ID: 1, OID: 10, Columns: []int16{1, 2, 3}, Copy: c.copy}
			if c.was != nil {
				h.Forms = watch.FormsOf(c.was)
			}
			want := []watch.Action{{Kind: watch.Worded, Table: 1, Forms: watch.FormsOf(c.now)}}
			if c.want != nil {
				want[0].Kind, want[0].Columns = watch.Reworded, c.want
			}
			if c.kept {
				want = nil
			}
			got := watch.Decide([]watch.Here{h}, nil, map[uint32]watch.There{10: {OID: 10, Forms: c.now}})
			if !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

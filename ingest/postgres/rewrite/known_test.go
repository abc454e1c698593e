package rewrite_test

import (
	"reflect"
	"testing"

	"github.com/skipprd/skipprd/ingest/postgres/rewrite"
	"github.com/skipprd/skipprd/ingest/watch"
)

// TestKnown: what a look knows of a column is lost with the first file that is gone.
func TestKnown(t *testing.T) {
	look := func(newest int16, files ...uint32) rewrite.Look { return rewrite.Look{Newest: newest, Files: files} }
	for _, c := range []struct {
		name   string
		before *watch.Files
		looks  []rewrite.Look
		plain  []int16
	}{
		{"one look says nothing of the columns that there are", nil, []rewrite.Look{look(2, 7)}, nil},
		{"a column between two looks", nil, []rewrite.Look{look(2, 7), look(3, 7)}, []int16{3}},
		{"several", nil, []rewrite.Look{look(2, 7), look(4, 7), look(5, 7)}, []int16{3, 4, 5}},
		{"rewritten at the same time", nil, []rewrite.Look{look(2, 7), look(3, 8)}, nil},
		{"rewritten later", nil, []rewrite.Look{look(2, 7), look(3, 7), look(3, 8)}, nil},
		{"rewritten before", nil, []rewrite.Look{look(2, 7), look(2, 8), look(3, 8)}, []int16{3}},
		{"another after a rewrite", nil, []rewrite.Look{look(2, 7), look(3, 7), look(3, 8), look(4, 8)}, []int16{4}},
		{"a partition more", nil, []rewrite.Look{look(2, 7, 9), look(3, 7, 8, 9)}, []int16{3}},
		{"a partition rewritten", nil, []rewrite.Look{look(2, 7, 9), look(3, 7, 10)}, nil},
		{"known from before", &watch.Files{Newest: 2, Files: []uint32{7}}, []rewrite.Look{look(4, 7)}, []int16{3, 4}},
		{"known from before, rewritten since", &watch.Files{Newest: 2, Files: []uint32{7}, Plain: []int16{2}}, []rewrite.Look{look(4, 8)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k rewrite.Known
			var got watch.Files
			for _, l := range c.looks {
				got = k.Add(1, c.before, l)
			}
			if !reflect.DeepEqual(got.Plain, c.plain) {
				t.Errorf("plain %v, want %v", got.Plain, c.plain)
			}
			last := c.looks[len(c.looks)-1]
			for n := range int16(8) {
				want := false
				for _, p := range c.plain {
					want = want || p == n
				}
				if plain := k.Plain(1, last, n); plain != want {
					t.Errorf("column %d: %t", n, plain)
				}
				first := c.looks[0].Newest
				if c.before != nil {
					first = c.before.Newest
				}
				if came := k.Came(1, n); came != (n > first) || k.Came(2, n) {
					t.Errorf("column %d came: %t", n, came)
				}
				if k.Plain(1, look(9, 100), n) {
					t.Errorf("column %d after another rewrite", n)
				}
				if first := last; !k.Plain(1, rewrite.Look{Newest: first.Newest, Files: first.Files, First: true}, n) {
					t.Errorf("column %d of a table that never was rewritten", n)
				}
			}
		})
	}
}

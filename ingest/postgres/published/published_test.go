package published_test

import (
	"testing"

	"github.com/skipprd/skipprd/ingest/postgres/published"
)

func TestFollows(t *testing.T) {
	type all = published.Published
	is := func(oid, altered uint32, members ...uint32) published.Publication {
		return published.Publication{OID: oid, Altered: altered, Members: members}
	}
	moved := func(at uint32) all { return all{{OID: 1, Altered: 10, Members: []uint32{7}, Moved: at}} }
	was := all{is(1, 10, 7, 8)}
	for _, c := range []struct {
		name     string
		was, now all
		want     bool
	}{
		{"as it was", was, all{is(1, 10, 7, 8)}, true},
		{"the table was taken out", was, all{}, false},
		{"out and in again", was, all{is(1, 10, 8, 9)}, false},
		{"in by its schema, too", was, all{is(1, 10, 7, 8, 9)}, true},
		{"altered", was, all{is(1, 11, 7, 8)}, false},
		{"in another schema for a while", moved(3), moved(4), false},
		{"in the same schema", moved(3), moved(3), true},
		{"by its name now, too", moved(3), all{is(1, 10, 7, 9)}, false},
		{"by its schema now, too", all{is(1, 10, 7)}, moved(4), true},
		{"made anew", was, all{is(2, 11, 7, 8)}, false},
		{"by another one, too", was, all{is(1, 10, 7, 8), is(3, 1, 6)}, true},
		{"by one of two", all{is(1, 10, 7), is(3, 1, 6)}, all{is(1, 10, 7)}, false},
		{"with all tables", all{is(1, 10)}, all{is(1, 10)}, true},
		{"by none before", all{}, all{is(1, 10)}, true},
	} {
		read, err := published.Parse(c.was.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := c.now.Follows(read); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if _, err := published.Parse("{"); err == nil {
		t.Error("what is none is read")
	}
}

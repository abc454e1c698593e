package published_test

import (
	"testing"

	"github.com/skipprd/skipprd/ingest/postgres/published"
)

func TestFollows(t *testing.T) {
	type all = published.Published
	is := func(oid, altered, owner uint32, operations string, members ...uint32) published.Publication {
		return published.Publication{OID: oid, Altered: altered, Owner: owner, Operations: operations, Members: members}
	}
	was := all{is(1, 10, 5, "iudt", 7, 8)}
	for _, c := range []struct {
		name     string
		was, now all
		want     bool
	}{
		{"as it was", was, all{is(1, 10, 5, "iudt", 7, 8)}, true},
		{"the table was taken out", was, all{}, false},
		{"out and in again", was, all{is(1, 10, 5, "iudt", 8, 9)}, false},
		{"in by its schema, too", was, all{is(1, 10, 5, "iudt", 7, 8, 9)}, true},
		{"other operations", was, all{is(1, 11, 5, "i", 7, 8)}, false},
		{"other operations and back", was, all{is(1, 12, 5, "iudt", 7, 8)}, false},
		{"another owner", was, all{is(1, 11, 6, "iudt", 7, 8)}, true},
		{"another owner and other operations", was, all{is(1, 11, 6, "i", 7, 8)}, false},
		{"made anew", was, all{is(2, 11, 5, "iudt", 7, 8)}, false},
		{"by another one, too", was, all{is(1, 10, 5, "iudt", 7, 8), is(3, 1, 5, "i", 6)}, true},
		{"by one of two", all{is(1, 10, 5, "iudt", 7), is(3, 1, 5, "i", 6)}, all{is(1, 10, 5, "iudt", 7)}, false},
		{"with all tables", all{is(1, 10, 5, "iudt")}, all{is(1, 10, 5, "iudt")}, true},
		{"by none before", all{}, all{is(1, 10, 5, "iudt")}, true},
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

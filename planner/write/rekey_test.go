package write_test

import (
	"slices"
	"testing"

	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// What a transaction has changed is, once the table has another key, what it was before: of two
// rows with one key of which one was deleted, the other stays.
func TestRekey(t *testing.T) {
	keyless, keyed := table(t), table(t, "id")
	for _, c := range []struct {
		name                 string
		alone, truncate      bool
		from, to             *write.Table
		remove               []string
		refused, writtenAnew bool
		want                 []string
	}{
		{name: "new rows alone", from: keyless, to: keyed, want: []string{"1: 1 a", "1: 2 b"}},
		{name: "new rows lose their key", from: keyed, to: keyless, want: []string{"1: 1 a", "1: 2 b"}},
		{name: "rows deleted that others may have", from: keyless, to: keyed, remove: []string{"1 a"}, refused: true},
		{name: "rows deleted by key", from: keyed, to: keyless, remove: []string{"1 a"}, refused: true},
		{name: "a table of its own", from: keyless, to: keyed, alone: true, remove: []string{"1 a"}, writtenAnew: true, want: []string{"1: 2 b"}},
		{name: "a truncated table", from: keyless, to: keyed, truncate: true, remove: []string{"2 b"}, writtenAnew: true, want: []string{"1: 1 a"}},
		{name: "one of its own without rows", from: keyless, to: keyed, alone: true, remove: []string{"1 a", "2 b"}, writtenAnew: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes := &write.Changes{}
			defer changes.Release()
			if c.truncate {
				if err := changes.Truncate(c.from); err != nil {
					t.Fatal(err)
				}
			}
			if err := changes.Put(c.from, change.Insert, columns("1 a", "2 b")); err != nil {
				t.Fatal(err)
			}
			if len(c.remove) > 0 {
				key := columns(c.remove...)
				if c.from.Keyed() {
					key = key[1:]
				}
				if err := changes.Delete(c.from, key); err != nil {
					t.Fatal(err)
				}
			}
			mark := changes.Mark()
			err := changes.Rekey(c.from, c.to, c.alone)
			if (err != nil) != c.refused {
				t.Fatal(err)
			}
			if err != nil {
				if changes.Mark() != mark {
					t.Error("a refusal has changed something")
				}
				return
			}
			own, err := changes.Own(c.to)
			if err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(t, own); !slices.Equal(got, c.want) || own.Truncated != (c.truncate || c.writtenAnew) {
				t.Errorf("%q, truncated %t", got, own.Truncated)
			}
			changes.Rollback(mark)
			if own, err = changes.Own(c.from); err != nil || own.Truncated != c.truncate {
				t.Errorf("taken back: truncated %t, %v", own.Truncated, err)
			}
		})
	}
}

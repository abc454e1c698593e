package compute

import (
	"testing"

	"github.com/skipprd/skipprd/wal/change"
)

// TestKnown: what is remembered of a stream counts for the next one of the same tables, and
// for no other, whose changes have other places in their transactions.
func TestKnown(t *testing.T) {
	var k Known
	refused := func(table change.TableID, ordinal int32) *GroupError {
		return &GroupError{Refused: map[change.TableID]map[RowID]Refusal{table: {RowID{7, ordinal}: {Column: "g"}}}}
	}
	k.Begin("1 2")
	k.Add(refused(1, 4))
	given := k.Of(1)
	k.Add(refused(1, 6))
	if len(given) != 1 {
		t.Errorf("%d rows are in what was given away with one", len(given))
	}
	k.Begin("1 2")
	if got := k.Of(1); len(got) != 2 || got[RowID{7, 4}].Column != "g" || k.Of(2) != nil {
		t.Errorf("the next stream of the same tables knows %v", got)
	}
	k.Begin("1 3")
	if got := k.Of(1); got != nil {
		t.Errorf("a stream of other tables knows %v", got)
	}
}

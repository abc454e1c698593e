package ingest

import (
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
)

// TestGroupStateBytes: the encoding is durable.
func TestGroupStateBytes(t *testing.T) {
	for want, s := range map[string]groupState{
		"": {},
		`{"v":1,"stops":[{"table":7,"at":"x","reason":"r","hint":"h"}]}`: {
			Stops: []tableStop{{Table: 7, At: "x", Reason: "r", Hint: "h"}},
		},
		`{"v":1,"progress":[{"table":7,"at":"x"}],"reached":[8]}`: {
			Progress: []tableProgress{{Table: 7, At: "x"}}, Reached: []change.TableID{8},
		},
		`{"v":2,"part":"s-1"}`: {Part: "s-1"},
		`{"v":2,"stops":[{"table":7,"at":"x","reason":"r","voids":true}],"completes":{"txn":"s-1","parts":3,"first":9}}`: {
			Stops:     []tableStop{{Table: 7, At: "x", Reason: "r", Voids: true}},
			Completes: &partsDone{Txn: "s-1", Parts: 3, First: 9},
		},
		`{"v":2,"voids":true}`: {Voids: true},
		`{"v":3,"letters":{"closed":[{"table":7,"ref":{"token":5,"ordinal":2,"id":9},"state":"retried"}]}}`: {
			Letters: &deadletter.Records{Closed: []deadletter.Closed{{
				Table: 7, Ref: catalog.DeadLetterRef{Token: 5, Ordinal: 2, ID: 9}, State: catalog.DeadLetterRetried,
			}}},
		},
	} {
		b, err := s.encode()
		if err != nil || string(b) != want {
			t.Errorf("%s, %v; want %s", b, err, want)
		}
	}
	for _, bad := range []string{"", "{}", `{"v":4}`, `{"v":0}`, "[]"} {
		if _, err := decodeGroupState([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// TestOwedChunk: the copy of a table to which rows are owed does not end with its last chunk,
// whichever it is.
func TestOwedChunk(t *testing.T) {
	tb := &catalog.Table{State: catalog.TableBackfill, Generation: 3}
	tb.Backfill.Done = make([]bool, 2)
	owed := func(chunk int) *chunkDone { return &chunkDone{Generation: 3, Chunk: chunk, Rows: 5, Owed: true} }
	owed(1).apply(tb)
	if !tb.Backfill.Done[1] || tb.Backfill.RowsDone != 5 {
		t.Fatalf("the first chunk: %+v", tb.Backfill)
	}
	owed(0).apply(tb)
	if tb.Backfill.Done[0] || tb.State != catalog.TableBackfill || !tb.Backfill.FinishedAt.IsZero() {
		t.Fatalf("the last chunk: %s, %+v", tb.State, tb.Backfill)
	}
	(&chunkDone{Generation: 3, Chunk: 0, Rows: 5}).apply(tb)
	if tb.State != catalog.TableCatchup {
		t.Fatalf("paid: %s", tb.State)
	}
}

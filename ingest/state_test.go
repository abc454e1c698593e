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

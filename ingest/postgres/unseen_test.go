package postgres

import (
	"testing"

	"github.com/skipprd/skipprd/ingest"
)

// TestUnseenCounts: what counts is what came since the watch began, across new streams
// and resets of the server's counters.
func TestUnseenCounts(t *testing.T) {
	var u unseen
	keyless := ingest.StreamTable{Source: ingest.SourceTable{OID: 7}}
	keyed := ingest.StreamTable{Source: ingest.SourceTable{OID: 8, Key: []string{"id"}}}
	u.watch([]ingest.StreamTable{keyless, keyed})
	if w := u.watched(); len(w) != 1 || w[0] != 7 {
		t.Fatalf("watched %v", w)
	}
	for _, step := range []struct{ n, want int64 }{{5, 0}, {5, 0}, {8, 3}, {2, 0}, {4, 2}} {
		if got := u.count(7, step.n); got != step.want {
			t.Errorf("at %d: got %d, want %d", step.n, got, step.want)
		}
		u.watch([]ingest.StreamTable{keyless})
	}
	if got := u.count(8, 100); got != 0 {
		t.Errorf("a table with a key counts: %d", got)
	}
}

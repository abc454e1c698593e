package main

import (
	"testing"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/planner/write"
)

// TestOwnRowsFit: no transaction of a session has a row for which its table would stop.
func TestOwnRowsFit(t *testing.T) {
	const rest = 8 << 20 // what a row takes beside its values
	if write.BytesMax > ingest.RowBytesMax-rest {
		t.Errorf("a transaction may have %d bytes, a row %d", write.BytesMax, ingest.RowBytesMax)
	}
}

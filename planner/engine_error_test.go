package planner

import (
	"errors"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// An error of the encoder, which runs in the engine's worker, reaches the client whole.
func TestErrorsFromWorker(t *testing.T) {
	for _, want := range []*pgerr.Error{
		pgerr.New("0A000", "no binary output function available for type tsquery").WithHint("Ask for text format."),
		pgerr.New("22P02", "invalid input syntax for type numeric: \"a\nb\""),
	} {
		got := EngineError(FromWorker(want))
		if got == nil || got.Code != want.Code || got.Message != want.Message || got.Hint != want.Hint {
			t.Errorf("%v came as %+v", want, got)
		}
	}
	other := errors.New("disk is away")
	if FromWorker(other) != other || FromWorker(nil) != nil {
		t.Error("another error was changed")
	}
}

// Whoever runs out of memory or disk is told which setting helps.
func TestLackOfMemory(t *testing.T) {
	for _, c := range []struct {
		err        duckdb.EngineError
		code, hint string
	}{
		{duckdb.EngineError{Kind: duckdb.KindOutOfMemory, Message: "could not allocate block of size 256.0 KiB (71.9 MiB/72.0 MiB used)"}, "53200", "--engine-memory"},
		{duckdb.EngineError{Kind: duckdb.KindOutOfMemory, Message: "failed to offload data block of size 256.0 KiB (1.0 MiB/1.0 MiB used)."}, "53400", "--engine-temp-limit"},
		{duckdb.EngineError{Kind: duckdb.KindIO, Message: "Could not write file \"/d/engine-tmp/duckdb_temp_storage-0.tmp\": No space left on device"}, "53100", "disk of the data directory"},
		{duckdb.EngineError{Kind: duckdb.KindIO, Message: "No files found that match the pattern"}, "58030", ""},
	} {
		got := EngineError(&c.err)
		if got == nil || string(got.Code) != c.code || !strings.Contains(got.Hint, c.hint) {
			t.Errorf("%s: %+v", c.err.Message, got)
		}
	}
}

package planner

import (
	"errors"
	"testing"

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

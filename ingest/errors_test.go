package ingest

import (
	"errors"
	"fmt"
	"testing"
)

// TestReasonOf: a pipeline's reason is what a source said in words for its user; without
// those it has all that is known, and says once at most that the source is unavailable.
func TestReasonOf(t *testing.T) {
	said := &SourceError{Message: "could not connect to the source: host:5432: connection refused", Cause: errors.New("dial tcp: connect: ECONNREFUSED")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{sourceError("set up source", fmt.Errorf("set up slot s: %w", said)), said.Message},
		{sourceError("set up source", errors.New("slot s is lost")), "set up source: slot s is lost"},
		{
			fmt.Errorf("drop: %w", &BadSourceError{Connection: `a "b`, Cause: errors.New("option PORT: a number is required")}),
			`drop: connection "a ""b" cannot be used: option PORT: a number is required`,
		},
		{errors.New("open log: no space left on device"), "open log: no space left on device"},
	} {
		if got := reasonOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if err := sourceError("stream", said); !errors.Is(err, ErrSourceUnavailable) || err.Error() != "stream: source is unavailable: dial tcp: connect: ECONNREFUSED" {
		t.Errorf("the log has %v", err)
	}
}

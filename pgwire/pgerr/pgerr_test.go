package pgerr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func TestErrorCopies(t *testing.T) {
	cause := errors.New("cause")
	e := pgerr.New(codes.Syntax, "syntax error at %q", "x")
	full := e.WithDetail("Detail %d.", 1).WithHint("Hint.").WithPosition(7).WithCause(cause)
	if e.Detail != "" || e.Hint != "" || e.Position != 0 || e.Cause != nil {
		t.Errorf("the original changed: %+v", e)
	}
	if full.Detail != "Detail 1." || full.Hint != "Hint." || full.Position != 7 || !errors.Is(full, cause) {
		t.Errorf("%+v", full)
	}
	if got, want := full.Error(), `syntax error at "x" (SQLSTATE 42601)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAs(t *testing.T) {
	e := pgerr.New(codes.Syntax, "syntax error")
	if got, ok := pgerr.As(fmt.Errorf("parse: %w", e)); !ok || got != e {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := pgerr.As(errors.New("x")); ok || got != nil {
		t.Errorf("%v, %v", got, ok)
	}
	if n := pgerr.Notice("table %s", "t"); n.Severity != "NOTICE" || n.Message != "table t" {
		t.Errorf("%+v", n)
	}
}

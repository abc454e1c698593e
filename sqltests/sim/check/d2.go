package check

import (
	"errors"
	"fmt"

	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
)

// d2 checks "D2 Old rows stay readable under every later schema": no query fails because
// rows of an earlier version cannot be brought into the pin's.
type d2 struct{}

// Label implements Checker.
func (*d2) Label() string { return "D2" }

// Check implements Checker.
func (*d2) Check(v *View) error {
	for _, e := range v.Events {
		x, ok := e.(PinExecuted)
		if ok && (errors.Is(x.Err, duckdb.ErrPlan) || errors.Is(x.Err, lake.ErrNoWidening)) {
			return fmt.Errorf("query %d: %w", x.Query, x.Err)
		}
	}
	return nil
}

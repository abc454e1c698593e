package check

import (
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/sqltests/sim/query"
)

// p2 checks "P2 While none of its slices is reclaimed, a pin returns the same rows": every
// execution of a pin that ends well gives what the first gave.
type p2 struct {
	first map[int][]query.Digest // by query, of its latest pin
}

func newP2() *p2 { return &p2{map[int][]query.Digest{}} }

// Label implements Checker.
func (*p2) Label() string { return "P2" }

// Check implements Checker.
func (c *p2) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case PinTaken:
			delete(c.first, x.Query)
		case PinExecuted:
			if x.Err != nil {
				continue
			}
			got := make([]query.Digest, len(x.Results))
			for i, r := range x.Results {
				got[i] = r.Digest
			}
			if first := c.first[x.Query]; first == nil {
				c.first[x.Query] = got
			} else if !slices.Equal(first, got) {
				return fmt.Errorf("query %d: its pin has %v rows (count and sum), and had %v", x.Query, got, first)
			}
		}
	}
	return nil
}

package check

// m1 checks "M1 At most one row per key: the greatest (token, seq, ordinal, row), unless that is
// a delete". It is the oracle's
// verdict on the rows of a pin.
type m1 struct{ f *facts }

// Label implements Checker.
func (*m1) Label() string { return "M1" }

// Check implements Checker.
func (c *m1) Check(*View) error { return c.f.of(c.Label()) }

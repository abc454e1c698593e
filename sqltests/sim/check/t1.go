package check

// t1 checks "T1 A source transaction is visible whole or not at all, across tables": the
// tables of one pin are all as of one position, and none as of the middle of a
// transaction. It is the oracle's verdict on the rows of a pin.
type t1 struct{ f *facts }

// Label implements Checker.
func (*t1) Label() string { return "T1" }

// Check implements Checker.
func (c *t1) Check(*View) error { return c.f.of(c.Label()) }

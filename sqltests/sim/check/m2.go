package check

// m2 checks "M2 Lake rows compete with their own token": where live changes may be older than
// the lake, the newer row of a key is shown. It is the oracle's
// verdict on the rows of a pin.
type m2 struct{ f *facts }

// Label implements Checker.
func (*m2) Label() string { return "M2" }

// Check implements Checker.
func (c *m2) Check(*View) error { return c.f.of(c.Label()) }

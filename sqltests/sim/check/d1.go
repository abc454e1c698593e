package check

// d1 checks "D1 Bytes that fail their digest are never served, compacted or handed on": no
// query shows a row that no transaction ever made.
type d1 struct{ f *facts }

// Label implements Checker.
func (*d1) Label() string { return "D1" }

// Check implements Checker.
func (c *d1) Check(*View) error { return c.f.of(c.Label()) }

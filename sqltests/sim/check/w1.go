package check

import (
	"fmt"

	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// w1 checks "W1 Nothing is acknowledged before its commit point is durable (marker on
// shared stores, group end on disk)": an append that is answered, and a position that is
// acknowledged to the source, are in the durable bytes.
type w1 struct{ f *facts }

// Label implements Checker.
func (*w1) Label() string { return "W1" }

// Check implements Checker.
func (c *w1) Check(v *View) error {
	for _, e := range v.Events {
		switch x := e.(type) {
		case Committed:
			l := c.f.logOf(v, x.Host)
			s := l.segs[x.Group.Seq]
			if (s == nil || !s.committed(v.Objects != nil) || s.group(x.Group.End) == nil) && !c.f.reclaimed(x) {
				return fmt.Errorf("host %s answered the group that ends at %d:%d, which is not durable", x.Host, x.Group.Seq,
					x.Group.End)
			}
		case AckSent:
			l := c.f.logOf(v, x.Host)
			durable := max(source.LSN(l.position), v.Source.Start, v.Source.Held)
			if source.LSN(x.Position) > durable {
				return fmt.Errorf("host %s acknowledged %s, durable is %d", x.Host, x.Position, durable)
			}
		}
	}
	return nil
}

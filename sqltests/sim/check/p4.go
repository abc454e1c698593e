package check

import "fmt"

// p4 checks "P4 A ref leaves E only after its body is gone": a catalog forgets a segment,
// and with it that its slices are compacted, only when the store has neither marker nor
// body of it.
type p4 struct{ f *facts }

func newP4(f *facts) *p4 { return &p4{f} }

// Label implements Checker.
func (*p4) Label() string { return "P4" }

// Check implements Checker.
func (c *p4) Check(v *View) error {
	for _, h := range v.Hosts {
		hf := c.f.hosts[h.Name]
		if !hf.looked || hf.before == nil || h.Fenced {
			continue
		}
		l := c.f.logOf(v, h.Name)
		for k := range hf.before.eachSegment {
			if hf.now.hasSegment(k) || hf.now.pipeline(k.pipeline) == nil {
				continue
			}
			// On a shared store a body without a marker may be a dead writer's.
			if s := l.segs[k.seq]; s != nil && (v.Objects == nil || s.marker != nil) && (len(s.groups) > 0 || s.marker != nil && s.body) {
				return fmt.Errorf("host %s forgot segment %d of pipeline %d, its body is still there", h.Name, k.seq, k.pipeline)
			}
		}
	}
	return nil
}

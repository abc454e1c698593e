package death

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// logFiles are the names that the pipeline's log has now or will have soon.
func (g *rig) logFiles() []string {
	dir := filepath.Join(g.s.DataDir, "wal", "00000001")
	last, err := harness.Text(g.s.DSN, "SELECT coalesce(max(seq), 0) FROM skippr.offsets")
	g.check("look for the log", err)
	var seq int
	_, err = fmt.Sscan(last, &seq)
	g.check("look for the log", err)
	out := []string{dir}
	for i := max(1, seq-5); i < seq+300; i++ {
		id := fmt.Sprintf("%016x", i)
		out = append(out, filepath.Join(dir, id+".seg"), filepath.Join(dir, id+".seg.commit.tmp"),
			filepath.Join(dir, fmt.Sprintf("spare-%d", i)))
	}
	return out
}

// diskFaults are the ways in which the log's disk fails.
var diskFaults = []struct {
	name   string
	faults []string
}{
	{"EIO at fdatasync", []string{"fdatasync:error=EIO:when=3+6"}},
	{"EIO at pwrite64", []string{"pwrite64:error=EIO:when=4+7"}},
	{"EIO at fsync", []string{"fsync:error=EIO:when=1+2"}},
	{"ENOSPC at pwrite64", []string{"pwrite64:error=ENOSPC:when=4+5"}},
	{"everything fails at times", []string{
		"pwrite64:error=EIO:when=9+23", "fdatasync:error=EIO:when=7+19", "fsync:error=EIO:when=3+5",
	}},
	{"slow", []string{"fdatasync:delay_enter=150000", "pwrite64:delay_enter=20000:when=1+5"}},
	{"nothing works", []string{"fdatasync:error=EIO", "fsync:error=EIO"}},
}

// TestFailingDisk makes the disk under the log fail while it is in use. The log gives
// the segment up, goes on in another, and has lost nothing that was acknowledged: not
// while the server lives, nor after its death.
func TestFailingDisk(t *testing.T) {
	g := newRig(t, options{pace: 2 * time.Millisecond})
	g.check("before", g.verify())
	for round := range rounds(1) {
		for i, c := range diskFaults {
			if short() && i != 0 && i != 4 {
				continue
			}
			how := fmt.Sprintf("round %d, %s", round, c.name)
			f := Inject(t, g.s.PID(), g.logFiles(), c.faults...)
			harness.Until(harness.Patience, func() bool { return f.Hits() > 0 || g.s.Dead() }) // some calls are rare
			harness.Until(6*time.Second, func() bool { return f.Hits() >= 6 || g.s.Dead() })
			said := g.state()
			hits := f.Stop()
			if hits == 0 {
				g.fail(how, fmt.Errorf("no call was hit"))
			}
			if g.s.Dead() {
				g.fail(how, fmt.Errorf("the server is dead"))
			}
			g.check(how, g.verify())
			g.s.Kill()
			g.check(how, g.s.CheckPosition(g.source, pipeline))
			g.s.Start()
			g.check(how+", after a restart", g.verify())
			t.Logf("%s: %d calls hit; the pipeline said %q", how, hits, strings.TrimSpace(said))
		}
	}
	g.s.Stop()
}

package death

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestFullDisk runs the server on a disk of 128 MiB and takes the room away: nearly
// all; all, while compaction may free some; and all for good. The source waits, nothing
// is dropped; given room, the pipeline goes on by itself and has everything.
func TestFullDisk(t *testing.T) {
	dir, kind := TinyDisk(t, 128<<20)
	g := newRig(t, options{dir: filepath.Join(dir, "data")})
	g.check("before", g.verify())
	ballast := filepath.Join(dir, "ballast")
	stages := []struct {
		leave int64
		keep  bool // full, whatever is freed
	}{{0, true}, {0, false}, {6 << 20, false}}
	if short() {
		stages = stages[:1]
	}
	for round := range rounds(1) {
		for _, stage := range stages {
			how := fmt.Sprintf("round %d, %s with %d MiB left, kept full: %v", round, kind, stage.leave>>20, stage.keep)
			g.check(how, Fill(ballast, stage.leave))
			said := ""
			limit := 15 * time.Second // compaction may make room faster than it is used up
			if stage.keep {
				limit = harness.Patience
			}
			full := harness.Until(limit, func() bool {
				if stage.keep {
					g.check(how, Fill(ballast, 0))
				}
				said = g.state()
				return g.s.Dead() || strings.Contains(said, "full") || strings.Contains(said, "no space")
			})
			if stage.keep && !full {
				g.fail(how, fmt.Errorf("nothing says that the disk is full; the pipeline is %q", said))
			}
			if stage.keep { // long enough for the catalog to need room too
				harness.Until(3*time.Second, func() bool { return g.s.Dead() || Fill(ballast, 0) != nil })
			}
			dead := g.s.Dead()
			if dead {
				g.startOnFull(how)
			} else if n, err := harness.Text(g.s.DSN, "SELECT count(*) FROM "+pipeline+".balance_a"); stage.keep && n != "100" {
				t.Logf("%s: a read says %q, %v", how, n, err)
			}
			g.check(how, os.Remove(ballast))
			if dead {
				g.s.Kill()
				g.check(how, g.s.CheckPosition(g.source, pipeline))
				g.s.Start()
			}
			g.check(how+", with room again", g.verify())
			g.s.Kill()
			g.check(how, g.s.CheckPosition(g.source, pipeline))
			g.s.Start()
			g.check(how+", after a restart", g.verifyLake())
			t.Logf("%s: dead %v, the pipeline said %q", how, dead, said)
		}
	}
	harness.Exec(t, g.s.DSN, "DROP PIPELINE "+pipeline)
	g.s.Stop()
}

// startOnFull starts a server that has died on its full disk, on the same disk: it comes
// up, or says in the end of its log what is missing.
func (g *rig) startOnFull(how string) {
	g.s.Launch()
	err := g.s.TryReady(harness.Patience)
	if end := g.s.Log(3); err != nil && !strings.Contains(end, "no space") {
		g.fail(how, fmt.Errorf("started on the full disk: %w, without saying why:\n%s", err, end))
	}
	g.t.Logf("%s: started on the full disk: %v", how, err)
}

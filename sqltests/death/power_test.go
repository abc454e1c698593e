package death

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// powerLoss takes the power away at a random moment, and gives it back. Every other
// time, some of what was not synced survives.
func (g *rig) powerLoss(m *Mount, some bool) (how string, err error) {
	g.run(int64(20+g.r.IntN(1500)), time.Duration(100+g.r.IntN(2500))*time.Millisecond)
	m.Disk.Cut()
	g.s.Kill()
	g.waitWorkers()
	var r *rand.Rand
	if some {
		r = g.r
	}
	var lost Lost
	if err := m.Remount(func() { lost = m.Disk.PowerOn(r) }); err != nil {
		return "", err
	}
	how = fmt.Sprintf("power loss took %d pages of %d files and %d names", lost.Pages, lost.Files, lost.Names)
	if err := g.s.CheckPosition(g.source, pipeline); err != nil {
		return how, err
	}
	g.s.Launch()
	if err := g.s.TryReady(harness.Patience); err != nil {
		return how, err
	}
	return how, g.verify()
}

// waitWorkers waits until the children of the dead server have let go of its files.
func (g *rig) waitWorkers() { g.s.WaitGroupDead(harness.Patience) }

// TestPowerLoss runs the server, its log, catalog and lake, on a disk that forgets what
// was not synced, and takes the power away at random moments under load.
func TestPowerLoss(t *testing.T) {
	m := MountDisk(t, NewDisk(8<<30))
	g := newRig(t, options{dir: m.Dir})
	for round := range rounds(4) {
		how, err := g.powerLoss(m, round%2 == 1)
		g.check(fmt.Sprintf("round %d: %s", round, how), err)
		t.Logf("round %d: %s", round, how)
	}
	g.check("at the end", g.verifyLake())
	harness.Exec(t, g.s.DSN, "DROP PIPELINE "+pipeline)
	g.s.Stop()
}

// TestPowerLossControl: on a disk that lies about what it has kept, the check must fail,
// or it would prove nothing.
func TestPowerLossControl(t *testing.T) {
	for name, lie := range map[string]Lie{"files": LieAboutFiles, "names": LieAboutNames} {
		t.Run(name, func(t *testing.T) {
			d := NewDisk(8 << 30)
			m := MountDisk(t, d)
			g := newRig(t, options{dir: m.Dir})
			g.check("before", g.verify())
			d.Lie, g.limit = lie, 8*time.Second
			for round := range 10 {
				how, err := g.powerLoss(m, false)
				if err != nil {
					t.Logf("found in round %d: %s: %.300v", round, how, err)
					return
				}
			}
			t.Error("no loss was found on a disk that lies")
		})
	}
}

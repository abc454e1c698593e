package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// failpoints are the places at which some rounds die, besides random moments.
var failpoints = []string{
	"", "", "", "BeforeBody", "AfterBody", "AfterMarker", "AfterPublish", "BeforeSeal", "AfterSealMarker",
	"BeforeLakeCommit", "AfterLakeCommit", "AfterMark", "BeforeReclaim", "BetweenMarkerAndBodyDelete", "BeforeAck",
	"BeforeUpdate:7", "AfterUpdate:7",
}

// TestKill kills the server with SIGKILL, at random moments and at named failpoints,
// under load: while it copies, streams, compacts and reclaims. After each death the
// restarted server must have every row of the source once, at a drained moment.
func TestKill(t *testing.T) {
	source := pgtest.Start(t).CreateDatabase(t)
	rounds, seed := number("SKIPPRD_KILL_ROUNDS", 8), uint64(number("SKIPPRD_SEED", 1))
	harness.Exec(t, source, harness.LoadSchema...)
	r := rand.New(rand.NewPCG(seed, 1))
	l := harness.StartLoad(t, source, 3)
	defer l.Close()
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE k FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (commit_bytes = 262144)")
	for round := range rounds {
		point := failpoints[r.IntN(len(failpoints))]
		every := number("SKIPPRD_KILL_RESET_EVERY", 7)
		reset := round%every == every/2
		if reset {
			harness.Exec(t, s.DSN, "ALTER PIPELINE k RESET")
		}
		how := dieOnce(s, r, point)
		if !reset { // a slot made anew begins at the source's position, ahead of the old log
			if err := s.CheckPosition(source, "k"); err != nil {
				t.Error(err)
			}
		}
		s.Start()
		l.Pause()
		drain(t, s.DSN, "k")
		harness.CompareTables(t, source, s.DSN, "k", harness.LoadTables)
		l.Resume()
		if t.Failed() {
			t.Fatalf("round %d of seed %d, died %s", round, seed, how)
		}
		t.Logf("round %d: died %s", round, how)
	}
	harness.Exec(t, s.DSN, "DROP PIPELINE k")
	s.Stop()
}

// dataDir is a temporary directory, or the one that SKIPPRD_KEEP names, which stays for
// a look at what went wrong.
func dataDir(t *testing.T) string {
	if dir := os.Getenv("SKIPPRD_KEEP"); dir != "" {
		return dir
	}
	return t.TempDir()
}

// dieOnce lets the server run on for a while and then die, at a failpoint if one is
// named and reached.
func dieOnce(s *harness.Server, r *rand.Rand, point string) string {
	if point != "" {
		s.Kill()
		s.Setenv(fmt.Sprintf("SKIPPRD_FAILPOINT=%s:%d", point, 1+r.IntN(6)))
		s.Launch()
		s.Unsetenv()
		if s.WaitDead(6 * time.Second) {
			return "at " + point
		}
		point = " (" + point + " not reached)"
	}
	s.WaitDead(time.Duration(50+r.IntN(2500)) * time.Millisecond)
	s.Kill()
	return "by SIGKILL" + point
}

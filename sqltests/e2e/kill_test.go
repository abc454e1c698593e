package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/env"
)

// failpoints are the places at which some rounds die, besides random moments.
var failpoints = []string{
	"", "", "", "BeforeBody", "AfterBody", "AfterMarker", "AfterPublish", "BeforeSeal", "AfterSealMarker",
	"BeforeLakeCommit", "AfterLakeCommit", "AfterMark", "BeforeReclaim", "BetweenMarkerAndBodyDelete", "BeforeAck",
	"BeforeUpdate", "AfterUpdate",
}

// hits are at which of its hits, at most, a failpoint is, and wait is how long that is
// waited for: a start of the server updates the catalog several times, and segments are
// reclaimed seldom.
func hits(point string) (most int, wait time.Duration) {
	switch point {
	case "BeforeUpdate", "AfterUpdate":
		return 16, 10 * time.Second
	case "BeforeReclaim", "BetweenMarkerAndBodyDelete":
		return 2, 25 * time.Second
	}
	return 6, 10 * time.Second
}

// Of so many rounds with a failpoint at least one in so many must come to it: some are
// reached only now and then, and seldom on a slow machine, but not all of them.
const (
	failpointRounds = 30
	failpointShare  = 5
)

// TestKill kills the server with SIGKILL, at random moments and at named failpoints,
// under load: while it copies, streams, compacts and reclaims. After each death the
// restarted server must have every row of the source once, at a drained moment.
func TestKill(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	rounds, seed := number("SKIPPRD_KILL_ROUNDS", 8), uint64(number("SKIPPRD_SEED", 1))
	harness.Exec(t, source, harness.LoadSchema...)
	r := rand.New(rand.NewPCG(seed, 1))
	l := harness.StartLoad(t, source, 3)
	defer l.Close()
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE k FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (commit_bytes = 262144)")
	named, reached := 0, map[string]int{}
	for round := range rounds {
		point := failpoints[r.IntN(len(failpoints))]
		every := number("SKIPPRD_KILL_RESET_EVERY", 7)
		reset := round%every == every/2
		if reset {
			harness.Exec(t, s.DSN, "ALTER PIPELINE k RESET")
		}
		how, atPoint := dieOnce(s, r, point)
		if point != "" {
			named++
		}
		if atPoint {
			reached[point]++
		}
		made := reset || round == 0 // a slot, which it may die before it marks
		if err := s.CheckPosition(source, "k"); err != nil && !(made && errors.Is(err, harness.ErrUnmarked)) {
			t.Error(err)
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
	came := 0
	for _, n := range reached {
		came += n
	}
	t.Logf("%d of %d rounds with a failpoint died there: %v", came, named, reached)
	if named >= failpointRounds && came*failpointShare < named {
		t.Errorf("only %d of %d rounds died at their failpoint", came, named)
	}
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
func dieOnce(s *harness.Server, r *rand.Rand, point string) (how string, atPoint bool) {
	if point != "" {
		s.Kill()
		most, wait := hits(point)
		s.Setenv(fmt.Sprintf("SKIPPRD_FAILPOINT=%s:%d", point, 1+r.IntN(most)))
		s.Launch()
		s.Unsetenv()
		if s.WaitFailpoint(wait) {
			return "at " + point, true
		}
		point = " (" + point + " not reached)"
	}
	s.WaitDead(time.Duration(50+r.IntN(2500)) * time.Millisecond)
	s.Kill()
	return "by SIGKILL" + point, false
}

// TestFailpoints: the server knows the failpoints of these tests, and one that it does
// not know is not taken for a death at it.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	points := slices.Concat(failpoints, storePoints)
	for _, loss := range losses {
		points = append(points, loss.point)
	}
	for _, point := range points {
		if _, _, err := env.ParseFailpoint(point + ":3"); point != "" && err != nil {
			t.Error(err)
		}
	}
	s := harness.New(t, t.TempDir())
	s.Setenv("SKIPPRD_FAILPOINT=BeforeUpdate:7:3")
	s.Launch()
	if died, err := s.DiedAtFailpoint(harness.Patience); died || err == nil {
		t.Errorf("a failpoint that the server refuses: died at it %v, %v", died, err)
	}
}

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// losses are the moments at which TestLostCatalog loses the catalog: a statement before,
// a failpoint to die at, and what the server's log says before it is killed. Nothing of
// these: at any moment.
var losses = []struct{ name, statement, point, logged string }{
	{name: "in the initial copy", point: "AfterPublish"},
	{name: "at any moment"},
	{name: "before the mark of a compaction", point: "AfterLakeCommit"},
	{name: "after a reclaim", logged: "segments reclaimed"},
	{name: "within a reclaim", point: "BetweenMarkerAndBodyDelete"},
	{name: "after a reset", statement: "ALTER PIPELINE k RESET", logged: "compaction acked"},
	{name: "before an update", point: "BeforeUpdate"},
	{name: "after a resync", statement: "ALTER PIPELINE k RESYNC TABLE items"},
	{name: "after a publish", point: "AfterPublish"},
}

// TestLostCatalog kills the server under load and deletes its catalog. The next start
// must have the pipeline and every row of the source once, resume where the source was
// acknowledged, and go on.
func TestLostCatalog(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, harness.LoadSchema...)
	r := rand.New(rand.NewPCG(uint64(number("SKIPPRD_SEED", 1)), 1))
	l := harness.StartLoad(t, source, 2)
	defer l.Close()
	s := harness.New(t, dataDir(t), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE SECRET kept AS 'x'",
		"CREATE PIPELINE k FROM POSTGRES "+quoted(source)+" FOR ALL TABLES WITH (commit_bytes = 262144)")
	for round := range number("SKIPPRD_LOSSES", len(losses)) {
		loss := losses[round%len(losses)]
		if loss.statement != "" {
			harness.Exec(t, s.DSN, loss.statement)
		}
		if loss.logged != "" && !harness.Until(harness.Patience, func() bool { return logged(s, loss.logged) }) {
			t.Fatalf("%s: the server did not log %q", loss.name, loss.logged)
		}
		how := die(s, r, loss.point)
		if err := os.RemoveAll(filepath.Join(s.DataDir, "catalog")); err != nil {
			t.Fatal(err)
		}
		// What it had acknowledged; the next death tells what it acknowledges from here on.
		made := round == 0 || strings.HasSuffix(loss.statement, " RESET") // a slot, which it may die before it marks
		if err := s.CheckPosition(source, "k"); err != nil && !(made && errors.Is(err, harness.ErrUnmarked)) {
			t.Error(err)
		}
		s.Start()
		l.Pause()
		drain(t, s.DSN, "k")
		harness.CompareTables(t, source, s.DSN, "k", harness.LoadTables)
		for sql, want := range map[string]string{
			"SELECT count(*) > 0 FROM skippr.events WHERE kind = 'catalog rebuilt'":                  "t",
			"SELECT count(*) FROM skippr.tables WHERE state = 'stopped'":                             "0",
			"SELECT count(*) FROM skippr.events WHERE level = 'error' AND kind LIKE '%not rebuilt%'": "0",
			"SELECT string_agg(secret, ',') FROM skippr.secrets":                                     "kept",
		} {
			if got, err := harness.Text(s.DSN, sql); err != nil || strings.TrimSpace(got) != want {
				t.Errorf("%s: got %q, want %q, %v", sql, got, want, err)
			}
		}
		l.Resume()
		if t.Failed() {
			t.Fatalf("%s, died %s:\n%s", loss.name, how, s.Log(40))
		}
		t.Logf("%s: died %s", loss.name, how)
	}
	s.Stop()
	if err := s.CheckPosition(source, "k"); err != nil {
		t.Error(err)
	}
}

// die is dieOnce, but waits for a failpoint as long as a reclaim takes to come.
func die(s *harness.Server, r *rand.Rand, point string) string {
	if point == "" {
		how, _ := dieOnce(s, r, "")
		return how
	}
	s.Kill()
	s.Setenv(fmt.Sprintf("SKIPPRD_FAILPOINT=%s:%d", point, 1+r.IntN(3)))
	s.Launch()
	s.Unsetenv()
	if s.WaitFailpoint(25 * time.Second) {
		return "at " + point
	}
	s.Kill()
	return "by SIGKILL (" + point + " not reached)"
}

// logged says whether the server has logged text since its last start.
func logged(s *harness.Server, text string) bool {
	all := s.Log(5000)
	if at := strings.LastIndex(all, "server ready"); at >= 0 {
		all = all[at:]
	}
	return strings.Contains(all, text)
}

// TestLostCatalogAndBackup: without anything that says what the data is, the server does
// not begin beside it as if it were not there.
func TestLostCatalogAndBackup(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, fmt.Sprintf("CREATE PIPELINE p FROM POSTGRES %s FOR ALL TABLES", quoted(source)))
	drain(t, s.DSN, "p")
	s.Kill()
	backup := filepath.Join(s.DataDir, "catalog.backup")
	for _, name := range []string{filepath.Join(s.DataDir, "catalog"), backup + ".away"} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(backup, backup+".away"); err != nil {
		t.Fatal(err)
	}
	s.Launch()
	if !s.WaitDead(harness.Patience) || !strings.Contains(s.Log(20), "catalog.backup") {
		t.Fatalf("the server does not say that the backup is missing:\n%s", s.Log(20))
	}
	if err := os.Rename(backup+".away", backup); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.DataDir, "catalog")); err != nil {
		t.Fatal(err)
	}
	s.Start()
	drain(t, s.DSN, "p")
	harness.CompareTables(t, source, s.DSN, "p", map[string]string{"a": "id"})
	s.Stop()
}

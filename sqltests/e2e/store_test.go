package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/sqltests/s3test"
	"github.com/skipprd/skipprd/wal/objstore/s3store"
)

// lease is how long a node leads without a sign of life.
const lease = 4 * time.Second

// logKey seals secrets: the nodes of one log share it.
const logKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// storeNode prepares a node whose log is in a bucket of an S3 server. Nodes with the same
// lake directory and bucket stand by for each other.
func storeNode(t *testing.T, s3 *s3test.Server, bucket, name, lake string, args ...string) *harness.Server {
	t.Helper()
	s := harness.New(t, t.TempDir(), append([]string{
		"--log", "s3://" + bucket + "/logs/one", "--log-endpoint", s3.Endpoint, "--log-region", s3test.Region,
		"--log-path-style", "true", "--log-lease", lease.String(), "--log-linger", "50ms", "--lake-dir", lake, "--node-name", name,
		"--commit-interval", "500ms", "--shutdown-timeout", "1s",
	}, args...)...)
	setStoreKeys(s)
	return s
}

func setStoreKeys(s *harness.Server) {
	s.Setenv("LOG_ACCESS_KEY_ID=" + s3test.AccessKeyID)
	s.Setenv("LOG_SECRET_ACCESS_KEY=" + s3test.SecretAccessKey)
	s.Setenv("SKIPPRD_SECRET_KEY=" + logKey)
}

// storeWorld is a source with load, and nodes that take it in.
type storeWorld struct {
	t      *testing.T
	source string
	load   *harness.Load
	s3     *s3test.Server
	bucket string
	lake   string
}

func newStoreWorld(t *testing.T) *storeWorld {
	w := &storeWorld{t: t, s3: s3test.Start(t), lake: filepath.Join(t.TempDir(), "lake")}
	w.bucket = w.s3.CreateBucket(t)
	// A slot is free again soon after its reader stopped to answer.
	p := pgtest.StartPrivate(t, "wal_sender_timeout = '3s'")
	w.source = p.CreateDatabase(t)
	harness.Exec(t, w.source, harness.LoadSchema...)
	w.load = harness.StartPacedLoad(t, w.source, 2, 2*time.Millisecond)
	t.Cleanup(w.load.Close)
	return w
}

func (w *storeWorld) node(name string) *harness.Server {
	w.t.Helper()
	return storeNode(w.t, w.s3, w.bucket, name, w.lake)
}

func (w *storeWorld) create(s *harness.Server) {
	w.t.Helper()
	harness.Exec(w.t, s.DSN, "CREATE PIPELINE k FROM POSTGRES "+quoted(w.source)+" FOR ALL TABLES WITH (commit_bytes = 262144)")
}

// reclaimed waits until the node has reclaimed segments since its last start.
func (w *storeWorld) reclaimed(s *harness.Server) {
	w.t.Helper()
	if !harness.Until(harness.Patience, func() bool { return logged(s, "segments reclaimed") }) {
		w.t.Fatalf("nothing was reclaimed:\n%s", s.Log(60))
	}
}

// check compares all rows, and looks for what must not be, where no other node can lead.
func (w *storeWorld) check(s *harness.Server, when string) {
	w.t.Helper()
	if err := w.equal(s); err != nil {
		w.t.Fatalf("%s: %v\n%s", when, err, s.Log(60))
	}
	w.t.Logf("%s: equal after %d transactions", when, w.load.Written.Load())
}

// equal is what check does, as an error.
func (w *storeWorld) equal(s *harness.Server) error {
	w.load.Pause()
	defer w.load.Resume()
	for _, sql := range []string{"SYNC PIPELINE k UNTIL CAUGHT UP", "ALTER PIPELINE k COMPACT"} { // then the lake alone
		if err := run(w.t, s.DSN, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		if _, err := harness.EqualTables(w.source, s.DSN, "k", harness.LoadTables); err != nil {
			return fmt.Errorf("after %s: %w", sql, err)
		}
	}
	for sql, want := range map[string]string{
		"SELECT count(*) FROM skippr.tables WHERE state = 'stopped'":                             "0",
		"SELECT count(*) FROM skippr.events WHERE level = 'error' AND kind LIKE '%not rebuilt%'": "0",
	} {
		if got, err := harness.Text(s.DSN, sql); err != nil || strings.TrimSpace(got) != want {
			return fmt.Errorf("%s: got %q, want %q, %w", sql, got, want, err)
		}
	}
	return nil
}

// run runs a statement that may well fail.
func run(t *testing.T, dsn, sql string) error {
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	_, err = c.PgConn().Exec(t.Context(), sql).ReadAll()
	return err
}

// TestStoreLog: a node with its log in an object store is killed, loses its catalog, its
// mirror, then everything but the lake, and the store goes away for a while: every time it
// has each row once, and goes on.
func TestStoreLog(t *testing.T) {
	t.Parallel()
	w := newStoreWorld(t)
	s := w.node("a")
	s.Start()
	w.create(s)
	w.reclaimed(s)
	w.check(s, "at first")

	s.Kill()
	s.Start()
	w.check(s, "after kill -9")

	s.Kill()
	for _, name := range []string{"wal", "catalog", "node"} {
		if err := os.RemoveAll(filepath.Join(s.DataDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Start()
	w.check(s, "without mirror and catalog")

	w.s3.Kill()
	if !harness.Until(harness.Patience, func() bool {
		reason, err := harness.Text(s.DSN, "SELECT reason FROM pg_stat_pipeline")
		return err == nil && strings.Contains(reason, "waits for its object store")
	}) {
		t.Error("pg_stat_pipeline does not say that the store is away")
	}
	w.s3.Restart(t)
	w.check(s, "after the store was away")
	w.reclaimed(s)

	s.Kill()
	if err := os.RemoveAll(s.DataDir); err != nil {
		t.Fatal(err)
	}
	s.Start()
	w.check(s, "with the lake alone")
	if got, err := harness.Text(s.DSN, "SELECT log_host || ' ' || (log_epoch > 4)::text || ' ' || (log_commits > 0)::text FROM pg_stat_pipeline"); err != nil || got != "a true true" {
		t.Errorf("pg_stat_pipeline: %q, %v", got, err)
	}

	s.Kill()
	if err := os.Rename(w.lake, w.lake+".away"); err != nil {
		t.Fatal(err)
	}
	s.Launch()
	if !s.WaitDead(harness.Patience) || !strings.Contains(s.Log(5), "lacks") {
		t.Fatalf("it starts without the lake:\n%s", s.Log(20))
	}
	if err := errors.Join(os.RemoveAll(w.lake), os.Rename(w.lake+".away", w.lake)); err != nil {
		t.Fatal(err)
	}
	s.Start()
	w.check(s, "with the lake back")

	harness.Exec(t, s.DSN, "DROP PIPELINE k")
	if left := w.keys("logs/one/0"); len(left) > 0 {
		t.Errorf("of the dropped pipeline's log are left: %v", left)
	}
	s.Stop()
}

// keys are those of the bucket that begin with a prefix, at most a page.
func (w *storeWorld) keys(prefix string) (out []string) {
	w.t.Helper()
	store, err := s3store.New(w.t.Context(), s3store.Config{
		Bucket: w.bucket, Region: s3test.Region, Endpoint: w.s3.Endpoint, PathStyle: true,
		AccessKeyID: s3test.AccessKeyID, SecretAccessKey: s3test.SecretAccessKey,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	page, err := store.List(w.t.Context(), prefix, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range page.Objects {
		out = append(out, o.Key)
	}
	return out
}

// storePoints are where TestStoreKills has a node die.
var storePoints = []string{
	"BeforeBody", "AfterBody", "AfterMarker", "AfterPublish", "BeforeLakeCommit", "AfterLakeCommit", "AfterMark",
	"BeforeReclaim", "BetweenMarkerAndBodyDelete", "BeforeUpdate", "AfterUpdate",
}

// TestStoreKills: of two nodes the one that leads dies at points of the seed's choice, and
// the other one takes over. SKIPPRD_KILLS=11 is all points.
func TestStoreKills(t *testing.T) {
	t.Parallel()
	w := newStoreWorld(t)
	seed := number("SKIPPRD_SEED", 1)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	now, next := w.node("a"), w.node("b")
	now.Start()
	w.create(now)
	w.reclaimed(now)
	next.Launch()
	for round := range number("SKIPPRD_KILLS", 2) {
		point := storePoints[(seed*5+round)%len(storePoints)]
		now.Kill()
		next.WaitReady(harness.Patience)
		now.Setenv(fmt.Sprintf("SKIPPRD_FAILPOINT=%s:%d", point, 1+r.IntN(4))) // for its next life
		now.Launch()
		next.Kill() // at any moment
		reached := now.WaitFailpoint(25 * time.Second)
		now.Kill()
		now.Unsetenv()
		setStoreKeys(now)
		next.Start()
		w.check(next, fmt.Sprintf("%s, reached %v", point, reached))
		now.Launch()
		now, next = next, now
	}
}

func leads(s *harness.Server) bool { return s.TryReady(0) == nil }

// stays makes sure that a node which stands by does so for longer than the lease.
func (w *storeWorld) stays(leader, other *harness.Server) {
	w.t.Helper()
	if harness.Until(lease+time.Second, func() bool { return leads(other) || other.Dead() }) {
		w.putBack(leader, other)
	}
}

// putBack makes leader lead again. On a machine that was too slow for its lease the other
// one may have taken over, and the leader knows.
func (w *storeWorld) putBack(leader, other *harness.Server) {
	w.t.Helper()
	if other.Dead() || !harness.Until(harness.Patience, func() bool { return !leads(leader) && !leader.Dead() }) {
		w.t.Fatalf("both lead, or one has ended:\n%s\n%s", leader.Log(60), other.Log(60))
	}
	w.t.Logf("the machine was too slow for a lease of %v", lease)
	other.Kill()
	leader.WaitReady(harness.Patience)
	other.Launch()
}

// checkBeside is check while another node stands by.
func (w *storeWorld) checkBeside(leader, other *harness.Server, when string) {
	w.t.Helper()
	for {
		err := w.equal(leader)
		if err == nil {
			w.t.Logf("%s: equal after %d transactions", when, w.load.Written.Load())
			return
		}
		if !harness.Until(harness.Patience, func() bool { return leads(other) }) {
			w.t.Fatalf("%s: %v\n%s", when, err, leader.Log(60))
		}
		w.putBack(leader, other)
	}
}

// fenced is how many times a node was taken over.
func fenced(s *harness.Server) int {
	return strings.Count(s.Log(1_000_000), "was taken over, stands by")
}

// TestStoreTakeover: of two nodes on one lake directory one leads. When it is frozen the
// other takes over; thawed it finds itself fenced, stands by, and takes over when the other
// is killed.
func TestStoreTakeover(t *testing.T) {
	t.Parallel()
	w := newStoreWorld(t)
	a, b := w.node("a"), w.node("b")
	a.Start()
	w.create(a)
	w.reclaimed(a)
	b.Launch()
	if !harness.Until(harness.Patience, func() bool { return strings.Contains(b.Log(50), `held by host \"a\"`) }) {
		t.Fatalf("b does not stand by:\n%s", b.Log(50))
	}
	w.stays(a, b)
	w.checkBeside(a, b, "while b stands by")

	for round := range 2 {
		was := fenced(a)
		if err := syscall.Kill(a.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		b.WaitReady(harness.Patience)
		written := w.load.Written.Load()
		harness.Until(10*time.Second, func() bool { return w.load.Written.Load() > written+500 })
		if err := syscall.Kill(a.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if !harness.Until(harness.Patience, func() bool { return fenced(a) > was }) {
			t.Fatalf("a was not fenced:\n%s", a.Log(60))
		}
		w.checkBeside(b, a, fmt.Sprintf("round %d, after the take-over", round))
		w.stays(b, a)
		w.checkBeside(b, a, "with a standing by")
		b.Kill()
		a.WaitReady(harness.Patience)
		w.check(a, "after b was killed")
		b.Launch()
	}
	a.Stop()
	b.WaitReady(harness.Patience)
	w.check(b, "after a was stopped")
	b.Stop()
}

// TestStoreRefuses: what is wrong with the settings is said at once, and directories of
// another log are left alone.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	bucket := s3.CreateBucket(t)
	refused := func(s *harness.Server, want ...string) {
		t.Helper()
		s.Launch()
		if !s.WaitDead(harness.Patience) {
			s.Kill()
			t.Fatalf("it starts:\n%s", s.Log(20))
		}
		for _, text := range append(want, "") {
			if !strings.Contains(s.Log(20), text) {
				t.Errorf("%q is not in\n%s", text, s.Log(20))
			}
		}
		if strings.Contains(s.Log(100), s3test.SecretAccessKey) {
			t.Errorf("the secret is in the log:\n%s", s.Log(100))
		}
	}
	bare := harness.New(t, t.TempDir(), "--log", "s3://b", "--log-endpoint", "nowhere", "--log-access-key-id", "x", "--log-lease", "1ms")
	refused(bare, "prefix", "endpoint", "secret access key", "log-lease", "secret-key")
	refused(storeNode(t, s3, "missing", "a", t.TempDir()), "missing")

	disk := harness.New(t, t.TempDir())
	disk.Start()
	disk.Stop()
	s := storeNode(t, s3, bucket, "a", filepath.Join(disk.DataDir, "lake"), "--data-dir", disk.DataDir)
	refused(s, "belongs to a log at disk")
	disk.Start()
	disk.Stop()

	s = storeNode(t, s3, bucket, "a", filepath.Join(t.TempDir(), "lake"))
	s.Start()
	s.Stop()
	refused(harness.New(t, s.DataDir), "belongs to a log at s3://")
}

package death

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestMain ends the run with a list of what was skipped.
func TestMain(m *testing.M) {
	if was, code := Helper(); was {
		os.Exit(code)
	}
	code := m.Run()
	if err := Report(os.Stdout); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// rounds is how often a scenario is done: as many times as make deaths says, else few.
func rounds(few int) int { return number("SKIPPRD_DEATH_ROUNDS", few) }

// short says that this is the short run of make test.
func short() bool { return number("SKIPPRD_DEATH_ROUNDS", 0) == 0 }

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

const pipeline = "d"

// rig is a server with a pipeline under load.
type rig struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	source string // as the test reaches it
	s      *harness.Server
	load   *harness.Load
	drained
}

// drained is how long a pipeline may take to have everything.
type drained struct{ limit time.Duration }

// options of a rig; the zero value is a load at full speed on a directory of its own.
type options struct {
	source  string // "": a database of the shared server
	via     string // how the pipeline reaches the source; "": as the test does
	dir     string
	args    []string
	pace    time.Duration
	writers int
}

// newRig starts a server, a pipeline over the load's tables, and the load.
func newRig(t *testing.T, o options) *rig {
	t.Helper()
	g := &rig{t: t, seed: uint64(number("SKIPPRD_SEED", 1)), source: o.source, drained: drained{2 * harness.Patience}}
	g.r = rand.New(rand.NewPCG(g.seed, 11))
	t.Logf("seed %d", g.seed)
	if g.source == "" {
		g.source = pgtest.Start(t).CreateDatabase(t)
	}
	if o.via == "" {
		o.via = g.source
	}
	if o.dir == "" {
		o.dir = t.TempDir()
	}
	if o.writers == 0 {
		o.writers = 2
	}
	harness.Exec(t, g.source, harness.LoadSchema...)
	args := append([]string{"--commit-interval", "300ms", "--wal-segment-bytes", "1MiB"}, o.args...)
	g.s = harness.New(t, o.dir, args...)
	g.s.Start()
	harness.Exec(t, g.s.DSN, "CREATE PIPELINE "+pipeline+" FROM POSTGRES "+quote.Text(o.via)+" FOR ALL TABLES WITH (commit_bytes = 262144)")
	g.load = harness.StartPacedLoad(t, g.source, o.writers, o.pace)
	t.Cleanup(g.load.Close)
	return g
}

// run lets the load run until the server has written so many transactions more, at most
// for a limit.
func (g *rig) run(transactions int64, limit time.Duration) {
	want := g.load.Written.Load() + transactions
	harness.Until(limit, func() bool { return g.load.Written.Load() >= want })
}

// wait lets time pass with the load running.
func (g *rig) wait(d time.Duration) { harness.Until(d, func() bool { return g.t.Failed() }) }

// verify drains the pipeline with the load paused, and compares every table with the
// source, row by row.
func (g *rig) verify() error {
	g.load.Pause()
	defer g.load.Resume()
	if err := g.sync(); err != nil {
		return err
	}
	return g.compare()
}

func (g *rig) sync() error {
	return g.exec(g.limit, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
}

// compare holds the tables to the source's, twice: as they are, and after all that is
// in the log went to the lake.
func (g *rig) compare() error {
	rows, err := harness.EqualTables(g.source, g.s.DSN, pipeline, harness.LoadTables)
	if err != nil {
		return err
	}
	if rows == 0 {
		return fmt.Errorf("no rows to compare")
	}
	return nil
}

// verifyLake is verify, with the log emptied into the lake first.
func (g *rig) verifyLake() error {
	g.load.Pause()
	defer g.load.Resume()
	if err := g.sync(); err != nil {
		return err
	}
	if err := g.exec(g.limit, "ALTER PIPELINE "+pipeline+" COMPACT"); err != nil {
		return err
	}
	return g.compare()
}

// exec runs a statement on the server.
func (g *rig) exec(limit time.Duration, sql string) error {
	ctx, cancel := context.WithTimeout(g.t.Context(), limit)
	defer cancel()
	c, err := pgx.Connect(ctx, g.s.DSN)
	if err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err := c.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// state is what the views say of the pipeline: its state and the reason.
func (g *rig) state() string {
	s, err := harness.Text(g.s.DSN, "SELECT state || ': ' || coalesce(reason, '') FROM pg_stat_pipeline WHERE pipeline = '"+pipeline+"'")
	if err != nil {
		return "error: " + err.Error()
	}
	return s
}

// waitState waits until the views say something.
func (g *rig) waitState(part string) {
	g.t.Helper()
	last := ""
	if !harness.Until(harness.Patience, func() bool { last = g.state(); return strings.Contains(last, part) }) {
		g.fail("", fmt.Errorf("the pipeline is %q, not %q", last, part))
	}
}

// check fails the test when there is an error, and says how to repeat it.
func (g *rig) check(how string, err error) {
	g.t.Helper()
	if err != nil {
		g.fail(how, err)
	}
}

func (g *rig) fail(how string, err error) {
	g.t.Helper()
	g.t.Fatalf("%s: %v\nto repeat: make deaths RUN='^%s$' SEED=%d ROUNDS=%d", how, err, g.t.Name(), g.seed, number("SKIPPRD_DEATH_ROUNDS", 3))
}

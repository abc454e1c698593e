package death

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestClock moves the server's wall clock by hours, there and back, while it streams,
// compacts, reclaims, and while sessions hold limits in time.
func TestClock(t *testing.T) {
	g := newRig(t, options{pace: time.Millisecond})
	g.check("before", g.verify())
	clock := NewClock(t, g.s.PID())
	jumps := []time.Duration{3 * time.Hour, -3 * time.Hour, 26 * time.Hour, -100 * 24 * time.Hour, 0}
	if short() {
		jumps = []time.Duration{26 * time.Hour, -3 * time.Hour}
	}
	for round := range rounds(1) {
		for _, by := range jumps {
			how := fmt.Sprintf("round %d, clock moved by %s", round, by)
			g.check(how, clock.Move(by))
			g.check(how, g.sees(by))
			g.run(500, time.Second)
			g.check(how, g.verify())
			t.Logf("%s: %s", how, g.state())
		}
		for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
			g.timeouts(clock, by)
			g.check("timeouts", clock.Move(0))
		}
		for range 50 { // often, at once
			by := time.Duration(g.r.IntN(96)-48) * time.Hour
			g.check("many jumps", clock.Move(by))
			g.wait(time.Duration(g.r.IntN(60)) * time.Millisecond)
		}
		g.check("after many jumps", g.verifyLake())
		reclaimed := harness.Until(harness.Patience, func() bool {
			text, err := harness.Text(g.s.DSN, "SELECT min(seq) > 1 FROM skippr.segments")
			return err == nil && text == "t"
		})
		if !reclaimed {
			t.Errorf("nothing is reclaimed")
		}
	}
	// A later start in an earlier time.
	g.check("far ahead", clock.Move(1000*time.Hour))
	g.run(300, time.Second)
	g.s.Kill()
	g.check("killed", g.s.CheckPosition(g.source, pipeline))
	g.s.Start()
	g.check("started in an earlier time", g.verifyLake())
	g.s.Stop()
}

// sees says whether the server's clock is where it was moved to, or the test would
// prove nothing.
func (g *rig) sees(by time.Duration) error {
	text, err := harness.Text(g.s.DSN, "SELECT extract(epoch FROM now())::bigint")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(text, &seconds); err != nil {
		return err
	}
	if off := time.Until(time.Unix(seconds, 0)) - by; off < -time.Minute || off > time.Minute {
		return fmt.Errorf("the server's now() is %s away from where its clock was moved to", off)
	}
	return nil
}

const long = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"

// timeouts: a jump ends no statement and no session before its time, and keeps none
// alive beyond it.
func (g *rig) timeouts(clock *Clock, by time.Duration) {
	t := g.t
	g.check("timeouts", clock.Move(0))
	idle, open := harness.Connect(t, g.s.DSN), harness.Connect(t, g.s.DSN)
	exec := func(c *pgx.Conn, sql string) error {
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		_, err := c.PgConn().Exec(ctx, sql).ReadAll()
		return err
	}
	g.check("begin", exec(open, "SET idle_in_transaction_session_timeout = '1h'; BEGIN"))
	g.check("idle", exec(idle, "SET idle_session_timeout = '1h'; SET statement_timeout = '1h'"))
	done := make(chan error, 1)
	busy := harness.Connect(t, g.s.DSN)
	g.check("busy", exec(busy, "SET statement_timeout = '3s'"))
	began := time.Now()
	go func() { done <- exec(busy, long) }()
	g.wait(500 * time.Millisecond)
	g.check("timeouts", clock.Move(by))
	err := <-done
	took := time.Since(began)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "57014" || took < 2500*time.Millisecond {
		t.Errorf("clock moved by %s: a statement with a limit of 3 s ended after %s with %v", by, took, err)
	}
	if err := exec(open, "SELECT 1; COMMIT"); err != nil {
		t.Errorf("clock moved by %s: an open transaction with a limit of an hour ended: %v", by, err)
	}
	if err := exec(idle, "SELECT 1"); err != nil {
		t.Errorf("clock moved by %s: an idle session with a limit of an hour ended: %v", by, err)
	}
}

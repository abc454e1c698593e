package death

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// via makes a database behind a link of its own.
func via(t *testing.T, pg *pgtest.Server) (source, through string, link *Link) {
	t.Helper()
	source = pg.CreateDatabase(t)
	at, err := pgx.ParseConfig(source)
	must(t, err)
	link = NewLink(t, net.JoinHostPort(at.Host, fmt.Sprint(at.Port)))
	return source, link.Via(at.Database), link
}

// TestBrokenLink breaks the way to the source in every way that a network knows.
func TestBrokenLink(t *testing.T) {
	pg := pgtest.StartPrivate(t, "wal_sender_timeout = '3s'")
	source, through, link := via(t, pg.Server)
	g := newRig(t, options{source: source, via: through, pace: time.Millisecond})
	g.check("before", g.verify())
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"cut", func() { link.Cut(true) }},
		{"cut again and again", func() {
			for range 20 {
				link.Cut(g.r.IntN(2) == 0)
				g.wait(time.Duration(g.r.IntN(300)) * time.Millisecond)
			}
		}},
		{"away for a while", func() {
			link.Down(true)
			link.Cut(false)
			if s := ""; !harness.Until(harness.Patience, func() bool { s = g.state(); return !strings.HasPrefix(s, "running") }) {
				t.Errorf("with the source away the pipeline is %q", s)
			}
			g.wait(time.Second)
			link.Down(false)
		}},
		{"slow", func() { link.Delay(30 * time.Millisecond); g.wait(2 * time.Second) }},
	} {
		for round := range rounds(1) {
			how := fmt.Sprintf("round %d, %s", round, c.name)
			c.do()
			began := time.Now()
			g.check(how, g.verify())
			link.Delay(0)
			t.Logf("%s: everything after %.1f s", how, time.Since(began).Seconds())
		}
	}
	g.s.Kill()
	g.check("at the end", g.s.CheckPosition(source, pipeline))
	g.s.Start()
	g.check("at the end", g.verifyLake())
	g.s.Stop()
}

// TestHalfOpenLink lets the connections to the source fall silent without an end, while
// the pipeline streams, connects, and copies. It takes a minute or so to notice.
func TestHalfOpenLink(t *testing.T) {
	if short() {
		t.Skip("takes minutes: make deaths")
	}
	pg := pgtest.StartPrivate(t, "wal_sender_timeout = '3s'")
	source, through, link := via(t, pg.Server)
	g := newRig(t, options{source: source, via: through, pace: time.Millisecond})
	g.limit = 9 * time.Minute // questions and copies are given up after five
	g.check("before", g.verify())
	for round := range rounds(1) {
		for _, c := range []struct {
			name string
			do   func()
		}{
			{"half open while it streams", func() {}},
			{"half open while it connects", func() {
				link.Delay(20 * time.Millisecond)
				link.Cut(false)
				g.wait(time.Duration(g.r.IntN(600)) * time.Millisecond)
			}},
			{"half open while it copies", func() {
				harness.Exec(t, g.s.DSN, "ALTER PIPELINE "+pipeline+" RESET")
				link.Delay(20 * time.Millisecond)
				g.wait(time.Duration(g.r.IntN(600)) * time.Millisecond)
			}},
		} {
			how := fmt.Sprintf("round %d, %s", round, c.name)
			c.do()
			n := 0
			harness.Until(10*time.Second, func() bool { n = link.Freeze(); return n > 0 })
			link.Delay(0)
			began := time.Now()
			g.check(how, g.verify())
			t.Logf("%s: %d connections, everything after %.1f s", how, n, time.Since(began).Seconds())
		}
	}
	g.s.Stop()
}

// TestSourceRestarts restarts the source at once, without a checkpoint, and lets it run
// out of connections.
func TestSourceRestarts(t *testing.T) {
	pg := pgtest.StartPrivate(t, "max_connections = 20", "superuser_reserved_connections = 3", "synchronous_commit = on")
	g := newRig(t, options{source: pg.CreateDatabase(t)})
	g.check("before", g.verify())
	for round := range rounds(2) {
		g.run(300, time.Second)
		pg.Control(t, "restart", "-m", []string{"immediate", "fast"}[round%2])
		g.check(fmt.Sprintf("round %d, source restarted", round), g.verify())
	}
	pg.Control(t, "stop", "-m", "immediate")
	if s := g.state(); !harness.Until(harness.Patience, func() bool { s = g.state(); return !strings.HasPrefix(s, "running") }) {
		t.Errorf("with the source stopped the pipeline is %q", s)
	}
	if n, err := harness.Text(g.s.DSN, "SELECT count(*) FROM "+pipeline+".balance_a"); err != nil || n != "100" {
		t.Errorf("with the source stopped a read says %q, %v", n, err)
	}
	pg.Control(t, "start")
	g.check("source started", g.verify())

	g.s.Kill()
	idle := occupy(t, g.source)
	g.s.Start()
	g.waitState("too many clients")
	for _, c := range idle {
		_ = c.Close(context.Background()) // the test server's
	}
	g.check("connections again", g.verify())
	g.s.Kill()
	g.check("at the end", g.s.CheckPosition(g.source, pipeline))
	g.s.Start()
	g.check("at the end", g.verifyLake())
	g.s.Stop()
}

// occupy takes all connections that the source has left, and those that the dead server had
// once the source has noticed that it is dead.
func occupy(t *testing.T, dsn string) (idle []*pgx.Conn) {
	t.Helper()
	const dying = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'skipprd'"
	left := 1
	ok := harness.Until(harness.Patience, func() bool {
		last := left
		for {
			c, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				break
			}
			t.Cleanup(func() { _ = c.Close(context.Background()) })
			idle = append(idle, c)
		}
		if len(idle) == 0 {
			return false
		}
		must(t, idle[0].QueryRow(t.Context(), dying).Scan(&left))
		return last == 0 // and what they left is taken since
	})
	if !ok {
		t.Fatalf("%d connections are taken, and %d of the dead server's are there", len(idle), left)
	}
	return idle
}

// TestSlotGone drops the slot, and lets the source invalidate it, while the server is
// away. Going on from now would lose what lies between: the pipeline says so and stands
// still until a RESET.
func TestSlotGone(t *testing.T) {
	pg := pgtest.StartPrivate(t, "max_slot_wal_keep_size = '16MB'", "max_wal_size = '64MB'", "min_wal_size = '32MB'")
	// So slow that the slot is lost when it is meant to be, and not before.
	g := newRig(t, options{source: pg.CreateDatabase(t), pace: 20 * time.Millisecond})
	const slot = "skippr_" + pipeline
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"dropped", func() {
			harness.Exec(t, g.source, "SELECT pg_drop_replication_slot('"+slot+"')")
		}},
		{"lost", func() {
			status := "SELECT wal_status FROM pg_replication_slots WHERE slot_name = '" + slot + "'"
			lost := harness.Until(harness.Patience, func() bool {
				harness.Exec(t, g.source, "SELECT pg_logical_emit_message(false, 'fill', repeat('x', 4000000))", "SELECT pg_switch_wal()", "CHECKPOINT")
				s, err := harness.Text(g.source, status)
				return err == nil && s == "lost"
			})
			if !lost {
				t.Fatal("the source keeps the slot")
			}
		}},
	} {
		g.check("before", g.verify())
		g.s.Stop()
		harness.AwaitSlotFree(t, g.source, pipeline)
		c.do()
		g.run(200, 5*time.Second)
		g.s.Start()
		g.waitState("slot")
		said := g.state()
		g.load.Pause()
		err := g.exec(3*time.Second, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
		g.load.Resume()
		if err == nil {
			t.Errorf("%s: SYNC says that nothing is missing, and the state is %q", c.name, g.state())
		}
		if n, err := harness.Text(g.source, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '"+slot+"' AND wal_status <> 'lost'"); err != nil || n != "0" {
			t.Errorf("%s: a new slot was made without being asked: %s, %v", c.name, n, err)
		}
		g.check(c.name, g.exec(g.limit, "ALTER PIPELINE "+pipeline+" RESET"))
		g.check(c.name+", after RESET", g.verify())
		t.Logf("%s: the pipeline said %q; SYNC said %v", c.name, said, err)
	}
	g.s.Stop()
}

package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/change"
)

// pair is a primary and a standby of it, which is the source.
type pair struct {
	*rig     // of the standby, whose exec runs at the primary
	primary  *pgtest.Private
	standby  *pgtest.Private
	promoted bool
}

// newPair makes a source on a standby of a version.
func newPair(t *testing.T, version int, config []string, statements ...string) *pair {
	t.Helper()
	notShort(t)
	primary := pgtest.StartVersion(t, version, "wal_keep_size = 256MB")
	r := privateRig(t, primary, statements...)
	p := &pair{rig: r, primary: primary, standby: primary.Standby(t, config...)}
	p.reopen()
	return p
}

// notShort leaves a test out that is mostly a wait for servers.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short, and it starts servers of its own")
	}
}

// reopen replaces the source by a new one on the standby.
func (p *pair) reopen() {
	p.Helper()
	p.await()
	if p.src != nil {
		_ = p.src.Close()
	}
	p.src = p.openAs(p.standby.WithDatabase(databaseOf(p.T, p.dsn)))
}

// atStandby is the one value of a query there.
func (p *pair) atStandby(sql string) string {
	p.Helper()
	on := *p.rig
	on.dsn = p.standby.WithDatabase(databaseOf(p.T, p.dsn))
	return on.ask(sql)
}

// await waits until the standby has what its primary has.
func (p *pair) await() {
	p.Helper()
	if p.promoted {
		return
	}
	target := p.inserted()
	awaitThat(p.T, "the standby", func() bool {
		return p.atStandby("SELECT (pg_last_wal_replay_lsn() >= '"+target+"')::text") == "true"
	})
}

// logs has the primary log which transactions run until f returns: a standby waits for
// that before it makes a slot, and a primary that nobody writes to does not.
func (p *pair) logs(f func()) {
	p.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			p.exec("SELECT pg_log_standby_snapshot()")
		}
	}
}

// begin discovers and sets up.
func (p *pair) begin() {
	p.Helper()
	p.await()
	var err error
	p.logs(func() {
		if p.tables, err = p.src.Discover(p.Context(), p.sel); err == nil {
			p.setup, err = p.src.Setup(p.Context(), p.setup.State, p.tables)
		}
	})
	if err != nil {
		p.Fatal(err)
	}
}

// mend runs the SQL of a report where it says, and returns the checks that had failed.
func (p *pair) mend() []string {
	p.Helper()
	var failed []string
	for _, f := range p.findings() {
		if f.OK {
			continue
		}
		failed = append(failed, f.Check)
		if strings.HasPrefix(f.Fix, atPrimary) {
			p.exec(f.Fix)
		} else {
			p.standby.Exec(p, p.standby.DSN, strings.Split(f.Fix, "; ")...)
		}
	}
	p.await()
	return failed
}

// A standby says all that is missing, and where its SQL is to be run; then it is a source
// like a primary, through a crash and its own promotion: nothing is missing, nothing comes
// twice.
func TestStandby(t *testing.T) {
	for _, version := range pgtest.Versions([]int{18}, 16, 17) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testStandby(t, version) })
	}
}

func testStandby(t *testing.T, version int) {
	p := newPair(t, version, nil, "CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE n (v int)",
		"INSERT INTO a SELECT i, 'v' FROM generate_series(1, 100) i", "INSERT INTO n VALUES (1), (1)")
	role := p.loginOnly()
	p.await()
	p.src = p.openAs(strings.Replace(p.standby.WithDatabase(databaseOf(t, p.dsn)), "user=postgres", "user="+userOf(t, role), 1))
	want := []string{"replication right", "hot_standby_feedback", "table public.a", "table public.n", "publication"}
	if got := p.mend(); !slices.Equal(got, want) {
		t.Fatalf("missing %q, want %q", got, want)
	}
	awaitThat(t, "a clean report", func() bool { return len(p.mend()) == 0 })
	if !slices.ContainsFunc(p.findings(), func(f ingest.Finding) bool {
		return f.Check == "slot" && strings.Contains(f.Detail, "pg_log_standby_snapshot()")
	}) {
		t.Error("no word of what a standby waits for")
	}
	told := make(chan string, 100)
	p.src.waiting = func(reason string) {
		select {
		case told <- reason:
		default:
		}
	}
	p.beginTold(told)

	b := p.backfill()
	if a, n := p.copy(b, "a"), p.copy(b, "n"); len(a) != 100 || len(n) != 2 {
		t.Fatalf("copied %d and %d rows", len(a), len(n))
	}
	k := p.stream(p.setup.Start, nil)
	p.exec("INSERT INTO a VALUES (101, 'new'); INSERT INTO n VALUES (2)", "BEGIN; ALTER TABLE a ADD w int DEFAULT 7; UPDATE a SET w = 8 WHERE id = 1; COMMIT",
		"TRUNCATE n")
	k.expect("a insert 101|new", "n insert 2", "a is now 1 id integer, 2 v text, 3 w integer = 7", "a update 1|v|8", "n truncate")
	if s, err := p.src.Status(t.Context()); err != nil || s.Renew || s.Current == "" {
		t.Fatalf("status %+v, %v", s, err)
	}

	p.standby.Control(t, "restart", "-m", "immediate")
	if err := k.end(); !errors.Is(err, ingest.ErrSourceUnavailable) {
		t.Fatalf("a standby that dies: %v", err)
	}
	p.again()
	p.copiedSlot()
	at := max(k.mu.idle, k.mu.last)
	k = p.stream(at, nil)
	p.exec("INSERT INTO n VALUES (3)")
	k.expect("n insert 3")

	p.primary.Control(t, "stop", "-m", "fast")
	p.standby.Control(t, "promote")
	p.promoted = true
	p.dsn, p.server = p.standby.WithDatabase(databaseOf(t, p.dsn)), p.standby.Server
	p.exec("INSERT INTO n VALUES (4)")
	k.expect("n insert 3", "n insert 4")
	if s, err := p.src.Status(t.Context()); err != nil || !s.Renew {
		t.Fatalf("after the promotion: %+v, %v", s, err)
	}
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	// What it has written since is here, and is no history of another server.
	p.again()
	st, err := decodeState(p.setup.State)
	if err != nil || st.Timeline != 2 || st.Standby {
		t.Fatalf("%+v, %v", st, err)
	}
	if version >= 17 {
		awaitThat(t, "the slot to be carried over from now on", func() bool { // once nobody reads it
			p.again()
			return p.ask("SELECT failover::text FROM pg_replication_slots WHERE slot_name = 'skippr_slots'") == "true"
		})
	}
	k = p.stream(max(k.mu.idle, k.mu.last), nil)
	p.exec("INSERT INTO n VALUES (5)")
	k.expect("n insert 5")
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	if left, err := p.src.Teardown(t.Context(), p.setup.State); err != nil || len(left) > 0 {
		t.Fatalf("left %q, %v", left, err)
	}
}

// copiedSlot: a slot that was made at the primary, and copied to the standby by other means
// than the server's, does not become the standby's own by being read there.
func (p *pair) copiedSlot() {
	p.Helper()
	st, err := decodeState(p.setup.State)
	if err != nil || !st.Standby {
		p.Fatalf("%+v, %v", st, err)
	}
	st.Standby = false
	prior, err := st.encode()
	if err != nil {
		p.Fatal(err)
	}
	out, err := p.src.Setup(p.Context(), prior, p.tables)
	if err != nil {
		p.Fatal(err)
	}
	if st, err = decodeState(out.State); err != nil || st.Standby {
		p.Fatalf("%+v, %v", st, err)
	}
}

// beginTold is begin on a primary that rests until it is told that its standby waits.
func (p *pair) beginTold(told <-chan string) {
	p.Helper()
	done := make(chan error, 1)
	go func() {
		var err error
		if p.tables, err = p.src.Discover(p.Context(), p.sel); err == nil {
			p.setup, err = p.src.Setup(p.Context(), nil, p.tables)
		}
		done <- err
	}()
	for waits := true; waits; {
		select {
		case reason := <-told:
			waits = !strings.Contains(reason, "pg_log_standby_snapshot()")
		case err := <-done: // its primary has logged by itself
			if err != nil {
				p.Fatal(err)
			}
			return
		}
	}
	p.logs(func() {
		if err := <-done; err != nil {
			p.Error(err)
		}
	})
}

// again is a new session: the source is made anew, with what is durable, and set up.
func (p *pair) again() {
	p.Helper()
	durable := change.Position(fmt.Sprintf("%X/%X", p.src.acked.Load()>>32, uint32(p.src.acked.Load())))
	p.reopen()
	p.src.durable, _ = parseLSN(durable)
	var err error
	awaitThat(p.T, "the server", func() bool {
		var out ingest.SetupResult
		out, err = p.src.Setup(p.Context(), p.setup.State, p.tables)
		if err == nil {
			out.Start = p.setup.Start
			p.setup = out
		}
		return err == nil || !errors.Is(err, ingest.ErrSourceUnavailable)
	})
	if err != nil {
		p.Fatal(err)
	}
}

func userOf(t *testing.T, dsn string) string {
	t.Helper()
	for word := range strings.FieldsSeq(dsn) {
		if user, ok := strings.CutPrefix(word, "user="); ok {
			return user
		}
	}
	t.Fatalf("no user in the address")
	return ""
}

// A slot that a standby loses is found lost, with why, and with what prevents that: while
// the pipeline streams, while it rests, and when it begins again.
func TestStandbySlotLost(t *testing.T) {
	vacuum := func(p *pair) {
		p.exec("CREATE TABLE gone (id int)", "DROP TABLE gone", "VACUUM pg_class, pg_attribute, pg_type, pg_depend", "INSERT INTO a VALUES (2) ON CONFLICT DO NOTHING")
	}
	cases := []struct {
		version    int
		name, want string
		lose       func(p *pair)
	}{
		{16, "rows", "slot skippr_slots of the standby was in conflict with its primary: ", vacuum},
		{17, "rows", "with hot_standby_feedback = on, ", vacuum},
		{18, "wal_level", "wal_level of the primary is no longer logical", func(p *pair) {
			if p.ask("SHOW wal_level") == "logical" {
				p.exec("ALTER SYSTEM SET wal_level = replica")
				p.primary.Control(p.T, "restart", "-m", "fast")
			}
		}},
	}
	for _, c := range cases {
		if !slices.Contains(pgtest.Versions([]int{16, 18}, 17), c.version) {
			continue
		}
		t.Run(fmt.Sprintf("%d %s", c.version, c.name), func(t *testing.T) {
			p := newPair(t, c.version, []string{"hot_standby_feedback = on", "wal_receiver_status_interval = 1s", "max_standby_streaming_delay = 0"},
				"CREATE TABLE a (id int PRIMARY KEY)", "CREATE PUBLICATION skippr_slots FOR ALL TABLES")
			p.begin()
			k := p.stream(p.setup.Start, nil)
			p.exec("INSERT INTO a VALUES (1)")
			k.expect("a insert 1")
			p.standby.Exec(t, p.standby.DSN, "ALTER SYSTEM SET hot_standby_feedback = off", "SELECT pg_reload_conf()")
			awaitThat(t, "the primary to hold nothing back", func() bool {
				return p.ask("SELECT count(*)::text FROM pg_stat_replication WHERE backend_xmin IS NOT NULL") == "0"
			})
			var watched ingest.SourceStatus
			awaitThat(t, "the slot to be lost", func() bool {
				var err error
				c.lose(p) // perhaps not at once: a snapshot of another session can be in the way
				watched, err = p.src.Watch(t.Context(), p.setup.State)
				return err == nil && strings.Contains(watched.Warning, c.want)
			})
			if err := k.end(); err == nil {
				t.Fatal("the stream ended well")
			}
			_, err := p.src.Setup(t.Context(), p.setup.State, p.tables)
			if !errors.Is(err, ErrSlotLost) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "public.a: ALTER PIPELINE slots RESET;") {
				t.Fatalf("got %v, status %+v", err, watched)
			}
			if c.name != "wal_level" {
				return
			}
			// What a new pipeline would be told, and how it is mended.
			p.standby.Exec(t, p.standby.DSN, "DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'skippr_slots' AND active) LOOP "+
				"PERFORM pg_sleep(0.02); END LOOP; END $$", "SELECT pg_drop_replication_slot('skippr_slots')")
			p.src = p.openAs(p.standby.WithDatabase(databaseOf(t, p.dsn)))
			if _, err := p.src.Setup(t.Context(), nil, p.tables); err == nil || !strings.Contains(err.Error(), "(fix: /* at the primary */ ALTER SYSTEM SET wal_level = logical;") {
				t.Fatalf("set up: %v", err)
			}
			if got := p.mend(); !slices.Equal(got, []string{"wal_level of the primary", feedbackName}) {
				t.Fatalf("missing %q", got)
			}
			p.primary.Control(t, "restart", "-m", "fast")
			awaitThat(t, "a clean report", func() bool { return len(p.mend()) == 0 })
		})
	}
}

// A pipeline that reads a primary, led to its standby, waits: for the primary, or for the
// promotion. Nothing is lost yet.
func TestStandbyInstead(t *testing.T) {
	for _, version := range pgtest.Versions([]int{17}, 16) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			notShort(t)
			primary := pgtest.StartVersion(t, version)
			r := privateRig(t, primary, "CREATE TABLE a (id int PRIMARY KEY)", "SELECT pg_create_physical_replication_slot('standby')")
			config := []string{"primary_slot_name = 'standby'", "hot_standby_feedback = on"}
			if version >= 17 {
				config = append(config, "sync_replication_slots = on")
			}
			standby := primary.Standby(t, config...)
			r.begin()
			p := &pair{rig: r, primary: primary, standby: standby}
			if version >= 17 {
				r.stream(r.setup.Start, nil) // moves the slot on, so that it can be carried over
				awaitThat(t, "the slot on the standby", func() bool {
					r.exec("SELECT pg_log_standby_snapshot()")
					return p.atStandby("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'skippr_slots' AND synced AND NOT temporary") == "1"
				})
			}
			p.reopen()
			if _, err := p.src.Setup(t.Context(), r.setup.State, r.tables); !errors.Is(err, ingest.ErrSourceUnavailable) || errors.Is(err, ingest.ErrLost) ||
				!strings.Contains(err.Error(), "TARGET_SESSION_ATTRS 'read-write'") {
				t.Fatalf("got %v", err)
			}
			// Nor does it make anything there, or take the other's publication.
			p.opts = map[string]string{"slot_name": "another"}
			p.reopen()
			if _, err := p.src.Setup(t.Context(), nil, r.tables); err == nil || !strings.Contains(err.Error(), "choose another name with the option publication") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// A slot that nobody reads for as long as the server allows is lost, and the report warns
// of it.
func TestSlotIdleTooLong(t *testing.T) {
	notShort(t)
	p := pgtest.StartVersion(t, 18, "idle_replication_slot_timeout = '1s'")
	r := privateRig(t, p, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	if !slices.ContainsFunc(r.setup.Warnings, func(w string) bool { return strings.Contains(w, "idle_replication_slot_timeout is 1s") }) {
		t.Errorf("warnings %q", r.setup.Warnings)
	}
	var err error
	awaitThat(t, "the slot to be lost", func() bool {
		r.exec("CHECKPOINT")
		_, err = r.src.Setup(t.Context(), r.setup.State, r.tables)
		return err != nil
	})
	if !errors.Is(err, ErrSlotLost) || !strings.Contains(err.Error(), "as long as idle_replication_slot_timeout allows") {
		t.Fatalf("got %v", err)
	}
}

// The primary of a source that is a standby fails, and another standby is promoted, which
// the source then follows: the stream goes on, and so does the next session, on the new
// timeline, with all that came of it before.
func TestStandbyFollowsAnother(t *testing.T) {
	p := newPair(t, 18, []string{"hot_standby_feedback = on"}, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE PUBLICATION skippr_slots FOR ALL TABLES")
	next := p.primary.Standby(t)
	p.begin()
	k := p.stream(p.setup.Start, nil)
	p.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	p.await()
	target, on := p.inserted(), *p.rig
	on.dsn = next.WithDatabase(databaseOf(t, p.dsn))
	awaitThat(t, "the other standby", func() bool { return on.ask("SELECT (pg_last_wal_replay_lsn() >= '"+target+"')::text") == "true" })
	p.primary.Control(t, "stop", "-m", "fast")
	next.Control(t, "promote")
	p.standby.Exec(t, p.standby.DSN, "ALTER SYSTEM SET primary_conninfo = '"+next.DSN+"'", "SELECT pg_reload_conf()")
	p.dsn, p.server = on.dsn, next.Server
	p.exec("INSERT INTO a VALUES (2)")
	k.expect("a insert 1", "a insert 2")
	if s, err := p.src.Status(t.Context()); err != nil || s.Renew {
		t.Fatalf("it is a standby still: %+v, %v", s, err)
	}
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	p.again()
	st, err := decodeState(p.setup.State)
	if err != nil || st.Timeline != 2 || !st.Standby {
		t.Fatalf("%+v, %v", st, err)
	}
	k = p.stream(max(k.mu.idle, k.mu.last), nil)
	p.exec("INSERT INTO a VALUES (3)")
	k.expect("a insert 3")
}

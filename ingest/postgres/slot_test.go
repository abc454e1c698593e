package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// privateRig is a rig on a server of the test's own.
func privateRig(t *testing.T, p *pgtest.Private, statements ...string) *rig {
	t.Helper()
	r := &rig{
		T: t, server: p.Server, dsn: p.CreateDatabase(t), name: "slots", sel: catalog.TableSelection{AllTables: true},
		opts: map[string]string{}, ids: map[string]change.TableID{},
	}
	r.exec(statements...)
	r.reopen()
	return r
}

// awaitThat polls until ok, or fails the test.
func awaitThat(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("awaiting %s: too long", what)
}

// inserted is the end of the server's log, be it written yet or not.
func (r *rig) inserted() string {
	r.Helper()
	at, err := parseLSN(pos(r.ask("SELECT pg_current_wal_insert_lsn()::text")))
	if err != nil {
		r.Fatal(err)
	}
	return at.RecordEnd().String()
}

// Making a slot waits for transactions that are open, locks nothing of the user's, says
// for whom it waits, and ends at once when nobody wants it any more: no slot is left
// then, not even when those transactions end later.
func TestSlotWaits(t *testing.T) {
	const secret = "topsecret"
	for _, prepared := range []bool{false, true} {
		t.Run(map[bool]string{false: "session", true: "prepared"}[prepared], func(t *testing.T) {
			r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)")
			conn, err := pgx.Connect(t.Context(), r.dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(context.Background()) }()
			want, end := "of postgres, open since ", "ROLLBACK"
			sql := []string{"BEGIN", "INSERT INTO a VALUES (1, '" + secret + "')"}
			if prepared {
				sql, want, end = append(sql, "PREPARE TRANSACTION 'gid_"+r.name+"'"), "prepared transaction 'gid_"+r.name+"'", "ROLLBACK PREPARED 'gid_"+r.name+"'"
			}
			for _, s := range sql {
				if _, err := conn.Exec(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			var told []string
			r.src.waiting = func(reason string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, reason)
			}
			tables, err := r.src.Discover(t.Context(), r.sel)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := r.src.Setup(ctx, nil, tables)
				done <- err
			}()
			awaitThat(t, "who is waited for", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, want) })
			})
			cancel()
			if err := <-done; !errors.Is(err, ingest.ErrSourceUnavailable) && !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
			if all := strings.Join(told, "\n"); strings.Contains(all, secret) || told[len(told)-1] != "" {
				t.Fatalf("told %q", told)
			}
			none := func() bool {
				return r.ask("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'skippr_"+r.name+"'") == "0"
			}
			awaitThat(t, "the slot to go", none)
			if _, err := conn.Exec(t.Context(), end); err != nil {
				t.Fatal(err)
			}
			if !none() {
				t.Fatal("a slot was made that nobody knows of")
			}
			r.begin()
		})
	}
}

// A comparison that waits for open transactions says so, and when nobody wants it any more
// the server gives up at once.
func TestMomentWaits(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	conn, err := pgx.Connect(t.Context(), r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO a VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan string, 1000)
	done := make(chan error, 1)
	go func() {
		_, err := r.src.Freeze(ctx, r.setup.State, 0, func(reason string) { told <- reason })
		done <- err
	}()
	for reason := ""; !strings.Contains(reason, "for a transaction of process"); {
		select {
		case reason = <-told:
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Fatal("it read a moment")
	}
	awaitThat(t, "the slot to go", func() bool {
		return r.ask("SELECT count(*)::text FROM pg_replication_slots WHERE temporary AND database = current_database()") == "0"
	})
}

// A table that somebody alters is not waited for without an end: what is in the way is
// said, and the attempt is repeated.
func TestPublicationWaitsBriefly(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	conn, err := pgx.Connect(t.Context(), r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tables, err := r.src.Discover(t.Context(), r.sel)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE a IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.src.Setup(t.Context(), nil, tables); !errors.Is(err, ingest.ErrSourceUnavailable) || !strings.Contains(err.Error(), "holds a lock on a table") {
		t.Fatalf("got %v", err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	r.begin()
}

// A slot that the server lets go of, because the pipeline fell too far behind, is seen
// while that can be seen, and never passed over: what needs a new copy is named.
func TestSlotFallsBehind(t *testing.T) {
	// No checkpoint but the test's own: at one the server lets go.
	p := pgtest.StartPrivate(t, "max_slot_wal_keep_size = 32MB", "min_wal_size = 32MB", "checkpoint_timeout = 1d")
	r := privateRig(t, p, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)", "CREATE TABLE noise (v text)")
	r.sel.AllTables, r.sel.Tables = false, selected("a", "b")
	r.reopen()
	r.begin()
	k := r.stream(r.setup.Start, nil)
	k.mu.noAck = true
	r.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	status := func() ingest.SourceStatus {
		t.Helper()
		s, err := r.src.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := status()
	if before.SlotState != "reserved" || !before.Limited || before.SafeBytes <= 0 || before.Warning != "" || before.WrittenBytes == 0 {
		t.Fatalf("%+v", before)
	}
	write := func() { r.exec("INSERT INTO noise SELECT repeat(md5(g::text), 30) FROM generate_series(1, 20000) g") }
	var seen []string
	for range 8 {
		write()
		s := status()
		if s.SafeBytes > before.SafeBytes {
			t.Fatalf("safe bytes grew to %d", s.SafeBytes)
		}
		if s.Warning != "" {
			seen = append(seen, s.SlotState+": "+s.Warning)
			break
		}
	}
	if len(seen) == 0 || !strings.Contains(seen[0], "unreserved: the source may drop log") {
		t.Fatalf("warnings: %q", seen)
	}
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	write()
	r.exec("CHECKPOINT", "CHECKPOINT")
	r.reopen()
	check := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrSlotLost) || !strings.Contains(err.Error(), "public.a, public.b: ALTER PIPELINE slots RESET;") {
			t.Fatalf("got %v", err)
		}
	}
	_, err := r.src.Setup(t.Context(), r.setup.State, r.tables)
	check(err)
	watched, err := r.src.Watch(t.Context(), r.setup.State)
	if err != nil || watched.SlotState != "lost" || watched.Warning == "" {
		t.Fatalf("%+v, %v", watched, err)
	}
}

// A server that was restored from a copy has less than is durable here. It is never
// streamed from as if nothing were missing.
func TestServerBehind(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	if err := r.stream("7FFF/0", nil).end(); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "7FFF/0") {
		t.Fatalf("got %v", err)
	}
}

func TestForkOf(t *testing.T) {
	const history = "1\t0/3000148\tno recovery target specified\n\n# words\n2\t0/5000000\tbefore 2026\n12\tnonsense\tx\n"
	for timeline, want := range map[int32]string{1: "0/3000148", 2: "0/5000000"} {
		if at, ok := forkOf(history, timeline); !ok || at.String() != want {
			t.Errorf("timeline %d: %s %v", timeline, at, ok)
		}
	}
	for _, timeline := range []int32{0, 3, 12} {
		if at, ok := forkOf(history, timeline); ok {
			t.Errorf("timeline %d: %s", timeline, at)
		}
	}
}

// The standby of a source is promoted. With the slot there, the pipeline goes on where
// it was; without the slot, or when the standby had not all that is durable here, it
// says so.
func TestPromotion(t *testing.T) {
	primary := pgtest.StartPrivate(t, "wal_keep_size = 256MB")
	r := privateRig(t, primary, "CREATE TABLE a (id int PRIMARY KEY)")
	carried, bare := primary.Standby(t, "hot_standby_feedback = on"), primary.Standby(t)
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	at := max(k.mu.idle, k.mu.last)

	r.exec("INSERT INTO a VALUES (2)")
	target := r.inserted()
	for _, s := range []*pgtest.Private{carried, bare} {
		on := *r
		on.dsn = s.DSN
		awaitThat(t, "the standby", func() bool { return on.ask("SELECT (pg_last_wal_replay_lsn() >= '"+target+"')::text") == "true" })
	}
	// As fail-over managers do before version 17: they copy the slot's file. With it go the
	// snapshots, without which its first transactions may be skipped.
	carried.Control(t, "stop", "-m", "fast")
	copied, _ := filepath.Glob(filepath.Join(primary.DataDir(), "pg_logical", "snapshots", "*.snap"))
	for _, path := range append(copied, filepath.Join(primary.DataDir(), "pg_replslot", "skippr_slots", "state")) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(primary.DataDir(), path)
		if err != nil {
			t.Fatal(err)
		}
		carried.Write(t, name, content)
	}
	carried.Control(t, "start")
	primary.Control(t, "stop", "-m", "immediate")
	name := databaseOf(t, r.dsn)
	goOver := func(s *pgtest.Private, durable string) *rig {
		t.Helper()
		s.Control(t, "promote")
		on := *r
		on.server, on.dsn, on.T = s.Server, s.WithDatabase(name), t
		on.src = nil
		on.reopen()
		on.src.durable, _ = parseLSN(pos(durable))
		return &on
	}

	t.Run("with slot", func(t *testing.T) {
		on := goOver(carried, string(at))
		on.exec("INSERT INTO a VALUES (3)")
		again, err := on.src.Setup(t.Context(), r.setup.State, r.tables)
		if err != nil {
			t.Fatal(err)
		}
		st, err := decodeState(again.State)
		if err != nil || st.Timeline != 2 || !strings.Contains(strings.Join(again.Warnings, ";"), "VERIFY PIPELINE tells") {
			t.Fatalf("%+v, %v, warnings %q", st, err, again.Warnings)
		}
		k := on.stream(at, nil)
		k.expect("a insert 2", "a insert 3")
		if err := k.stop(); err != nil {
			t.Fatal(err)
		}
		// What the old primary had and this one never got is not to be taken for here.
		on.reopen()
		on.src.durable, _ = parseLSN("1/0")
		if _, err := on.src.Setup(t.Context(), r.setup.State, r.tables); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "1/0") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("without slot", func(t *testing.T) {
		on := goOver(bare, string(at))
		if _, err := on.src.Setup(t.Context(), r.setup.State, r.tables); !errors.Is(err, ErrSlotLost) ||
			!strings.Contains(err.Error(), "public.a: ALTER PIPELINE slots RESET;") {
			t.Fatalf("got %v", err)
		}
	})
}

// From version 17 on the server itself carries the slot over to a standby, and after a
// promotion the pipeline goes on there.
func TestFailoverSlot(t *testing.T) {
	for _, version := range pgtest.Versions([]int{17}, 18) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testFailoverSlot(t, version) })
	}
}

func testFailoverSlot(t *testing.T, version int) {
	notShort(t)
	primary := pgtest.StartVersion(t, version)
	r := privateRig(t, primary, "CREATE TABLE a (id int PRIMARY KEY)", "SELECT pg_create_physical_replication_slot('standby')")
	standby := primary.Standby(t, "primary_slot_name = 'standby'", "hot_standby_feedback = on", "sync_replication_slots = on")
	r.begin()
	if f := r.ask("SELECT failover::text FROM pg_replication_slots WHERE slot_name = 'skippr_slots'"); f != "true" {
		t.Fatalf("failover %s", f)
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	on := *r
	on.dsn, on.server, on.src = standby.WithDatabase(databaseOf(t, r.dsn)), standby.Server, nil
	awaitThat(t, "the slot on the standby", func() bool {
		r.exec("SELECT pg_log_standby_snapshot()") // moves the slot on, so that it can be carried over
		return on.ask("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'skippr_slots' AND synced AND NOT temporary") == "1"
	})
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	at := max(k.mu.idle, k.mu.last)
	r.exec("INSERT INTO a VALUES (2)")
	target := r.inserted()
	awaitThat(t, "the standby", func() bool { return on.ask("SELECT (pg_last_wal_replay_lsn() >= '"+target+"')::text") == "true" })
	primary.Control(t, "stop", "-m", "immediate")
	standby.Control(t, "promote")
	on.reopen()
	on.src.durable, _ = parseLSN(at)
	on.begin()
	k = on.stream(at, nil)
	on.exec("INSERT INTO a VALUES (3)")
	k.expect("a insert 2", "a insert 3")
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Database
}

// A heartbeat is written when others write and nothing is acknowledged, once an
// interval, and never into a server that rests, nor a standby, nor where it is refused.
func TestHeartbeatDue(t *testing.T) {
	fake := env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	s := newSource(config{heartbeat: 10 * time.Second}, ingest.SourceDeps{Clock: fake})
	step := func(elapsed time.Duration, confirmed, current LSN, want bool) {
		t.Helper()
		fake.Advance(elapsed)
		if got := s.beatDue(settings{}, slot{confirmed: confirmed, current: current}); got != want {
			t.Fatalf("confirmed %d, current %d: %v", confirmed, current, got)
		}
	}
	step(0, 10, 20, false)
	step(11*time.Second, 10, 20, false) // nobody writes
	step(1*time.Second, 10, 30, false)
	step(10*time.Second, 10, 40, true)
	step(1*time.Second, 10, 50, false) // too soon
	step(10*time.Second, 55, 60, false)
	step(10*time.Second, 65, 65, false) // all is acknowledged
	step(1*time.Second, 65, 70, false)
	step(10*time.Second, 65, 80, true)
	if s.beatDue(settings{recovery: true}, slot{confirmed: 1, current: 1 << 40}) {
		t.Fatal("on a standby")
	}
	s.mu.beat.refused = true
	step(11*time.Second, 65, 90, false)
}

// A server is to note which transactions run where it keeps much although all is
// acknowledged, and the role may have it do so.
func TestNoteDue(t *testing.T) {
	s := newSource(config{heartbeat: 10 * time.Second}, ingest.SourceDeps{})
	step := func(v settings, sl slot, want bool) {
		t.Helper()
		if got := s.noteDue(v, sl); got != want {
			t.Fatalf("%+v: %v", sl, got)
		}
	}
	const mb = 1 << 20
	may := settings{notes: true}
	step(may, slot{confirmed: 1 * mb, current: 2 * mb, retained: 2 * mb}, false) // it keeps little
	step(settings{}, slot{confirmed: 9 * mb, current: 9 * mb, retained: 8 * mb}, false)
	step(settings{notes: true, recovery: true}, slot{confirmed: 9 * mb, current: 9 * mb, retained: 8 * mb}, false)
	step(may, slot{confirmed: 9 * mb, current: 9 * mb, retained: 8 * mb}, true)
	step(may, slot{confirmed: 10 * mb, current: 10 * mb, retained: 9 * mb}, false) // not much since
	step(may, slot{confirmed: 9 * mb, current: 19 * mb, retained: 19 * mb}, false) // nothing is acknowledged
	step(may, slot{confirmed: 18 * mb, current: 19 * mb, retained: 19 * mb}, true)
	s.cfg.heartbeat = 0
	step(may, slot{confirmed: 99 * mb, current: 99 * mb, retained: 99 * mb}, false)
}

// TestNote: a role that may gets a server rid of what it keeps for the slot, though that
// notes nothing by itself meanwhile; another does not try.
func TestNote(t *testing.T) {
	notShort(t)
	p := pgtest.StartVersion(t, 16)
	r := privateRig(t, p, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE noise (v text)", "ALTER TABLE noise ALTER v SET STORAGE EXTERNAL",
		"CREATE ROLE few LOGIN REPLICATION")
	r.sel = catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "public", Name: "a"}}}
	r.reopen()
	r.begin()
	k := r.stream(r.setup.Start, nil)
	look := func() ingest.SourceStatus {
		at := change.Position(r.inserted())
		k.await("what was written", func() bool { return r.src.Compare(k.mu.idle, at) >= 0 })
		r.src.Ack(at)
		awaitThat(t, "the acknowledgement", func() bool {
			return r.ask("SELECT (confirmed_flush_lsn >= '"+string(at)+"')::text FROM pg_replication_slots") == "true"
		})
		out, err := r.src.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	awaitThat(t, "much that is kept", func() bool { // unless the server notes by itself in this instant
		r.exec("INSERT INTO noise SELECT repeat('x', 1048576) FROM generate_series(1, 12)")
		return look().RetainedBytes >= 12<<20
	})
	if r.src.mu.beat.noted.current == 0 {
		t.Error("nothing was to be noted")
	}
	awaitThat(t, "less that is kept", func() bool { return look().RetainedBytes < 4<<20 })
	err := r.src.withControl(t.Context(), func(conn *pgx.Conn) error {
		v, err := readSettings(t.Context(), conn)
		if err != nil || !v.notes {
			t.Errorf("the superuser may: %v, %v", v.notes, err)
		}
		if err := run(t.Context(), conn.PgConn(), "SET ROLE few"); err != nil {
			return err
		}
		if v, err = readSettings(t.Context(), conn); err != nil || v.notes {
			t.Errorf("another role may: %v, %v", v.notes, err)
		}
		return run(t.Context(), conn.PgConn(), "RESET ROLE")
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The message that a heartbeat is reaches nobody, and the stream passes it.
func TestHeartbeat(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	err := r.src.withControl(t.Context(), func(conn *pgx.Conn) error {
		r.src.emit(t.Context(), conn)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	at := change.Position(r.inserted())
	k.await("the heartbeat", func() bool { return r.src.Compare(k.mu.idle, at) >= 0 })
	if len(k.mu.lines) != 0 {
		t.Fatalf("lines %q", k.mu.lines)
	}
	const each = "DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP " +
		"EXECUTE format('%s EXECUTE ON FUNCTION %%s %s PUBLIC', f); END LOOP; END $$"
	r.exec("CREATE ROLE mute_"+r.name+" LOGIN REPLICATION", fmt.Sprintf(each, "REVOKE", "FROM"))
	defer r.exec(fmt.Sprintf(each, "GRANT", "TO"), "DROP ROLE mute_"+r.name)
	conn, err := pgx.Connect(t.Context(), strings.Replace(r.dsn, "user=postgres", "user=mute_"+r.name, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	r.src.emit(t.Context(), conn)
	if !r.src.mu.beat.refused {
		t.Fatal("the refusal is not noted")
	}
}

// Pipelines side by side on one database have a slot and publications each, and stream
// alike. One that is given the slot or the publication of another is told so, whether
// the other runs or rests, and harms nothing.
func TestSeveralPipelines(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	second := *r
	second.name, second.src, second.setup = r.name+"b", nil, ingest.SetupResult{}
	second.reopen()
	second.begin()
	r.exec("INSERT INTO a VALUES (1)")
	for _, p := range []*rig{r, &second} {
		k := p.stream(p.setup.Start, nil)
		k.expect("a insert 1")
		if err := k.stop(); err != nil {
			t.Fatal(err)
		}
	}
	third := *r
	third.name, third.src, third.setup = r.name+"c", nil, ingest.SetupResult{}
	for options, want := range map[string]string{
		"slot_name":   "replication slot skippr_" + r.name + " exists and is not of this pipeline",
		"publication": "publication skippr_" + r.name + " is of another pipeline, with replication slot skippr_" + r.name,
	} {
		third.opts = map[string]string{options: "skippr_" + r.name}
		third.reopen()
		var setup *SetupError
		if _, err := third.src.Setup(t.Context(), nil, r.tables); !errors.As(err, &setup) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", options, err)
		}
		if _, err := third.src.Teardown(t.Context(), nil); !errors.As(err, &setup) {
			t.Errorf("%s: torn down: %v", options, err)
		}
	}
	r.restsUntouched()
	r.reopen()
	r.begin()
	if n := r.ask("SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) || ' ' || (SELECT count(*) FROM pg_publication)"); n != "2 4" {
		t.Errorf("slots and publications: %s", n)
	}
}

// restsUntouched: the slot of a pipeline that has not acknowledged anything, and rests, is
// not taken by one whose name becomes the same, nor when that one is dropped.
func (r *rig) restsUntouched() {
	r.Helper()
	idle := *r
	idle.name, idle.src, idle.setup, idle.opts = r.name+"_d", nil, ingest.SetupResult{}, nil
	idle.reopen()
	idle.begin()
	_ = idle.src.Close()
	slot := "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'skippr_" + idle.name + "'"
	before := r.ask(slot)
	twin := idle
	twin.src, twin.setup = nil, ingest.SetupResult{}
	twin.reopen()
	twin.src.others = func() [][]byte { return [][]byte{nil, []byte("{"), idle.setup.State} }
	var setup *SetupError
	if _, err := twin.src.Setup(r.Context(), nil, r.tables); !errors.As(err, &setup) || !strings.Contains(err.Error(), "of another pipeline here") {
		r.Errorf("the slot of a pipeline that rests: %v", err)
	}
	if _, err := twin.src.Teardown(r.Context(), nil); !errors.As(err, &setup) {
		r.Errorf("torn down: %v", err)
	}
	if after := r.ask(slot); after == "" || after != before {
		r.Errorf("the slot was at %s and is at %q", before, after)
	}
	if _, err := idle.src.Teardown(r.Context(), idle.setup.State); err != nil {
		r.Fatal(err)
	}
}

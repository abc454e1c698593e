package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestSynchronousStandby: a server that takes the stream itself for the synchronous standby of
// a commit, which the description of a table waits for, goes by its other standby meanwhile;
// afterwards the stream tells of what it has, as before.
func TestSynchronousStandby(t *testing.T) {
	p := pgtest.StartPrivate(t, "synchronous_standby_names = '*'", "synchronous_commit = local")
	r := privateRig(t, p, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
	r.exec("SELECT pg_create_physical_replication_slot('other')")
	r.begin()
	sink := r.stream("", nil)
	r.exec("INSERT INTO a VALUES (1)")
	sink.await("the first row", func() bool { return sink.mu.last != "" })
	r.src.Ack(sink.position())
	standby := func() string {
		return r.ask("SELECT coalesce(string_agg(application_name, ' ' ORDER BY application_name), '') FROM pg_stat_replication WHERE sync_state = 'sync'")
	}
	awaitThat(t, "a server that takes the stream for its standby", func() bool { return standby() == "skipprd" })

	status, err := r.src.Status(t.Context())
	if err != nil || !strings.Contains(status.Warning, "synchronous_standby_names") {
		t.Errorf("status %+v, %v", status, err)
	}
	cfg, err := pgconn.ParseConfig(r.dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["replication"], cfg.RuntimeParams["application_name"] = "true", "other"
	other, err := pgconn.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(other) })
	at, err := pglogrepl.ParseLSN(r.ask("SELECT pg_current_wal_flush_lsn()::text"))
	if err != nil {
		t.Fatal(err)
	}
	err = pglogrepl.StartReplication(t.Context(), other, "other", at, pglogrepl.StartReplicationOptions{Mode: pglogrepl.PhysicalReplication})
	if err != nil {
		t.Fatal(err)
	}
	has := func() { // all that is to come, too
		err := pglogrepl.SendStandbyStatusUpdate(t.Context(), other, pglogrepl.StandbyStatusUpdate{
			WALWritePosition: at + 1<<30, WALFlushPosition: at + 1<<30, WALApplyPosition: at + 1<<30,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	has()
	written := make(chan error, 1)
	writer := r.connect()
	go func() {
		_, err := writer.Exec(t.Context(), "SET synchronous_commit = on; BEGIN; ALTER TABLE b ADD v int; INSERT INTO b VALUES (1, 7); COMMIT")
		written <- err
	}()
	awaitThat(t, "a commit that does not wait for the stream", func() bool {
		has()
		return len(written) > 0
	})
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	before := sink.position()
	sink.await("the row", func() bool { return sink.mu.last != before })
	r.src.Ack(sink.position())
	awaitThat(t, "a stream that tells of what it has", func() bool {
		return r.ask("SELECT (confirmed_flush_lsn >= '"+string(sink.position())+"')::text FROM pg_replication_slots WHERE slot_type = 'logical'") == "true"
	})
}

// TestIsStandby: the names that mean a pipeline's own stream.
func TestIsStandby(t *testing.T) {
	for names, want := range map[string]bool{
		"": false, "*": true, "FIRST 1 (*)": true, "ANY 2 (a, skipprd, b)": true, `1 ("SkipprD")`: true, "skipprd": true,
		"a": false, "FIRST 1 (a, skipprd2)": false,
	} {
		v := settings{synchronous: names, application: "skipprd"}
		if got := v.isStandby(); got != want {
			t.Errorf("%q: %v", names, got)
		}
		if v.recovery = true; v.isStandby() {
			t.Errorf("%q: at a standby", names)
		}
	}
}

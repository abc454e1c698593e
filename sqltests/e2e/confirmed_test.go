package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestConfirmedAfterReset: a RESET makes a slot that begins ahead of all that the log has.
// With a source at rest nothing is streamed from it, and what is acknowledged is not more
// than the slot's beginning, before which the copy has everything. What is acknowledged
// beyond is found. A catalog that is lost then comes back with the slot's beginning.
func TestConfirmedAfterReset(t *testing.T) {
	t.Parallel()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	s := harness.New(t, t.TempDir())
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE c FROM POSTGRES "+quoted(source)+" FOR ALL TABLES")
	drain(t, s.DSN, "c")
	harness.Exec(t, source, "INSERT INTO t VALUES (2)")
	drain(t, s.DSN, "c")
	if !harness.Until(harness.Patience, func() bool {
		at, err := s.LogPosition()
		return err == nil && at != ""
	}) {
		t.Fatal("the log has no position")
	}

	harness.Exec(t, s.DSN, "ALTER PIPELINE c RESET")
	drain(t, s.DSN, "c")
	s.Kill()
	logged, err := s.LogPosition()
	if err != nil {
		t.Fatal(err)
	}
	start, err := harness.SlotStart(source, "c")
	if err != nil {
		t.Fatal(err)
	}
	got := sourceText(t, source, "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'skippr_c'")
	switch ahead := sourceText(t, source, "SELECT '"+start+"'::pg_lsn > '"+logged+"'::pg_lsn"); {
	case ahead != "t": // it was alive for long enough to note that it is idle
		t.Logf("the slot began at %s, the log is at %s", start, logged)
	case got != start:
		t.Errorf("acknowledged up to %s, the slot began at %s, and the log ends at %s", got, start, logged)
	}
	if err := s.CheckPosition(source, "c"); err != nil {
		t.Error(err)
	}

	if err := os.RemoveAll(filepath.Join(s.DataDir, "catalog")); err != nil {
		t.Fatal(err)
	}
	harness.Exec(t, source, "INSERT INTO t VALUES (3)")
	s.Start()
	drain(t, s.DSN, "c")
	if got, err := harness.Text(s.DSN, "SELECT string_agg(id::text, ',' ORDER BY id) FROM c.t"); err != nil || got != "1,2,3" {
		t.Errorf("after the loss of the catalog: rows %s, %v", got, err)
	}
	s.Kill()
	if err := s.CheckPosition(source, "c"); err != nil {
		t.Error(err)
	}

	harness.AwaitSlotFree(t, source, "c")
	harness.Exec(t, source, "SET synchronous_commit = on", "INSERT INTO t VALUES (4)",
		"SELECT pg_replication_slot_advance('skippr_c', pg_current_wal_lsn())")
	if err := s.CheckPosition(source, "c"); err == nil || !strings.Contains(err.Error(), "is ahead of") {
		t.Errorf("a slot moved on past what is here: %v", err)
	}
}

func sourceText(t *testing.T, source, sql string) string {
	t.Helper()
	text, err := harness.Text(source, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

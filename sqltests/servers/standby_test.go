package servers

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// mend runs VALIDATE CONNECTION and the SQL that it returns, each where it says, and
// returns what was missing.
func (p *pair) mend(connection string) (failed []string) {
	p.Helper()
	conn := harness.Connect(p, p.server.DSN)
	rows, err := conn.Query(context.Background(), "VALIDATE CONNECTION "+connection, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		p.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		p.Fatal(err)
	}
	for _, f := range found {
		if f["ok"] == true {
			continue
		}
		failed = append(failed, fmt.Sprint(f["check"], ": ", f["detail"]))
		fix, _ := f["fix"].(string)
		at := p.atStandby()
		if strings.HasPrefix(fix, "/* at the primary */") {
			at = p.atPrimary()
		}
		harness.Exec(p, at, strings.Split(fix, "; ")...)
	}
	p.settle(p.atStandby())
	return failed
}

// A standby is the source: what the report says is all that it needs. It is copied,
// followed, compared and read at a position like a primary, through deaths of the product
// and of the standby, and after it has become the primary.
func TestStandbySource(t *testing.T) {
	for _, version := range pgtest.Versions([]int{17}, 16, 18) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { standbySource(t, version) })
	}
}

func standbySource(t *testing.T, version int) {
	p := newPair(t, version, nil, harness.LoadSchema...)
	l := harness.StartPacedLoad(t, p.either(), 1, 10*time.Millisecond)
	defer l.Close()
	harness.Exec(t, p.server.DSN, fmt.Sprintf("CREATE CONNECTION st TO POSTGRES (HOST '127.0.0.1', PORT %d, DATABASE '%s', USER 'postgres', SSLMODE 'disable')",
		p.standby.Port, p.database))
	stop := p.logs()
	if failed := p.mend("st"); len(failed) != 2 {
		t.Fatalf("missing: %q", failed)
	}
	if failed := p.mend("st"); len(failed) > 0 {
		t.Fatalf("still missing: %q", failed)
	}
	harness.Exec(t, p.server.DSN, "CREATE PIPELINE st FROM st FOR ALL TABLES")
	p.equal(p.atStandby(), l, "st")

	harness.Exec(t, p.atPrimary(), "ALTER TABLE items ADD extra int DEFAULT 5", "UPDATE items SET extra = 6 WHERE id % 3 = 0", "TRUNCATE pairs")
	p.equal(p.atStandby(), l, "st")
	p.server.Kill()
	p.server.Start()
	p.standby.Control(t, "restart", "-m", "immediate")
	p.equal(p.atStandby(), l, "st")

	t.Run("position", func(t *testing.T) {
		harness.Exec(t, p.atPrimary(), "INSERT INTO pairs VALUES (-1, 'mine', 1)")
		at, err := harness.Text(p.atPrimary(), "SELECT pg_current_wal_insert_lsn()::text")
		if err != nil {
			t.Fatal(err)
		}
		n, err := harness.Text(p.server.DSN, "SET skippr.read_timeout = '1min'; SET skippr.read_position = '"+at+"'; SELECT count(*)::text FROM st.pairs WHERE a = -1")
		if err != nil || n != "1" {
			t.Fatalf("%s rows, %v", n, err)
		}
	})
	t.Run("verify", func(t *testing.T) {
		conn := harness.Connect(t, p.server.DSN)
		results, err := conn.PgConn().Exec(t.Context(), "VERIFY PIPELINE st WITH (ranges = 2)").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		rows := results[len(results)-1].Rows
		for _, row := range rows {
			if state := string(row[5]); state != "equal" {
				t.Errorf("%s: %s %s", row[0], state, row[len(row)-1])
			}
		}
		if len(rows) < len(harness.LoadTables) {
			t.Errorf("%d lines", len(rows))
		}
	})
	t.Run("made later", func(t *testing.T) { p.madeLater(t) })
	harness.Exec(t, p.server.DSN, "ALTER PIPELINE st RESYNC TABLE items", "ALTER PIPELINE st RESYNC TABLE ledger")
	p.equal(p.atStandby(), l, "st")

	stop()
	p.goOver()
	written := l.Written.Load()
	if !harness.Until(harness.Patience, func() bool { return l.Written.Load() > written+50 }) {
		t.Fatal("nothing was written after the promotion")
	}
	p.equal(p.atStandby(), l, "st")
	p.server.Kill()
	p.server.Start()
	p.equal(p.atStandby(), l, "st")
	harness.Exec(t, p.server.DSN, "DROP PIPELINE st")
	p.becomes(p.atStandby(), "SELECT count(*)::text FROM pg_replication_slots WHERE slot_type = 'logical'", "0")
}

var addTable = regexp.MustCompile(`ALTER PUBLICATION [^;]*`)

// madeLater is a table that comes when the pipeline runs: a standby cannot publish it, and
// the hint says what can.
func (p *pair) madeLater(t *testing.T) {
	harness.Exec(t, p.atPrimary(), "CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1), (2)")
	p.becomes(p.server.DSN, "SELECT count(*)::text FROM pg_stat_pipeline_table WHERE table_name = 'later' AND state = 'stopped'", "1")
	hint, err := harness.Text(p.server.DSN, "SELECT hint FROM pg_stat_pipeline_table WHERE table_name = 'later'")
	sql := addTable.FindString(hint)
	if err != nil || sql == "" {
		t.Fatalf("hint %q, %v", hint, err)
	}
	harness.Exec(t, p.atPrimary(), sql)
	p.settle(p.atStandby())
	harness.Exec(t, p.server.DSN, "ALTER PIPELINE st RESUME TABLE st.later")
	harness.Exec(t, p.atPrimary(), "INSERT INTO later VALUES (3)")
	p.becomes(p.server.DSN, "SELECT count(*)::text FROM st.later", "3")
}

package servers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// pair is a primary with a standby, the database of the test on both, and the product.
type pair struct {
	*testing.T
	primary, standby *pgtest.Private
	database         string
	server           *harness.Server
}

// newPair starts a primary of a version, runs statements in a database of it, and starts a
// standby that has a slot of its own there.
func newPair(t *testing.T, version int, config []string, statements ...string) *pair {
	t.Helper()
	p := &pair{T: t, primary: pgtest.StartVersion(t, version)}
	source := p.primary.CreateDatabase(t)
	at, err := pgx.ParseConfig(source)
	if err != nil {
		t.Fatal(err)
	}
	p.database = at.Database
	harness.Exec(t, source, append(statements, "SELECT pg_create_physical_replication_slot('standby')")...)
	p.standby = p.primary.Standby(t, append([]string{"primary_slot_name = 'standby'"}, config...)...)
	p.server = harness.New(t, t.TempDir(), "--commit-interval", "300ms", "--wal-segment-bytes", "1MiB")
	p.server.Start()
	return p
}

func (p *pair) atPrimary() string { return p.primary.WithDatabase(p.database) }
func (p *pair) atStandby() string { return p.standby.WithDatabase(p.database) }

// either reaches whichever of the two is the primary.
func (p *pair) either() string {
	return fmt.Sprintf("host=127.0.0.1,127.0.0.1 port=%d,%d user=postgres dbname=%s sslmode=disable target_session_attrs=read-write",
		p.primary.Port, p.standby.Port, p.database)
}

// becomes waits until a query has an answer.
func (p *pair) becomes(dsn, sql, want string) {
	p.Helper()
	var got string
	var err error
	if !harness.Until(harness.Patience, func() bool { got, err = harness.Text(dsn, sql); return err == nil && got == want }) {
		p.Fatalf("%s: %q, %v, want %q\n%s", sql, got, err, want, p.states())
	}
}

// states are what the pipeline and its tables say of themselves.
func (p *pair) states() string {
	text, err := harness.Text(p.server.DSN, "SELECT (SELECT string_agg(concat_ws(' ', state, reason), E'\n') FROM pg_stat_pipeline) || E'\n' || "+
		"(SELECT string_agg(concat_ws(' ', table_name, state, reason, hint), E'\n') FROM pg_stat_pipeline_table)")
	return fmt.Sprint(text, " ", err)
}

// logs has the primary log again and again which transactions run, without which a standby
// makes no slot, until the result is called. A primary that is written to does so by itself,
// every 15 seconds.
func (p *pair) logs() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			_, _ = harness.Text(p.atPrimary(), "SELECT pg_log_standby_snapshot()::text") // it may be gone
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// equal compares all tables of the load with those of a server, while it writes nothing.
func (p *pair) equal(dsn string, l *harness.Load, pipeline string) {
	p.Helper()
	l.Pause()
	defer l.Resume()
	p.settle(dsn)
	harness.Exec(p, p.server.DSN, "SYNC PIPELINE "+pipeline+" UNTIL CAUGHT UP")
	harness.CompareTables(p, dsn, p.server.DSN, pipeline, harness.LoadTables)
	if p.Failed() {
		p.Fatalf("%s\n%s", p.states(), p.server.Log(40))
	}
}

// settle waits until a standby has replayed what its primary has.
func (p *pair) settle(dsn string) {
	p.Helper()
	if standby, err := harness.Text(dsn, "SELECT pg_is_in_recovery()::text"); err != nil || standby != "true" {
		return
	}
	at, err := harness.Text(p.atPrimary(), "SELECT pg_current_wal_insert_lsn()::text")
	if err != nil {
		p.Fatal(err)
	}
	p.becomes(dsn, "SELECT (pg_last_wal_replay_lsn() >= '"+at+"')::text", "true")
}

// goOver kills the primary and promotes the standby.
func (p *pair) goOver() {
	p.Helper()
	p.primary.Control(p, "stop", "-m", "immediate")
	p.standby.Control(p, "promote")
}

func quoted(dsn string) string { return "'" + strings.ReplaceAll(dsn, "'", "''") + "'" }

package servers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// The primary is killed under load and its standby promoted, which has the slot from the
// primary. The pipeline, which is killed meanwhile, goes on there: no row is missing, and
// none is there twice.
func TestFailover(t *testing.T) {
	for _, version := range pgtest.Versions([]int{18}, 17) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			p := newPair(t, version, []string{"hot_standby_feedback = on"}, harness.LoadSchema...)
			p.primary.Exec(t, p.primary.DSN, "ALTER SYSTEM SET synchronized_standby_slots = 'standby'", "SELECT pg_reload_conf()")
			l := harness.StartPacedLoad(t, p.either(), 2, 5*time.Millisecond)
			defer l.Close()
			harness.Exec(t, p.server.DSN, "CREATE PIPELINE f FROM POSTGRES "+quoted(p.either())+" FOR ALL TABLES")
			p.equal(p.atPrimary(), l, "f")
			p.carried()
			written := l.Written.Load()
			harness.Until(30*time.Second, func() bool { return l.Written.Load() > written+50 })
			p.server.Kill()
			p.goOver()
			p.server.Start()
			written = l.Written.Load()
			if !harness.Until(harness.Patience, func() bool { return l.Written.Load() > written+50 }) {
				t.Fatal("nothing was written after the fail-over")
			}
			p.equal(p.atStandby(), l, "f")
			if n, err := harness.Text(p.server.DSN, "SELECT count(*)::text FROM skippr.events WHERE level = 'error' AND kind = 'table stopped'"); err != nil || n != "0" {
				t.Errorf("%s tables have stopped, %v", n, err)
			}
		})
	}
}

// carried has the standby take the slot over from its primary. It begins only here, since
// it looks the more seldom the longer nothing happens.
func (p *pair) carried() {
	p.Helper()
	stop := p.logs()
	defer stop()
	p.standby.Exec(p, p.standby.DSN, "ALTER SYSTEM SET sync_replication_slots = on", "SELECT pg_reload_conf()")
	p.becomes(p.atStandby(), "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = 'skippr_f' AND synced AND NOT temporary", "1")
}

// Without the slot on the promoted standby changes may be missing. The pipeline does not
// pass over them: it stops, says so, and goes on after RESET.
func TestFailoverWithoutSlot(t *testing.T) {
	for _, version := range pgtest.Versions([]int{16}, 17, 18) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			p := newPair(t, version, nil, harness.LoadSchema...)
			l := harness.StartPacedLoad(t, p.either(), 2, 5*time.Millisecond)
			defer l.Close()
			harness.Exec(t, p.server.DSN, "CREATE PIPELINE f FROM POSTGRES "+quoted(p.either())+" FOR ALL TABLES", "SYNC PIPELINE f")
			p.goOver()
			p.becomes(p.server.DSN, "SELECT (state = 'error' AND reason LIKE '%slot skippr_f does not exist%' AND reason LIKE '%ALTER PIPELINE f RESET;%')::text FROM pg_stat_pipeline", "true")
			_, err := harness.Text(p.server.DSN, "SYNC PIPELINE f")
			if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != "55000" || !strings.Contains(pg.Detail+pg.Hint, "ALTER PIPELINE f RESET;") {
				t.Errorf("SYNC: %+v", err)
			}
			harness.Exec(t, p.server.DSN, "ALTER PIPELINE f RESET")
			p.equal(p.atStandby(), l, "f")
		})
	}
}

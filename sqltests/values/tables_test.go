package values

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

func number(name string, or int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return or
}

// run is one run of the harness: a server, and pipelines of a database each.
type run struct {
	t       *testing.T
	seed    uint64
	r       *rand.Rand
	server  *harness.Server
	writers []*writer
	kills   int
	stopped map[string]int // reasons for which tables were copied anew
	events  []string       // what happened to the server
}

// mayStop are the reasons for which docs/schema-changes.md lets a table stop; mayStopOthers
// those for which it lets one whose key or replica identity has changed.
var (
	mayStop       = regexp.MustCompile(`with a default that each row has a value of its own of|its new copy was given up`)
	mayStopOthers = regexp.MustCompile(`did not carry the whole row|not FULL|was dropped at the source|was dropped while it was copied`)
)

func (u *run) note(format string, args ...any) {
	u.events = append(u.events, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// TestTables draws tables of random types and random changes of rows and columns, kills
// the server meanwhile, and compares all rows at drained moments. SKIPPRD_VALUES_TABLES,
// _DATABASES, _ROUNDS, and SKIPPRD_SEED make it longer ("make values").
func TestTables(t *testing.T) {
	tables, databases := number("SKIPPRD_VALUES_TABLES", 120), number("SKIPPRD_VALUES_DATABASES", 3)
	rounds, seed := number("SKIPPRD_VALUES_ROUNDS", 2), uint64(number("SKIPPRD_SEED", 1))
	pg := pgtest.StartPrivate(t, "logical_decoding_work_mem = '64kB'") // what is larger is sent before it ends
	u := &run{t: t, seed: seed, r: chaos(seed), stopped: map[string]int{}}
	dir := os.Getenv("SKIPPRD_KEEP") // stays for a look at what went wrong
	if dir == "" {
		dir = t.TempDir()
	}
	u.server = harness.New(t, dir, "--commit-interval", "500ms", "--wal-segment-bytes", "1MiB")
	for i := range databases {
		dsn := pg.CreateDatabase(t)
		harness.Exec(t, dsn, prelude...)
		w := newWriter(t, dsn, seed*1000+uint64(i), (tables+databases-1)/databases, i%3 > 0)
		if err := w.transactions(len(w.tables)); err != nil {
			t.Fatal(err)
		}
		u.writers = append(u.writers, w)
	}
	u.server.Start()
	for i, w := range u.writers {
		policy := "dead_letter"
		if i%3 == 1 {
			policy = "text"
		}
		w.heals = w.beyond && policy != "text"
		harness.Exec(t, u.server.DSN, fmt.Sprintf("CREATE PIPELINE p%d FROM POSTGRES %s FOR ALL TABLES WITH (commit_bytes = 262144, out_of_range = '%s')",
			i, quote.Text(w.dsn), policy))
	}
	for round := range rounds {
		u.round(round)
		if t.Failed() {
			return
		}
	}
	made, ran, failed := 0, 0, 0
	for _, w := range u.writers {
		made, ran, failed = made+len(w.tables), ran+w.ran, failed+w.failed
	}
	t.Logf("seed %d: %d tables in %d databases, %d statements (%d refused by the source), %d kills; copied anew: %v", seed, made, databases, ran, failed, u.kills, u.stopped)
}

// round writes to all databases while things happen to the server, then compares.
func (u *run) round(round int) {
	var writing sync.WaitGroup
	for i, w := range u.writers {
		writing.Go(func() {
			if err := w.transactions(2 * len(w.tables)); err != nil {
				u.t.Errorf("seed %d, database %d: %v", u.seed, i, err)
			}
		})
	}
	for range 1 + u.r.IntN(2) {
		u.happen(round)
	}
	writing.Wait()
	for i, w := range u.writers {
		u.compare(round, i, w)
	}
}

// happen is one thing that happens to the server.
func (u *run) happen(round int) {
	p := fmt.Sprintf("p%d", u.r.IntN(len(u.writers)))
	u.server.WaitDead(time.Duration(u.r.IntN(400)) * time.Millisecond)
	do := func(format string, args ...any) {
		sql := fmt.Sprintf(format, args...)
		u.note("%s", sql)
		harness.Exec(u.t, u.server.DSN, sql)
	}
	n := u.r.IntN(16)
	if n < 7 || round%2 == 1 && n < 9 {
		u.server.Kill()
		u.kills++
		u.note("killed")
		u.server.Start()
		return
	}
	switch n {
	case 9, 10:
		do("ALTER PIPELINE %s COMPACT", p)
	case 11:
		do("ALTER PIPELINE %s PAUSE", p)
		do("ALTER PIPELINE %s RESUME", p)
	case 12:
		do("RETRY DEAD LETTERS FROM %s", p)
	default:
		here, err := u.tablesOf(p)
		if err != nil || len(here) == 0 {
			u.t.Errorf("tables of %s: %d, %v", p, len(here), err)
			return
		}
		at := u.r.IntN(len(here))
		name := quote.Name(here[at].name)
		if n == 13 {
			do("ALTER PIPELINE %s DROP TABLE %[1]s.%s", p, name)
			return
		}
		u.note("resync %s %s", p, name)
		u.resync(p, here[at].name)
	}
}

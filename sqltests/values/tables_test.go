package values

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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

func (u *run) note(format string, args ...any) {
	u.events = append(u.events, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// mayStop are the reasons for which docs/schema-changes.md lets a table stop.
var mayStop = regexp.MustCompile(`cannot be told|with a default that each row has a value of its own of, or the table was rewritten`)

// TestTables draws tables of random types and random changes of rows and columns, kills
// the server meanwhile, and compares all rows at drained moments. SKIPPRD_VALUES_TABLES,
// _DATABASES, _ROUNDS, and SKIPPRD_SEED make it longer ("make values").
func TestTables(t *testing.T) {
	tables, databases := number("SKIPPRD_VALUES_TABLES", 26), number("SKIPPRD_VALUES_DATABASES", 2)
	rounds, seed := number("SKIPPRD_VALUES_ROUNDS", 4), uint64(number("SKIPPRD_SEED", 1))
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
		w := newWriter(t, dsn, seed*1000+uint64(i), (tables+databases-1)/databases, i%2 == 1)
		if err := w.transactions(len(w.tables)); err != nil {
			t.Fatal(err)
		}
		u.writers = append(u.writers, w)
	}
	u.server.Start()
	for i, w := range u.writers {
		policy := "dead_letter"
		if w.beyond {
			policy = "text"
		}
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
	p := u.r.IntN(len(u.writers))
	w := u.writers[p]
	u.server.WaitDead(time.Duration(u.r.IntN(400)) * time.Millisecond)
	switch n := u.r.IntN(10); {
	case n < 6 || round%2 == 1:
		u.server.Kill()
		u.kills++
		u.note("killed")
		u.server.Start()
	case n < 8:
		u.note("compact p%d", p)
		harness.Exec(u.t, u.server.DSN, fmt.Sprintf("ALTER PIPELINE p%d COMPACT", p))
	case n < 9:
		here := w.tables[u.r.IntN(len(w.tables))].here
		if here == "" {
			return
		}
		u.note("resync p%d %s", p, here)
		harness.Exec(u.t, u.server.DSN, fmt.Sprintf("ALTER PIPELINE p%[1]d RESYNC TABLE p%[1]d.%[2]s", p, quote.Name(here)))
	default:
		u.note("pause p%d", p)
		harness.Exec(u.t, u.server.DSN, fmt.Sprintf("ALTER PIPELINE p%d PAUSE", p), fmt.Sprintf("ALTER PIPELINE p%d RESUME", p))
	}
}

func (u *run) compare(round, i int, w *writer) {
	pipeline := fmt.Sprintf("p%d", i)
	u.note("refresh and sync %s", pipeline)
	drain := "SYNC PIPELINE " + pipeline + " UNTIL CAUGHT UP"
	harness.Exec(u.t, u.server.DSN, "REFRESH PIPELINE "+pipeline, drain)
	u.recognize(pipeline, w, connect(u.t, u.server.DSN))
	if u.mend(pipeline) > 0 {
		harness.Exec(u.t, u.server.DSN, drain)
	}
	here := connect(u.t, u.server.DSN)
	u.note("compare %s", pipeline)
	for _, tb := range w.tables {
		diff, err := differences(u.t.Context(), w.conn, here, pipeline, tb)
		if err != nil {
			u.t.Fatal(err)
		}
		if diff != "" {
			reason, _ := harness.Text(u.server.DSN, "SELECT state || ': ' || coalesce(reason, '') FROM pg_stat_pipeline_table WHERE pipeline = '"+
				pipeline+"' AND table_name = '"+tb.here+"'")
			u.t.Errorf("seed %d, round %d, database %d, table %s (%s): %s\n%s\n%s", u.seed, round, i, tb.name, reason, diff,
				strings.Join(u.events, "\n"), w.reproduction(tb))
		}
	}
	if agrees(u.t, u.server, pipeline) == 0 {
		u.t.Errorf("VERIFY compared no table of %s", pipeline)
	}
}

// recognize finds the names that tables have here: those that they had when the pipeline
// took them in, whatever they were called before and after.
func (u *run) recognize(pipeline string, w *writer, here *pgx.Conn) {
	known, err := ask(u.t.Context(), here, "SELECT table_name FROM pg_stat_pipeline_table WHERE pipeline = '"+pipeline+"'")
	if err != nil {
		u.t.Fatal(err)
	}
	for _, tb := range w.tables {
		for _, row := range known.rows {
			if tb.here == "" && slices.Contains(tb.names, string(row[0])) {
				tb.here = string(row[0])
			}
		}
	}
}

// mend copies tables anew that stopped for a reason for which they may.
func (u *run) mend(pipeline string) int {
	conn := connect(u.t, u.server.DSN)
	stopped, err := ask(u.t.Context(), conn, "SELECT table_name, reason FROM pg_stat_pipeline_table WHERE pipeline = '"+pipeline+"' AND state = 'stopped'")
	if err != nil {
		u.t.Fatal(err)
	}
	for _, row := range stopped.rows {
		reason := mayStop.FindString(string(row[1]))
		if reason == "" {
			u.t.Errorf("seed %d: table %s of %s stopped: %s", u.seed, row[0], pipeline, row[1])
			continue
		}
		u.stopped[reason]++
		u.note("resync %s %s: %s", pipeline, row[0], row[1])
		harness.Exec(u.t, u.server.DSN, fmt.Sprintf("ALTER PIPELINE %[1]s RESYNC TABLE %[1]s.%[2]s", pipeline, quote.Name(string(row[0]))))
	}
	return len(stopped.rows)
}

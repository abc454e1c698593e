package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// letters is a server with a pipeline "shop" of table public.t of a source.
type letters struct {
	t      *testing.T
	server *harness.Server
	source string
}

const lettersTable = "CREATE TABLE t (id int PRIMARY KEY, at timestamp, d date, n numeric(6,2), note text)"

func newLetters(t *testing.T, options string, rows ...string) *letters {
	t.Helper()
	pg := pgtest.Start(t)
	l := &letters{t: t, source: pg.CreateDatabase(t)}
	harness.Exec(t, l.source, append([]string{lettersTable}, rows...)...)
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	l.ours(fmt.Sprintf("CREATE PIPELINE shop FROM POSTGRES '%s' FOR TABLE t %s", l.source, options))
	l.drain()
	return l
}

func (l *letters) at(statements ...string) { l.t.Helper(); harness.Exec(l.t, l.source, statements...) }

func (l *letters) ours(statements ...string) {
	l.t.Helper()
	harness.Exec(l.t, l.server.DSN, statements...)
}

func (l *letters) drain() { l.t.Helper(); l.ours("SYNC PIPELINE shop UNTIL CAUGHT UP") }

func (l *letters) want(sql, want string) {
	l.t.Helper()
	got, err := harness.Text(l.server.DSN, sql)
	if err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
	if got = strings.TrimSpace(got); got != strings.TrimSpace(want) {
		l.t.Errorf("%s:\n got %s\nwant %s", sql, got, want)
	}
}

const (
	rowsOfT = "SELECT string_agg(id || ' ' || coalesce(at::text, '-') || ' ' || coalesce(d::text, '-') || ' ' || coalesce(n::text, '-'), '; ' ORDER BY id) FROM shop.t"
	open    = "SELECT string_agg(op || ' ' || key || ' ' || column_name || ' ' || code, '; ' ORDER BY token, ordinal, key) FROM skippr.dead_letters WHERE state = 'open'"
	states  = "SELECT string_agg(state || ' ' || n, '; ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM skippr.dead_letters GROUP BY 1) x"
	// three is the one transaction of the requirement, with a row beside it.
	three = "BEGIN; INSERT INTO t (id, at) VALUES (1, 'infinity'), (2, '2026-01-02 03:04:05'), (3, '0044-03-15 12:00 BC'), (4, '-infinity'); COMMIT"
)

// TestDeadLetterPolicies: what becomes of infinity, now and 44 BC in one transaction, in
// the stream and in the copy alike, under each policy.
func TestDeadLetterPolicies(t *testing.T) {
	for _, c := range []struct{ name, options, rows, letters string }{
		{"dead_letter", "", "2 2026-01-02 03:04:05 - -; 3 0044-03-15 12:00:00 BC - -", `insert ["1"] at 22008; insert ["4"] at 22008`},
		{
			"null", "WITH (out_of_range = 'null')",
			"1 - - -; 2 2026-01-02 03:04:05 - -; 3 0044-03-15 12:00:00 BC - -; 4 - - -", "",
		},
		{
			"clamp", "WITH (out_of_range = 'clamp')",
			"1 294246-12-31 23:59:59.999999 - -; 2 2026-01-02 03:04:05 - -; 3 0044-03-15 12:00:00 BC - -; 4 4714-11-24 00:00:00 BC - -", "",
		},
		{
			"text", "WITH (out_of_range = 'text')",
			"1 infinity - -; 2 2026-01-02 03:04:05 - -; 3 0044-03-15 12:00:00 BC - -; 4 -infinity - -", "",
		},
		{
			"as_text", "(id, at AS text, d, n)",
			"1 infinity - -; 2 2026-01-02 03:04:05 - -; 3 0044-03-15 12:00:00 BC - -; 4 -infinity - -", "",
		},
	} {
		for _, copied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/copied=%v", c.name, copied), func(t *testing.T) {
				var before []string
				if copied {
					before = []string{three}
				}
				// A column list comes before WITH, so the options carry both.
				l := newLetters(t, c.options, before...)
				if !copied {
					l.at(three)
					l.drain()
				}
				l.want(rowsOfT, c.rows)
				l.want(open, c.letters)
				l.want("SELECT string_agg(DISTINCT state, ',') FROM pg_stat_pipeline_table", "ready")
				l.ours("ALTER PIPELINE shop COMPACT")
				l.want(rowsOfT, c.rows)
			})
		}
	}
}

// TestDeadLetterLife: a letter is superseded by what comes after it, counted, retried once
// its values can be taken in, and neither lost nor applied twice by a kill.
func TestDeadLetterLife(t *testing.T) {
	l := newLetters(t, "", "INSERT INTO t (id, n) VALUES (1, 1.5), (2, 'NaN'), (3, 3)")
	l.want(rowsOfT, "1 - - 1.50; 3 - - 3.00")
	l.want(open, `insert ["2"] n 22003`)

	l.at("UPDATE t SET n = 2 WHERE id = 2") // good now
	l.drain()
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - 3.00")
	l.want(states, "superseded 1")

	l.at("UPDATE t SET n = 'NaN' WHERE id = 3", "UPDATE t SET n = 'NaN', d = 'infinity' WHERE id = 3", "INSERT INTO t (id, d) VALUES (4, 'infinity'), (5, 'infinity')")
	l.drain()
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - 3.00") // the last that could be taken in
	l.want(open, `update ["3"] d 22008; insert ["4"] d 22008; insert ["5"] d 22008`)
	l.want("SELECT dead_letters || ' ' || last_dead_letter FROM pg_stat_pipeline_table", `3 column "d" holds infinity, which the column's type here cannot`)
	l.want("SELECT dead_letters FROM pg_stat_pipeline", "3")
	l.want("SELECT raw_row FROM skippr.dead_letters WHERE key = '[\"3\"]' AND state = 'open'",
		`{"id":"3","at":null,"d":"infinity","n":"NaN","note":null}`)

	l.server.Kill()
	l.server.Start()
	l.at("DELETE FROM t WHERE id = 4", "UPDATE t SET id = 6 WHERE id = 5") // a key moves, and cannot be taken in
	l.drain()
	l.want(open, `update ["3"] d 22008; insert ["6"] d 22008`)
	l.want("SELECT retried || ' ' || failing FROM (SELECT 1 AS retried, 2 AS failing) x", "1 2")
	l.ours("ALTER PIPELINE shop COMPACT")
	l.ours("RETRY DEAD LETTERS FROM shop")
	l.want(open, `update ["3"] d 22008; insert ["6"] d 22008`) // nothing has changed

	l.ours("ALTER PIPELINE shop SET (out_of_range = 'null')", "RETRY DEAD LETTERS FROM shop WHERE key = '[\"6\"]' AND code >= '22008'")
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - 3.00; 6 - - -")
	l.ours("RETRY DEAD LETTERS FROM shop", "RETRY DEAD LETTERS FROM shop")
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - -; 6 - - -")
	l.want(open, "")
	l.ours("ALTER PIPELINE shop COMPACT")
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - -; 6 - - -")
	l.want("SELECT count(*) FROM skippr.events WHERE kind = 'dead letter'", "4")

	l.ours("ALTER PIPELINE shop SET (out_of_range = 'dead_letter', max_dead_letters = 1)")
	l.at("UPDATE t SET d = 'infinity'", "TRUNCATE t", "INSERT INTO t VALUES (9)")
	l.want("SELECT 1", "1")
	stopped := harness.Until(30*time.Second, func() bool {
		s, err := harness.Text(l.server.DSN, "SELECT state FROM pg_stat_pipeline_table")
		return err == nil && s == "stopped"
	})
	if !stopped {
		t.Error("a table with too many dead letters goes on")
	}
	l.ours("ALTER PIPELINE shop SET (max_dead_letters = 100)", "ALTER PIPELINE shop RESUME TABLE t")
	l.drain()
	l.want(rowsOfT, "9 - - -")
	l.want(open, "") // the TRUNCATE has taken them all
}

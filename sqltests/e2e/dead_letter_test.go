package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	if !strings.Contains(options, "start = false") {
		l.drain()
	}
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
	conn := harness.Connect(l.t, l.server.DSN)
	defer func() { _ = conn.Close(context.Background()) }() // only read
	results, err := conn.PgConn().Exec(l.t.Context(), sql).ReadAll()
	if err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
	var lines []string
	for _, row := range results[0].Rows {
		values := make([]string, len(row))
		for i, v := range row {
			if values[i] = string(v); v == nil {
				values[i] = "-"
			}
		}
		lines = append(lines, strings.Join(values, " "))
	}
	if got := strings.Join(lines, "; "); got != want {
		l.t.Errorf("%s:\n got %s\nwant %s", sql, got, want)
	}
}

const (
	rowsOfT = "SELECT id, at, d, n FROM shop.t ORDER BY id"
	open    = "SELECT op, key, column_name, code FROM skippr.dead_letters WHERE state = 'open' ORDER BY token, ordinal, key"
	states  = "SELECT state, count(*) FROM skippr.dead_letters GROUP BY 1 ORDER BY 1"
)

// TestDeadLetterPolicies: what becomes of infinity, now and 44 BC in one transaction, in
// the copy and in the stream alike, under each policy.
func TestDeadLetterPolicies(t *testing.T) {
	t.Parallel()
	moments := "SELECT id, at FROM p_%s.t_%[1]s ORDER BY id"
	cases := []struct{ name, columns, option, rows, letters string }{
		{"dead_letter", "", "dead_letter", "2 NOW; 3 BC44; 12 NOW; 13 BC44", `["1"] 22008; ["4"] 22008; ["11"] 22008; ["14"] 22008`},
		{"null", "", "null", "1 -; 2 NOW; 3 BC44; 4 -; 11 -; 12 NOW; 13 BC44; 14 -", ""},
		{"clamp", "", "clamp", "1 LAST; 2 NOW; 3 BC44; 4 FIRST; 11 LAST; 12 NOW; 13 BC44; 14 FIRST", ""},
		{"text", "", "text", "1 infinity; 2 NOW; 3 BC44; 4 -infinity; 11 infinity; 12 NOW; 13 BC44; 14 -infinity", ""},
		{"as_text", "(id, at AS text)", "dead_letter", "1 infinity; 2 NOW; 3 BC44; 4 -infinity; 11 infinity; 12 NOW; 13 BC44; 14 -infinity", ""},
	}
	shown := strings.NewReplacer("NOW", "2026-01-02 03:04:05", "BC44", "0044-03-15 12:00:00 BC",
		"LAST", "294246-12-31 23:59:59.999999", "FIRST", "4714-11-24 00:00:00 BC")
	three := func(table string, from int) string {
		return fmt.Sprintf("BEGIN; INSERT INTO t_%s VALUES (%d, 'infinity'), (%d, '2026-01-02 03:04:05'), (%d, '0044-03-15 12:00 BC'), (%d, '-infinity'); COMMIT",
			table, from, from+1, from+2, from+3)
	}
	l := &letters{t: t, source: pgtest.Start(t).CreateDatabase(t), server: harness.New(t, t.TempDir())}
	l.server.Start()
	for _, c := range cases {
		l.at("CREATE TABLE t_"+c.name+" (id int PRIMARY KEY, at timestamp)", three(c.name, 1))
		l.ours(fmt.Sprintf("CREATE PIPELINE p_%s FROM POSTGRES '%s' FOR TABLE t_%s %s WITH (out_of_range = '%s')", c.name, l.source, c.name, c.columns, c.option))
	}
	for _, c := range cases {
		l.ours("SYNC PIPELINE p_" + c.name + " UNTIL CAUGHT UP")
		l.at(three(c.name, 11))
	}
	for _, c := range cases {
		l.ours("SYNC PIPELINE p_" + c.name + " UNTIL CAUGHT UP")
		rows := fmt.Sprintf(moments, c.name)
		l.want(rows, shown.Replace(c.rows))
		l.want("SELECT key, code FROM skippr.dead_letters WHERE pipeline = 'p_"+c.name+"' ORDER BY token, ordinal, key", c.letters)
		l.want("SELECT state, dead_letters FROM pg_stat_pipeline_table WHERE pipeline = 'p_"+c.name+"'",
			fmt.Sprint("ready ", strings.Count(c.letters, "[")))
		l.ours("ALTER PIPELINE p_" + c.name + " COMPACT")
		l.want(rows, shown.Replace(c.rows))
		l.want("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'p_"+c.name+".t_"+c.name+"'::regclass AND attname = 'at'",
			"timestamp without time zone")
	}
	for query, want := range map[string]string{ // exact text sorts, compares and computes as its type
		"SELECT id FROM p_text.t_text WHERE at >= '2026-01-02 03:04:05' AND id < 10 ORDER BY id":                 "1; 2",
		"SELECT id FROM p_text.t_text WHERE at = 'infinity' AND id < 10":                                         "1",
		"SELECT id FROM p_text.t_text WHERE id < 10 ORDER BY at":                                                 "4; 3; 2; 1",
		"SELECT min(at), max(at) FROM p_text.t_text WHERE id IN (2, 3)":                                          shown.Replace("BC44 NOW"),
		"SELECT a.id, b.id FROM p_text.t_text a JOIN p_as_text.t_as_text b USING (at) WHERE a.id = 3 ORDER BY 2": "3 3; 3 13",
		"SELECT date_trunc('day', at) FROM p_text.t_text WHERE id = 2":                                           "2026-01-02 00:00:00",
	} {
		l.want(query, want)
	}
}

// TestDeadLetterLife: a letter is superseded by what comes after it, counted, retried once
// its values can be taken in, and neither lost nor applied twice by a kill.
func TestDeadLetterLife(t *testing.T) {
	t.Parallel()
	l := newLetters(t, "", "INSERT INTO t (id, n) VALUES (1, 1.5), (2, 'NaN'), (3, 3)")
	l.want(rowsOfT, "1 - - 1.50; 3 - - 3.00")
	l.want(open, `insert ["2"] n 22003`)
	seen, err := harness.Text(l.server.DSN, "SELECT first_seen::text FROM skippr.dead_letters")
	if err != nil || seen == "" {
		t.Errorf("first seen %q, %v", seen, err)
	}

	l.at("UPDATE t SET n = 2 WHERE id = 2") // good now
	l.drain()
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - 3.00")
	l.want(states, "superseded 1")
	l.want("SELECT pipeline, table_schema, table_name, source_table, first_seen::text = '"+seen+"', changed_at >= first_seen FROM skippr.dead_letters",
		"shop shop t public.t t t")

	// What an update leaves out is what its letter has, not what the table has.
	large := func(c string) string {
		return "(SELECT string_agg(md5(i || '" + c + "'), '') FROM generate_series(1, 300) i)"
	}
	l.at("ALTER TABLE t ALTER note SET STORAGE EXTERNAL", "INSERT INTO t (id, n, note) VALUES (7, 7, "+large("a")+")",
		"UPDATE t SET n = 'NaN', note = "+large("b")+" WHERE id = 7", "UPDATE t SET n = 8 WHERE id = 7")
	l.drain()
	l.at("UPDATE t SET n = 'NaN' WHERE id = 7", "UPDATE t SET id = 8, n = 9 WHERE id = 7") // both leave it out
	l.drain()
	if rows, err := harness.Compare(t.Context(), l.source, "SELECT id, note FROM t WHERE id > 6", l.server.DSN, "SELECT id, note FROM shop.t WHERE id > 6"); err != nil || rows != 1 {
		t.Errorf("%d large values: %v", rows, err)
	}
	l.at("DELETE FROM t WHERE id = 8")
	l.drain()
	l.want("SELECT state, count(*) FROM skippr.dead_letters GROUP BY 1", "superseded 3")

	l.at("UPDATE t SET n = 'NaN' WHERE id = 3", "UPDATE t SET n = 'NaN', d = 'infinity' WHERE id = 3", "INSERT INTO t (id, d) VALUES (4, 'infinity'), (5, 'infinity')")
	l.drain()
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - 3.00") // the last that could be taken in
	l.want(open, `update ["3"] d 22008; insert ["4"] d 22008; insert ["5"] d 22008`)
	// Of the stream: each has the position of its own transaction, in the source's order.
	l.want("SELECT count(DISTINCT position), bool_and(id > 0 AND reason <> '' AND NOT copied) FROM skippr.dead_letters WHERE state = 'open'", "2 t")
	l.want("SELECT dead_letters || ' ' || last_dead_letter FROM pg_stat_pipeline_table", `3 column "d" holds infinity, which the column's type here cannot hold`)
	l.want("SELECT dead_letters FROM pg_stat_pipeline", "3")
	l.want("SELECT raw_row FROM skippr.dead_letters WHERE key = '[\"3\"]' AND state = 'open'",
		`{"id":"3","at":null,"d":"infinity","n":"NaN","note":null}`)

	l.server.Kill()
	l.server.Start()
	l.at("DELETE FROM t WHERE id = 4", "UPDATE t SET id = 6 WHERE id = 5") // a key moves, and cannot be taken in
	l.drain()
	l.want(open, `update ["3"] d 22008; insert ["6"] d 22008`)
	l.ours("ALTER PIPELINE shop COMPACT")
	l.ours("PAUSE PIPELINE shop")
	l.want("RETRY DEAD LETTERS FROM shop", "0 6 2") // nothing has changed
	l.ours("RESUME PIPELINE shop")
	l.want(open, `update ["3"] d 22008; insert ["6"] d 22008`)

	l.ours("ALTER PIPELINE shop SET (out_of_range = 'null')")
	l.want("RETRY DEAD LETTERS FROM shop WHERE key = '[\"6\"]' AND code >= '22008'", "1 0 0")
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - 3.00; 6 - - -")
	l.want("RETRY DEAD LETTERS FROM shop WHERE state = 'open'", "1 0 0")
	l.want("RETRY DEAD LETTERS FROM shop WHERE state = 'open'", "0 0 0")
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - -; 6 - - -")
	l.want(open, "")
	l.ours("ALTER PIPELINE shop COMPACT")
	l.want(rowsOfT, "1 - - 1.50; 2 - - 2.00; 3 - - -; 6 - - -")
	l.want("SELECT count(*) > 2 FROM skippr.events WHERE kind = 'dead letter'", "t")

	l.ours("ALTER PIPELINE shop SET (out_of_range = 'dead_letter', max_dead_letters = 1)")
	l.at("UPDATE t SET d = 'infinity'", "TRUNCATE t", "INSERT INTO t VALUES (9)")
	stopped := harness.Until(harness.Patience, func() bool {
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

// TestDeadLetterKills: rows change while they are copied, a third of them cannot be taken in,
// and the server is killed in the copy, in the stream and in RETRY. Once the policy takes all
// values in, every row is the source's, once, also in the lake.
func TestDeadLetterKills(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(uint64(number("SKIPPRD_SEED", 1)), 19))
	l := newLetters(t, "WITH (max_dead_letters = 100000, backfill_chunk_pages = 2, start = false)",
		"INSERT INTO t SELECT i, NULL, NULL, CASE WHEN i % 3 = 0 THEN 'NaN'::numeric ELSE i % 1000 END, repeat('x', 100) FROM generate_series(1, 3000) i",
		"CREATE TABLE bag (v int, n numeric(6,2)); ALTER TABLE bag REPLICA IDENTITY FULL", "INSERT INTO bag SELECT i % 7, CASE WHEN i % 3 = 0 THEN 'NaN'::numeric ELSE 1 END FROM generate_series(1, 300) i")
	l.ours("ALTER PIPELINE shop ADD TABLE bag", "ALTER PIPELINE shop ENABLE")
	change := func() {
		for range 20 {
			id := 1 + r.IntN(3000)
			switch r.IntN(5) {
			case 0:
				l.at(fmt.Sprintf("DELETE FROM t WHERE id BETWEEN %d AND %d", id, id+5))
			case 1:
				l.at(fmt.Sprintf("UPDATE t SET n = 'NaN' WHERE id BETWEEN %d AND %d", id, id+3))
			case 2:
				l.at(fmt.Sprintf("UPDATE t SET n = n WHERE id BETWEEN %d AND %d", id, id+3), "INSERT INTO bag VALUES (1, 'NaN'), (1, 2)",
					"DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE n = 'NaN' ORDER BY ctid DESC LIMIT 3)")
			case 3:
				l.at(fmt.Sprintf("UPDATE t SET id = id + 10000 WHERE id BETWEEN %d AND %d", id, id+2))
			default:
				l.at(fmt.Sprintf("UPDATE t SET n = 5 WHERE id BETWEEN %d AND %d", id, id+40))
			}
		}
	}
	for range 2 {
		change()
		l.server.Kill()
		change()
		l.server.Start()
	}
	change()
	l.drain()
	// All of it can lie before the copy's moment; these do not.
	l.at("UPDATE t SET n = 5 WHERE id IN (SELECT id FROM t WHERE n = 'NaN' ORDER BY id LIMIT 20)")
	l.drain()
	l.want("SELECT string_agg(DISTINCT state, ',') FROM pg_stat_pipeline_table", "ready")
	l.ours("ALTER PIPELINE shop COMPACT", "ALTER PIPELINE shop SET (out_of_range = 'null')")
	for _, point := range []string{"AfterBody", "AfterPublish", ""} {
		l.server.Kill()
		if point != "" {
			l.server.Setenv("SKIPPRD_FAILPOINT=" + point + ":1")
		}
		l.server.Launch()
		l.server.Unsetenv()
		_ = l.server.TryReady(harness.Patience) // or it has died
		retried := make(chan struct{})
		go func() { // its connection goes with the server
			defer close(retried)
			_, _ = harness.Text(l.server.DSN, "RETRY DEAD LETTERS FROM shop WHERE ordinal % 2 = 0")
		}()
		l.server.WaitFailpoint(time.Duration(200+r.IntN(600)) * time.Millisecond)
		l.server.Kill()
		<-retried
	}
	l.server.Start()
	l.ours("RETRY DEAD LETTERS FROM shop")
	l.want(open, "")
	l.want("SELECT count(*) > 100 FROM skippr.dead_letters WHERE state = 'retried'", "t")
	l.want("SELECT count(*) > 0 FROM skippr.dead_letters WHERE state = 'superseded'", "t")
	for _, compact := range []bool{false, true} {
		if compact {
			l.ours("ALTER PIPELINE shop COMPACT")
		}
		for _, q := range []string{
			"SELECT id, NULLIF(n, 'NaN'), note FROM %s ORDER BY id", "SELECT v, NULLIF(n, 'NaN'), count(*) FROM %s GROUP BY 1, 2 ORDER BY 1, 2",
		} {
			name := "t"
			if strings.HasPrefix(q, "SELECT v") {
				name = "bag"
			}
			ours := strings.ReplaceAll(q, "NULLIF(n, 'NaN')", "n")
			rows, err := harness.Compare(t.Context(), l.source, fmt.Sprintf(q, name), l.server.DSN, fmt.Sprintf(ours, "shop."+name))
			if err != nil || rows == 0 {
				t.Errorf("%s, %d rows: %v", name, rows, err)
			}
		}
	}
}

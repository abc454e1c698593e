package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// tableLife is a pipeline of all tables whose source changes them.
type tableLife struct {
	t      *testing.T
	source string
	server *harness.Server
}

// eventually waits until a query here has an answer.
func (l *tableLife) eventually(sql, want string) {
	l.t.Helper()
	var got string
	ok := harness.Until(harness.Patience, func() bool {
		var err error
		if got, err = harness.Text(l.server.DSN, sql); err != nil {
			got = err.Error()
		}
		return got == want
	})
	if !ok {
		state, _ := harness.Text(l.server.DSN, "SELECT string_agg(concat_ws(' ', table_name, state, reason, hint), E'\n') FROM pg_stat_pipeline_table")
		events, _ := harness.Text(l.server.DSN, "SELECT string_agg(concat_ws(' ', table_name, kind, detail), E'\n') FROM skippr.events")
		l.t.Fatalf("%s:\n got %s\nwant %s\n%s\n%s\n%s", sql, got, want, state, events, l.server.Log(20))
	}
}

// same waits until a table has the rows that it has at the source.
func (l *tableLife) same(table string) {
	l.t.Helper()
	sql := "SELECT count(*) || ' ' || coalesce(string_agg(id::text || ':' || coalesce(v, ''), ',' ORDER BY id), '') FROM %s." + table
	want, err := harness.Text(l.source, fmt.Sprintf(sql, "public"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.eventually(fmt.Sprintf(sql, "life"), want)
}

func (l *tableLife) at(statements ...string) {
	l.t.Helper()
	harness.Exec(l.t, l.source, statements...)
}

func (l *tableLife) stateOf(table string) string {
	return "SELECT concat_ws('|', state, reason, hint) FROM pg_stat_pipeline_table WHERE table_name = '" + table + "'"
}

// TestTableLife follows tables that are made, dropped, made anew, renamed and repartitioned
// while their pipeline runs, over restarts of the server.
func TestTableLife(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	l.at(
		"CREATE TABLE plain (id int PRIMARY KEY, v text); INSERT INTO plain SELECT i, 'p' || i FROM generate_series(1, 100) i",
		"CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
		"CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (100); INSERT INTO part VALUES (1, 'a'), (2, 'a')",
		"CREATE TABLE part_b (v text, gone int, id int PRIMARY KEY); ALTER TABLE part_b DROP gone; INSERT INTO part_b VALUES ('b', 101), ('b', 102)",
	)
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES EXCEPT part_b", quoted(l.source)))
	l.same("plain")
	l.same("part")

	t.Run("made", func(t *testing.T) {
		l.t = t
		l.at("CREATE TABLE later (id int PRIMARY KEY, v text); INSERT INTO later VALUES (1, 'x')", "INSERT INTO later VALUES (2, 'y')")
		l.same("later")
		l.at("UPDATE later SET v = 'z' WHERE id = 1; DELETE FROM later WHERE id = 2")
		l.same("later")
	})
	t.Run("partitions", func(t *testing.T) {
		l.t = t
		l.at("CREATE TABLE part_c PARTITION OF part FOR VALUES FROM (200) TO (300)", "INSERT INTO part VALUES (201, 'c')")
		l.same("part")
		l.at("ALTER TABLE part ATTACH PARTITION part_b FOR VALUES FROM (100) TO (200)")
		l.same("part")
		l.at("UPDATE part SET id = 103 WHERE id = 1; UPDATE part SET v = 'moved' WHERE id = 103")
		l.same("part")
		l.at("BEGIN; CREATE TABLE part_d (id int PRIMARY KEY, v text); INSERT INTO part_d VALUES (301, 'd');" +
			"ALTER TABLE part ATTACH PARTITION part_d FOR VALUES FROM (300) TO (400); INSERT INTO part VALUES (302, 'd'); COMMIT")
		l.same("part")
		l.server.Kill()
		l.at("ALTER TABLE part DETACH PARTITION part_a", "DROP TABLE part_c")
		l.server.Start()
		l.same("part")
		l.eventually("SELECT count(*) FROM skippr.events WHERE table_name = 'life.part' AND kind = 'table copied anew'", "3")
	})
	t.Run("dropped", func(t *testing.T) {
		l.t = t
		l.at("DROP TABLE later")
		l.eventually(l.stateOf("later"), "gone|the table was dropped at the source|It keeps what it has. Take it out, with what it has: "+
			"ALTER PIPELINE life DROP TABLE life.later;")
		l.eventually("SELECT id || v FROM life.later", "1z")
	})
	t.Run("made anew", func(t *testing.T) {
		l.t = t
		l.at("CREATE TABLE later (id bigint PRIMARY KEY, v text, w int); INSERT INTO later VALUES (10, 'new', 1)")
		l.same("later")
		l.at("DROP TABLE plain; CREATE TABLE plain (id int PRIMARY KEY, v text); INSERT INTO plain VALUES (7, 'seven')")
		l.same("plain")
		l.at("INSERT INTO plain VALUES (8, 'eight')")
		l.same("plain")
		l.eventually(l.stateOf("plain"), "ready")
	})
	t.Run("renamed", func(t *testing.T) {
		l.t = t
		l.at("ALTER TABLE plain RENAME TO old_plain; CREATE TABLE plain (id int PRIMARY KEY, v text); INSERT INTO plain VALUES (70, 'other')",
			"INSERT INTO old_plain VALUES (9, 'nine')")
		l.eventually("SELECT string_agg(id::text, ',' ORDER BY id) FROM life.plain", "7,8,9")
		l.eventually("SELECT count(*) FROM skippr.events WHERE kind = 'table not taken in' AND detail LIKE "+
			"'table life.plain exists already%ALTER PIPELINE life DROP TABLE life.plain;'", "1")
	})
}

// TestResyncAnswers has queries of a table answered while it is copied anew, and the table
// under them replaced between two of them.
func TestResyncAnswers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	l.at("CREATE TABLE item (id int PRIMARY KEY, v text); INSERT INTO item SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i; ANALYZE item")
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	ours := l.server.DSN
	harness.Exec(t, ours, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR TABLE item WITH (backfill_chunk_pages = 64, backfill_rows_per_second = 0)", quoted(l.source)))
	l.eventually("SELECT count(*) FROM life.item", "20000")
	harness.Exec(t, ours, "ALTER PIPELINE life SET (backfill_rows_per_second = 1000)") // until it was seen
	conn := harness.Connect(t, ours)
	var oid, before uint32
	if err := conn.QueryRow(t.Context(), "SELECT 'life.item'::regclass::oid").Scan(&before); err != nil {
		t.Fatal(err)
	}
	harness.Exec(t, ours, "ALTER PIPELINE life RESYNC TABLE life.item")
	added, resyncing := 0, false
	for replaced := false; !replaced; {
		added++
		l.at(fmt.Sprintf("INSERT INTO item VALUES (%d, 'new')", 20000+added))
		ok := harness.Until(harness.Patience, func() bool {
			var n int // a prepared statement, all the time
			err := conn.QueryRow(t.Context(), "SELECT count(*) FROM life.item").Scan(&n)
			if err != nil {
				t.Fatalf("query while the table is copied anew: %v", err)
			}
			return n == 20000+added
		})
		if !ok {
			t.Fatalf("row %d did not arrive while the table was copied anew", added)
		}
		state, err := harness.Text(ours, "SELECT concat_ws(' ', state, backfill_percent < 100, backfill_rows_estimated BETWEEN 10000 AND 40000) FROM pg_stat_pipeline_table")
		if err != nil {
			t.Fatal(err)
		}
		if !resyncing && state == "resync t t" {
			resyncing = true
			harness.Exec(t, ours, "ALTER PIPELINE life SET (backfill_rows_per_second = 10000)")
		}
		replaced = strings.HasPrefix(state, "ready")
	}
	if !resyncing {
		t.Error("the state never told of the new copy")
	}
	if err := conn.QueryRow(t.Context(), "SELECT 'life.item'::regclass::oid").Scan(&oid); err != nil || oid != before {
		t.Errorf("oid %d, was %d: %v", oid, before, err)
	}
	harness.CompareTables(t, l.source, ours, "life", map[string]string{"item": "id"})
}

// TestBackfillKilled kills the server in the middle of a copy while its table is written to:
// of what was copied at most the chunks that were being read are copied again, and every row is
// right. SKIPPRD_E2E_COPY_ROWS makes it larger: 5,000,000 for the long variant.
func TestBackfillKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	const perPage, chunkPages, parallel = 60, 32, 2
	rows := number("SKIPPRD_E2E_COPY_ROWS", 50_000)
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	l.at(fmt.Sprintf("CREATE TABLE item (id int PRIMARY KEY, v text); INSERT INTO item SELECT i, repeat('x', 100) FROM generate_series(1, %d) i; ANALYZE item", rows))
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf(
		"CREATE PIPELINE life FROM POSTGRES %s FOR TABLE item WITH (backfill_chunk_pages = %d, backfill_parallel = %d, backfill_rows_per_second = %d)",
		quoted(l.source), chunkPages, parallel, rows/4))
	done, updates := 0, 0
	for n, share := range []int{rows / 5, rows / 2} {
		harness.Until(harness.Patience, func() bool {
			updates++
			l.at(fmt.Sprintf("UPDATE item SET v = 'changed %d' WHERE id = 1 + (random() * %d)::int", n, rows-1))
			text, err := harness.Text(l.server.DSN, "SELECT backfill_rows FROM pg_stat_pipeline_table")
			if err == nil {
				_, err = fmt.Sscan(text, &done)
			}
			return err == nil && done > share
		})
		l.server.Kill()
		l.at(fmt.Sprintf("DELETE FROM item WHERE id %% 1000 = %d; INSERT INTO item VALUES (%d, 'new')", n, rows+1+n))
		l.server.Start()
	}
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life SET (backfill_rows_per_second = 0)")
	drain(t, l.server.DSN, "life")
	harness.CompareTables(t, l.source, l.server.DSN, "life", map[string]string{"item": "id"})
	again := l.metric("skippr_copied_rows_total") + done - rows
	t.Logf("%d of %d rows were copied when the server was killed, about %d of them again", done, rows, again)
	// A row that is updated has another place, which is of a later chunk.
	if most := parallel*chunkPages*perPage + rows/100 + updates; again > most {
		t.Errorf("%d rows were copied again, at most %d are in the chunks being read, or were updated", again, most)
	}
}

// metric is a counter of the server.
func (l *tableLife) metric(name string) int {
	l.t.Helper()
	resp, err := http.Get(l.server.HTTP + "/metrics")
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			var v float64
			if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err == nil {
				return int(v)
			}
		}
	}
	l.t.Fatalf("no metric %s", name)
	return 0
}

// TestRemadeEarly: a table that is dropped and made anew before it was ever copied whole
// begins anew by itself, with what the new one is; so does one of which a partition is
// dropped.
func TestRemadeEarly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	const fill = "INSERT INTO %s SELECT i, 'x' || i FROM generate_series(1, 20000) i; ANALYZE %[1]s"
	l.at("CREATE TABLE item (id int PRIMARY KEY, v text, secret text)", "INSERT INTO item SELECT i, 'x' || i, 's' FROM generate_series(1, 20000) i; ANALYZE item",
		"CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)", "CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (10000)",
		"CREATE TABLE part_b PARTITION OF part DEFAULT", fmt.Sprintf(fill, "part"))
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	ours := l.server.DSN
	slow := func() { // minutes in all, seconds for each chunk
		harness.Exec(t, ours, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR TABLE item (id, v), part WITH (backfill_chunk_pages = 1, backfill_rows_per_second = 300)", quoted(l.source)))
		l.eventually("SELECT string_agg(state, ' ') FROM pg_stat_pipeline_table", "backfill backfill")
	}
	slow()
	l.at("DROP TABLE item; CREATE TABLE item (id int PRIMARY KEY, secret text, v text, w int); INSERT INTO item VALUES (1, 's', 'new', 2); DROP TABLE part_b")
	harness.Exec(t, ours, "ALTER PIPELINE life SET (backfill_rows_per_second = 0)")
	l.same("item")
	l.same("part")
	l.eventually("SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'life' AND table_name = 'item'", "id v")
	l.at("INSERT INTO item VALUES (2, 's', 'newer', 3)", "UPDATE item SET v = 'b' WHERE id = 1", "INSERT INTO part VALUES (0, 'c')")
	l.same("item")
	l.same("part")
	l.eventually("SELECT string_agg(table_name || ' ' || state, ', ' ORDER BY table_name) FROM pg_stat_pipeline_table", "item ready, part ready")

	// A copy of what is dropped meanwhile is given up, and the table says that it is gone.
	l.at("CREATE TABLE gone (id int PRIMARY KEY, v text)", fmt.Sprintf(fill, "gone"))
	harness.Exec(t, ours, "ALTER PIPELINE life ADD TABLE gone")
	l.same("gone")
	harness.Exec(t, ours, "ALTER PIPELINE life SET (backfill_rows_per_second = 300)", "ALTER PIPELINE life RESYNC TABLE life.gone")
	l.eventually("SELECT state FROM pg_stat_pipeline_table WHERE table_name = 'gone'", "resync")
	l.at("DROP TABLE gone")
	l.eventually(l.stateOf("gone"), "gone|the table was dropped at the source|It keeps what it has. Take it out, with what it has: ALTER PIPELINE life DROP TABLE life.gone;")
	l.eventually("SELECT count(*) FROM life.gone", "20000")

	// Without a copy of its own accord it waits, and RESYNC takes the new one in by its names.
	harness.Exec(t, ours, "DROP PIPELINE life")
	l.at("DROP TABLE item; CREATE TABLE item (id int PRIMARY KEY, v text, secret text)", "INSERT INTO item SELECT i, 'x' || i, 's' FROM generate_series(1, 20000) i; ANALYZE item")
	slow()
	harness.Exec(t, ours, "ALTER PIPELINE life SET (on_recreate = 'stop')")
	l.at("DROP TABLE item; CREATE TABLE item (id int PRIMARY KEY, secret text, v text); INSERT INTO item VALUES (1, 's', 'new')")
	harness.Exec(t, ours, "ALTER PIPELINE life SET (backfill_rows_per_second = 0)")
	l.eventually(l.stateOf("item"), "stopped|the table was dropped while it was copied|Copy it anew: ALTER PIPELINE life RESYNC TABLE life.item;")
	harness.Exec(t, ours, "ALTER PIPELINE life RESYNC TABLE life.item")
	l.same("item")
	l.eventually("SELECT string_agg(column_name, ' ' ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'life' AND table_name = 'item'", "id v")
}

package e2e

import (
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
)

// TestDeadLetterPrior: an update that leaves a large value out, of a row that is a dead
// letter, gets what the letter had, also when the column has another name by then. Where
// nobody has the value the row stays a letter: it never gets that of an older row.
func TestDeadLetterPrior(t *testing.T) {
	t.Parallel()
	large := func(c, blocks string) string {
		return "(SELECT string_agg(md5(i || '" + c + "'), '') FROM generate_series(1, " + blocks + ") i)"
	}
	const few, many = "300", "240000" // beyond what a letter keeps
	l := newLetters(t, "", "ALTER TABLE t ALTER note SET STORAGE EXTERNAL",
		"INSERT INTO t (id, n, note) VALUES (1, 1, "+large("a", few)+"), (2, 1, "+large("a", few)+"), (3, 1, "+large("a", few)+")")
	same := func(want int) {
		t.Helper()
		const columns, rest = "SELECT id, n, md5(other) FROM ", " WHERE n = 9 ORDER BY id"
		rows, err := harness.Compare(t.Context(), l.source, columns+"t"+rest, l.server.DSN, columns+"shop.t"+rest)
		if err != nil || rows != want {
			t.Errorf("%d rows are the same: %v", rows, err)
		}
	}

	l.at("UPDATE t SET n = 'NaN', note = "+large("b", few)+" WHERE id = 1",
		"UPDATE t SET n = 'NaN', note = "+large("b", many)+" WHERE id = 2", // its letter has no row
		"UPDATE t SET n = 'NaN' WHERE id = 2", "UPDATE t SET id = 4, n = 'NaN' WHERE id = 3")
	l.drain()
	l.at("ALTER TABLE t RENAME note TO other", "UPDATE t SET n = 9 WHERE id = 1", "UPDATE t SET n = 8 WHERE id IN (2, 4)")
	l.drain()
	same(1)
	l.want("SELECT key FROM skippr.dead_letters WHERE state = 'open' ORDER BY key", `["2"]; ["4"]`)
	l.want("SELECT state FROM pg_stat_pipeline_table", "ready")
	l.want("SELECT id, n FROM shop.t ORDER BY id", "1 9.00; 2 1.00")
	l.want("RETRY DEAD LETTERS FROM shop", "0 4 2")
	l.at("UPDATE t SET n = 9, other = other || 'c' WHERE id IN (2, 4)")
	l.drain()
	same(3)
	l.want("SELECT count(*) FROM skippr.dead_letters WHERE state = 'open'", "0")
}

// TestDeadLetterOfWholeRow: the delete of a row that is a dead letter takes that away, also
// when its values can be taken in by then, and not a row of the table that looks like it.
func TestDeadLetterOfWholeRow(t *testing.T) {
	t.Parallel()
	const bag = "SELECT v, n FROM shop.bag ORDER BY v"
	l := newLetters(t, "", "CREATE TABLE bag (v int, n numeric(6,2)); ALTER TABLE bag REPLICA IDENTITY FULL",
		"INSERT INTO bag VALUES (1, NULL), (1, 'NaN'), (2, NULL)")
	l.ours("ALTER PIPELINE shop ADD TABLE bag")
	l.drain()
	l.at("INSERT INTO bag VALUES (2, 'NaN')")
	l.drain()
	l.want(bag, "1 -; 2 -")
	l.ours("ALTER PIPELINE shop SET (out_of_range = 'null')")
	l.at("DELETE FROM bag WHERE n = 'NaN' AND v = 1", "UPDATE bag SET n = 3 WHERE n = 'NaN'")
	l.drain()
	l.want(bag+", n", "1 -; 2 3.00; 2 -")
	l.want("SELECT state, count(*) FROM skippr.dead_letters GROUP BY 1", "superseded 2")
	l.ours("ALTER PIPELINE shop COMPACT")
	l.want(bag+", n", "1 -; 2 3.00; 2 -")
}

// TestDeadLetterFilled: RETRY has the large values that an update left out from the log and
// from the lake, and rows of several MiB are kept. What it cannot have it says.
func TestDeadLetterFilled(t *testing.T) {
	t.Parallel()
	large := func(c string) string {
		return "(SELECT string_agg(md5(i || '" + c + "'), '') FROM generate_series(1, 300) i)"
	}
	l := newLetters(t, "", "ALTER TABLE t ALTER note SET STORAGE EXTERNAL",
		"INSERT INTO t (id, n, note) VALUES (1, 1, "+large("a")+"), (2, 2, "+large("b")+"), (5, 5, "+large("e")+")")
	l.ours("ALTER PIPELINE shop COMPACT")
	l.at("INSERT INTO t (id, n, note) VALUES (3, 3, "+large("c")+")", "ALTER TABLE t RENAME note TO other")
	l.drain()
	l.at("UPDATE t SET n = 'NaN' WHERE id IN (1, 3)",
		"INSERT INTO t (id, n, other) SELECT 4, 'NaN', string_agg(md5(i::text), '') FROM generate_series(1, 100000) i",
		"UPDATE t SET id = 6, n = 'NaN' WHERE id = 5")
	l.drain()
	l.want("SELECT key, raw_row LIKE '%other%' FROM skippr.dead_letters WHERE state = 'open' ORDER BY key", `["1"] f; ["3"] f; ["4"] t; ["6"] -`)
	l.ours("ALTER PIPELINE shop SET (out_of_range = 'null')")
	l.want("RETRY DEAD LETTERS FROM shop", "3 0 1")
	same := func(where string, rows int64) {
		t.Helper()
		n, err := harness.Compare(t.Context(), l.source, "SELECT id, NULLIF(n, 'NaN'), other FROM t WHERE "+where+" ORDER BY id",
			l.server.DSN, "SELECT id, n, other FROM shop.t WHERE "+where+" ORDER BY id")
		if err != nil || int64(n) != rows {
			t.Errorf("%d rows: %v", n, err)
		}
	}
	same("id < 6", 4)
	l.ours("ALTER PIPELINE shop COMPACT")
	same("id < 6", 4)
	l.at("UPDATE t SET other = other || 'x' WHERE id = 6") // what helps
	l.drain()
	same("true", 5)
	l.want("SELECT count(*) FROM skippr.dead_letters WHERE state = 'open'", "0")
}

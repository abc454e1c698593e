package servers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// tableStates asks what tables say of themselves.
const tableStates = "SELECT string_agg(concat_ws(' ', table_name, state, reason, hint), E'\n' ORDER BY table_name) FROM pg_stat_pipeline_table"

// generatedLife is a pipeline g of tables with generated columns.
type generatedLife struct {
	*testing.T
	source string
	server *harness.Server
	keys   map[string]string
}

func newGeneratedLife(t *testing.T, version int, keys map[string]string, tables ...string) *generatedLife {
	t.Helper()
	l := &generatedLife{T: t, source: pgtest.StartVersion(t, version).CreateDatabase(t), keys: keys}
	harness.Exec(t, l.source, tables...)
	l.server = harness.New(t, t.TempDir(), "--commit-interval", "300ms")
	l.server.Start()
	return l
}

func (l *generatedLife) ours(statements ...string) {
	l.Helper()
	harness.Exec(l, l.server.DSN, statements...)
}

// same runs statements at the source and waits until its tables are the same here.
func (l *generatedLife) same(when string, statements ...string) {
	l.Helper()
	harness.Exec(l, l.source, statements...)
	var err error
	if !harness.Until(harness.Patience, func() bool {
		_, err = harness.EqualTables(l.source, l.server.DSN, "g", l.keys)
		return err == nil
	}) {
		l.Fatalf("%s: %v\n%s\n%s", when, err, l.states(), l.server.Log(30))
	}
}

func (l *generatedLife) states() string {
	text, err := harness.Text(l.server.DSN, tableStates)
	if err != nil {
		return err.Error()
	}
	return text
}

// becomes waits until a query here has an answer.
func (l *generatedLife) becomes(sql, want string) {
	l.Helper()
	var got string
	var err error
	if !harness.Until(harness.Patience, func() bool { got, err = harness.Text(l.server.DSN, sql); return err == nil && got == want }) {
		l.Fatalf("%s: %q, %v, want %q\n%s\n%s", sql, got, err, want, l.states(), l.server.Log(30))
	}
}

// Generated columns arrive as the source has them where their expressions change while the
// stream runs (17 and newer), where they are VIRTUAL (18), and where the publication sends
// them (18) or does not: before the change and after it, in its own transaction, and
// over a death of the server.
func TestGeneratedExpressions(t *testing.T) {
	for _, c := range []struct {
		kind     string
		versions []int
	}{{"STORED", pgtest.Versions([]int{17}, 18)}, {"VIRTUAL", []int{18}}} {
		for _, version := range c.versions {
			t.Run(fmt.Sprint(version, " ", c.kind), func(t *testing.T) { generatedExpressions(t, version, c.kind) })
		}
	}
}

func generatedExpressions(t *testing.T, version int, kind string) {
	keys := map[string]string{"k": "id", "p": "id", "w": "a"}
	whole := []string{"INSERT INTO w VALUES (5)", "UPDATE w SET a = 6 WHERE a = 5", "DELETE FROM w WHERE ctid = (SELECT min(ctid) FROM w WHERE a = 1)"}
	if kind == "VIRTUAL" { // of which the server sends no updates
		whole = []string{"INSERT INTO w VALUES (5)"}
	}
	tables := "CREATE TABLE k (id int PRIMARY KEY, a int, big text, g int GENERATED ALWAYS AS (a * 2) KIND, h text GENERATED ALWAYS AS (upper(big) || a) KIND);" +
		"ALTER TABLE k ALTER big SET STORAGE EXTERNAL; INSERT INTO k SELECT i, i, repeat('x', 3000) || i FROM generate_series(1, 20) i;" +
		"CREATE TABLE p (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a + 1) KIND) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);" +
		"INSERT INTO p SELECT i, i FROM generate_series(1, 10) i;" +
		"CREATE TABLE w (a int, g int GENERATED ALWAYS AS (a + 1) KIND); ALTER TABLE w REPLICA IDENTITY FULL; INSERT INTO w VALUES (1), (1), (NULL)"
	l := newGeneratedLife(t, version, keys, strings.ReplaceAll(tables, "KIND", kind))
	l.ours("CREATE PIPELINE g FROM POSTGRES "+quoted(l.source)+" FOR ALL TABLES", "SYNC PIPELINE g")
	l.same("copied")
	l.same("streamed", append(whole, "INSERT INTO k VALUES (21, 21, 'new'), (22, NULL, NULL)", "UPDATE k SET a = a + 100 WHERE id < 5", "UPDATE k SET id = 30 WHERE id = 6",
		"DELETE FROM k WHERE id = 7", "UPDATE p SET a = 50 WHERE id = 1")...)
	again := "ALTER TABLE k ALTER g SET EXPRESSION AS (a + id)"
	if kind == "STORED" { // of others the server does not let it change, once the table is published
		l.expressions()
	} else {
		again = "SELECT 1"
	}
	l.server.Kill()
	harness.Exec(t, l.source, "UPDATE k SET a = 1000 WHERE id = 13", again, "UPDATE k SET a = 1001 WHERE id = 14", "INSERT INTO w VALUES (9)")
	l.server.Start()
	l.same("while it was dead")
	l.same("a column of the expression is renamed", "ALTER TABLE k RENAME a TO b", "UPDATE k SET b = 5 WHERE id = 15")

	// One that comes later is left out, and said, until the table is copied anew.
	harness.Exec(t, l.source, "ALTER TABLE k ADD late int GENERATED ALWAYS AS (b * 10) "+kind, "INSERT INTO k VALUES (50, 50, 'late')")
	l.becomes("SELECT (count(*) = 1)::text FROM g.k WHERE id = 50", "true")
	l.becomes("SELECT (reason LIKE '%late%' AND hint LIKE '%RESYNC TABLE%')::text FROM pg_stat_pipeline_table WHERE table_name = 'k'", "true")
	l.ours("ALTER PIPELINE g RESYNC TABLE g.k")
	l.same("copied anew", "UPDATE k SET b = 51 WHERE id = 50")
	if kind == "STORED" {
		l.same("expression dropped", "ALTER TABLE k ALTER late DROP EXPRESSION", "UPDATE k SET late = 1 WHERE id = 16")
	}
	l.ours("ALTER PIPELINE g COMPACT")
	l.same("compacted")
	l.becomes(tableStates, "k ready\np ready\nw ready")
}

// expressions changes those of columns that rows of the stream are computed by.
func (l *generatedLife) expressions() {
	l.Helper()
	l.same("another expression", "UPDATE k SET a = a + 1 WHERE id = 8", "ALTER TABLE k ALTER g SET EXPRESSION AS (a * 3)", "UPDATE k SET a = a + 1 WHERE id = 9", "INSERT INTO k VALUES (40, 40, 'after')")
	l.same("in one transaction", "BEGIN; UPDATE k SET a = a + 1 WHERE id = 10; ALTER TABLE k ALTER h SET EXPRESSION AS (lower(big) || id), ALTER g SET EXPRESSION AS (-a); UPDATE k SET big = 'short' WHERE id = 11; COMMIT",
		"UPDATE k SET a = 0 WHERE id = 12")
	l.same("of a partitioned table", "ALTER TABLE p ALTER g SET EXPRESSION AS (a - 1)", "INSERT INTO p VALUES (20, 20)", "UPDATE p SET a = 7 WHERE id = 2")
}

// With generated_columns = 'skip' they are left out of the copy and of the stream, sent or
// not, whatever becomes of them, and all else arrives.
func TestGeneratedSkipped(t *testing.T) {
	for _, version := range pgtest.Versions([]int{18}, 15, 17) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { generatedSkipped(t, version) })
	}
}

func generatedSkipped(t *testing.T, version int) {
	l := newGeneratedLife(t, version, nil, "CREATE TABLE k (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED, v text)", "INSERT INTO k VALUES (1, DEFAULT, 'copied')",
		"CREATE TABLE w (g int GENERATED ALWAYS AS (length(v)) STORED, v text); ALTER TABLE w REPLICA IDENTITY FULL; INSERT INTO w (v) VALUES ('same'), ('same')")
	l.ours("CREATE PIPELINE g FROM POSTGRES "+quoted(l.source)+" FOR ALL TABLES WITH (generated_columns = 'skip')", "SYNC PIPELINE g")
	const columns = "SELECT string_agg(table_name || '.' || column_name, ' ' ORDER BY table_name, ordinal_position) FROM information_schema.columns WHERE table_schema = 'g'"
	l.becomes(columns, "k.id k.v w.v")
	rows := func(want string, statements ...string) {
		t.Helper()
		harness.Exec(t, l.source, statements...)
		l.becomes("SELECT string_agg(k::text, ' ' ORDER BY id) || (SELECT string_agg(w::text, ' ' ORDER BY v) FROM g.w) FROM g.k", want)
	}
	rows("(1,copied)(same) (same)")
	rows("(1,u) (2,new)(same) (x)", "UPDATE k SET v = 'u'", "INSERT INTO k VALUES (2, DEFAULT, 'new')", "UPDATE w SET v = 'x' WHERE ctid = (SELECT min(ctid) FROM w)")
	rows("(1,late) (2,new)(same)", "ALTER TABLE k ADD late int GENERATED ALWAYS AS (id + 1) STORED", "UPDATE k SET v = 'late' WHERE id = 1", "DELETE FROM w WHERE v = 'x'")
	if version >= 17 {
		rows("(1,expression) (2,new)(same)", "ALTER TABLE k ALTER g SET EXPRESSION AS (id * 3)", "UPDATE k SET v = 'expression' WHERE id = 1")
	}
	if version >= 18 {
		rows("(1,virtual) (2,new)(same)", "ALTER TABLE k ADD virtual int GENERATED ALWAYS AS (id + 2) VIRTUAL", "UPDATE k SET v = 'virtual' WHERE id = 1")
	}
	l.server.Kill()
	harness.Exec(t, l.source, "INSERT INTO k VALUES (3, DEFAULT, 'dead')", "ALTER TABLE k DROP g")
	l.server.Start()
	rows("(1,b) (2,new) (3,dead)(same)", "UPDATE k SET v = 'b' WHERE id = 1")
	l.ours("ALTER PIPELINE g RESYNC TABLE g.k")
	l.becomes("SELECT count(*)::text FROM skippr.events WHERE kind = 'table replaced by its new copy' AND table_name = 'g.k'", "1")
	l.becomes(columns, "k.id k.v w.v")
	rows("(1,b) (2,new) (3,c)(same)", "UPDATE k SET v = 'c' WHERE id = 3")
	l.becomes(tableStates, "k ready\nw ready")
}

package servers

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// A server older than 15 overlooks that partitions are attached and detached while it decodes.
// The copy that follows has everything all the same, also when the pipeline was away
// meanwhile; and where no copy is wanted the table says what may be wrong.
func TestPartitionsOverlooked(t *testing.T) {
	for _, version := range pgtest.Versions([]int{14}, 18) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { partitionsOverlooked(t, version) })
	}
}

func partitionsOverlooked(t *testing.T, version int) {
	source := pgtest.StartVersion(t, version).CreateDatabase(t)
	at := func(statements ...string) { harness.Exec(t, source, statements...) }
	at("CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)", "CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (100)",
		"CREATE TABLE one (id int PRIMARY KEY, v text)", "CREATE TABLE two (id int PRIMARY KEY, v text)", "INSERT INTO part VALUES (1, 'a')")
	s := harness.New(t, t.TempDir(), "--commit-interval", "300ms")
	s.Start()
	ours := func(statements ...string) { harness.Exec(t, s.DSN, statements...) }
	becomes := func(sql, want string) {
		t.Helper()
		var got string
		var err error
		if !harness.Until(harness.Patience, func() bool { got, err = harness.Text(s.DSN, sql); return err == nil && got == want }) {
			t.Fatalf("%s: %q, %v, want %q\n%s", sql, got, err, want, s.Log(30))
		}
	}
	rows := "SELECT string_agg(id || v, ',' ORDER BY id) FROM b.part"
	ours("CREATE PIPELINE b FROM POSTGRES "+quoted(source)+" FOR TABLE part", "SYNC PIPELINE b")

	// While the stream runs, and while nobody reads it.
	at("INSERT INTO one VALUES (101, 'before')", "ALTER TABLE part ATTACH PARTITION one FOR VALUES FROM (100) TO (200)", "INSERT INTO part VALUES (102, 'b')")
	becomes(rows, "1a,101before,102b")
	at("UPDATE part SET v = 'c' WHERE id = 101", "INSERT INTO part VALUES (103, 'c')")
	becomes(rows, "1a,101c,102b,103c")
	s.Kill()
	at("ALTER TABLE part DETACH PARTITION one", "DELETE FROM one WHERE id = 102", "INSERT INTO two VALUES (201, 'before')",
		"ALTER TABLE part ATTACH PARTITION two FOR VALUES FROM (200) TO (300)", "INSERT INTO part VALUES (202, 'd')")
	s.Start()
	becomes(rows, "1a,201before,202d")
	at("DELETE FROM part WHERE id = 201", "INSERT INTO part VALUES (203, 'e')", "INSERT INTO one VALUES (104, 'not here')")
	becomes(rows, "1a,202d,203e")

	ours("SYNC PIPELINE b UNTIL CAUGHT UP", "ALTER PIPELINE b SET (on_partition = 'keep')")
	becomes("SELECT concat_ws(' ', state, reason) FROM pg_stat_pipeline_table", "ready")
	at("ALTER TABLE part ATTACH PARTITION one FOR VALUES FROM (100) TO (200)")
	becomes("SELECT count(*)::text FROM skippr.events WHERE kind = 'partitions changed'", "1")
	reason := "ready"
	if version < 15 {
		reason = "ready a server older than 15 may leave out what is written to partitions that are attached, and send what is written to detached ones" +
			" Copy it anew: ALTER PIPELINE b RESYNC TABLE b.part;"
	}
	becomes("SELECT concat_ws(' ', state, reason, hint) FROM pg_stat_pipeline_table", reason)
	at("INSERT INTO part VALUES (105, 'after')")
	becomes(rows, "1a,105after,202d,203e")
	ours("ALTER PIPELINE b RESYNC TABLE b.part")
	becomes(rows, "1a,101c,103c,104not here,105after,202d,203e")
	becomes("SELECT concat_ws(' ', state, reason, hint) FROM pg_stat_pipeline_table", "ready")
}

package e2e

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// TestPartitionsBesideTheStream has rows of partitions come and go in ways that the source
// does not send: they arrive all the same, also when the server was down meanwhile.
func TestPartitionsBesideTheStream(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	l.at(
		"CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
		"CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (100); INSERT INTO part VALUES (1, 'a'), (2, 'a')",
		"CREATE TABLE part_b PARTITION OF part FOR VALUES FROM (100) TO (200); INSERT INTO part VALUES (101, 'b')",
		"CREATE TABLE alone (id int PRIMARY KEY, v text); INSERT INTO alone VALUES (201, 'c')",
	)
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES", quoted(l.source)))
	l.same("part")
	l.same("alone")
	const reattach = "ALTER TABLE part DETACH PARTITION part_a; UPDATE part_a SET v = 'changed'; INSERT INTO part_a VALUES (%d, 'x'); " +
		"ALTER TABLE part ATTACH PARTITION part_a FOR VALUES FROM (0) TO (100)"
	for _, step := range []struct {
		down       bool
		statements []string
	}{
		{false, []string{"TRUNCATE part_a", "INSERT INTO part VALUES (3, 'new')"}},
		{false, []string{fmt.Sprintf(reattach, 4)}},
		{true, []string{"INSERT INTO part VALUES (102, 'b')", "TRUNCATE part_b; INSERT INTO part VALUES (103, 'b')", "ANALYZE part_b", fmt.Sprintf(reattach, 5)}},
	} {
		if step.down {
			l.server.Kill()
		}
		l.at(step.statements...)
		if step.down {
			l.server.Start()
		}
		l.same("part")
	}
	l.at("ALTER TABLE part ATTACH PARTITION alone FOR VALUES FROM (200) TO (300)")
	l.same("part")
	l.eventually("SELECT state FROM pg_stat_pipeline_table WHERE table_name = 'alone'", "gone")
	l.at("UPDATE part SET v = 'moved' WHERE id = 201; INSERT INTO part VALUES (202, 'c')", "ALTER TABLE part DETACH PARTITION alone")
	l.same("part")
	l.same("alone")
	l.at("INSERT INTO alone VALUES (203, 'd')")
	l.same("alone")
	l.eventually("SELECT state FROM pg_stat_pipeline_table WHERE table_name = 'alone'", "ready")
}

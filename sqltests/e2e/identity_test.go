package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// as is the source's address for another role.
func (l *tableLife) as(role string) string {
	return strings.Replace(l.source, "user=postgres", "user="+role, 1)
}

// TestIdentityLater: a table that was taken in without a key is copied anew by itself, once, as
// soon as its updates can be followed: also if it was updated in the same batch, while the
// pipeline was paused, or while the server was dead.
func TestIdentityLater(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	l := &tableLife{t: t, source: pgtest.Start(t).CreateDatabase(t)}
	names := []string{"batch", "later", "paused", "dead", "keyed", "indexed", "parted", "stays"}
	for _, n := range names {
		if n != "parted" {
			l.at(fmt.Sprintf("CREATE TABLE %s (id int NOT NULL, v text); CREATE UNIQUE INDEX ON %[1]s (id); INSERT INTO %[1]s VALUES (1, 'a'), (2, 'b')", n))
		}
	}
	l.at("CREATE TABLE parted (id int NOT NULL, v text) PARTITION BY RANGE (id)", "CREATE TABLE parted_a PARTITION OF parted FOR VALUES FROM (0) TO (2)",
		"CREATE TABLE parted_b PARTITION OF parted DEFAULT", "INSERT INTO parted VALUES (1, 'a'), (2, 'b')")
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES", quoted(l.source)))
	for _, n := range names {
		l.same(n)
	}
	follows := func(table string) { // updates and deletes come, and nothing is copied again
		t.Helper()
		l.same(table)
		l.eventually(l.stateOf(table), "ready")
		l.at(fmt.Sprintf("UPDATE %s SET v = v || '!' WHERE id = 1; DELETE FROM %[1]s WHERE id = 2; INSERT INTO %[1]s VALUES (3, 'c')", table))
		l.same(table)
		l.eventually(fmt.Sprintf("SELECT count(*) FROM skippr.events WHERE table_name = 'life.%s' AND kind = 'table copied anew'", table), "1")
		l.eventually(l.stateOf(table), "ready")
	}
	const full = "ALTER TABLE %s REPLICA IDENTITY FULL; UPDATE %[1]s SET v = 'other' WHERE id = 1; DELETE FROM %[1]s WHERE id = 2"

	l.at(fmt.Sprintf(full, "batch"))
	follows("batch")
	l.at("ALTER TABLE later REPLICA IDENTITY FULL")
	follows("later")
	l.at("UPDATE keyed SET v = 'other' WHERE id = 1; ALTER TABLE keyed ADD PRIMARY KEY USING INDEX keyed_id_idx; DELETE FROM keyed WHERE id = 2")
	follows("keyed")
	l.at("BEGIN; DELETE FROM indexed WHERE id = 2; ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_id_idx; UPDATE indexed SET v = 'other' WHERE id = 1; COMMIT")
	follows("indexed")
	l.at("ALTER TABLE parted REPLICA IDENTITY FULL; ALTER TABLE parted_a REPLICA IDENTITY FULL; UPDATE parted SET v = 'other' WHERE id = 1;" +
		" ALTER TABLE parted_b REPLICA IDENTITY FULL; DELETE FROM parted WHERE id = 2")
	follows("parted")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life PAUSE")
	l.at(fmt.Sprintf(full, "paused"))
	l.server.Kill()
	l.server.Start()
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESUME")
	follows("paused")
	l.server.Kill()
	l.at(fmt.Sprintf(full, "dead"))
	l.server.Start()
	follows("dead")

	// Who wants no copy by itself is told.
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life SET (on_schema_change = 'stop')")
	l.at("ALTER TABLE stays REPLICA IDENTITY FULL")
	l.eventually(l.stateOf("stays"), "ready|updates and deletes of its rows can be followed once it is copied anew: it has a key, or REPLICA IDENTITY FULL, at the source now"+
		"|Copy it anew: ALTER PIPELINE life RESYNC TABLE life.stays;")
	l.at("ALTER TABLE stays REPLICA IDENTITY DEFAULT")
	l.eventually(l.stateOf("stays"), "ready")
	l.at("ALTER TABLE stays REPLICA IDENTITY FULL")
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE life.stays")
	l.same("stays")
	l.eventually(l.stateOf("stays"), "ready")
}

// TestIdentityOfOthers: with publications that somebody else has made the table says what is
// missing, and is copied anew when that is mended; what nobody sends is counted, from before
// the copy on and over deaths of either server.
func TestIdentityOfOthers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts servers")
	}
	source := pgtest.StartPrivate(t)
	l := &tableLife{t: t, source: source.CreateDatabase(t)}
	l.at("CREATE TABLE k (id int PRIMARY KEY, v text)",
		"CREATE TABLE a (id int, v text); INSERT INTO a VALUES (1, 'a'), (2, 'b')",
		"CREATE TABLE b (id int, v text); INSERT INTO b VALUES (1, 'a'), (2, 'b')",
		"CREATE TABLE p (id int, v text) PARTITION BY RANGE (id)", "CREATE TABLE p_a PARTITION OF p FOR VALUES FROM (0) TO (2)",
		"CREATE TABLE p_b PARTITION OF p DEFAULT", "INSERT INTO p VALUES (1, 'a'), (2, 'b')",
		"DO $$ BEGIN IF to_regrole('others_reader') IS NULL THEN CREATE ROLE others_reader LOGIN REPLICATION; END IF; END $$",
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO others_reader; ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO others_reader",
		"CREATE PUBLICATION theirs FOR TABLE k WITH (publish_via_partition_root)",
		"CREATE PUBLICATION theirs_append FOR TABLE a, b, p WITH (publish = 'insert, truncate', publish_via_partition_root)")
	l.server = harness.New(t, t.TempDir())
	l.server.Start()
	harness.Exec(t, l.server.DSN, fmt.Sprintf("CREATE PIPELINE life FROM POSTGRES %s FOR ALL TABLES WITH (publication = 'theirs')", quoted(l.as("others_reader"))))
	for _, n := range []string{"a", "b", "p"} {
		l.same(n)
		l.eventually(l.stateOf(n), "ready")
	}
	counted := func(table string, n int) string {
		return fmt.Sprintf("ready|updates or deletes at the source (%d so far) are not followed without a key|", n) + missedHint(table)
	}
	barred := func(table string, n int) string {
		return fmt.Sprintf("ready|updates or deletes at the source (%d so far) are not followed without a key; "+
			"its updates and deletes could be followed now, and publication theirs, which somebody else has made, does not have them|"+
			"At the source (at its primary, if it is a standby), as the publication's owner: ALTER PUBLICATION \"theirs\" ADD TABLE ONLY \"public\".\"%s\"; then it is copied anew by itself.", n, table)
	}
	state := func(table, want string) {
		t.Helper()
		l.eventually(l.stateOf(table), want)
	}

	// The identity becomes FULL and goes, in one batch: nobody can know but by the counters.
	l.at("ALTER TABLE b REPLICA IDENTITY FULL; UPDATE b SET v = 'other' WHERE id = 1; ALTER TABLE b REPLICA IDENTITY DEFAULT")
	state("b", counted("b", 1))
	l.at("ALTER TABLE a REPLICA IDENTITY FULL; UPDATE a SET v = 'other' WHERE id = 1; DELETE FROM a WHERE id = 2")
	state("a", barred("a", 2))
	l.server.Kill()
	l.at("UPDATE p SET v = 'other' WHERE id = 1; DELETE FROM p WHERE id = 2; CREATE TABLE p_c PARTITION OF p FOR VALUES FROM (7) TO (8)",
		"INSERT INTO p VALUES (7, 'seven'); UPDATE p SET v = 'sieben' WHERE id = 7")
	l.server.Start()
	state("a", barred("a", 2))
	state("b", counted("b", 1))
	state("p", counted("p", 3))
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life PAUSE")
	l.server.Kill()
	l.server.Start()
	l.eventually(l.stateOf("p"), counted("p", 3))
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESUME")

	l.at("ALTER PUBLICATION theirs ADD TABLE ONLY public.a")
	l.same("a")
	state("a", "ready")
	l.at("UPDATE a SET v = 'another' WHERE id = 1; INSERT INTO a VALUES (4, 'd'), (4, 'd'); DELETE FROM a WHERE ctid = (SELECT min(ctid) FROM a WHERE id = 4)")
	l.same("a")
	l.eventually("SELECT count(*) FROM skippr.events WHERE table_name = 'life.a' AND kind = 'table copied anew'", "1")

	// A copy begins to count anew; one of which nothing was missed says nothing.
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE life.b")
	l.same("b")
	state("b", "ready")

	// The counters of a server that crashed begin anew: what was before is not known.
	l.server.Kill()
	l.at("UPDATE b SET v = 'lost' WHERE id = 2")
	source.Control(t, "restart", "-m", "immediate")
	l.server.Start()
	state("b", "ready|whether rows were updated or deleted, which is not followed without a key, is not known: the counters of the source began anew|"+missedHint("b"))
	l.at("UPDATE b SET v = 'seen' WHERE id = 1")
	state("b", "ready|updates or deletes at the source (1 so far, and perhaps others, since its counters began anew) are not followed without a key|"+missedHint("b"))
	harness.Exec(t, l.server.DSN, "ALTER PIPELINE life RESYNC TABLE life.b")
	l.same("b")
	state("b", "ready")
}

func missedHint(table string) string {
	return fmt.Sprintf("VERIFY PIPELINE life TABLE life.%s; tells whether rows differ. With ALTER TABLE public.%[1]s REPLICA IDENTITY FULL at the source, or a primary key, "+
		"it is copied anew and followed; as it is now: ALTER PIPELINE life RESYNC TABLE life.%[1]s;", table)
}

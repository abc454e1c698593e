package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A transaction arrives whole and in order, key updates as delete and insert.
func TestStreamDelivers(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'old')")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec(
		"BEGIN; INSERT INTO a VALUES (2, 'two'), (3, NULL); UPDATE a SET v = 'new' WHERE id = 1; COMMIT",
		"UPDATE a SET id = 10 WHERE id = 1",
		"DELETE FROM a WHERE id = 3",
		"BEGIN; INSERT INTO a VALUES (4, 'gone'); TRUNCATE a; INSERT INTO a VALUES (5, 'five'); COMMIT",
	)
	k.expect(
		"a insert 2|two", "a insert 3|-", "a update 1|new",
		"a delete 1|-", "a insert 10|new",
		"a delete 3|-",
		"a insert 4|gone", "a truncate", "a insert 5|five",
	)
	if !slices.IsSorted(k.mu.tokens) || k.mu.tokens[0] <= r.setup.Token {
		t.Fatalf("tokens %v do not grow from %d", k.mu.tokens, r.setup.Token)
	}
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
}

// Restarted from a position, a stream brings what commits after it and nothing else,
// per table.
func TestStreamResumes(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	k.mu.noAck = true
	r.exec("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
	k.expect("a insert 1", "b insert 1")
	at := k.position()
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	r.exec("INSERT INTO a VALUES (2)", "INSERT INTO b VALUES (2)")
	r.reopen()
	r.begin()
	k = r.stream(at, nil)
	k.mu.noAck = true
	k.expect("a insert 2", "b insert 2")
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	// The slot still has everything, b is behind.
	k = r.stream(r.setup.Start, map[string]changePosition{"a": at})
	k.expect("b insert 1", "a insert 2", "b insert 2")
}

func TestStreamFullIdentity(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE a (id int PRIMARY KEY, n int, big text)",
		"ALTER TABLE a ALTER big SET STORAGE EXTERNAL", "ALTER TABLE a REPLICA IDENTITY FULL",
		"INSERT INTO a VALUES (1, 1, repeat('x', 20000))")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET n = 2", "UPDATE a SET id = 2", "DELETE FROM a")
	big := strings.Repeat("x", 20000)
	k.expect("a update 1|2|"+big, "a delete 1|-|-", "a insert 2|2|"+big, "a delete 2|-|-")
}

// Composite keys, keys not in column order, and a unique index as replica identity.
func TestStreamKeys(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE a (v text, y int, x int, PRIMARY KEY (x, y))", "INSERT INTO a VALUES ('v', 1, 2)",
		"CREATE TABLE b (id int PRIMARY KEY, u int NOT NULL, v text)", "CREATE UNIQUE INDEX b_u ON b (u)",
		"ALTER TABLE b REPLICA IDENTITY USING INDEX b_u", "INSERT INTO b VALUES (1, 7, 'v')")
	r.begin()
	if got := r.table("a").Key; !slices.Equal(got, []string{"x", "y"}) {
		t.Fatalf("key of a: %v", got)
	}
	if got := r.table("b").Key; !slices.Equal(got, []string{"u"}) {
		t.Fatalf("key of b: %v", got)
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE a SET y = 3", "DELETE FROM a", "UPDATE b SET id = 2", "UPDATE b SET u = 8", "DELETE FROM b")
	k.expect("a delete -|1|2", "a insert v|3|2", "a delete -|3|2",
		"b update 2|7|v", "b delete -|7|-", "b insert 2|8|v", "b delete -|8|-")
}

// A partitioned table is one table; a row that moves between partitions stays one row.
func TestPartitioned(t *testing.T) {
	r := newRig(t,
		"CREATE TABLE p (id int, d date, v text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)",
		"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-07-01')",
		"CREATE TABLE p2 (v text, junk int, d date NOT NULL, id int NOT NULL)", "ALTER TABLE p2 DROP junk",
		"ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM ('2026-07-01') TO ('2027-01-01')",
		"INSERT INTO p VALUES (1, '2026-02-01', 'a'), (2, '2026-08-01', 'b')")
	r.begin()
	if len(r.tables) != 1 {
		t.Fatalf("%d tables", len(r.tables))
	}
	rows := r.copy(r.backfill(), "p")
	slices.Sort(rows)
	if want := []string{"1|2026-02-01|a", "2|2026-08-01|b"}; !slices.Equal(rows, want) {
		t.Fatalf("got %v", rows)
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("UPDATE p SET d = '2026-09-01' WHERE id = 1", "DELETE FROM p WHERE id = 2")
	k.expect("p delete 1|2026-02-01|-", "p insert 1|2026-09-01|a", "p delete 2|2026-08-01|-")
}

// What cannot be taken in stops its table, from the transaction on, and no other.
func TestStreamStopsOneTable(t *testing.T) {
	const other = "CREATE TABLE zz (id int PRIMARY KEY)"
	cases := []struct {
		name, create string
		change       []string
		reason       string
	}{
		{"infinity", "CREATE TABLE a (id int PRIMARY KEY, v timestamptz, w int)", []string{"INSERT INTO a VALUES (1, 'infinity', 1)"}, `column "v" holds infinity`},
		{"minus infinity date", "CREATE TABLE a (id int PRIMARY KEY, v date)", []string{"INSERT INTO a VALUES (1, '-infinity')"}, `column "v" holds infinity`},
		{"nan", "CREATE TABLE a (id int PRIMARY KEY, v numeric(10,2))", []string{"INSERT INTO a VALUES (1, 'NaN')"}, `column "v" holds NaN`},
		{"far future", "CREATE TABLE a (id int PRIMARY KEY, v timestamp)", []string{"INSERT INTO a VALUES (1, '294270-01-01')"}, `column "v" is outside the range`},
		{"dimensions", "CREATE TABLE a (id int PRIMARY KEY, v int[], w int)", []string{"INSERT INTO a VALUES (1, '{{1,2},{3,4}}', 1)"}, `column "v" is an array of several dimensions`},
		{"bounds", "CREATE TABLE a (id int PRIMARY KEY, v int[])", []string{"INSERT INTO a VALUES (1, '[2:3]={1,2}')"}, `column "v" is an array whose first subscript is not 1`},
		{"array element", "CREATE TABLE a (id int PRIMARY KEY, v date[], w int)", []string{"INSERT INTO a VALUES (1, '{2026-01-01,infinity}', 1)"}, `column "v" holds infinity`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.create, other)
			r.begin()
			k := r.stream(r.setup.Start, nil)
			r.exec(append(c.change, "INSERT INTO zz VALUES (1)")...)
			k.await("both tables", func() bool { return len(k.mu.lines) >= 2 })
			k.mu.Lock()
			defer k.mu.Unlock()
			if len(k.mu.lines) != 2 || !strings.HasPrefix(k.mu.lines[0], "a stopped: ") ||
				!strings.Contains(k.mu.lines[0], c.reason) || k.mu.lines[1] != "zz insert 1" {
				t.Fatalf("lines:\n%s", strings.Join(k.mu.lines, "\n"))
			}
		})
	}
}

// What makes no difference here stops nothing.
func TestStreamToleratesHarmlessChanges(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v varchar(5), n numeric)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (1, 'a', 1)", "ALTER TABLE a ALTER v TYPE varchar(50)", "INSERT INTO a VALUES (2, 'longer than five', 2)",
		"ALTER TABLE a RENAME TO aa", "INSERT INTO aa VALUES (3, 'c', 3)", "ALTER TABLE aa REPLICA IDENTITY FULL", "UPDATE aa SET v = 'd' WHERE id = 3")
	k.expect("a insert 1|a|1", "a is now 1 id integer, 2 v character varying(50), 3 n numeric", "a insert 2|longer than five|2", "a insert 3|c|3", "a update 3|d|3")
}

// An idle table in a busy server must not pin the log: what is sent and not ours is
// acknowledged.
func TestStreamAcknowledgesWhenIdle(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.exec("CREATE TABLE noise (id int)")
	r.sel.AllTables, r.sel.Tables = false, selected("a")
	r.reopen()
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO noise SELECT generate_series(1, 10000)")
	before, err := r.src.Status(r.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.await("idle position", func() bool {
		return r.src.Compare(k.mu.idle, before.Current) >= 0 || r.src.Compare(k.mu.last, before.Current) >= 0
	})
	k.await("confirmation", func() bool {
		now, err := r.src.Status(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		k.poke()
		return r.src.Compare(now.Confirmed, before.Current) >= 0
	})
	if len(k.mu.lines) != 0 {
		t.Fatalf("lines: %v", k.mu.lines)
	}
}

// Nothing is confirmed that was not acknowledged, not even at the end.
func TestStreamConfirmsOnlyAcks(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	k.mu.noAck = true
	r.exec("INSERT INTO a VALUES (1)")
	k.expect("a insert 1")
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	status, err := r.src.Status(r.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Confirmed != r.setup.Start {
		t.Fatalf("confirmed %s, slot began at %s", status.Confirmed, r.setup.Start)
	}
}

// A slot acknowledged past what is durable has lost changes: say so, never go on.
func TestStreamRefusesSlotAhead(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	r.exec("INSERT INTO a VALUES (1)", "CHECKPOINT", "SELECT pg_replication_slot_advance('skippr_"+r.name+"', pg_current_wal_lsn())")
	k := r.stream(r.setup.Start, nil)
	if err := k.end(); !errors.Is(err, ErrSlotLost) {
		t.Fatalf("got %v", err)
	}
}

// A key that is kept out of line is sent with every update, as the old key, since the new
// row leaves it out.
func TestStreamLargeKey(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (k text PRIMARY KEY, v int, w text, z text)",
		"ALTER TABLE a ALTER k SET STORAGE EXTERNAL, ALTER w SET STORAGE PLAIN, ALTER z SET STORAGE PLAIN")
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (repeat('k', 1500), 1, repeat('w', 900), repeat('z', 900))", "UPDATE a SET v = 2, w = '', z = ''")
	key := strings.Repeat("k", 1500)
	k.expect("a insert "+key+"|1|"+strings.Repeat("w", 900)+"|"+strings.Repeat("z", 900), "a update "+key+"|2||")
}

package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// partedTable has one partition when the slot is made.
var partedTable = []string{
	"CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
	"CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (100)",
}

// partsLook is what a pipeline does every two seconds: it looks at the partitions of part, and
// remembers them.
func (r *rig) partsLook(known *watch.Here) watch.There {
	r.Helper()
	known.OID, known.ID = r.table("part").OID, 1
	if known.Parts == nil {
		known.Parts, known.Marks = r.table("part").Parts, r.table("part").PartMarks
	}
	look, err := r.src.Look(r.Context(), r.sel, []watch.Here{*known}, "")
	if err != nil {
		r.Fatal(err)
	}
	there := look.Known[known.OID]
	known.Parts, known.Marks = nil, nil
	for _, p := range there.Parts {
		known.Parts, known.Marks = append(known.Parts, p.OID), append(known.Marks, p.Mark)
	}
	return there
}

// A server older than 15 leaves out what is written to a partition that was attached after it
// had decoded a row of it, and goes on sending what is written to a detached one: until
// the pipeline has looked. So the copy that follows the look has all of it.
func TestPartitionsOverlooked(t *testing.T) {
	notShort(t)
	for _, given := range []bool{false, true} {
		t.Run(fmt.Sprintf("given=%t", given), func(t *testing.T) {
			r := privateRig(t, pgtest.StartVersion(t, 14), partedTable...)
			if given {
				r.exec("CREATE PUBLICATION skippr_slots FOR TABLE part WITH (publish_via_partition_root = true)")
			}
			r.begin()
			if st, err := decodeState(r.setup.State); err != nil || len(st.Owned) == 0 != given {
				t.Fatalf("%+v, %v", st, err)
			}
			k := r.stream(r.setup.Start, nil)
			r.exec("CREATE TABLE one (id int PRIMARY KEY, v text)", "INSERT INTO one VALUES (101, 'before')", "INSERT INTO part VALUES (1, 'a')")
			k.expect("part insert 1|a")
			var known watch.Here
			if got := r.partsLook(&known); got.Overlooked != "" {
				t.Fatalf("nothing has changed: %s", got.Overlooked)
			}
			r.exec("ALTER TABLE part ATTACH PARTITION one FOR VALUES FROM (100) TO (200)", "INSERT INTO part VALUES (102, 'left out')", "INSERT INTO part VALUES (2, 'a')")
			k.expect("part insert 1|a", "part insert 2|a")
			if got := r.partsLook(&known); got.Overlooked == "" {
				t.Fatal("what is left out is not said")
			}
			r.exec("INSERT INTO part VALUES (103, 'sent')", "UPDATE part SET v = 'sent' WHERE id = 102",
				"ALTER TABLE part DETACH PARTITION one", "INSERT INTO one VALUES (104, 'sent in vain')")
			k.expect("part insert 1|a", "part insert 2|a", "part insert 103|sent", "part update 102|sent", "part insert 104|sent in vain")
			r.partsLook(&known)
			r.exec("INSERT INTO one VALUES (105, 'left out')", "INSERT INTO part VALUES (3, 'a')")
			k.expect("part insert 1|a", "part insert 2|a", "part insert 103|sent", "part update 102|sent", "part insert 104|sent in vain", "part insert 3|a")
			if n := r.ask("SELECT count(*) FROM pg_publication WHERE pubname ~ 'renew'"); n != "0" {
				t.Errorf("%s publications are left", n)
			}

			// A session begins behind a change that its decoder remembers the table by.
			if err := k.stop(); err != nil {
				t.Fatal(err)
			}
			from := k.position()
			r.exec("INSERT INTO one VALUES (106, 'before')", "ALTER TABLE part ATTACH PARTITION one FOR VALUES FROM (100) TO (200)", "INSERT INTO part VALUES (107, 'left out')")
			r.reopen()
			r.begin()
			r.exec("INSERT INTO part VALUES (108, 'sent')")
			k = r.stream(from, nil)
			k.expect("part insert 108|sent")
		})
	}
}

// A role that may not do what has the server look anew is told of it, and its session begins.
func TestRenewMembershipRefused(t *testing.T) {
	r := newRig(t)
	conn := r.connect()
	parted := []ingest.SourceTable{{OID: 1, Parts: []uint32{2}}}
	for _, c := range []struct{ set, want string }{
		{"SET default_transaction_read_only = on", "default_transaction_read_only = off;"},
		{"SET default_transaction_read_only = off; SET ROLE pg_monitor", "GRANT CREATE ON DATABASE"},
	} {
		if _, err := conn.Exec(t.Context(), c.set); err != nil {
			t.Fatal(err)
		}
		warnings, err := renewMembership(t.Context(), conn, &state{Slot: r.name}, parted, 140000)
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], c.want) {
			t.Errorf("%s: %q, %v", c.set, warnings, err)
		}
	}
}

// Partitions that are attached and detached while the stream runs, one by one and as trees:
// from the very command on what is written to them comes under the table, or no more, also
// when the server has sent, or left out, rows of them before, in a transaction that began
// before, and in one that is sent while it runs.
func TestPartitionsComeAndGo(t *testing.T) {
	for _, version := range pgtest.Versions([]int{15}, 16, 17, 18) {
		t.Run(fmt.Sprint(version), func(t *testing.T) { partitionsComeAndGo(t, version) })
	}
}

func partitionsComeAndGo(t *testing.T, version int) {
	notShort(t)
	r := privateRig(t, pgtest.StartVersion(t, version, "logical_decoding_work_mem = 64kB"), partedTable...)
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO part VALUES (1, 'a')")
	k.expect("part insert 1|a")

	// The server knows of it as of one that is not published.
	r.exec("CREATE TABLE one (gone int, v text, id int PRIMARY KEY); ALTER TABLE one DROP gone", "INSERT INTO one VALUES ('before', 101)",
		"INSERT INTO part VALUES (2, 'a')")
	want := []string{"part insert 1|a", "part insert 2|a"}
	next := func(lines ...string) {
		t.Helper()
		want = append(want, lines...)
		k.expect(want...)
	}
	next()
	r.exec("ALTER TABLE part ATTACH PARTITION one FOR VALUES FROM (100) TO (200)", "INSERT INTO one VALUES ('leaf', 102)",
		"INSERT INTO part VALUES (103, 'root')", "UPDATE part SET v = 'u' WHERE id = 101", "UPDATE part SET id = 104 WHERE id = 1")
	next("part insert 102|leaf", "part insert 103|root", "part update 101|u", "part delete 1|-", "part insert 104|a")

	r.exec("CREATE TABLE tree (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)", "CREATE TABLE twig PARTITION OF tree FOR VALUES FROM (200) TO (250) PARTITION BY RANGE (id)",
		"CREATE TABLE leaf PARTITION OF twig FOR VALUES FROM (200) TO (220)", "INSERT INTO tree VALUES (201, 'before')", "INSERT INTO part VALUES (3, 'a')")
	next("part insert 3|a")
	const attach = "ALTER TABLE part ATTACH PARTITION tree FOR VALUES FROM (200) TO (300)"
	r.exec(attach, "INSERT INTO leaf VALUES (202, 'leaf')", "INSERT INTO tree VALUES (203, 'tree')", "DELETE FROM part WHERE id = 201")
	next("part insert 202|leaf", "part insert 203|tree", "part delete 201|-")
	r.exec("ALTER TABLE part DETACH PARTITION tree", "INSERT INTO leaf VALUES (204, 'leaf')", "DELETE FROM tree WHERE id = 202", "INSERT INTO part VALUES (4, 'a')")
	next("part insert 4|a")
	r.exec(attach, "INSERT INTO leaf VALUES (205, 'leaf')", "ALTER TABLE twig DETACH PARTITION leaf", "INSERT INTO leaf VALUES (206, 'leaf')",
		"ALTER TABLE twig ATTACH PARTITION leaf FOR VALUES FROM (200) TO (220)", "INSERT INTO leaf VALUES (207, 'leaf')")
	next("part insert 205|leaf", "part insert 207|leaf")

	// Transactions that began before.
	older := r.connect()
	run := func(sql string) {
		t.Helper()
		if _, err := older.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	r.exec("CREATE TABLE late (id int PRIMARY KEY, v text)", "INSERT INTO late VALUES (301, 'before')")
	run("BEGIN")
	run("INSERT INTO part VALUES (5, 'a')")
	r.exec("ALTER TABLE part ATTACH PARTITION late FOR VALUES FROM (300) TO (400)")
	run("INSERT INTO part VALUES (302, 'late')")
	run("UPDATE late SET v = 'late' WHERE id = 301")
	run("COMMIT")
	next("part insert 5|a", "part insert 302|late", "part update 301|late")

	// One transaction of its own, and one that is sent while it runs.
	r.exec("BEGIN; CREATE TABLE own (id int PRIMARY KEY, v text); INSERT INTO own VALUES (401, 'before'); " +
		"ALTER TABLE part ATTACH PARTITION own FOR VALUES FROM (400) TO (500); INSERT INTO part VALUES (402, 'own'); COMMIT")
	next("part insert 402|own")
	r.exec("BEGIN; CREATE TABLE big (id int PRIMARY KEY, v text); INSERT INTO big SELECT i, repeat('x', 1000) FROM generate_series(501, 700) i; "+
		"ALTER TABLE part ATTACH PARTITION big FOR VALUES FROM (500) TO (1000); INSERT INTO part VALUES (800, 'big'); DELETE FROM big WHERE id = 501; "+
		"ALTER TABLE part DETACH PARTITION big; INSERT INTO big VALUES (801, 'big'); COMMIT", "INSERT INTO part VALUES (6, 'a')")
	next("part insert 800|big", "part delete 501|-", "part insert 6|a")
	if err := k.stop(); err != nil {
		t.Error(err)
	}
}

// A publication that somebody else has made, and that sends changes of partitions under
// their own names, is not used for a partitioned table: the report has the SQL that makes
// it one that will do, and a table that comes later is refused with it.
func TestPublicationOfLeaves(t *testing.T) {
	for _, of := range []string{"TABLE part, plain", "ALL TABLES"} {
		t.Run(of, func(t *testing.T) {
			r := newRig(t, append(partedTable, "CREATE TABLE plain (id int PRIMARY KEY)")...)
			r.exec("CREATE PUBLICATION skippr_" + r.name + " FOR " + of)
			r.sel = catalog.TableSelection{Tables: []catalog.SelectedTable{{Name: "plain"}}}
			r.reopen()
			r.begin() // without a partitioned table it will do
			plain := r.tables
			r.sel = catalog.TableSelection{AllTables: true}
			r.reopen()
			var err error
			if r.tables, err = r.src.Discover(t.Context(), r.sel); err != nil {
				t.Fatal(err)
			}
			setup, err := r.src.Setup(t.Context(), r.setup.State, r.tables)
			if err != nil {
				t.Fatal(err)
			}
			sql := fmt.Sprintf("ALTER PUBLICATION \"skippr_%s\" SET (publish_via_partition_root = true)", r.name)
			if why := setup.Refused[r.table("part").OID]; len(setup.Refused) != 1 || why == nil || !strings.Contains(why.Hint, sql+";") {
				t.Errorf("refused: %+v", setup.Refused)
			}
			if setup, err = r.src.Setup(t.Context(), r.setup.State, plain); err != nil || len(setup.Refused) > 0 {
				t.Errorf("without the table: %+v, %v", setup.Refused, err)
			}
			if left, err := r.src.Teardown(t.Context(), r.setup.State); err != nil || len(left) > 0 {
				t.Fatalf("%q, %v", left, err)
			}

			r.setup = ingest.SetupResult{}
			if _, err := r.src.Setup(t.Context(), nil, r.tables); err == nil {
				t.Fatal("it is used for a partitioned table")
			}
			if fixed := r.mend(); !slices.Equal(fixed, []string{"publication"}) {
				t.Errorf("mended: %q", fixed)
			}
			r.begin()
			k := r.stream(r.setup.Start, nil)
			r.exec("INSERT INTO part VALUES (1, 'a')")
			k.expect("part insert 1|a")
			if n := r.ask("SELECT count(*)::text FROM pg_publication WHERE obj_description(oid, 'pg_publication') IS NOT NULL"); n != "0" {
				t.Errorf("%s publications are ours", n)
			}
		})
	}
}

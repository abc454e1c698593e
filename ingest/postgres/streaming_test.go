package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/spill"
	"github.com/skipprd/skipprd/wal/crashfs"
)

// beside is a second pipeline on the rig's database, of which the server sends large
// transactions, and that means of a few dozen rows, before they end.
func (r *rig) beside(fs *crashfs.FS) *rig {
	r.Helper()
	other := *r
	other.name, other.setup, other.src = r.name+"s", ingest.SetupResult{}, nil
	other.scratch = ingest.Scratch{FS: fs, Dir: "/spill", Prefix: "1-"}
	other.dsn = r.dsn + " options='-c logical_decoding_work_mem=64kB'"
	other.reopen()
	return &other
}

// streamed is how many blocks of transactions the server has sent before they ended.
func (r *rig) streamed() int {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var n int
	err = conn.QueryRow(r.Context(), "SELECT stream_count FROM pg_stat_replication_slots WHERE slot_name = 'skippr_"+r.name+"'").Scan(&n)
	if err != nil {
		r.Fatal(err)
	}
	return n
}

const fill = "INSERT INTO %s SELECT g, repeat('%s', 200) FROM generate_series(%d, %d) g"

// Transactions that the server sends before they end arrive exactly as those that it
// sends when they have.
func TestStreamingEqualsWhole(t *testing.T) {
	big := func(table, with string, from int) string { return fmt.Sprintf(fill, table, with, from, from+999) }
	cases := []struct {
		name string
		sql  []string
	}{
		{"plain", []string{"BEGIN; " + big("a", "x", 1) + "; UPDATE a SET v = 'y' WHERE id <= 500; DELETE FROM a WHERE id > 990; COMMIT"}},
		{"rolled back", []string{"BEGIN; " + big("a", "x", 1) + "; ROLLBACK", "INSERT INTO a VALUES (1, 'kept')"}},
		{"savepoints", []string{
			"BEGIN; SAVEPOINT s; " + big("a", "lost", 1) + "; ROLLBACK TO s; " + big("a", "kept", 5001) + "; SAVEPOINT t; " +
				big("b", "kept", 1) + "; RELEASE t; SAVEPOINT u; SAVEPOINT v; " + big("b", "lost", 2001) + "; RELEASE v; " + big("a", "lost", 7001) +
				"; ROLLBACK TO u; " + big("b", "kept", 9001) + "; COMMIT",
		}},
		{"exceptions", []string{
			"DO $$ BEGIN FOR i IN 1..40 LOOP BEGIN INSERT INTO a SELECT i * 100 + g, repeat('x', 200) FROM generate_series(1, 50) g; " +
				"IF i % 3 = 0 THEN RAISE 'no'; END IF; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$",
		}},
		{"truncate", []string{"BEGIN; " + big("a", "x", 1) + "; TRUNCATE a; " + big("a", "y", 1) + "; COMMIT"}},
		{"schema", []string{
			"BEGIN; " + big("a", "x", 1) + "; ALTER TABLE a ADD w int DEFAULT 7; " + fmt.Sprintf(fill, "a (id, v)", "z", 5001, 5999) + "; COMMIT",
			"INSERT INTO a VALUES (9999, 'after', 1)",
		}},
		{"schema rolled back", []string{
			"BEGIN; " + big("a", "x", 1) + "; SAVEPOINT s; ALTER TABLE a ADD w int; " + fmt.Sprintf(fill, "a (id, v)", "z", 5001, 5999) +
				"; ROLLBACK TO s; " + big("a", "y", 7001) + "; COMMIT", "INSERT INTO a VALUES (9999, 'after')",
		}},
		{"large values", []string{"BEGIN; INSERT INTO a SELECT g, (SELECT string_agg(md5((g * i)::text), '') FROM generate_series(1, 500) i) FROM generate_series(1, 30) g; COMMIT"}},
		{"other tables", []string{"BEGIN; " + big("noise", "x", 1) + "; " + big("a", "x", 1) + "; COMMIT", "BEGIN; " + big("noise", "x", 1) + "; COMMIT"}},
		{"prepared", []string{"BEGIN; " + big("a", "x", 1) + "; PREPARE TRANSACTION '%[1]s'", "INSERT INTO b VALUES (1, 'between')", "COMMIT PREPARED '%[1]s'"}},
		{"prepared, rolled back", []string{"BEGIN; " + big("a", "x", 1) + "; PREPARE TRANSACTION '%[1]s'", "ROLLBACK PREPARED '%[1]s'"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE b (id int PRIMARY KEY, v text)", "CREATE TABLE noise (id int, v text)")
			r.sel.AllTables, r.sel.Tables = false, selected("a", "b")
			r.reopen()
			r.begin()
			fs := crashfs.New()
			other := r.beside(fs)
			other.begin()
			for _, sql := range c.sql {
				r.exec(strings.ReplaceAll(sql, "%[1]s", r.name))
			}
			r.exec("INSERT INTO b VALUES (77777, 'last')")
			whole, streamed := r.stream(r.setup.Start, nil), other.stream(other.setup.Start, nil)
			for _, k := range []*fakeSink{whole, streamed} {
				k.await("the last row", func() bool { return slices.Contains(k.mu.lines, "b insert 77777|last") })
				if err := k.stop(); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(whole.mu.lines, streamed.mu.lines) || whole.mu.last != streamed.mu.last ||
				!slices.Equal(whole.mu.tokens[len(whole.mu.tokens)-1:], streamed.mu.tokens[len(streamed.mu.tokens)-1:]) {
				t.Fatalf("whole: %d lines to %s; streamed: %d lines to %s; %s", len(whole.mu.lines), whole.mu.last,
					len(streamed.mu.lines), streamed.mu.last, firstDifference(whole.mu.lines, streamed.mu.lines))
			}
			// From version 18 on a server does not send what it knows to be rolled back.
			if n := other.streamed(); n == 0 && !strings.HasSuffix(c.name, "rolled back") {
				t.Fatal("the server sent nothing before its end")
			}
			if files, _ := fs.List("/spill"); len(files) != 0 {
				t.Fatalf("files stay: %v", files)
			}
		})
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: %.80q, %.80q", i, a[i], b[i])
		}
	}
	return "one has more"
}

// Two transactions that run side by side come in blocks in turn; what is committed in
// between arrives first, and may be acknowledged. A stream that begins anew meanwhile
// loses nothing of them.
func TestStreamingSideBySide(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE b (id int PRIMARY KEY, v text)").beside(crashfs.New())
	r.begin()
	k := r.stream(r.setup.Start, nil)
	var conns []*pgx.Conn
	for range 2 {
		conn, err := pgx.Connect(t.Context(), r.dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		conns = append(conns, conn)
	}
	run := func(i int, sql string) {
		t.Helper()
		if _, err := conns[i].Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(0, "BEGIN")
	run(1, "BEGIN")
	for i := range 6 {
		run(i%2, fmt.Sprintf(fill, "a", fmt.Sprint(i%2), i*1000, i*1000+999))
	}
	r.exec("INSERT INTO b VALUES (1, 'between')")
	k.expect("b insert 1|between")
	r.exec("CHECKPOINT") // so that there is something to acknowledge
	k.await("an acknowledgement past open transactions", func() bool { return k.mu.idle != "" && r.src.Compare(k.mu.idle, k.mu.last) > 0 })
	at := k.mu.idle
	if n := r.streamed(); n == 0 {
		t.Fatal("the server sent nothing before its end")
	}
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.begin()
	k = r.stream(at, nil)
	run(1, "COMMIT")
	run(0, "ROLLBACK")
	r.exec("INSERT INTO b VALUES (2, 'last')")
	k.await("the last row", func() bool { return slices.Contains(k.mu.lines, "b insert 2|last") })
	if len(k.mu.lines) != 3001 || !strings.HasPrefix(k.mu.lines[0], "a insert 1000|11") {
		t.Fatalf("%d lines, the first %.40q", len(k.mu.lines), k.mu.lines[0])
	}
}

// Where there is no room for a transaction that has not ended, the server keeps it:
// nothing is lost, and nothing comes twice.
func TestStreamingWithoutRoom(t *testing.T) {
	fs := crashfs.New()
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)").beside(fs)
	r.opts["spill_max_bytes"] = "1048576"
	r.reopen()
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO a VALUES (-1, 'first')", fmt.Sprintf(fill, "a", "x", 1, 20000), "INSERT INTO a VALUES (-2, 'last')")
	k.await("the last row", func() bool { return slices.Contains(k.mu.lines, "a insert -2|last") })
	if len(k.mu.lines) != 20002 || k.mu.lines[0] != "a insert -1|first" {
		t.Fatalf("%d lines, the first %.40q", len(k.mu.lines), k.mu.lines[0])
	}
	if files, _ := fs.List("/spill"); len(files) != 0 {
		t.Fatalf("files stay: %v", files)
	}
}

// Blocks where none may be are refused.
func TestStreamingOrder(t *testing.T) {
	start, stop := []byte{'S', 0, 0, 0, 7, 1}, []byte{'E'}
	insert := []byte{'I', 0, 0, 0, 7, 0, 0, 0, 9, 'N', 0, 0}
	for name, messages := range map[string][][]byte{
		"stop alone":         {stop},
		"block in block":     {start, start},
		"begin in block":     {start, {'B', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"short change":       {start, insert[:4]},
		"change without oid": {start, insert[:7]},
	} {
		a, err := newApplier(newSource(config{}, ingest.SourceDeps{}), nil, 0, newFakeSink(t, nil))
		if err != nil {
			t.Fatal(err)
		}
		if a.spool, err = spill.Open(crashfs.New(), spill.Config{Dir: "/spill"}); err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if err = a.change(m); err != nil {
				break
			}
		}
		if !errors.Is(err, pgoutput.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is prepared arrives when it is committed, also when the stream has begun anew
// meanwhile and has acknowledged what came between; what is rolled back never does.
func TestPreparedAcrossRestart(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)")
	for _, p := range []*rig{r, r.beside(crashfs.New())} { // small ones, and such as are sent before they end
		p.begin()
		gid := func(n int) string { return fmt.Sprintf("'%s_%d'", p.name, n) }
		r.exec("BEGIN; DELETE FROM a; "+fmt.Sprintf(fill, "a", "x", 1, 500)+"; PREPARE TRANSACTION "+gid(1), "INSERT INTO a VALUES (1000, 'between')",
			"BEGIN; "+fmt.Sprintf(fill, "a", "gone", 2001, 2500)+"; PREPARE TRANSACTION "+gid(2))
		k := p.stream(p.setup.Start, nil)
		k.expect("a insert 1000|between")
		r.exec("CHECKPOINT")
		k.await("an acknowledgement of it", func() bool { return p.src.Compare(k.mu.idle, k.mu.last) > 0 })
		at := k.mu.idle
		if err := k.stop(); err != nil {
			t.Fatal(err)
		}
		p.reopen()
		p.begin()
		r.exec("COMMIT PREPARED "+gid(1), "ROLLBACK PREPARED "+gid(2), "INSERT INTO a VALUES (1001, 'after')")
		k = p.stream(at, nil)
		k.await("the last row", func() bool { return slices.Contains(k.mu.lines, "a insert 1001|after") })
		if err := k.stop(); err != nil {
			t.Fatal(err)
		}
		inserted := slices.DeleteFunc(slices.Clone(k.mu.lines), func(s string) bool { return !strings.HasPrefix(s, "a insert") })
		if len(inserted) != 501 || !strings.HasPrefix(inserted[0], "a insert 1|xx") || slices.ContainsFunc(k.mu.lines, func(s string) bool { return strings.Contains(s, "gone") }) {
			t.Fatalf("%s: %d inserts of %d lines, the first %.40q", p.name, len(inserted), len(k.mu.lines), k.mu.lines[0])
		}
		r.exec("DELETE FROM a WHERE id >= 1000")
	}
}

// Changes that the source itself has taken from elsewhere arrive like its own, and so
// do empty transactions, as positions.
func TestOrigin(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "CREATE TABLE b (id int PRIMARY KEY)")
	r.sel.AllTables, r.sel.Tables = false, selected("a")
	for _, p := range []*rig{r, r.beside(crashfs.New())} {
		p.reopen()
		p.begin()
		name := "from_" + p.name
		r.exec("TRUNCATE b", "DELETE FROM a", "SELECT pg_replication_origin_create('"+name+"'); SELECT pg_replication_origin_session_setup('"+name+"'); "+
			"BEGIN; SELECT pg_replication_origin_xact_setup('0/1234', now()); "+fmt.Sprintf(fill, "a", "x", 1, 500)+"; COMMIT; "+
			"INSERT INTO b VALUES (1); SELECT pg_replication_origin_session_reset(); SELECT pg_replication_origin_drop('"+name+"')",
			"INSERT INTO a VALUES (1000, 'last')")
		k := p.stream(p.setup.Start, nil)
		k.await("the last row", func() bool { return slices.Contains(k.mu.lines, "a insert 1000|last") })
		if err := k.stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(k.mu.lines); n != 501 && n != 501+501 {
			t.Fatalf("%s: %d lines", p.name, n)
		}
	}
}

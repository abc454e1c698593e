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
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/change"
)

// fakeRefusals notes what a copy says of rows that it refuses.
type fakeRefusals struct{ lines []string }

var _ ingest.CopyRefusals = (*fakeRefusals)(nil)

func (f *fakeRefusals) Refused(_ ingest.SourceTable, _ string, _ uint32, r deadletter.Refused) error {
	f.lines = append(f.lines, "refused "+r.Key)
	return nil
}

func (f *fakeRefusals) Changed(_ ingest.SourceTable, _, key string) {
	f.lines = append(f.lines, "changed "+key)
}

func (f *fakeRefusals) Doubtful(_ ingest.SourceTable, _, key string) {
	f.lines = append(f.lines, "doubtful "+key)
}

// waiting runs statements whose commit waits for a standby that there is not, and returns
// when it is in the log; let ends the wait.
func (r *rig) waiting(sql string) (let func()) {
	r.Helper()
	done := make(chan error, 1)
	go func() {
		conn, err := pgx.Connect(context.Background(), r.dsn)
		if err == nil {
			_, err = conn.Exec(context.Background(), "SET synchronous_commit = on; "+sql)
			_ = conn.Close(context.Background())
		}
		done <- err
	}()
	waits := func() bool {
		return r.ask("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')::text") == "true"
	}
	awaitThat(r.T, "a commit that waits for a standby", waits)
	return func() {
		r.Helper()
		r.exec("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		if err := <-done; err != nil {
			r.Fatal(err)
		}
	}
}

// connect is a session of a test's own.
func (r *rig) connect() *pgx.Conn {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// awaitBlocked waits until somebody waits for a lock of a table.
func (r *rig) awaitBlocked() {
	r.Helper()
	awaitThat(r.T, "one who waits for a lock", func() bool {
		return r.ask(`SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE NOT granted AND locktype = 'relation' AND datname = current_database())::text`) == "true"
	})
}

// awaitAsks waits until a session of ours has asked what holds a word.
func (r *rig) awaitAsks(word string) {
	r.Helper()
	sql := fmt.Sprintf("SELECT (count(*) > 0)::text FROM pg_stat_activity WHERE query LIKE '%%%s%%' AND pid <> pg_backend_pid()", word)
	awaitThat(r.T, "a question about "+word, func() bool { return r.ask(sql) == "true" })
}

// TestSeenLater: what is in the source's log, and so in the stream or in the moment of a
// copy, is seen by others later. Until then nothing is concluded from what they see.
func TestSeenLater(t *testing.T) {
	p := pgtest.StartPrivate(t, "synchronous_standby_names = 'nobody'", "synchronous_commit = local")
	r := privateRig(t, p,
		"CREATE TABLE a (id int PRIMARY KEY, n numeric(6,2))", "INSERT INTO a SELECT i, 'NaN' FROM generate_series(1, 6) i",
		"CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b VALUES (1)")
	r.begin()
	r.reopen() // the exported snapshot goes: the copy has a moment of its own
	r.begin()

	// The moment has the new column of b before others see it.
	let := r.waiting("ALTER TABLE b ADD v int; UPDATE b SET v = 7")
	opened := make(chan ingest.Backfill, 1)
	go func() {
		b, err := r.src.Backfill(context.Background())
		if err != nil {
			t.Error(err)
		}
		opened <- b
	}()
	// Where the slot's snapshot has the commit already, whoever copies asks; else making the
	// slot waits for the transaction.
	awaitThat(r.T, "a copy that waits for the commit", func() bool {
		return r.ask("SELECT (count(*) > 0)::text FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND "+
			"(query LIKE '%txid_snapshot_xip%' OR query LIKE 'CREATE_REPLICATION_SLOT%' AND wait_event = 'transactionid')") == "true"
	})
	select {
	case <-opened:
		t.Fatal("a copy begins before its moment can be seen")
	default:
	}
	let()
	b := <-opened
	t.Cleanup(func() { _ = b.Close() })
	var err error
	if r.tables, err = r.src.Discover(t.Context(), r.sel); err != nil {
		t.Fatal(err)
	}
	if rows := r.copy(b, "b"); !slices.Equal(rows, []string{"1|7"}) {
		t.Errorf("rows of b: %q", rows)
	}

	// Of a: row 1 is as it was, 2 is gone, 3 is being changed by one who waits for his client,
	// 4 by one who waits for a lock, 5 is deleted by the one that is not seen yet, of 6 a
	// change was given up.
	table := r.table("a")
	chunks, err := b.Plan(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	r.exec("DELETE FROM a WHERE id = 2", "BEGIN; UPDATE a SET n = 6 WHERE id = 6; ROLLBACK")
	idle := r.connect()
	if _, err := idle.Exec(t.Context(), "BEGIN; UPDATE a SET n = 3 WHERE id = 3; LOCK TABLE b IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	let = r.waiting("DELETE FROM a WHERE id = 5")
	refusals := &fakeRefusals{}
	b.(ingest.CopyRefuser).OnRefused(refusals)
	blocked, gaveUp := r.connect(), make(chan error, 1)
	if _, err := blocked.Exec(t.Context(), "BEGIN; UPDATE a SET n = 4 WHERE id = 4"); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := blocked.Exec(context.Background(), "LOCK TABLE b; COMMIT")
		gaveUp <- err
	}()
	r.awaitBlocked()
	read := make(chan error, 1)
	s := newSchema(t, table)
	go func() {
		read <- b.Read(context.Background(), table, s, chunks[0], 1, func(batch *change.Batch) error { batch.Release(); return nil })
	}()
	r.awaitAsks("RowExclusiveLock")
	select {
	case err := <-read:
		t.Fatalf("the copy does not wait: %v, %q", err, refusals.lines)
	default:
	}
	let()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	want := "refused [\"1\"] refused [\"2\"] refused [\"3\"] refused [\"4\"] refused [\"5\"] refused [\"6\"] changed [\"2\"] changed [\"5\"]"
	if got := strings.Join(refusals.lines, " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if _, err := idle.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-gaveUp; err != nil {
		t.Error(err)
	}
}

// TestCopyGivesLocksBack: an ALTER TABLE waits for the chunks that are being read at most,
// not for the end of the session; and one that waits does not keep the copy from looking
// whether its dead letters are true. Columns that changed their names are not mixed up.
func TestCopyGivesLocksBack(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, n numeric(6,2), m numeric(6,2)) PARTITION BY RANGE (id)",
		"CREATE TABLE a0 PARTITION OF a DEFAULT", "INSERT INTO a SELECT i, CASE i % 2 WHEN 0 THEN 'NaN'::numeric ELSE i % 9 END, 1 FROM generate_series(1, 2000) i")
	r.begin()
	b := r.backfill()
	refusals := &fakeRefusals{}
	b.(ingest.CopyRefuser).OnRefused(refusals)
	table := r.table("a")
	chunks, err := b.Plan(t.Context(), table)
	if err != nil || len(chunks) < 4 {
		t.Fatalf("%q, %v", chunks, err)
	}
	s := newSchema(t, table)
	read := func(chunk string, meanwhile func()) error {
		return b.Read(t.Context(), table, s, chunk, 1, func(batch *change.Batch) error {
			batch.Release()
			meanwhile()
			return nil
		})
	}
	none := func() {}
	if err := read(chunks[0], none); err != nil || len(refusals.lines) == 0 {
		t.Fatalf("%v, %q", err, refusals.lines)
	}
	r.exec("SET lock_timeout = '10s'", "ALTER TABLE a ADD x int")

	altered := make(chan error, 1)
	alter := r.connect()
	once := false
	err = read(chunks[1], func() {
		if once {
			return
		}
		once = true
		go func() {
			_, err := alter.Exec(context.Background(), "ALTER TABLE a ADD y int")
			altered <- err
		}()
		r.awaitAsks("ADD y int")
		r.awaitBlocked()
	})
	if err != nil || !once {
		t.Fatalf("%v, rows came: %v", err, once)
	}
	if err := <-altered; err != nil {
		t.Fatal(err)
	}

	r.exec("ALTER TABLE a RENAME n TO o", "ALTER TABLE a RENAME m TO n", "ALTER TABLE a RENAME o TO m")
	var why *ingest.TableError
	if err := read(chunks[2], none); !errors.As(err, &why) || !why.Anew || !strings.Contains(why.Reason, `column "n"`) {
		t.Errorf("columns that changed their names: %v", err)
	}
}

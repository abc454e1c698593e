package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

type (
	changePosition = change.Position
	sourceColumn   = ingest.SourceColumn
)

func selected(names ...string) []catalog.SelectedTable {
	var out []catalog.SelectedTable
	for _, n := range names {
		out = append(out, catalog.SelectedTable{Schema: "public", Name: n})
	}
	return out
}

// The copy has exactly what the stream has not.
func TestBackfillIsExact(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a SELECT i, 'v' || i FROM generate_series(1, 1000) i")
	r.begin()
	r.exec("INSERT INTO a VALUES (1001, 'late')", "UPDATE a SET v = 'late' WHERE id = 1")
	b := r.backfill()
	if !b.Exact() || b.Horizon() != r.setup.Start {
		t.Fatalf("exact %v, horizon %s, start %s", b.Exact(), b.Horizon(), r.setup.Start)
	}
	chunks, err := b.Plan(t.Context(), r.table("a"))
	if err != nil {
		t.Fatal(err)
	}
	if len(chunks) < 4 {
		t.Fatalf("%d chunks", len(chunks))
	}
	rows := r.copy(b, "a")
	if len(rows) != 1000 || !slices.Contains(rows, "1|v1") {
		t.Fatalf("%d rows", len(rows))
	}
	k := r.stream(r.setup.Start, nil)
	k.expect("a insert 1001|late", "a update 1|late")
}

// A copy goes on in a later session with the chunks that are left; with the stream
// from the start the table is whole.
func TestBackfillResumes(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a SELECT i, 'v' || i FROM generate_series(1, 1000) i")
	r.begin()
	b := r.backfill()
	chunks, err := b.Plan(t.Context(), r.table("a"))
	if err != nil {
		t.Fatal(err)
	}
	half := len(chunks) / 2
	rows, err := r.read(b, "a", chunks[:half])
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// Rows move to the end, to the front, and go.
	r.exec("UPDATE a SET v = 'moved' WHERE id > 900", "DELETE FROM a WHERE id BETWEEN 1 AND 10", "VACUUM a",
		"INSERT INTO a VALUES (2000, 'new')")
	r.reopen()
	r.begin()
	if r.setup.Created {
		t.Fatal("the slot was made again")
	}
	b = r.backfill()
	if b.Exact() || r.src.Compare(b.Horizon(), r.setup.Start) <= 0 {
		t.Fatalf("exact %v, horizon %s", b.Exact(), b.Horizon())
	}
	more, err := r.read(b, "a", chunks[half:])
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for _, row := range append(rows, more...) {
		id, v, _ := strings.Cut(row, "|")
		state[id] = v
	}
	k := r.stream(r.setup.Start, nil)
	k.await("the horizon", func() bool { return r.src.Compare(k.mu.last, b.Horizon()) >= 0 || len(k.mu.lines) >= 111 })
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, line := range k.mu.lines {
		f := strings.SplitN(line, " ", 3)
		id, v, _ := strings.Cut(f[2], "|")
		state[id] = v
		if f[1] == "delete" {
			delete(state, id)
		}
	}
	if len(state) != 991 || state["950"] != "moved" || state["2000"] != "new" || state["11"] != "v11" {
		t.Fatalf("%d rows", len(state))
	}
}

// Without a key, rows count: a later session and the stream share out transactions,
// those that were open included.
func TestBackfillWithoutKey(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int)", "INSERT INTO a SELECT generate_series(1, 1000)")
	r.begin()
	r.exec("INSERT INTO a VALUES (1001)")
	r.reopen()
	r.begin()
	b := r.backfill()
	chunks, err := b.Plan(t.Context(), r.table("a"))
	if err != nil {
		t.Fatal(err)
	}
	r.exec("INSERT INTO a VALUES (1002)")
	rows, err := r.read(b, "a", chunks)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1001 {
		t.Fatalf("%d rows", len(rows))
	}
	k := r.stream(r.setup.Start, map[string]change.Position{"a": b.Horizon()})
	k.expect("a insert 1002")
	_ = b.Close()

	b = r.backfill()
	var refused *ingest.TableError
	if _, err := r.read(b, "a", chunks[1:]); !errors.As(err, &refused) {
		t.Fatalf("rest of the chunks in another session: %v", err)
	}
}

// A table that was rewritten has other rows at the same places.
func TestBackfillNoticesRewrite(t *testing.T) {
	for _, rewrite := range []string{"VACUUM FULL a", "TRUNCATE a", "DROP TABLE a", "ALTER TABLE a ALTER v TYPE varchar(9) USING upper(v)", "ALTER TABLE a RENAME v TO w"} {
		t.Run(rewrite, func(t *testing.T) {
			r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a SELECT i, 'v' || i FROM generate_series(1, 1000) i")
			r.begin()
			b := r.backfill()
			chunks, err := b.Plan(t.Context(), r.table("a"))
			if err != nil {
				t.Fatal(err)
			}
			r.exec(rewrite)
			var refused *ingest.TableError
			if _, err := r.read(b, "a", chunks); !errors.As(err, &refused) || refused.Anew == (rewrite == "DROP TABLE a") {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// A column of another type could have bytes that pass for the old one's.
func TestBackfillNoticesTypes(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v int)", "INSERT INTO a VALUES (1, 1)")
	r.begin()
	_ = r.backfill().Close()
	r.exec("ALTER TABLE a ALTER v TYPE float4")
	b := r.backfill()
	chunks, err := b.Plan(t.Context(), r.table("a"))
	if err != nil {
		t.Fatal(err)
	}
	var refused *ingest.TableError
	if _, err := r.read(b, "a", chunks); !errors.As(err, &refused) || !refused.Anew || !strings.Contains(refused.Reason, `type of column "v" was changed`) {
		t.Fatalf("got %v", err)
	}
}

// A value that cannot be kept stops the table's copy, and the session goes on.
func TestBackfillRefusesValue(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v date)", "INSERT INTO a VALUES (1, 'infinity')",
		"CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b VALUES (1)")
	r.begin()
	b := r.backfill()
	chunks, err := b.Plan(t.Context(), r.table("a"))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 { // more often than there are readers
		var refused *ingest.TableError
		if _, err := r.read(b, "a", chunks); !errors.As(err, &refused) || !strings.Contains(refused.Reason, `"v" holds infinity`) {
			t.Fatalf("got %v", err)
		}
	}
	if rows := r.copy(b, "b"); !slices.Equal(rows, []string{"1"}) {
		t.Fatalf("got %v", rows)
	}
}

// An empty table has a chunk, so that rows that came after the estimate are not missed.
func TestBackfillEmptyTable(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY)")
	r.begin()
	if rows := r.copy(r.backfill(), "a"); len(rows) != 0 {
		t.Fatalf("%d rows", len(rows))
	}
}

func TestChunkText(t *testing.T) {
	for _, c := range []chunk{
		{leaf: 1, file: 2, first: 0, open: true},
		{leaf: 16384, file: 1 << 31, first: 8192, end: 16384, horizon: "16/B374D848"},
	} {
		back, err := parseChunk(c.String())
		if err != nil || back != c {
			t.Fatalf("%v came back as %v, %v", c, back, err)
		}
	}
	for _, bad := range []string{"", "1:2", "2:1:1:1:1:", "1:x:1:1:1:", "1:1:1:1:99999999999:"} {
		if _, err := parseChunk(bad); err == nil {
			t.Fatalf("%q was read", bad)
		}
	}
}

// Batches stay small whatever the rows are like.
func TestBackfillBatches(t *testing.T) {
	r := newRig(t, "CREATE TABLE a (id int PRIMARY KEY, v text)",
		"INSERT INTO a SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i")
	r.opts["backfill_chunk_pages"] = "100000"
	r.reopen()
	r.begin()
	b := r.backfill()
	table := r.table("a")
	chunks, err := b.Plan(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	batches, rows := 0, int64(0)
	err = b.Read(t.Context(), table, newSchema(t, table), chunks[0], 7, func(batch *change.Batch) error {
		defer batch.Release()
		batches++
		rows += batch.Rows()
		if !batch.Backfill || batch.Counts.MaxToken != 7 || batch.Counts.MinToken != 7 || int64(batch.Counts.Inserts) != batch.Rows() {
			return fmt.Errorf("batch %d: %+v", batches, batch.Counts)
		}
		return nil
	})
	if err != nil || rows != 20000 || batches < 5 || len(chunks) != 1 {
		t.Fatalf("%d rows in %d batches of %d chunks: %v", rows, batches, len(chunks), err)
	}
}

// A table that was rewritten after the copy's moment, and before the copy has come to it,
// shows that moment's rows to nobody: its copy begins anew, later.
func TestBackfillNoticesRewriteBefore(t *testing.T) {
	for name, change := range map[string]string{
		"another type":  "ALTER TABLE a ALTER n TYPE bigint",
		"same type":     "ALTER TABLE a ALTER n TYPE int USING n + 1",
		"added":         "ALTER TABLE a ADD r float DEFAULT random()",
		"a partition's": "VACUUM FULL p1",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(
				t, "CREATE TABLE a (id int PRIMARY KEY, n int)", "INSERT INTO a VALUES (1, 1), (2, 2)",
				"CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
				"CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)", "INSERT INTO p VALUES (1, 1), (2, 2)",
			)
			r.begin()
			b := r.backfill()
			r.exec(change)
			table := "a"
			if strings.Contains(change, "p1") {
				table = "p"
			}
			chunks, err := b.Plan(t.Context(), r.table(table))
			var rows []string
			if err == nil {
				rows, err = r.read(b, table, chunks)
			}
			var why *ingest.TableError
			if !errors.As(err, &why) || !why.Anew {
				t.Fatalf("got %v, %v", rows, err)
			}
		})
	}
}

package postgres

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
)

// refusingSink is a fakeSink that sets rows aside.
type refusingSink struct{ *fakeSink }

var _ ingest.Refuser = refusingSink{}

func (refusingSink) OpenLetters(change.TableID) *deadletter.Table { return nil }
func (refusingSink) Passed(change.TableID, string) error          { return nil }
func (refusingSink) PassedRow(change.TableID, string) error       { return nil }

func (k refusingSink) Refuse(id change.TableID, r deadletter.Refused) error {
	k.drain(id)
	k.open[len(k.open)-1] = "refused " + k.names[id] + " " + r.Key + " " + r.Code + " " + r.Reason + r.Row
	return nil
}

// TestRowTooLong has rows with more bytes than fit, by a small limit, in the copy and in
// the stream, of tables with a key, without one and with a value that is refused as well:
// each is set aside, all others arrive.
func TestRowTooLong(t *testing.T) {
	const long = "repeat('x', 100000)"
	r := newRig(t, "CREATE TABLE k (a int, id text PRIMARY KEY, d date, v text, b bytea)",
		"CREATE TABLE w (id int, v text)", "ALTER TABLE w REPLICA IDENTITY FULL",
		"INSERT INTO k VALUES (1, 'one', NULL, 'v', 'b'), (2, 'two', NULL, "+long+", 'b'), (3, 'three', 'infinity', "+long+", NULL),"+
			" (4, 'four', 'infinity', '', NULL), (5, 'five', NULL, '', decode(repeat('00', 70000), 'hex')), (6, 'six', NULL, NULL, decode(repeat('00', 40000), 'hex'))",
		"INSERT INTO w VALUES (1, 'v'), (2, "+long+"), (3, 'v'), (4, "+long+")")
	r.src.cfg.conn.BuildFrontend = cutting(64 << 10)
	r.begin()
	refusals := &fakeRefusals{}
	b := r.backfill()
	b.(ingest.CopyRefuser).OnRefused(refusals)
	if got := len(r.copy(b, "k")); got != 2 {
		t.Errorf("%d rows of k are copied", got)
	}
	if got, want := r.copy(b, "w"), []string{"1|v", "3|v"}; !reflect.DeepEqual(got, want) {
		t.Errorf("copied of w: %q, want %q", got, want)
	}
	want := []string{`refused ["two"]`, `refused ["three"]`, `refused ["four"]`, `refused ["five"]`, "refused ", "refused "}
	if !reflect.DeepEqual(refusals.lines, want) {
		t.Errorf("copy: %q, want %q", refusals.lines, want)
	}

	k := newFakeSink(t, r.src)
	var tables []ingest.StreamTable
	for i, st := range r.tables {
		id := change.TableID(i + 1)
		s := newSchema(t, st)
		tables = append(tables, ingest.StreamTable{ID: id, Source: st, Schema: s})
		k.builders[id] = change.NewBuilder(memory.DefaultAllocator, id, 1, s.Arrow())
		k.names[id], k.schemas[id] = st.Name, s
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.stopStream = cancel
	go func() { k.finished <- r.src.Stream(ctx, r.setup.Start, tables, refusingSink{k}) }()
	t.Cleanup(func() { _ = k.stop() })
	r.exec("INSERT INTO k VALUES (7, 'seven', NULL, 'v', NULL), (8, 'eight', NULL, " + long + ", NULL), (9, 'nine', NULL, 'v', NULL)")
	r.exec("INSERT INTO w VALUES (5, "+long+")", "UPDATE w SET v = 'short' WHERE id = 5")
	const why = " 54000 a row has more than the 400 MiB that can be made durable at once"
	lines := []string{
		"k insert 7|seven|-|v|-", "k insert 9|nine|-|v|-", `refused k ["eight"]` + why,
		"refused w " + why, "refused w " + why, "w insert 5|short", // an update is a delete and an insert
	}
	k.await("all changes", func() bool { return len(k.mu.lines) >= len(lines) })
	slices.Sort(k.mu.lines)
	if !reflect.DeepEqual(k.mu.lines, lines) {
		t.Errorf("stream: %q, want %q", k.mu.lines, lines)
	}
}

// TestRowTooLongStops: with on_error = stop a row that is too long stops its table, in the
// copy and in the stream, and says what helps; other tables go on.
func TestRowTooLongStops(t *testing.T) {
	const long = "repeat('x', 100000)"
	r := newRig(t, "CREATE TABLE k (id int PRIMARY KEY, v text)", "CREATE TABLE other (id int PRIMARY KEY)",
		"INSERT INTO k VALUES (1, 'v'), (2, "+long+")")
	r.src.cfg.conn.BuildFrontend = cutting(64 << 10)
	r.begin()
	b := r.backfill()
	chunks, err := b.Plan(t.Context(), r.table("k"))
	if err != nil {
		t.Fatal(err)
	}
	const reason = "a row has more than the 400 MiB that can be made durable at once"
	var why *ingest.TableError
	if _, err := r.read(b, "k", chunks); !errors.As(err, &why) || why.Reason != reason || why.Hint != hintSmallerRow {
		t.Errorf("copy: %v", err)
	}
	k := r.stream(r.setup.Start, nil)
	r.exec("INSERT INTO k VALUES (3, "+long+")", "INSERT INTO k VALUES (4, 'v')", "INSERT INTO other VALUES (1)")
	k.expect("k stopped: "+reason, "other insert 1")
}

package ingest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// letterWorld is a sinkWorld with dead letters.
type letterWorld struct {
	*partsWorld
	open *deadletter.Open
}

func newLetterWorld(t *testing.T, most int, part int64) *letterWorld {
	w := &letterWorld{
		partsWorld: &partsWorld{},
		open:       deadletter.NewOpen(most, map[change.TableID]uint32{1: 0, 2: 0}),
	}
	w.sinkWorld = newSinkWorld(t, batcherConfig{tasks: w.partsWorld, part: part, rowMax: 1 << 20, session: "s", from: "0", letters: w.open})
	return w
}

// refuse adds a row and has it refused.
func (w *letterWorld) refuse(table change.TableID, id int64, op change.Op) error {
	w.t.Helper()
	w.insert(table, id, "")
	return w.Refuse(table, deadletter.Refused{
		Op: op, Token: w.token, Ordinal: int32(id), Key: fmt.Sprint(id), Row: "{}", Reason: "column \"v\" is bad", Hint: "Mend it.", Code: "22003",
	})
}

func (w *letterWorld) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// records renders what the next group says of letters.
func (w *letterWorld) records() string {
	w.t.Helper()
	g, _, _ := w.take()
	if g == nil {
		return "none"
	}
	defer g.release()
	r := letterRecords(g.letters)
	out := fmt.Sprint(w.rows(g), " at ", g.position, ":")
	if r == nil {
		return out
	}
	names := map[uint64]string{}
	for _, l := range r.Added {
		names[l.ID] = fmt.Sprintf("%d/%s@%s", l.Table, l.Key, l.Position)
		out += " +" + names[l.ID]
	}
	for _, c := range r.Closed {
		out += fmt.Sprintf(" -%d/t%d.%d", c.Table, c.Ref.Token, c.Ref.Ordinal)
	}
	return out
}

func (w *letterWorld) rows(g *group) [][]int64 {
	var out [][]int64
	for _, b := range g.batches {
		row := []int64{int64(b.Table)}
		out = append(out, append(row, b.Record.Column(change.SystemColumns).(*array.Int64).Int64Values()...))
	}
	return out
}

func (w *letterWorld) want(want string) {
	w.t.Helper()
	if got := w.records(); got != want {
		w.t.Errorf("group\n got %s\nwant %s", got, want)
	}
}

// TestRefuse: a refused row leaves its batch and becomes a letter of the very group that
// has the rows beside it; what comes after closes it in its own group.
func TestRefuse(t *testing.T) {
	w := newLetterWorld(t, 100, 0)
	w.begin()
	w.insert(1, 1, "a")
	w.ok(w.refuse(1, 2, change.Insert))
	w.ok(w.refuse(1, 3, change.Insert))
	w.insert(1, 4, "b")
	w.ok(w.refuse(2, 5, change.Insert))
	w.commit("10")
	w.want("[[1 1] [1 4]] at 10: +1/2@0 +1/3@0 +2/5@0")

	w.begin() // 2 is whole, 3 is deleted and cannot be, 5 is refused again
	w.insert(1, 2, "c")
	w.ok(w.Passed(1, "2"))
	w.ok(w.refuse(1, 3, change.Delete))
	w.ok(w.refuse(2, 5, change.Update))
	w.commit("20")
	w.want("[[1 2]] at 20: +2/5@10 -1/t1.2 -1/t1.3 -2/t1.5")
	if w.open.Table(1).Any() || !w.open.Table(2).Any() {
		t.Error("open letters are others than what the groups say")
	}

	w.begin()
	w.ok(w.Truncate(2))
	w.commit("30")
	w.want("[[2]] at 30: -2/t2.5")
}

// TestRefuseGivenUp: letters go with their transaction, and with a table that stops.
func TestRefuseGivenUp(t *testing.T) {
	w := newLetterWorld(t, 2, 0)
	w.begin()
	w.ok(w.refuse(1, 1, change.Insert))
	w.commit("10")
	w.want("[] at 10: +1/1@0")

	w.begin()
	w.ok(w.Passed(1, "1"))
	w.ok(w.refuse(2, 7, change.Insert))
	w.ok(w.Abort())
	w.begin()
	w.insert(2, 8, "")
	w.commit("20")
	w.want("[[2 8]] at 20:")
	if row, open := w.open.Table(1).Row("1"); !open || row != "{}" || w.open.Table(2).Any() {
		t.Error("an aborted transaction has changed letters")
	}

	w.begin() // a third is too many for table 1, which stops; table 2 goes on
	w.ok(w.refuse(2, 9, change.Insert))
	w.ok(w.refuse(1, 2, change.Insert))
	if err := w.refuse(1, 3, change.Insert); !errors.Is(err, ErrTableStopped) {
		t.Fatalf("one letter more than may be: %v", err)
	}
	w.commit("30")
	g, _, _ := w.take()
	defer g.release()
	if len(g.stops) != 1 || g.stops[0].Table != 1 || g.stops[0].At != "20" {
		t.Fatalf("stops %+v", g.stops)
	}
	if r := letterRecords(g.letters); len(r.Added) != 1 || r.Added[0].Table != 2 || len(r.Closed) != 0 {
		t.Errorf("letters of a stopped table go on: %+v", r)
	}
	if err := w.refuse2(); !errors.Is(err, ErrTableStopped) {
		t.Errorf("a stopped table refuses: %v", err)
	}
}

func (w *letterWorld) refuse2() error { return w.Refuse(1, deadletter.Refused{Op: change.Insert}) }

// TestRefuseInParts: the letters of a transaction in parts come with its commit, those of
// the transactions before it with the group before its first part.
func TestRefuseInParts(t *testing.T) {
	w := newLetterWorld(t, 100, 100)
	w.begin()
	w.ok(w.refuse(1, 1, change.Insert))
	w.commit("10")
	w.begin()
	for id := int64(2); id < 9; id++ {
		w.insert(1, id, "a long value of a row, so that the part is full soon")
		w.ok(w.refuse(2, id, change.Insert))
	}
	var parts int
	for _, g := range w.taken {
		if g[0] == 'p' {
			parts++
		}
	}
	if parts < 2 {
		t.Fatalf("groups %q", w.taken)
	}
	w.commit("20")
	g, _, _ := w.take()
	defer g.release()
	if g.completes == "" || len(letterRecords(g.letters).Added) != 7 {
		t.Errorf("the commit completes %q with letters %+v", g.completes, letterRecords(g.letters))
	}
}

// TestRefuseStops: with on_error = stop there is never a letter.
func TestRefuseStops(t *testing.T) {
	w := newLetterWorld(t, 100, 0)
	w.onErrorStop = true
	w.begin()
	w.insert(1, 1, "a")
	if err := w.refuse(1, 2, change.Insert); !errors.Is(err, ErrTableStopped) {
		t.Fatal(err)
	}
	w.commit("10")
	g, _, _ := w.take()
	defer g.release()
	if len(g.batches) != 0 || len(g.stops) != 1 || g.stops[0].Reason != "column \"v\" is bad" || g.letters != nil {
		t.Errorf("group %+v", g)
	}
}

// TestOwingEnds: of rows without a key that a transaction deletes and the copy may have yet,
// no more are kept in memory than of rows that cannot be taken in.
func TestOwingEnds(t *testing.T) {
	fake := env.NewFake(time.Unix(1000, 0), 1)
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: fake, IDs: fake, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	err = c.Update(t.Context(), func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "p", Connection: "c"}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		return txn.CreateTable(&catalog.Table{
			Pipeline: p.ID, Schema: "s", Name: "t", Current: &schema.Table{Version: 1}, State: catalog.TableBackfill,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	defer snap.Close()
	w := newLetterWorld(t, 100, 0)
	if w.letters, err = deadletter.Load(snap, 1, 100); err != nil {
		t.Fatal(err)
	}
	w.begin()
	row := strings.Repeat("x", 1<<20)
	for n := range int64(deadletter.GroupBytesMax>>20 + 1) {
		w.insert(1, n, "")
		err = w.Refuse(1, deadletter.Refused{Op: change.Delete, Row: row, Reason: "it is bad"})
		if (err == nil) != (n < deadletter.GroupBytesMax>>20) {
			t.Fatalf("row %d: %v", n, err)
		}
	}
	if !errors.Is(err, ErrTableStopped) || len(w.owing) != 0 {
		t.Errorf("%v, and %d rows are owing", err, len(w.owing))
	}
}

// TestCopyLetters: those of a chunk become durable with it, or are forgotten; one that the
// stream has overtaken never comes.
func TestCopyLetters(t *testing.T) {
	open := deadletter.NewOpen(100, map[change.TableID]uint32{1: 0})
	c := &copyLetters{open: open, now: time.Now, chunks: map[chunkName]*chunkLetters{}}
	ch := chunk{table: &catalog.Table{ID: 1}, source: SourceTable{OID: 9}, text: "c"}
	refused := func(key, row string) {
		t.Helper()
		err := c.Refused(ch.source, "c", 1, deadletter.Refused{Op: change.Insert, Token: 5, Key: key, Row: row})
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func() int {
		r := c.records(ch)
		if r == nil {
			return 0
		}
		return len(r.Added) - len(r.Closed)
	}
	stream := deadletter.Refused{Op: change.Insert, Token: 7, Key: "a"}
	open.Table(1).Add(open.Table(1).Letter(&stream, 1, false, 0))

	c.begin(ch)
	refused("a", "1") // the stream has a newer one
	refused("b", "2")
	refused("c", "3")
	c.Changed(ch.source, "c", "c") // at the source, meanwhile
	if count() != 1 {
		t.Errorf("%d letters", count())
	}
	c.end(ch, false)
	if _, there := open.Table(1).Row("b"); there {
		t.Error("a letter of a chunk that did not end is open")
	}
	c.begin(ch)
	refused("b", "2")
	if closes, _ := open.Table(1).Pass("b"); len(closes) != 1 || closes[0].ID != c.records(ch).Added[0].ID {
		t.Errorf("the stream closes %v", closes)
	}
	c.end(ch, true)
	if count() != 0 {
		t.Error("letters after the end of their chunk")
	}

	c.begin(ch) // without a key, equal rows are as many letters
	refused("", "x")
	refused("", "x")
	if r := c.records(ch); len(r.Added) != 2 || r.Added[0].ID == r.Added[1].ID {
		t.Errorf("letters of equal rows: %+v", r)
	}
	first := c.records(ch).Added[0].ID
	other := chunk{table: ch.table, source: ch.source, text: "d"}
	c.begin(other)
	if err := c.Refused(ch.source, "d", 1, deadletter.Refused{Op: change.Insert, Token: 5, Row: "x"}); err != nil {
		t.Fatal(err)
	}
	if r := c.records(other); len(r.Added) != 1 || r.Added[0].ID == first {
		t.Errorf("letters of equal rows in two chunks: %+v", r)
	}
	c.stop = true
	var table *TableError
	if err := c.Refused(ch.source, "c", 1, deadletter.Refused{Reason: "r"}); !errors.As(err, &table) || table.Reason != "r" {
		t.Errorf("with on_error = stop: %v", err)
	}
}

// TestManyLettersEnd: what a group says of letters has room in its state, however many one
// transaction supersedes: then the table stops. Of several transactions it is closed early.
func TestManyLettersEnd(t *testing.T) {
	const many = 120_000
	w := newLetterWorld(t, many, 0)
	for i := range many {
		table := w.open.Table(1)
		table.Add(table.Letter(&deadletter.Refused{Op: change.Insert, Token: 1 << 60, Ordinal: 1<<30 + int32(i), Key: fmt.Sprint(i), Row: "{}"}, 1, false, 0))
	}
	pass := func(from, to int) (err error) {
		w.begin()
		w.insert(1, int64(from), "")
		for i := from; i < to && err == nil; i++ {
			err = w.Passed(1, fmt.Sprint(i))
		}
		return err
	}
	w.ok(pass(0, 30_000))
	records := letterRecords(w.mu.filling.letters)
	if b, err := (&groupState{Letters: records}).encode(); err != nil || len(records.Closed) != 30_000 || len(b) > 30_000*128 {
		t.Errorf("%d ends of letters have %d bytes, error %v", len(records.Closed), len(b), err)
	}
	w.commit("10")
	w.ok(pass(30_000, 40_000))
	before := len(w.taken)
	w.commit("20") // more than half of what a group may have: it is closed
	if g, _, _ := w.take(); g != nil || len(w.taken) == before {
		t.Errorf("the group is not full with 40,000 ends of letters: %q", w.taken)
	}
	if err := pass(40_000, many); !errors.Is(err, ErrTableStopped) {
		t.Fatalf("one transaction with more ends than a state has room for: %v", err)
	}
	if f := &w.mu.filling; len(f.stops) != 1 || len(f.letters) != 0 {
		t.Errorf("stops %+v and %d letters", f.stops, len(f.letters))
	}
	w.commit("30")
}

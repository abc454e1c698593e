package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// partsWorld is a sinkWorld whose appender takes a group whenever the stream waits.
type partsWorld struct {
	*sinkWorld
	taken []string
	err   error // of the wait
}

// Wait implements env.Tasks: the appender takes what there is.
func (w *partsWorld) Wait(context.Context, time.Duration, ...<-chan struct{}) error {
	w.drain()
	return w.err
}

func (w *partsWorld) Run(context.Context, ...func(context.Context) error) error { return nil }
func (w *partsWorld) Go(func()) <-chan struct{}                                 { return nil }

var _ env.Tasks = (*partsWorld)(nil)

func newPartsWorld(t *testing.T, part int64) *partsWorld {
	w := &partsWorld{}
	w.sinkWorld = newSinkWorld(t, batcherConfig{tasks: w, part: part, rowMax: 1 << 20, session: "s", from: "0"})
	return w
}

// drain takes all groups that are due.
func (w *partsWorld) drain() {
	for {
		g, _, _ := w.take()
		if g == nil {
			return
		}
		w.taken = append(w.taken, w.text(g))
	}
}

// text renders a group: what it is, its position, then its batches.
func (w *partsWorld) text(g *group) string {
	out := "@" + string(g.position)
	if g.part != "" {
		out = "part " + g.part
	}
	if g.completes != "" {
		out += " completes " + g.completes
	}
	if g.voids {
		out += " voids"
	}
	for _, s := range g.stops {
		out += fmt.Sprintf(" stop %d@%s void=%t", s.Table, s.At, s.Voids)
	}
	for _, s := range g.schemas {
		out += fmt.Sprintf(" schema %d v%d", s.Table, s.Schema.Version)
	}
	for _, b := range w.ids(g) {
		out += fmt.Sprint(" ", b)
	}
	return out
}

func (w *partsWorld) inserts(table change.TableID, ids ...int64) {
	w.t.Helper()
	for _, id := range ids {
		w.insert(table, id, strings.Repeat("x", 100))
	}
}

func (w *partsWorld) check(want ...string) {
	w.t.Helper()
	w.drain()
	if got := strings.Join(w.taken, "\n"); got != strings.Join(want, "\n") {
		w.t.Errorf("groups\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	w.taken = nil
}

// A transaction larger than a part leaves in parts; what came before it goes first, by
// itself, and the group with its commit says what it completes.
func TestSinkParts(t *testing.T) {
	w := newPartsWorld(t, 350) // three rows
	w.begin()
	w.inserts(1, 1, 2)
	w.commit("10")
	w.begin()
	w.inserts(1, 3, 4)
	w.inserts(2, 5, 6, 7)
	w.inserts(1, 8, 9)
	w.commit("20")
	w.begin()
	w.inserts(2, 10)
	w.commit("30")
	w.check("@10 [1 1 2]", "part s-2 [1 3 4] [2 5]", "part s-2 [2 6 7] [1 8]", "@20 completes s-2 [1 9]", "@30 [2 10]")
	w.begin()
	w.inserts(1, 11)
	w.commit("40")
	w.check("@40 [1 11]")
}

// A truncate before and within a transaction in parts stays where it was.
func TestSinkPartsTruncate(t *testing.T) {
	w := newPartsWorld(t, 350)
	w.begin()
	w.inserts(1, 1)
	if err := w.Truncate(1); err != nil {
		t.Fatal(err)
	}
	w.commit("10")
	w.begin()
	w.inserts(1, 2, 3)
	if err := w.Truncate(1); err != nil {
		t.Fatal(err)
	}
	w.inserts(1, 4, 5, 6)
	if err := w.Truncate(2); err != nil {
		t.Fatal(err)
	}
	w.commit("20")
	w.check("@10 [1 1] [1 -1]", "part s-2 [1 2 3] [1 -1 4]", "@20 completes s-2 [1 5 6] [2 -1]")
}

// What was aborted leaves nothing in the group; its parts are told to be void, and the
// stream goes on.
func TestSinkAbort(t *testing.T) {
	w := newPartsWorld(t, 350)
	w.begin()
	w.inserts(1, 1)
	w.commit("10")
	w.begin()
	w.inserts(1, 2, 3)
	w.inserts(2, 4)
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	w.begin()
	w.inserts(2, 5)
	w.commit("20")
	w.check("@10 [1 1]", "@20 [2 5]")
	w.begin()
	w.inserts(1, 6, 7, 8, 9)
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	w.begin()
	w.inserts(1, 10, 11, 12, 13, 14)
	w.commit("30")
	w.check("part s-4 [1 6 7 8]", "@20 voids", "part s-5 [1 10 11 12]", "@30 completes s-5 [1 13 14]")
	w.begin()
	w.inserts(1, 15, 16, 17, 18)
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	w.check("part s-6 [1 15 16 17]", "@30 voids")
}

// A table that stops in a transaction in parts voids what earlier parts have of it.
func TestSinkPartsStop(t *testing.T) {
	w := newPartsWorld(t, 350)
	w.begin()
	w.inserts(1, 1)
	w.commit("10")
	w.begin()
	w.inserts(1, 2, 3)
	w.inserts(2, 4, 5)
	w.inserts(1, 6)
	if err := w.StopTable(1, &TableError{Reason: "reason", Hint: "hint"}); err != nil {
		t.Fatal(err)
	}
	w.inserts(2, 7, 8, 9)
	w.commit("20")
	w.check("@10 [1 1]", "part s-2 [1 2 3] [2 4]", "part s-2 [2 5 7 8]", "@20 completes s-2 stop 1@10 void=true [2 9]")
}

// A table that stops before the first part is told with what came before; a schema
// version goes with the transaction that brought it, and is forgotten when that aborts.
func TestSinkPartsFacts(t *testing.T) {
	w := newPartsWorld(t, 350)
	evolve := func(name string) *schema.Table {
		next, err := w.Evolve(1, SchemaChange{Columns: []SourceColumn{
			{Name: "id", OID: 20, Type: schema.Type{Kind: schema.Int64}, AttNum: 1},
			{Name: "v", OID: 25, Type: schema.Type{Kind: schema.String}, AttNum: 2},
			{Name: name, OID: 25, Type: schema.Type{Kind: schema.String}, AttNum: 3},
		}, Key: []string{"id"}})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	add := func(id int64) {
		b, err := w.Builder(1)
		if err != nil {
			t.Fatal(err)
		}
		b.Add(change.Insert, w.token, 0)
		b.Column(0).(*array.Int64Builder).Append(id)
		b.Column(1).(*array.StringBuilder).Append(strings.Repeat("x", 100))
		b.Column(2).(*array.StringBuilder).AppendNull()
	}
	w.begin()
	w.inserts(1, 1, 2, 3)
	evolve("lost")
	if w.inserts(2, 4); len(w.taken) == 0 {
		t.Fatal("no part was closed")
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	w.begin()
	w.inserts(1, 5, 6)
	if v := evolve("kept").Version; v != 3 { // 2 may be in the log, with another schema
		t.Errorf("version %d", v)
	}
	add(7)
	if err := w.StopTable(2, &TableError{Reason: "reason", Hint: "hint"}); err != nil {
		t.Fatal(err)
	}
	add(8)
	add(9)
	w.commit("20")
	w.check("part s-1 [1 1 2 3]", "@0 voids", "@0 stop 2@0 void=false", "part s-2 [1 5 6] [1 7]",
		"@20 completes s-2 schema 1 v3 [1 8 9]")
}

// The stream's memory is bounded by a part: it waits for the appender, and ends with it.
func TestSinkPartsWait(t *testing.T) {
	w := newPartsWorld(t, 350)
	w.err = errors.New("the log is gone")
	w.begin()
	w.inserts(1, 1, 2, 3)
	if _, err := w.Builder(1); !errors.Is(err, w.err) {
		t.Errorf("error %v", err)
	}
	if since := w.pendingSince(); !since.Equal(w.clock.Now()) {
		t.Errorf("pending since %v", since)
	}
}

// A row that no group of the log takes stops its table alone.
func TestSinkHugeRow(t *testing.T) {
	w := newPartsWorld(t, 350)
	w.begin()
	w.inserts(1, 1)
	w.insert(2, 2, strings.Repeat("x", 1<<20))
	w.inserts(1, 3)
	if _, err := w.Builder(2); !errors.Is(err, ErrTableStopped) {
		t.Errorf("error %v", err)
	}
	w.commit("10")
	w.check("@10 stop 2@0 void=false [1 1 3]")
}

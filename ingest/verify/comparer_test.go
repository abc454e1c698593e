package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// compareWorld is a catalog with pipeline "shop" of the tables s.a, keyed, and s.b, and
// both sides of it: each has one row. What is opened must be closed.
type compareWorld struct {
	t       *testing.T
	clock   *env.Fake
	catalog *catalog.Catalog
	awaited []ingest.Target
	// await answers Await, by its turn; nothing left is "reached". pinned is called before
	// tables are pinned, compared before a row of ours is read.
	await             []error
	pinned, compared  func()
	status            ingest.PipelineStatus
	truncated         int // so many moments find s.a truncated
	cannot            bool
	unavailable       error      // what the source says when it is asked for a moment
	skip              *SkipError // what it says of each table
	theirs            string     // what the source has in its row, "" for the same as we
	rests, holds      int
	sources, moments  int
	frozen            int // how often a source was asked for a moment
	mirrors           int
	held              segment.Seq
	moved             int
	known             segment.SliceRef
	restedWhilePinned bool
}

func newCompareWorld(t *testing.T) *compareWorld {
	t.Helper()
	w := &compareWorld{t: t, clock: env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)}
	var err error
	w.catalog, err = catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: w.clock, IDs: w.clock, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	keyed := []string{"id"}
	w.update(func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "shop", Connection: "c", State: catalog.PipelineRunning, Enabled: true, SourceState: []byte("{}"), Options: map[string]string{}}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		for name, key := range map[string][]string{"a": keyed, "b": nil} {
			s, err := schema.New([]schema.NewField{
				{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: schema.OIDInt8, TypMod: -1, AttNum: 1},
				{Name: "d", Type: schema.Type{Kind: schema.Date}, OID: schema.OIDDate, TypMod: -1, AttNum: 2},
			}, key)
			if err != nil {
				return err
			}
			tbl := &catalog.Table{
				Pipeline: p.ID, Schema: "s", Name: name, SourceSchema: "public", SourceName: name, SourceOID: uint32(1000 + len(key)),
				Current: s, State: catalog.TableReady,
			}
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
		}
		return nil
	})
	t.Cleanup(func() {
		if w.rests+w.holds+w.sources+w.moments+w.mirrors != 0 {
			t.Errorf("left: %d rests, %d holds, %d sources, %d moments, %d mirrors", w.rests, w.holds, w.sources, w.moments, w.mirrors)
		}
	})
	return w
}

func (w *compareWorld) update(fn func(*catalog.Txn) error) {
	w.t.Helper()
	if err := w.catalog.Update(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// change changes the pipeline's row.
func (w *compareWorld) change(fn func(*catalog.Pipeline)) {
	w.t.Helper()
	w.update(func(txn *catalog.Txn) error {
		p, err := txn.Pipeline("shop")
		if err != nil {
			return err
		}
		fn(p)
		return txn.PutPipeline(p)
	})
}

// table changes a table's row.
func (w *compareWorld) table(name string, fn func(*catalog.Table)) change.TableID {
	w.t.Helper()
	var id change.TableID
	w.update(func(txn *catalog.Txn) error {
		t, err := txn.TableByName("s", name)
		if err != nil {
			return err
		}
		id = t.ID
		fn(t)
		return txn.PutTable(t)
	})
	return id
}

// publish puts a slice of a table into segment 7 of the log.
func (w *compareWorld) publish(id change.TableID) {
	w.t.Helper()
	err := w.catalog.Publish(context.Background(), 1, []wal.CommittedGroup{{
		Seq: 7, End: 100, Position: "0/7", Slices: []wal.Slice{{
			Ref: segment.SliceRef{Seq: 7}, Length: 10, Table: id, SchemaVersion: 1, Rows: 1, Counts: change.Counts{Inserts: 1, MinToken: 1, MaxToken: 1},
		}},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// compare runs a comparison and renders what it says.
func (w *compareWorld) compare(tables ...catalog.SelectedTable) string {
	w.t.Helper()
	c := &Comparer{Catalog: w.catalog, Pipelines: (*fakePipelines)(w), Lake: (*fakeLake)(w), Mirror: (*fakeMirror)(w), Clock: w.clock}
	waited := 0
	lines, err := c.Compare(w.t.Context(), Request{Pipeline: "shop", Tables: tables, Wait: time.Minute}, func(line string) {
		if line == "the source waits" {
			waited++
		}
	})
	if waited != w.frozen {
		w.t.Errorf("told %d times that the source waits, which it did %d times", waited, w.frozen)
	}
	var out []string
	for _, l := range lines {
		out = append(out, l.Table+" "+lineText(l))
	}
	var r *Refusal
	switch {
	case errors.As(err, &r):
		out = append(out, fmt.Sprintf("refused %d: %s|%s|%s", r.Kind, r.Message, r.Detail, r.Hint))
	case err != nil:
		out = append(out, "error: "+err.Error())
	}
	return strings.Join(out, "\n")
}

type fakePipelines compareWorld

func (f *fakePipelines) OpenSource(context.Context, *catalog.Pipeline) (ingest.Source, error) {
	f.sources++
	if f.cannot {
		return &closedSource{w: (*compareWorld)(f)}, nil
	}
	return &frozenSource{closedSource{w: (*compareWorld)(f)}}, nil
}

func (f *fakePipelines) Await(_ context.Context, t ingest.Target) error {
	t.Compare = nil
	f.awaited = append(f.awaited, t)
	if len(f.await) == 0 {
		return nil
	}
	err := f.await[0]
	if f.await = f.await[1:]; errors.Is(err, errLook) {
		f.clock.Advance(40 * time.Second)
	}
	return err
}

func (f *fakePipelines) Status(string) (ingest.PipelineStatus, bool) { return f.status, true }

func (*fakePipelines) Position(change.PipelineID) change.Position { return "0/5" }

type fakeLake compareWorld

func (f *fakeLake) Rest(change.PipelineID) func() {
	f.rests++
	return func() { f.rests-- }
}

func (f *fakeLake) HoldLog(_ change.PipelineID, from segment.Seq) LogHold {
	f.holds++
	f.held = from
	return (*fakeHold)(f)
}

type fakeHold compareWorld

func (f *fakeHold) Move(segment.Seq) { f.moved++ }
func (f *fakeHold) Release()         { f.holds-- }

type fakeMirror compareWorld

func (f *fakeMirror) Pin(_ context.Context, _ *catalog.Snapshot, tables []*Table, at Moment) (Pinned, error) {
	f.known, f.restedWhilePinned = at.Known, f.rests > 0
	for _, t := range tables {
		if t.Skip == "" && t.Name == "s.a" && f.truncated > 0 {
			t.Skip = SkipTruncated
		}
	}
	f.truncated--
	f.mirrors++
	return (*pinnedRows)(f), nil
}

type pinnedRows compareWorld

func (p *pinnedRows) Rows(_ context.Context, _ *Table, emit func(Cells) error) error {
	if p.compared != nil {
		p.compared()
	}
	return emit(row(1, "2026-01-01"))
}

func (p *pinnedRows) Release() { p.mirrors-- }

// closedSource is a source that cannot be compared, frozenSource one that can.
type closedSource struct {
	ingest.Source
	w *compareWorld
}

func (*closedSource) Compare(a, b change.Position) int { return strings.Compare(string(a), string(b)) }

func (c *closedSource) Close() error {
	c.w.sources--
	return nil
}

type frozenSource struct{ closedSource }

var errFreeze = fmt.Errorf("connect: %w", ingest.ErrSourceUnavailable)

func (f *frozenSource) Freeze(_ context.Context, _ []byte, _ int64, waits func(string)) (Source, error) {
	for _, reason := range []string{"", "the source waits", "the source waits", ""} {
		waits(reason)
	}
	f.w.frozen++
	if f.w.unavailable != nil {
		return nil, f.w.unavailable
	}
	f.w.moments++
	if f.w.pinned != nil {
		f.w.pinned()
	}
	return &momentSource{fakeSource{rows: tableRows{row(1, cmp.Or(f.w.theirs, "2026-01-01"))}}, f.w}, nil
}

type momentSource struct {
	fakeSource
	w *compareWorld
}

func (m *momentSource) Close() { m.w.moments-- }

// Open is fakeSource's, with a passage of time that makes progress due.
func (m *momentSource) Open(ctx context.Context, t *Table) (Reader, error) {
	m.w.clock.Advance(2 * time.Second)
	if m.w.skip != nil {
		return nil, m.w.skip
	}
	return m.fakeSource.Open(ctx, t)
}

const bothEqual = "s.a -..- equal 1/1\ns.b -..- equal 1/1"

// TestComparer: what is compared, what is left out and why, and what is in the way of all.
func TestComparer(t *testing.T) {
	resync := func(t *catalog.Table) { t.Generation++ }
	for name, c := range map[string]struct {
		arrange func(w *compareWorld)
		tables  []catalog.SelectedTable
		want    string
	}{
		"equal":                {nil, nil, bothEqual},
		"by the source's name": {nil, []catalog.SelectedTable{{Schema: "public", Name: "a"}}, "s.a -..- equal 1/1"},
		"by our name":          {nil, []catalog.SelectedTable{{Schema: "s", Name: "b"}}, "s.b -..- equal 1/1"},
		"no such table": {
			nil,
			[]catalog.SelectedTable{{Schema: "s", Name: "b"}, {Schema: "x", Name: "y"}},
			`refused 3: table "x.y" is not part of the pipeline||DISCOVER PIPELINE …; says which tables there are.`,
		},
		"disabled": {
			func(w *compareWorld) { w.change(func(p *catalog.Pipeline) { p.Enabled = false }) }, nil,
			`refused 1: pipeline "shop" is disabled||ALTER PIPELINE … ENABLE; starts it.`,
		},
		"paused": {
			func(w *compareWorld) { w.change(func(p *catalog.Pipeline) { p.Paused = true }) }, nil,
			`refused 1: pipeline "shop" is paused||ALTER PIPELINE … RESUME; lets it go on.`,
		},
		"not begun": {
			func(w *compareWorld) { w.change(func(p *catalog.Pipeline) { p.SourceState = nil }) }, nil,
			`refused 1: pipeline "shop" has not begun to stream||pg_stat_pipeline says what it waits for.`,
		},
		"cannot be compared": {
			func(w *compareWorld) { w.cannot = true }, nil, `refused 4: the source of pipeline "shop" cannot be compared||`,
		},
		"source away": {func(w *compareWorld) { w.unavailable = errFreeze }, nil, "error: connect: source is unavailable"},
		"stopped": {
			func(w *compareWorld) {
				w.table("a", func(t *catalog.Table) { t.State, t.Reason = catalog.TableStopped, "its key is gone" })
			},
			nil, "s.a -..- skipped  its state is stopped: its key is gone\ns.b -..- equal 1/1",
		},
		"a partition now": { // the source has it, and sends its changes with another table
			func(w *compareWorld) { w.table("a", func(t *catalog.Table) { t.Away = watch.AsPart }) },
			nil, "s.a -..- skipped  " + watch.AsPart + "\ns.b -..- equal 1/1",
		},
		"a partition since": {
			func(w *compareWorld) {
				w.pinned = func() { w.table("a", func(t *catalog.Table) { t.Away = watch.AsPart }) }
			},
			nil, "s.a -..- skipped  " + watch.AsPart + "\ns.b -..- equal 1/1",
		},
		"stops before the position": {
			func(w *compareWorld) {
				w.await = []error{fmt.Errorf("table 1: %w", ingest.ErrTableStopped)}
				w.pinned = func() { w.table("a", func(t *catalog.Table) { t.State = catalog.TableStopped }) }
			},
			nil, "s.a -..- skipped  its state became stopped\ns.b -..- equal 1/1",
		},
		"copied anew": {
			func(w *compareWorld) { w.pinned = func() { w.table("a", resync) } }, nil,
			"s.a -..- skipped  it was copied anew meanwhile: run it again\ns.b -..- equal 1/1",
		},
		"another table now": {
			func(w *compareWorld) {
				w.pinned = func() { w.table("b", func(t *catalog.Table) { t.SourceOID = 7 }) }
			},
			nil, "s.a -..- equal 1/1\ns.b -..- skipped  its key has changed meanwhile: run it again",
		},
		"dropped meanwhile": {
			func(w *compareWorld) {
				id := w.table("b", func(*catalog.Table) {})
				w.pinned = func() { w.update(func(txn *catalog.Txn) error { return txn.DeleteTable(id) }) }
			},
			nil, "s.a -..- equal 1/1\ns.b -..- skipped  it was dropped meanwhile",
		},
		"slow, then there": {func(w *compareWorld) { w.await = []error{errLook} }, nil, bothEqual},
		"too slow": {
			func(w *compareWorld) { w.await, w.status.State = []error{errLook, errLook}, "running" }, nil,
			`refused 1: pipeline "shop" did not reach position 0/1 within 1m0s|It is at 0/5, its state is running.|` +
				"VERIFY PIPELINE … WITH (wait = '30 min'); waits longer; pg_stat_pipeline shows how far it is.",
		},
		"the log is full": {
			func(w *compareWorld) { w.await, w.status.Throttled = []error{errLook}, true }, nil,
			"refused 2: the log is full, so the pipeline does not reach the position of the comparison||" +
				"Run the statement again when the log has room: see wal-quota-bytes.",
		},
		"truncated twice":     {func(w *compareWorld) { w.truncated = 2 }, nil, bothEqual},
		"truncated all along": {func(w *compareWorld) { w.truncated = 9 }, nil, "s.a -..- skipped  " + SkipTruncated + "\ns.b -..- equal 1/1"},
		"the pipeline goes": {
			func(w *compareWorld) {
				w.compared = func() {
					w.compared = nil
					w.update(func(txn *catalog.Txn) error { return txn.DeletePipeline(1) })
				}
			},
			nil, `refused 1: pipeline "shop" was dropped while it was compared||`,
		},
		"the pipeline goes, and another comes": {
			func(w *compareWorld) {
				w.compared = func() {
					w.compared = nil
					w.update(func(txn *catalog.Txn) error {
						return errors.Join(txn.DeletePipeline(1), txn.CreatePipeline(&catalog.Pipeline{Name: "shop", Connection: "c", Options: map[string]string{}}))
					})
				}
			},
			nil, `refused 1: pipeline "shop" was dropped while it was compared||`,
		},
		"the pipeline goes while it is awaited": {
			func(w *compareWorld) {
				w.await = []error{errLook, errLook, errLook}
				w.pinned = func() { w.update(func(txn *catalog.Txn) error { return txn.DeletePipeline(1) }) }
			},
			nil, `refused 1: pipeline "shop" was dropped while it was compared||`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCompareWorld(t)
			if c.arrange != nil {
				c.arrange(w)
			}
			if got := w.compare(c.tables...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestComparerHolds: the lake rests from before the moment until our side is pinned, at a
// place in the log that is of before the moment; the log that it reads is kept meanwhile.
func TestComparerHolds(t *testing.T) {
	w := newCompareWorld(t)
	id := w.table("a", func(*catalog.Table) {})
	w.publish(id)
	w.pinned = func() {
		if w.rests != 1 {
			t.Error("a moment was taken while the lake took the log in")
		}
	}
	if got := w.compare(); got != bothEqual {
		t.Error(got)
	}
	if w.known != (segment.SliceRef{Seq: 7, Start: 100}) || !w.restedWhilePinned || w.held != 7 || w.moved == 0 {
		t.Errorf("known %v, rested %t, held from %d, moved %d times", w.known, w.restedWhilePinned, w.held, w.moved)
	}
	if len(w.awaited) != 1 || w.awaited[0].At != "0/1" || len(w.awaited[0].Tables) != 2 {
		t.Errorf("awaited %+v", w.awaited)
	}
}

// TestComparerLetters: rows that wait as dead letters are listed and not compared; without
// a key they cannot be told from the others.
func TestComparerLetters(t *testing.T) {
	w := newCompareWorld(t)
	letter := func(name, key string) {
		id := w.table(name, func(*catalog.Table) {})
		w.update(func(txn *catalog.Txn) error {
			return txn.AddDeadLetter(&catalog.DeadLetter{
				Table: id, DeadLetterRef: catalog.DeadLetterRef{Token: 3, ID: 1}, SchemaVersion: 1, Op: change.Insert, Key: key,
				Row: "{}", Reason: `column "d" holds infinity`, Code: "22008",
			})
		})
	}
	letter("a", `["1"]`)
	letter("b", "")
	want := "s.a -..- equal 0/0\ns.a -..- dead letter 1 column \"d\" holds infinity\n" +
		"s.b -..- skipped  it has open dead letters (1): RETRY DEAD LETTERS, or RESYNC TABLE, comes first"
	if got := w.compare(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestReplaced: values out of range are compared as they are replaced here, and no others.
func TestReplaced(t *testing.T) {
	s, err := schema.New([]schema.NewField{
		{Name: "k", Type: schema.Type{Kind: schema.Date}, OID: schema.OIDDate, TypMod: -1, AttNum: 1},
		{Name: "d", Type: schema.Type{Kind: schema.Date}, OID: schema.OIDDate, TypMod: -1, AttNum: 2},
		{Name: "n", Type: schema.Type{Kind: schema.Date}, OID: schema.OIDDate, TypMod: -1, AttNum: 3, NotNull: true},
		{Name: "t", Type: schema.Type{Kind: schema.String}, OID: schema.OIDText, TypMod: -1, AttNum: 4},
	}, []string{"k"})
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]string{
		"": "map[]", "text": "map[]", "null": "map[d:{1 false}]", "clamp": "map[d:{1 true} n:{1 true}]",
	} {
		table := tableOf(&catalog.Table{Current: s, State: catalog.TableReady}, outofrange.RuleOf(map[string]string{"out_of_range": rule}))
		if got := fmt.Sprint(table.Replaced); got != want {
			t.Errorf("%s: %s, want %s", rule, got, want)
		}
	}
}

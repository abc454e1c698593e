package check

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/lake"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/sqltests/sim/query"
	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

// TestGoodHistory has no violation: transactions, compactions, pins that are executed late
// and again, a reclaim.
func TestGoodHistory(t *testing.T) {
	x := newFixture(t)
	a, b := x.at(0), x.at(1)
	x.commit(x.upsert(a, 1, "one"), x.upsert(b, 1, "eins"))
	x.commit(x.upsert(a, 2, "two"), x.remove(b, 1))
	early, plan := x.pin()
	x.step(early)
	x.commit(x.upsert(a, 1, "uno"))
	x.compactNow()
	x.step(x.execute(early, plan))
	again := x.execute(early, plan)
	again.Again = true
	x.step(again)
	x.commit(x.remove(a, 2), x.upsert(b, 7, "sieben"))
	late, plan := x.pin()
	x.step(late)
	x.step(x.execute(late, plan))
	x.compactNow()
	x.seal()
	x.step(ReclaimAsked{testHost, 1, []segment.Seq{1}})
	if err := x.log.Reclaim(t.Context(), []segment.Seq{1}); err != nil {
		t.Fatal(err)
	}
	x.step(Removed{testHost, x.marker(1)})
	x.step(Removed{testHost, x.body(1)})
	lost := x.execute(late, plan)
	if !errors.Is(lost.Err, duckdb.ErrSliceLost) {
		t.Fatalf("reclaimed slice: %v", lost.Err)
	}
	x.step(lost, QueryEnded{Query: late.Query, Host: testHost})
	x.commit(x.upsert(a, 9, "neun"))
	x.view.Step = fullEvery - 1
	x.step()
}

// TestLabels: each invariant of the design has its checker, once and in order.
func TestLabels(t *testing.T) {
	want := []string{
		"A1", "A2", "C1", "C2", "C3", "C4", "D1", "D2", "F1", "H1", "L1", "M1", "M2", "N1", "O1", "P1", "P2", "P3", "P4",
		"Q1", "R1", "R2", "S1", "T1", "W1", "W2", "W3", "W4",
	}
	if got := NewSuite().Labels(); !slices.Equal(got, want) {
		t.Errorf("labels %v", got)
	}
}

// broken is a history that breaks an invariant.
type broken struct {
	label, name string
	show        func(x *fixture) map[string]string
}

// TestBrokenHistories: each checker finds what it is for.
func TestBrokenHistories(t *testing.T) {
	cases := slices.Concat(brokenLog(), brokenLake(), brokenCatalog(), brokenPins())
	fired := map[string]bool{}
	for _, c := range cases {
		fired[c.label] = true
		t.Run(c.label+" "+c.name, func(t *testing.T) {
			x := newFixture(t)
			x.commit(x.upsert(x.at(0), 1, "one"), x.upsert(x.at(1), 1, "eins"))
			x.commit(x.upsert(x.at(0), 2, "two"))
			found := c.show(x)
			if found[c.label] == "" {
				t.Errorf("not found; others: %v", found)
			}
			t.Log(found[c.label])
		})
	}
	for _, label := range NewSuite().Labels() {
		if !fired[label] {
			t.Errorf("no history breaks %s", label)
		}
	}
}

func brokenLog() []broken {
	return []broken{
		{"W1", "answered before it is durable", func(x *fixture) map[string]string {
			x.disk.put(x.body(1), durable(x, x.body(1)))
			return x.show(x.write(x.upsert(x.at(0), 3, "three")))
		}},
		{"W1", "acknowledged to the source before it is durable", func(x *fixture) map[string]string {
			return x.show(AckSent{testHost, 1, source.Position(1000)})
		}},
		{"A1", "answered before the catalog has it", func(x *fixture) map[string]string {
			done := x.write(x.upsert(x.at(0), 3, "three"))
			x.events = nil
			done.Group.End += 8
			return x.show(done)
		}},
		{"A2", "an answered change is lost", func(x *fixture) map[string]string {
			b := durable(x, x.body(1))
			clear(b[segment.HeaderBytes:])
			x.disk.put(x.body(1), b)
			return x.showAll()
		}},
		{"W2", "published before it is durable", func(x *fixture) map[string]string {
			x.disk.put(x.body(1), durable(x, x.body(1)))
			x.write(x.upsert(x.at(0), 3, "three"))
			return x.show()
		}},
		{"W3", "a segment vanishes", func(x *fixture) map[string]string {
			x.seal()
			x.commit(x.upsert(x.at(0), 3, "three"))
			x.seal()
			x.commit(x.upsert(x.at(0), 4, "four"))
			x.disk.put(x.body(2), nil)
			x.disk.put(x.marker(2), nil)
			return x.show()
		}},
		{"W4", "a body is not its marker's", func(x *fixture) map[string]string {
			x.seal()
			b := durable(x, x.body(1))
			b[x.suite.facts.hosts[testHost].log.segs[1].mark.Length-20] ^= 1
			x.disk.put(x.body(1), b)
			return x.showAll()
		}},
		{"R2", "the body goes before the marker", func(x *fixture) map[string]string {
			x.seal()
			return x.show(Removed{testHost, x.body(1)})
		}},
		{"R1", "a live slice is reclaimed", func(x *fixture) map[string]string {
			x.seal()
			return x.show(ReclaimAsked{testHost, 1, []segment.Seq{1}})
		}},
		{"R1", "a hold is ignored", func(x *fixture) map[string]string {
			x.compactNow()
			x.seal()
			x.step(HoldMoved{Host: testHost, Pipeline: 1, Name: "cursor", At: segment.SliceRef{Seq: 1}})
			return x.show(ReclaimAsked{testHost, 1, []segment.Seq{1}})
		}},
		{"H1", "what a hold keeps is gone", func(x *fixture) map[string]string {
			x.seal()
			x.commit(x.upsert(x.at(0), 3, "three"))
			x.step(HoldMoved{Host: testHost, Pipeline: 1, Name: "cursor", At: segment.SliceRef{Seq: 1}})
			x.disk.put(x.body(1), nil)
			x.disk.put(x.marker(1), nil)
			return x.show()
		}},
		{"F1", "a fenced host answers", func(x *fixture) map[string]string {
			x.host.Fenced = true
			return x.show(x.write(x.upsert(x.at(0), 3, "three")))
		}},
	}
}

// showAll is a step at which everything is looked at.
func (x *fixture) showAll(events ...Event) map[string]string {
	x.t.Helper()
	x.view.Step = fullEvery - 1
	return x.show(events...)
}

// durable is a copy of a file's durable bytes.
func durable(x *fixture, name string) []byte {
	x.t.Helper()
	b, ok := x.fs.Durable().Read(name)
	if !ok {
		x.t.Fatalf("no file %s", name)
	}
	return bytes.Clone(b)
}

// lakeCommit is a commit to the lake of table a, with the given slices.
func (x *fixture) lakeCommit(id int64, compaction string, refs ...segment.SliceRef) LakeCommitted {
	c := lake.Commit{CompactionID: compaction, Generation: 1, Slices: refs}
	head := &lake.Snapshot{ID: id, Properties: map[string]string{lake.KeySlices: lake.FormatSlices(refs)}}
	return LakeCommitted{testHost, x.tables[x.at(0).OID].ID, c, head}
}

// liveOf are the live slices of table a.
func (x *fixture) liveOf() []segment.SliceRef {
	var out []segment.SliceRef
	for _, s := range x.suite.facts.hosts[testHost].now.table(x.tables[x.at(0).OID].ID).live {
		out = append(out, s.Ref)
	}
	return out
}

func brokenLake() []broken {
	return []broken{
		{"C1", "another id for the same slices", func(x *fixture) map[string]string {
			refs := x.liveOf()
			x.show(x.lakeCommit(1, "x", refs...))
			return x.show(x.lakeCommit(2, "y", refs...))
		}},
		{"C2", "an acked compaction commits again", func(x *fixture) map[string]string {
			x.compactNow()
			acked := x.suite.facts.lakes[x.tables[x.at(0).OID].ID].commits[0]
			return x.show(x.lakeCommit(999, acked.CompactionID, acked.Slices...))
		}},
		{"C3", "a slice enters twice", func(x *fixture) map[string]string {
			refs := x.liveOf()
			x.show(x.lakeCommit(1, "x", refs[:1]...))
			e := x.lakeCommit(2, "y", refs...)
			e.Commit.Base = 1
			return x.show(e)
		}},
		{"C3", "files without slices", func(x *fixture) map[string]string {
			e := x.lakeCommit(1, "x", x.liveOf()...)
			e.Head.Properties = nil
			return x.show(e)
		}},
		{"C4", "a delete overtakes", func(x *fixture) map[string]string {
			x.commit(x.remove(x.at(0), 1))
			refs := x.liveOf()
			return x.show(x.lakeCommit(1, "x", refs[len(refs)-1]))
		}},
		{"F1", "a fenced host commits to the lake", func(x *fixture) map[string]string {
			refs := x.liveOf()
			newer := x.lakeCommit(1, "x", refs[0])
			newer.Commit.Epoch = 2
			x.show(newer)
			return x.show(x.lakeCommit(2, "y", refs[1]))
		}},
	}
}

func brokenCatalog() []broken {
	return []broken{
		{"N1", "compacted and live", func(x *fixture) map[string]string {
			x.compactNow()
			id := x.tables[x.at(0).OID].ID
			c := x.suite.facts.lakes[id].commits[0]
			x.write(x.upsert(x.at(0), 3, "three"))
			live := x.events[0].(Published).Groups[0].Slices[0].Ref
			x.suite.facts.lakes[id].now().first[live] = x.suite.facts.lakes[id].at[c.head.ID]
			return x.show()
		}},
		{"N1", "neither live nor compacted", func(x *fixture) map[string]string {
			id := x.tables[x.at(0).OID].ID
			x.compactNow()
			clear(x.suite.facts.lakes[id].now().first)
			x.suite.facts.hosts[testHost].now = x.suite.facts.hosts[testHost].before
			return x.show(Updated{testHost})
		}},
		{"O1", "ahead of the log", func(x *fixture) map[string]string {
			b := durable(x, x.body(1))
			clear(b[segment.HeaderBytes+200:])
			x.disk.put(x.body(1), b)
			return x.showAll(Updated{testHost})
		}},
		{"O1", "acknowledged past a stopped table", func(x *fixture) map[string]string {
			x.setTable(func(t *catalog.Table) { t.State, t.StoppedAt = catalog.TableStopped, source.Position(101) })
			x.show(Updated{testHost})
			return x.show(AckSent{testHost, 1, source.Position(102)})
		}},
		{"O1", "an offset regresses", func(x *fixture) map[string]string {
			done := x.write(x.upsert(x.at(0), 3, "three"))
			done.Group.Position = source.Position(5000)
			return x.show(done, Updated{testHost})
		}},
		{"P4", "forgotten before it is gone", func(x *fixture) map[string]string {
			x.compactNow()
			x.seal()
			err := x.cat.Update(x.t.Context(), func(txn *catalog.Txn) error { return txn.DeleteSegment(1, 1) })
			if err != nil {
				x.t.Fatal(err)
			}
			return x.show(Updated{testHost})
		}},
		{"S1", "a field id is reused", func(x *fixture) map[string]string {
			e, _ := x.pin()
			x.step(e)
			e, _ = x.pin()
			old := e.Pin.Tables[0].Table
			s := &schema.Table{Version: 2, LastFieldID: 2, Key: old.Current.Key, Fields: slices.Clone(old.Current.Fields)}
			s.Fields[1].AttNum = 9
			changed := *old
			changed.Current, changed.Versions = s, append(slices.Clip(old.Versions), s)
			e.Pin.Tables[0].Table = &changed
			return x.show(e)
		}},
		{"S1", "rows of an older version come later", func(x *fixture) map[string]string {
			done := x.write(x.upsert(x.at(0), 3, "three"))
			newer := done
			newer.Group.Slices = slices.Clone(done.Group.Slices)
			newer.Group.Slices[0].SchemaVersion = 2
			x.show(newer)
			return x.show(done)
		}},
		{"L1", "stuck", func(x *fixture) map[string]string {
			x.view.Stuck = true
			return x.show()
		}},
		{"L1", "live slices at rest", func(x *fixture) map[string]string {
			x.view.Drained = true
			return x.show()
		}},
	}
}

func (x *fixture) setTable(change func(*catalog.Table)) {
	x.t.Helper()
	id := x.tables[x.at(0).OID].ID
	err := x.cat.Update(x.t.Context(), func(txn *catalog.Txn) error {
		t, err := txn.TableByID(id)
		if err != nil {
			return err
		}
		change(t)
		return txn.PutTable(t)
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

// answer is a pin of all tables whose execution gives these rows of the first.
func (x *fixture) answer(rows ...string) map[string]string {
	x.t.Helper()
	e, p := x.pin()
	x.step(e)
	done := x.execute(e, p)
	done.Results[0] = query.NewResult(rows...)
	return x.show(done)
}

func brokenPins() []broken {
	return []broken{
		{"P1", "a compacted slice is pinned as live", func(x *fixture) map[string]string {
			before, _ := x.pin()
			x.compactNow()
			e, _ := x.pin()
			e.Pin.Tables[0].Live = before.Pin.Tables[0].Live
			return x.show(e)
		}},
		{"P1", "snapshot before slices", func(x *fixture) map[string]string {
			before, _ := x.pin()
			x.compactNow()
			e, _ := x.pin()
			e.Pin.Tables[0].Lake = before.Pin.Tables[0].Lake
			return x.show(e)
		}},
		{"P2", "other rows again", func(x *fixture) map[string]string {
			e, p := x.pin()
			x.step(e)
			x.step(x.execute(e, p))
			again := x.execute(e, p)
			again.Results[0] = query.NewResult("1|one")
			return x.show(again)
		}},
		{"P3", "a lost slice is no rows", func(x *fixture) map[string]string {
			e, p := x.pin()
			x.step(e)
			done := x.execute(e, p)
			done.Results[0] = query.NewResult()
			x.compactNow()
			x.seal()
			x.step(ReclaimAsked{testHost, 1, []segment.Seq{1}})
			return x.show(done)
		}},
		{"P3", "lost without a reclaim", func(x *fixture) map[string]string {
			e, _ := x.pin()
			x.step(e)
			return x.show(PinExecuted{Query: e.Query, Host: testHost, Pin: e.Pin, Err: fmt.Errorf("x: %w", duckdb.ErrSliceLost)})
		}},
		{"P3", "a lost pin is tried again", func(x *fixture) map[string]string {
			e, _ := x.pin()
			x.step(e)
			lost := PinExecuted{Query: e.Query, Host: testHost, Pin: e.Pin, Err: fmt.Errorf("x: %w", duckdb.ErrSliceLost)}
			x.show(ReclaimAsked{testHost, 1, []segment.Seq{1}}, lost)
			return x.show(lost)
		}},
		{"P3", "a fifth pin", func(x *fixture) map[string]string {
			return x.show(QueryEnded{Query: 1, Host: testHost, Repeats: 4})
		}},
		{"D1", "a row that never was", func(x *fixture) map[string]string { return x.answer("1|one", "2|tw0") }},
		{"D2", "an old version is not readable", func(x *fixture) map[string]string {
			return x.show(PinExecuted{Query: 1, Host: testHost, Err: fmt.Errorf("x: %w", duckdb.ErrPlan)})
		}},
		{"M1", "a key twice", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 1, "uno"))
			return x.answer("1|one", "1|uno", "2|two")
		}},
		{"M1", "an older change wins", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 1, "uno"), x.upsert(x.at(0), 2, "due"))
			return x.answer("1|one", "2|due")
		}},
		{"M2", "an older lake row wins", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 1, "uno"), x.upsert(x.at(0), 2, "due"))
			e, p := x.pin()
			e.Pin.Tables[0].Lake.MaxToken = 1 << 40
			x.show(e)
			done := x.execute(e, p)
			done.Results[0] = query.NewResult("1|one", "2|due")
			return x.show(done)
		}},
		{"C4", "a deleted key is back", func(x *fixture) map[string]string {
			x.commit(x.remove(x.at(0), 1))
			return x.answer("1|one", "2|two")
		}},
		{"T1", "tables of two moments", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 5, "five"), x.upsert(x.at(1), 5, "fünf"))
			return x.answer("1|one", "2|two")
		}},
		{"T1", "half a transaction", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 5, "five"), x.upsert(x.at(0), 6, "six"))
			return x.answer("1|one", "2|two", "5|five")
		}},
		{"Q1", "a table is behind the watermark", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 3, "three"))
			x.commit(x.upsert(x.at(0), 4, "four"))
			return x.answer("1|one", "3|three")
		}},
		{"Q1", "below what was waited for", func(x *fixture) map[string]string {
			x.commit(x.upsert(x.at(0), 3, "three"))
			e, _ := x.pin()
			e.Awaited, e.In = source.LSN(e.Pin.Position), []uint32{e.Pin.Tables[0].Table.SourceOID}
			e.Pin.Position = source.Position(e.Awaited - 1)
			return x.show(e)
		}},
		{"Q1", "below what was acknowledged", func(x *fixture) map[string]string {
			e, _ := x.pin()
			e.Pin.Position = source.Position(101)
			return x.show(AckSent{testHost, 1, source.Position(102)}, e)
		}},
	}
}

// TestOracle folds a keyless table, a truncate, a key update and a schema change.
func TestOracle(t *testing.T) {
	db := source.NewDB(func() time.Time { return time.Unix(0, 0) })
	columns := func() []source.Column {
		return []source.Column{
			{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: 20}, {Name: "note", Type: schema.Type{Kind: schema.String}, OID: 25},
		}
	}
	keyed, bag := db.CreateTable("public", "k", columns(), "id"), db.CreateTable("public", "b", columns())
	shape := &schema.Table{Fields: []schema.Field{{ID: 1, AttNum: 2}, {ID: 2, AttNum: 1}, {ID: 3, AttNum: 3}}}
	put := func(t *source.Table, row ...any) source.Change {
		return source.Change{Table: t, Version: t.Current(), Op: change.Insert, New: row}
	}
	db.Commit([]source.Change{put(keyed, int64(1), "a"), put(bag, int64(1), "x"), put(bag, int64(1), "x")}, false)
	moved := put(keyed, int64(2), "b")
	moved.Op, moved.Old = change.Update, source.Row{int64(1), "a"}
	first := db.Commit([]source.Change{moved}, false)
	db.AddColumn(keyed, source.Column{Name: "more", Type: schema.Type{Kind: schema.Bool}, OID: 16})
	second := db.Commit([]source.Change{put(keyed, int64(3), nil, true)}, false)
	third := db.Commit([]source.Change{{Table: bag, Version: bag.Current(), Truncate: true}, put(bag, int64(9), "y")}, false)
	o := newOracle()
	for _, c := range []struct {
		table *source.Table
		lsn   int64
		want  []string
	}{
		{keyed, first.LSN, []string{`b|2|\N`}},
		{keyed, second.LSN, []string{`\N|3|t`, `b|2|\N`}},
		{bag, second.LSN, []string{`x|1|\N`, `x|1|\N`}},
		{bag, third.LSN, []string{`y|9|\N`}},
		{keyed, first.LSN, []string{`b|2|\N`}}, // back in time
	} {
		got := o.at(&db.History, admitted{oid: c.table.OID}, c.lsn, shape)
		if rows := got.sorted(); !slices.Equal(rows, c.want) || query.NewResult(rows...).Digest != got.digest {
			t.Errorf("%s at %d: %q, want %q", c.table.Name, c.lsn, rows, c.want)
		}
	}
}

package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

var testStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func testDeps() catalog.Deps {
	fake := env.NewFake(testStart, 1)
	return catalog.Deps{Clock: fake, IDs: fake, Key: make([]byte, 32), ApplyState: countState}
}

// countState counts rows of the first table of the pipeline: a state is one byte.
func countState(txn *catalog.Txn, pipeline change.PipelineID, state []byte) error {
	t := txn.Tables(pipeline)[0]
	t.Backfill.RowsDone += int64(state[0])
	return txn.PutTable(t)
}

func open(t testing.TB, store kv.Store) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), store, testDeps())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func update(t testing.TB, c *catalog.Catalog, fn func(*catalog.Txn) error) {
	t.Helper()
	if err := c.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func snapshot(t testing.TB, c *catalog.Catalog) *catalog.Snapshot {
	t.Helper()
	s := c.Snapshot()
	t.Cleanup(s.Close)
	return s
}

func get[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func is(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func testTable(t testing.TB) *schema.Table {
	t.Helper()
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: schema.OIDInt8, TypMod: -1, AttNum: 1},
		{Name: "v", Type: schema.Type{Kind: schema.String}, OID: schema.OIDText, TypMod: -1, AttNum: 2},
	}, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shop makes pipeline 1 "shop" with the tables 1 "s.a" and 2 "s.b".
func shop(t testing.TB, c *catalog.Catalog) {
	t.Helper()
	update(t, c, func(txn *catalog.Txn) error {
		p := &catalog.Pipeline{Name: "shop", Connection: "pg", State: catalog.PipelineRunning}
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		for _, name := range []string{"a", "b"} {
			tbl := &catalog.Table{
				Pipeline: p.ID, Schema: "s", Name: name, Current: testTable(t), State: catalog.TableReady,
			}
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
		}
		return nil
	})
}

// group is a group of 100 bytes at the n-th hundred of a segment, with one slice of ten
// bytes per table; tokens grow with the place.
func group(seq segment.Seq, n int, tables ...change.TableID) wal.CommittedGroup {
	g := wal.CommittedGroup{
		Seq: seq, End: uint32(n+1) * 100, CommittedAt: testStart,
		Position: change.Position(fmt.Sprintf("%d.%d", seq, n)),
	}
	token := int64(seq)*1000 + int64(n)
	for i, id := range tables {
		g.Slices = append(g.Slices, wal.Slice{
			Ref:    segment.SliceRef{Seq: seq, Start: uint32(n*100 + i*10)},
			Length: 10, Table: id, SchemaVersion: 1, Rows: 2,
			Counts: change.Counts{Inserts: 1, Deletes: 1, MinToken: token, MaxToken: token},
		})
	}
	return g
}

func publish(t testing.TB, c *catalog.Catalog, groups ...wal.CommittedGroup) {
	t.Helper()
	if err := c.Publish(context.Background(), 1, groups); err != nil {
		t.Fatal(err)
	}
}

func refs(slices []catalog.Slice) []string {
	out := []string{}
	for _, s := range slices {
		out = append(out, s.Ref.String())
	}
	return out
}

func TestOpenNew(t *testing.T) {
	c := open(t, memkv.New())
	s := snapshot(t, c)
	role := get[*catalog.Role](t)(s.Role("postgres"))
	equal(t, "role", *role, catalog.Role{OID: 10, Name: "postgres", Superuser: true, CanLogin: true})
	equal(t, "schemas", s.Schemas(), []*catalog.Schema{{Name: "public", OID: 2200}})
	equal(t, "pipelines", len(s.Pipelines())+len(s.AllTables()), 0)
}

func TestOpenRefuses(t *testing.T) {
	t.Run("another key", func(t *testing.T) {
		store := memkv.New()
		open(t, store)
		deps := testDeps()
		deps.Key = []byte("01234567890123456789012345678901")
		_, err := catalog.Open(t.Context(), store, deps)
		is(t, "open", err, catalog.ErrKey)
	})
	t.Run("no key", func(t *testing.T) {
		deps := testDeps()
		deps.Key = nil
		_, err := catalog.Open(t.Context(), memkv.New(), deps)
		is(t, "open", err, catalog.ErrKey)
	})
	for what, row := range map[string]string{"newer format": "\x07", "a format too old": "\x01", "zero format": "\x00"} {
		t.Run(what, func(t *testing.T) {
			store := memkv.New()
			set(t, store, "\x01", row)
			_, err := catalog.Open(t.Context(), store, testDeps())
			is(t, "open", err, catalog.ErrFormat)
			if got, err := store.Get([]byte("\x01")); string(got) != row || err != nil {
				t.Errorf("format row is %q after, %v", got, err)
			}
		})
	}
	t.Run("older format", func(t *testing.T) {
		store := memkv.New()
		open(t, store)
		set(t, store, "\x01", "\x02")
		other := testDeps()
		other.Key = bytes.Repeat([]byte{9}, 32)
		for _, c := range []struct {
			deps catalog.Deps
			want string
			err  error
		}{{other, "\x02", catalog.ErrKey}, {testDeps(), "\x06", nil}, {testDeps(), "\x06", nil}} {
			if _, err := catalog.Open(t.Context(), store, c.deps); !errors.Is(err, c.err) {
				t.Errorf("open: %v, want %v", err, c.err)
			}
			store = store.Crash()
			if got, err := store.Get([]byte("\x01")); string(got) != c.want || err != nil {
				t.Errorf("format row is %q, want %q, %v", got, c.want, err)
			}
		}
	})
	t.Run("corrupt row", func(t *testing.T) {
		store := memkv.New()
		open(t, store)
		set(t, store, "\x10\x00\x00\x00\x01", "\x01{")
		_, err := catalog.Open(t.Context(), store, testDeps())
		is(t, "open", err, catalog.ErrCorrupt)
	})
}

func set(t *testing.T, store kv.Store, key, value string) {
	t.Helper()
	b := store.NewBatch()
	if err := errors.Join(b.Set([]byte(key), []byte(value)), b.Commit(true)); err != nil {
		t.Fatal(err)
	}
}

// A transaction that fails, and one after Close, leaves nothing behind.
func TestUpdateAtomic(t *testing.T) {
	store := memkv.New()
	c := open(t, store)
	shop(t, c)
	before := snapshot(t, c).Version()
	boom := errors.New("boom")
	err := c.Update(t.Context(), func(txn *catalog.Txn) error {
		if err := txn.DeletePipeline(1); err != nil {
			return err
		}
		if _, err := txn.Pipeline("shop"); !errors.Is(err, catalog.ErrPipelineNotFound) {
			t.Errorf("the transaction does not read its writes: %v", err)
		}
		return boom
	})
	is(t, "update", err, boom)
	for _, s := range []*catalog.Snapshot{snapshot(t, c), snapshot(t, open(t, store))} {
		equal(t, "tables", len(s.Tables(1)), 2)
	}
	equal(t, "version", snapshot(t, c).Version(), before)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	err = c.Update(t.Context(), func(txn *catalog.Txn) error { return txn.PutSetting("a", "b") })
	is(t, "update after close", err, catalog.ErrClosed)
	is(t, "publish after close", c.Publish(t.Context(), 1, nil), catalog.ErrClosed)
}

// What a transaction hands out may be changed without effect until it is put back.
func TestTxnReturnsCopies(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	update(t, c, func(txn *catalog.Txn) error {
		tbl := get[*catalog.Table](t)(txn.TableByName("s", "a"))
		tbl.Backfill.Done = []bool{false, false}
		tbl.Backfill.Plan = []string{"x", "y"}
		return txn.PutTable(tbl)
	})
	s := snapshot(t, c)
	update(t, c, func(txn *catalog.Txn) error {
		tbl := get[*catalog.Table](t)(txn.TableByName("s", "a"))
		tbl.Backfill.Done[1] = true
		tbl.Name = "other"
		txn.Pipelines()[0].Name = "other"
		return nil
	})
	for _, s := range []*catalog.Snapshot{s, snapshot(t, c)} {
		tbl := get[*catalog.Table](t)(s.TableByID(1))
		equal(t, "table", fmt.Sprint(tbl.Name, tbl.Backfill.Done), "a[false false]")
		equal(t, "pipeline", s.Pipelines()[0].Name, "shop")
	}
}

func TestChanged(t *testing.T) {
	c := open(t, memkv.New())
	shop(t, c)
	commits := map[string]func(){
		"update":  func() { update(t, c, func(txn *catalog.Txn) error { return txn.PutSetting("a", "b") }) },
		"publish": func() { publish(t, c, group(1, 0, 1)) },
	}
	for what, commit := range commits {
		changed := c.Changed()
		select {
		case <-changed:
			t.Errorf("%s: changed before", what)
		default:
		}
		commit()
		select {
		case <-changed:
		default:
			t.Errorf("%s: not changed", what)
		}
	}
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/kv/memkv"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal/env"
)

// stateError is a condition that a source names.
type stateError string

func (e stateError) Error() string    { return "the server said " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// describer is a source that describes each table as one column, or fails to.
type describer struct {
	Source
	fails map[string]error
}

func (d *describer) Discover(_ context.Context, sel catalog.TableSelection) ([]SourceTable, error) {
	var out []SourceTable
	for _, w := range sel.Tables {
		if err := d.fails[w.Name]; err != nil {
			return nil, err
		}
		out = append(out, SourceTable{
			Schema: w.Schema, Name: w.Name, OID: 7, Key: []string{"id"},
			Columns: []SourceColumn{{Name: "id", OID: schema.OIDInt8, TypMod: -1, AttNum: 1, Type: schema.Type{Kind: schema.Int64}}},
		})
	}
	return out, nil
}

// aloneWorld is a session over a catalog with tables a and b, which wait for a copy.
func aloneWorld(t *testing.T, change func(*catalog.Table)) (*session, *describer, *env.Fake) {
	t.Helper()
	clock := env.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	c, err := catalog.Open(t.Context(), memkv.New(), catalog.Deps{Clock: clock, IDs: clock, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	p := &catalog.Pipeline{Name: "shop", Connection: "c", Enabled: true, Options: map[string]string{}}
	err = c.Update(t.Context(), func(txn *catalog.Txn) error {
		if err := txn.CreatePipeline(p); err != nil {
			return err
		}
		for i, name := range []string{"a", "b"} {
			s, err := schema.New([]schema.NewField{{Name: "id", Type: schema.Type{Kind: schema.Int64}, OID: schema.OIDInt8, TypMod: -1, AttNum: 1}}, []string{"id"})
			if err != nil {
				return err
			}
			tbl := &catalog.Table{Pipeline: p.ID, Schema: "s", Name: name, SourceSchema: "public", SourceName: name, SourceOID: uint32(10 + i), Current: s}
			change(tbl)
			if err := txn.CreateTable(tbl); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &describer{fails: map[string]error{}}
	deps := Deps{Catalog: c, Clock: clock, Lake: noLake{}}
	return &session{cfg: Config{CopyAgain: time.Minute}, deps: deps, out: slog.New(slog.DiscardHandler), pipeline: p, source: d, live: newLive(clock)}, d, clock
}

func (s *session) states(t *testing.T) string {
	t.Helper()
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	out := ""
	for _, tbl := range snap.Tables(s.pipeline.ID) {
		times := 0
		if tbl.GaveUp != nil {
			times = tbl.GaveUp.Times
		}
		out += fmt.Sprintf("%s %s %d; ", tbl.Name, tbl.State, times)
	}
	return out
}

// TestOneTableCannotBeDescribed: what the source says of one table that is to be copied anew stops
// no other; a source that is away stops all.
func TestOneTableCannotBeDescribed(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // "": the session ends
	}{
		{stateError("42703"), "a stopped 1; b pending 1; "},
		{fmt.Errorf("read: %w", stateError("55P03")), "a stopped 1; b pending 1; "},
		{stateError("57P01"), ""},
		{stateError("08006"), ""},
		{errors.New("broken pipe"), ""},
	} {
		s, d, _ := aloneWorld(t, func(tbl *catalog.Table) {
			tbl.State, tbl.Resync = catalog.TableStopped, true
		})
		d.fails["a"] = c.err
		err := s.resync(t.Context())
		if c.want == "" {
			if !errors.Is(err, ErrSourceUnavailable) {
				t.Errorf("%v: %v", c.err, err)
			}
			continue
		}
		if got := s.states(t); err != nil || got != c.want {
			t.Errorf("%v: %s, %v", c.err, got, err)
		}
	}
	for _, c := range []struct {
		err  error
		want string
	}{{stateError("42703"), "a stopped 0; b pending 0; "}, {errors.New("broken pipe"), ""}} {
		s, d, _ := aloneWorld(t, func(tbl *catalog.Table) {
			tbl.State, tbl.Away = catalog.TableStopped, watch.Replaced
		})
		d.fails["a"] = c.err
		err := s.remake(t.Context())
		if got := s.states(t); (err != nil) != (c.want == "") || err == nil && got != c.want {
			t.Errorf("remake, %v: %s, %v", c.err, got, err)
		}
	}
}

// TestBeginsAgainRests: a table that nobody reads yet, and that stops again each time its copy has
// begun anew by itself, rests between two of them; one that becomes ready forgets it.
func TestBeginsAgainRests(t *testing.T) {
	s, _, clock := aloneWorld(t, func(tbl *catalog.Table) {
		tbl.State, tbl.Resync = catalog.TableStopped, tbl.Name == "a"
	})
	set := func(fn func(*catalog.Table)) {
		t.Helper()
		err := s.deps.Catalog.Update(t.Context(), func(txn *catalog.Txn) error {
			a, err := txn.TableByName("s", "a")
			if err != nil {
				return err
			}
			fn(a)
			return txn.PutTable(a)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stops := func(a *catalog.Table) { a.State, a.Resync = catalog.TableStopped, true }
	resync := func(want string) {
		t.Helper()
		if err := s.resync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.states(t); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	resync("a pending 1; b stopped 0; ")
	set(stops)
	resync("a stopped 1; b stopped 0; ")
	clock.Advance(61 * time.Second)
	resync("a pending 2; b stopped 0; ")
	set(stops)
	clock.Advance(61 * time.Second) // twice as long now
	resync("a stopped 2; b stopped 0; ")
	clock.Advance(61 * time.Second)
	resync("a pending 3; b stopped 0; ")
	set(func(a *catalog.Table) {
		a.State = catalog.TableBackfill
		finish(a, clock.Now(), true)
	})
	resync("a ready 0; b stopped 0; ")
}

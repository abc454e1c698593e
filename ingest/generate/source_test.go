package generate_test

import (
	"context"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/generate"
	"github.com/skipprd/skipprd/ingest/sourcetest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

func TestSource(t *testing.T) {
	clock, ids := env.System()
	sourcetest.Run(t, func(t *testing.T) sourcetest.Harness {
		cfg := generate.Config{Customers: 30, Orders: 90, ChunkRows: 20}
		return sourcetest.Harness{
			Selection: catalog.TableSelection{AllTables: true},
			Open: func(t *testing.T, at change.Position) ingest.Source {
				s, err := generate.NewSource(cfg, ingest.SourceDeps{Clock: clock, IDs: ids, Position: at})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Produce: func(*testing.T, int) {}, // the shop lives by itself
		}
	})
}

func TestDiscoverSelects(t *testing.T) {
	s, err := generate.NewSource(generate.Config{}, ingest.SourceDeps{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		sel  catalog.TableSelection
		want int
	}{
		"all":          {catalog.TableSelection{AllTables: true}, 7},
		"schema":       {catalog.TableSelection{Schemas: []string{"public"}}, 7},
		"other schema": {catalog.TableSelection{Schemas: []string{"other"}}, 0},
		"except":       {catalog.TableSelection{AllTables: true, Except: []string{"public.visits"}}, 6},
		"one":          {catalog.TableSelection{Tables: []catalog.SelectedTable{{Schema: "public", Name: "orders"}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := s.Discover(context.Background(), tc.sel)
			if err != nil || len(found) != tc.want {
				t.Errorf("found %d tables, %v, want %d", len(found), err, tc.want)
			}
		})
	}
}

func TestDiscoverColumns(t *testing.T) {
	s, err := generate.NewSource(generate.Config{}, ingest.SourceDeps{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Discover(context.Background(), catalog.TableSelection{
		Tables: []catalog.SelectedTable{{Name: "orders", Columns: []string{"total", "status"}}},
	})
	if err != nil || len(found) != 1 || len(found[0].Columns) != 3 {
		t.Fatalf("found %+v, %v: want the key and two columns", found, err)
	}
}

func TestSetupRefusesAnotherHistory(t *testing.T) {
	open := func(seed int64) *generate.Source {
		s, err := generate.NewSource(generate.Config{Seed: seed}, ingest.SourceDeps{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	result, err := open(1).Setup(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(2).Setup(context.Background(), result.State, nil); err == nil {
		t.Error("another seed was accepted under a pipeline")
	}
}

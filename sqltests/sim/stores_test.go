package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/sqltests/sim"
	"github.com/skipprd/skipprd/sqltests/sim/engine"
	"github.com/skipprd/skipprd/sqltests/sim/script"
)

// TestPebbleIsTheSame: a world whose catalogs are on Pebble, over a file system that loses
// what was not synced, is the same world, exchange by exchange.
func TestPebbleIsTheSame(t *testing.T) {
	for seed := range seeds(t, 60) {
		s := script.Generate(seed, 0)
		mem, err := sim.Run(sim.Config{Schedule: s})
		if err != nil {
			t.Fatal(err)
		}
		pebble, err := sim.Run(sim.Config{Schedule: s, Pebble: true})
		if err != nil {
			t.Fatal(err)
		}
		if mem.TraceHash != pebble.TraceHash || mem.Points != pebble.Points {
			t.Fatalf("seed %d: trace %016x of %d exchanges in memory, %016x of %d on Pebble", seed, mem.TraceHash,
				mem.Points, pebble.TraceHash, pebble.Points)
		}
	}
}

// TestSelect runs worlds with the real lake, and reads them by the product's own SELECT
// again and again and when they have come to rest: the rows are the oracle's.
func TestSelect(t *testing.T) {
	e, err := engine.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tables := 0
	for seed := range seeds(t, 25) {
		r, err := sim.Run(sim.Config{
			Schedule: script.Generate(seed, 0), Lake: sim.IcebergLake(t.TempDir()), ProbeEvery: 20,
			Probe: func(p sim.Probe) error {
				n, err := compareTables(t, e, p)
				tables += n
				return err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Violation != nil {
			t.Fatalf("seed %d: %v at step %d", seed, r.Violation, r.Violation.Step)
		}
	}
	if tables == 0 {
		t.Error("no table was ever compared")
	}
	t.Logf("%d tables compared", tables)
}

// compareTables reads every table that can be read, in one transaction.
func compareTables(t *testing.T, e *engine.Engine, p sim.Probe) (tables int, err error) {
	s, err := e.Session(t.Context(), engine.World{
		Catalog: p.Catalog, Lake: p.Lake, Disk: p.Disk, LogDir: p.LogDir, Clock: p.Clock,
	})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := s.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return 0, err
	}
	snap := p.Catalog.Snapshot()
	defer snap.Close()
	for _, tbl := range snap.AllTables() {
		if tbl.State != catalog.TableReady && (tbl.State != catalog.TableStopped || tbl.Backfill.FinishedAt.IsZero()) {
			continue
		}
		at, err := snap.Offset(tbl.Pipeline)
		if err != nil {
			return tables, err
		}
		got, err := s.Table(t.Context(), tbl)
		if err != nil {
			return tables, err
		}
		if want := p.Want(tbl, at.Position); !slices.Equal(got, want) {
			return tables, fmt.Errorf("table %s.%s at %s: SELECT gives %q, want %q", tbl.Schema, tbl.Name, at.Position, got, want)
		}
		tables++
	}
	return tables, nil
}

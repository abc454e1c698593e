package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/catalog"
)

// AddTables takes tables into a pipeline; nil takes in what its selection names and it
// does not have yet. It returns the names taken in, as "schema.table" of the source.
func (s *Supervisor) AddTables(ctx context.Context, name string, tables []catalog.SelectedTable,
) (added []string, err error) {
	err = s.still(ctx, name, func(p *catalog.Pipeline, _ *hosted) error {
		sel := p.Selection
		if tables != nil {
			sel = catalog.TableSelection{Tables: tables, OutOfRangeText: sel.OutOfRangeText}
		}
		snap := s.deps.Catalog.Snapshot()
		c, err := snap.Connection(p.Connection)
		snap.Close()
		if err != nil {
			return err
		}
		found, err := s.Discover(ctx, c, sel)
		if err != nil {
			return err
		}
		if err := checkNamed(found, tables); err != nil {
			return err
		}
		return s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			added, err = addTables(txn, p, found, tables)
			return err
		})
	})
	return added, err
}

// checkNamed refuses tables that were asked for by name and are not there, or cannot
// be taken in.
func checkNamed(found []SourceTable, wanted []catalog.SelectedTable) error {
	for _, w := range wanted {
		there := false
		for _, f := range found {
			if f.Name != w.Name || w.Schema != "" && f.Schema != w.Schema {
				continue
			}
			there = true
			if f.OID == 0 && f.Unsupported != "" {
				return fmt.Errorf("table %s.%s does not exist at the source: %w", f.Schema, f.Name, catalog.ErrTableNotFound)
			}
			if f.Unsupported != "" {
				return fmt.Errorf("table %s.%s: %w", f.Schema, f.Name, &TableError{Reason: f.Unsupported, Hint: f.Hint})
			}
		}
		if !there {
			return fmt.Errorf("table %s.%s does not exist at the source: %w", w.Schema, w.Name, catalog.ErrTableNotFound)
		}
	}
	return nil
}

func addTables(txn *catalog.Txn, p *catalog.Pipeline, found []SourceTable, wanted []catalog.SelectedTable,
) (added []string, err error) {
	next, err := txn.PipelineByID(p.ID)
	if err != nil {
		return nil, err
	}
	created, err := createTables(txn, next, found, lowestToken(txn.Tables(p.ID)))
	if err != nil {
		return nil, err
	}
	if err := checkTaken(txn, next, found, wanted); err != nil {
		return nil, err
	}
	for _, t := range created {
		added = append(added, t.SourceSchema+"."+t.SourceName)
	}
	for _, w := range wanted { // with all tables, those of which only a part is wanted
		if len(created) > 0 && (!next.Selection.AllTables || w.Partly()) {
			next.Selection.Tables = append(next.Selection.Tables, w)
		}
	}
	next.Selection.Except = slices.DeleteFunc(next.Selection.Except, func(name string) bool { return slices.Contains(added, name) })
	return added, txn.PutPipeline(next)
}

// checkTaken refuses tables that were asked for by name and whose own name here another
// table has.
func checkTaken(txn *catalog.Txn, p *catalog.Pipeline, found []SourceTable, wanted []catalog.SelectedTable) error {
	if len(wanted) == 0 {
		return nil
	}
	known := map[uint32]bool{}
	for _, t := range txn.EveryTableOf(p.ID) {
		known[t.SourceOID] = true
	}
	for _, f := range found {
		if !known[f.OID] {
			schemaName, name := targetName(p, f)
			return &catalog.ExistsError{Kind: catalog.KindTable, Name: schemaName + "." + name}
		}
	}
	return nil
}

// lowestToken is a token lower than that of every change of the pipeline's stream: the
// one its first tables were copied with.
func lowestToken(tables []*catalog.Table) int64 {
	var lowest int64
	for i, t := range tables {
		if i == 0 || t.Backfill.Token < lowest {
			lowest = t.Backfill.Token
		}
	}
	return lowest
}

// DropTable takes a table out of a pipeline, with its data.
func (s *Supervisor) DropTable(ctx context.Context, name string, want catalog.SelectedTable) error {
	return s.still(ctx, name, func(p *catalog.Pipeline, _ *hosted) error {
		snap := s.deps.Catalog.Snapshot()
		t, err := catalog.NamedTable(snap.Tables(p.ID), want)
		snap.Close()
		if err != nil {
			return err
		}
		err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error { return dropTable(txn, p, t) })
		if err != nil {
			return fmt.Errorf("drop table %s.%s: %w", t.Schema, t.Name, err)
		}
		return s.removeLeftovers(ctx)
	})
}

func dropTable(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table) error {
	next, err := txn.PipelineByID(p.ID)
	if err != nil {
		return err
	}
	kept := next.Selection.Tables[:0]
	for _, w := range next.Selection.Tables {
		if w.Name != t.SourceName || w.Schema != "" && w.Schema != t.SourceSchema {
			kept = append(kept, w)
		}
	}
	next.Selection.Tables = kept
	if next.Selection.AllTables || len(next.Selection.Schemas) > 0 {
		next.Selection.Except = append(next.Selection.Except, t.SourceSchema+"."+t.SourceName)
	}
	if err := txn.PutPipeline(next); err != nil {
		return err
	}
	if err := errors.Join(txn.DeleteTable(t.ID), txn.LeaveLake(t.ID)); err != nil {
		return err
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "info", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: "table dropped",
	})
}

// ResumeTable lets a stopped table go on from where it stopped; one that stopped while
// it was copied, and so keeps nothing at the source, is copied anew.
func (s *Supervisor) ResumeTable(ctx context.Context, name string, want catalog.SelectedTable) error {
	snap := s.deps.Catalog.Snapshot()
	p, err := snap.Pipeline(name)
	if err == nil {
		var t *catalog.Table
		if t, err = catalog.NamedTable(snap.Tables(p.ID), want); err == nil && t.State == catalog.TableStopped && t.StoppedAt == "" && snap.CopyFor(t.ID) == nil {
			snap.Close()
			return s.ResyncTable(ctx, name, want)
		}
	}
	snap.Close()
	if err != nil {
		return err
	}
	_, err = s.onTable(ctx, name, want, func(txn *catalog.Txn, t *catalog.Table) error {
		if t.State != catalog.TableStopped || txn.CopyFor(t.ID) != nil {
			return nil
		}
		t.Resync = false // it may stop there again
		switch {
		case t.StoppedAt == "":
			return nil // stopped since
		case t.Backfill.StartedAt.IsZero() || !t.Backfill.FinishedAt.IsZero():
			t.State, t.Reason, t.Hint = catalog.TableCatchup, "", ""
		default:
			t.State, t.Reason, t.Hint = catalog.TableBackfill, "", ""
		}
		return txn.PutTable(t)
	})
	return err
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/mutant"
)

// A table that queries read is copied anew beside itself: another one, of which they do
// not know (catalog.Table.CopyOf), is copied and streamed as any new table is, and takes
// its place when it is ready. Until then they read the table as before, which follows the
// stream unless it has stopped.

// ResyncTable copies a table anew. What it has stays readable meanwhile, if it was. A
// stopped table holds nothing back at the source any more. A copy under way gives way to
// the new one. A want that says more than a name is what the pipeline selects of the table
// from then on; with another row filter what it has stays as it is until then, for the
// source sends changes by one filter only.
func (s *Supervisor) ResyncTable(ctx context.Context, name string, want catalog.SelectedTable) error {
	return s.still(ctx, name, func(p *catalog.Pipeline, h *hosted) error {
		if err := h.openLog(ctx); err != nil {
			return err
		}
		snap := s.deps.Catalog.Snapshot()
		t, err := catalog.NamedTable(snap.Tables(p.ID), want)
		snap.Close()
		if err != nil {
			return err
		}
		selected := selectedAs(p, t)
		if want.Partly() {
			selected = want
			selected.Schema, selected.Name = t.SourceSchema, t.SourceName
		}
		fresh, err := s.describe(ctx, p, t, selected)
		if err != nil {
			return err
		}
		selected.Schema, selected.Name = fresh.Schema, fresh.Name
		err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			if err := renamed(txn, p.ID, t.ID, fresh); err != nil {
				return err
			}
			if want.Partly() {
				if err := reselect(txn, p.ID, selected); err != nil {
					return err
				}
			}
			return resync(txn, p, t.ID, fresh)
		})
		if err != nil {
			return fmt.Errorf("resync table %s.%s: %w", t.Schema, t.Name, err)
		}
		if !t.Answers() {
			if err := s.dropLake(ctx, []*catalog.Table{t}); err != nil {
				return err
			}
		}
		return s.removeLeftovers(ctx)
	})
}

// Comparing notes how much of a table is compared with its source, negative for not at all.
func (s *Supervisor) Comparing(p change.PipelineID, table change.TableID, share float64) {
	s.mu.Lock()
	h := s.mu.hosts[p]
	s.mu.Unlock()
	if h != nil {
		h.live.compared(table, share)
	}
}

// ReworkedDiffers has a table copied anew of which the source has other rows than are here, since
// a column was changed there: by the next session, which begins soon. It stops instead where
// the pipeline says so.
func ReworkedDiffers(txn *catalog.Txn, id change.TableID) error {
	t, err := txn.TableByID(id)
	if err != nil {
		return err
	}
	p, err := txn.PipelineByID(t.Pipeline)
	if err != nil {
		return err
	}
	why := &TableError{Reason: "rows were given other values at the source as a column was changed, which are not sent", Hint: hintResync, Resync: true}
	switch {
	case t.PartsKnown && p.Options["on_partition"] == "keep": // it may differ for partitions that came or went
		t.Compared = t.Files.Reworked
		t.Reason, t.Hint = "it differs from the source, where a column was changed, or partitions that it keeps or lacks", exactHint(txn, why.Hint, id)
		return txn.PutTable(t)
	case p.Options["on_schema_change"] == "stop":
		return stopCopy(txn, p.Name, id, why)
	}
	t.State, t.Reason, t.Hint, t.StoppedAt, t.Resync = catalog.TableStopped, why.Reason, exactHint(txn, why.Hint, id), "", true
	return txn.PutTable(t)
}

// Compares says that a pipeline's tables are compared with the source by themselves.
func Compares(p *catalog.Pipeline) bool {
	return p.Enabled && !p.Paused && len(p.SourceState) > 0 && copies(p)
}

// reselect has a pipeline select a table as given, whatever it said of it before.
func reselect(txn *catalog.Txn, id change.PipelineID, selected catalog.SelectedTable) error {
	p, err := txn.PipelineByID(id)
	if err != nil {
		return err
	}
	p.Selection.Tables = append(slices.DeleteFunc(slices.Clone(p.Selection.Tables), func(w catalog.SelectedTable) bool {
		return w.Name == selected.Name && (w.Schema == "" || w.Schema == selected.Schema)
	}), selected)
	return txn.PutPipeline(p)
}

// describe asks the source how a table is now, of which a part may be wanted: the one that
// it always was, under whatever name, or, when that is gone, the one that has its name.
func (s *Supervisor) describe(ctx context.Context, p *catalog.Pipeline, t *catalog.Table, want catalog.SelectedTable) (SourceTable, error) {
	source, err := s.OpenSource(ctx, p)
	if err != nil {
		return SourceTable{}, err
	}
	defer func() { _ = source.Close() }() // only read
	return describeNow(ctx, source, p, t, want)
}

func describeNow(ctx context.Context, source Source, p *catalog.Pipeline, t *catalog.Table, want catalog.SelectedTable) (SourceTable, error) {
	names, err := namesNow(ctx, source, []*catalog.Table{t})
	if err != nil {
		return SourceTable{}, err
	}
	wanted := []catalog.SelectedTable{names.of(t, want)}
	found, err := source.Discover(ctx, catalog.TableSelection{Tables: wanted, OutOfRangeText: p.Selection.OutOfRangeText})
	if err != nil {
		return SourceTable{}, sourceError("discover tables", err)
	}
	if err := checkNamed(found, wanted); err != nil {
		return SourceTable{}, err
	}
	return found[0], nil
}

// renamed has a table and the pipeline's selection name it as the source does now.
func renamed(txn *catalog.Txn, id change.PipelineID, table change.TableID, fresh SourceTable) error {
	t, err := txn.TableByID(table)
	if err != nil {
		return err
	}
	if t.SourceSchema == fresh.Schema && t.SourceName == fresh.Name {
		return nil
	}
	p, err := txn.PipelineByID(id)
	if err != nil {
		return err
	}
	follow(p, t, &tableSchema{SourceSchema: fresh.Schema, SourceName: fresh.Name})
	t.SourceSchema, t.SourceName = fresh.Schema, fresh.Name
	if c := txn.CopyFor(t.ID); c != nil && c.SourceOID == t.SourceOID {
		c.SourceSchema, c.SourceName = fresh.Schema, fresh.Name
		if err := txn.PutTable(c); err != nil {
			return err
		}
	}
	return errors.Join(txn.PutPipeline(p), txn.PutTable(t))
}

// resync has a table copied anew, as the source describes it. No session runs, or the
// table answers.
func resync(txn *catalog.Txn, p *catalog.Pipeline, id change.TableID, fresh SourceTable) error {
	t, err := txn.TableByID(id)
	if err != nil {
		return err
	}
	if t.Answers() && !mutant.On(mutant.ResyncInPlace) {
		if err = refilter(txn, t, fresh); err == nil {
			err = beginCopy(txn, t, fresh)
		}
	} else if err = txn.DropCopy(id); err == nil {
		err = beginAgain(txn, t, fresh)
	}
	if err != nil {
		return err
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "info", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: "table copied anew",
	})
}

// remake has tables begin anew that were dropped and made anew at the source before they
// were ever complete: at the start of a session, while no stream delivers to them. One that
// cannot be taken in is left to the look at the source, which says why.
func (s *session) remake(ctx context.Context) error {
	snap := s.deps.Catalog.Snapshot()
	tables := snap.Tables(s.pipeline.ID)
	snap.Close()
	for _, t := range tables {
		if !remadeEarly(s.pipeline, t) {
			continue
		}
		wanted := []catalog.SelectedTable{sourceNames{}.of(t, selectedAs(s.pipeline, t))}
		found, err := s.source.Discover(ctx, catalog.TableSelection{Tables: wanted, OutOfRangeText: s.pipeline.Selection.OutOfRangeText})
		switch {
		case err != nil && context.Cause(ctx) == nil && ofTable(err):
			s.out.Warn("table not copied anew", env.KeyTable, t.Schema+"."+t.Name, env.KeyError, err)
			continue
		case err != nil:
			return sourceError("discover tables", err)
		case checkNamed(found, wanted) != nil:
			continue
		}
		if _, err := nextSchema(t.Current, found[0]); err != nil {
			continue
		}
		err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			now, err := txn.TableByID(t.ID)
			if err != nil || !remadeEarly(s.pipeline, now) {
				return err
			}
			if err := txn.DropCopy(t.ID); err != nil {
				return err
			}
			return beginAgain(txn, now, found[0])
		})
		if err != nil {
			return fmt.Errorf("copy table %s.%s, which was made anew: %w", t.Schema, t.Name, err)
		}
		// What the lake has is of another generation, also if this is not reached.
		if err := s.deps.Lake.DropTable(ctx, t.ID); err != nil {
			return fmt.Errorf("drop lake side of %s.%s: %w", t.Schema, t.Name, err)
		}
	}
	return nil
}

// resync begins the copies of tables that wait for one since their columns or their key were
// changed, while no stream delivers to them.
func (s *session) resync(ctx context.Context) error {
	for _, t := range s.toResync() {
		fresh, err := describeNow(ctx, s.source, s.pipeline, t, selectedAs(s.pipeline, t))
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrSourceUnavailable) && !ofTable(err), errors.Is(err, ErrLost):
			return err
		}
		early := false // nobody reads it: what the lake has is of another generation
		err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			now, ierr := txn.TableByID(t.ID)
			if ierr != nil || !now.Resync || txn.CopyFor(t.ID) != nil {
				return ierr
			}
			early = !now.Answers()
			return s.resyncOne(txn, now, fresh, err)
		})
		if err != nil {
			return fmt.Errorf("copy table %s.%s, whose columns were changed: %w", t.Schema, t.Name, err)
		}
		if early {
			if err := s.deps.Lake.DropTable(ctx, t.ID); err != nil {
				return fmt.Errorf("drop lake side of %s.%s: %w", t.Schema, t.Name, err)
			}
		}
	}
	return nil
}

// toResync are the tables that wait for a copy now.
func (s *session) toResync() (tables []*catalog.Table) {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	p, err := snap.PipelineByID(s.pipeline.ID)
	if err != nil {
		return nil // it was dropped
	}
	for _, t := range snap.Tables(p.ID) {
		if resyncs(p, t) && snap.CopyFor(t.ID) == nil && !s.deps.Clock.Now().Before(restsUntil(t, s.cfg.CopyAgain)) {
			tables = append(tables, t)
		}
	}
	return tables
}

// resyncOne begins the copy of a table as the source has it; unknown is why it does not.
func (s *session) resyncOne(txn *catalog.Txn, t *catalog.Table, fresh SourceTable, unknown error) error {
	why, err := t.Reason, unknown
	if err == nil {
		err = renamed(txn, s.pipeline.ID, t.ID, fresh)
	}
	if err == nil {
		t, err = txn.TableByID(t.ID)
	}
	switch {
	case err != nil:
	case t.Answers():
		err = beginCopy(txn, t, fresh)
	default:
		err = s.beginAgainItself(txn, t, fresh)
	}
	var problem *TableError
	switch {
	case errors.As(err, &problem):
		return noCopy(txn, s.pipeline.Name, t, problem)
	case errors.Is(err, catalog.ErrTableNotFound):
		return noCopy(txn, s.pipeline.Name, t, &TableError{Reason: err.Error()})
	case unknown != nil:
		return noCopy(txn, s.pipeline.Name, t, &TableError{Reason: reasonOf(err)})
	case err != nil:
		return err
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "info", Pipeline: s.pipeline.Name, Table: t.Schema + "." + t.Name, Kind: "table copied anew", Detail: why,
	})
}

// beginAgainItself copies a table that nobody reads anew in its own place, of its own accord. Until
// it is ready that counts as a copy given up, so that one which stops again rests.
func (s *session) beginAgainItself(txn *catalog.Txn, t *catalog.Table, fresh SourceTable) error {
	gave := catalog.GaveUp{At: txn.Now(), Times: 1}
	if t.GaveUp != nil {
		gave.Times += t.GaveUp.Times
	}
	if err := beginAgain(txn, t, fresh); err != nil {
		return err
	}
	now, err := txn.TableByID(t.ID)
	if err != nil {
		return err
	}
	now.GaveUp = &gave
	return txn.PutTable(now)
}

// remadeEarly says that the source has another table under the name of one that was never
// complete, and that it is to be copied.
func remadeEarly(p *catalog.Pipeline, t *catalog.Table) bool {
	return t.Away == watch.Replaced && !t.Answers() && p.Options["on_recreate"] != "stop"
}

// reasonRefiltered is why a table stands still that is being copied with another filter.
const reasonRefiltered = "it is copied anew with another row filter, and keeps what it has until then"

// refilter stops a table where it stands when its copy is to have another row filter. No
// session runs: what is durable is what it has.
func refilter(txn *catalog.Txn, t *catalog.Table, fresh SourceTable) error {
	if t.Filter == fresh.Filter || t.State != catalog.TableReady {
		return nil
	}
	offset, err := txn.Offset(t.Pipeline)
	if err != nil {
		return err
	}
	t.State, t.FrozenAt = catalog.TableStopped, offset.Position
	t.Reason, t.Hint = reasonRefiltered, exactHint(txn, "SYNC PIPELINE … waits for it.", t.ID)
	return nil
}

// beginAgain copies a table that nobody reads anew in its own place.
func beginAgain(txn *catalog.Txn, t *catalog.Table, fresh SourceTable) error {
	if err := txn.VoidPending(t.Pipeline); err != nil { // no session runs, and so no transaction
		return err
	}
	t, err := txn.TableByID(t.ID) // its void version may have grown
	if err != nil {
		return err
	}
	if problem := redescribe(t, fresh); problem != nil {
		return fmt.Errorf("copy table %s.%s anew: %w", t.Schema, t.Name, problem)
	}
	t.SourceOID, t.Away, t.Parts, t.PartMarks, t.PartsKnown = fresh.OID, "", fresh.Parts, fresh.PartMarks, fresh.Parts != nil
	t.GaveUp = nil
	restart(t)
	t.Backfill.RowsEstimate = fresh.EstimatedRows
	return txn.PutTable(t)
}

// beginCopy makes the table that is to take the place of t.
func beginCopy(txn *catalog.Txn, t *catalog.Table, fresh SourceTable) error {
	c := &catalog.Table{
		Pipeline: t.Pipeline, CopyOf: t.ID, SourceSchema: fresh.Schema, SourceName: fresh.Name, SourceOID: fresh.OID,
		Current: t.Current, VoidVersion: t.VoidVersion, State: catalog.TablePending, Generation: t.Generation + 1,
		Backfill: catalog.BackfillProgress{Token: t.Backfill.Token, RowsEstimate: fresh.EstimatedRows},
		Parts:    fresh.Parts, PartMarks: fresh.PartMarks, PartsKnown: fresh.Parts != nil,
	}
	if problem := redescribe(c, fresh); problem != nil {
		return fmt.Errorf("copy table %s.%s anew: %w", t.Schema, t.Name, problem)
	}
	c.Versions = []*schema.Table{c.Current}
	if c.SourceOID == t.SourceOID {
		c.Files = t.Files
	}
	if err := txn.CreateCopy(c); err != nil {
		return err
	}
	if t.StoppedAt != "" { // what it waited for comes with the copy
		t.FrozenAt, t.StoppedAt = t.StoppedAt, ""
	}
	if t.State == catalog.TableReady {
		t.Reason, t.Hint = "", ""
	}
	return txn.PutTable(t)
}

// replace gives copies that are ready their places, and up those that have stopped. placed
// says that one has its place: the session delivers to the table before in vain.
func (k *keeper) replace(ctx context.Context, tables []*catalog.Table) (placed bool, err error) {
	var due []*catalog.Table
	stopped := map[change.TableID]bool{}
	for _, c := range tables {
		stopped[c.ID] = c.State == catalog.TableStopped
		early := mutant.On(mutant.PlaceTooEarly) && c.State == catalog.TableCatchup
		if c.CopyOf != 0 && (c.State == catalog.TableReady || c.State == catalog.TableStopped || early) {
			due = append(due, c)
		}
	}
	if len(due) == 0 {
		return false, nil
	}
	s := k.session
	err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		placed = false
		for _, c := range due {
			c, err := txn.TableByID(c.ID)
			if errors.Is(err, catalog.ErrTableNotFound) {
				continue // a statement was faster
			}
			if err != nil {
				return err
			}
			if c.State == catalog.TableReady || c.State == catalog.TableCatchup {
				placed = true
				err = takePlace(txn, s.pipeline.Name, c)
			} else {
				err = giveUpCopy(txn, s.pipeline.Name, c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("replace tables by their copies: %w", err)
	}
	for _, c := range due {
		s.progress.forget(c.ID)
		if c.State == catalog.TableReady {
			s.live.succeed(c.CopyOf, c.ID, stopped[c.CopyOf])
			s.progress.forget(c.CopyOf)
		}
	}
	return placed, dropLeftLakes(ctx, s.deps)
}

func takePlace(txn *catalog.Txn, pipeline string, c *catalog.Table) error {
	if err := txn.TakePlace(c.ID); err != nil {
		return err
	}
	t, err := txn.TableByID(c.ID)
	if err != nil {
		return err
	}
	if mutant.On(mutant.PlaceTooEarly) {
		t.State = catalog.TableReady
		if err := txn.PutTable(t); err != nil {
			return err
		}
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "info", Pipeline: pipeline, Table: t.Schema + "." + t.Name,
		Kind: "table replaced by its new copy", Detail: fmt.Sprintf("%d rows were copied", t.Backfill.RowsDone),
	})
}

// giveUpCopy removes a copy that cannot go on. Its table answers as before, and says why.
func giveUpCopy(txn *catalog.Txn, pipeline string, c *catalog.Table) error {
	t, err := txn.TableByID(c.CopyOf)
	if err == nil {
		err = txn.DropCopy(t.ID)
	}
	if err != nil {
		return err
	}
	t.Resync = t.Resync || c.Resync && t.State == catalog.TableStopped
	return noCopy(txn, pipeline, t, &TableError{Reason: c.Reason, Hint: c.Hint})
}

// noCopy notes that a copy of a table could not be made. It answers as before, and says why.
func noCopy(txn *catalog.Txn, pipeline string, t *catalog.Table, why *TableError) error {
	times := 1
	if t.GaveUp != nil {
		times += t.GaveUp.Times
	}
	t.GaveUp = &catalog.GaveUp{At: txn.Now(), Times: times}
	// What mends a table that stopped has a copy begin anew: there is nothing to resume.
	hint := exactHint(txn, strings.ReplaceAll(why.Hint, "RESUME TABLE", "RESYNC TABLE"), t.ID)
	if (t.State != catalog.TableStopped || t.Resync || t.Reason == reasonRefiltered) && t.Away == "" {
		t.Reason, t.Hint = "its new copy was given up: "+why.Reason, hint
	}
	if err := txn.PutTable(t); err != nil {
		return err
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "error", Pipeline: pipeline, Table: t.Schema + "." + t.Name,
		Kind: "copy given up", Detail: why.Reason + hintAfter(hint),
	})
}

// exactHint puts names into a hint on a table; see catalog.Table.Exact.
func exactHint(txn *catalog.Txn, hint string, id change.TableID) string {
	t, err := txn.TableByID(id)
	if err == nil && t.CopyOf != 0 {
		t, err = txn.TableByID(t.CopyOf)
	}
	if err != nil {
		return hint
	}
	p, err := txn.PipelineByID(t.Pipeline)
	if err != nil {
		return hint
	}
	return t.Exact(hint, p.Name)
}

// hintAfter is a hint as the sentence after a reason.
func hintAfter(hint string) string {
	if hint == "" {
		return ""
	}
	return ". " + hint
}

// dropLeftLakes removes the lake sides that dropped tables have left; those that cannot be
// removed now are left for later.
func dropLeftLakes(ctx context.Context, deps Deps) error {
	snap := deps.Catalog.Snapshot()
	found, err := snap.Leftovers()
	snap.Close()
	if err != nil {
		return err
	}
	var gone catalog.Leftovers
	var errs []error
	for _, id := range found.Lakes {
		if err := deps.Lake.DropTable(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("drop lake side of table %d: %w", id, err))
			continue
		}
		gone.Lakes = append(gone.Lakes, id)
	}
	if len(gone.Lakes) > 0 {
		errs = append(errs, deps.Catalog.Update(ctx, func(txn *catalog.Txn) error { return txn.ForgetLeftovers(gone) }))
	}
	return errors.Join(errs...)
}

// clean removes what replaced tables have in the lake, once at a session's beginning.
func (k *keeper) clean(ctx context.Context) {
	if k.cleaned {
		return
	}
	k.cleaned = true
	if err := dropLeftLakes(ctx, k.session.deps); err != nil && context.Cause(ctx) == nil {
		k.session.out.Warn("lake side of a replaced table stays for now", env.KeyError, err)
	}
}

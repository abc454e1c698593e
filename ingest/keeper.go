package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

const (
	// keepInterval is how often rates are sampled at least.
	keepInterval = time.Second
	// statusEvery is how often the source is asked how it is: a query there.
	statusEvery   = 5 * time.Second
	statusTimeout = 10 * time.Second
)

// keeper looks after a running session. Owned by its goroutine.
type keeper struct {
	session *session
	version uint64 // of the catalog when tables were looked at last
	waiting bool   // a table waits for the stream to pass its horizon
	sampled time.Time
	asked   time.Time
	looked  time.Time
	cleaned bool
	// placed says that a copy has taken a table's place, so that the session is to begin
	// anew, when nothing is being copied, with end.
	placed bool
	end    context.CancelCauseFunc
	// mark is that of the last look at the source's tables, "" to look whatever it is;
	// deferred says that a table could not be dealt with while it was being copied.
	mark     string
	deferred bool
	notes    map[change.TableID]TableNote // of the last look that was not the one before again
	// again is when to look whatever the mark is, zero: never; see rests.
	again time.Time
	// renewed says that tables were added, have stopped or are to be copied anew, or that the
	// source asks for it: the session is to begin anew.
	renewed bool
}

func (k *keeper) step(ctx context.Context) (more bool, err error) {
	s := k.session
	now := s.deps.Clock.Now()
	if now.Sub(k.sampled) >= keepInterval {
		k.sampled = now
		s.live.sample()
	}
	if now.Sub(k.asked) >= statusEvery {
		k.asked = now
		k.askSource(ctx)
	}
	if now.Sub(k.looked) >= s.cfg.LookInterval {
		k.looked = now
		if err := k.look(ctx); err != nil {
			return false, err
		}
		k.renewed = k.renewed || len(s.toResync()) > 0
	}
	k.clean(ctx)
	if err := k.promote(ctx); err != nil {
		return false, err
	}
	if (k.placed || k.renewed) && k.mayEnd() {
		k.end(errRestart)
	}
	return false, nil
}

// mayEnd says whether the end of the session loses little of the copies under way: of a
// table without a key it would lose all, of another one only the chunks being read. The end
// for a copy in its place is in no hurry.
func (k *keeper) mayEnd() bool {
	if !k.session.copying.Load() {
		return true
	}
	return k.renewed && !slices.ContainsFunc(k.session.uncopied(), loses)
}

// askSource keeps the last answer when there is none now: the stream tells of a lost
// source.
func (k *keeper) askSource(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if status, err := k.session.source.Status(ctx); err == nil {
		k.session.live.source(status)
		k.renewed = k.renewed || status.Renew
	}
}

// promote makes tables ready whose copy the stream has passed, and the pipeline
// running when nothing is left to copy.
func (k *keeper) promote(ctx context.Context) error {
	s := k.session
	snap := s.deps.Catalog.Snapshot()
	version := snap.Version()
	if version == k.version && !k.waiting {
		snap.Close()
		return nil
	}
	tables := snap.EveryTableOf(s.pipeline.ID)
	p, err := snap.PipelineByID(s.pipeline.ID)
	snap.Close()
	if err != nil {
		return err
	}
	state, due, lost := catalog.PipelineRunning, false, false
	k.waiting = false
	for _, t := range tables {
		switch t.State {
		case catalog.TablePending, catalog.TableBackfill:
			state = catalog.PipelineBackfill
		case catalog.TableCatchup:
			due = due || s.caughtUp(t)
			k.waiting = true
			lost = lost || s.lostLetters(t) > 0
		case catalog.TableReady:
			lost = lost || s.lostLetters(t) > 0
		case catalog.TableStopped:
			// Not by the stream, which would go on for it in vain, and fill the log with what
			// never goes into the lake.
			k.renewed = k.renewed || t.StoppedAt == "" && t.FrozenAt == "" && t.CopyOf == 0 && s.streamed[t.ID]
		}
	}
	if due || lost || p.State != state || p.Reason != "" {
		if err := s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
			return s.recordStates(txn, state)
		}); err != nil {
			return err
		}
	}
	placed, err := k.replace(ctx, tables)
	k.placed = k.placed || placed
	if err != nil {
		return err
	}
	k.version = version
	return nil
}

// caughtUp says whether a copied table is consistent now.
func (s *session) caughtUp(t *catalog.Table) bool {
	return t.State == catalog.TableCatchup && t.StoppedAt == "" &&
		s.progress.compare(s.progress.passed(), t.Backfill.Horizon) >= 0
}

// lostLetters counts rows of a copied table that the stream has deleted, and that neither
// its copy nor its dead letters had.
func (s *session) lostLetters(t *catalog.Table) int {
	if t.State != catalog.TableCatchup && t.State != catalog.TableReady {
		return 0
	}
	return s.refusals.owed(t.ID)
}

func (s *session) recordStates(txn *catalog.Txn, state catalog.PipelineState) error {
	for _, t := range txn.EveryTableOf(s.pipeline.ID) {
		if n := s.lostLetters(t); n > 0 {
			why := &TableError{
				Reason: fmt.Sprintf("%d rows were deleted that cannot be found, since they cannot be taken in", n), Hint: hintResync,
			}
			if err := stopCopy(txn, s.pipeline.Name, t.ID, why); err != nil {
				return err
			}
			continue
		}
		if !s.caughtUp(t) {
			continue
		}
		t.State, t.Reason, t.Hint, t.GaveUp = catalog.TableReady, "", "", nil
		if err := txn.PutTable(t); err != nil {
			return err
		}
	}
	return putState(txn, s.pipeline.ID, state, "")
}

// look acts on what has become of the source's tables beside the stream. What the source
// does not answer is asked again.
func (k *keeper) look(ctx context.Context) error {
	s := k.session
	w, ok := s.source.(TableWatcher)
	if !ok {
		return nil
	}
	if k.deferred && !s.copying.Load() {
		k.mark, k.deferred = "", false
	}
	if !k.again.IsZero() && !s.deps.Clock.Now().Before(k.again) {
		k.mark, k.again = "", time.Time{}
	}
	snap := s.deps.Catalog.Snapshot()
	p, err := snap.PipelineByID(s.pipeline.ID)
	tables := snap.Tables(s.pipeline.ID)
	here := make([]watch.Here, len(tables))
	for i, t := range tables {
		here[i] = hereOf(t, snap.CopyFor(t.ID))
	}
	snap.Close()
	if err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	seen, err := w.Look(asked, p.Selection, here, k.mark)
	if err != nil {
		s.out.Warn("tables of the source not looked at", env.KeyError, err)
		return nil // asked again soon; the stream tells of a lost source
	}
	if err := k.noteSeen(ctx, tables, seen); err != nil || seen.Mark == k.mark {
		return err
	}
	k.notes = map[change.TableID]TableNote{}
	found := make([]watch.There, len(seen.Found))
	for i, f := range seen.Found {
		found[i] = watch.There{
			OID: f.OID, Schema: f.Schema, Name: f.Name, Barred: seen.Barred[f.OID],
			Identified: f.OID != 0 && f.Unsupported == "" && (len(f.Key) > 0 || f.WholeRow),
		}
	}
	for _, a := range watch.Decide(here, found, seen.Known) {
		if err := k.act(ctx, p, a, seen.Found); err != nil {
			return fmt.Errorf("act on a table that has changed: %w", err)
		}
	}
	err = k.session.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		p, err := txn.PipelineByID(p.ID)
		if err != nil {
			return err
		}
		return followTypes(txn, p, seen.Types, true)
	})
	if err != nil {
		return fmt.Errorf("keep types of the source: %w", err)
	}
	for _, h := range here {
		k.deferred = k.deferred || h.Copy != 0
	}
	s.live.noted(k.notes)
	k.mark = seen.Mark
	return nil
}

// noteSeen keeps what is known of tables' files, and of their changes that do not come, for the
// sessions to come.
func (k *keeper) noteSeen(ctx context.Context, tables []*catalog.Table, seen Look) error {
	totals := map[change.TableID]int64{}
	note := func(t *catalog.Table) (other bool) {
		if f, ok := seen.Files[t.SourceOID]; ok && !sameFiles(t.Files, f) {
			t.Files, other = (*catalog.SourceFiles)(&f), true
		}
		if p, ok := seen.Published[t.SourceOID]; ok && p != t.Published {
			t.Published, other = p, true
		}
		now, ok := seen.Counters[t.SourceOID]
		if !ok || !keyless(t) {
			return other
		}
		if t.Missed == nil {
			first := watch.MissedSince(now)
			t.Missed, other = (*catalog.MissedChanges)(&first), true
		}
		next, total := watch.Missed(*t.Missed).Look(now)
		totals[t.ID] = total
		if next.Epoch != t.Missed.Epoch || next.Count != t.Missed.Count || next.Doubts != t.Missed.Doubts || !maps.Equal(next.Base, t.Missed.Base) {
			t.Missed, other = (*catalog.MissedChanges)(&next), true
		}
		return other
	}
	if !slices.ContainsFunc(tables, func(t *catalog.Table) bool { c := *t; return note(&c) }) {
		k.session.live.missed(totals)
		return nil
	}
	err := k.session.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		for _, t := range txn.Tables(k.session.pipeline.ID) {
			if !note(t) {
				continue
			}
			if err := txn.PutTable(t); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		k.session.live.missed(totals)
	}
	return err
}

func sameFiles(was *catalog.SourceFiles, now watch.Files) bool {
	return was != nil && was.Newest == now.Newest && slices.Equal(was.Files, now.Files) && slices.Equal(was.Plain, now.Plain) &&
		was.Reworked == now.Reworked
}

// keyless says that updates and deletes of a table do not come: its rows cannot be told apart.
func keyless(t *catalog.Table) bool { return !t.Current.HasKey() && !t.Current.WholeRow }

func hereOf(t, anew *catalog.Table) watch.Here {
	h := watch.Here{
		ID: t.ID, OID: t.SourceOID, Schema: t.SourceSchema, Name: t.SourceName, Away: t.Away, Files: (*watch.Files)(t.Files), Keyless: keyless(t),
		Published: t.Published, Unpublished: t.Unpublished && t.State == catalog.TableStopped,
	}
	if t.PartsKnown {
		h.Parts, h.Marks = append([]uint32{}, t.Parts...), t.PartMarks
	}
	if t.FormsKnown {
		h.Forms = watch.Forms{}
		maps.Copy(h.Forms, t.Forms)
	}
	for _, f := range t.Current.Fields {
		h.Columns = append(h.Columns, f.AttNum)
	}
	if anew != nil {
		h.Copy = anew.SourceOID
	}
	return h
}

// act does what is to be done about a table.
func (k *keeper) act(ctx context.Context, p *catalog.Pipeline, a watch.Action, found []SourceTable) error {
	return k.session.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		p, err := txn.PipelineByID(p.ID) // its options may have changed since the source was asked
		if err != nil {
			return err
		}
		if a.Kind == watch.Made {
			return k.take(txn, p, found[a.Found])
		}
		t, err := txn.TableByID(a.Table)
		if err != nil {
			return err
		}
		switch a.Kind {
		case watch.Noted:
			t.Parts, t.PartMarks, t.PartsKnown = a.Parts, a.Marks, true
			return txn.PutTable(t)
		case watch.Left:
			return leave(txn, p, t, a.Reason)
		case watch.Remade:
			return k.remade(txn, p, t, found[a.Found])
		case watch.Worded:
			t.Forms, t.FormsKnown = a.Forms, true
			return txn.PutTable(t)
		case watch.Reworded:
			return k.reworded(txn, p, t, a)
		case watch.Renamed:
			return k.renamed(txn, p, t, a)
		case watch.Identified:
			return k.identified(txn, p, t, found[a.Found], a.Barred)
		case watch.Unpublished:
			fresh := sourceTable(t)
			if a.Found >= 0 && found[a.Found].Unsupported == "" {
				fresh = found[a.Found]
			}
			return k.unpublished(txn, p, t, fresh, a.Gap)
		}
		return k.repartitioned(txn, p, t, a)
	})
}

// copyAgainTwice is how often the rest of Config.CopyAgain is doubled.
const copyAgainTwice = 5

// rests says that a table is not to be copied yet, since its last copy was given up. Each
// begins the session anew, and with it the others.
func (k *keeper) rests(txn *catalog.Txn, t *catalog.Table) bool {
	until := restsUntil(t, k.session.cfg.CopyAgain)
	if now := txn.Now(); !now.Before(until) || now.Before(t.GaveUp.At) {
		return false
	}
	if k.again.IsZero() || until.Before(k.again) {
		k.again = until
	}
	return true
}

// restsUntil is when a table may be copied again, long ago when its last copy was not given up.
func restsUntil(t *catalog.Table, again time.Duration) time.Time {
	if t.GaveUp == nil {
		return time.Time{}
	}
	return t.GaveUp.At.Add(again << min(t.GaveUp.Times-1, copyAgainTwice))
}

// take takes a new table of the selection in.
func (k *keeper) take(txn *catalog.Txn, p *catalog.Pipeline, f SourceTable) error {
	if f.OID == 0 || !enabled(p, "auto_refresh") {
		return nil
	}
	created, err := createTables(txn, p, []SourceTable{f}, lowestToken(txn.Tables(p.ID)))
	if err != nil || len(created) == 0 {
		return err
	}
	k.renewed = true
	return k.tell(txn, p, created[0], "table taken in", "it is new at the source")
}

// leave notes that the source does not have a table any more.
func leave(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, reason string) error {
	t.Away = reason
	if t.State == catalog.TableReady { // what else is to know of it helps nobody now
		t.Reason, t.Hint = "", ""
	}
	if err := txn.PutTable(t); err != nil {
		return err
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "warning", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: "table gone at the source",
		Detail: reason + ". " + t.Exact(hintGone, p.Name),
	})
}

const hintGone = "It keeps what it has. Take it out, with what it has: ALTER PIPELINE … DROP TABLE …;"

// remade copies a table anew from the one that has its name now, or from itself when it was a
// partition meanwhile, and its changes came with another table.
func (k *keeper) remade(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, f SourceTable) error {
	detail, returned := "it was dropped and made anew at the source", f.OID == t.SourceOID
	if returned {
		detail = "it is no partition any more at the source"
	}
	if _, err := nextSchema(t.Current, f); err != nil && f.Unsupported == "" {
		f.Unsupported = err.Error()
	}
	switch {
	case returned && (f.Unsupported != "" || !t.Answers()):
		k.deferred = true
		return nil
	case returned:
	case f.Unsupported != "":
		return leave(txn, p, t, watch.Replaced+", which cannot be taken in: "+f.Unsupported)
	case t.Away == watch.Replaced && p.Options["on_recreate"] == "stop":
		return nil
	case p.Options["on_recreate"] == "stop":
		return leave(txn, p, t, watch.Replaced)
	case !t.Answers():
		k.renewed = true // whose beginning copies it: see remake
		t.Away = watch.Replaced
		if err := txn.PutTable(t); err != nil {
			return err
		}
		return k.tell(txn, p, t, "table copied anew", detail)
	case k.rests(txn, t):
		return nil
	}
	return k.copyAnew(txn, p, t, f, detail)
}

// copyAnew begins a table's copy, from the beginning of the next session on. One that cannot
// be made is given up, and stops no other.
func (k *keeper) copyAnew(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, fresh SourceTable, why string) error {
	err := beginCopy(txn, t, fresh)
	var problem *TableError
	if errors.As(err, &problem) {
		return noCopy(txn, p.Name, t, problem)
	}
	if err != nil {
		return err
	}
	k.renewed = true
	return k.tell(txn, p, t, "table copied anew", why)
}

// repartitioned copies a table anew whose partitions came with rows, or left with rows.
func (k *keeper) repartitioned(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, a watch.Action) error {
	detail := fmt.Sprintf("%d partitions were attached at the source, %d detached or dropped", a.Attached, a.Detached)
	if a.Refilled > 0 {
		detail += fmt.Sprintf(", %d truncated, or detached and attached again", a.Refilled)
	}
	if p.Options["on_partition"] == "keep" {
		t.Parts, t.PartMarks, t.PartsKnown = a.Parts, a.Marks, true
		detail += "; rows stay as they are: on_partition = keep"
		if a.Overlooked != "" {
			detail += "; " + a.Overlooked
			t.Reason, t.Hint = a.Overlooked, t.Exact(hintResync, p.Name)
		}
		if err := txn.PutTable(t); err != nil {
			return err
		}
		return k.tell(txn, p, t, "partitions changed", detail)
	}
	if !t.Answers() {
		k.deferred = true
		return nil
	}
	if k.rests(txn, t) {
		return nil
	}
	fresh := sourceTable(t)
	fresh.Parts, fresh.PartMarks = append([]uint32{}, a.Parts...), a.Marks // not nil, which is not known
	fresh.EstimatedRows = t.Backfill.RowsEstimate
	return k.copyAnew(txn, p, t, fresh, detail)
}

// reworded copies a table anew, or stops it, whose values the source writes in another way
// than when the rows that are here were sent.
func (k *keeper) reworded(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, a watch.Action) error {
	var names []string
	for _, f := range t.Current.Fields {
		if slices.Contains(a.Columns, f.AttNum) {
			names = append(names, fmt.Sprintf("%q", f.Name))
		}
	}
	why := "the source writes values of column " + strings.Join(names, ", ") +
		" in another way now: a label or an attribute of its type, or the type, was changed"
	switch {
	case !t.Answers(), txn.CopyFor(t.ID) != nil:
		k.deferred = true
		return nil
	case p.Options["on_type_change"] != "stop" && k.rests(txn, t):
		return nil
	case p.Options["on_type_change"] != "stop":
		return k.copyAnew(txn, p, t, sourceTable(t), why)
	case t.State == catalog.TableStopped:
		return nil
	}
	return stopCopy(txn, p.Name, t.ID, &TableError{Reason: why, Hint: hintResync})
}

// identified copies a table anew that was taken in without a key, since its updates and deletes
// can be followed now: nobody knows how many there were before.
func (k *keeper) identified(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, f SourceTable, barred *watch.Barred) error {
	why := "updates and deletes of its rows can be followed now: it has a key, or REPLICA IDENTITY FULL, at the source"
	switch {
	case barred != nil:
		k.notes[t.ID] = TableNote{Reason: barred.Reason, Hint: barred.Hint}
		return nil
	case !copies(p), p.Options["on_schema_change"] == "stop":
		k.notes[t.ID] = TableNote{Reason: "updates and deletes of its rows can be followed once it is copied anew: it has a key, or REPLICA IDENTITY FULL, at the source now", Hint: hintResync}
		return nil
	case !t.Answers():
		k.deferred = true
		return nil
	case t.State == catalog.TableStopped, t.Away != "", k.rests(txn, t):
		return nil
	}
	return k.copyAnew(txn, p, t, f, why)
}

// unpublished copies a table anew of which the source may have left changes out. Before it can be,
// and where nothing is to be copied, it stops.
func (k *keeper) unpublished(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, f SourceTable, gap *watch.Gap) error {
	switch {
	case t.State == catalog.TableStopped && !t.Unpublished, t.State == catalog.TableStopped && gap.Hint != "":
		return nil
	case !t.Answers(), txn.CopyFor(t.ID) != nil:
		k.deferred = true
		return nil
	case gap.Hint != "":
		t.Unpublished = true
		if err := txn.PutTable(t); err != nil {
			return err
		}
		return stopCopy(txn, p.Name, t.ID, &TableError{Reason: gap.Reason, Hint: gap.Hint})
	case !copies(p):
		t.Published, t.Unpublished = "", false // what the next session finds counts
		if err := txn.PutTable(t); err != nil {
			return err
		}
		return stopCopy(txn, p.Name, t.ID, &TableError{Reason: gap.Reason, Hint: hintResync})
	case k.rests(txn, t):
		return nil
	}
	return k.copyAnew(txn, p, t, f, gap.Reason)
}

// renamed takes a table's name at the source over. The stream tells of a new one with the
// next change of a row, and of a schema's not at all.
func (k *keeper) renamed(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, a watch.Action) error {
	before := t.SourceSchema + "." + t.SourceName
	if err := renamed(txn, p.ID, t.ID, SourceTable{Schema: a.Schema, Name: a.Name}); err != nil {
		return err
	}
	return k.tell(txn, p, t, "table renamed", fmt.Sprintf("%s is now called %s.%s at the source", before, a.Schema, a.Name))
}

func (k *keeper) tell(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table, kind, detail string) error {
	k.session.out.Info(kind, env.KeyTable, t.Schema+"."+t.Name, env.KeyReason, detail)
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "info", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: kind, Detail: detail,
	})
}

// enabled is an option that is on unless it is turned off.
func enabled(p *catalog.Pipeline, option string) bool { return !isOff(p.Options[option]) }

package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/catalog/usertype"
	"github.com/skipprd/skipprd/ingest/sourcetype"
	"github.com/skipprd/skipprd/ingest/watch"
)

// firstUserOID is the first OID of types that are a database's own.
const firstUserOID = 16384

// newSchema makes the schema of a source table.
func newSchema(t SourceTable) (*schema.Table, error) {
	s, err := schema.New(newFields(t), t.Key)
	if err != nil {
		return nil, fmt.Errorf("schema of %s.%s: %w", t.Schema, t.Name, err)
	}
	s.WholeRow = t.WholeRow
	return s, nil
}

// nextSchema is the version that follows old for a source table as it is now, when no
// old rows stay: columns that cannot be widened get new fields.
func nextSchema(old *schema.Table, t SourceTable) (*schema.Table, error) {
	next, err := schema.Evolve(old, newFields(t), t.Key)
	if err == nil && next.WholeRow != t.WholeRow {
		other := *next
		other.Version, other.WholeRow = old.Version+1, t.WholeRow
		return &other, nil
	}
	if !errors.Is(err, schema.ErrIncompatible) {
		return next, err
	}
	next, err = newSchema(t)
	if err != nil {
		return nil, err
	}
	next.Version = old.Version + 1
	for i := range next.Fields {
		next.Fields[i].ID += old.LastFieldID
	}
	for i := range next.Key {
		next.Key[i] += old.LastFieldID
	}
	next.LastFieldID += old.LastFieldID
	return next, nil
}

func newFields(t SourceTable) []schema.NewField {
	cols := make([]schema.NewField, len(t.Columns))
	for i, c := range t.Columns {
		cols[i] = schema.NewField{
			Name: c.Name, Type: c.Type, OID: c.OID, TypMod: c.TypMod,
			NotNull: c.NotNull, AttNum: c.AttNum, Initial: c.Initial, Computed: c.Computed,
		}
		if c.OID >= firstUserOID {
			cols[i].TypeName = c.TypeName
		}
	}
	return cols
}

// sourceTable is a known table as its source described it: what a source needs to
// stream and to copy it. Its replica identity is not kept.
func sourceTable(t *catalog.Table) SourceTable {
	s := SourceTable{
		Schema: t.SourceSchema, Name: t.SourceName, OID: t.SourceOID,
		EstimatedRows: t.Backfill.RowsEstimate, EstimatedBytes: -1, WholeRow: t.Current.WholeRow,
		Filter: t.Filter, Numbers: t.Named, Files: (*watch.Files)(t.Files),
	}
	if t.FormsKnown {
		s.Forms = watch.Forms(t.Forms)
	}
	if t.PartsKnown {
		s.Parts, s.PartMarks = append([]uint32{}, t.Parts...), t.PartMarks
	}
	for _, f := range t.Current.Fields {
		s.Columns = append(s.Columns, SourceColumn{
			Name: f.Name, OID: f.OID, TypMod: f.TypMod, TypeName: f.SQLType(),
			NotNull: f.NotNull, AttNum: f.AttNum, Type: f.Type, Initial: f.Initial, Computed: f.Computed,
		})
	}
	for _, f := range t.Current.KeyFields() {
		s.Key = append(s.Key, f.Name)
	}
	return s
}

// targetName is where a source table lands.
func targetName(p *catalog.Pipeline, t SourceTable) (schemaName, name string) {
	schemaName = p.TargetSchema
	if schemaName == "" {
		schemaName = p.Name
	}
	return strings.ReplaceAll(schemaName, "%s", t.Schema), t.Name
}

// createTables adds the tables that the pipeline does not have yet, pending, and says
// what became of the others: those that cannot be taken in get an event.
func createTables(txn *catalog.Txn, p *catalog.Pipeline, found []SourceTable, token int64,
) (created []*catalog.Table, err error) {
	known := map[uint32]bool{}
	for _, t := range txn.EveryTableOf(p.ID) {
		known[t.SourceOID] = true
	}
	for _, st := range found {
		if known[st.OID] || st.Unsupported != "" {
			continue
		}
		if err := followTypes(txn, p, st.Types, false); err != nil {
			return nil, err
		}
	}
	for _, st := range found {
		if known[st.OID] {
			continue
		}
		t, problem, err := createTable(txn, p, st, token)
		if err != nil {
			return nil, err
		}
		if problem == nil {
			created = append(created, t)
			continue
		}
		event := catalog.Event{
			Level: "warning", Pipeline: p.Name, Table: st.Schema + "." + st.Name,
			Kind: "table not taken in", Detail: problem.Reason,
		}
		if problem.Hint != "" {
			event.Detail += ". " + problem.Hint
		}
		if told, err := isTold(txn, event); err != nil || told {
			if err != nil {
				return nil, err
			}
			continue
		}
		if err := txn.AddEvent(event); err != nil {
			return nil, err
		}
	}
	return created, nil
}

// followTypes has the catalog know types of the source as they are now; see sourcetype.Follow.
func followTypes(txn *catalog.Txn, p *catalog.Pipeline, found []usertype.Found, all bool) error {
	return sourcetype.Follow(txn, p, found, func(source string) string {
		name, _ := targetName(p, SourceTable{Schema: source})
		return name
	}, all)
}

// toldAmong is among how many events one is looked for that need not be told twice.
const toldAmong = 200

// isTold says whether an event is among the latest.
func isTold(txn *catalog.Txn, event catalog.Event) (bool, error) {
	latest, err := txn.Events(toldAmong)
	return slices.ContainsFunc(latest, func(e catalog.Event) bool {
		return e.Kind == event.Kind && e.Pipeline == event.Pipeline && e.Table == event.Table && e.Detail == event.Detail
	}), err
}

func createTable(txn *catalog.Txn, p *catalog.Pipeline, st SourceTable, token int64,
) (*catalog.Table, *TableError, error) {
	if st.Unsupported != "" {
		return nil, &TableError{Reason: st.Unsupported, Hint: st.Hint}, nil
	}
	s, err := newSchema(st)
	if err != nil {
		return nil, &TableError{Reason: err.Error()}, nil
	}
	schemaName, name := targetName(p, st)
	t := &catalog.Table{
		Pipeline: p.ID, Schema: schemaName, Name: name, Filter: st.Filter,
		SourceSchema: st.Schema, SourceName: st.Name, SourceOID: st.OID,
		Current: s, Versions: []*schema.Table{s}, State: catalog.TablePending,
		Backfill: catalog.BackfillProgress{Token: token, RowsEstimate: st.EstimatedRows},
		Parts:    st.Parts, PartMarks: st.PartMarks, PartsKnown: st.Parts != nil,
		Forms: st.Forms, FormsKnown: st.Forms != nil, Named: st.Numbers,
	}
	if !copies(p) {
		t.State = catalog.TableReady
	}
	err = txn.CreateTable(t)
	if errors.Is(err, catalog.ErrExists) {
		return nil, taken(txn, p, t), nil
	}
	return t, nil, err
}

// taken explains that another table has a table's name here.
func taken(txn *catalog.Txn, p *catalog.Pipeline, t *catalog.Table) *TableError {
	e := &TableError{
		Reason: fmt.Sprintf("table %s.%s exists already", t.Schema, t.Name),
		Hint:   "Name another schema with SCHEMA '…_%s', which makes one for each schema of the source.",
	}
	other, err := txn.TableByName(t.Schema, t.Name)
	if err != nil || other.Pipeline != p.ID || other.SourceSchema == t.SourceSchema && other.SourceName == t.SourceName {
		return e
	}
	e.Reason += fmt.Sprintf(", of %s.%s at the source", other.SourceSchema, other.SourceName)
	e.Hint = other.Exact("Take that one out, with what it has: ALTER PIPELINE … DROP TABLE …;", p.Name)
	return e
}

// copies says whether the pipeline makes initial copies.
func copies(p *catalog.Pipeline) bool {
	return !isOff(p.Options["copy_data"])
}

// isOff says whether an option's value turns it off.
func isOff(value string) bool {
	switch strings.ToLower(value) {
	case "false", "off", "no", "0":
		return true
	}
	return false
}

// restart begins a table anew: what it has vanishes from queries with its generation.
func restart(t *catalog.Table) {
	t.Generation++
	t.State, t.Reason, t.Hint, t.StoppedAt, t.FrozenAt, t.Resync = catalog.TablePending, "", "", "", "", false
	t.Unpublished = false
	t.Backfill = catalog.BackfillProgress{
		Token: t.Backfill.Token, RowsEstimate: t.Backfill.RowsEstimate, Skip: t.Backfill.Skip,
	}
}

// sourceNames are names of tables at the source, by their numbers there.
type sourceNames map[uint32]watch.There

// namesNow are the names that tables have at the source now, which may not have told of it
// yet; none when it cannot say.
func namesNow(ctx context.Context, source Source, tables []*catalog.Table) (sourceNames, error) {
	w, ok := source.(TableWatcher)
	if !ok {
		return nil, nil
	}
	here := make([]watch.Here, len(tables))
	for i, t := range tables {
		here[i] = hereOf(t, nil)
	}
	seen, err := w.Look(ctx, catalog.TableSelection{}, here, "")
	if err != nil {
		return nil, sourceError("look for tables", err)
	}
	return seen.Known, nil
}

// of is what is selected of a table, under the name that it has. Of another table that has
// its name, columns are meant by their names, not by the numbers that they had.
func (n sourceNames) of(t *catalog.Table, selected catalog.SelectedTable) catalog.SelectedTable {
	now, ok := n[t.SourceOID]
	switch {
	case ok:
		selected.Schema, selected.Name = now.Schema, now.Name
	case n != nil:
		selected.Numbers = nil
	}
	return selected
}

// selectedAs is a table as the selection of its pipeline names it, by its name at the source.
func selectedAs(p *catalog.Pipeline, t *catalog.Table) catalog.SelectedTable {
	for _, w := range p.Selection.Tables {
		if w.Name == t.SourceName && (w.Schema == "" || w.Schema == t.SourceSchema) {
			w.Schema, w.Numbers = t.SourceSchema, t.Named
			return w
		}
	}
	return catalog.SelectedTable{Schema: t.SourceSchema, Name: t.SourceName, Where: t.Filter}
}

// redescribe gives a table whose copy begins from its start the columns that it has at the
// source, at the copy's moment or before it. What was assigned to a column before the copy's moment, or before the stream's
// start, comes with the copy or not at all.
func redescribe(t *catalog.Table, fresh SourceTable) *TableError {
	current := t.Current
	next, err := nextSchema(current, fresh)
	if err != nil {
		return &TableError{Reason: "it cannot be taken in as it is at the source now: " + err.Error(), Hint: hintResync}
	}
	if next != current {
		next.Version = max(next.Version, t.VoidVersion+1)
	}
	t.Current, t.Filter, t.Named = next, fresh.Filter, fresh.Numbers
	t.Forms, t.FormsKnown = fresh.Forms, fresh.Forms != nil
	return nil
}

// beginsAnew says whether the copy of a table that is to be copied begins again from its
// start: the source made it void, or rows that it has could not be told from those that
// the stream has brought since.
func beginsAnew(t *catalog.Table) bool {
	return t.Backfill.Anew || !t.Current.HasKey() && !t.Backfill.StartedAt.IsZero()
}

// loses says that what a copy under way has is lost when its session ends: without a key,
// or because values that the stream left out must be of the copy's own moment.
func loses(t *catalog.Table) bool {
	return (!t.Current.HasKey() || t.Backfill.Skip) && !t.Backfill.StartedAt.IsZero()
}

// redescribed are the tables whose copy begins from its start as the source has them at the
// moment of the copy: such a copy is not given changes from before. The source may not
// have sent them: it sends those of a table from when it was told to. And what commits
// after that moment comes with the stream, a change of columns too.
func (s *session) redescribed(ctx context.Context) (map[uint32]SourceTable, error) {
	wanted := map[uint32]catalog.SelectedTable{}
	for _, t := range s.uncopied() {
		if t.Backfill.StartedAt.IsZero() || beginsAnew(t) {
			wanted[t.SourceOID] = selectedAs(s.pipeline, t)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	found, err := s.backfill.Describe(ctx, wanted, s.pipeline.Selection.OutOfRangeText)
	if err != nil {
		return nil, sourceError("describe tables", err)
	}
	return found, nil
}

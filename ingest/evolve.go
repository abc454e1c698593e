package ingest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// hintResync helps when old rows cannot be read under the new schema.
const hintResync = "Copy it anew: ALTER PIPELINE … RESYNC TABLE …;"

// errNotOpen means that a source changed a table outside a transaction.
var errNotOpen = errors.New("no transaction is open")

// tableSchema is a schema version that begins in a group. Its encoding is durable.
type tableSchema struct {
	Table  change.TableID `json:"table"`
	Schema *schema.Table  `json:"schema"`
	// SourceSchema and SourceName are the table's new name at the source, if it has one.
	SourceSchema string `json:"source_schema,omitempty"`
	SourceName   string `json:"source_name,omitempty"`
	// Changes says in words what is new.
	Changes string `json:"changes"`

	txn uint64 // of the batcher, that brought it
}

// Evolve implements Sink.
func (b *batcher) Evolve(id change.TableID, c SchemaChange) (*schema.Table, error) {
	if !b.mu.open { // written by our goroutine only
		return nil, errTable(errNotOpen, id)
	}
	t, err := b.enter(id)
	if err != nil {
		return nil, err
	}
	next, changes, err := c.next(t.schema)
	var problem *TableError
	if errors.As(err, &problem) {
		if err := b.StopTable(id, problem); err != nil {
			return nil, err
		}
		return nil, errTable(ErrTableStopped, id)
	}
	if err != nil {
		return nil, errTable(err, id)
	}
	renamed := c.Name != "" && (c.Schema != t.source[0] || c.Name != t.source[1])
	if next == t.schema && !renamed {
		return next, nil
	}
	s := tableSchema{Table: id, Schema: next, Changes: changes, txn: b.txn}
	if renamed {
		s.SourceSchema, s.SourceName = c.Schema, c.Name
		s.Changes = strings.TrimPrefix(changes+fmt.Sprintf(", now called %s.%s at the source", c.Schema, c.Name), ", ")
		t.source = [2]string{c.Schema, c.Name}
	}
	if next != t.schema {
		next.Version = max(next.Version, t.void+1)
		t.evolve(next)
		b.letters.Table(id).Know(next)
	}
	b.mu.filling.schemas = append(b.mu.filling.schemas, s) // open: ours
	return next, nil
}

// Next is the version that follows old, old itself when nothing changed. It wraps a
// *TableError when old rows cannot be read, or found by their key, under the new one,
// else schema.ErrInvalid.
func (c SchemaChange) Next(old *schema.Table) (*schema.Table, error) {
	next, _, err := c.next(old)
	return next, err
}

// next says in words, too, what is new.
func (c SchemaChange) next(old *schema.Table) (next *schema.Table, changes string, err error) {
	cols := newFields(SourceTable{Columns: c.Columns})
	d, err := schema.Compare(old, cols, c.Key)
	if err != nil {
		return nil, "", err
	}
	if d.KeyChanged {
		return nil, "", &TableError{
			Reason: "the table's key was changed at the source, and old rows are found by the old one", Hint: hintResync, Resync: true,
		}
	}
	next, err = schema.Evolve(old, cols, c.Key)
	var incompatible *schema.IncompatibleError
	if errors.As(err, &incompatible) {
		return nil, "", &TableError{
			Reason: fmt.Sprintf("the type of column %s was changed from %s to %s at the source, which old values cannot follow",
				quote.Name(incompatible.Column), incompatible.From, incompatible.To),
			Hint: hintResync,
		}
	}
	return next, describeDiff(d), err
}

// resyncs says that a table which has stopped at a change of its columns or key goes on by a
// new copy, which nobody has to ask for.
func resyncs(p *catalog.Pipeline, t *catalog.Table) bool {
	return t.Resync && t.State == catalog.TableStopped && t.CopyOf == 0 && t.Away == "" &&
		copies(p) && p.Options["on_schema_change"] != "stop"
}

// hintResyncs is of such a table.
const hintResyncs = "It is copied anew by itself, and keeps what it has until then."

// describeDiff says in words what a schema change does.
func describeDiff(d *schema.Diff) string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	for _, c := range d.Added {
		if c.Initial != nil {
			say("column %s added, with a default that older rows have too", quote.Name(c.Name))
			continue
		}
		say("column %s added", quote.Name(c.Name))
	}
	for _, f := range d.Dropped {
		say("column %s dropped", quote.Name(f.Name))
	}
	for _, r := range d.Renamed {
		say("column %s renamed to %s", quote.Name(r.Field.Name), quote.Name(r.To))
	}
	for _, r := range d.Retyped {
		say("column %s is of another type", quote.Name(r.To.Name))
	}
	for _, f := range d.Nullable {
		if f.NotNull {
			say("column %s may be null", quote.Name(f.Name))
			continue
		}
		say("column %s is never null", quote.Name(f.Name))
	}
	for _, f := range d.Recomputed {
		say("column %s is computed, or sent, in another way", quote.Name(f.Name))
	}
	if d.Reordered {
		say("columns in another order")
	}
	return strings.Join(words, ", ")
}

// evolve closes the batch being built and begins one of the next version.
func (t *sinkTable) evolve(next *schema.Table) {
	t.close()
	if n := len(t.done); n > 0 && mutant.On(mutant.SchemaAtOnce) {
		t.done[n-1].SchemaVersion = next.Version
	}
	t.builder.Release()
	t.build(next)
}

// build begins batches of a version.
func (t *sinkTable) build(s *schema.Table) {
	t.schema, t.size = s, sizer{}
	t.builder = change.NewBuilder(memory.DefaultAllocator, t.id, s.Version, s.Arrow())
	t.builder.Computes = s.Computes()
	for i := range s.Fields {
		t.size.add(t.builder.Column(i))
	}
}

// withoutSchemas drops the versions that a table got in a transaction.
func withoutSchemas(all []tableSchema, id change.TableID, txn uint64) []tableSchema {
	kept := all[:0]
	for _, s := range all {
		if s.Table != id || s.txn != txn {
			kept = append(kept, s)
		}
	}
	return kept
}

// apply puts the version in force, with its event.
func (s *tableSchema) apply(txn *catalog.Txn, pipeline change.PipelineID) error {
	t, err := txn.TableByID(s.Table)
	if errors.Is(err, catalog.ErrTableNotFound) || err == nil && t.Pipeline != pipeline {
		return nil
	}
	if err != nil {
		return fmt.Errorf("apply schema version: %w", err)
	}
	if s.Schema == nil || s.Schema.Version < t.Current.Version {
		return nil // copied anew since, as a later version
	}
	p, err := txn.PipelineByID(pipeline)
	if err != nil {
		return fmt.Errorf("apply schema version: %w", err)
	}
	followed := followColumns(p, t, s.Schema)
	if s.Schema.Version > t.Current.Version {
		t.Current = s.Schema
	}
	if s.SourceName != "" {
		follow(p, t, s)
		t.SourceSchema, t.SourceName = s.SourceSchema, s.SourceName
	}
	if s.SourceName != "" || followed {
		if err := txn.PutPipeline(p); err != nil {
			return fmt.Errorf("apply new name: %w", err)
		}
	}
	if err := txn.PutTable(t); err != nil {
		return fmt.Errorf("apply schema version: %w", err)
	}
	if t.CopyOf != 0 {
		return nil // its table tells of it
	}
	return txn.AddEvent(catalog.Event{
		At: txn.Now(), Level: "info", Pipeline: p.Name, Table: t.Schema + "." + t.Name,
		Kind: "schema changed", Detail: fmt.Sprintf("version %d: %s", s.Schema.Version, s.Changes),
	})
}

// follow has the pipeline's selection name the table as the source does now.
func follow(p *catalog.Pipeline, t *catalog.Table, s *tableSchema) {
	for i := range p.Selection.Tables {
		w := &p.Selection.Tables[i]
		if w.Name == t.SourceName && (w.Schema == "" || w.Schema == t.SourceSchema) {
			w.Schema, w.Name = s.SourceSchema, s.SourceName
		}
	}
}

// followColumns has the pipeline's selection name the columns of a table as the source does
// now. Those that it leaves out are known by their numbers alone.
func followColumns(p *catalog.Pipeline, t *catalog.Table, next *schema.Table) (followed bool) {
	to := map[string]string{}
	for _, f := range next.Fields {
		if old, ok := t.Current.Field(f.ID); ok && old.Name != f.Name {
			to[old.Name] = f.Name
		}
	}
	if len(to) == 0 {
		return false
	}
	for i := range p.Selection.Tables {
		w := &p.Selection.Tables[i]
		if w.Name != t.SourceName || w.Schema != "" && w.Schema != t.SourceSchema {
			continue
		}
		for _, names := range [][]string{w.Columns, w.AsText} {
			for k, name := range names {
				if now, ok := to[name]; ok {
					names[k], followed = now, true
				}
			}
		}
	}
	named := make(map[string]int16, len(t.Named))
	for name, number := range t.Named {
		if now, ok := to[name]; ok {
			name = now
		}
		named[name] = number
	}
	t.Named = named
	return followed
}

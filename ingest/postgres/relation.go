package postgres

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/wal/change"
)

// streamTable is a table of a stream with what its last description means for it.
type streamTable struct {
	ingest.StreamTable
	after LSN
	// partial says that the user selected columns, so that others may come and go.
	partial bool
	stopped bool
	// mismatch says why the last description does not fit the schema. It stops the
	// table when a change arrives that must be applied, not before: a description
	// may belong to changes that the table already has.
	mismatch *ingest.TableError

	columns []streamColumn // in the order of Schema.Fields; nil before a description
	keyed   []int          // places of the key in columns
	width   int            // columns of the relation

	// builder is the sink's builder that fields belong to.
	builder *change.Builder
	fields  []array.Builder
}

// streamColumn is a field and where its values come from.
type streamColumn struct {
	name   string
	source int // place in the relation's tuples
	key    bool
	decode value.Decoder
}

func newStreamTable(t ingest.StreamTable, sel catalog.TableSelection) (*streamTable, error) {
	after, err := parseLSN(t.After)
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", t.Source.Schema, t.Source.Name, err)
	}
	return &streamTable{
		StreamTable: t, after: after,
		partial: len(selectedColumns(sel, t.Source.Schema, t.Source.Name)) > 0,
	}, nil
}

// describe fits a description to the table's schema.
func (t *streamTable) describe(r *pgoutput.Relation, domains map[uint32]domain) error {
	t.columns, t.keyed, t.mismatch, t.width = nil, nil, nil, len(r.Columns)
	used := make([]bool, len(r.Columns))
	columns := make([]streamColumn, 0, len(t.Schema.Fields))
	for _, f := range t.Schema.Fields {
		at := slices.IndexFunc(r.Columns, func(c pgoutput.Column) bool { return c.Name == f.Name })
		if at < 0 {
			t.mismatch = differs("column %q was dropped or renamed", f.Name)
			return nil
		}
		used[at] = true
		if !sameType(f, r.Columns[at], domains) {
			t.mismatch = differs("the type of column %q was changed", f.Name)
			return nil
		}
		decode, err := value.TextDecoder(f.Type)
		if err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
		c := streamColumn{name: f.Name, source: at, decode: decode, key: slices.Contains(t.Schema.Key, f.ID)}
		if c.key {
			t.keyed = append(t.keyed, len(columns))
		}
		columns = append(columns, c)
	}
	if at := slices.Index(used, false); at >= 0 && !t.partial {
		t.mismatch = differs("column %q was added", r.Columns[at].Name)
		return nil
	}
	t.mismatch = t.keyDiffers(r)
	t.columns = columns
	return nil
}

// keyDiffers compares the replica identity with the table's key. With identity FULL
// old rows carry every column, the key among them. A table taken in without a key has
// only inserts, for which none is needed.
func (t *streamTable) keyDiffers(r *pgoutput.Relation) *ingest.TableError {
	if len(t.Schema.Key) == 0 || r.Identity == 'f' {
		return nil
	}
	for _, c := range r.Columns {
		f, known := t.Schema.FieldByName(c.Name)
		if c.Identity != (known && slices.Contains(t.Schema.Key, f.ID)) {
			return differs("the key, or the replica identity, no longer is what it was: see column %q", c.Name)
		}
	}
	return nil
}

func differs(format, column string) *ingest.TableError {
	return &ingest.TableError{Reason: fmt.Sprintf(format, column) + " at the source", Hint: resync}
}

// sameType says whether a column's type is still one that makes no difference here:
// a longer varchar does not, a wider numeric does.
func sameType(f schema.Field, c pgoutput.Column, domains map[uint32]domain) bool {
	oid, typmod, _, _, _ := resolve(attribute{oid: c.OID, typmod: c.TypMod}, domains)
	if oid != f.OID {
		return false
	}
	if typmod == f.TypMod || f.Type.Kind == schema.String {
		return true // text of any length; exact text of any form
	}
	now, _ := schema.FromPostgres(oid, typmod, 1)
	return now.Equal(f.Type)
}

package postgres

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// streamTable is a table of a stream with what its last description means for it.
type streamTable struct {
	ingest.StreamTable
	after  LSN
	copied LSN // before which its copied rows may be newer than a change
	// partial says that the user selected columns, so that others may come and go.
	partial bool
	// except are columns that the user leaves out.
	except  []string
	stopped bool
	// letters are its open dead letters, rule what becomes of values out of range.
	letters *deadletter.Table
	rule    outofrange.Rule
	exact   exactText
	// also is another table that gets the same changes: one of the two is to take the
	// place of the other.
	also *streamTable
	// described is a description that was not looked at yet: that is for when a change
	// arrives that must be applied, for it may belong to changes that the table already
	// has.
	described *pgoutput.Relation

	columns []streamColumn // in the order of Schema.Fields, without unsent ones; nil before a description
	keyed   []int          // places of the key in columns
	width   int            // columns of the relation

	// builder is the sink's builder that fields belong to, those of columns; blanks are of
	// the columns that are not sent.
	builder *change.Builder
	fields  []array.Builder
	blanks  []array.Builder
	unsent  []int // places of those in Schema.Fields
}

// streamColumn is a field and where its values come from.
type streamColumn struct {
	name   string
	field  int32
	place  int // in Schema.Fields
	source int // place in the relation's tuples
	key    bool
	decode value.Decoder
}

func newStreamTable(t ingest.StreamTable, sel catalog.TableSelection) (*streamTable, error) {
	after, err := parseLSN(t.After)
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", t.Source.Schema, t.Source.Name, err)
	}
	copied, err := parseLSN(t.Copied)
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", t.Source.Schema, t.Source.Name, err)
	}
	exact := exactTextOf(sel, t.Source.Schema, t.Source.Name)
	exact.numbers = t.Source.Numbers
	return &streamTable{
		StreamTable: t, after: after, copied: copied, exact: exact,
		partial: len(selectedColumns(sel, t.Source.Schema, t.Source.Name)) > 0,
		except:  selectedTable(sel, t.Source.Schema, t.Source.Name).Except,
	}, nil
}

// version is the schema of a version, nil when it is not known any more.
func (t *streamTable) version(n uint32) *schema.Table {
	for _, s := range append(t.Versions[:len(t.Versions):len(t.Versions)], t.Schema) {
		if s.Version == n {
			return s
		}
	}
	return nil
}

// bind finds where the values of the table's columns are in the tuples of a description
// that the schema is of.
func (t *streamTable) bind(r *pgoutput.Relation) error {
	t.columns, t.keyed, t.width = make([]streamColumn, 0, len(t.Schema.Fields)), nil, len(r.Columns)
	t.unsent = nil
	read := inputs(t.Schema)
	for i, f := range t.Schema.Fields {
		if f.Unsent() {
			t.unsent = append(t.unsent, i)
			continue
		}
		at := slices.IndexFunc(r.Columns, func(c pgoutput.Column) bool { return c.Name == f.Name })
		if at < 0 {
			return fmt.Errorf("column %s is not described", quote.Name(f.Name))
		}
		decode, err := value.TextDecoder(f.Type)
		if err != nil {
			return fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		c := streamColumn{name: f.Name, field: f.ID, place: i, source: at, decode: decode, key: slices.Contains(t.Schema.Key, f.ID)}
		if !c.key && !read[f.AttNum] {
			c.decode = outofrange.Decoder(decode, f, t.rule)
		}
		if c.key {
			t.keyed = append(t.keyed, len(t.columns))
		}
		t.columns = append(t.columns, c)
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

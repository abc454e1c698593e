package postgres

import (
	"slices"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
)

// exactText says which columns of one table are kept as the exact text that the source
// writes, whatever their type: those with AS text, and with out_of_range = 'text' those
// whose type has values that ours has not.
type exactText struct {
	columns []string
	numbers map[string]int16 // of columns, as far as they are known
	ranged  bool
}

// exactTextOf is what a selection says of a table.
func exactTextOf(sel catalog.TableSelection, schemaName, name string) exactText {
	x := exactText{ranged: sel.OutOfRangeText}
	for _, t := range sel.Tables {
		if schemaOf(t) == schemaName && t.Name == name {
			x.columns, x.numbers = append(x.columns, t.AsText...), t.Numbers
		}
	}
	return x
}

// keep makes a column of another type exact text, if it is to be.
func (x exactText) keep(c *ingest.SourceColumn) {
	if c.Type.Kind == schema.String {
		return
	}
	if means(x.columns, x.numbers, c.Name, c.AttNum) || x.ranged && outofrange.Widens(c.Type) {
		c.Type = schema.Type{Kind: schema.String}
		if c.Note != "" {
			c.Note += ", "
		}
		c.Note += "exact text"
	}
}

// means says whether columns are named of which one is this: by its name, or by its number.
func means(names []string, numbers map[string]int16, name string, number int16) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n == name || number != 0 && numbers[n] == number })
}

// follow is keep for a column that the table may have already: as long as its type at the
// source is the same, it stays what it was, since its rows are.
func (x exactText) follow(c *ingest.SourceColumn, old schema.Field, known bool) {
	switch {
	case !known || old.OID != c.OID:
		x.keep(c)
	case old.Type.Kind == schema.String:
		c.Type = schema.Type{Kind: schema.String}
	}
}

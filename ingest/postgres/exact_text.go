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
	ranged  bool
}

// exactTextOf is what a selection says of a table.
func exactTextOf(sel catalog.TableSelection, schemaName, name string) exactText {
	x := exactText{ranged: sel.OutOfRangeText}
	for _, t := range sel.Tables {
		if schemaOf(t) == schemaName && t.Name == name {
			x.columns = append(x.columns, t.AsText...)
		}
	}
	return x
}

// keep makes a column of another type exact text, if it is to be.
func (x exactText) keep(c *ingest.SourceColumn) {
	if c.Type.Kind == schema.String {
		return
	}
	if slices.Contains(x.columns, c.Name) || x.ranged && outofrange.Widens(c.Type) {
		c.Type = schema.Type{Kind: schema.String}
		if c.Note != "" {
			c.Note += ", "
		}
		c.Note += "exact text"
	}
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

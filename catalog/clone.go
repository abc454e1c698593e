package catalog

import (
	"bytes"
	"maps"
	"slices"
)

// Clone is a copy that shares nothing changeable.
func (p *Pipeline) Clone() *Pipeline {
	c := *p
	c.Options = maps.Clone(p.Options)
	c.SourceState = bytes.Clone(p.SourceState)
	c.Selection.Schemas = slices.Clone(p.Selection.Schemas)
	c.Selection.Except = slices.Clone(p.Selection.Except)
	c.Selection.Tables = slices.Clone(p.Selection.Tables)
	for i, t := range c.Selection.Tables {
		c.Selection.Tables[i].Columns = slices.Clone(t.Columns)
	}
	return &c
}

// Clone is a copy that shares nothing changeable; schema versions are immutable and
// shared.
func (t *Table) Clone() *Table {
	c := *t
	c.Versions = slices.Clone(t.Versions)
	c.Backfill.Plan = slices.Clone(t.Backfill.Plan)
	c.Backfill.Done = slices.Clone(t.Backfill.Done)
	return &c
}

// Clone is a copy that shares nothing changeable.
func (c *Connection) Clone() *Connection {
	n := *c
	n.Options, n.Secrets = maps.Clone(c.Options), maps.Clone(c.Secrets)
	n.Sealed = maps.Clone(c.Sealed)
	return &n
}

// Clone is a copy that shares nothing changeable.
func (c *Compaction) Clone() *Compaction {
	n := *c
	n.Slices = slices.Clone(c.Slices)
	return &n
}

package own

import (
	"fmt"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// Table is the table of its COPY.
func (c *Client) Table() string { return c.sent.table }

// Copy begins a COPY.
func (c *Client) Copy(table string, csv bool) {
	k := copyText
	if csv {
		k = copyCSV
	}
	c.say(&statement{kind: k, table: table})
}

// Insert adds rows.
func (c *Client) Insert(table string, rows []source.Row) {
	c.say(&statement{kind: insert, table: table, rows: rows})
}

// Change changes, or deletes, the rows that are found as those given are; serial makes the new
// value.
func (c *Client) Change(table string, like []source.Row, updates bool, serial int64) {
	s := &statement{kind: remove, table: table}
	v := c.ledger.Shape(table).Current()
	for _, r := range like {
		if at := r[found(v)]; at != nil {
			s.keys = append(s.keys, at)
		}
	}
	if updates {
		s.kind, s.set = update, fmt.Sprintf("u%d", serial)
		if v.Columns[changed(v)].Type.Kind == schema.Float64 {
			s.set = float64(serial) / 2
		}
	}
	c.say(s)
}

// Truncate empties a table.
func (c *Client) Truncate(table string) { c.say(&statement{kind: truncate, table: table}) }

// Begin, Commit and Rollback begin and end a transaction block.
func (c *Client) Begin() {
	if !c.open {
		c.say(&statement{kind: begin})
	}
}

// Commit ends it.
func (c *Client) Commit() {
	if c.open {
		c.say(&statement{kind: commit})
	}
}

// Rollback ends it, with nothing done.
func (c *Client) Rollback() {
	if c.open {
		c.server.hooks.Mark("own transaction rolled back")
		c.say(&statement{kind: rollback})
	}
}

// Savepoint makes one in the block.
func (c *Client) Savepoint() {
	if c.open {
		c.say(&statement{kind: savepoint})
	}
}

// Back takes back what came after the last savepoint.
func (c *Client) Back() {
	if c.open && len(c.marks) > 0 {
		c.server.hooks.Mark("back to a savepoint")
		c.say(&statement{kind: rollbackTo})
	}
}

// Create makes the spare table, outside of a block.
func (c *Client) Create() {
	if !c.open {
		c.say(&statement{kind: create})
	}
}

// Drop drops it.
func (c *Client) Drop() {
	if !c.open {
		c.say(&statement{kind: drop})
	}
}

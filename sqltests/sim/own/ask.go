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
	v := c.Shape(table)
	if v == nil {
		return
	}
	for _, r := range like {
		if at := r[found(v)]; at != nil {
			s.keys = append(s.keys, at)
		}
	}
	if updates {
		s.kind, s.set = update, fmt.Sprintf("u%d", serial)
		switch v.Columns[changed(v)].Type.Kind {
		case schema.Float64:
			s.set = float64(serial) / 2
		case schema.Int32:
			s.set = serial % 8
		case schema.Int64:
			s.set = like[0][changed(v)]
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
	if c.open && c.muddled {
		c.Rollback()
	} else if c.open {
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

// Create makes the spare table.
func (c *Client) Create() {
	if !c.open || !c.hasSpare() {
		c.say(&statement{kind: create, table: spare})
	}
}

// Drop drops it.
func (c *Client) Drop() {
	if !c.open || c.hasSpare() {
		c.say(&statement{kind: drop, table: spare})
	}
}

// hasSpare says whether there is the spare table for the client's next statement.
func (c *Client) hasSpare() bool {
	t, _ := c.view(spare)
	return t != nil
}

// Grant lets a role read a table, or no more.
func (c *Client) Grant(table string, may bool) {
	k := revoke
	if may {
		k = grant
	}
	c.say(&statement{kind: k, table: table})
}

// columnsMost is how many columns a table is given beside its own.
const columnsMost = 3

// AddColumn gives a table a column that serial names.
func (c *Client) AddColumn(table string, serial int64) {
	if v := c.Shape(table); v != nil && len(extras(v)) < columnsMost {
		c.say(&statement{kind: addColumn, table: table, column: fmt.Sprintf("x%d", serial)})
	}
}

// DropColumn drops the first that was added.
func (c *Client) DropColumn(table string) {
	if v := c.Shape(table); v != nil && len(extras(v)) > 0 {
		c.say(&statement{kind: dropColumn, table: table, column: extras(v)[0]})
	}
}

// extras are the columns that were added to a table.
func extras(v *source.Version) (out []string) {
	for _, c := range v.Columns {
		if c.Name[0] == 'x' {
			out = append(out, c.Name)
		}
	}
	return out
}

// Unique has an index keep the values of a column apart, or no more. The tables that have a text
// for a key have none.
func (c *Client) Unique(table string, is bool) {
	k := notUnique
	if is {
		k = unique
	}
	if table == "texts" || table == numbered {
		table = "ints"
	}
	if v := c.Shape(table); c.open && (v == nil || len(c.uniques(table, v)) > 0 == is) {
		return // it would end the block
	}
	c.say(&statement{kind: k, table: table})
}

// SetValue is setval of the sequence.
func (c *Client) SetValue(to int64) { c.say(&statement{kind: setValue, number: max(to, 1)}) }

// Restart empties the numbered table and begins its sequence anew, RestartWith does that with a
// value.
func (c *Client) Restart() { c.say(&statement{kind: restart, table: numbered}) }

// RestartWith begins the sequence anew with a value.
func (c *Client) RestartWith(at int64) {
	c.say(&statement{kind: restartWith, table: numbered, number: max(at, 1)})
}

// Rekey gives the row with the key of the first that of the last.
func (c *Client) Rekey(table string, rows []source.Row) {
	v := c.Shape(table)
	if v == nil || len(rows) == 0 || !related(table) {
		return
	}
	at := found(v)
	c.say(&statement{kind: rekey, table: table, keys: []any{rows[0][at]}, set: rows[len(rows)-1][at]})
}

// LockRows locks the rows that are found as those given are.
func (c *Client) LockRows(table string, like []source.Row) {
	v := c.Shape(table)
	if v == nil || !c.open {
		return
	}
	s := &statement{kind: lockRows, table: table}
	for _, r := range like {
		if at := r[found(v)]; at != nil {
			s.keys = append(s.keys, at)
		}
	}
	c.say(s)
}

// Refresh fills the materialized view anew.
func (c *Client) Refresh(concurrently bool) {
	k := refresh
	if concurrently {
		k = refreshConcurrently
	}
	c.say(&statement{kind: k, table: summary})
}

// Constraints has all constraints that can be deferred be checked at once, or at the end of the block.
func (c *Client) Constraints(immediate bool) {
	k := setDeferred
	if immediate {
		k = setImmediate
	}
	if c.open {
		c.say(&statement{kind: k})
	}
}

// Foreign has the rows of the grandchild's refer to children that are there, or no more.
func (c *Client) Foreign(is bool) {
	k := notForeign
	if is {
		k = foreign
	}
	if c.open && c.enforced() == is {
		return // it would end the block
	}
	c.say(&statement{kind: k, table: grandTable})
}

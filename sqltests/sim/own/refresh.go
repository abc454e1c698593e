package own

import (
	"slices"

	"github.com/skipprd/skipprd/sqltests/sim/source"
	"github.com/skipprd/skipprd/wal/change"
)

// summary is a materialized view: the rows of the parent.
const summary = "summary"

// refreshes says whether it fills a materialized view anew.
func (s *statement) refreshes() bool { return s.kind == refresh || s.kind == refreshConcurrently }

// refilled are the changes of a materialized view that is filled with what was read.
func (s *statement) refilled(base source.Change) []source.Change {
	gone := base
	gone.Truncate = true
	out := []source.Change{gone}
	for _, r := range s.read {
		c := base
		c.Op, c.New = change.Insert, slices.Clone(r)
		out = append(out, c)
	}
	return out
}

// was says whether a table had these rows at a moment since the client sent its statement, as its
// transaction sees it.
func (c *Client) was(t *source.Table, read []source.Row) bool {
	s, rows := c.sent, c.sent.before
	for i := s.txns; ; i++ {
		seen := rows
		if c.txn != nil {
			seen = c.txn.rows(t, rows, true)
		}
		if sameRows(seen, read) {
			return true
		}
		if i >= len(c.ledger.DB.Txns) {
			return false
		}
		rows = apply(t, rows, c.ledger.DB.Txns[i].Changes)
	}
}

// refreshed makes sure that what a materialized view was filled with was so at one moment.
func (c *Client) refreshed(s *statement) {
	c.server.hooks.Mark("materialized view filled")
	if t, _ := c.view(parentTable); t != nil && c.server.hooks.Leads() && !c.was(t, s.read) {
		c.wrong("read %q, which the table never had since it began", wireTexts(s.read))
	}
}

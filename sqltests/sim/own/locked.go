package own

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// lockedRows are rows as a transaction has seen them when it locked them.
type lockedRows struct {
	of *statement
	t  *source.Table
	v  *source.Version
	// at is how many changes of its transaction precede it.
	at int
}

// wireText is a row as the wire has it, in text.
func wireText(r source.Row) string {
	var out []string
	for _, v := range r {
		text, ok := textOf(v)
		if !ok {
			text = "\\N"
		}
		out = append(out, text)
	}
	return strings.Join(out, "|")
}

func wireTexts(rows []source.Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = wireText(r)
	}
	slices.Sort(out)
	return out
}

// locked is told that the client has locked rows, which it was shown.
func (c *Client) locked(s *statement) {
	t, v := c.view(s.table)
	if s.verdict = c.judge(s); s.unknown || c.txn == nil {
		return
	}
	rows := c.txn.rows(t, c.ledger.rows(t), true)
	slices.Sort(s.seen)
	if want := wireTexts(s.found(v, rows)); !slices.Equal(s.seen, want) {
		c.wrong("saw %q, and there is %q", s.seen, want)
		return
	}
	c.server.hooks.Mark("rows locked")
	c.txn.locked = append(c.txn.locked, lockedRows{s, t, v, len(c.txn.changes)})
}

// lockKept makes sure that rows which a transaction locked are as it saw them until its commit.
func (l *Ledger) lockKept(token int64, t *Txn) {
	if len(t.edits) > 0 || len(t.changes) == 0 { // another shape
		return
	}
	for _, k := range t.locked {
		rows := apply(k.t, l.rows(k.t), t.changes[:k.at])
		if k.t.Current() != k.v {
			l.Fail(labelLocked, fmt.Sprintf("transaction %d has locked rows of table %s, whose columns are others now", token, k.t.Name))
			return
		}
		if now := wireTexts(k.of.found(k.v, rows)); !slices.Equal(k.of.seen, now) {
			l.Fail(labelLocked, fmt.Sprintf("transaction %d has locked rows %q of table %s, which were %q at its commit", token, k.of.seen, k.t.Name, now))
			return
		}
	}
}

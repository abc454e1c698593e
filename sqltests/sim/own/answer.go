package own

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// hear takes in what the server says, as it says it.
func (c *Client) hear(b []byte) {
	eachMessage(b, func(kind byte, body []byte) {
		switch kind {
		case 'C':
			c.succeeded(string(bytes.TrimRight(body, "\x00")))
		case 'E':
			if code := fieldOf(body, 'C'); code == "XX000" && fieldOf(body, 'S') == "FATAL" {
				c.ledger.Fail("PANIC", fmt.Sprintf("client %s: its session has panicked", c.Name))
			}
			c.refused(fieldOf(body, 'C'), fieldOf(body, 'M'))
		case 'K':
			c.key = bytes.Clone(body)
		case 'Z':
			c.ready(body[0])
		}
	})
}

// fieldOf is a field of an error.
func fieldOf(body []byte, which byte) string {
	for _, f := range bytes.Split(body, []byte{0}) {
		if len(f) > 0 && f[0] == which {
			return string(f[1:])
		}
	}
	return ""
}

func (c *Client) ready(status byte) {
	c.greeted, c.sent, c.data = true, nil, nil
	c.open, c.conn.cancelled = status != 'I', false
	if !c.open {
		c.txn, c.marks = nil, nil
	}
}

// judge evaluates the statement that was sent, over what its server must see.
func (c *Client) judge(s *statement) verdict {
	t := c.server.table(s.table)
	if t == nil || !c.server.hooks.Leads() {
		return verdict{unknown: true}
	}
	rows := c.ledger.DB.Rows(t)
	if c.txn != nil {
		rows = apply(t, rows, c.txn.changes)
	}
	return s.run(t, rows)
}

// wrong says that an answer is not that of a naive execution.
func (c *Client) wrong(format string, args ...any) {
	if c.server.hooks.Leads() {
		c.ledger.Fail(labelAnswer, fmt.Sprintf("client %s: %s: %s", c.Name, c.sent.short(), fmt.Sprintf(format, args...)))
	}
}

func (s *statement) short() string {
	return fmt.Sprintf("%s (%s)", []string{
		"INSERT", "COPY", "COPY csv", "UPDATE", "DELETE", "TRUNCATE", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT",
		"ROLLBACK TO", "CREATE TABLE", "DROP TABLE",
	}[s.kind], s.table)
}

// succeeded is told that the statement has succeeded.
func (c *Client) succeeded(tag string) {
	s := c.sent
	if s == nil {
		return
	}
	s.answered = true
	c.server.hooks.Say("  client %s is told %s", c.Name, tag)
	c.server.hooks.Mark("client told " + strings.TrimRight(strings.TrimSuffix(tag, " TABLE"), " 0123456789"))
	switch s.kind {
	case begin:
		c.txn, c.marks = &Txn{}, nil
	case savepoint:
		c.marks = append(c.marks, len(c.txn.changes))
	case rollbackTo:
		c.txn.changes = c.txn.changes[:c.marks[len(c.marks)-1]]
	case create, drop:
		c.defined(s)
	case commit, rollback:
	default:
		c.written(s)
	}
	if tag != s.tag() && !s.unknown && !(s.kind == commit && tag == "ROLLBACK") {
		c.wrong("answered %q, not %q", tag, s.tag())
	}
}

// written is told that a statement has changed rows.
func (c *Client) written(s *statement) {
	if s.committed == nil {
		s.verdict = c.judge(s)
	}
	switch {
	case s.unknown:
	case s.bad || s.failed:
		c.wrong("succeeded, with a row that cannot be read or a client that gave up")
	case s.copies() && !s.ended:
		c.wrong("succeeded before the end of its data")
	case s.taken:
		c.wrong("succeeded, and a key is there already")
	case s.table == spare && c.ledger.gone(spare) && c.undisturbed(s):
		c.wrong("succeeded, and the table was dropped")
	case c.txn != nil:
		c.txn.changes = append(c.txn.changes, s.changes...)
	case s.committed == nil && len(s.changes) > 0:
		c.wrong("succeeded, and nothing was committed of %d changes", len(s.changes))
	}
}

// undisturbed says that nobody else made or dropped a table while the statement ran.
func (c *Client) undisturbed(s *statement) bool { return s.settled && c.ledger.begun == s.begun }

// refused is told that the statement has failed.
func (c *Client) refused(code, text string) {
	s := c.sent
	if s == nil {
		return
	}
	s.answered = true
	c.server.hooks.Say("  client %s is told %s: %s", c.Name, code, text)
	c.server.hooks.Mark("client told error " + code)
	switch code {
	case "XX000":
		if !c.server.hooks.Faulted() {
			c.wrong("%s, and nothing has failed", text)
		}
	case "23505":
		if s.committed == nil && s.writes() {
			s.verdict = c.judge(s)
		}
		if !s.taken && !s.unknown {
			c.wrong("a key is said to be taken: %s", text)
		}
	case "22P04", "22P02":
		if !s.bad {
			c.wrong("data are said to be bad: %s", text)
		}
	case "57014":
		if !s.failed && !s.cancelled {
			c.wrong("said to have been given up: %s", text)
		}
	case "42P01":
		if s.table != spare && s.kind != drop || c.ledger.there[spare] && c.undisturbed(s) {
			c.wrong("table is said not to be there: %s", text)
		}
	case "42P07":
		if c.ledger.gone(spare) {
			c.wrong("table is said to be there: %s", text)
		}
	case "42601", "42703", "42804", "42883":
		c.wrong("%s: %s", code, text)
	}
	switch {
	case !s.defines():
	case c.server.hooks.Leads() && (code == "42P01" || code == "42P07"):
		c.ledger.define(s, code == "42P07")
	default:
		c.ledger.defining-- // its fate is open
	}
}

// defined is told that a table was made or dropped, or will be with its transaction.
func (c *Client) defined(s *statement) {
	c.server.hooks.Mark(map[kind]string{create: "own table made", drop: "own table dropped"}[s.kind])
	if !c.server.hooks.Leads() {
		c.ledger.defining--
		return
	}
	c.ledger.define(s, s.kind == create)
	if c.ledger.begun == s.begun && c.ledger.defining == 0 && c.server.has(spare) != (s.kind == create) {
		c.wrong("succeeded, and the catalog does not have it so")
	}
}

// define says how it is with the spare table after a statement that is about it, unless another
// has begun since, or is under way.
func (l *Ledger) define(s *statement, there bool) {
	if l.defining--; l.defining == 0 && l.begun == s.begun {
		l.there[spare] = there
	}
}

// gone says whether a table is known not to exist.
func (l *Ledger) gone(name string) bool {
	there, known := l.there[name]
	return known && !there
}

// committing is called when the client's transaction is about to be committed: it returns what
// a naive execution makes of it.
func (c *Client) committing() *Txn {
	s := c.sent
	if s == nil {
		return &Txn{}
	}
	if s.kind == commit && c.txn != nil {
		return c.txn
	}
	s.verdict = c.judge(s)
	s.committed = &Txn{changes: slices.Clone(s.changes)}
	return s.committed
}

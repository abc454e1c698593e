package own

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// hear takes in what the server says, as it says it.
func (c *Client) hear(b []byte) {
	eachMessage(b, func(kind byte, body []byte) {
		switch kind {
		case 'D':
			if c.sent != nil && c.sent.kind == lockRows {
				c.sent.seen = append(c.sent.seen, wireRow(body))
			}
		case 'C':
			c.succeeded(string(bytes.TrimRight(body, "\x00")))
		case 'E':
			code, ends := fieldOf(body, 'C'), fieldOf(body, 'S') == "FATAL"
			if code == "XX000" && ends {
				c.ledger.Fail("PANIC", fmt.Sprintf("client %s: its session has panicked", c.Name))
			}
			if !ends { // who loses the connection is told nothing
				c.refused(code, fieldOf(body, 'M'))
			}
		case 'K':
			c.key = bytes.Clone(body)
		case 'Z':
			c.ready(body[0])
		}
	})
}

// wireRow is a row of an answer, in text.
func wireRow(body []byte) string {
	var out []string
	for b := body[2:]; len(b) >= 4; {
		n := int(int32(binary.BigEndian.Uint32(b)))
		if b = b[4:]; n < 0 {
			out = append(out, "\\N")
			continue
		}
		out = append(out, string(b[:n]))
		b = b[n:]
	}
	return strings.Join(out, "|")
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
		c.txn, c.marks, c.local, c.muddled, c.immediate = nil, nil, nil, false, false
		for ; c.spares > 0; c.spares-- {
			c.settleSpare()
		}
	}
}

// judge evaluates the statement that was sent, over what its server must see.
func (c *Client) judge(s *statement) verdict {
	t, v := c.view(s.table)
	if t == nil || !c.server.hooks.Leads() {
		return verdict{unknown: true}
	}
	rows := c.ledger.rows(t)
	if c.txn != nil {
		rows = c.txn.rows(t, rows, true)
	}
	if c.local != nil && s.table == numbered && s.drawn == nil {
		for i := range s.rows {
			s.drawn = append(s.drawn, *c.local+int64(i))
		}
	}
	out := s.run(t, v, rows, c.uniques(s.table, v))
	if related(s.table) {
		out = c.follow(s, out)
	}
	return out
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
		"ROLLBACK TO", "CREATE TABLE", "DROP TABLE", "GRANT", "REVOKE", "ADD COLUMN", "DROP COLUMN", "CREATE UNIQUE INDEX",
		"DROP INDEX", "setval", "TRUNCATE RESTART IDENTITY", "RESTART WITH",
		"UPDATE key", "SET CONSTRAINTS IMMEDIATE", "SET CONSTRAINTS DEFERRED", "ADD FOREIGN KEY", "DROP CONSTRAINT",
		"SELECT FOR UPDATE", "REFRESH", "REFRESH CONCURRENTLY",
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
		c.marks = append(c.marks, mark{len(c.txn.changes), len(c.txn.edits), len(c.txn.locked), c.immediate})
	case rollbackTo:
		m := c.marks[len(c.marks)-1]
		c.muddled = c.muddled || c.local != nil // what it goes back to of the sequence is not followed
		c.txn.changes, c.txn.edits = c.txn.changes[:m.changes], slices.Clip(c.txn.edits[:m.edits])
		c.immediate, c.txn.locked = m.immediate, c.txn.locked[:m.locked]
	case commit:
		switch {
		case c.txn == nil:
		case tag == "COMMIT":
			c.told(c.txn)
		default:
			c.denied(c.txn, "")
		}
	case rollback:
	case lockRows:
		c.locked(s)
	case setValue:
		if c.local != nil { // of the sequence that the block has begun anew
			next := s.number + 1
			c.local = &next
		}
	case setImmediate, setDeferred:
		if c.immediate = s.kind == setImmediate; c.immediate && c.enforced() && c.owes() {
			c.wrong("succeeded, and a row refers to one that is not there")
		}
	default:
		if s.edits() {
			c.defined(s)
		} else {
			c.written(s)
		}
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
	if s.refreshes() {
		c.refreshed(s)
	}
	switch {
	case s.unknown:
	case s.bad || s.failed:
		c.wrong("succeeded, with a row that cannot be read or a client that gave up")
	case s.copies() && !s.ended:
		c.wrong("succeeded before the end of its data")
	case s.taken:
		c.wrong("succeeded, and a key is there already")
	case s.dangling:
		c.wrong("succeeded, and a row refers to one that is not there")
	case s.table == spare && c.ledger.gone(spare) && c.undisturbed(s):
		c.wrong("succeeded, and the table was dropped")
	case c.txn != nil:
		c.txn.changes = append(c.txn.changes, s.changes...)
		c.restarted(s)
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
		if s.committed == nil && (s.writes() || s.kind == unique) {
			s.verdict = c.judge(s)
		}
		if !s.taken && !s.unknown {
			c.wrong("a key is said to be taken: %s", text)
		}
	case "23503":
		if s.committed == nil && s.writes() {
			s.verdict = c.judge(s)
		}
		if owed := s.writes() && s.dangling || (s.kind == foreign || !s.writes() && c.enforced()) && c.owes(); !owed && !s.unknown {
			c.wrong("a row is said to refer to none: %s", text)
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
		if s.table != spare || c.ledger.there[spare] && c.undisturbed(s) {
			c.wrong("table is said not to be there: %s", text)
		}
	case "42P07":
		if s.kind == create && c.ledger.gone(spare) {
			c.wrong("table is said to be there: %s", text)
		}
	case "42703":
		if !s.extra() {
			c.wrong("%s: %s", code, text)
		}
	case "42601", "42804", "42883":
		c.wrong("%s: %s", code, text)
	}
	if s.defines() {
		c.settleSpare()
	}
	t := s.committed
	if s.kind == commit {
		t = c.txn
	}
	if t != nil {
		c.denied(t, code)
	}
	c.muddled = c.muddled || c.local != nil
}

// extra says whether it names a column that others may have dropped.
func (s *statement) extra() bool {
	return s.kind == dropColumn || len(s.shape.Columns) > 3 || s.table == "log" && len(s.shape.Columns) > 2
}

// defined is told that definitions have changed, or will with the client's transaction.
func (c *Client) defined(s *statement) {
	c.server.hooks.Mark(map[bool]string{true: "defined in a transaction", false: "defined at once"}[c.txn != nil])
	if s.kind == unique {
		if v := c.judge(s); v.taken && !v.unknown {
			c.wrong("succeeded, and values are equal")
		}
	}
	if s.kind == foreign {
		c.server.hooks.Mark("foreign key added")
		if c.owes() {
			c.wrong("succeeded, and a row refers to one that is not there")
		}
	}
	if s.defines() {
		c.server.hooks.Mark(map[kind]string{create: "own table made", drop: "own table dropped"}[s.kind])
	}
	if c.txn == nil {
		if s.committed != nil {
			c.told(s.committed)
		}
		if s.defines() {
			c.settleSpare()
		}
		return
	}
	if s.defines() {
		c.spares++
	}
	c.txn.edits = append(c.txn.edits, c.editOf(s))
	if s.kind == restartWith {
		c.local = &s.number
	}
}

// restarted is told that a statement in a block has drawn from a sequence that the block began
// anew, or began it anew.
func (c *Client) restarted(s *statement) {
	switch {
	case s.kind == restart:
		c.local = new(int64)
		*c.local = 1
	case c.local != nil && s.table == numbered:
		*c.local += int64(len(s.rows))
	}
}

// told is told that a transaction is committed: what it defines is there.
func (c *Client) told(t *Txn) {
	l := c.ledger
	if len(t.edits) == 0 || t.done || !c.server.hooks.Leads() {
		return
	}
	if t.so && (!l.moves(t) || t.lsn != 0) { // they were so before
		t.done = true
		l.reshape(t, false)
	} else {
		l.Fail(labelCommit, fmt.Sprintf("client %s is told that definitions are committed, and they are not there: %v, not %v",
			c.Name, l.definitions, t.over(l.definitions)))
	}
	l.defining = slices.DeleteFunc(l.defining, func(o *Txn) bool { return o == t })
}

// denied is told that nothing of a transaction takes place, or that it is not known.
func (c *Client) denied(t *Txn, code string) {
	switch {
	case code == unknownCode:
		c.server.hooks.Mark("client told that its commit is in doubt")
		return
	case code == completionCode:
		return
	case len(t.edits) == 0:
		c.ledger.refuse(t)
		return
	case !c.server.hooks.Leads():
		return
	}
	if t.refused = true; t.done {
		c.ledger.Fail(labelCommit, fmt.Sprintf("client %s is told %q, and the definitions of its transaction are committed", c.Name, code))
	}
}

// settleSpare notes that a statement about the spare table is over, or its block: when no other
// is under way, it is known whether it is there.
func (c *Client) settleSpare() {
	l := c.ledger
	if l.making--; l.making == 0 && c.server.hooks.Alive() && c.server.hooks.Leads() {
		l.there[spare] = c.server.has(spare)
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
	switch {
	case s.edits() && s.committed == nil:
		s.committed = &Txn{edits: []edit{c.editOf(s)}}
	case !s.edits():
		s.verdict = c.judge(s)
		s.committed = &Txn{changes: slices.Clone(s.changes)}
	}
	return s.committed
}

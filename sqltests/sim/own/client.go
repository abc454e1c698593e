package own

import (
	"encoding/binary"
	"slices"

	"github.com/skipprd/skipprd/sqltests/sim/source"
)

// Client is a client of one server at a time: it waits for the answer to a statement before it
// sends the next one. Used by one goroutine.
type Client struct {
	Name   string
	ledger *Ledger
	// server and conn are nil while it is not connected.
	server *Server
	conn   *conn
	// greeted: the server has said that it is ready once.
	greeted bool
	key     []byte     // the number and the secret of its session
	sent    *statement // whose answer it waits for
	// open says that it is in a transaction block, txn is what it has done there, and marks are
	// the savepoints in it.
	open  bool
	txn   *Txn
	marks []mark
	// spares are the statements of the block that make or drop the spare table.
	spares int
	// local is the next value of the sequence that the block has begun anew, nil when it has
	// not; muddled: nobody knows what there is, so that the block can only be rolled back.
	local   *int64
	muddled bool
	// immediate says that the block has all constraints checked at once.
	immediate bool
	// data are those of its COPY that were not sent yet.
	data []byte
}

// mark is where a transaction is, to come back to.
type mark struct {
	changes, edits, locked int
	immediate              bool
}

// NewClient makes a client that is not connected.
func NewClient(name string, l *Ledger) *Client { return &Client{Name: name, ledger: l} }

// Free says whether it may connect: no server has anything to do with it.
func (c *Client) Free() bool { return c.conn == nil }

// Server is the server that it is connected to.
func (c *Client) Server() *Server { return c.server }

// Connected says whether it is connected to a server.
func (c *Client) Connected() bool { return c.conn != nil && !c.conn.closed }

// Waiting says whether it waits for its server: it can do nothing but go away.
func (c *Client) Waiting() bool {
	return !c.greeted || c.sent != nil && !c.Copying()
}

// Copying says whether it may send data.
func (c *Client) Copying() bool {
	return c.sent != nil && c.sent.copies() && !c.sent.ended && !c.sent.failed
}

// Open says whether it is in a transaction block.
func (c *Client) Open() bool { return c.open }

// Connect connects the client to a server. serve serves it until the connection is over.
func (c *Client) Connect(s *Server) (serve func()) {
	*c = Client{Name: c.Name, ledger: c.ledger, server: s}
	c.conn = &conn{client: c, hooks: s.hooks, in: startup(c.Name)}
	mine := c.conn
	s.clients[c.Name] = c
	return func() {
		s.wire.ServeConn(mine)
		if c.conn == mine {
			c.lost()
		}
	}
}

// Lose is told that the server of a process has died.
func (c *Client) Lose(s *Server) {
	if c.server == s {
		c.lost()
	}
}

// lost: what it has not heard of may have happened, or not.
func (c *Client) lost() {
	if c.conn != nil {
		c.conn.closed = true
	}
	if c.sent != nil && c.sent.defines() && !c.sent.answered {
		c.ledger.making--
	}
	c.ledger.making -= c.spares
	*c = Client{Name: c.Name, ledger: c.ledger}
}

// Vanish breaks the connection off; the server learns of it when it reads or writes.
func (c *Client) Vanish() {
	if c.Connected() {
		c.server.hooks.Mark("client vanished")
		if c.sent != nil && c.sent.copies() {
			c.server.hooks.Mark("client vanished in a copy")
		}
		c.conn.closed = true
	}
}

// Cancel makes a connection that cancels the client's statement; nil if there is none to be
// cancelled. serve serves it.
func (c *Client) Cancel() (serve func()) {
	if !c.Connected() || c.sent == nil {
		return nil
	}
	s, mine := c.server, c.conn
	other := &Client{Name: c.Name, ledger: c.ledger, server: s}
	other.conn = &conn{client: other, hooks: s.hooks, in: cancelRequest(c.key)}
	return func() {
		s.wire.ServeConn(other.conn)
		if c.conn != mine || c.sent == nil || !s.hooks.Alive() {
			return
		}
		for _, i := range s.wire.Sessions() {
			if i.PID == binary.BigEndian.Uint32(c.key) && i.State == "active" {
				s.hooks.Mark("client cancelled")
				mine.cancelled, c.sent.cancelled = true, true
			}
		}
	}
}

// Leave ends the connection in agreement.
func (c *Client) Leave() { c.send('X') }

func (c *Client) send(kind byte, body ...[]byte) {
	if c.Connected() {
		c.conn.in = message(c.conn.in, kind, body...)
	}
}

// say sends a statement.
func (c *Client) say(s *statement) {
	if s.shape = c.Shape(s.table); s.shape == nil && s.table != "" {
		return
	}
	c.sent, c.data = s, nil
	if s.defines() { // from now on it may be so, or not
		c.ledger.making++
		c.ledger.begun++
		delete(c.ledger.there, spare)
	}
	if t, _ := c.view(parentTable); s.refreshes() && t != nil {
		s.before, s.txns = slices.Clone(c.ledger.rows(t)), len(c.ledger.DB.Txns)
	}
	s.begun, s.settled = c.ledger.begun, c.ledger.making == 0
	c.announce(s)
	sql := s.sql()
	c.server.hooks.Say("  client %s: %s", c.Name, sql)
	c.send('Q', append([]byte(sql), 0))
	if s.copies() {
		c.server.hooks.Mark("copy begun")
		if c.open {
			c.server.hooks.Mark("copy in a transaction")
		}
	}
}

// announce notes what rights a statement is about to change: nothing else tells of that.
func (c *Client) announce(s *statement) {
	switch {
	case c.txn == nil && (s.kind == grant || s.kind == revoke):
		s.committed = &Txn{edits: []edit{c.editOf(s)}, server: c.server}
		c.ledger.begins(s.committed)
	case s.kind == commit && c.txn != nil && len(c.txn.edits) > 0:
		c.txn.server = c.server
		c.ledger.begins(c.txn)
	}
}

// Shape is how a table of a name looks to the client; what it copies, as it did when the copy
// began. Nil: nobody knows.
func (c *Client) Shape(name string) *source.Version {
	if c.Copying() {
		return c.sent.shape
	}
	if name == "" || c.server == nil {
		return nil
	}
	_, v := c.view(name)
	if v == nil && name == spare {
		v = c.ledger.spareVersion()
	}
	return v
}

// frame sends the first n bytes of the data that are there as one message.
func (c *Client) frame(n int) {
	c.server.hooks.Mark("copy frame")
	if n == 0 {
		c.server.hooks.Mark("copy frame empty")
	}
	if n > 0 && n < len(c.data) {
		c.server.hooks.Mark("copy row across frames")
	}
	c.send('d', c.data[:n])
	c.data = c.data[n:]
}

// Rows sends rows of the client's COPY: the first cut bytes of what is to be sent stay for the
// next frame.
func (c *Client) Rows(rows []source.Row, keep func(n int) int) {
	for _, r := range rows {
		c.data = append(c.data, c.sent.line(r)...)
		c.sent.rows = append(c.sent.rows, r)
	}
	if len(rows) > 1 {
		c.server.hooks.Mark("copy frame of several rows")
	}
	c.frame(len(c.data) - keep(len(c.data)))
}

// Done, Fail, Bad and Empty are what else a client may send in a COPY: its end, or that it
// gives up, a row that cannot be read, a frame without data.
func (c *Client) Done() {
	if len(c.data) > 0 {
		c.frame(len(c.data))
	}
	c.sent.ended = true
	c.send('c')
}

// Fail gives the COPY up.
func (c *Client) Fail() {
	c.sent.failed = true
	c.server.hooks.Mark("copy failed by its client")
	c.send('f', []byte("enough\x00"))
}

// Bad sends a row that cannot be read.
func (c *Client) Bad() {
	c.sent.bad = true
	c.server.hooks.Mark("copy row refused")
	c.data = append(c.data, badLine...)
	c.frame(len(c.data))
}

// Empty sends a frame without data.
func (c *Client) Empty() { c.frame(0) }

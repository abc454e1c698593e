package planner

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
)

// cursor is an open cursor of DECLARE. It only goes forward; its plan is pinned when
// it is declared and runs at the first FETCH, which decides the format.
type cursor struct {
	sql     string
	hold    bool
	at      time.Time
	plan    *planned
	portal  *queryPortal
	columns []pgwire.Column
	formats []int16
	// bound is the name of the portal when it is one of a Bind, which runs by itself and
	// has a format; empty for a cursor of DECLARE.
	bound string
	// made is how many savepoints there were when it was declared.
	made int
}

// Options of DECLARE, as PostgreSQL's parser numbers them.
const (
	cursorScroll = 0x0002
	cursorHold   = 0x0020
)

func (s *session) closeCursors(held bool) {
	for name, c := range s.cursors {
		if held || !c.hold {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// bound notes a portal that goes with a savepoint.
func (t *transaction) bound(p *queryPortal) {
	if len(t.savepoints) == 0 {
		return
	}
	if t.portals == nil {
		t.portals = map[*queryPortal]int{}
	}
	t.portals[p] = len(t.savepoints)
}

// closeCursorsSince closes the cursors declared, and the portals bound, behind a number of
// savepoints.
func (s *session) closeCursorsSince(savepoints int) {
	for p, made := range s.tx.portals {
		if made > savepoints {
			p.gone = true
			p.finish()
		}
	}
	for name, c := range s.cursors {
		if c.made > savepoints {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// close ends the cursor, run or not.
func (c *cursor) close() {
	c.portal.Close()
	c.plan.holds.release()
}

func (s *session) prepareDeclare(sql string, n *pg.DeclareCursorStmt, types []uint32) (pgwire.Statement, error) {
	sel := n.Query.GetSelectStmt()
	if sel == nil {
		return nil, s.refuse(n.Query)
	}
	if n.Options&cursorScroll != 0 {
		return nil, pgerr.New(codes.FeatureNotSupported,
			"SCROLL cursors are not supported").WithHint("Declare it with NO SCROLL.")
	}
	q, err := s.prepareQuery(sql, sel, types)
	if err != nil {
		return nil, err
	}
	return &declareStatement{session: s, query: q, name: n.Portalname, hold: n.Options&cursorHold != 0}, nil
}

// declareStatement is DECLARE; unlike other utilities it takes parameters.
type declareStatement struct {
	session *session
	query   *queryStatement
	name    string
	hold    bool
}

// Empty implements pgwire.Statement.
func (*declareStatement) Empty() bool { return false }

// Params implements pgwire.Statement.
func (d *declareStatement) Params() []uint32 { return d.query.Params() }

// Columns implements pgwire.Statement.
func (*declareStatement) Columns() []pgwire.Column { return nil }

// AllowedInAborted implements pgwire.Statement.
func (*declareStatement) AllowedInAborted() bool { return false }

// Bind implements pgwire.Statement.
func (d *declareStatement) Bind(_ context.Context, values [][]byte, formats, _ []int16) (pgwire.Portal, error) {
	params, err := decodeParams(d.session.input(), d.query.Params(), values, formats)
	if err != nil {
		return nil, err
	}
	u := &utility{session: d.session, run: func(ctx context.Context, _ pgwire.Sink) (*result, error) {
		return &result{tag: "DECLARE CURSOR"}, d.session.declare(ctx, d, params)
	}}
	return &utilityPortal{utility: u}, nil
}

func (s *session) declare(ctx context.Context, d *declareStatement, params []*string) error {
	if !s.tx.open && !d.hold {
		return pgerr.New(codes.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	if s.cursors[d.name] != nil || s.startup.Portal != nil && s.startup.Portal(d.name) != nil {
		return pgerr.New(codes.DuplicateCursor, "cursor \"%s\" already exists", d.name)
	}
	if err := d.query.refresh(); err != nil {
		return err
	}
	p := d.query.portal(params, nil)
	s.tx.queried = true
	var plan *planned
	err := d.query.pinned(func(a *pgsql.Analysis) (err error) {
		if err = s.awaitPosition(ctx, a); err != nil {
			return err
		}
		snap, release := s.snapshot()
		defer release()
		plan, err = s.plan(ctx, snap, a, params, s.output(duckdb.OutputRows, p.columns, nil))
		if err == nil {
			s.engine.pinner.holdLogs(&plan.holds, snap)
		}
		return err
	})
	if err != nil {
		return clientError(ctx, err)
	}
	s.cursors[d.name] = &cursor{
		sql: d.query.sql, hold: d.hold, at: s.engine.deps.Clock.Now(), plan: plan, portal: p, columns: p.columns,
		made: len(s.tx.savepoints),
	}
	return nil
}

func (s *session) findCursor(name string) (*cursor, error) {
	c := s.cursors[name]
	if c == nil && s.startup.Portal != nil {
		if p, ok := s.startup.Portal(name).(*queryPortal); ok {
			return &cursor{portal: p, columns: p.columns, formats: p.formats, bound: name}, nil
		}
	}
	if c == nil {
		return nil, pgerr.New(codes.InvalidCursorName, "cursor \"%s\" does not exist", name)
	}
	return c, nil
}

// Cursor implements pgwire.CursorHolder.
func (s *session) Cursor(name string) pgwire.Portal {
	c := s.cursors[name]
	if c == nil {
		return nil
	}
	return &cursorPortal{fetchPortal{fetch: &fetchStatement{session: s, name: name, columns: c.columns}, left: math.MaxInt64}}
}

// cursorPortal hands out the rows of a cursor to an Execute of its name.
type cursorPortal struct{ fetchPortal }

// Execute implements pgwire.Portal.
func (p *cursorPortal) Execute(ctx context.Context, sink pgwire.Sink, maxRows int) (string, bool, error) {
	tag, done, err := p.fetchPortal.Execute(ctx, sink, maxRows)
	return strings.Replace(tag, "FETCH", "SELECT", 1), done, err
}

// Close implements pgwire.Portal.
func (p *cursorPortal) Close() {
	s := p.fetch.session
	if c := s.cursors[p.fetch.name]; c != nil {
		c.close()
		delete(s.cursors, p.fetch.name)
	}
}

// prepareFetch prepares FETCH and MOVE.
func (s *session) prepareFetch(n *pg.FetchStmt) (pgwire.Statement, error) {
	c, err := s.findCursor(n.Portalname)
	if err != nil {
		return nil, err
	}
	if n.Direction != pg.FetchDirection_FETCH_FORWARD && !(n.Direction == pg.FetchDirection_FETCH_RELATIVE &&
		n.HowMany == 1) || n.HowMany < 0 {
		return nil, pgerr.New(codes.ObjectNotInPrerequisiteState, "cursor can only scan forward").
			WithHint("Declare it with SCROLL option to enable backward scan.")
	}
	f := &fetchStatement{session: s, name: n.Portalname, move: n.Ismove, count: n.HowMany}
	if !n.Ismove {
		f.columns = c.columns
	}
	return f, nil
}

// fetchStatement is FETCH and MOVE.
type fetchStatement struct {
	session *session
	name    string
	move    bool
	count   int64
	columns []pgwire.Column
}

// Empty implements pgwire.Statement.
func (*fetchStatement) Empty() bool { return false }

// Params implements pgwire.Statement.
func (*fetchStatement) Params() []uint32 { return nil }

// Columns implements pgwire.Statement.
func (f *fetchStatement) Columns() []pgwire.Column { return f.columns }

// AllowedInAborted implements pgwire.Statement.
func (*fetchStatement) AllowedInAborted() bool { return false }

// Bind implements pgwire.Statement.
func (f *fetchStatement) Bind(_ context.Context, _ [][]byte, _, resultFormats []int16) (pgwire.Portal, error) {
	return &fetchPortal{fetch: f, formats: resultFormats, left: f.count}, nil
}

// fetchPortal hands out the rows of one FETCH.
type fetchPortal struct {
	fetch   *fetchStatement
	formats []int16
	left    int64
}

// Columns implements pgwire.Portal.
func (p *fetchPortal) Columns() []pgwire.Column { return p.fetch.columns }

// Execute implements pgwire.Portal.
func (p *fetchPortal) Execute(ctx context.Context, sink pgwire.Sink, maxRows int) (string, bool, error) {
	s := p.fetch.session
	if s.tx.aborted {
		return "", false, errAborted
	}
	c, err := s.findCursor(p.fetch.name)
	if err != nil {
		return "", false, err
	}
	s.enter()
	ctx, stop := s.limitTime(ctx)
	defer stop()
	want := min(p.left, math.MaxInt32)
	if maxRows > 0 {
		want = min(want, int64(maxRows))
	}
	n := 0
	if want > 0 {
		if n, err = s.fetch(ctx, c, p.formats, sink, int(want), p.fetch.move); err != nil {
			return "", false, clientError(ctx, err)
		}
	}
	p.left -= int64(n)
	word := "FETCH"
	if p.fetch.move {
		word = "MOVE"
	}
	return fmt.Sprintf("%s %d", word, n), c.portal.done || p.left <= 0 || maxRows == 0, nil
}

// Close implements pgwire.Portal.
func (*fetchPortal) Close() {}

func (s *session) fetch(ctx context.Context, c *cursor, formats []int16, sink pgwire.Sink, n int, move bool) (int,
	error,
) {
	if c.bound == "" && !c.portal.started {
		if err := c.open(ctx, s, formats, move); err != nil {
			s.failCursor(c)
			return 0, err
		}
	} else if !move && !sameFormats(formats, c.formats, len(c.columns)) {
		return 0, pgerr.New(codes.FeatureNotSupported, "the formats of a cursor's rows cannot change between fetches")
	}
	if move {
		sink = discard{sink}
	}
	got, err := c.portal.run(ctx, sink, n)
	if err != nil {
		s.failCursor(c)
	}
	return got, err
}

// failCursor forgets a cursor whose query failed, also one WITH HOLD: PostgreSQL runs
// those whole before they outlive their transaction, and there is none then.
func (s *session) failCursor(failed *cursor) {
	failed.portal.finish()
	if failed.bound != "" {
		s.startup.Unbind(failed.bound)
	}
	for name, c := range s.cursors {
		if c == failed {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// open runs the cursor's plan.
func (c *cursor) open(ctx context.Context, s *session, formats []int16, move bool) error {
	if !move {
		c.formats = formats
	}
	c.plan.Output = s.output(duckdb.OutputRows, c.columns, c.formats)
	rows, frame, err := s.run(ctx, c.plan)
	if err != nil {
		return err
	}
	c.portal.started, c.portal.rows = true, rows
	if frame == nil {
		c.portal.finish()
		return nil
	}
	c.portal.pending, c.portal.pendingRows = frame.Data, frame.Rows
	return nil
}

func sameFormats(a, b []int16, n int) bool {
	at := func(f []int16, i int) int16 {
		if i < len(f) {
			return f[i]
		}
		return 0
	}
	for i := range n {
		if at(a, i) != at(b, i) {
			return false
		}
	}
	return true
}

// discard is a sink that drops rows, for MOVE.
type discard struct{ pgwire.Sink }

// Rows implements pgwire.Sink.
func (discard) Rows([]byte, int) error { return nil }

func (s *session) prepareClose(n *pg.ClosePortalStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(context.Context, pgwire.Sink) (*result, error) {
		if n.Portalname == "" {
			s.closeCursors(true)
			return &result{tag: "CLOSE CURSOR ALL"}, nil
		}
		c, err := s.findCursor(n.Portalname)
		if err != nil {
			return nil, err
		}
		if c.bound != "" {
			s.startup.Unbind(n.Portalname)
			return &result{tag: "CLOSE CURSOR"}, nil
		}
		c.close()
		delete(s.cursors, n.Portalname)
		return &result{tag: "CLOSE CURSOR"}, nil
	}}, nil
}

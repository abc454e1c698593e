package planner

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/scroll"
	"github.com/skipprd/skipprd/wal/change"
)

// cursor is an open cursor of DECLARE. Its plan is pinned when it is declared and runs at the
// first FETCH, or at COMMIT if it outlives its transaction. Its rows are made in both formats:
// each FETCH asks for its own.
type cursor struct {
	sql  string
	hold bool
	// position is where it stands; kept are its rows so far, of one that PostgreSQL lets go back
	// without SCROLL only the last, and those that were left when it outlived its transaction.
	position *scroll.Position
	scroll   bool
	kept     *scroll.Kept
	at       time.Time
	plan     *planned
	portal   *queryPortal
	columns  []pgwire.Column
	formats  []int16 // of a portal of a Bind
	// binary says that a FETCH of a simple query sends its rows in binary.
	binary bool
	// bound is the name of the portal when it is one of a Bind, which runs by itself and
	// has a format; empty for a cursor of DECLARE.
	bound string
	// made is how many savepoints there were when it was declared.
	made int
	// committed says that the transaction that declared it was: it is the session's.
	committed bool
	declared
	// last is the row that it passed last, if it has tables and keeps no rows.
	last []byte
}

func (s *session) closeCursors(held bool) {
	for name, c := range s.cursors {
		if held || !c.hold {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// endCursors closes what goes with a transaction. One WITH HOLD stays if that was committed.
func (s *session) endCursors(commit bool) {
	for name, c := range s.cursors {
		if c.committed = c.committed || commit && c.hold; !c.committed {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// bound notes a portal that goes with the transaction, or with a savepoint.
func (t *transaction) bound(p *queryPortal) {
	if !t.open {
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
		if c.made > savepoints && !c.committed {
			c.close()
			delete(s.cursors, name)
		}
	}
}

// notInUse refuses to define, or to empty, tables that open cursors of the transaction read.
func (s *session) notInUse(tables []change.TableID, word string) error {
	for _, c := range s.cursors {
		for _, u := range c.portal.query.analysis.Uses {
			if id, ok := TableIDOf(u.Relation.OID); ok && !c.committed && slices.Contains(tables, id) {
				return pgerr.New(codes.ObjectInUse, "cannot %s \"%s\" because it is being used by active queries in this session", word, u.Relation.Name)
			}
		}
	}
	return nil
}

// close ends the cursor, run or not.
func (c *cursor) close() {
	c.portal.Close()
	c.plan.holds.release()
	if c.kept != nil {
		c.kept.Store.Close()
	}
}

func (s *session) prepareDeclare(sql string, n *pg.DeclareCursorStmt, types []uint32) (pgwire.Statement, error) {
	sel := n.Query.GetSelectStmt()
	if sel == nil {
		return nil, s.refuse(n.Query)
	}
	if err := pgsql.CheckDeclare(sql, n); err != nil {
		return nil, err
	}
	q, err := s.prepareQuery(sql, sel, types)
	if err != nil {
		return nil, err
	}
	if err := pgsql.CheckReadOnly(n); err != nil {
		return nil, err
	}
	d := &declareStatement{
		shown:   len(q.columns),
		session: s, query: q, name: n.Portalname, source: s.source, hold: n.Options&pgsql.CursorHold != 0,
		scroll: n.Options&pgsql.CursorScroll != 0, binary: n.Options&pgsql.CursorBinary != 0,
	}
	snap, release := s.snapshotForNames()
	env := s.env(s.namesOf(snap))
	d.recent = !d.scroll && n.Options&pgsql.CursorNoScroll == 0 && pgsql.GoesBack(sel, env)
	sel, d.tables = pgsql.KeyedRows(sel, len(q.columns), env, func(rel *pgsql.Relation) bool {
		return rel.Temp || s.mayTable(rel, right.Select) == nil
	})
	release()
	if len(d.tables) > 0 {
		d.query, err = s.prepareQuery(sql, sel, q.analysis.Params)
	}
	return d, err
}

// declareStatement is DECLARE; unlike other utilities it takes parameters.
type declareStatement struct {
	session *session
	query   *queryStatement
	name    string
	// source is the text that it came in.
	source string
	hold   bool
	// recent says that it goes back though it is not declared to.
	scroll, recent bool
	binary         bool
	// shown is how many columns the query has, which has those of the keys of tables besides.
	shown  int
	tables []pgsql.KeyedTable
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
	declared := declared{tables: d.tables, locks: len(d.query.sel.LockingClause) > 0}
	err := d.query.pinned(func(a *pgsql.Analysis) (err error) {
		if a, err = s.lockRows(ctx, a); err != nil {
			return err
		}
		if err = s.awaitPosition(ctx, a); err != nil {
			return err
		}
		snap, release := s.snapshot()
		defer release()
		plan, err = s.plan(ctx, snap, a, params, s.output(duckdb.OutputRowPairs, p.columns, nil))
		if err == nil {
			declared.mark = s.markChanges()
			declared.newest, err = newestSlices(snap, d.tables)
		}
		if err == nil {
			s.engine.pinner.holdLogs(&plan.holds, snap)
		}
		return err
	})
	if err != nil {
		return clientError(ctx, err)
	}
	c := &cursor{
		sql: d.source, hold: d.hold, at: s.engine.deps.Clock.Now(), plan: plan, portal: p, columns: p.columns[:d.shown], declared: declared,
		scroll: d.scroll || d.recent, binary: d.binary, made: len(s.tx.savepoints),
	}
	c.position = scroll.New(c.scroll)
	if c.scroll {
		c.kept = &scroll.Kept{Store: scroll.NewStore(s.engine.deps.Spill), Recent: d.recent}
	}
	s.cursors[d.name] = c
	if !s.tx.open { // its transaction ends with it, where nobody can cancel anything
		return s.holdCursors(ctx)
	}
	return nil
}

func (s *session) findCursor(name string) (*cursor, error) {
	c := s.cursors[name]
	if c == nil && s.startup.Portal != nil {
		if p, ok := s.startup.Portal(name).(*queryPortal); ok {
			if p.position == nil {
				p.position, p.pairs = scroll.New(false), !p.started
			}
			return &cursor{portal: p, columns: p.columns, formats: p.formats, bound: name, position: p.position}, nil
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
	return &cursorPortal{fetchPortal{fetch: &fetchStatement{session: s, name: name, columns: c.columns, count: scroll.All}}}
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
	f := &fetchStatement{session: s, name: n.Portalname, binary: c.binary, move: n.Ismove, count: n.HowMany, direction: directions[n.Direction]}
	if !n.Ismove {
		f.columns = c.columns
	}
	return f, nil
}

var directions = map[pg.FetchDirection]scroll.Direction{
	pg.FetchDirection_FETCH_FORWARD: scroll.Forward, pg.FetchDirection_FETCH_BACKWARD: scroll.Backward,
	pg.FetchDirection_FETCH_ABSOLUTE: scroll.Absolute, pg.FetchDirection_FETCH_RELATIVE: scroll.Relative,
}

// fetchStatement is FETCH and MOVE.
type fetchStatement struct {
	session   *session
	name      string
	move      bool
	binary    bool
	direction scroll.Direction
	count     int64
	columns   []pgwire.Column
}

// Binary implements pgwire.BinaryStatement.
func (f *fetchStatement) Binary() bool { return f.binary && !f.move }

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
	return &fetchPortal{fetch: f, formats: resultFormats}, nil
}

// fetchPortal hands out the rows of one FETCH.
type fetchPortal struct {
	fetch   *fetchStatement
	formats []int16
	// aimed says that step is what is left to do.
	aimed bool
	step  scroll.Step
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
	switch {
	case c.bound == "":
		sink = &scroll.Pairing{Sink: sink, Pairs: scroll.Pairs{
			Columns: len(c.portal.columns), Shown: len(c.columns), Formats: p.formats, Send: sink.Rows,
		}}
	case c.portal.pairs:
		sink = c.portal.pairing(sink, p.formats)
	}
	n, done, err := p.run(ctx, c, maxRows, &passing{session: s, cursor: c, formats: p.formats, sink: sink})
	if err != nil {
		return "", false, clientError(ctx, err)
	}
	word := "FETCH"
	if p.fetch.move {
		word = "MOVE"
	}
	return fmt.Sprintf("%s %d", word, n), done, nil
}

// run does the fetch, or goes on with it for at most maxRows rows (0: all).
func (p *fetchPortal) run(ctx context.Context, c *cursor, maxRows int, rows scroll.Rows) (n int64, done bool, err error) {
	if !p.aimed {
		p.aimed = true
		if p.step, n, err = c.position.Aim(ctx, rows, p.fetch.direction, p.fetch.count, p.fetch.move); err != nil || n > 0 {
			return n, true, err
		}
	}
	step := p.step
	if maxRows > 0 {
		step.Count = min(step.Count, int64(maxRows))
	}
	if n, err = c.position.Run(ctx, rows, step, !p.fetch.move); err != nil {
		return n, false, err
	}
	if p.step.Count != scroll.All {
		p.step.Count -= n
	}
	return n, maxRows == 0 || n < step.Count || p.step.Count == 0, nil
}

// Close implements pgwire.Portal.
func (*fetchPortal) Close() {}

// passing are a cursor's rows, which pass to a sink.
type passing struct {
	session *session
	cursor  *cursor
	formats []int16
	sink    pgwire.Sink
}

// Next implements scroll.Rows.
func (p *passing) Next(ctx context.Context, n int64, send bool) (int64, error) {
	if k := p.cursor.kept; k != nil {
		k.Send, k.Pull = p.sink.Rows, p.session.pull(p.cursor, p.sink)
		return k.Next(ctx, n, send)
	}
	sink := p.sink
	if !send {
		sink = scroll.Discard{Sink: sink}
	} else if p.cursor.bound != "" && !p.cursor.portal.pairs {
		if err := p.cursor.sameFormats(p.formats); err != nil {
			return 0, err
		}
	}
	if len(p.cursor.tables) > 0 {
		sink = scroll.Noting{Sink: sink, Last: &p.cursor.last}
	}
	return p.session.fetch(ctx, p.cursor, sink, n)
}

// Prior implements scroll.Rows.
func (p *passing) Prior(ctx context.Context, n int64, send bool) (int64, error) {
	k := p.cursor.kept
	k.Send = p.sink.Rows
	return k.Prior(ctx, n, send)
}

// fetch runs the cursor for n rows, scroll.All for the rest.
func (s *session) fetch(ctx context.Context, c *cursor, sink pgwire.Sink, n int64) (int64, error) {
	if c.bound == "" && !c.portal.started {
		if err := c.open(ctx, s); err != nil {
			s.failCursor(c)
			return 0, err
		}
	}
	limit := 0
	if n != scroll.All {
		limit = int(min(n, math.MaxInt))
	}
	got, err := c.portal.run(ctx, sink, limit)
	if err != nil {
		s.failCursor(c)
	}
	return int64(got), err
}

// pull appends rows of a cursor to those that are kept.
func (s *session) pull(c *cursor, sink pgwire.Sink) func(ctx context.Context, n int64) error {
	return func(ctx context.Context, n int64) error {
		_, err := s.fetch(ctx, c, scroll.Storing{Sink: sink, Kept: c.kept}, n)
		return err
	}
}

// holdCursors keeps the rows of the cursors WITH HOLD that a transaction leaves behind when it
// commits, all that are left: what they read is let go with it, and their errors are the
// commit's.
func (s *session) holdCursors(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.cursors)) {
		c := s.cursors[name]
		if !c.hold || c.committed {
			continue
		}
		if c.kept == nil {
			c.kept = &scroll.Kept{Store: scroll.NewStore(s.engine.deps.Spill)}
		}
		c.kept.Pull = s.pull(c, nil)
		if err := c.kept.Finish(ctx); err != nil {
			return clientError(ctx, err)
		}
	}
	return nil
}

// failCursor forgets a cursor whose query failed.
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
func (c *cursor) open(ctx context.Context, s *session) error {
	c.plan.Output = s.output(duckdb.OutputRowPairs, c.portal.columns, nil)
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

// sameFormats refuses to send rows in other formats than those they are made in.
func (c *cursor) sameFormats(formats []int16) error {
	at := func(f []int16, i int) int16 {
		if i < len(f) {
			return f[i]
		}
		return 0
	}
	for i := range c.columns {
		if at(formats, i) != at(c.formats, i) {
			return pgerr.New(codes.FeatureNotSupported, "the formats of a cursor's rows cannot change between fetches")
		}
	}
	return nil
}

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

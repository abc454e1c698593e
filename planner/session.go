package planner

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encname"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/advisory"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/grant"
	"github.com/skipprd/skipprd/planner/notify"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/planner/pgfunc/span"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/querylog"
	"github.com/skipprd/skipprd/planner/setting"
	"github.com/skipprd/skipprd/planner/temp"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// session is one client's SQL session. Used by one goroutine.
type session struct {
	// refreshes is the oid of the materialized view that a statement fills, 0 for none.
	refreshes uint32
	// acts is the role that it acts as while it does something for another, 0 for itself.
	acts    uint32
	engine  *Engine
	startup pgwire.Startup
	values  *setting.Values
	// login is the id of the role that it was opened for; became are those of the roles that it
	// has set since, by their names as they were.
	login    uint32
	became   map[string]uint32
	tx       transaction
	prepared *pgwire.Statements
	cursors  map[string]*cursor
	drawn    drawn
	steps    uint64 // see step
	// sequences are the states of its temporary sequences.
	sequences map[drafted]*sequence.Sequence
	// notes is what it listens to and notifies of, locks its advisory locks. warnings are to be
	// sent before the next rows.
	notes    *notify.Session
	locks    *advisory.Owner
	warnings []*pgerr.Error
	// seen are the sessions that the running statement sees, once it has signalled some; nil:
	// those that there are.
	seen []SessionInfo
	// log logs its statements since it began; without a Log it does not.
	log   querylog.Session
	began time.Time
	// pieces are where the statements of the last simple query started in it, for
	// error positions.
	pieces []pgsql.Piece
	// whole is the text of that query, source the one that the statement being prepared came in.
	whole, source string
	// temp has its temporary tables and views; nil: it never made any.
	temp *temp.Space
	// drafted and pinDrafted are the drafts that were made last, of the newest moment and of the
	// transaction's pin; closed. draftNames are the names in one of them.
	drafted, pinDrafted *catalog.Snapshot
	draftNames          *names
	// encoding is the client's, as of a version of the settings.
	encoding struct {
		name    string
		version uint64
		known   bool
	}
}

func newSession(e *Engine, st pgwire.Startup, values *setting.Values) *session {
	if st.Statements == nil {
		st.Statements = &pgwire.Statements{}
	}
	if st.Wake == nil {
		st.Wake = func() {}
	}
	return &session{
		engine: e, startup: st, values: values, prepared: st.Statements, cursors: map[string]*cursor{},
		notes: e.hub.Session(st.PID, st.Wake), locks: e.advisory.Owner(st.PID),
	}
}

// ClientEncoding implements pgwire.EncodedSession.
func (s *session) ClientEncoding() string {
	if v := s.values.Version(); !s.encoding.known || s.encoding.version != v {
		s.encoding.name, _ = encname.Own(s.values.Value("client_encoding"))
		s.encoding.version, s.encoding.known = v, true
	}
	return s.encoding.name
}

// Parameters implements pgwire.Session.
func (s *session) Parameters() map[string]string { return s.values.Reported() }

// Split implements pgwire.Session.
func (s *session) Split(sql string) ([]string, error) {
	s.pieces = nil
	pieces, err := pgsql.Split(sql, ddl.IsOurs)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(pieces))
	for i, p := range pieces {
		out[i] = p.SQL
	}
	s.pieces, s.whole = pieces, sql
	return out, nil
}

// offset takes the place of the next statement of a simple query.
func (s *session) offset(sql string) int32 {
	if len(s.pieces) > 0 && s.pieces[0].SQL == sql {
		off := s.pieces[0].Offset
		s.pieces, s.source = s.pieces[1:], s.whole
		return off
	}
	s.pieces, s.source = nil, sql
	return 0
}

// Status implements pgwire.Session.
func (s *session) Status() pgwire.TxStatus {
	switch {
	case s.tx.aborted:
		return pgwire.Aborted
	case s.tx.open:
		return pgwire.InTx
	}
	return pgwire.Idle
}

// IdleTimeout implements pgwire.IdleLimiter.
func (s *session) IdleTimeout() time.Duration {
	if s.tx.open {
		return setting.Duration(s.values.Value("idle_in_transaction_session_timeout"))
	}
	return setting.Duration(s.values.Value("idle_session_timeout"))
}

// Fail implements pgwire.Session.
func (s *session) Fail() {
	if !s.tx.open {
		_ = s.endTransaction(context.Background(), false) // a rollback cannot fail
		return
	}
	if n := len(s.tx.savepoints); n > 0 {
		s.undo(n - 1)
	} else {
		s.abort()
	}
	s.tx.aborted = true
}

// abort undoes what the transaction has done and lets go of what it holds. The transaction stays
// open.
func (s *session) abort() {
	for p := range s.tx.portals {
		p.finish()
	}
	startedAt := s.tx.startedAt
	_ = s.endTransaction(context.Background(), false) // a rollback cannot fail
	s.tx = transaction{startedAt: startedAt, implicit: true}
	s.values.Begin()
	s.open()
}

// Sync implements pgwire.Session.
func (s *session) Sync(ctx context.Context, failed bool) error {
	if s.tx.open {
		return nil
	}
	ctx, stop := s.limitTime(ctx)
	defer stop()
	return s.endTransaction(ctx, !failed)
}

// Close implements pgwire.Session.
func (s *session) Close() {
	s.closed()
	s.closeCursors(true)
	s.tx.unpin()
	s.notes.Unlisten("")
	s.locks.Close()
	if s.temp != nil {
		s.temp.Close()
	}
}

// env is what the meaning of statements depends on now.
func (s *session) env(n *names) *pgsql.Env {
	user := s.user()
	return &pgsql.Env{
		Resolver: n, SearchPath: s.path(n), User: user, SessionUser: s.authorized(), Database: s.engine.deps.Database, Version: s.engine.deps.Version,
		PID: s.startup.PID, Server: s.startup.LocalAddr, Setting: s.values.Get, Examines: s.examines, Functions: s.engine.functions, TempSchema: n.temp,
		Refreshes: s.refreshes,
	}
}

// path is the search path: without the schemas that the role may not use.
func (s *session) path(n *names) []string {
	out := n.searchPath(s.values.Value("search_path"), s.user())
	b := s.book()
	role := s.who(b).Current
	if b.Superuser(role) {
		return out
	}
	return slices.DeleteFunc(out, func(name string) bool { return s.mayEnter(b, role, name) != nil })
}

// systemEnv is what system relations see in a statement.
func (s *session) systemEnv(snap *catalog.Snapshot, n *names) *SystemEnv {
	d := &s.engine.deps
	env := &SystemEnv{
		Snapshot: snap, Now: d.Clock.Now(), Started: d.Started, User: s.user(), Database: d.Database, Version: d.Version,
		PID: s.startup.PID, SearchPath: s.path(n), Rights: s.book(),
		Settings: s.values.All(), Sessions: d.Sessions,
	}
	env.Shown = s.shown
	env.Locks, env.Copies = s.engine.advisory.List, s.engine.copies.List
	if own := s.engine.deps.Own; own != nil {
		env.TableLocks = own.Held().List
	}
	env.Role = s.who(env.Rights).Current
	switch {
	case s.seen != nil:
		env.Sessions = func() []SessionInfo { return s.seen }
	case env.Sessions == nil:
		env.Sessions = func() []SessionInfo { return nil }
	}
	for _, name := range s.prepared.Names() {
		p := s.prepared.Get(name)
		env.Prepared = append(env.Prepared, PreparedInfo{
			Name: name, SQL: p.Text, At: p.At, Params: p.Params(), FromSQL: p.FromSQL,
		})
	}
	for name, c := range s.cursors {
		env.Cursors = append(env.Cursors, CursorInfo{Name: name, SQL: c.sql, Hold: c.hold, Scroll: c.scroll, Binary: c.binary, At: c.at})
	}
	slices.SortFunc(env.Cursors, func(a, b CursorInfo) int { return strings.Compare(a.Name, b.Name) })
	return env
}

// input is how the session reads values.
func (s *session) input() encode.Input {
	in := encode.InputOf(s.values.Value("DateStyle"), s.values.Value("IntervalStyle"))
	plain, zone := in, s.values.Value("TimeZone")
	in.Ranges = func(oid uint32, text string) (string, error) {
		local, err := pgfunc.Local(zone)
		if err != nil {
			return "", err
		}
		return span.Reader{Input: plain, Local: local}.Canonical(oid, text)
	}
	return in
}

// format is how the session renders values.
func (s *session) format() duckdb.Format {
	digits, err := strconv.Atoi(s.values.Value("extra_float_digits"))
	if err != nil {
		digits = 1
	}
	return duckdb.Format{
		TimeZone: s.values.Value("TimeZone"), DateStyle: s.values.Value("DateStyle"),
		IntervalStyle: s.values.Value("IntervalStyle"), ByteaOutput: s.values.Value("bytea_output"),
		ExtraFloatDigits: digits,
	}
}

// row encodes a row that the server makes itself.
func (s *session) row(dst []byte, columns []pgwire.Column, formats []int16, values []any) ([]byte, error) {
	cols := make([]encode.Column, len(columns))
	for i, c := range columns {
		cols[i] = encode.Column{Name: c.Name, TypeOID: c.TypeOID, TypMod: c.TypMod}
		if i < len(formats) {
			cols[i].Format = formats[i]
		}
	}
	return encode.AppendRow(dst, encode.Format(s.format()), cols, values)
}

// tell sends the settings that changed to the client.
func (s *session) tell(sink pgwire.Sink) error {
	for _, c := range s.values.Changes() {
		if err := sink.ParameterStatus(c.Name, c.Value); err != nil {
			return err
		}
	}
	return nil
}

// transaction is the state of the session's transaction.
type transaction struct {
	// open says that BEGIN started it; implicit that a statement did.
	open, implicit, aborted bool
	startedAt               time.Time
	// pin is the catalog moment that all queries of a REPEATABLE READ transaction see.
	pin *catalog.Snapshot
	// holds are of the pin.
	holds   holds
	queried bool
	// reached are the positions that its queries have waited for.
	reached    []awaited
	savepoints []savepoint
	// portals are those bound in it that are open, and behind how many savepoints.
	portals map[*queryPortal]int
	// defined is what it does to tables of our own, temporary ones, views and schemas, in order.
	defined []*define.Change
	// changes are what it has changed in tables of our own, of which writes has those
	// that it holds, by face.
	changes *write.Changes
	writes  map[change.TableID]*write.Table
	holder  TableHolder
	// checks are what is left to check of foreign keys, immediate those that the transaction has
	// named in SET CONSTRAINTS, by their object id, 0 for all.
	checks    []foreignCheck
	immediate map[uint32]bool
	// rights are what it has changed of roles and privileges.
	rights []grant.Op
	// sequences are those that it makes or changes, as it has drawn from them; restarts those
	// that begin anew when it commits.
	sequences map[drafted]*sequence.Sequence
	restarts  []*sequence.Sequence
	// committing says that what is defined is being done, and not only shown.
	committing bool
	// before is what subqueries of the RETURNING that begins see of changes, by the
	// relation's oid; nil otherwise.
	before map[uint32]*duckdb.Own
	// moment is what all of a statement with others in its WITH reads, nil for the newest.
	moment *catalog.Snapshot
}

type savepoint struct {
	name string
	mark int
	// changes is the mark of the transaction's changes, defined how many it has defined, rights
	// how many changes of rights it has made, restarts how many sequences begin anew.
	changes, defined, rights, restarts int
	// checks is how much there is left to check, immediate the transaction's.
	checks    int
	immediate map[uint32]bool
	// notes and locks are the marks of what it has notified of and locked.
	notes notify.Mark
	locks int
	// tables is the mark of the tables that it holds.
	tables int
	// temp is the mark of what it has changed in temporary tables.
	temp int
}

func (t *transaction) unpin() {
	t.holds.release()
	if t.pin != nil {
		t.pin.Close()
		t.pin = nil
	}
	t.forget()
}

// forget gives up what the transaction has changed.
func (t *transaction) forget() {
	if t.changes != nil {
		t.changes.Release()
	}
	if t.holder != nil {
		t.holder.Release()
	}
	t.changes, t.holder, t.writes = nil, nil, nil
}

// enter begins an implicit transaction unless one runs.
func (s *session) enter() {
	if s.tx.open || s.tx.implicit {
		return
	}
	s.tx = transaction{implicit: true, startedAt: s.engine.deps.Clock.Now()}
	s.values.Begin()
	if s.values.Value("default_transaction_read_only") == "on" { // each change of a setting has plans made anew
		s.values.ForceLocal("transaction_read_only", "on")
	}
}

// endTransaction ends the transaction, if any. One that cannot be committed is rolled back.
func (s *session) endTransaction(ctx context.Context, commit bool) error {
	if !s.tx.open && !s.tx.implicit {
		return nil
	}
	err := s.commit(ctx, commit)
	commit = commit && err == nil
	s.endCursors(commit)
	if commit {
		s.values.Commit()
	} else {
		s.values.Rollback()
	}
	s.tx.unpin()
	s.tx = transaction{}
	s.notes.End(commit)
	s.locks.Release(0)
	return err
}

// repeatable reports whether all queries of the transaction see one moment.
func (s *session) repeatable() bool {
	level := s.values.Value("transaction_isolation")
	return s.tx.open && (level == "repeatable read" || level == "serializable")
}

// snapshot returns the catalog moment of a statement; release lets go of it.
func (s *session) snapshot() (snap *catalog.Snapshot, release func()) {
	if s.tx.moment != nil {
		return s.tx.moment, func() {}
	}
	if s.repeatable() {
		if s.tx.pin == nil {
			s.tx.pin = s.engine.deps.Catalog.Snapshot()
			s.tx.holds = s.engine.pinner.holdAll(s.tx.pin)
		}
		return s.pinned()
	}
	return s.now()
}

// held says that snapshot gives one moment each time.
func (s *session) held() bool { return s.repeatable() || s.tx.moment != nil }

var errAborted = pgerr.New(codes.InFailedSQLTransaction,
	"current transaction is aborted, commands ignored until end of transaction block")

// snapshotForNames is where a statement's names are looked up: the pinned moment of
// the transaction once there is one.
func (s *session) snapshotForNames() (snap *catalog.Snapshot, release func()) {
	if s.tx.pin != nil && s.repeatable() {
		return s.pinned()
	}
	return s.now()
}

package planner

import (
	"context"
	"slices"
	"strings"

	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

func warning(code codes.Code, format string, args ...any) *pgerr.Error {
	e := pgerr.New(code, format, args...)
	e.Severity = "WARNING"
	return e
}

var errNoTransaction = warning(codes.NoActiveSQLTransaction, "there is no transaction in progress")

// prepareTransaction prepares BEGIN, COMMIT, ROLLBACK and the savepoint statements.
func (s *session) prepareTransaction(n *pg.TransactionStmt) (pgwire.Statement, error) {
	u := &utility{session: s, outside: true}
	switch n.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
		tag := "BEGIN"
		if n.Kind == pg.TransactionStmtKind_TRANS_STMT_START {
			tag = "START TRANSACTION"
		}
		u.run = func(_ context.Context, sink pgwire.Sink) (*result, error) { return s.begin(tag, n.Options, sink) }
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		u.anyTime = true
		commit := n.Kind == pg.TransactionStmtKind_TRANS_STMT_COMMIT
		u.run = func(ctx context.Context, sink pgwire.Sink) (*result, error) { return s.end(ctx, commit, n.Chain, sink) }
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		u.run = func(context.Context, pgwire.Sink) (*result, error) { return s.savepoint(n.SavepointName) }
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		u.run = func(context.Context, pgwire.Sink) (*result, error) { return s.releaseSavepoint(n.SavepointName) }
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		u.anyTime = true
		u.run = func(context.Context, pgwire.Sink) (*result, error) { return s.rollbackTo(n.SavepointName) }
	default:
		return nil, pgerr.New(codes.FeatureNotSupported, "two-phase commit is not supported")
	}
	if s.tx.aborted && !u.anyTime {
		return nil, errAborted
	}
	return u, nil
}

func (s *session) begin(tag string, options []*pg.Node, sink pgwire.Sink) (*result, error) {
	if s.tx.open {
		if err := s.notice(sink, warning(codes.ActiveSQLTransaction,
			"there is already a transaction in progress")); err != nil {
			return nil, err
		}
		return &result{tag: tag}, s.transactionModes(options)
	}
	s.open()
	return &result{tag: tag}, s.transactionModes(options)
}

// open starts a transaction block; an implicit transaction becomes one.
func (s *session) open() {
	if !s.tx.implicit {
		s.tx = transaction{startedAt: s.engine.deps.Clock.Now()}
		s.values.Begin()
	}
	s.tx.open, s.tx.implicit = true, false
	s.values.ForceLocal("transaction_isolation", s.values.Value("default_transaction_isolation"))
	s.values.ForceLocal("transaction_read_only", s.values.Value("default_transaction_read_only"))
}

// transactionModes applies ISOLATION LEVEL, READ ONLY and DEFERRABLE.
func (s *session) transactionModes(options []*pg.Node) error {
	for _, o := range options {
		d := o.GetDefElem()
		c := d.GetArg().GetAConst()
		switch d.GetDefname() {
		case "transaction_isolation":
			level := c.GetSval().GetSval()
			if s.tx.queried && level != s.values.Value("transaction_isolation") {
				return pgerr.New(codes.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query")
			}
			s.values.ForceLocal("transaction_isolation", level)
		case "transaction_read_only", "transaction_deferrable":
			on := "off"
			if c.GetIval().GetIval() != 0 {
				on = "on"
			}
			s.values.ForceLocal(d.Defname, on)
		}
	}
	return nil
}

// end is COMMIT and ROLLBACK. COMMIT of an aborted transaction rolls back.
func (s *session) end(ctx context.Context, commit, chain bool, sink pgwire.Sink) (*result, error) {
	tag := "ROLLBACK"
	if commit && !s.tx.aborted {
		tag = "COMMIT"
	}
	if !s.tx.open {
		if chain {
			return nil, pgerr.New(codes.NoActiveSQLTransaction, "%s AND CHAIN can only be used in transaction blocks", tag)
		}
		if err := s.endTransaction(ctx, commit); err != nil {
			return nil, err
		}
		return &result{tag: tag}, s.notice(sink, errNoTransaction)
	}
	isolation, readOnly := s.values.Value("transaction_isolation"), s.values.Value("transaction_read_only")
	if err := s.endTransaction(ctx, tag == "COMMIT"); err != nil {
		return nil, err
	}
	if chain {
		s.open()
		s.values.ForceLocal("transaction_isolation", isolation)
		s.values.ForceLocal("transaction_read_only", readOnly)
	}
	return &result{tag: tag}, nil
}

func (s *session) inBlock(what string) error {
	if s.tx.open {
		return nil
	}
	return pgerr.New(codes.NoActiveSQLTransaction, "%s can only be used in transaction blocks", what)
}

func (s *session) savepoint(name string) (*result, error) {
	if err := s.inBlock("SAVEPOINT"); err != nil {
		return nil, err
	}
	s.mark(name)
	return &result{tag: "SAVEPOINT"}, nil
}

// mark makes a savepoint, and gives its index.
func (s *session) mark(name string) int {
	m := s.markChanges()
	s.tx.savepoints = append(s.tx.savepoints, savepoint{
		name: name, mark: s.values.Mark(), changes: m.kept, temp: m.temp, defined: len(s.tx.defined), rights: len(s.tx.rights), restarts: len(s.tx.restarts),
		checks: m.checks, immediate: s.tx.immediate,
		notes: s.notes.Mark(), locks: s.locks.Mark(), tables: s.markTables(),
	})
	return len(s.tx.savepoints) - 1
}

// findSavepoint returns the index of the newest savepoint of a name.
func (s *session) findSavepoint(name string) (int, error) {
	for i := len(s.tx.savepoints) - 1; i >= 0; i-- {
		if s.tx.savepoints[i].name == name {
			return i, nil
		}
	}
	return 0, pgerr.New(codes.InvalidSavepointSpecification, "savepoint \"%s\" does not exist", name)
}

func (s *session) releaseSavepoint(name string) (*result, error) {
	if err := s.inBlock("RELEASE SAVEPOINT"); err != nil {
		return nil, err
	}
	i, err := s.findSavepoint(name)
	if err != nil {
		return nil, err
	}
	s.release(i)
	return &result{tag: "RELEASE"}, nil
}

// release forgets a savepoint and those since; what was done since stays done.
func (s *session) release(i int) {
	for _, c := range s.cursors { // theirs is the savepoint around it now
		c.made = min(c.made, i)
	}
	for p, made := range s.tx.portals {
		s.tx.portals[p] = min(made, i)
	}
	s.values.Release(s.tx.savepoints[i].mark)
	s.tx.savepoints = s.tx.savepoints[:i]
}

func (s *session) rollbackTo(name string) (*result, error) {
	if err := s.inBlock("ROLLBACK TO SAVEPOINT"); err != nil {
		return nil, err
	}
	i, err := s.findSavepoint(name)
	if err != nil {
		return nil, err
	}
	s.undo(i)
	s.tx.savepoints = s.tx.savepoints[:i+1]
	s.tx.aborted = false
	return &result{tag: "ROLLBACK"}, nil
}

// undo takes back what the transaction has done since a savepoint, and lets go of what it has
// got since.
func (s *session) undo(i int) {
	to := &s.tx.savepoints[i]
	s.closeCursorsSince(i)
	s.values.RollbackTo(to.mark)
	s.rollbackChanges(changesMark{to.changes, to.temp, to.checks})
	s.tx.immediate = to.immediate
	s.redefined()
	for _, c := range s.tx.defined[to.defined:] {
		if c.Makes != nil {
			delete(s.tx.writes, c.Makes.ID)
		}
		for _, id := range c.Alters { // it has not changed them
			delete(s.tx.writes, id)
		}
	}
	if !mutant.On(mutant.SavepointDefined) {
		s.tx.defined = s.tx.defined[:to.defined]
	}
	s.tx.rights = s.tx.rights[:to.rights]
	s.tx.restarts = s.tx.restarts[:to.restarts]
	s.notes.RollbackTo(to.notes)
	s.locks.Release(to.locks)
	if s.tx.holder != nil {
		for _, id := range s.tx.holder.ReleaseTo(to.tables) { // others may change them now
			delete(s.tx.writes, id)
		}
	}
}

// markTables is where the locks on tables are.
func (s *session) markTables() int {
	if s.tx.holder == nil {
		return 0
	}
	return s.tx.holder.Mark()
}

// now returns the catalog's newest moment, with what the session has for itself and what the
// transaction has defined.
func (s *session) now() (snap *catalog.Snapshot, release func()) {
	snap = s.engine.deps.Catalog.Snapshot()
	if s.temp == nil && len(s.tx.defined)+len(s.tx.rights) == 0 {
		return snap, snap.Close
	}
	defer snap.Close()
	if again := snap.Again(s.drafted); again != nil {
		return again, again.Close
	}
	draft, err := s.engine.deps.Catalog.Draft(s.draft)
	if err != nil && s.temp != nil { // others have made it impossible, and its commit will say so
		draft, err = s.engine.deps.Catalog.Draft(func(txn *catalog.Txn) error { s.temp.Include(txn); return nil })
	}
	if err != nil {
		snap = s.engine.deps.Catalog.Snapshot()
		return snap, snap.Close
	}
	s.drafted = draft
	return draft, draft.Close
}

// pinned is the moment that the transaction sees, with what the session has for itself and what the
// transaction has defined.
func (s *session) pinned() (snap *catalog.Snapshot, release func()) {
	pin := s.tx.pin
	if s.temp == nil && len(s.tx.defined) == 0 {
		return pin, func() {}
	}
	if again := pin.Again(s.pinDrafted); again != nil {
		return again, again.Close
	}
	draft, err := s.engine.deps.Catalog.DraftOn(pin, s.draftPinned)
	if err != nil {
		return pin, func() {}
	}
	s.pinDrafted = draft
	return draft, draft.Close
}

// draft does to a draft what the session has for itself and what its transaction defines.
func (s *session) draft(txn *catalog.Txn) error {
	if err := s.draftPinned(txn); err != nil {
		return err
	}
	return s.tx.applyRights(txn)
}

// draftPinned is draft without rights, which are those of the present moment always.
func (s *session) draftPinned(txn *catalog.Txn) error {
	if s.temp != nil {
		s.temp.Include(txn)
	}
	for _, c := range s.tx.defined {
		if err := c.Draft(txn); err != nil {
			return err
		}
	}
	return nil
}

// redefined has drafts made anew: what they are made of is not the same any more.
func (s *session) redefined() { s.drafted, s.pinDrafted = nil, nil }

// commit makes durable what the transaction did, if it is to be committed, and keeps what the
// session has for itself, or takes that back.
func (s *session) commit(ctx context.Context, commit bool) error {
	var after *catalog.Temporary
	var err error
	if commit {
		if err = clientError(ctx, s.checkForeign(ctx, true)); err == nil {
			err = s.holdCursors(ctx)
		}
	}
	if commit && err == nil && s.temp != nil {
		after, err = s.temporaryAfter()
	}
	if commit && err == nil {
		err = s.notes.Prepare()
	}
	if (commit || mutant.On(mutant.RolledBackKept)) && err == nil {
		s.tx.restarts = slices.DeleteFunc(s.tx.restarts, func(r *sequence.Sequence) bool { return s.altered(r.ID) })
		if err = s.commitRights(ctx); err == nil {
			err = s.commitChanges(ctx)
		}
		if err == nil {
			s.commitRestarts(ctx)
		}
	}
	switch {
	case s.temp == nil:
	case commit && err == nil:
		s.temp.Keep(after)
	default:
		s.temp.Rollback()
	}
	s.redefined()
	return err
}

// temporaryAfter is what the session has for itself when its transaction has committed.
func (s *session) temporaryAfter() (*catalog.Temporary, error) {
	if len(s.tx.defined) == 0 {
		return s.temp.Objects(), nil
	}
	draft, err := s.engine.deps.Catalog.Draft(s.draft)
	if err != nil {
		return nil, err // others have made it impossible
	}
	defer draft.Close()
	return s.temp.After(draft), nil
}

// openTemp gives out the number of a temporary table or view, if the session may make any.
func (s *session) openTemp() (change.TableID, error) {
	b := s.book()
	if b.Has(s.who(b).Current, right.Object{Class: right.Database}, right.Temporary) == 0 {
		return 0, pgerr.New(codes.InsufficientPrivilege, "permission denied to create temporary tables in database \"%s\"", s.engine.deps.Database)
	}
	if s.temp == nil {
		s.temp = s.engine.temp.Open(s.startup.PID)
		s.redefined()
	}
	return s.engine.temp.Reserve()
}

// changesOf are the changes that a table's are part of.
func (s *session) changesOf(t *write.Table) *write.Changes {
	if t.Temp {
		return s.temp.Rows
	}
	return s.tx.changes
}

// changesMark is where the session's changes of rows are, to come back to.
type changesMark struct{ kept, temp, checks int }

func (s *session) markChanges() changesMark {
	m := changesMark{kept: s.tx.changes.Mark(), checks: len(s.tx.checks)}
	if s.temp != nil {
		m.temp = s.temp.Rows.Mark()
	}
	return m
}

func (s *session) rollbackChanges(m changesMark) {
	if !mutant.On(mutant.SavepointKept) {
		s.tx.changes.Rollback(m.kept)
	}
	if s.temp != nil {
		s.temp.Rows.Rollback(m.temp)
	}
	s.tx.checks = s.tx.checks[:min(m.checks, len(s.tx.checks))]
}

// writableTemp gives a temporary table as it is. It needs no lock, nor does a read-only
// transaction keep from it.
func (s *session) writableTemp(rel *pgsql.Relation) (*write.Table, error) {
	snap, release := s.snapshotForNames()
	defer release()
	id, _ := TableIDOf(rel.OID)
	t, err := snap.TableByFace(id)
	if err != nil {
		return nil, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", rel.Name)
	}
	return write.Of(t), nil
}

// commitChanges makes what the transaction has changed durable.
func (s *session) commitChanges(ctx context.Context) error {
	none := s.tx.changes == nil || s.tx.changes.Empty()
	switch {
	case s.tx.defines(), len(s.tx.rights) > 0 && !none:
		return s.commitDefined(ctx)
	case none:
		return nil
	}
	changes, holder := s.tx.changes, s.tx.holder
	s.tx.changes, s.tx.holder = nil, nil // the commit's, whose fate may be open for a while
	if mutant.On(mutant.OwnLockEarly) {
		holder.Release()
	}
	defer waits.On(ctx, waits.Commit)()
	holder.Part()
	return s.engine.deps.Own.Commit(ctx, changes, holder.Release)
}

// setTransaction is SET TRANSACTION and SET SESSION CHARACTERISTICS.
func (s *session) setTransaction(n *pg.VariableSetStmt, sink pgwire.Sink) error {
	switch n.Name {
	case "TRANSACTION":
		if !s.tx.open {
			return s.notice(sink, warning(codes.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks"))
		}
		return s.transactionModes(n.Args)
	case "SESSION CHARACTERISTICS":
		for _, o := range n.Args {
			d := o.GetDefElem()
			value := d.GetArg().GetAConst().GetSval().GetSval()
			if value == "" {
				value = "off"
				if d.GetArg().GetAConst().GetIval().GetIval() != 0 {
					value = "on"
				}
			}
			if err := s.values.Set("default_"+d.Defname, value, false); err != nil {
				return err
			}
		}
		return nil
	}
	return pgerr.New(codes.FeatureNotSupported, "SET %s is not supported", strings.ToUpper(n.Name))
}

// includeRekeyed is include, of a change that may give a table another key: before, what the log
// has of the table goes into the lake, since the rule for rows there depends on the key, and what
// the transaction itself has changed in it is put by the new one.
func (s *session) includeRekeyed(ctx context.Context, c *define.Change) error {
	if c.Rekeyed == 0 {
		return s.include(c)
	}
	snap, release := s.now()
	t, err := snap.TableByFace(c.Rekeyed)
	release()
	if err != nil {
		return err
	}
	before, alone := write.Of(t), t.Temp != "" || s.tx.makes(c.Rekeyed)
	if !alone {
		if err := s.engine.deps.Own.Settle(ctx, t.ID); err != nil {
			return clientError(ctx, err)
		}
	}
	if err := s.include(c); err != nil {
		return err
	}
	snap, release = s.now()
	t, err = snap.TableByFace(c.Rekeyed)
	release()
	if changes := s.changesOf(before); err == nil && changes != nil {
		err = changes.Rekey(before, write.Of(t), alone)
	}
	if err != nil { // what is defined is known only with it
		s.tx.defined = s.tx.defined[:len(s.tx.defined)-1]
		s.redefined()
	}
	return err
}

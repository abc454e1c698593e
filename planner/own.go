package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/define"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/temp"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/mutant"
)

// prepareDefine prepares a statement that changes what tables of our own, views and schemas
// there are. It takes effect when its transaction commits.
func (s *session) prepareDefine(sql string, n *pg.Node) (pgwire.Statement, error) {
	if d := n.GetDropStmt(); d != nil {
		if hint := s.dropHint(d); hint != "" {
			return nil, pgerr.New(codes.ObjectNotInPrerequisiteState, "cannot drop a %s that is filled by a pipeline", strings.ToLower(strings.TrimPrefix(d.RemoveType.String(), "OBJECT_"))).
				WithHint("%s", hint)
		}
	}
	word := definedWord(n)
	used := word
	if n.GetIndexStmt() != nil {
		used = "CREATE INDEX"
	}
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		if alter := n.GetAlterTableStmt(); alter != nil {
			if done, err := s.retyped(ctx, sql, alter, sink); done || err != nil {
				return &result{tag: word}, err
			}
		}
		c, err := s.define(ctx, sql, word, sink, func(c *define.Context) (*define.Change, error) {
			change, err := define.Plan(n, c)
			if err == nil && (n.GetAlterTableStmt() != nil || n.GetDropStmt() != nil || n.GetIndexStmt() != nil) {
				err = s.notInUse(change.Alters, used)
			}
			return change, err
		})
		if err == nil && c.Refill != nil {
			err = s.compute(ctx, c.Refill)
		}
		if err != nil {
			return nil, err
		}
		return &result{tag: c.Tag}, nil
	}}, nil
}

// definedWord names a statement in messages.
func definedWord(n *pg.Node) string {
	switch v := n.Node.(type) {
	case *pg.Node_CreateStmt:
		return "CREATE TABLE"
	case *pg.Node_CreateSchemaStmt:
		return "CREATE SCHEMA"
	case *pg.Node_ViewStmt:
		return "CREATE VIEW"
	case *pg.Node_CommentStmt:
		return "COMMENT"
	case *pg.Node_DropStmt:
		switch v.DropStmt.RemoveType {
		case pg.ObjectType_OBJECT_VIEW:
			return "DROP VIEW"
		case pg.ObjectType_OBJECT_MATVIEW:
			return "DROP MATERIALIZED VIEW"
		case pg.ObjectType_OBJECT_SCHEMA:
			return "DROP SCHEMA"
		}
		return "DROP TABLE"
	}
	return "ALTER TABLE"
}

// define plans a change and adds it to the transaction. word names the statement.
func (s *session) define(ctx context.Context, sql, word string, sink pgwire.Sink, plan func(*define.Context) (*define.Change, error)) (
	*define.Change, error,
) {
	switch {
	case s.values.Value("transaction_read_only") == "on":
		return nil, pgerr.New(codes.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", word)
	case s.engine.deps.Own == nil:
		return nil, pgerr.New(codes.FeatureNotSupported, "%s is not supported", word)
	}
	if s.repeatable() { // as of any other statement, its moment is the transaction's from now on
		_, release := s.snapshot()
		release()
	}
	c, err := s.planChange(ctx, sql, plan)
	if err != nil {
		return nil, err
	}
	for _, id := range c.Alters {
		if err := s.lockTable(ctx, id); err != nil {
			return nil, err
		}
	}
	if len(c.Alters) > 0 { // they may have been changed while it waited
		if c, err = s.planChange(ctx, sql, plan); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(s.tx.pending(c.Alters, word), s.mayRefer(c.Refers), s.asPinned(c, word)); err != nil {
		return nil, err
	}
	s.as(c)
	if err := s.mayInclude(c); err != nil {
		return nil, err
	}
	if mutant.On(mutant.UniqueNotProved) {
		c.Proofs = nil
	}
	for _, p := range c.Proofs {
		if err := s.prove(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := s.includeRekeyed(ctx, c); err != nil {
		return nil, err
	}
	for _, n := range c.Notices {
		if err := s.notice(sink, n); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// asPinned refuses a change in a REPEATABLE READ transaction that asks for the rows that there are,
// while it sees others, or another key's.
func (s *session) asPinned(c *define.Change, word string) error {
	if !s.repeatable() || s.tx.pin == nil {
		return nil
	}
	if c.Rekeyed != 0 && !s.tx.makes(c.Rekeyed) {
		if t, err := s.tx.pin.TableByFace(c.Rekeyed); err == nil && t.Temp == "" {
			return pgerr.New(codes.FeatureNotSupported, "%s of a primary key in a REPEATABLE READ or SERIALIZABLE transaction is not supported", word).
				WithDetail("Rows are read by the key that their table has.").WithHint("Run it in a READ COMMITTED one.")
		}
	}
	if len(c.Proofs) == 0 {
		return nil
	}
	snap, release := s.now()
	defer release()
	for _, id := range c.Alters {
		if t, err := snap.TableByFace(id); err == nil {
			if err := s.unchanged(snap, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// planChange plans a change against the present moment, whatever moment the transaction sees.
func (s *session) planChange(ctx context.Context, sql string, plan func(*define.Context) (*define.Change, error)) (*define.Change, error) {
	snap, release := s.now()
	defer release()
	n := s.namesOf(snap)
	c, err := plan(&define.Context{
		SQL: sql, Env: s.env(n), Snapshot: snap,
		Reserve:    func() (change.PipelineID, change.TableID, error) { return s.engine.deps.Own.Reserve(ctx) },
		NextOID:    s.world().NextOID,
		TempSchema: temp.SchemaName(s.startup.PID), TempFirst: tempFirst(s.values.Value("search_path")), ReserveTemp: s.openTemp,
		Superuser: func() bool { b := s.book(); return b.Superuser(s.who(b).Current) },
		Step:      s.step, Settle: s.settle,
		IndexColumns: func(t *catalog.Table, x catalog.Index) []string {
			return s.engine.deps.System.IndexColumns(s.systemEnv(snap, n), t, x)
		},
		Initial: func(c pgsql.RelationColumn) (*string, error) { return s.initial(ctx, c, s.env(n)) },
	})
	if err != nil {
		return nil, hintElsewhere(err, n)
	}
	return c, nil
}

// discardTemp drops all that the session has for itself.
func (s *session) discardTemp(ctx context.Context) error {
	c, err := s.planChange(ctx, "", func(c *define.Context) (*define.Change, error) { return c.DropTemp("DISCARD"), nil })
	if err != nil {
		return err
	}
	return s.include(c)
}

// initial evaluates the default of a new column, for the rows that there are.
func (s *session) initial(ctx context.Context, c pgsql.RelationColumn, env *pgsql.Env) (out *string, err error) {
	a, err := pgsql.AnalyzeInitial(c, env)
	if err != nil {
		return nil, err
	}
	lake, _ := schema.FromPostgres(c.Type.OID, c.Type.Mod, 0)
	if elem := pgsql.ElemOf(c.Type.OID); elem != 0 {
		lake, _ = schema.FromPostgres(c.Type.OID, c.Type.Mod, 1)
	}
	one := &write.Table{Current: &schema.Table{Fields: []schema.Field{{Name: c.Name, Type: lake}}}}
	err = s.records(ctx, a, nil, func() { out = nil }, func(rec arrow.RecordBatch) error {
		columns, err := one.Columns(rec.Columns(), []int{0})
		if err != nil || rec.NumRows() == 0 {
			return err
		}
		defer columns[0].Release()
		out, err = schema.FormatInitial(lake, columns[0], 0)
		return err
	})
	return out, clientError(ctx, err)
}

// prove runs a query that must give no row.
func (s *session) prove(ctx context.Context, p define.Proof) error {
	parsed, err := pgsql.Parse(p.SQL)
	if err != nil {
		return err
	}
	q, err := s.prepareQuery(p.SQL, parsed.Node.GetSelectStmt(), nil)
	if err != nil {
		return err
	}
	found, row := false, []string(nil)
	err = q.pinned(func(a *pgsql.Analysis) error {
		return s.records(ctx, a, nil, func() { found, row = false, nil }, func(rec arrow.RecordBatch) error {
			if found = found || rec.NumRows() > 0; found && row == nil && p.Detail != nil {
				for _, c := range rec.Columns() {
					row = append(row, c.ValueStr(0))
				}
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return clientError(ctx, err)
	case found && p.Detail != nil:
		e := *p.Err
		return e.WithDetail("%s", p.Detail(row))
	case found:
		return p.Err
	}
	return nil
}

// makes says whether the transaction makes a table.
func (t *transaction) makes(id change.TableID) bool {
	return slices.ContainsFunc(t.defined, func(c *define.Change) bool { return c.Makes != nil && c.Makes.ID == id })
}

// include adds a change to the transaction, if it can be done.
func (s *session) include(c *define.Change) error {
	if c.Nothing() {
		return nil
	}
	before, drafted := s.tx.defined, s.drafted
	if len(before) == 0 || s.temp != nil || len(s.tx.rights) > 0 {
		drafted = nil
	}
	s.tx.defined = append(slices.Clip(before), c)
	s.redefined()
	if err := s.possible(drafted, c); err != nil {
		s.tx.defined = before
		return err
	}
	for _, id := range c.Alters {
		delete(s.tx.writes, id)
	}
	return nil
}

// possible makes the drafts of what the transaction defines: of the present moment, and of the one
// that it sees. before is that of the present moment without what was added last, if there is one.
func (s *session) possible(before *catalog.Snapshot, added *define.Change) (err error) {
	if s.drafted, err = s.engine.deps.Catalog.DraftMore(before, added.Draft); err == nil && s.drafted == nil {
		s.drafted, err = s.engine.deps.Catalog.Draft(s.draft)
	}
	if err != nil {
		return err
	}
	s.drafted.Close()
	if !s.repeatable() || s.tx.pin == nil {
		return nil
	}
	if s.pinDrafted, err = s.engine.deps.Catalog.DraftOn(s.tx.pin, s.draftPinned); err != nil {
		return pgerr.New(codes.SerializationFailure, "could not serialize access due to concurrent definitions").
			WithDetail("The statement needs what others have defined after the transaction began.").
			WithHint("Run the transaction again.").WithCause(err)
	}
	s.pinDrafted.Close()
	return nil
}

// apply does what the transaction defines, but for what is temporary.
func (t *transaction) apply(txn *catalog.Txn) error {
	for _, c := range t.defined {
		if c.Apply == nil {
			continue
		}
		if err := c.Apply(txn); err != nil {
			return err
		}
	}
	if err := t.applySequences(txn); err != nil {
		return err
	}
	return t.applyRights(txn)
}

// defines says whether it defines what is not temporary.
func (t *transaction) defines() bool {
	return slices.ContainsFunc(t.defined, func(c *define.Change) bool { return c.Apply != nil })
}

// commitDefined commits a transaction that has defined something, or changed rights. Its point
// of commit is one transaction of the catalog. What it has changed in rows goes into the log
// before, where nobody sees it: of tables that it makes under drafts of them, which a start of
// the server removes; of others as parts of a transaction that is not complete, which a start of
// the pipeline makes void.
func (s *session) commitDefined(ctx context.Context) error {
	own, changes := s.engine.deps.Own, s.tx.changes
	s.tx.committing = true
	tables := slices.ContainsFunc(s.tx.defined, func(c *define.Change) bool { return c.Makes != nil && c.Apply != nil || len(c.Alters) > 0 })
	drafts, altered, err := s.settleRows()
	if err != nil {
		return err
	}
	if changes == nil || changes.Empty() {
		return own.Define(ctx, tables, s.tx.apply)
	}
	s.tx.changes = nil // the commit's, whose fate may be open for a while
	if len(drafts) > 0 {
		err = own.Define(ctx, true, func(txn *catalog.Txn) error {
			for _, t := range drafts {
				if err := define.Make(txn, t.Clone()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil && altered == nil {
		err = s.commitDrafts(ctx, changes)
	} else if err == nil {
		err = s.commitHeld(ctx, changes, altered)
	}
	if err == nil {
		return nil
	}
	undone := own.Define(context.WithoutCancel(ctx), true, func(txn *catalog.Txn) (err error) {
		for _, t := range drafts {
			err = errors.Join(err, txn.DeleteDraft(t.ID))
		}
		if p, none := txn.Pipeline(catalog.OwnPipeline); none == nil && altered != nil {
			err = errors.Join(err, txn.VoidPending(p.ID))
		}
		return err
	})
	return errors.Join(err, undone) // what is not undone, the next start undoes
}

// commitDrafts commits a transaction whose changes are all of tables that it makes.
func (s *session) commitDrafts(ctx context.Context, changes *write.Changes) error {
	own := s.engine.deps.Own
	err := own.Commit(ctx, changes, func() {})
	if e, ok := pgerr.As(err); ok && e.Code == codes.TransactionResolutionUnknown {
		err = errors.Join(context.Cause(ctx), e.Cause) // nothing of it takes place without what follows
	}
	if err != nil {
		return err
	}
	return own.Define(ctx, true, s.tx.apply)
}

// holdsMax is how often rows are held anew when others have the pipeline begin anew meanwhile.
const holdsMax = 10

// commitHeld commits a transaction that has changed rows of tables that there were before.
func (s *session) commitHeld(ctx context.Context, changes *write.Changes, altered map[change.TableID]*schema.Table) error {
	own := s.engine.deps.Own
	if mutant.On(mutant.DefinedBeforeRows) {
		if err := own.Define(ctx, true, s.tx.apply); err != nil {
			return err
		}
		return own.Commit(ctx, changes, func() {})
	}
	for range holdsMax {
		rows, err := own.Hold(ctx, changes, altered)
		if err != nil {
			return err
		}
		err = own.Define(ctx, true, func(txn *catalog.Txn) error {
			if mutant.On(mutant.HeldWithoutDefinitions) {
				return rows.Complete(txn)
			}
			if err := s.tx.apply(txn); err != nil {
				return err
			}
			return rows.Complete(txn)
		})
		rows.Release()
		if !errors.Is(err, ErrRowsVoid) {
			return err
		}
	}
	return pgerr.New(codes.SerializationFailure, "the transaction was interrupted too often by others that define tables").
		WithHint("Run the transaction again.")
}

// settleRows gives the changes of rows the schemas that their tables have when the transaction ends.
// drafts are the tables that it makes and has filled, as nobody sees them; altered has the
// schemas of others that it has changed rows of, nil when there are none.
func (s *session) settleRows() (drafts []*catalog.Table, altered map[change.TableID]*schema.Table, err error) {
	snap, err := s.engine.deps.Catalog.Draft(s.tx.apply)
	if err != nil {
		return nil, nil, err // others have made it impossible
	}
	defer snap.Close()
	err = s.tx.changes.Settle(func(id change.TableID) *schema.Table {
		t, err := snap.TableByID(id)
		if err != nil {
			return nil // it was dropped
		}
		return t.Current
	})
	if err != nil || s.tx.changes == nil {
		return nil, nil, err
	}
	for _, id := range s.tx.changes.Tables() {
		t, err := snap.TableByID(id)
		if err != nil {
			return nil, nil, err
		}
		if !s.tx.makes(t.Face()) {
			if altered == nil {
				altered = map[change.TableID]*schema.Table{}
			}
			altered[id] = t.Current
			continue
		}
		t = t.Clone()
		t.Draft, t.Schema, t.Name, t.OID = true, "public", fmt.Sprintf("skippr_draft_%d", t.ID), 0
		drafts = append(drafts, t)
	}
	return drafts, altered, nil
}

// ownTable finds a table of our own by its name in a statement.
func (s *session) ownTable(n *pg.RangeVar) (*pgsql.Relation, error) {
	snap, release := s.now()
	defer release()
	names := s.namesOf(snap)
	rel, err := pgsql.FindRelation(n, s.env(names))
	if err != nil {
		return nil, hintElsewhere(err, names)
	}
	return rel, pgsql.CheckWritable(rel)
}

// modeRowShare is the strongest mode of LOCK TABLE, as PostgreSQL numbers them, that does not
// keep writers away.
const modeRowShare = 2

// prepareLock prepares LOCK TABLE: the transaction becomes the only one that changes the
// tables. Who reads never waits, whatever the mode.
func (s *session) prepareLock(n *pg.LockStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(ctx context.Context, _ pgwire.Sink) (*result, error) {
		if err := s.inBlock("LOCK TABLE"); err != nil {
			return nil, err
		}
		for _, r := range n.Relations {
			if err := s.lockRelation(ctx, r.GetRangeVar(), n); err != nil {
				return nil, err
			}
		}
		return &result{tag: "LOCK TABLE"}, nil
	}}, nil
}

func (s *session) lockRelation(ctx context.Context, r *pg.RangeVar, n *pg.LockStmt) error {
	snap, release := s.now()
	defer release()
	names := s.namesOf(snap)
	rel, err := pgsql.FindRelation(r, s.env(names))
	switch {
	case err != nil:
		return hintElsewhere(err, names)
	}
	if err := s.mayLock(rel, n.Mode); err != nil {
		return err
	}
	switch {
	case n.Mode <= modeRowShare:
		return nil
	case !rel.Own || s.engine.deps.Own == nil:
		return pgerr.New(codes.FeatureNotSupported, "locking \"%s\" in this mode is not supported", rel.Schema+"."+rel.Name).
			WithDetail("Statements here do not change it, and cannot keep others from it.").
			WithHint("LOCK TABLE %s IN ACCESS SHARE MODE; is supported.", quote.NameIfNeeded(rel.Schema)+"."+quote.NameIfNeeded(rel.Name))
	}
	if n.Nowait {
		var stop context.CancelCauseFunc
		ctx, stop = context.WithCancelCause(ctx)
		stop(pgerr.New(codes.LockNotAvailable, "could not obtain lock on relation \"%s\"", rel.Name)) // what would wait fails
	}
	id, _ := TableIDOf(rel.OID)
	return s.lockTable(ctx, id)
}

// prepareTruncate prepares TRUNCATE.
func (s *session) prepareTruncate(n *pg.TruncateStmt) (pgwire.Statement, error) {
	return &utility{session: s, run: func(ctx context.Context, sink pgwire.Sink) (*result, error) {
		tables, err := s.truncated(ctx, n, sink)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			if err := s.changesOf(t).Truncate(t); err != nil {
				return nil, err
			}
			if n.RestartSeqs {
				if err := s.restartOwned(t.Face); err != nil {
					return nil, err
				}
			}
		}
		return &result{tag: "TRUNCATE TABLE"}, nil
	}}, nil
}

// truncated are the tables of a TRUNCATE, which the transaction is the only one to change. While it
// waits for them others may refer to them, or be in their place.
func (s *session) truncated(ctx context.Context, n *pg.TruncateStmt, sink pgwire.Sink) ([]*write.Table, error) {
	var locked []*pgsql.Relation
	for {
		var rels []*pgsql.Relation
		for _, r := range n.Relations {
			rel, err := s.ownTable(r.GetRangeVar())
			if err != nil {
				return nil, err
			}
			rels = append(rels, rel)
		}
		rels, notices, err := withReferring(rels, n.Behavior == pg.DropBehavior_DROP_CASCADE)
		if err != nil {
			return nil, err
		}
		for _, rel := range rels {
			if err := s.mayTable(rel, right.Truncate); err != nil {
				return nil, err
			}
		}
		var out []*write.Table
		for _, rel := range rels {
			t, err := s.writable(ctx, rel, "TRUNCATE TABLE")
			if err != nil {
				return nil, err
			}
			if err := s.notInUse([]change.TableID{t.Face}, "TRUNCATE"); err != nil {
				return nil, err
			}
			out = append(out, t)
		}
		if slices.EqualFunc(rels, locked, func(a, b *pgsql.Relation) bool { return a.OID == b.OID }) {
			for _, e := range notices {
				if err := s.notice(sink, e); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
		locked = rels
	}
}

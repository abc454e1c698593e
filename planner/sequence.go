package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/catalog/sequence"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/temp"
	"github.com/skipprd/skipprd/planner/write"
	"github.com/skipprd/skipprd/wal/change"
)

// Sequences gives out the values of sequences. Safe for concurrent use. Errors are as those
// of OwnTables.
type Sequences interface {
	// Draw gives out n values, each of them once, whatever becomes of the process. It wraps
	// sequence.ErrLimit.
	Draw(ctx context.Context, id change.TableID, n int64) ([]sequence.Range, error)
	// Set makes a value the newest one given, or, unless called, the next one.
	Set(ctx context.Context, id change.TableID, value int64, called bool) error
	// Settle says, within a transaction of the catalog that changes the sequence, which value
	// was given last; those that are set apart are given up.
	Settle(row *sequence.Sequence) (last int64, called, known bool)
	// Shown is the newest value given.
	Shown(row *sequence.Sequence) (last int64, called bool)
}

// drawn are the values that a session was given.
type drawn struct {
	of     map[change.TableID]int64
	newest change.TableID // 0 for none
}

func (d *drawn) put(id change.TableID, value int64) {
	if d.of == nil {
		d.of = map[change.TableID]int64{}
	}
	d.of[id], d.newest = value, id
}

// drafted names the state of a sequence that the transaction makes or changes.
type drafted struct {
	id     change.TableID
	resets uint64
}

// sequence finds a sequence: local is its state where the transaction itself makes or changes
// it, which nobody else draws from.
func (s *session) sequence(rel *pgsql.Relation) (id change.TableID, local *sequence.Sequence, err error) {
	id, _ = TableIDOf(rel.OID)
	if r := s.restarted(id); r != nil {
		return id, r, nil
	}
	temporary := s.temp != nil && rel.Schema == temp.SchemaName(s.startup.PID)
	if len(s.tx.defined) == 0 && !temporary {
		return id, nil, nil
	}
	snap, release := s.now()
	defer release()
	row, err := snap.SequenceByID(id)
	if err != nil {
		return id, nil, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", rel.Name)
	}
	key := drafted{id, row.Resets}
	if temporary {
		return id, localIn(&s.sequences, key, row), nil
	}
	committed := s.engine.deps.Catalog.Snapshot()
	defer committed.Close()
	if c, err := committed.SequenceByID(id); err == nil && c.Resets == row.Resets {
		return id, nil, nil
	}
	return id, localIn(&s.tx.sequences, key, row), nil
}

// restarted is the sequence as the transaction has begun it anew with its table, nil when it has
// not, or has altered it since.
func (s *session) restarted(id change.TableID) *sequence.Sequence {
	for _, r := range slices.Backward(s.tx.restarts) {
		if r.ID == id && !s.altered(id) {
			return r
		}
	}
	return nil
}

// altered says whether the transaction itself makes or alters a sequence.
func (s *session) altered(id change.TableID) bool {
	if len(s.tx.defined) == 0 {
		return false
	}
	snap, release := s.now()
	defer release()
	committed := s.engine.deps.Catalog.Snapshot()
	defer committed.Close()
	row, err := snap.SequenceByID(id)
	before, missing := committed.SequenceByID(id)
	return err == nil && (missing != nil || row.Resets != before.Resets)
}

// localIn is the state of a sequence among some, at first that of its row.
func localIn(m *map[drafted]*sequence.Sequence, key drafted, row *sequence.Sequence) *sequence.Sequence {
	if *m == nil {
		*m = map[drafted]*sequence.Sequence{}
	}
	if (*m)[key] == nil {
		(*m)[key] = row.Clone()
	}
	return (*m)[key]
}

// shown is the newest value that a sequence has given, as the session sees it.
func (s *session) shown(row *sequence.Sequence) (last int64, called bool) {
	key := drafted{row.ID, row.Resets}
	for _, local := range []*sequence.Sequence{s.tx.sequences[key], s.sequences[key]} {
		if local != nil {
			return local.Last, local.Called
		}
	}
	if s.engine.deps.Own == nil {
		return row.Last, row.Called
	}
	return s.engine.deps.Own.Sequences().Shown(row)
}

// applySequences puts what the transaction has drawn from sequences that it makes.
func (t *transaction) applySequences(txn *catalog.Txn) error {
	for key, local := range t.sequences {
		row, err := txn.SequenceByID(key.id)
		if err != nil || row.Resets != key.resets {
			continue // it was dropped, or changed again
		}
		next := row.Clone()
		next.Last, next.Called = local.Last, local.Called
		if err := txn.PutSequence(next); err != nil {
			return err
		}
	}
	return nil
}

// step is define.Context.Step: no two states of a sequence that the session has to do with
// have one number.
func (s *session) step() uint64 {
	s.steps++
	return 1<<8 + uint64(s.startup.PID&0xffff)<<8 + s.steps
}

// settle is Sequences.Settle, for define.Context.
func (s *session) settle(row *sequence.Sequence) (last int64, called, known bool) {
	if !s.tx.committing || s.tx.sequences[drafted{row.ID, row.Resets}] != nil {
		last, called = s.shown(row)
		return last, called, true
	}
	return s.engine.deps.Own.Sequences().Settle(row)
}

// restartOwned has the sequences of a table begin anew when the transaction commits, and in
// it at once.
func (s *session) restartOwned(table change.TableID) error {
	snap, release := s.now()
	defer release()
	for _, q := range snap.Sequences() {
		if q.Table != table {
			continue
		}
		if b := s.book(); !b.Owns(s.who(b).Current, right.Object{Class: right.Sequence, ID: TableOID(q.ID)}) {
			return pgerr.New(codes.InsufficientPrivilege, "must be owner of sequence %s", q.Name)
		}
		_, local, err := s.sequence(&pgsql.Relation{Schema: q.Schema, Name: q.Name, OID: TableOID(q.ID)})
		if err != nil {
			return err
		}
		if local != nil {
			local.Last, local.Called = q.Start, false
			continue
		}
		next := q.Clone()
		next.Last, next.Called = q.Start, false
		s.tx.restarts = append(s.tx.restarts, next)
	}
	return nil
}

// commitRestarts begins sequences anew, once their tables are empty. The commit has taken
// place: what fails now, as a crash, leaves gaps.
func (s *session) commitRestarts(ctx context.Context) {
	done := map[change.TableID]bool{}
	for _, r := range slices.Backward(s.tx.restarts) {
		if done[r.ID] {
			continue
		}
		done[r.ID] = true
		_ = s.engine.deps.Own.Sequences().Set(context.WithoutCancel(ctx), r.ID, r.Last, r.Called) // see above
	}
}

// maySequence refuses what the role may not do with a sequence, or nobody in the transaction.
func (s *session) maySequence(rel *pgsql.Relation, call string, any ...right.Set) error {
	if call != "" && s.values.Value("transaction_read_only") == "on" {
		return pgerr.New(codes.ReadOnlySQLTransaction, "cannot execute %s() in a read-only transaction", call)
	}
	if s.engine.deps.Own == nil {
		return pgerr.New(codes.FeatureNotSupported, "sequences are not supported")
	}
	b := s.book()
	role := s.who(b).Current
	for _, want := range any {
		if b.Has(role, right.Object{Class: right.Sequence, ID: rel.OID}, want) != 0 {
			return nil
		}
	}
	return pgerr.New(codes.InsufficientPrivilege, "permission denied for sequence %s", rel.Name)
}

// draw draws n values.
func (s *session) draw(ctx context.Context, rel *pgsql.Relation, n int64) (out []sequence.Range, err error) {
	if err := s.maySequence(rel, "nextval", right.Usage, right.Update); err != nil {
		return nil, err
	}
	return s.give(ctx, rel, n)
}

// give draws n values for who may.
func (s *session) give(ctx context.Context, rel *pgsql.Relation, n int64) (out []sequence.Range, err error) {
	id, local, err := s.sequence(rel)
	if err != nil {
		return nil, err
	}
	for missing := n; local != nil && missing > 0 && err == nil; {
		var r sequence.Range
		if r, err = local.Take(missing); err == nil {
			out, missing = append(out, r), missing-r.Count
		}
	}
	if local == nil {
		out, err = s.engine.deps.Own.Sequences().Draw(ctx, id, n)
	}
	if err != nil {
		return nil, s.sequenceError(err, rel)
	}
	s.drawn.put(id, out[len(out)-1].Last())
	return out, nil
}

// sequenceError is what a client is told of an error of a draw.
func (s *session) sequenceError(err error, rel *pgsql.Relation) error {
	switch {
	case errors.Is(err, catalog.ErrTableNotFound):
		return pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", rel.Name)
	case !errors.Is(err, sequence.ErrLimit):
		return err
	}
	snap, release := s.now()
	defer release()
	id, _ := TableIDOf(rel.OID)
	row, lost := snap.SequenceByID(id)
	if lost != nil {
		return err
	}
	word, limit := "maximum", row.Max
	if row.Increment < 0 {
		word, limit = "minimum", row.Min
	}
	return pgerr.New(codes.SequenceGeneratorLimitExceeded, "nextval: reached %s value of sequence \"%s\" (%d)", word, rel.Name, limit)
}

// setval is setval.
func (s *session) setval(ctx context.Context, rel *pgsql.Relation, value int64, called bool) error {
	if err := s.maySequence(rel, "setval", right.Update); err != nil {
		return err
	}
	id, local, err := s.sequence(rel)
	if err != nil {
		return err
	}
	snap, release := s.now()
	row, err := snap.SequenceByID(id)
	release()
	if err != nil {
		return s.sequenceError(err, rel)
	}
	if value < row.Min || value > row.Max {
		return pgerr.New(codes.NumericValueOutOfRange, "setval: value %d is out of bounds for sequence \"%s\" (%d..%d)", value, rel.Name, row.Min, row.Max)
	}
	if local != nil {
		local.Last, local.Called = value, called
	} else if err := s.engine.deps.Own.Sequences().Set(ctx, id, value, called); err != nil {
		return s.sequenceError(err, rel)
	}
	if called {
		s.drawn.put(id, value)
	}
	return nil
}

// currval is currval, or, of nil, lastval.
func (s *session) currval(rel *pgsql.Relation) (int64, error) {
	id := s.drawn.newest
	if rel != nil {
		id, _ = TableIDOf(rel.OID)
		if err := s.maySequence(rel, "", right.Usage, right.Select); err != nil {
			return 0, err
		}
	}
	value, ok := s.drawn.of[id]
	switch {
	case ok && rel == nil:
		snap, release := s.now()
		defer release()
		_, err := snap.SequenceByID(id)
		ok = err == nil
	case !ok && rel != nil:
		return 0, pgerr.New(codes.ObjectNotInPrerequisiteState, "currval of sequence \"%s\" is not yet defined in this session", rel.Name)
	}
	if !ok {
		return 0, pgerr.New(codes.ObjectNotInPrerequisiteState, "lastval is not yet defined in this session")
	}
	return value, nil
}

// callSequence makes one call of a function of sequences.
func (s *session) callSequence(ctx context.Context, e *pgsql.Effect) (value int64, err error) {
	switch e.Kind {
	case pgsql.EffectNextval:
		out, err := s.draw(ctx, e.Sequence, 1)
		if err != nil {
			return 0, err
		}
		return out[0].First, nil
	case pgsql.EffectSetval:
		return e.Number, s.setval(ctx, e.Sequence, e.Number, e.Local)
	}
	return s.currval(e.Sequence)
}

// actWrite makes the calls of a statement that writes, and returns the analysis with their
// results in place.
func (s *session) actWrite(ctx context.Context, w *pgsql.Write) (*pgsql.Write, error) {
	if len(w.Effects) == 0 && len(w.Locks) == 0 {
		return w, nil
	}
	locked, err := s.lockTables(ctx, w.Locks)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for i := range w.Effects {
		value, err := s.callSequence(ctx, &w.Effects[i])
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, w.Effects[i].Mark, fmt.Sprintf("CAST(%d AS BIGINT)", value))
	}
	results := strings.NewReplacer(pairs...)
	in := func(a *pgsql.Analysis) *pgsql.Analysis {
		if a == nil {
			return nil
		}
		out := *a
		out.SQL, out.Effects, out.Locks = locked.Replace(results.Replace(a.SQL)), nil, nil
		return &out
	}
	out := *w
	out.Rows, out.Returning = in(w.Rows), in(w.Returning)
	if w.Conflict != nil {
		c := *w.Conflict
		c.Update, out.Conflict = in(c.Update), &c
	}
	return &out, nil
}

// stageMax is how many calls one statement makes.
const stageMax = 1 << 20

// stage makes the calls of a query that selects nothing else, and returns one of their
// results.
func (s *session) stage(ctx context.Context, a *pgsql.Analysis, params []*string) (*pgsql.Analysis, error) {
	var calls [][]*string // a null is nil
	err := s.records(ctx, a.Stage.Rows, params, func() { calls = nil }, func(rec arrow.RecordBatch) error {
		if len(calls)+int(rec.NumRows()) > stageMax {
			return pgerr.New(codes.ProgramLimitExceeded, "a statement calls functions that act on the server up to %d times", stageMax)
		}
		for row := range int(rec.NumRows()) {
			call := make([]*string, rec.NumCols())
			for i, c := range rec.Columns() {
				if !c.IsNull(row) {
					text := strings.Clone(c.ValueStr(row))
					call[i] = &text
				}
			}
			calls = append(calls, call)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, call := range calls {
		value, err := s.stagedValue(ctx, a.Stage, call)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + value + ")")
	}
	out := pgsql.Analysis{SQL: strings.ReplaceAll(a.SQL, pgsql.StageMark, b.String()), Columns: a.Columns, Params: a.Params}
	if len(calls) == 0 {
		out.SQL = strings.ReplaceAll(a.SQL, pgsql.StageMark, "(NULL)") + " WHERE false"
	}
	return &out, nil
}

// stagedValue makes the call of one row, and returns its result as SQL.
func (s *session) stagedValue(ctx context.Context, st *pgsql.Stage, call []*string) (string, error) {
	if st.Kind == pgsql.EffectCall {
		return s.callWith(ctx, st.Name, call)
	}
	if st.Kind == pgsql.EffectSetConfig {
		return s.setConfigWith(call)
	}
	args := make([]string, len(call))
	for i, t := range call {
		if t == nil {
			return "NULL", nil
		}
		args[i] = *t
	}
	v, err := s.stagedCall(ctx, st, args)
	return fmt.Sprintf("CAST(%d AS BIGINT)", v), err
}

// stagedCall makes the call of one row.
func (s *session) stagedCall(ctx context.Context, st *pgsql.Stage, args []string) (int64, error) {
	e := pgsql.Effect{Kind: st.Kind, Sequence: st.Sequence, Local: true}
	if e.Sequence == nil {
		snap, release := s.now()
		rel, err := pgsql.FindSequence(args[0], s.env(s.namesOf(snap)))
		release()
		if err != nil {
			return 0, err
		}
		e.Sequence = rel
	}
	if len(args) > 1 {
		n, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("value of setval: %w", err)
		}
		e.Number = n
	}
	e.Local = len(args) < 3 || args[2] == "true"
	return s.callSequence(ctx, &e)
}

// fill puts the values of sequences into rows that are to be written.
func (j *writeJob) fill(ctx context.Context, rows write.Rows) error {
	for _, f := range j.analysis.Fills {
		draw := j.session.draw
		if f.Identity {
			draw = j.session.give
		}
		ranges, err := draw(ctx, f.Sequence, int64(rows.Len()))
		if err != nil {
			return err
		}
		column, err := j.table.Numbers(f.Column, ranges, j.analysis.Relation.Columns[f.Column].Type.OID == pgsql.OIDInt2)
		if err != nil {
			return err
		}
		rows.New[f.Column].Release()
		rows.New[f.Column] = column
	}
	return nil
}

// sequenceText names a sequence in SQL.
func sequenceText(s *sequence.Sequence) string {
	return quote.NameIfNeeded(s.Schema) + "." + quote.NameIfNeeded(s.Name)
}

// sequenceRows is the row that a sequence has as a relation.
func (s *session) sequenceRows(snap *catalog.Snapshot, u *pgsql.Use) (*duckdb.Relation, error) {
	id, _ := TableIDOf(u.Relation.OID)
	row, err := snap.SequenceByID(id)
	if err != nil {
		return nil, pgerr.New(codes.UndefinedTable, "relation \"%s\" does not exist", u.Relation.Name)
	}
	last, called := s.shown(row)
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	defer numbers.Release()
	flags := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer flags.Release()
	numbers.Append(last)
	value := numbers.NewArray()
	defer value.Release()
	numbers.Append(0)
	count := numbers.NewArray()
	defer count.Release()
	flags.Append(called)
	flag := flags.NewArray()
	defer flag.Release()
	return inline(u, []arrow.Array{value, count, flag})
}

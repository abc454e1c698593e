package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog/right"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/pgwire/waits"
	"github.com/skipprd/skipprd/planner/allow"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/signal"
	"github.com/skipprd/skipprd/wal/mutant"
)

// queryStatement is a prepared query. Its analysis is made anew when the catalog or
// the settings it depends on have changed.
type queryStatement struct {
	session  *session
	sql      string
	sel      *pg.SelectStmt
	analysis *pgsql.Analysis
	columns  []pgwire.Column
	literals *encode.Input // how they were read when it was prepared
	// catalog and settings are the versions of what the analysis was made against.
	catalog, settings uint64
}

func (s *session) prepareQuery(sql string, sel *pg.SelectStmt, types []uint32) (*queryStatement, error) {
	q := &queryStatement{session: s, sql: sql, sel: sel}
	return q, q.analyze(types)
}

func (q *queryStatement) analyze(types []uint32) error {
	s := q.session
	snap, release := s.snapshotForNames()
	defer release()
	n := s.namesOf(snap)
	a, err := pgsql.AnalyzeSelect(q.sql, q.sel, types, s.preparedEnv(n, &q.literals))
	if err != nil {
		return hintElsewhere(err, n)
	}
	q.analysis, q.catalog, q.settings = a, n.version, s.values.Version()
	if q.columns = wireColumns(a.Columns); q.columns == nil {
		q.columns = []pgwire.Column{} // there are rows, but no columns
	}
	return nil
}

// inFormats is the analysis for rows in formats: what some types are in binary hangs on more than
// the values that they have as text.
func (q *queryStatement) inFormats(a *pgsql.Analysis, formats []int16) (*pgsql.Analysis, error) {
	if !slices.ContainsFunc(a.Columns, pgsql.OutputColumn.BinaryDiffers) || !slices.Contains(formats, 1) {
		return a, nil
	}
	snap, release := q.session.snapshotForNames()
	defer release()
	env := q.session.preparedEnv(q.session.namesOf(snap), &q.literals)
	env.Binary = formats
	return pgsql.AnalyzeSelect(q.sql, q.sel, a.Params, env)
}

// preparedEnv is the environment of a statement that is analysed perhaps not for the first
// time: its literals are read as they were then.
func (s *session) preparedEnv(n *names, literals **encode.Input) *pgsql.Env {
	env := s.env(n)
	if *literals == nil {
		in := s.input()
		*literals = &in
	}
	env.Literals = *literals
	return env
}

// wireColumns are output columns as clients are told of them.
func wireColumns(columns []pgsql.OutputColumn) (out []pgwire.Column) {
	for _, c := range columns {
		out = append(out, pgwire.Column{
			Name: c.Name, TableOID: c.TableOID, AttNum: uint16(c.AttNum), TypeOID: c.Type.OID,
			TypeSize: c.Type.Size(), TypMod: c.Type.Mod,
		})
	}
	return out
}

// hintElsewhere names the tables of other schemas that an undefined table may mean.
func hintElsewhere(err error, n *names) error {
	e, ok := pgerr.As(err)
	if !ok || e.Code != codes.UndefinedTable || e.Hint != "" {
		return err
	}
	name, found := strings.CutPrefix(e.Message, "relation \"")
	name, _, _ = strings.Cut(name, "\"")
	if !found || strings.Contains(name, ".") {
		return err
	}
	if other := n.elsewhere(name); len(other) > 0 {
		return e.WithHint("There is \"%s\": name its schema, or SET search_path.", strings.Join(other, "\", \""))
	}
	return err
}

// Empty implements pgwire.Statement.
func (q *queryStatement) Empty() bool { return false }

// Params implements pgwire.Statement.
func (q *queryStatement) Params() []uint32 { return q.analysis.Params }

// Columns implements pgwire.Statement.
func (q *queryStatement) Columns() []pgwire.Column { return q.columns }

// AllowedInAborted implements pgwire.Statement.
func (q *queryStatement) AllowedInAborted() bool { return false }

// Bind implements pgwire.Statement.
func (q *queryStatement) Bind(_ context.Context, values [][]byte, paramFormats, resultFormats []int16) (pgwire.Portal,
	error,
) {
	if err := q.refresh(); err != nil {
		return nil, err
	}
	params, err := decodeParams(q.session.input(), q.analysis.Params, values, paramFormats)
	if err != nil {
		return nil, err
	}
	p := q.portal(params, resultFormats)
	q.session.tx.bound(p)
	return p, nil
}

func (q *queryStatement) portal(params []*string, formats []int16) *queryPortal {
	return &queryPortal{
		session: q.session, query: q, columns: q.columns, params: params,
		formats: slices.Clone(formats),
	}
}

// refresh analyses again when something has changed since.
func (q *queryStatement) refresh() error {
	s := q.session
	snap, release := s.snapshotForNames()
	version := snap.Version()
	release()
	if version == q.catalog && s.values.Version() == q.settings {
		return nil
	}
	before := *q
	if err := q.analyze(q.analysis.Params); err != nil {
		return err
	}
	if !sameColumns(before.columns, q.columns) {
		*q = before // the client knows its columns, and no others: the next time is no better
		return errPlanChanged
	}
	return nil
}

func sameColumns(a, b []pgwire.Column) bool {
	return slices.EqualFunc(a, b, func(a, b pgwire.Column) bool {
		return a.Name == b.Name && a.TypeOID == b.TypeOID && a.TypMod == b.TypMod
	})
}

var errPlanChanged = pgerr.New(codes.FeatureNotSupported, "cached plan must not change result type")

// analysesMax is how often a query is analysed anew because a table's schema has moved on
// between the look at its columns and the pin.
const analysesMax = 3

// pinned runs f, which pins, with the analysis; anew with another one when the schema of
// a table has moved on since.
func (q *queryStatement) pinned(f func(*pgsql.Analysis) error) error {
	for range analysesMax {
		err := f(q.analysis)
		if !errors.Is(err, ErrSchemaMoved) {
			return err
		}
		if err := q.refresh(); err != nil {
			return err
		}
	}
	return pgerr.New(codes.SerializationFailure, "the schema of a table changed while the query was planned").
		WithHint("Run the query again.")
}

// decodeParams turns wire values into the engine's texts.
func decodeParams(in encode.Input, types []uint32, values [][]byte, formats []int16) ([]*string, error) {
	if len(values) != len(types) {
		return nil, pgerr.New(codes.ProtocolViolation,
			"bind message supplies %d parameters, but prepared statement requires %d",
			len(values), len(types))
	}
	out := make([]*string, len(values))
	for i, v := range values {
		if v == nil {
			continue
		}
		format := int16(0)
		if i < len(formats) {
			format = formats[i]
		}
		text, err := in.Decode(types[i], format, v)
		if err != nil {
			return nil, ofParameter(err, i+1, format, v)
		}
		out[i] = &text
	}
	return out, nil
}

// ofParameter says of which parameter an error is, as PostgreSQL does: without its text.
func ofParameter(err *pgerr.Error, n int, format int16, value []byte) *pgerr.Error {
	e := *err
	e.Where = fmt.Sprintf("parameter $%d", n)
	switch {
	case e.Code == codes.InvalidBinaryRepresentation && strings.HasSuffix(e.Message, "bind parameter"):
		e.Message += fmt.Sprintf(" %d", n)
	case format != 0 || e.Code == codes.CharacterNotInRepertoire:
	case len(value) == 0:
		e.Where += " = ''"
	default:
		e.Where += " = '...'"
	}
	return &e
}

// output is how a query's rows are encoded.
func (s *session) output(kind duckdb.OutputKind, columns []pgwire.Column, formats []int16) duckdb.Output {
	o := duckdb.Output{Kind: kind, Format: s.format()}
	for i, c := range columns {
		oc := duckdb.OutputColumn{Name: c.Name, TypeOID: c.TypeOID, TypMod: c.TypMod}
		if i < len(formats) {
			oc.Format = formats[i]
		}
		o.Columns = append(o.Columns, oc)
	}
	return o
}

// withRecords tells an output of the fields of its records.
func withRecords(o duckdb.Output, a *pgsql.Analysis) duckdb.Output {
	for i, c := range a.Columns {
		if c.Record != "" && i < len(o.Columns) {
			o.Columns[i].Record = c.Record
		}
	}
	return o
}

// act does what the calls of a statement do to the server, and returns the analysis
// with their results in place.
func (s *session) act(ctx context.Context, a *pgsql.Analysis, params []*string) (*pgsql.Analysis, error) {
	if a.Stage != nil {
		return s.stage(ctx, a, params)
	}
	a, err := s.lockRows(ctx, a)
	if err != nil {
		return nil, err
	}
	if len(a.Effects) == 0 {
		return a, nil
	}
	var done []string // pairs of marks and what takes their places
	for _, e := range a.Effects {
		e.Args = slices.Clone(e.Args)
		for i := range e.Args {
			e.Args[i].SQL = strings.NewReplacer(done...).Replace(e.Args[i].SQL)
		}
		result, err := s.effect(ctx, &e, params)
		if err != nil {
			return nil, err
		}
		if e.Mark != "" {
			done = append(done, e.Mark, result)
		}
	}
	out := *a
	out.SQL = strings.NewReplacer(done...).Replace(out.SQL)
	return &out, nil
}

// effect does what one call does to the server, and returns its result as SQL.
func (s *session) effect(ctx context.Context, e *pgsql.Effect, params []*string) (string, error) {
	switch e.Kind {
	case pgsql.EffectSetConfig:
		if len(e.Args) == 0 {
			value, err := s.setConfig(&e.Name, &e.Value, e.Local)
			return quote.Text(value), err
		}
		args, err := s.effectArgs(ctx, e.Args, params)
		if err != nil {
			return "", err
		}
		return s.setConfigWith(args)
	case pgsql.EffectSleep:
		return "false", s.sleep(ctx, e.Seconds)
	case pgsql.EffectCall:
		return s.call(ctx, *e, params)
	case pgsql.EffectChannels:
		return listOf(s.notes.Channels()), nil
	case pgsql.EffectReload:
		done, err := s.reload()
		return strconv.FormatBool(done), err
	case pgsql.EffectCancel, pgsql.EffectTerminate:
		return s.signalAll(ctx, e, params)
	}
	value, err := s.callSequence(ctx, e)
	return fmt.Sprintf("CAST(%d AS BIGINT)", value), err
}

// sleep is pg_sleep.
func (s *session) sleep(ctx context.Context, seconds float64) error {
	const longest = math.MaxInt32
	defer waits.On(ctx, waits.Sleep)()
	return s.engine.deps.Clock.Sleep(ctx, time.Duration(math.Min(math.Max(seconds, 0), longest)*float64(time.Second)))
}

// signalsMax is how many sessions one statement signals.
const signalsMax = 1 << 16

// signalAll does an effect that signals sessions, and returns what takes the place of its mark.
func (s *session) signalAll(ctx context.Context, e *pgsql.Effect, params []*string) (string, error) {
	if e.Rows != nil {
		return s.signalRows(ctx, e, params)
	}
	done, err := s.signal(ctx, signal.Call{PID: int64(int32(e.PID)), Terminate: e.Kind == pgsql.EffectTerminate})
	return strconv.FormatBool(done), err
}

// signalRows signals the sessions of all rows of a query, and returns those that were for the
// query to find. The statement sees the sessions that there were before.
func (s *session) signalRows(ctx context.Context, e *pgsql.Effect, params []*string) (string, error) {
	if s.seen == nil && s.engine.deps.Sessions != nil {
		s.seen = s.engine.deps.Sessions()
	}
	var calls []signal.Call
	pid, wait := e.SignalArgs()
	err := s.records(ctx, e.Rows, params, func() { calls = nil }, func(rec arrow.RecordBatch) error {
		if len(calls)+int(rec.NumRows()) > signalsMax {
			return pgerr.New(codes.ProgramLimitExceeded, "a statement signals up to %d sessions", signalsMax)
		}
		for row := range int(rec.NumRows()) {
			c := signal.Call{Terminate: e.Kind == pgsql.EffectTerminate}
			if rec.Column(pid).IsNull(row) || wait >= 0 && rec.Column(wait).IsNull(row) {
				continue
			}
			var err error
			if c.PID, err = strconv.ParseInt(rec.Column(pid).ValueStr(row), 10, 64); err != nil {
				return fmt.Errorf("session to signal: %w", err)
			}
			if wait >= 0 {
				ms, err := strconv.ParseInt(rec.Column(wait).ValueStr(row), 10, 64)
				if err != nil {
					return fmt.Errorf("wait for a signal: %w", err)
				}
				c.Wait = time.Duration(min(ms, math.MaxInt32)) * time.Millisecond
			}
			calls = append(calls, c)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	var signalled []int64
	for _, c := range calls {
		done, err := s.signal(ctx, c)
		if err != nil {
			return "", err
		}
		if done {
			signalled = append(signalled, c.PID)
		}
	}
	return pgsql.SignalList(signalled), nil
}

// signal makes a call of pg_cancel_backend or pg_terminate_backend.
func (s *session) signal(ctx context.Context, c signal.Call) (done bool, err error) {
	d, b := &s.engine.deps, s.book()
	if d.Sessions == nil || d.Cancel == nil {
		return false, nil
	}
	sender := signal.Sender{
		Rights: b, Role: s.who(b).Current, Send: d.Cancel, Clock: d.Clock,
		Find: func(pid uint32) (signal.Target, bool) {
			for _, o := range d.Sessions() {
				if o.PID == pid {
					return signal.Target{PID: pid, User: o.User}, true
				}
			}
			return signal.Target{}, false
		},
	}
	done, notice, err := sender.Do(ctx, c)
	if notice != nil {
		s.warnings = append(s.warnings, notice)
	}
	return done, err
}

// lockRows has the transaction be the only one that changes the tables whose rows a query
// locks, and returns the analysis without what asks for it.
func (s *session) lockRows(ctx context.Context, a *pgsql.Analysis) (*pgsql.Analysis, error) {
	if len(a.Locks) == 0 {
		return a, nil
	}
	results, err := s.lockTables(ctx, a.Locks)
	if err != nil {
		return nil, err
	}
	out := *a
	out.SQL, out.Locks = results.Replace(a.SQL), nil
	return &out, nil
}

// lockTables locks tables, and gives what their marks in the SQL stand for.
func (s *session) lockTables(ctx context.Context, locks []pgsql.RowLock) (*strings.Replacer, error) {
	var pairs []string
	for _, l := range locks {
		if err := s.mayLockRows(l); err != nil {
			return nil, err
		}
		limited, stop := context.WithCancelCause(ctx)
		if l.NoWait || l.Skip {
			stop(errRowsLocked) // what would wait fails
		}
		var err error
		if !mutant.On(mutant.RowsNotLocked) {
			_, err = s.writable(limited, l.Relation, "SELECT "+l.Word)
		}
		stop(nil)
		code := codes.Code("")
		if e, ok := pgerr.As(err); ok {
			code = e.Code
		}
		others := errors.Is(err, errRowsLocked) || code == codes.DeadlockDetected && (l.NoWait || l.Skip)
		switch {
		case others && l.NoWait:
			return nil, pgerr.New(codes.LockNotAvailable, "could not obtain lock on row in relation \"%s\"", l.Relation.Name)
		case err != nil && !others:
			return nil, err
		}
		if l.Mark != "" {
			pairs = append(pairs, l.Mark, fmt.Sprint(!others))
		}
	}
	return strings.NewReplacer(pairs...), nil
}

var errRowsLocked = pgerr.New(codes.LockNotAvailable, "the rows are locked")

// mayLockRows refuses to lock rows of a table none of whose columns the role may change.
func (s *session) mayLockRows(l pgsql.RowLock) error {
	b := s.book()
	role := s.who(b).Current
	if b.Superuser(role) || b.HasAnyColumn(role, right.Object{Class: right.Relation, ID: l.Relation.OID}, right.Update) {
		return nil
	}
	return allow.Denied(l.Relation)
}

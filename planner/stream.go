package planner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/jeroenrinzema/psql-wire/codes"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/pgwire"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/planner/scroll"
	"github.com/skipprd/skipprd/planner/write"
)

// nowLayout renders the transaction's time for the engine.
const nowLayout = "2006-01-02 15:04:05.999999-07:00"

// planned is a plan and what it reads. Whoever has it releases holds in the end.
type planned struct {
	*duckdb.Plan
	pins  []pinned
	holds holds
}

// plan makes the plan of an analysed query at a pin. given take the places of the query's
// first relations; a nil one does not.
func (s *session) plan(ctx context.Context, snap *catalog.Snapshot, a *pgsql.Analysis, params []*string,
	out duckdb.Output, given ...*duckdb.Relation,
) (*planned, error) {
	if a.Stage != nil || len(a.Effects) > 0 && strings.Contains(a.SQL, a.Effects[0].Mark) && a.Effects[0].Mark != "" {
		return nil, pgerr.New(codes.FeatureNotSupported, "functions that act on the server are not supported here").
			WithHint("SELECT them in a statement of their own.")
	}
	if len(a.Locks) > 0 {
		return nil, pgerr.New(codes.FeatureNotSupported, "%s is not supported here", a.Locks[0].Word)
	}
	now := "'" + s.tx.startedAt.UTC().Format(nowLayout) + "'"
	plan := &planned{Plan: &duckdb.Plan{
		SQL: strings.ReplaceAll(a.SQL, pgsql.NowMark, now), Params: params, Output: out,
		Settings: map[string]string{"TimeZone": s.values.Value("TimeZone")},
	}}
	var env *SystemEnv // made for the first system relation: it is not for nothing
	for i, u := range a.Uses {
		if i < len(given) && given[i] != nil {
			plan.Relations = append(plan.Relations, *given[i])
			continue
		}
		if u.Relation.Sequence {
			r, err := s.sequenceRows(snap, u)
			if err != nil {
				plan.holds.release()
				return nil, err
			}
			plan.Relations, plan.pins = append(plan.Relations, *r), append(plan.pins, pinned{})
			continue
		}
		if u.Relation.System && env == nil {
			env = s.systemEnv(snap, s.namesOf(snap))
		}
		r, p, err := s.engine.relation(ctx, snap, u, env, &plan.holds)
		if err == nil {
			r.Own, err = s.own(snap, u.Relation)
		}
		if err != nil {
			plan.holds.release()
			return nil, err
		}
		plan.Relations = append(plan.Relations, r)
		plan.pins = append(plan.pins, p)
	}
	return plan, nil
}

// own is what the transaction itself has changed in a relation, or the session in a temporary
// one.
func (s *session) own(snap *catalog.Snapshot, r *pgsql.Relation) (*duckdb.Own, error) {
	if !r.Own || s.tx.writes == nil && !r.Temp {
		return nil, nil
	}
	if own, known := s.tx.before[r.OID]; known {
		return own, nil
	}
	id, _ := TableIDOf(r.OID)
	if r.Temp {
		t, err := snap.TableByFace(id)
		if err != nil || s.temp == nil {
			return nil, err
		}
		return s.temp.Rows.Own(write.Of(t))
	}
	if t := s.tx.writes[id]; t != nil {
		return s.tx.changes.Own(t)
	}
	t, err := snap.TableByFace(id) // it may have been altered since
	if err != nil || !s.tx.changes.Touches(t.ID) {
		return nil, nil
	}
	return s.tx.changes.Own(write.Of(t))
}

// start pins, plans and runs a query to its first frame, taking new pins as the
// protocol allows. frame is nil when there are no rows. given are as in plan.
func (s *session) start(ctx context.Context, a *pgsql.Analysis, params []*string, out duckdb.Output,
	given ...*duckdb.Relation,
) (Rows, *duckdb.Frame, error) {
	if err := s.awaitPosition(ctx, a); err != nil {
		return nil, nil, err
	}
	var rows Rows
	var frame *duckdb.Frame
	err := RunPinned(s.held(), s.snapshot, func(snap *catalog.Snapshot) (*planned, error) {
		return s.plan(ctx, snap, a, params, out, given...)
	}, func(plan *planned) (err error) {
		rows, frame, err = s.run(ctx, plan)
		return err
	})
	return rows, frame, err
}

var errTooOld = pgerr.New(codes.SerializationFailure, "snapshot too old").
	WithDetail("Changes that the query must see were moved to the lake while it ran.").
	WithHint("Run the transaction again.")

// run runs a plan to its first frame. What it holds goes with the rows.
func (s *session) run(ctx context.Context, plan *planned) (Rows, *duckdb.Frame, error) {
	rows, frame, err := runPlan(ctx, s.engine.deps.Runner, plan.Plan)
	if err != nil {
		plan.holds.release()
		return nil, nil, err
	}
	held := plan.holds
	plan.holds = nil
	return &heldRows{rows, held}, frame, nil
}

// runPlan runs a plan to its first frame.
func runPlan(ctx context.Context, r Runner, plan *duckdb.Plan) (Rows, *duckdb.Frame, error) {
	rows, err := r.Query(ctx, plan)
	if err != nil {
		return nil, nil, err
	}
	f, err := rows.Next(ctx)
	if err == io.EOF {
		return rows, nil, nil
	}
	if err != nil {
		rows.Close()
		return nil, nil, err
	}
	return rows, &f, nil
}

// queryPortal is a bound query, run on its first Execute. Its stream stays open
// while it is suspended.
type queryPortal struct {
	session *session
	query   *queryStatement
	columns []pgwire.Column
	params  []*string
	formats []int16

	rows    Rows
	started bool
	done    bool
	// pending are messages of the current frame that were not sent yet.
	pending     []byte
	pendingRows int
	// position is where it stands as a cursor, once FETCH has taken it for one; pairs says that this
	// was before it ran: its rows are made in both formats then.
	position *scroll.Position
	pairs    bool
	// gone says that it was bound behind a savepoint that was rolled back.
	gone bool
}

// Gone implements pgwire.VanishingPortal.
func (p *queryPortal) Gone() bool { return p.gone }

// Constant implements pgwire.ConstantPortal: a query of nothing but expressions, and the rows
// of RETURNING, which are all there before the first is sent.
func (p *queryPortal) Constant() bool {
	if p.query == nil {
		return true
	}
	sel := p.query.sel
	return len(p.query.analysis.Effects)+len(p.query.analysis.Locks) == 0 && len(sel.FromClause) == 0 && sel.Op == pg.SetOperation_SETOP_NONE
}

// Columns implements pgwire.Portal.
func (p *queryPortal) Columns() []pgwire.Column { return p.columns }

// Execute implements pgwire.Portal.
func (p *queryPortal) Execute(ctx context.Context, sink pgwire.Sink, maxRows int) (string, bool, error) {
	s := p.session
	if s.tx.aborted {
		return "", false, errAborted
	}
	s.enter()
	ctx, stop := s.limitTime(ctx)
	defer stop()
	rows := sink
	if p.pairs {
		rows = p.pairing(sink, p.formats)
	}
	n, err := p.run(ctx, rows, maxRows)
	if err != nil {
		p.finish()
		return "", false, clientError(ctx, err)
	}
	if err := s.tell(sink); err != nil {
		return "", false, err
	}
	return fmt.Sprintf("SELECT %d", n), p.done, nil
}

// pairing is a sink for rows in both formats, which passes one on.
func (p *queryPortal) pairing(sink pgwire.Sink, formats []int16) pgwire.Sink {
	n := len(p.columns)
	return &scroll.Pairing{Sink: sink, Pairs: scroll.Pairs{Columns: n, Shown: n, Formats: formats, Send: sink.Rows}}
}

func (p *queryPortal) run(ctx context.Context, sink pgwire.Sink, maxRows int) (int, error) {
	if !p.started {
		err := p.begin(ctx)
		if warned := p.session.warn(sink); err == nil {
			err = warned
		}
		if err != nil {
			return 0, err
		}
	}
	sent := 0
	for !p.done {
		if maxRows > 0 && sent == maxRows {
			return sent, nil // like PostgreSQL, without a look at whether more follows
		}
		if p.pendingRows == 0 {
			if err := p.next(ctx); err != nil {
				return sent, err
			}
			continue
		}
		n := p.pendingRows
		if maxRows > 0 {
			n = min(n, maxRows-sent)
		}
		data := p.take(n)
		if err := sink.Rows(data, n); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

func (p *queryPortal) begin(ctx context.Context) error {
	s := p.session
	s.tx.queried = true
	defer func() { s.seen = nil }()
	var rows Rows
	var frame *duckdb.Frame
	err := p.query.pinned(func(a *pgsql.Analysis) (err error) {
		out := s.output(duckdb.OutputRowPairs, p.columns, nil)
		if !p.pairs {
			if a, err = p.query.inFormats(a, p.formats); err != nil {
				return err
			}
			out = withRecords(s.output(duckdb.OutputRows, p.columns, p.formats), a)
		}
		if a, err = s.act(ctx, a, p.params); err != nil {
			return err
		}
		rows, frame, err = s.start(ctx, a, p.params, out)
		return err
	})
	if err != nil {
		return err
	}
	p.started, p.rows = true, rows
	if frame == nil {
		p.finish()
		return nil
	}
	p.pending, p.pendingRows = frame.Data, frame.Rows
	return nil
}

func (p *queryPortal) next(ctx context.Context) error {
	f, err := p.rows.Next(ctx)
	if err == io.EOF {
		p.finish()
		return nil
	}
	if errors.Is(err, duckdb.ErrSliceLost) {
		return errTooOld
	}
	if err != nil {
		return err
	}
	p.pending, p.pendingRows = f.Data, f.Rows
	return nil
}

// take cuts n messages off the pending ones.
func (p *queryPortal) take(n int) []byte {
	if n == p.pendingRows {
		out := p.pending
		p.pending, p.pendingRows = nil, 0
		return out
	}
	at := 0
	for range n {
		at += 1 + int(binary.BigEndian.Uint32(p.pending[at+1:]))
	}
	out := p.pending[:at]
	p.pending, p.pendingRows = p.pending[at:], p.pendingRows-n
	return out
}

func (p *queryPortal) finish() {
	p.done = true
	p.Close()
}

// Close implements pgwire.Portal.
func (p *queryPortal) Close() {
	delete(p.session.tx.portals, p)
	if p.rows != nil {
		p.rows.Close()
		p.rows = nil
	}
	p.pending, p.pendingRows = nil, 0
}

// lag is how far a moment lies back.
func lag(now, at time.Time) time.Duration { return max(0, now.Sub(at)) }

// records runs a query for its rows, which live during the call; again forgets those of a
// run that must be repeated. given take the places of the query's first relations.
func (s *session) records(ctx context.Context, a *pgsql.Analysis, params []*string, again func(),
	f func(arrow.RecordBatch) error, given ...*duckdb.Relation,
) error {
	if err := s.awaitPosition(ctx, a); err != nil {
		return err
	}
	return RunPinned(s.held(), s.snapshot, func(snap *catalog.Snapshot) (*planned, error) {
		return s.plan(ctx, snap, a, params, duckdb.Output{Kind: duckdb.OutputArrow}, given...)
	}, func(p *planned) error {
		defer p.holds.release()
		again()
		return s.each(ctx, p.Plan, f)
	})
}

// each runs a plan for its rows.
func (s *session) each(ctx context.Context, p *duckdb.Plan, f func(arrow.RecordBatch) error) error {
	return EachRecord(ctx, s.engine.deps.Runner, p, f)
}

// EachRecord runs a plan and calls f with each record of its answer.
func EachRecord(ctx context.Context, r Runner, p *duckdb.Plan, f func(arrow.RecordBatch) error) error {
	rows, err := r.Query(ctx, p)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rec, err := range duckdb.Records(ctx, rows) {
		if err != nil {
			return err
		}
		if err := f(rec); err != nil {
			return err
		}
	}
	return nil
}

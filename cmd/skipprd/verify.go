package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ddl"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/postgres/outofrange"
	"github.com/skipprd/skipprd/ingest/verify"
	"github.com/skipprd/skipprd/lake/compact"
	"github.com/skipprd/skipprd/planner"
	"github.com/skipprd/skipprd/planner/mirror"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
	"github.com/skipprd/skipprd/wal/segment"
)

// verifier compares pipelines with their sources: it brings both sides to one position.
type verifier struct {
	catalog    *catalog.Catalog
	supervisor *ingest.Supervisor
	compactor  *compact.Service
	pinner     *planner.Pinner
	runner     planner.Runner
	clock      env.Clock
}

// freezer is a source that can be read at one moment whose position is exact.
type freezer interface {
	Freeze(ctx context.Context, state []byte, rowsPerSecond int64) (verify.Source, error)
}

// verifyHoldMost is how long a comparison may keep the log from being reclaimed.
const verifyHoldMost = time.Hour

// Verify compares a pipeline with its source.
func (c *controller) Verify(ctx context.Context, r ddl.VerifyRequest, progress func(string)) ([]ddl.VerifyLine, error) {
	lines, err := c.verifier.run(ctx, r, progress)
	if ctx.Err() == nil {
		err = c.verifier.explain(r.Pipeline, err)
	}
	return lines, problemIn(r.Pipeline, err)
}

// explain says so when the pipeline went away while it was compared: whatever failed or
// was skipped then is of that.
func (v *verifier) explain(pipeline string, err error) error {
	snap := v.catalog.Snapshot()
	defer snap.Close()
	if _, missing := snap.Pipeline(pipeline); missing != nil && !errors.Is(err, catalog.ErrPipelineNotFound) {
		return &ddl.Problem{Kind: ddl.WrongState, Message: fmt.Sprintf("pipeline %q was dropped while it was compared", pipeline), Cause: err}
	}
	if errors.Is(err, ingest.ErrSourceUnavailable) {
		return &ddl.Problem{
			Kind: ddl.Unreachable, Message: "could not read the source", Detail: sentence(err),
			Hint: "VALIDATE CONNECTION … says what is missing; then run the statement again.", Cause: err,
		}
	}
	return err
}

// copied is which copy of a table is compared.
type copied struct {
	generation uint32
	finished   time.Time
}

func copiedAt(t *catalog.Table) copied { return copied{t.Generation, t.Backfill.FinishedAt} }

// sides are both sides of a comparison at one position.
type sides struct {
	tables []*verify.Table
	copies map[change.TableID]copied // as they were before the position
	source ingest.Source
	frozen verify.Source
	here   *mirror.Mirror
	keeper *keeper
}

// close lets go of both sides.
func (s *sides) close() {
	if s.here != nil {
		s.here.Release()
		s.keeper.end()
	}
	if s.frozen != nil {
		s.frozen.Close()
	}
	_ = s.source.Close() // only read
}

// momentsMost is how many moments are tried before tables are left out that are truncated
// all the time.
const momentsMost = 3

func (v *verifier) run(ctx context.Context, r ddl.VerifyRequest, progress func(string)) ([]ddl.VerifyLine, error) {
	p, err := v.running(r.Pipeline)
	if err != nil {
		return nil, err
	}
	for tried := 1; ; tried++ {
		s, err := v.freeze(ctx, p, r, progress)
		if err != nil {
			return nil, err
		}
		if tried < momentsMost && slices.ContainsFunc(s.tables, func(t *verify.Table) bool { return t.Skip == mirror.TruncatedSince }) {
			s.close()
			continue
		}
		defer s.close()
		lines, err := verify.Run(ctx, s.tables, s.frozen, s.here, verify.Options{Ranges: r.Ranges, Keys: r.Keys}, v.teller(s.keeper, progress))
		return linesOf(lines), err
	}
}

// freeze brings both sides to one position.
func (v *verifier) freeze(ctx context.Context, p *catalog.Pipeline, r ddl.VerifyRequest, progress func(string)) (out *sides, err error) {
	// From here on nothing that is published goes into the lake, until both sides are
	// pinned: then the lake has nothing past the position, which is taken later.
	endRest := v.compactor.Rest(p.ID)
	defer endRest()
	s := &sides{copies: map[change.TableID]copied{}}
	known, err := v.tables(p, r.Tables, s)
	if err != nil {
		return nil, err
	}
	if s.source, err = v.supervisor.OpenSource(ctx, p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	f, ok := s.source.(freezer)
	if !ok {
		return nil, &ddl.Problem{Kind: ddl.NotSupported, Message: fmt.Sprintf("the source of pipeline %q cannot be compared", p.Name)}
	}
	if s.frozen, err = f.Freeze(ctx, p.SourceState, r.RowsPerSecond); err != nil {
		return nil, err
	}
	progress(fmt.Sprintf("comparing at position %s", s.frozen.Position()))
	if err := v.await(ctx, p, s.source, s.tables, s.frozen.Position(), r.Wait); err != nil {
		return nil, err
	}
	s.here, s.keeper, err = v.pin(ctx, p, s, planner.Moment{Before: s.frozen.Before(), Known: known})
	return s, err
}

// running is a pipeline that streams, or tries to.
func (v *verifier) running(name string) (*catalog.Pipeline, error) {
	snap := v.catalog.Snapshot()
	defer snap.Close()
	p, err := snap.Pipeline(name)
	if err != nil {
		return nil, err
	}
	problem := &ddl.Problem{Kind: ddl.WrongState, Hint: p.Exact("ALTER PIPELINE … ENABLE; starts it."), Cause: ingest.ErrNotRunning}
	switch {
	case !p.Enabled:
		problem.Message = fmt.Sprintf("pipeline \"%s\" is disabled", name)
	case p.Paused:
		problem.Message, problem.Hint = fmt.Sprintf("pipeline \"%s\" is paused", name), p.Exact("ALTER PIPELINE … RESUME; lets it go on.")
	case len(p.SourceState) == 0:
		problem.Message, problem.Hint = fmt.Sprintf("pipeline \"%s\" has not begun to stream", name), "pg_stat_pipeline says what it waits for."
	default:
		return p, nil
	}
	return nil, problem
}

// tables lists those to compare, and returns the end of the log as it is now.
func (v *verifier) tables(p *catalog.Pipeline, named []catalog.SelectedTable, s *sides) (known segment.SliceRef, err error) {
	snap := v.catalog.Snapshot()
	defer snap.Close()
	offset, err := snap.Offset(p.ID)
	if err != nil {
		return known, err
	}
	all := snap.Tables(p.ID)
	for _, n := range named {
		if !slices.ContainsFunc(all, func(t *catalog.Table) bool { return isNamed(t, n) }) {
			return known, &ddl.Problem{
				Kind: ddl.NoSuchTable, Message: fmt.Sprintf("table \"%s.%s\" is not part of the pipeline", n.Schema, n.Name),
				Hint: "DISCOVER PIPELINE …; says which tables there are.",
			}
		}
	}
	for _, t := range all {
		if len(named) > 0 && !slices.ContainsFunc(named, func(n catalog.SelectedTable) bool { return isNamed(t, n) }) {
			continue
		}
		s.tables = append(s.tables, tableToVerify(t, outofrange.RuleOf(p.Options)))
		s.copies[t.ID] = copiedAt(t)
	}
	return segment.SliceRef{Seq: offset.Seq, Start: offset.End}, nil
}

// isNamed says whether a table is meant, by its name at the source or here.
func isNamed(t *catalog.Table, n catalog.SelectedTable) bool {
	return t.SourceSchema == n.Schema && t.SourceName == n.Name || t.Schema == n.Schema && t.Name == n.Name
}

func tableToVerify(t *catalog.Table, rule outofrange.Rule) *verify.Table {
	v := &verify.Table{
		Name: t.Schema + "." + t.Name, ID: t.ID, Schema: t.SourceSchema, SourceName: t.SourceName, OID: t.SourceOID,
	}
	for _, f := range t.Current.Fields {
		v.Columns = append(v.Columns, f.Name)
		if len(t.Current.Key) > 0 && t.Current.Key[0] == f.ID {
			v.IntegerKey = slices.Contains([]uint32{schema.OIDInt2, schema.OIDInt4, schema.OIDInt8}, f.OID)
		}
	}
	for _, id := range t.Current.Key {
		v.Key = append(v.Key, slices.IndexFunc(t.Current.Fields, func(f schema.Field) bool { return f.ID == id }))
	}
	v.Replaced = replaced(t.Current, rule)
	if t.State != catalog.TableReady {
		v.Skip = "its state is " + string(t.State)
		if t.Reason != "" {
			v.Skip += ": " + t.Reason
		}
	}
	return v
}

// rangeKinds are the types that do not hold all values of the source's.
var rangeKinds = map[schema.Kind]verify.RangeKind{
	schema.Date: verify.RangeDate, schema.Timestamp: verify.RangeTimestamp, schema.TimestampTZ: verify.RangeTimestampTZ,
	schema.Decimal: verify.RangeDecimal,
}

// replaced are the columns in which values out of range are replaced.
func replaced(t *schema.Table, rule outofrange.Rule) map[string]verify.Replacement {
	out := map[string]verify.Replacement{}
	for _, f := range t.Fields {
		kind, ranged := rangeKinds[f.Type.Kind]
		if !ranged || slices.Contains(t.Key, f.ID) {
			continue
		}
		switch {
		case rule == outofrange.Clamp:
			out[f.Name] = verify.Replacement{Kind: kind, Clamp: true}
		case rule == outofrange.Null && !f.NotNull:
			out[f.Name] = verify.Replacement{Kind: kind}
		}
	}
	return out
}

// lettersMost is with how many open dead letters a table is compared.
const lettersMost = 10_000

// setAside lists the rows of a table that wait as dead letters.
func setAside(snap *catalog.Snapshot, t *verify.Table) error {
	letters, err := snap.OpenDeadLetters(t.ID)
	if err != nil || len(letters) == 0 {
		return err
	}
	if len(t.Key) == 0 || len(letters) > lettersMost {
		t.Skip = fmt.Sprintf("it has %d open dead letters: RETRY DEAD LETTERS, or RESYNC TABLE, comes first", len(letters))
		return nil
	}
	t.SetAside = map[string]string{}
	for _, l := range letters {
		var key []*string
		if err := json.Unmarshal([]byte(l.Key), &key); err != nil || len(key) != len(t.Key) {
			t.Skip = "it has an open dead letter without a key"
			return nil
		}
		cells := make(verify.Cells, len(key))
		for i, k := range key {
			if k != nil {
				cells[i] = []byte(*k)
			}
		}
		t.SetAside[string(verify.AppendRecord(nil, cells))] = l.Reason
	}
	return nil
}

var errLook = errors.New("time to look again")

// await waits until everything before the position is here.
func (v *verifier) await(ctx context.Context, p *catalog.Pipeline, source ingest.Source, tables []*verify.Table, at change.Position,
	most time.Duration,
) error {
	target := ingest.Target{Pipeline: p.ID, At: at, Compare: source.Compare}
	for _, t := range tables {
		if t.Skip == "" {
			target.Tables = append(target.Tables, t.ID)
		}
	}
	began := v.clock.Now()
	for {
		soon, cancel := context.WithTimeoutCause(ctx, time.Second, errLook)
		err := v.supervisor.Await(soon, target)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ingest.ErrTableStopped):
			target.Tables = nil // it says so when it is pinned
			continue
		case !errors.Is(err, errLook):
			return err
		}
		status, _ := v.supervisor.Status(p.Name)
		if status.Throttled { // the rest that we ask for may be why
			return &ddl.Problem{
				Kind: ddl.Busy, Message: "the log is full, so the pipeline does not reach the position of the comparison",
				Hint: "Run the statement again when the log has room: see wal-quota-bytes.",
			}
		}
		if v.clock.Since(began) >= most {
			return &ddl.Problem{
				Kind: ddl.WrongState, Message: fmt.Sprintf("pipeline %q did not reach position %s within %s", p.Name, at, most),
				Detail: fmt.Sprintf("It is at %s, its state is %s.", v.supervisor.Position(p.ID), status.State),
				Hint:   "VERIFY … WITH (wait = '30 min') waits longer; pg_stat_pipeline shows how far it is.",
			}
		}
	}
}

// keeper keeps the log that a mirror reads for as long as the comparison goes on.
type keeper struct {
	hold  *compact.LogHold
	from  segment.Seq
	began time.Time
}

func (k *keeper) end() {
	if k.hold != nil {
		k.hold.Release()
	}
}

// pin pins our side; tables that have changed since they were listed are left out.
func (v *verifier) pin(ctx context.Context, p *catalog.Pipeline, s *sides, at planner.Moment) (*mirror.Mirror, *keeper, error) {
	snap := v.catalog.Snapshot()
	defer snap.Close()
	k := &keeper{from: segment.Seq(math.MaxUint64), began: v.clock.Now()}
	for _, t := range s.tables {
		now, err := snap.TableByID(t.ID)
		switch {
		case t.Skip != "":
			continue
		case err != nil:
			t.Skip = "it was dropped meanwhile"
			continue
		case now.State != catalog.TableReady:
			t.Skip = "its state became " + string(now.State)
			continue
		case copiedAt(now) != s.copies[t.ID]:
			t.Skip = "it was copied anew meanwhile: run it again"
			continue
		case now.Current.HasKey() != (len(t.Key) > 0), now.SourceOID != t.OID:
			t.Skip = "its key has changed meanwhile: run it again"
			continue
		}
		live, err := snap.LiveSlices(t.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range live {
			k.from = min(k.from, s.Ref.Seq)
		}
		*t = *tableToVerify(now, outofrange.RuleOf(p.Options))
		if err := setAside(snap, t); err != nil {
			return nil, nil, err
		}
	}
	if k.from != segment.Seq(math.MaxUint64) {
		k.hold = v.compactor.HoldLog(p.ID, k.from)
	}
	here, err := mirror.Pin(ctx, v.pinner, v.runner, snap, s.tables, at)
	if err != nil {
		k.end()
		return nil, nil, err
	}
	return here, k, nil
}

// teller tells progress about once a second, and keeps the log meanwhile.
func (v *verifier) teller(k *keeper, progress func(string)) func(table string, share float64) {
	var told time.Time
	return func(table string, share float64) {
		now := v.clock.Now()
		if now.Sub(told) < time.Second {
			return
		}
		if told = now; k.hold != nil && now.Sub(k.began) < verifyHoldMost {
			k.hold.Move(k.from)
		}
		progress(fmt.Sprintf("%s: %.0f%% compared", table, 100*share))
	}
}

func linesOf(lines []verify.Line) []ddl.VerifyLine {
	var out []ddl.VerifyLine
	for _, l := range lines {
		d := ddl.VerifyLine{Table: l.Table, Low: l.Low, High: l.High, State: string(l.State), Key: l.Key, Detail: l.Detail}
		if l.Counted() {
			d.RowsSource, d.RowsHere = &l.RowsSource, &l.RowsHere
		}
		out = append(out, d)
	}
	return out
}

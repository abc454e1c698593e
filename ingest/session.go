package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/ingest/watch"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// errRestart ends a session so that the next one begins at once, with the tables as
// the catalog then has them.
var errRestart = errors.New("pipeline begins a new session")

// session is one connection of a pipeline to its source, from Setup to the first
// error. Owned by the host's goroutine; what it starts ends before run returns.
type session struct {
	cfg      Config
	deps     Deps
	live     *live
	out      *slog.Logger
	pipeline *catalog.Pipeline
	writer   *writer
	// ready is called when the stream is about to begin; waiting is told what the source
	// waits for until then.
	ready   func()
	waiting func(reason string)

	source   Source
	progress *progress
	backfill Backfill                // nil when nothing is to be copied
	copying  atomic.Bool             // while backfill reads
	streamed map[change.TableID]bool // the tables that the first stream delivers
	// start is how tables were before Setup: not later than the moment that what is copied in
	// this session is of.
	start Start
	// published is how the source publishes tables since Setup.
	published map[uint32]string
	// refusals are the rows of its chunks that cannot be taken in.
	refusals *copyLetters
	// advanced wakes the keeper: something became durable.
	advanced chan struct{}
	// fetching holds a token while nobody reads rows by key from backfill, or ends it.
	fetching chan struct{}
}

// run connects, prepares, and streams until ctx ends or something fails.
func (s *session) run(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer func() {
		if s.backfill != nil {
			_ = s.backfill.Close() // its rows are read or given up
		}
		_ = s.source.Close() // nothing is pending on the connection
	}()
	if err := s.setup(ctx); err != nil {
		return err
	}
	if err := s.openBackfill(ctx); err != nil {
		return err
	}
	s.ready()
	return s.stream(ctx)
}

// connect makes the source.
func (s *session) connect(ctx context.Context) error {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	offset, err := snap.Offset(s.pipeline.ID)
	if err != nil {
		return err
	}
	connection, err := snap.Connection(s.pipeline.Connection)
	if err != nil {
		return err
	}
	deps := s.deps
	deps.session.Waiting = s.waiting
	deps.session.Scratch = Scratch{
		FS: deps.ScratchFS, Dir: s.cfg.scratchDir(), Prefix: fmt.Sprintf("%d-", s.pipeline.ID),
	}
	s.source, err = newSource(ctx, deps, connection, s.pipeline, offset.Position)
	return err
}

// newSource resolves a connection's secrets and makes its source. p is nil when only
// the connection is looked at; the source then gets a pipeline without a name.
func newSource(ctx context.Context, deps Deps, c *catalog.Connection, p *catalog.Pipeline,
	at change.Position,
) (Source, error) {
	factory, ok := deps.Sources[c.Kind]
	if !ok {
		return nil, &BadSourceError{Connection: c.Name, Cause: fmt.Errorf("there is no source of kind %s", c.Kind)}
	}
	resolved, err := resolve(ctx, deps.Catalog, c)
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &catalog.Pipeline{}
	}
	source, err := factory(ctx, resolved, p, SourceDeps{
		Clock: deps.Clock, IDs: deps.IDs, Log: deps.Log, Position: at, Scratch: deps.session.Scratch, Waiting: deps.session.Waiting,
		Option: func(name string) string {
			snap := deps.Catalog.Snapshot()
			defer snap.Close()
			if now, err := snap.PipelineByID(p.ID); err == nil {
				return now.Options[name]
			}
			return p.Options[name]
		},
		Others: func() (states [][]byte) {
			snap := deps.Catalog.Snapshot()
			defer snap.Close()
			for _, o := range snap.Pipelines() {
				if o.ID != p.ID {
					states = append(states, o.SourceState)
				}
			}
			return states
		},
	})
	if bad := (*BadSourceError)(nil); err != nil && !errors.As(err, &bad) {
		err = fmt.Errorf("connection %s: %w", quote.Name(c.Name), err)
	}
	if err != nil {
		return nil, err
	}
	return source, nil
}

// resolve puts the connection's secrets among its options.
func resolve(ctx context.Context, c *catalog.Catalog, conn *catalog.Connection) (ResolvedConnection, error) {
	r := ResolvedConnection{Name: conn.Name, Kind: conn.Kind, Options: map[string]string{}}
	for name, value := range conn.Options {
		r.Options[name] = value
	}
	for name, sealed := range conn.Sealed {
		plain, err := c.Unseal(sealed)
		if err != nil {
			return r, fmt.Errorf("connection %s: option %s: %w", quote.Name(conn.Name), name, err)
		}
		r.Options[name] = string(plain)
	}
	for name, secret := range conn.Secrets {
		value, err := c.ResolveSecret(ctx, secret)
		if err != nil {
			return r, fmt.Errorf("connection %s: option %s: %w", quote.Name(conn.Name), name, err)
		}
		r.Options[name] = value
	}
	return r, nil
}

// setup makes what the source needs, and makes its state, the tables and the position
// at which the stream begins durable before anything is streamed.
func (s *session) setup(ctx context.Context) error {
	if err := s.remake(ctx); err != nil {
		return err
	}
	if err := s.resync(ctx); err != nil {
		return err
	}
	tables, err := s.sourceTables(ctx)
	if err != nil {
		return err
	}
	taken := make([]SourceTable, 0, len(tables))
	for _, t := range tables {
		if t.Unsupported == "" {
			taken = append(taken, t)
		}
	}
	if len(s.pipeline.SourceState) == 0 {
		// The source's side is made anew, and what nobody has read from there goes. Who was
		// taken over learns of it here, before it removes what its successor made.
		if err := s.deps.Catalog.Backup(ctx); err != nil {
			return fmt.Errorf("prepare set-up: %w", err)
		}
	}
	if err := s.lookAtStart(ctx, taken); err != nil {
		return err
	}
	result, err := s.source.Setup(ctx, s.pipeline.SourceState, taken)
	if err != nil {
		return sourceError("set up source", err)
	}
	s.published = result.Published
	for _, w := range result.Warnings {
		s.out.Warn("source warned", env.KeyReason, w)
	}
	err = s.deps.Catalog.Update(ctx, func(txn *catalog.Txn) error {
		return s.recordSetup(txn, result, tables)
	})
	if err != nil {
		return fmt.Errorf("record set-up: %w", err)
	}
	return s.loadProgress()
}

// lookAtStart asks the source how tables are.
func (s *session) lookAtStart(ctx context.Context, tables []SourceTable) error {
	from, ok := s.source.(Starter)
	if !ok {
		return nil
	}
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	var err error
	if s.start, err = from.AtStart(ctx, oids); err != nil {
		return sourceError("look at tables", err)
	}
	return nil
}

// countFrom begins to count the changes of a table that do not come.
func (s *session) countFrom(t *catalog.Table) {
	t.Missed = nil
	if now, ok := s.start.Counters[t.SourceOID]; ok && keyless(t) {
		first := watch.MissedSince(now)
		t.Missed = (*catalog.MissedChanges)(&first)
	}
}

// loadProgress reads how far the pipeline and its tables are.
func (s *session) loadProgress() error {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	offset, err := snap.Offset(s.pipeline.ID)
	if err != nil {
		return err
	}
	s.progress = newProgress(s.source.Compare, offset.Position, snap.EveryTableOf(s.pipeline.ID))
	s.progress.measurer, _ = s.source.(Measurer)
	return nil
}

// sourceTables are the tables to stream: those that the catalog has, or what the
// selection names when it has none yet.
func (s *session) sourceTables(ctx context.Context) ([]SourceTable, error) {
	snap := s.deps.Catalog.Snapshot()
	known := snap.EveryTableOf(s.pipeline.ID)
	snap.Close()
	if len(known) == 0 {
		found, err := s.source.Discover(ctx, s.pipeline.Selection)
		if err != nil {
			return nil, sourceError("discover tables", err)
		}
		return found, nil
	}
	tables := make([]SourceTable, 0, len(known))
	var keyless []catalog.SelectedTable
	copied := map[change.TableID]uint32{}
	for _, t := range known {
		copied[t.CopyOf] = t.SourceOID
	}
	for _, t := range known {
		if oid, ok := copied[t.ID]; ok && oid == t.SourceOID {
			continue // its copy says how the source has it now
		}
		tables = append(tables, sourceTable(t))
		if !t.Current.HasKey() {
			keyless = append(keyless, catalog.SelectedTable{Schema: t.SourceSchema, Name: t.SourceName})
		}
	}
	if len(keyless) == 0 {
		return tables, nil
	}
	return tables, s.identify(ctx, tables, keyless)
}

// identify asks for the replica identity of tables without a key: only the source
// knows it, and what it sends of them depends on it.
func (s *session) identify(ctx context.Context, tables []SourceTable, keyless []catalog.SelectedTable) error {
	found, err := s.source.Discover(ctx, catalog.TableSelection{Tables: keyless})
	if err != nil {
		return sourceError("discover tables", err)
	}
	for _, f := range found {
		for i := range tables {
			if f.OID != 0 && tables[i].OID == f.OID {
				tables[i].ReplicaIdentity = f.ReplicaIdentity
				tables[i].WholeRow = tables[i].WholeRow || f.WholeRow
			}
		}
	}
	return nil
}

func (s *session) recordSetup(txn *catalog.Txn, result SetupResult, tables []SourceTable) error {
	p, err := txn.PipelineByID(s.pipeline.ID)
	if err != nil {
		return err
	}
	// The source sends from the position on, so a transaction that was not complete
	// comes again, whole. This is durable before it does, and no part of before is under
	// way: the log is open, and no session runs.
	if err := txn.VoidPending(p.ID); err != nil {
		return err
	}
	p.SourceState = result.State
	if err := txn.PutPipeline(p); err != nil {
		return err
	}
	s.pipeline = p
	offset, err := txn.Offset(p.ID)
	if err != nil {
		return err
	}
	if result.Start != "" && (result.Created || offset.Position == "") {
		if err := txn.SetPosition(p.ID, result.Start); err != nil {
			return err
		}
	}
	if err := trimLetters(txn, p.ID); err != nil {
		return err
	}
	if err := refuse(txn, p, result.Refused); err != nil {
		return err
	}
	created, err := createTables(txn, p, tables, result.Token)
	if err != nil {
		return err
	}
	for _, t := range txn.EveryTableOf(p.ID) {
		_, counted := s.start.Counters[t.SourceOID]
		uncounted := counted && t.Missed == nil && keyless(t)
		if uncounted {
			s.countFrom(t)
		}
		published := s.published[t.SourceOID]
		unknown := t.Published == "" && published != ""
		if unknown {
			t.Published = published
		}
		if !uncounted && !unknown {
			continue
		}
		if err := txn.PutTable(t); err != nil {
			return err
		}
	}
	if !result.Created {
		return nil
	}
	if len(created) > 0 {
		return nil
	}
	return s.renew(txn, result.Token)
}

// refuse stops tables whose changes the source will not send. Nothing of them has been
// streamed.
func refuse(txn *catalog.Txn, p *catalog.Pipeline, refused map[uint32]*TableError) error {
	for _, t := range txn.EveryTableOf(p.ID) {
		why := refused[t.SourceOID]
		if why == nil || t.CopyOf == 0 && t.Answers() || t.State == catalog.TableStopped {
			continue
		}
		t.State, t.Reason, t.StoppedAt = catalog.TableStopped, why.Reason, ""
		t.Hint = exactHint(txn, why.Hint, t.ID)
		if err := txn.PutTable(t); err != nil {
			return err
		}
		if t.CopyOf != 0 {
			continue // that it is given up is told
		}
		err := txn.AddEvent(catalog.Event{
			At: txn.Now(), Level: "error", Pipeline: p.Name, Table: t.Schema + "." + t.Name, Kind: "table stopped",
			Detail: t.Reason + hintAfter(t.Hint),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// renew gives tables that are to be copied after a RESET a token of the stream that was
// created.
func (s *session) renew(txn *catalog.Txn, token int64) error {
	for _, t := range txn.EveryTableOf(s.pipeline.ID) {
		if t.State != catalog.TablePending {
			continue
		}
		t.Backfill.Token = token
		if err := txn.PutTable(t); err != nil {
			return err
		}
	}
	return nil
}

// streamTables are the tables that the stream delivers: all but the stopped, and those that
// came while the session runs, of which the source has not been told.
func (s *session) streamTables() []StreamTable {
	snap := s.deps.Catalog.Snapshot()
	defer snap.Close()
	var tables []StreamTable
	var ids strings.Builder
	for _, t := range snap.EveryTableOf(s.pipeline.ID) {
		if t.State == catalog.TableStopped || s.streamed != nil && !s.streamed[t.ID] {
			continue
		}
		tables = append(tables, StreamTable{
			ID: t.ID, Source: sourceTable(t), Schema: t.Current, Versions: t.Versions, VoidVersion: t.VoidVersion,
			After: s.progress.after(t), Copied: t.Backfill.Horizon,
		})
		fmt.Fprintf(&ids, "%d ", t.ID) // not the generation: it may grow with each session
	}
	s.live.uncomputed.Begin(ids.String())
	for i := range tables {
		tables[i].Uncomputed = s.live.uncomputed.Of(tables[i].ID)
	}
	return tables
}

// freshness is the pipeline's own, else the server's.
func (s *session) freshness() time.Duration {
	if d, err := time.ParseDuration(s.pipeline.Options["freshness"]); err == nil && d >= 0 {
		return d
	}
	return s.cfg.Freshness
}

// groupInterval is the source's own, else the server's.
func (s *session) groupInterval() time.Duration {
	if p, ok := s.source.(Pacer); ok {
		return p.GroupInterval()
	}
	return s.cfg.GroupInterval
}

// logError is an error of the log: it must be opened anew before anything is read
// from the source again, since the fate of the group is open.
type logError struct{ cause error }

func (e *logError) Error() string { return e.cause.Error() }
func (e *logError) Unwrap() error { return e.cause }

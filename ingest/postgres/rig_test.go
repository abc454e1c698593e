package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// rig is a database of a test's own and a source on it.
type rig struct {
	*testing.T
	server *pgtest.Server
	dsn    string
	name   string
	sel    catalog.TableSelection
	opts   map[string]string
	src    *Source
	tables []ingest.SourceTable
	ids    map[string]change.TableID
	setup  ingest.SetupResult
	// scratch is where large transactions are kept; none by default.
	scratch ingest.Scratch
}

var (
	rigs     sync.Mutex
	rigCount int
)

// newRig makes a database with the statements run in it, and a source for all tables.
func newRig(t *testing.T, statements ...string) *rig {
	t.Helper()
	server := pgtest.Start(t)
	rigs.Lock()
	rigCount++
	name := fmt.Sprintf("p%d", rigCount)
	rigs.Unlock()
	r := &rig{
		T: t, server: server, dsn: server.CreateDatabase(t), name: name,
		sel: catalog.TableSelection{AllTables: true}, opts: map[string]string{"backfill_chunk_pages": "1"},
		ids: map[string]change.TableID{},
	}
	r.exec(statements...)
	r.reopen()
	return r
}

func (r *rig) exec(statements ...string) {
	r.Helper()
	r.server.Exec(r, r.dsn, statements...)
}

// reopen replaces the source by a new one, as a restart does.
func (r *rig) reopen() {
	r.Helper()
	if r.src != nil {
		_ = r.src.Close()
	}
	r.src = r.openAs(r.dsn)
}

func (r *rig) openAs(dsn string) *Source {
	r.Helper()
	clock, ids := env.System()
	conn := ingest.ResolvedConnection{Name: r.name, Kind: "postgres", Options: map[string]string{"DSN": dsn}}
	src, err := New(r.Context(), conn, &catalog.Pipeline{Name: r.name, Selection: r.sel, Options: r.opts},
		ingest.SourceDeps{Clock: clock, IDs: ids, Scratch: r.scratch})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = src.Close() })
	return src.(*Source)
}

// begin discovers and sets up.
func (r *rig) begin() {
	r.Helper()
	var err error
	if r.tables, err = r.src.Discover(r.Context(), r.sel); err != nil {
		r.Fatal(err)
	}
	if r.setup, err = r.src.Setup(r.Context(), r.setup.State, r.tables); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) table(name string) ingest.SourceTable {
	r.Helper()
	for _, t := range r.tables {
		if t.Name == name {
			return t
		}
	}
	r.Fatalf("no table %s", name)
	return ingest.SourceTable{}
}

// newSchema is the lake schema of a source table.
func newSchema(t testing.TB, st ingest.SourceTable) *schema.Table {
	t.Helper()
	var cols []schema.NewField
	for _, c := range st.Columns {
		f := schema.NewField{Name: c.Name, Type: c.Type, OID: c.OID, TypMod: c.TypMod, NotNull: c.NotNull, AttNum: c.AttNum, Computed: c.Computed}
		if c.OID >= firstUserOID {
			f.TypeName = c.TypeName
		}
		cols = append(cols, f)
	}
	s, err := schema.New(cols, st.Key)
	if err != nil {
		t.Fatal(err)
	}
	s.WholeRow = st.WholeRow
	return s
}

func (r *rig) backfill() ingest.Backfill {
	r.Helper()
	b, err := r.src.Backfill(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = b.Close() })
	return b
}

// read returns the rows of chunks as text.
func (r *rig) read(b ingest.Backfill, name string, chunks []string) ([]string, error) {
	r.Helper()
	t := r.table(name)
	s := newSchema(r, t)
	var rows []string
	for _, c := range chunks {
		err := b.Read(r.Context(), t, s, c, r.setup.Token, func(batch *change.Batch) error {
			defer batch.Release()
			for i := range int(batch.Record.NumRows()) {
				rows = append(rows, render(batch.Record, i))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// copy returns all rows of a table in one session's snapshot.
func (r *rig) copy(b ingest.Backfill, name string) []string {
	r.Helper()
	chunks, err := b.Plan(r.Context(), r.table(name))
	if err != nil {
		r.Fatal(err)
	}
	rows, err := r.read(b, name, chunks)
	if err != nil {
		r.Fatal(err)
	}
	return rows
}

// render writes a row's own columns, nulls as "-".
func render(rec arrow.RecordBatch, row int) string {
	var out []string
	for i := change.SystemColumns; i < int(rec.NumCols()); i++ {
		if rec.Column(i).IsNull(row) {
			out = append(out, "-")
			continue
		}
		out = append(out, rec.Column(i).ValueStr(row))
	}
	return strings.Join(out, "|")
}

// renderLeft is render with "~" for what was left out, "^" where it is under the old key.
func renderLeft(b *change.Batch, row int) string {
	columns := strings.Split(render(b.Record, row), "|")
	for _, u := range b.Unchanged {
		switch {
		case int(u.Row) != row:
		case columns[u.Column] != "-":
			columns[u.Column] = "not null but left out"
		case u.Moved:
			columns[u.Column] = "^"
		default:
			columns[u.Column] = "~"
		}
	}
	return strings.Join(columns, "|")
}

// stream starts to stream into a new sink; it ends with the test, or with stop.
func (r *rig) stream(from change.Position, after map[string]change.Position) *fakeSink {
	r.Helper()
	k := newFakeSink(r, r.src)
	var tables []ingest.StreamTable
	for i, t := range r.tables {
		if t.Unsupported != "" {
			continue
		}
		id := change.TableID(i + 1)
		st := ingest.StreamTable{ID: id, Source: t, Schema: newSchema(r, t), After: after[t.Name]}
		tables = append(tables, st)
		k.builders[id] = change.NewBuilder(memory.DefaultAllocator, id, 1, st.Schema.Arrow())
		k.names[id], k.schemas[id] = t.Name, st.Schema
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.stopStream = cancel
	src := r.src
	go func() {
		k.finished <- src.Stream(ctx, from, tables, k)
	}()
	r.Cleanup(func() { _ = k.stop() })
	return k
}

// awaitStream waits until the server sends to the stream, which has looked at the tables
// before.
func (r *rig) awaitStream() {
	r.Helper()
	r.exec(`DO $$ BEGIN
		FOR i IN 1..18000 LOOP
			IF EXISTS (SELECT FROM pg_replication_slots WHERE active AND database = current_database()) THEN RETURN; END IF;
			PERFORM pg_sleep(0.01);
		END LOOP;
		RAISE EXCEPTION 'no stream begins';
	END $$`)
}

// columnsText renders a schema version: "1 id int8, 2 v text = initial".
func columnsText(s *schema.Table) string {
	words := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		words[i] = fmt.Sprintf("%d %s %s", f.ID, f.Name, f.SQLType())
		if f.Initial != nil {
			words[i] += " = " + *f.Initial
		}
	}
	return strings.Join(words, ", ")
}

// fakeSink keeps what a stream delivers, as lines.
type fakeSink struct {
	t          testing.TB
	src        *Source
	builders   map[change.TableID]*change.Builder
	names      map[change.TableID]string
	finished   chan error
	stopStream context.CancelFunc
	changed    chan struct{}

	open    []string
	schemas map[change.TableID]*schema.Table
	stopped map[change.TableID]bool
	touched map[change.TableID]bool
	token   int64

	mu struct {
		sync.Mutex
		lines  []string
		tokens []int64
		last   change.Position
		idle   change.Position
		noAck  bool
		ended  bool
		err    error
	}
}

var _ ingest.Sink = (*fakeSink)(nil)

func newFakeSink(t testing.TB, src *Source) *fakeSink {
	return &fakeSink{
		t: t, src: src, builders: map[change.TableID]*change.Builder{}, names: map[change.TableID]string{},
		finished: make(chan error, 1), changed: make(chan struct{}, 1),
		schemas: map[change.TableID]*schema.Table{}, stopped: map[change.TableID]bool{}, touched: map[change.TableID]bool{},
	}
}

func (k *fakeSink) Begin(token int64, committedAt time.Time) error {
	k.open, k.token = nil, token
	if time.Since(committedAt).Abs() > time.Hour {
		return fmt.Errorf("committed at %v", committedAt)
	}
	return nil
}

func (k *fakeSink) Builder(id change.TableID) (*change.Builder, error) {
	if k.stopped[id] {
		return nil, ingest.ErrTableStopped
	}
	k.touched[id] = true
	return k.builders[id], nil
}

// drain moves what a builder has into the open transaction's lines.
func (k *fakeSink) drain(id change.TableID) {
	if k.builders[id].Rows() == 0 {
		return
	}
	b := k.builders[id].Batch()
	defer b.Release()
	for i := range int(b.Rows()) {
		op := strings.Trim(b.Record.Column(0).ValueStr(i), " ")
		ord := b.Record.Column(2).ValueStr(i)
		verb := map[string]string{"1": "insert", "2": "update", "3": "delete"}[op]
		k.open = append(k.open, fmt.Sprintf("%05s %s %s %s", ord, k.names[id], verb, renderLeft(b, i)))
	}
}

func (k *fakeSink) Truncate(id change.TableID) error {
	for id := range k.touched {
		k.drain(id)
	}
	k.flushOpen()
	k.open = append(k.open, fmt.Sprintf("%s truncate", k.names[id]))
	k.flushOpen()
	return nil
}

// flushOpen puts the open lines in source order, without their ordinals.
func (k *fakeSink) flushOpen() {
	slices.Sort(k.open)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, line := range k.open {
		if len(line) > 6 && line[5] == ' ' && line[0] >= '0' && line[0] <= '9' {
			line = line[6:]
		}
		k.mu.lines = append(k.mu.lines, line)
	}
	k.open = nil
}

func (k *fakeSink) Commit(at change.Position) error {
	for id := range k.touched {
		k.drain(id)
	}
	clear(k.touched)
	k.flushOpen()
	k.mu.Lock()
	k.mu.last = at
	k.mu.tokens = append(k.mu.tokens, k.token)
	ack := !k.mu.noAck
	k.mu.Unlock()
	if ack {
		k.src.Ack(at)
	}
	k.poke()
	return nil
}

func (k *fakeSink) Abort() error {
	return errors.New("pgoutput aborted a transaction that it had begun")
}

func (k *fakeSink) Idle(at change.Position) error {
	k.mu.Lock()
	k.mu.idle = at
	ack := !k.mu.noAck
	k.mu.Unlock()
	if ack {
		k.src.Ack(at)
	}
	k.poke()
	return nil
}

func (k *fakeSink) Evolve(id change.TableID, c ingest.SchemaChange) (*schema.Table, error) {
	for id := range k.touched {
		k.drain(id)
	}
	k.flushOpen()
	next, err := c.Next(k.schemas[id])
	var problem *ingest.TableError
	if errors.As(err, &problem) {
		if err := k.StopTable(id, problem); err != nil {
			return nil, err
		}
		return nil, ingest.ErrTableStopped
	}
	if err != nil || next == k.schemas[id] {
		return next, err
	}
	k.open = append(k.open, fmt.Sprintf("%s is now %s", k.names[id], columnsText(next)))
	k.flushOpen()
	k.builders[id].Release()
	k.schemas[id] = next
	k.builders[id] = change.NewBuilder(memory.DefaultAllocator, id, next.Version, next.Arrow())
	return next, nil
}

func (k *fakeSink) StopTable(id change.TableID, why *ingest.TableError) error {
	k.stopped[id] = true
	delete(k.touched, id)
	if k.builders[id].Rows() > 0 {
		k.builders[id].Batch().Release() // panics unless the columns are even
	}
	k.mu.Lock()
	verb := "stopped"
	if why.Resync {
		verb = "is copied anew"
	}
	k.mu.lines = append(k.mu.lines, fmt.Sprintf("%s %s: %s", k.names[id], verb, why.Reason))
	if why.Hint == "" {
		k.mu.lines = append(k.mu.lines, "without a hint")
	}
	k.mu.Unlock()
	k.poke()
	return nil
}

func (k *fakeSink) poke() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// patience is how long tests wait for what must come: a machine that does much else takes
// its time.
const patience = 3 * time.Minute

// await waits until ok, called under the lock, is true.
func (k *fakeSink) await(what string, ok func() bool) {
	k.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		k.mu.Lock()
		done := ok()
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-k.changed:
		case err := <-k.finished:
			k.finished <- err
			k.t.Fatalf("awaiting %s: stream ended: %v", what, err)
		case <-deadline.C:
			k.mu.Lock()
			defer k.mu.Unlock()
			k.t.Fatalf("awaiting %s: too long; lines:\n%s", what, strings.Join(k.mu.lines, "\n"))
		}
	}
}

// expect waits for as many lines as want has and compares.
func (k *fakeSink) expect(want ...string) {
	k.t.Helper()
	k.await(fmt.Sprintf("%d lines", len(want)), func() bool { return len(k.mu.lines) >= len(want) })
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.mu.lines, want) {
		k.t.Fatalf("got\n%s\nwant\n%s", strings.Join(k.mu.lines, "\n"), strings.Join(want, "\n"))
	}
}

// position is the last commit's.
func (k *fakeSink) position() change.Position {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.last
}

// stop ends the stream and returns how it ended.
func (k *fakeSink) stop() error {
	k.mu.Lock()
	ended := k.mu.ended
	k.mu.ended = true
	err := k.mu.err
	k.mu.Unlock()
	if ended {
		return err
	}
	k.stopStream()
	err = <-k.finished
	k.finished <- err
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	k.mu.Lock()
	k.mu.err = err
	k.mu.Unlock()
	return err
}

// end waits until the stream ends by itself and returns how.
func (k *fakeSink) end() error {
	k.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case err := <-k.finished:
		k.finished <- err
		return err
	case <-deadline.C:
		k.t.Fatal("the stream did not end")
	}
	return nil
}

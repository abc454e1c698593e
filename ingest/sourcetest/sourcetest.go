// Package sourcetest is the suite that every ingest.Source must pass. It knows no
// source: a Harness opens the source under test, as after each restart of ours, and
// makes changes in the system behind it.
//
// Reading order: Harness, Run, Recorder.
package sourcetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// Harness makes the world of one test. Open and Produce belong to the same external
// system, empty of what earlier tests had set up.
type Harness struct {
	// Selection names the tables of the test: at least one with a key and with rows.
	Selection catalog.TableSelection
	// Open makes a source on the system; at is the pipeline's durable position then.
	Open func(t *testing.T, at change.Position) ingest.Source
	// Produce commits at least n transactions at the system, each of which changes a
	// table of the selection, and returns when they are committed.
	Produce func(t *testing.T, n int)
}

// timeout bounds each wait for a source.
const timeout = 30 * time.Second

// Run runs the suite; make is called once for each test.
func Run(t *testing.T, make func(t *testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, *run){
		"Discover":         testDiscover,
		"SetupIdempotent":  testSetupIdempotent,
		"SetupTwiceFresh":  testSetupTwiceFresh,
		"WholeTransaction": testWholeTransactions,
		"Resend":           testResend,
		"SkipAfter":        testSkipAfter,
		"SinkError":        testSinkError,
		"StreamEnds":       testStreamEnds,
		"Backfill":         testBackfill,
		"BackfillResumes":  testBackfillResumes,
		"Compare":          testCompare,
		"Teardown":         testTeardown,
	} {
		t.Run(name, func(t *testing.T) { test(t, &run{Harness: make(t), t: t}) })
	}
}

// run is one test's use of a harness.
type run struct {
	Harness
	t      *testing.T
	tables []ingest.SourceTable
	stream []ingest.StreamTable
}

func (r *run) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), timeout)
}

// setup opens, discovers and sets up a new stream.
func (r *run) setup() (ingest.Source, ingest.SetupResult) {
	r.t.Helper()
	s := r.open("")
	r.discover(s)
	return s, r.setUp(s, nil)
}

func (r *run) open(at change.Position) ingest.Source {
	r.t.Helper()
	s := r.Open(r.t, at)
	r.t.Cleanup(func() { _ = s.Close() }) // closing twice is allowed
	return s
}

func (r *run) discover(s ingest.Source) {
	r.t.Helper()
	ctx, cancel := r.context()
	defer cancel()
	found, err := s.Discover(ctx, r.Selection)
	if err != nil {
		r.t.Fatalf("discover: %v", err)
	}
	for _, f := range found {
		if f.Unsupported == "" {
			r.tables = append(r.tables, f)
		}
	}
	for i, f := range r.tables {
		cols := make([]schema.NewField, len(f.Columns))
		for j, c := range f.Columns {
			cols[j] = schema.NewField{
				Name: c.Name, Type: c.Type, OID: c.OID, TypMod: c.TypMod, NotNull: c.NotNull, AttNum: c.AttNum,
			}
		}
		st, err := schema.New(cols, f.Key)
		if err != nil {
			r.t.Fatalf("schema of %s: %v", f.Name, err)
		}
		r.stream = append(r.stream, ingest.StreamTable{ID: change.TableID(i + 1), Source: f, Schema: st})
	}
	if len(r.stream) == 0 {
		r.t.Fatal("no tables to test with")
	}
}

func (r *run) setUp(s ingest.Source, state []byte) ingest.SetupResult {
	r.t.Helper()
	ctx, cancel := r.context()
	defer cancel()
	result, err := s.Setup(ctx, state, r.tables)
	if err != nil {
		r.t.Fatalf("set up: %v", err)
	}
	return result
}

// reopen is a restart of ours at a position.
func (r *run) reopen(old ingest.Source, state []byte, at change.Position) ingest.Source {
	r.t.Helper()
	if err := old.Close(); err != nil {
		r.t.Fatalf("close: %v", err)
	}
	s := r.open(at)
	if result := r.setUp(s, state); result.Created {
		r.t.Fatal("a set-up with state made a new stream")
	}
	return s
}

// follow streams from a position until n transactions with changes have come.
func (r *run) follow(s ingest.Source, from change.Position, tables []ingest.StreamTable, n int) []Transaction {
	r.t.Helper()
	ctx, cancel := r.context()
	defer cancel()
	rec := NewRecorder(tables, n)
	err := s.Stream(ctx, from, tables, rec)
	if !errors.Is(err, ErrEnough) {
		r.t.Fatalf("stream from %q gave %d of %d transactions, then %v", from, len(rec.Transactions), n, err)
	}
	if rec.Broken != "" {
		r.t.Fatalf("the stream broke the sink's contract: %s", rec.Broken)
	}
	return rec.Transactions
}

func testDiscover(t *testing.T, r *run) {
	s := r.open("")
	r.discover(s)
	for _, f := range r.tables {
		if f.Schema == "" || f.Name == "" || f.OID == 0 || len(f.Columns) == 0 {
			t.Errorf("table is not described: %+v", f)
		}
		for _, k := range f.Key {
			if !slices.ContainsFunc(f.Columns, func(c ingest.SourceColumn) bool { return c.Name == k }) {
				t.Errorf("key column %q of %s is not a column", k, f.Name)
			}
		}
	}
}

func testSetupIdempotent(t *testing.T, r *run) {
	s, first := r.setup()
	if !first.Created || len(first.State) == 0 {
		t.Fatalf("first set-up: created %t with %d bytes of state", first.Created, len(first.State))
	}
	s = r.reopen(s, first.State, first.Start)
	again := r.setUp(s, first.State)
	if again.Created {
		t.Error("setting up again with state made a new stream")
	}
}

// testSetupTwiceFresh is a crash after the first set-up, before its state was kept.
func testSetupTwiceFresh(t *testing.T, r *run) {
	s, _ := r.setup()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = r.open("")
	second := r.setUp(s, nil)
	if !second.Created {
		t.Fatal("a set-up without state did not make a new stream")
	}
	r.Produce(t, 3)
	r.follow(s, second.Start, r.stream, 3)
}

func testWholeTransactions(t *testing.T, r *run) {
	s, setup := r.setup()
	r.Produce(t, 20)
	got := r.follow(s, setup.Start, r.stream, 20)
	last := setup.Start
	token := setup.Token
	for _, tx := range got {
		if s.Compare(tx.Position, last) <= 0 {
			t.Errorf("position %s after %s", tx.Position, last)
		}
		if tx.Token <= token {
			t.Errorf("token %d after %d", tx.Token, token)
		}
		last, token = tx.Position, tx.Token
	}
}

func testResend(t *testing.T, r *run) {
	s, setup := r.setup()
	r.Produce(t, 20)
	first := r.follow(s, setup.Start, r.stream, 20)
	at := first[6].Position
	s.Ack(at)
	s = r.reopen(s, setup.State, at)
	again := r.follow(s, at, r.stream, 13)
	for i, tx := range again {
		if want := first[7+i]; !tx.Equal(want) {
			t.Fatalf("transaction %d after the acknowledged one differs when sent again:\n got %v\nwant %v", i+1, tx, want)
		}
	}
}

// testSkipAfter has one table skip what it has, while the others get it again.
func testSkipAfter(t *testing.T, r *run) {
	s, setup := r.setup()
	r.Produce(t, 20)
	first := r.follow(s, setup.Start, r.stream, 20)
	skip := first[9].Position
	tables := slices.Clone(r.stream)
	for i := range tables {
		tables[i].After = skip
	}
	s = r.reopen(s, setup.State, setup.Start)
	again := r.follow(s, setup.Start, tables, 10)
	for i, tx := range again {
		if want := first[10+i]; !tx.Equal(want) {
			t.Fatalf("transaction %d after the skipped ones differs:\n got %v\nwant %v", i+1, tx, want)
		}
	}
}

func testSinkError(t *testing.T, r *run) {
	s, setup := r.setup()
	r.Produce(t, 3)
	if got := r.follow(s, setup.Start, r.stream, 1); len(got) != 1 {
		t.Errorf("after the sink's error %d transactions", len(got))
	}
}

func testStreamEnds(t *testing.T, r *run) {
	s, setup := r.setup()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Stream(ctx, setup.Start, r.stream, NewRecorder(r.stream, 1<<30)) }()
	cancel()
	wait, stop := r.context()
	defer stop()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the stream ended without an error")
		}
	case <-wait.Done():
		t.Fatal("the stream did not end with its context")
	}
}

func testCompare(t *testing.T, r *run) {
	s, setup := r.setup()
	r.Produce(t, 2)
	got := r.follow(s, setup.Start, r.stream, 2)
	a, b := got[0].Position, got[1].Position
	if s.Compare(a, b) >= 0 || s.Compare(b, a) <= 0 || s.Compare(a, a) != 0 {
		t.Errorf("positions %s and %s do not compare", a, b)
	}
	if s.Compare("", a) >= 0 || s.Compare(a, "") <= 0 || s.Compare("", "") != 0 {
		t.Error("the empty position is not the lowest")
	}
}

func testTeardown(t *testing.T, r *run) {
	s, setup := r.setup()
	ctx, cancel := r.context()
	defer cancel()
	for range 2 {
		left, err := s.Teardown(ctx, setup.State)
		if err != nil || len(left) > 0 {
			t.Fatalf("tear down: left %v, %v", left, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

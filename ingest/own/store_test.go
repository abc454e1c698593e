package own_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/own"
	"github.com/skipprd/skipprd/ingest/sourcetest"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/env"
)

// changes are rows of tables: table, operation, id and a text.
type changes []row

type row struct {
	table    change.TableID
	op       change.Op
	id       int32
	text     string
	truncate bool
	version  uint32
}

var things = func() *schema.Table {
	s, err := schema.New([]schema.NewField{
		{Name: "id", Type: schema.Type{Kind: schema.Int32}, OID: 23, TypMod: -1, NotNull: true},
		{Name: "text", Type: schema.Type{Kind: schema.String}, OID: 25, TypMod: -1},
	}, []string{"id"})
	if err != nil {
		panic(err)
	}
	return s
}()

func (c changes) Each(f func(*change.Batch) error) error {
	for _, r := range c {
		b := change.NewBuilder(memory.DefaultAllocator, r.table, max(r.version, things.Version), things.Arrow())
		b.Truncate = r.truncate
		if r.op != 0 {
			b.Add(r.op, 0, 0)
			b.Column(0).(*array.Int32Builder).Append(r.id)
			b.Column(1).(*array.StringBuilder).Append(r.text)
		}
		batch := b.Batch()
		err := f(batch)
		batch.Release()
		b.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// rig is a store with one stream at a time.
type rig struct {
	*testing.T
	store *own.Store
	clock env.Clock
}

func newRig(t *testing.T) *rig {
	clock, _ := env.System() // the bubble's
	return &rig{t, own.NewStore(own.Deps{Clock: clock, Tasks: env.Goroutines(clock)}), clock}
}

// stream is a running stream and what it has delivered.
type stream struct {
	source ingest.Source
	sink   *sourcetest.Recorder
	stop   func() error
}

func (r *rig) stream(from change.Position, tables ...ingest.StreamTable) *stream {
	source, err := r.store.Source(r.Context(), ingest.ResolvedConnection{}, nil, ingest.SourceDeps{})
	if err != nil {
		r.Fatal(err)
	}
	if len(tables) == 0 {
		tables = []ingest.StreamTable{table(1), table(2)}
	}
	s := &stream{source: source, sink: sourcetest.NewRecorder(tables, 1000)}
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Stream(ctx, from, tables, s.sink) }()
	s.stop = func() error {
		cancel()
		return <-ended
	}
	synctest.Wait()
	return s
}

func table(id change.TableID) ingest.StreamTable {
	return ingest.StreamTable{ID: id, Source: ingest.SourceTable{Name: fmt.Sprintf("t%d", id)}, Schema: things}
}

// commit is a session that commits.
type commit struct {
	done    chan error
	cancel  context.CancelCauseFunc
	settled int
}

func (r *rig) commit(c changes) *commit {
	ctx, cancel := context.WithCancelCause(r.Context())
	out := &commit{done: make(chan error, 1), cancel: cancel}
	go func() { out.done <- r.store.Commit(ctx, c, func() { out.settled++ }) }()
	synctest.Wait()
	return out
}

// result is what the session was told, and whether its fate is known.
func (c *commit) result(t *testing.T) (err error, told bool) {
	t.Helper()
	synctest.Wait()
	select {
	case err = <-c.done:
		return err, true
	default:
		return nil, false
	}
}

func (c *commit) want(t *testing.T, what string, want error, settled int) {
	t.Helper()
	err, told := c.result(t)
	if !told || !errors.Is(err, want) || c.settled != settled {
		t.Errorf("%s: told %t: %v, settled %d times; want %v, %d", what, told, err, c.settled, want, settled)
	}
}

func (c *commit) waits(t *testing.T, what string) {
	t.Helper()
	if err, told := c.result(t); told || c.settled != 0 {
		t.Errorf("%s: told %t: %v, settled %d times", what, told, err, c.settled)
	}
}

func (s *stream) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for _, tx := range s.sink.Transactions {
		got = append(got, fmt.Sprintf("%d@%s %v", tx.Token, tx.Position, tx.Changes))
	}
	if !slices.Equal(got, want) || s.sink.Broken != "" {
		t.Errorf("delivered %q (%s), want %q", got, s.sink.Broken, want)
	}
}

// A transaction is told of when it is acknowledged, and not before; those before it too.
func TestCommitWaitsForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first := r.commit(changes{{table: 1, op: change.Insert, id: 1, text: "a"}})
		first.waits(t, "without a stream")
		s := r.stream("0")
		second := r.commit(changes{{table: 2, op: change.Delete, id: 7}, {table: 1, truncate: true}, {table: 1, op: change.Insert, id: 2}})
		s.want(t, "1@1 [t1 1 0 1|a]", "2@2 [t1 truncate t1 1 1 2| t2 3 0 7|]")
		first.waits(t, "delivered")
		s.source.Ack("1")
		first.want(t, "acknowledged", nil, 1)
		second.waits(t, "not acknowledged")
		s.source.Ack("2")
		second.want(t, "acknowledged", nil, 1)
		if err := s.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("stream ended with %v", err)
		}
	})
}

// While definitions are not settled nothing is given to the log: who waits can give up, and gets
// his transaction back; a stream that begins later, when they are, gets the rest.
func TestStreamWaitsForSettledDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		open := errors.New("test: the store does not answer")
		err := open
		r.store = own.NewStore(own.Deps{Clock: r.clock, Tasks: env.Goroutines(r.clock), Settled: func(context.Context) error { return err }})
		first := r.commit(changes{{table: 1, op: change.Insert, id: 1}})
		second := r.commit(changes{{table: 1, op: change.Insert, id: 2}})
		s := r.stream("0")
		s.want(t)
		first.waits(t, "not settled")
		if err := s.stop(); !errors.Is(err, open) {
			t.Errorf("stream ended with %v", err)
		}
		gone := errors.New("test: canceled")
		first.cancel(gone)
		first.want(t, "given up", gone, 1)
		err = nil
		s = r.stream("0")
		s.want(t, "1@1 [t1 1 0 2|]")
		err = open // what comes later waits again
		third := r.commit(changes{{table: 1, op: change.Insert, id: 3}})
		s.want(t, "1@1 [t1 1 0 2|]")
		s.source.Ack("1")
		second.want(t, "acknowledged", nil, 1)
		third.waits(t, "not settled")
		if err := s.stop(); !errors.Is(err, open) {
			t.Errorf("stream ended with %v", err)
		}
	})
}

// A stream that begins anew gets what is not durable, under the same tokens; what is
// durable without having been acknowledged is told of.
func TestStreamResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.stream("41")
		a := r.commit(changes{{table: 1, op: change.Insert, id: 1}})
		b := r.commit(changes{{table: 1, op: change.Insert, id: 2}})
		s.want(t, "42@42 [t1 1 0 1|]", "43@43 [t1 1 0 2|]")
		_ = s.stop()
		b.waits(t, "between streams")
		s = r.stream("42")
		a.want(t, "durable", nil, 1)
		s.want(t, "43@43 [t1 1 0 2|]")
		_ = s.stop()
		// Another table held the position back: this one has the change already.
		has := table(1)
		has.After = "43"
		s = r.stream("42", has, table(2))
		s.want(t)
		s.source.Ack("43")
		b.want(t, "durable", nil, 1)
		_ = s.stop()
	})
}

// A commit that is interrupted is taken back while the log has not been given it; else
// its fate is open, and is known when the log is opened anew.
func TestCommitIsInterrupted(t *testing.T) {
	cause := errors.New("canceled by the user")
	for _, c := range []struct {
		name    string
		durable bool
	}{{"durable", true}, {"lost", false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				early := r.commit(changes{{table: 1, op: change.Insert, id: 1}})
				early.cancel(cause)
				early.want(t, "not delivered", cause, 1)
				s := r.stream("0")
				late := r.commit(changes{{table: 1, op: change.Insert, id: 2}})
				next := r.commit(changes{{table: 1, op: change.Insert, id: 3}})
				s.want(t, "1@1 [t1 1 0 2|]", "2@2 [t1 1 0 3|]")
				late.cancel(cause)
				late.want(t, "delivered", own.ErrInDoubt, 0)
				_ = s.stop()
				if !c.durable {
					s = r.stream("0")
					s.want(t, "2@2 [t1 1 0 3|]")
				} else {
					s = r.stream("1")
					s.want(t, "2@2 [t1 1 0 3|]")
				}
				if late.settled != 1 {
					t.Error("the fate is known, and nobody was told")
				}
				s.source.Ack("2")
				next.want(t, "acknowledged", nil, 1)
				_ = s.stop()
			})
		})
	}
}

// A transaction whose table is gone, or has other columns, is refused as a whole; the next
// goes on.
func TestTableIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.stream("0", table(1))
		gone := r.commit(changes{{table: 1, op: change.Insert, id: 1}, {table: 2, op: change.Insert, id: 1}})
		other := r.commit(changes{{table: 1, op: change.Insert, id: 1, version: 7}})
		s.sink.Stops[1] = "stopped"
		stopped := r.commit(changes{{table: 1, op: change.Insert, id: 1}})
		delete(s.sink.Stops, 1)
		fine := r.commit(changes{{table: 1, op: change.Insert, id: 2}})
		for name, c := range map[string]*commit{"dropped": gone, "other version": other, "stopped": stopped} {
			c.want(t, name, own.ErrTableGone, 1)
		}
		s.source.Ack(s.sink.Transactions[len(s.sink.Transactions)-1].Position)
		fine.want(t, "the next", nil, 1)
		_ = s.stop()
	})
}

// A transaction for which the log has no room, or that it never takes, is given up, and
// does not keep the others.
func TestTransactionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := r.stream("0")
		large := r.commit(changes{{table: 1, op: change.Insert, id: 1}})
		next := r.commit(changes{{table: 1, op: change.Insert, id: 2}})
		s.source.(ingest.Rejecter).Reject(errors.New("full"))
		large.want(t, "no room", own.ErrNoRoom, 1)
		next.waits(t, "behind it")
		for range 9 {
			_ = s.stop()
			s = r.stream("0")
			next.waits(t, "tried")
		}
		last := r.commit(changes{{table: 1, op: change.Insert, id: 3}})
		_ = s.stop()
		s = r.stream("0")
		next.want(t, "tried often", own.ErrGivenUp, 1)
		s.want(t, "3@3 [t1 1 0 3|]")
		s.source.Ack("3")
		last.want(t, "the last", nil, 1)
		_ = s.stop()
	})
}

// Every type that a table can have comes through, with nulls.
func TestValues(t *testing.T) {
	kinds := []schema.Type{
		{Kind: schema.Bool},
		{Kind: schema.Int32},
		{Kind: schema.Int64},
		{Kind: schema.Float32},
		{Kind: schema.Float64},
		{Kind: schema.Decimal, Precision: 10, Scale: 2},
		{Kind: schema.Date},
		{Kind: schema.Time},
		{Kind: schema.Timestamp},
		{Kind: schema.TimestampTZ},
		{Kind: schema.String},
		{Kind: schema.Binary},
		{Kind: schema.UUID},
		{Kind: schema.List, Elem: &schema.Type{Kind: schema.Int64}},
	}
	fields := make([]schema.NewField, len(kinds))
	for i, k := range kinds {
		fields[i] = schema.NewField{Name: fmt.Sprintf("c%d", i), Type: k, OID: 25, TypMod: -1}
	}
	s, err := schema.New(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := change.NewBuilder(memory.DefaultAllocator, 1, s.Version, s.Arrow())
	defer from.Release()
	for n := range 3 {
		from.Add(change.Insert, 0, 0)
		for i := range kinds {
			appendSample(from.Column(i), n)
		}
	}
	batch := from.Batch()
	defer batch.Release()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		st := ingest.StreamTable{ID: 1, Source: ingest.SourceTable{Name: "t"}, Schema: s}
		str := r.stream("0", st)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- r.store.Commit(ctx, one{batch}, nil) }()
		synctest.Wait()
		if len(str.sink.Transactions) != 1 || str.sink.Broken != "" {
			t.Fatalf("delivered %v, %s", str.sink.Transactions, str.sink.Broken)
		}
		for n, got := range str.sink.Transactions[0].Changes {
			want := fmt.Sprintf("t 1 %d %s", n, sourcetest.RowText(batch.Record, n))
			if got != want {
				t.Errorf("row %d is\n%s, want\n%s", n, got, want)
			}
		}
		str.source.Ack("1")
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = str.stop()
	})
}

type one struct{ *change.Batch }

func (o one) Each(f func(*change.Batch) error) error { return f(o.Batch) }

// appendSample appends a null for every third row.
func appendSample(b array.Builder, n int) {
	if n == 1 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		for i := range n {
			appendSample(b.ValueBuilder(), i)
		}
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte("0123456789abcdef"))
	case *array.BinaryBuilder:
		b.Append([]byte{0, byte(n)})
	case *array.BooleanBuilder:
		b.Append(n > 0)
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(1000 + n))
	case *array.Time64Builder:
		b.Append(arrow.Time64(1000 + n))
	default:
		if err := b.AppendValueFromString(fmt.Sprint(n)); err != nil {
			panic(err)
		}
	}
}

func FuzzPosition(f *testing.F) {
	for _, p := range []string{"", "0", "41", "-1", "007", "9223372036854775807", "9223372036854775808", "x"} {
		f.Add(p)
	}
	s := own.NewStore(own.Deps{})
	source, _ := s.Source(f.Context(), ingest.ResolvedConnection{}, nil, ingest.SourceDeps{})
	f.Fuzz(func(t *testing.T, p string) {
		source.Ack(change.Position(p)) // whatever it is
		status, err := source.Status(t.Context())
		if err != nil || source.Compare(status.Current, status.Confirmed) < 0 {
			t.Errorf("after %q: %+v, %v", p, status, err)
		}
	})
}

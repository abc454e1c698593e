package sourcetest

import (
	"slices"
	"sync"
	"testing"

	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// copied is what a backfill reads of one table: row by chunk.
type copied map[string][]string

func (r *run) copyTable(b ingest.Backfill, st ingest.StreamTable, chunks []string, token int64) copied {
	r.t.Helper()
	ctx, cancel := r.context()
	defer cancel()
	out := copied{}
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, max(1, b.Parallel()))
	for _, chunk := range chunks {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			var rows []string
			err := b.Read(ctx, st.Source, st.Schema, chunk, token, func(batch *change.Batch) error {
				defer batch.Release()
				if !batch.Backfill || batch.SchemaVersion != st.Schema.Version ||
					int64(batch.Counts.Inserts) != batch.Rows() ||
					batch.Counts.MinToken != token || batch.Counts.MaxToken != token {
					r.t.Errorf("batch of the backfill: %+v, token %d", batch.Counts, token)
				}
				for i := range int(batch.Rows()) {
					rows = append(rows, RowText(batch.Record, i))
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.t.Errorf("read %s %q: %v", st.Source.Name, chunk, err)
			}
			out[chunk] = rows
		}()
	}
	wg.Wait()
	return out
}

// all are the rows of all chunks, sorted.
func (c copied) all() []string {
	var rows []string
	for _, chunk := range c {
		rows = append(rows, chunk...)
	}
	slices.Sort(rows)
	return rows
}

func (r *run) openBackfill(s ingest.Source) ingest.Backfill {
	r.t.Helper()
	ctx, cancel := r.context()
	defer cancel()
	b, err := s.Backfill(ctx)
	if err != nil {
		r.t.Fatalf("open backfill: %v", err)
	}
	return b
}

func (r *run) plan(b ingest.Backfill, st ingest.StreamTable) []string {
	r.t.Helper()
	ctx, cancel := r.context()
	defer cancel()
	chunks, err := b.Plan(ctx, st.Source)
	if err != nil {
		r.t.Fatalf("plan %s: %v", st.Source.Name, err)
	}
	return chunks
}

// testBackfill reads the very state at which the stream begins: what is committed
// after the set-up is not in it, but in the stream.
func testBackfill(t *testing.T, r *run) {
	s, setup := r.setup()
	r.Produce(t, 10)
	b := r.openBackfill(s)
	if !b.Exact() || s.Compare(b.Horizon(), setup.Start) != 0 {
		t.Errorf("after a new set-up: exact %t at %s, stream starts at %s", b.Exact(), b.Horizon(), setup.Start)
	}
	rows := 0
	first := make([][]string, len(r.stream))
	for i, st := range r.stream {
		chunks := r.plan(b, st)
		first[i] = r.copyTable(b, st, chunks, setup.Token).all()
		rows += len(first[i])
		if again := r.copyTable(b, st, chunks, setup.Token).all(); !slices.Equal(first[i], again) {
			t.Errorf("%s: reading again in one session gives %d rows, then %d", st.Source.Name, len(first[i]), len(again))
		}
	}
	if rows == 0 {
		t.Error("no rows to copy")
	}
	if err := b.Close(); err != nil {
		t.Errorf("close backfill: %v", err)
	}
	for _, tx := range r.follow(s, setup.Start, r.stream, 10) {
		if tx.Token <= setup.Token {
			t.Errorf("change with token %d, the copy has %d", tx.Token, setup.Token)
		}
	}
}

// testBackfillResumes reads the chunks of a plan in a later session, after more
// changes: a session that is lost costs what it had not finished, no more.
func testBackfillResumes(t *testing.T, r *run) {
	s, setup := r.setup()
	b := r.openBackfill(s)
	plans := make([][]string, len(r.stream))
	for i, st := range r.stream {
		plans[i] = r.plan(b, st)
	}
	if err := b.Close(); err != nil {
		t.Fatalf("close backfill: %v", err)
	}
	r.Produce(t, 10)
	got := r.follow(s, setup.Start, r.stream, 10)
	s.Ack(got[9].Position)
	s = r.reopen(s, setup.State, got[9].Position)
	b = r.openBackfill(s)
	defer func() { _ = b.Close() }() // only read
	if b.Exact() {
		t.Error("a later session cannot be at the stream's start")
	}
	if s.Compare(b.Horizon(), got[9].Position) < 0 {
		t.Errorf("horizon %s is before the pipeline's position %s", b.Horizon(), got[9].Position)
	}
	for i, st := range r.stream {
		old := r.copyTable(b, st, plans[i], setup.Token).all()
		fresh := r.copyTable(b, st, r.plan(b, st), setup.Token).all()
		if !slices.Equal(old, fresh) {
			t.Errorf("%s: the old plan reads %d rows, a new one %d", st.Source.Name, len(old), len(fresh))
		}
	}
}

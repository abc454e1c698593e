package sourcetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/wal/change"
)

// ErrEnough is what a Recorder ends a stream with.
var ErrEnough = errors.New("enough transactions")

// Transaction is one transaction as a stream delivered it.
type Transaction struct {
	Token    int64
	Position change.Position
	// Changes as "table op ordinal values", by table and ordinal.
	Changes []string
}

// Equal says whether both are the same changes at the same place.
func (t Transaction) Equal(o Transaction) bool {
	return t.Token == o.Token && t.Position == o.Position && slices.Equal(t.Changes, o.Changes)
}

// Recorder is a Sink that keeps what it is told, and checks that it is told so by the
// contract. Transactions without changes are not kept.
type Recorder struct {
	Transactions []Transaction
	Idles        []change.Position
	Stops        map[change.TableID]string
	// Broken says how the contract was broken first, "" if it was not.
	Broken string

	tables   map[change.TableID]ingest.StreamTable
	builders map[change.TableID]*change.Builder
	enough   int
	open     bool
	current  Transaction
}

var _ ingest.Sink = (*Recorder)(nil)

// NewRecorder returns a recorder that ends the stream after enough transactions.
func NewRecorder(tables []ingest.StreamTable, enough int) *Recorder {
	r := &Recorder{
		tables: map[change.TableID]ingest.StreamTable{}, builders: map[change.TableID]*change.Builder{},
		Stops: map[change.TableID]string{}, enough: enough,
	}
	for _, t := range tables {
		r.tables[t.ID] = t
	}
	return r
}

func (r *Recorder) broken(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if r.Broken == "" {
		r.Broken = err.Error()
	}
	return err
}

// Begin implements ingest.Sink.
func (r *Recorder) Begin(token int64, _ time.Time) error {
	if r.open {
		return r.broken("begin inside a transaction")
	}
	r.open, r.current = true, Transaction{Token: token}
	return nil
}

// Builder implements ingest.Sink.
func (r *Recorder) Builder(id change.TableID) (*change.Builder, error) {
	t, ok := r.tables[id]
	if !r.open || !ok {
		return nil, r.broken("builder of table %d, known %t, inside a transaction %t", id, ok, r.open)
	}
	if _, stopped := r.Stops[id]; stopped {
		return nil, ingest.ErrTableStopped
	}
	b := r.builders[id]
	if b == nil {
		b = change.NewBuilder(memory.DefaultAllocator, id, t.Schema.Version, t.Schema.Arrow())
		r.builders[id] = b
	}
	return b, nil
}

// Truncate implements ingest.Sink.
func (r *Recorder) Truncate(id change.TableID) error {
	if !r.open {
		return r.broken("truncate outside a transaction")
	}
	r.collect(id)
	r.current.Changes = append(r.current.Changes, r.tables[id].Source.Name+" truncate")
	return nil
}

// Commit implements ingest.Sink.
func (r *Recorder) Commit(at change.Position) error {
	if !r.open {
		return r.broken("commit outside a transaction")
	}
	r.open = false
	ids := make([]change.TableID, 0, len(r.builders))
	for id := range r.builders {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r.collect(id)
	}
	if r.Broken != "" {
		return errors.New(r.Broken)
	}
	if len(r.current.Changes) == 0 {
		return nil
	}
	r.current.Position = at
	r.Transactions = append(r.Transactions, r.current)
	if len(r.Transactions) >= r.enough {
		return ErrEnough
	}
	return nil
}

// Abort implements ingest.Sink.
func (r *Recorder) Abort() error {
	if !r.open {
		return r.broken("abort outside a transaction")
	}
	r.open = false
	for _, b := range r.builders {
		b.Batch().Release()
	}
	return nil
}

// collect turns the rows of a builder into text and checks their system columns.
func (r *Recorder) collect(id change.TableID) {
	b := r.builders[id]
	if b == nil || b.Rows() == 0 {
		return
	}
	batch := b.Batch()
	defer batch.Release()
	rec := batch.Record
	last := int32(-1)
	for i := range int(rec.NumRows()) {
		op := change.Op(rec.Column(0).(*array.Uint8).Value(i))
		token := rec.Column(1).(*array.Int64).Value(i)
		ordinal := rec.Column(2).(*array.Int32).Value(i)
		if token != r.current.Token || ordinal <= last || op < change.Insert || op > change.Delete {
			_ = r.broken("change with token %d in %d, ordinal %d after %d, operation %d",
				token, r.current.Token, ordinal, last, op) // told by Commit
		}
		last = ordinal
		r.current.Changes = append(r.current.Changes,
			fmt.Sprintf("%s %d %d %s", r.tables[id].Source.Name, op, ordinal, RowText(rec, i)))
	}
}

// Idle implements ingest.Sink.
func (r *Recorder) Idle(at change.Position) error {
	if r.open {
		return r.broken("idle inside a transaction")
	}
	r.Idles = append(r.Idles, at)
	return nil
}

// Evolve implements ingest.Sink.
func (r *Recorder) Evolve(id change.TableID, c ingest.SchemaChange) (*schema.Table, error) {
	t, ok := r.tables[id]
	if !r.open || !ok {
		return nil, r.broken("schema change of table %d, known %t, inside a transaction %t", id, ok, r.open)
	}
	r.collect(id)
	next, err := c.Next(t.Schema)
	var problem *ingest.TableError
	if errors.As(err, &problem) {
		r.Stops[id] = problem.Reason
		return nil, ingest.ErrTableStopped
	}
	if err != nil {
		return nil, r.broken("schema change of table %d: %w", id, err)
	}
	if b := r.builders[id]; b != nil && next != t.Schema {
		b.Release()
		delete(r.builders, id)
	}
	t.Schema = next
	r.tables[id] = t
	r.current.Changes = append(r.current.Changes, fmt.Sprintf("%s schema version %d", t.Source.Name, next.Version))
	return next, nil
}

// StopTable implements ingest.Sink.
func (r *Recorder) StopTable(id change.TableID, why *ingest.TableError) error {
	r.Stops[id] = why.Reason
	if b := r.builders[id]; b != nil {
		b.Batch().Release() // discarded, as the contract says
	}
	return nil
}

// RowText renders a row without its system columns.
func RowText(rec arrow.RecordBatch, i int) string {
	words := make([]string, 0, rec.NumCols())
	for c := change.SystemColumns; c < int(rec.NumCols()); c++ {
		words = append(words, rec.Column(c).ValueStr(i))
	}
	return strings.Join(words, "|")
}

package duckdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/duckdb/driver"
	"github.com/skipprd/skipprd/lake/merge"
	"github.com/skipprd/skipprd/wal/change"
)

// blockRowsMax is up to how many rows small slices are put together: a scan hands
// out work in pieces of this order, and a row is copied at most about log2 of it
// times.
const blockRowsMax = 64 << 10

// blockBytesMax is up to how many bytes they are: copying costs more than a short scan
// where rows are large.
const blockBytesMax = 8 << 20

// liveLog holds slices of one table in log order, with their collapse. Small slices
// are put together into blocks, so that a table that gets a slice per commit is not
// scanned a row at a time. Not safe for concurrent use.
type liveLog struct {
	// first is the ordinal of refs[0].
	first  merge.Ordinal
	refs   []LiveSlice
	index  *merge.Index
	blocks []liveBlock
	broken bool
}

// liveBlock is the rows [from, to) of the index.
type liveBlock struct {
	*driver.Block
	version  uint32
	from, to uint64
	bytes    int64
	// newest is the block's part of a pin that holds all its rows, begins after lo and ends
	// at the newest slice, as it was when superseded rows had lost. But for counted rows it
	// is the same for each lo.
	newest     blockPart
	superseded int
	lo         merge.Ordinal
}

// blockPart is the winners of a block in some pin.
type blockPart struct {
	known   bool
	rows    []int32
	all     bool
	deletes int64
}

// newLiveLog returns an empty log; counted as in merge.NewCounted.
func newLiveLog(counted bool) *liveLog {
	if counted {
		return &liveLog{first: 1, index: merge.NewCounted()}
	}
	return &liveLog{first: 1, index: merge.NewIndex()}
}

// close gives the blocks back; views keep their own references.
func (l *liveLog) close() {
	for _, b := range l.blocks {
		b.Release()
	}
	l.blocks = nil
}

// bytes is the memory held.
func (l *liveLog) bytes() int64 {
	n := l.index.Bytes() + int64(cap(l.refs))*40
	for _, b := range l.blocks {
		n += b.bytes
	}
	return n
}

// match finds the pin of slices. known are how many of them the log holds already;
// ok is false when the log cannot be extended to hold them as one run.
func (l *liveLog) match(want []LiveSlice) (lo merge.Ordinal, known int, ok bool) {
	at, found := slices.BinarySearchFunc(l.refs, want[0], compareSlices)
	if !found {
		return l.first + merge.Ordinal(at) - 1, 0, at == len(l.refs)
	}
	held := l.refs[at:]
	known = min(len(held), len(want))
	for i := range known {
		if compareSlices(held[i], want[i]) != 0 {
			return 0, 0, false
		}
	}
	return l.first + merge.Ordinal(at) - 1, known, true
}

// outgrown says that slices which the log cannot be extended to hold are of a newer pin:
// the slices of pins to come look like them. They are not an extension when parts of a
// transaction became visible that lie before held slices, or when held slices in the
// middle went to the lake.
func (l *liveLog) outgrown(want []LiveSlice) bool {
	return len(l.refs) > 0 && compareSlices(l.refs[len(l.refs)-1], want[len(want)-1]) < 0
}

func compareSlices(a, b LiveSlice) int {
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Start, b.Start))
}

// extend reads slices that follow the held ones and appends them. After an error the
// log holds those up to it, unless it is broken.
func (l *liveLog) extend(ctx context.Context, reader SliceReader, r *Relation, more []LiveSlice) error {
	var run blockRun
	for _, s := range more {
		s.Table = r.Live.Table
		if err := l.extendOne(ctx, reader, r, s, &run); err != nil {
			return errors.Join(err, l.flush(&run))
		}
	}
	return l.flush(&run)
}

// blockRun is records of one schema that will be a block: appended to the index, not
// yet in a block.
type blockRun struct {
	records []arrow.RecordBatch
	version uint32
	rows    int64
	bytes   int64
}

func (b *blockRun) takes(rec arrow.RecordBatch, version uint32) bool {
	return len(b.records) == 0 || version == b.version && b.rows+rec.NumRows() <= blockRowsMax &&
		b.bytes+change.RecordBytes(rec) <= blockBytesMax &&
		b.records[0].Schema().Equal(rec.Schema())
}

func (l *liveLog) extendOne(ctx context.Context, reader SliceReader, r *Relation, s LiveSlice, run *blockRun) error {
	if s.Rows == 0 {
		return l.append(r, s, nil)
	}
	rec, err := reader.ReadSlice(ctx, s, r.Live.Dir)
	if err != nil {
		return fmt.Errorf("read slice %d:%d of table %d: %w", s.Seq, s.Start, s.Table, err)
	}
	if rec, err = until(rec, s.Before); err != nil {
		return err
	}
	if rec == nil {
		return l.append(r, s, nil)
	}
	if !run.takes(rec, s.SchemaVersion) {
		err = l.flush(run)
	}
	if err == nil {
		err = l.append(r, s, rec)
	}
	if err != nil {
		rec.Release()
		return err
	}
	run.records, run.version, run.rows = append(run.records, rec), s.SchemaVersion, run.rows+rec.NumRows()
	run.bytes += change.RecordBytes(rec)
	return nil
}

// until is the part of a slice's record whose order tokens are lower than before, nil when
// that is none. It takes rec over, error or not.
func until(rec arrow.RecordBatch, before int64) (arrow.RecordBatch, error) {
	if rec == nil || before == 0 {
		return rec, nil
	}
	tokens := rec.Column(1).(*array.Int64)
	var runs []arrow.RecordBatch // of rows to keep: one, at the slice's beginning, for a stream's
	defer func() { releaseAll(runs) }()
	for from := 0; from < tokens.Len(); {
		end := from
		for end < tokens.Len() && tokens.Value(end) < before {
			end++
		}
		if from == 0 && end == tokens.Len() {
			return rec, nil
		}
		if end > from {
			runs = append(runs, rec.NewSlice(int64(from), int64(end)))
		}
		from = end + 1
	}
	defer rec.Release()
	switch len(runs) {
	case 0:
		return nil, nil
	case 1:
		runs[0].Retain()
		return runs[0], nil
	}
	return concatenate(runs)
}

// flush makes a block of the run. After an error the log is broken: its index has
// rows that no block has.
func (l *liveLog) flush(run *blockRun) error {
	err := l.addBlock(run.records, run.version)
	releaseAll(run.records)
	*run = blockRun{}
	l.broken = l.broken || err != nil
	return err
}

func (l *liveLog) append(r *Relation, s LiveSlice, rec arrow.RecordBatch) error {
	var key []int
	var columns []int
	if rec != nil {
		var err error
		if columns, err = recordColumns(r, rec.Schema(), s.SchemaVersion); err != nil {
			return err
		}
		for _, name := range r.Key {
			i := slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == name })
			if i < 0 || columns[i] < 0 {
				return fmt.Errorf("slice %d:%d has no key column %q: %w", s.Seq, s.Start, name, ErrPlan)
			}
			key = append(key, columns[i])
		}
	}
	var err error
	if r.WholeRow {
		_, err = l.index.AppendRows(rec, r.contents(columns), merge.SliceKind{Truncate: s.Truncate, Copied: s.Backfill})
	} else {
		_, err = l.index.Append(rec, key, s.Truncate)
	}
	if err != nil {
		return fmt.Errorf("slice %d:%d of table %d: %w", s.Seq, s.Start, r.Live.Table, err)
	}
	l.refs = append(l.refs, s)
	return nil
}

// addBlock makes a block of the last rows appended to the index, and merges it with
// its predecessors while those are small.
func (l *liveLog) addBlock(run []arrow.RecordBatch, version uint32) error {
	if len(run) == 0 {
		return nil
	}
	var rows int64
	for _, rec := range run {
		rows += rec.NumRows()
	}
	b, err := newLiveBlock(run, version, l.index.Rows()-uint64(rows))
	if err != nil {
		return err
	}
	l.blocks = append(l.blocks, b)
	for len(l.blocks) > 1 {
		merged, err := l.mergeLast()
		if err != nil || !merged {
			return err
		}
	}
	return nil
}

func (l *liveLog) mergeLast() (bool, error) {
	n := len(l.blocks)
	a, b := l.blocks[n-2], l.blocks[n-1]
	if a.version != b.version || a.to-a.from > 2*(b.to-b.from) || b.to-a.from > blockRowsMax || a.bytes+b.bytes > blockBytesMax ||
		!a.Record().Schema().Equal(b.Record().Schema()) {
		return false, nil
	}
	both, err := newLiveBlock([]arrow.RecordBatch{a.Record(), b.Record()}, a.version, a.from)
	if err != nil {
		return false, err
	}
	a.Release()
	b.Release()
	l.blocks = append(l.blocks[:n-2], both)
	return true, nil
}

// evict forgets slices below ordinal before.
func (l *liveLog) evict(before merge.Ordinal) {
	if before <= l.first {
		return
	}
	l.index.Evict(before)
	l.refs = slices.Clone(l.refs[before-l.first:])
	l.first = before
	row := l.index.Rows()
	if len(l.refs) > 0 {
		row, _ = l.index.Range(before)
	}
	keep := 0
	for keep < len(l.blocks) && l.blocks[keep].to <= row {
		l.blocks[keep].Release()
		keep++
	}
	l.blocks = slices.Clone(l.blocks[keep:])
}

func newLiveBlock(run []arrow.RecordBatch, version uint32, from uint64) (liveBlock, error) {
	rec := run[0]
	if len(run) > 1 {
		var err error
		if rec, err = concatenate(run); err != nil {
			return liveBlock{}, err
		}
		defer rec.Release()
	}
	block, err := driver.NewBlock(rec)
	if err != nil {
		return liveBlock{}, err
	}
	return liveBlock{
		Block: block, version: version, from: from, to: from + uint64(rec.NumRows()), bytes: change.RecordBytes(rec),
	}, nil
}

// concatenate copies records of one schema into one.
func concatenate(run []arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, run[0].NumCols())
	var rows int64
	for _, rec := range run {
		rows += rec.NumRows()
	}
	for c := range columns {
		parts := make([]arrow.Array, len(run))
		for i, rec := range run {
			parts[i] = rec.Column(c)
		}
		var err error
		if columns[c], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("concatenate column %q: %w", run[0].ColumnName(c), err)
		}
		defer columns[c].Release()
	}
	return array.NewRecordBatch(run[0].Schema(), columns, rows), nil
}

// recordColumns finds each column of r in a record of a slice: its index, or -1 when
// the schema version did not have it. It goes by field id only: a name may have meant
// another column then.
func recordColumns(r *Relation, s *arrow.Schema, version uint32) ([]int, error) {
	ids, err := recordFields(r, s, version)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(r.Columns))
	for i, c := range r.Columns {
		out[i] = slices.Index(ids, c.FieldID)
		if out[i] >= 0 {
			out[i] += change.SystemColumns
		}
	}
	return out, nil
}

// recordFields returns the field ids of a record's columns.
func recordFields(r *Relation, s *arrow.Schema, version uint32) ([]int32, error) {
	n := s.NumFields() - change.SystemColumns
	if ids, ok := r.Live.Fields[version]; ok {
		if len(ids) != n {
			return nil, fmt.Errorf("relation %q: Live.Fields has %d columns for schema version %d, its records have %d: %w",
				r.Name, len(ids), version, n, ErrPlan)
		}
		return ids, nil
	}
	ids := make([]int32, max(0, n))
	for i := range ids {
		text, _ := s.Field(i + change.SystemColumns).Metadata.GetValue("PARQUET:field_id")
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("relation %q: Live.Fields lacks schema version %d: %w", r.Name, version, ErrPlan)
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

func releaseAll(run []arrow.RecordBatch) {
	for _, rec := range run {
		rec.Release()
	}
}

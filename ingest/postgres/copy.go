package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest"
	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
	"github.com/skipprd/skipprd/ingest/postgres/cut"
	"github.com/skipprd/skipprd/ingest/postgres/value"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/wal/change"
)

// The size of a batch: whichever is reached first.
const (
	batchRows  = 64 << 10
	batchBytes = 4 << 20
)

// copySignature opens a binary COPY; flags and the length of an extension follow.
const copySignature = "PGCOPY\n\xff\r\n\x00"

const copyHeader = len(copySignature) + 8

var errCopyFormat = errors.New("binary copy is malformed")

// rowWriter takes the bytes of a binary COPY and emits batches. It is an io.Writer
// that keeps no more than a part of a row between writes: the server sends a row per
// message, so that rows are decoded where they were received.
type rowWriter struct {
	table   *schema.Table
	texts   *charset.Charset
	token   int64
	emit    func(*change.Batch) error
	limit   func(rows int) error
	builder *change.Builder
	columns []array.Builder
	decode  []value.Decoder
	// rest is the beginning of a row that the last write cut.
	rest  []byte
	begun bool
	ended bool
	bytes int
	err   error
	// width is how many fields a row has, take what is done with one.
	width int
	take  func([]byte) error
	// lenient skips rows that cannot be taken in; dropped are those in the builder.
	lenient bool
	skipped int
	dropped []int
	// large are the keys of rows that are too long, as they were sent; of a table without a
	// key nothing but how many there are.
	large      map[string]bool
	largeCount int
}

// newRowWriter makes a writer of rows of a table whose texts are in an encoding, nil for UTF-8.
func newRowWriter(s *schema.Table, texts *charset.Charset, token int64, emit func(*change.Batch) error) (*rowWriter, error) {
	w := &rowWriter{table: s, texts: texts, token: token, emit: emit}
	for _, f := range s.Fields {
		d, err := columnDecoder(f, texts)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quote.Name(f.Name), err)
		}
		w.decode = append(w.decode, d)
	}
	w.builder = change.NewBuilder(memory.DefaultAllocator, 0, s.Version, s.Arrow())
	w.builder.Backfill = true
	for i := range s.Fields {
		w.columns = append(w.columns, w.builder.Column(i))
	}
	w.width, w.take = len(w.columns), w.row
	return w, nil
}

func (w *rowWriter) release() { w.builder.Release() }

// Write implements io.Writer. It keeps its first error.
func (w *rowWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n := len(b)
	if len(w.rest) > 0 {
		w.rest = append(w.rest, b...)
		b = w.rest
	}
	left, err := w.rows(b)
	if err != nil {
		w.err = err
		return 0, err
	}
	w.rest = append(w.rest[:0], left...)
	return n, nil
}

// rows decodes the whole rows in b and returns what is left.
func (w *rowWriter) rows(b []byte) ([]byte, error) {
	if !w.begun {
		rest, ok, err := header(b)
		if err != nil || !ok {
			return b, err
		}
		b, w.begun = rest, true
	}
	for len(b) >= 2 && !w.ended {
		count := int16(binary.BigEndian.Uint16(b))
		if count == -1 {
			w.ended = true
			return b[2:], nil
		}
		if int(count) != w.width {
			return nil, fmt.Errorf("%w: row of %d columns", errCopyFormat, count)
		}
		size, whole, err := rowSize(b, int(count))
		if err != nil || !whole {
			return b, err
		}
		if err := w.take(b[2:size]); err != nil {
			return nil, err
		}
		b = b[size:]
	}
	return b, nil
}

// header skips the header, if all of it is there.
func header(b []byte) (rest []byte, ok bool, err error) {
	if len(b) < copyHeader {
		return b, false, nil
	}
	if !bytes.HasPrefix(b, []byte(copySignature)) {
		return nil, false, fmt.Errorf("%w: no signature", errCopyFormat)
	}
	extension := uint64(binary.BigEndian.Uint32(b[copyHeader-4:]))
	if uint64(len(b)-copyHeader) < extension {
		return b, false, nil
	}
	return b[copyHeader+int(extension):], true, nil
}

// rowSize is the length of the row that b begins with, if all of it is there.
func rowSize(b []byte, count int) (size int, whole bool, err error) {
	size = 2
	for range count {
		if len(b)-size < 4 {
			return 0, false, nil
		}
		n := int32(binary.BigEndian.Uint32(b[size:]))
		size += 4
		if n < cut.Omitted {
			return 0, false, fmt.Errorf("%w: length %d", errCopyFormat, n)
		}
		if n > 0 {
			size += int(n)
		}
		if size > len(b) {
			return 0, false, nil
		}
	}
	return size, true, nil
}

// row decodes a row's fields, whose lengths were checked.
func (w *rowWriter) row(b []byte) error {
	w.bytes += len(b)
	w.builder.Add(change.Insert, w.token, 0)
	all, short := b, w.texts != nil && w.texts.Longer(b, ingest.RowBytesMax)
	for i, decode := range w.decode {
		n := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n < 0 {
			w.columns[i].AppendNull()
			short = short || n == cut.Omitted
			continue
		}
		if err := decode(w.columns[i], b[:n]); err != nil {
			return w.refuse(w.table.Fields[i].Name, err)
		}
		b = b[n:]
	}
	if short {
		w.tooLong(all)
		return w.refuse("", errRowTooLarge)
	}
	return w.full()
}

// tooLong remembers a row that is too long by its key.
func (w *rowWriter) tooLong(b []byte) {
	w.largeCount++
	fields, _ := split(b, w.width) // it says that one is left out
	if w.large == nil {
		w.large = map[string]bool{}
	}
	w.large[keyBytes(w.table, fields)] = true
}

// refuse is about a row whose column cannot be taken in.
func (w *rowWriter) refuse(column string, err error) error {
	var refused *value.Error
	if !w.lenient || !errors.As(err, &refused) {
		return columnError(column, err)
	}
	w.skipped++
	return w.drop()
}

// full emits the batch when it is large enough.
func (w *rowWriter) full() error {
	if w.builder.Rows() >= batchRows || w.bytes >= batchBytes {
		return w.flush()
	}
	return nil
}

// flush emits what was collected.
func (w *rowWriter) flush() error {
	rows := w.builder.Rows()
	batch := w.batch()
	w.bytes = 0
	if batch == nil {
		return nil
	}
	if err := w.emit(batch); err != nil {
		return err
	}
	if err := w.limit(rows); err != nil {
		return err
	}
	for _, c := range w.columns {
		c.Reserve(rows)
	}
	return nil
}

// finish emits the last batch.
func (w *rowWriter) finish() error {
	if !w.ended {
		return fmt.Errorf("%w: it has no end", errCopyFormat)
	}
	if w.builder.Rows() == 0 {
		return nil
	}
	rows := w.builder.Rows()
	batch := w.batch()
	if batch == nil {
		return nil
	}
	if err := w.emit(batch); err != nil {
		return err
	}
	return w.limit(rows)
}

// columnError says which column holds what the table here cannot take.
func columnError(column string, err error) error {
	var refused *value.Error
	if !errors.As(err, &refused) {
		return fmt.Errorf("column %s: %w", quote.Name(column), err)
	}
	what := "a row"
	if column != "" {
		what = fmt.Sprintf("column %s", quote.Name(column))
	}
	if refused == errRowTooLarge {
		return &ingest.TableError{
			Reason: fmt.Sprintf("a row has more than the %d MiB that can be made durable at once", ingest.RowBytesMax>>20),
			Hint:   hintSmallerRow,
		}
	}
	return &ingest.TableError{
		Reason: what + " " + refused.Class,
		Hint:   valueHint(refused),
	}
}

const hintSmallerRow = "Make the row smaller at the source, or leave the column out of the table's list, then ALTER PIPELINE … RESYNC TABLE …;"

// valueHint names what helps against a refused value.
func valueHint(e *value.Error) string {
	if e.Code == deadletter.CodeNoUTF8 {
		return "Correct the value at the source, or leave the column out of the table's list, then ALTER PIPELINE … RESYNC TABLE …;"
	}
	switch e {
	case value.ErrInfinity, value.ErrNaN, value.ErrRange:
		return "Correct the value at the source, or leave the column out of the table's list, then ALTER PIPELINE … RESYNC TABLE …;"
	case value.ErrDimensions, value.ErrLowerBound:
		return "Declare the column with several dimensions at the source, or leave it out, then ALTER PIPELINE … RESYNC TABLE …;"
	case value.ErrEncoding:
		return "Convert the database to UTF8, or leave the column out, then ALTER PIPELINE … RESYNC TABLE …;"
	}
	return resync
}

package encode

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/skipprd/skipprd/lake/vector"
)

// Spec says in which form rows leave. Its parts have the same fields as those of
// the plan's Output, so that they convert directly.
type Spec struct {
	Kind    Kind
	Columns []Column
	Copy    CopyOptions
	Format  Format
}

// Kind is the form of the output.
type Kind uint8

// The forms. Values are those of the plan's OutputKind.
const (
	Rows       Kind = 1 // DataRow messages
	CopyText   Kind = 2 // CopyData messages, one a row
	CopyCSV    Kind = 3
	CopyBinary Kind = 4
	// RowPairs are DataRow messages with all values of a row as text, and then all in binary:
	// null where one has no binary form.
	RowPairs Kind = 6
)

// Column is how one column is sent.
type Column struct {
	Name    string
	TypeOID uint32
	TypMod  int32
	// Format is 0 for text, 1 for binary; COPY ignores it.
	Format int16
	// Record are the types of the fields of a record, which then is text in the default style;
	// see compound.Record. Without them it has no binary form.
	Record string
}

// CopyOptions are those of COPY TO. Zero bytes mean the format's defaults; Null is
// taken as it is, because an empty string is a choice too.
type CopyOptions struct {
	Delimiter, Quote, Escape byte
	Null                     string
	Header                   bool
	ForceQuote               []bool
}

// Format is how a session renders values as text. Empty fields mean PostgreSQL's
// defaults (UTC; ISO, MDY; postgres; hex); ExtraFloatDigits has no default.
type Format struct {
	TimeZone, DateStyle, IntervalStyle, ByteaOutput string
	ExtraFloatDigits                                int
}

// DefaultFormat is the format of a session that changed nothing.
func DefaultFormat() Format {
	return Format{
		TimeZone: "UTC", DateStyle: "ISO, MDY", IntervalStyle: "postgres", ByteaOutput: "hex", ExtraFloatDigits: 1,
	}
}

// appendFunc appends the value of row i, without a length, to dst. It is never
// called for NULL. A failure is latched in s.err and dst returned as it is.
type appendFunc func(s *state, dst []byte, v *vector.Vector, i int) []byte

// Encoder turns chunks into wire messages. Made per query; not safe for concurrent
// use. After an error it must not be used again.
type Encoder struct {
	state
	spec        Spec
	cells       []appendFunc
	fast        []fastCell   // rows and COPY BINARY
	escapeTable *escapeTable // COPY text, made at the first use
	// safe marks columns whose text never needs escapes or quotes in a COPY.
	safe []bool
	// none says that there are no columns: the engine has one that is not sent.
	none bool
	// twice are the columns of RowPairs.
	twice []vector.Vector
	// headOwed says that the header of COPY BINARY goes with the next message.
	headOwed bool
}

// New makes the encoder of a result whose engine types are types, one per
// spec.Columns. An error is a *pgerr.Error: 0A000 where a type cannot be sent in
// the wanted form, 22023 for a bad format.
func New(spec Spec, types []vector.Type) (*Encoder, error) {
	none := len(spec.Columns) == 0 && len(types) == 1
	if none {
		types = nil
	}
	if len(types) != len(spec.Columns) {
		return nil, fmt.Errorf("encode %d columns: engine returns %d", len(spec.Columns), len(types))
	}
	if len(types) > 65535>>1 {
		return nil, fmt.Errorf("encode %d columns: too many", len(types))
	}
	pairs := len(types)
	if spec.Kind == RowPairs {
		spec.Columns = append(slices.Clone(spec.Columns), spec.Columns...)
		types = append(slices.Clone(types), types...)
	}
	e := &Encoder{spec: spec, none: none, cells: make([]appendFunc, len(types)), fast: make([]fastCell, len(types))}
	switch spec.Kind {
	case Rows, RowPairs, CopyBinary:
	case CopyText, CopyCSV:
		e.spec.Copy = spec.Copy.withDefaults(spec.Kind)
		e.safe = e.spec.Copy.safeColumns(types, spec.Columns)
	default:
		return nil, fmt.Errorf("encode: unknown output kind %d", spec.Kind)
	}
	if err := e.init(spec.Format); err != nil {
		return nil, err
	}
	for i, c := range spec.Columns {
		second := spec.Kind == RowPairs && i >= pairs
		binaryForm := spec.Kind == CopyBinary || spec.Kind == Rows && c.Format == 1 || second
		f, err := chooseCell(types[i], c.TypeOID, binaryForm)
		if binaryForm && c.Record != "" && types[i].Kind == vector.String {
			f, err = recordBinary(c.Record)
		}
		if err != nil && second {
			e.fast[i].op = opNull
			continue
		}
		if err != nil {
			return nil, err
		}
		e.cells[i] = f
		op := e.chooseOperation(types[i], c.TypeOID, binaryForm)
		if op >= opDateText && e.days == nil {
			e.days = new(dayCache)
		}
		e.fast[i] = fastCell{op: op, width: types[i].Width, scale: types[i].Scale}
	}
	return e, nil
}

// copyHead is what COPY BINARY begins with: its signature, no flags, no extension.
const copyHead = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Header appends what precedes the first row: a COPY header, or nothing. That of COPY
// BINARY is in the message of the first row, as clients expect that read rows by messages.
func (e *Encoder) Header(dst []byte) []byte {
	switch {
	case e.spec.Kind == CopyBinary:
		e.headOwed = true
	case e.spec.Copy.Header && (e.spec.Kind == CopyText || e.spec.Kind == CopyCSV):
		return e.copyHeader(dst)
	}
	return dst
}

// Chunk appends the chunk's rows, complete messages, to dst.
func (e *Encoder) Chunk(dst []byte, c *vector.Chunk) ([]byte, error) {
	if e.none && len(c.Columns) == 1 {
		c = &vector.Chunk{Rows: c.Rows}
	}
	if e.spec.Kind == RowPairs {
		return e.rowPairs(dst, c)
	}
	if len(c.Columns) != len(e.cells) {
		return dst, fmt.Errorf("encode chunk: %d columns, want %d", len(c.Columns), len(e.cells))
	}
	switch e.spec.Kind {
	case Rows:
		return e.rows(dst, 'D', c)
	case CopyBinary:
		return e.binaryRows(dst, c)
	}
	for i := range c.Rows {
		switch e.spec.Kind {
		case CopyCSV:
			dst = e.csvRow(dst, c, i)
		default:
			dst = e.textRow(dst, c, i)
		}
		if e.err != nil {
			return dst, e.err
		}
	}
	return dst, nil
}

// rowPairs appends rows with their values in both forms. A row with a value that has no
// binary form has none of them.
func (e *Encoder) rowPairs(dst []byte, c *vector.Chunk) ([]byte, error) {
	n := len(e.cells) / 2
	if len(c.Columns) != n {
		return dst, fmt.Errorf("encode chunk: %d columns, want %d", len(c.Columns), n)
	}
	e.twice = append(append(e.twice[:0], c.Columns...), c.Columns...)
	both := &vector.Chunk{Rows: c.Rows, Columns: e.twice}
	for j := range e.fast {
		e.fast[j].data, e.fast[j].validity = both.Columns[j].Data, both.Columns[j].Validity
	}
	for i := range c.Rows {
		start := len(dst)
		dst = e.row(dst, 'D', both, i)
		if e.err == nil {
			continue
		}
		e.err = nil
		known := slices.Clone(e.fast[n:])
		for j := n; j < len(e.fast); j++ {
			e.fast[j].op = opNull
		}
		dst = e.row(dst[:start], 'D', both, i)
		copy(e.fast[n:], known)
		if e.err != nil {
			return dst, e.err
		}
	}
	return dst, nil
}

// Trailer appends what follows the last row.
func (e *Encoder) Trailer(dst []byte) []byte {
	if e.spec.Kind == CopyBinary {
		start := len(dst)
		dst = append(dst, 'd', 0, 0, 0, 0)
		if e.headOwed {
			dst, e.headOwed = append(dst, copyHead...), false
		}
		return e.closeMessage(append(dst, 0xff, 0xff), start)
	}
	return dst
}

// binaryRows appends rows of COPY BINARY, and the header before the first of them.
func (e *Encoder) binaryRows(dst []byte, c *vector.Chunk) ([]byte, error) {
	if !e.headOwed || c.Rows == 0 {
		return e.rows(dst, 'd', c)
	}
	e.headOwed = false
	const prefix = 1 + 4
	start := len(dst)
	dst = append(append(dst, 'd', 0, 0, 0, 0), copyHead...)
	row := len(dst)
	dst, err := e.rows(dst, 'd', c)
	if err != nil {
		return dst, err
	}
	size := int(binary.BigEndian.Uint32(dst[row+1:])) - 4
	dst = append(dst[:row], dst[row+prefix:]...)
	end := dst[:row+size]
	e.closeMessage(end, start)
	return dst, e.err
}

// closeMessage writes the length of the message that starts at start.
func (s *state) closeMessage(dst []byte, start int) []byte {
	n := len(dst) - start - 1
	if n > maxMessage && s.err == nil {
		s.err = errRowTooLong()
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(n))
	return dst
}

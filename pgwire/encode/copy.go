package encode

import (
	"strings"

	"github.com/skipprd/skipprd/lake/vector"
)

// withDefaults fills in what COPY's options leave open.
func (o CopyOptions) withDefaults(k Kind) CopyOptions {
	if k == CopyText {
		if o.Delimiter == 0 {
			o.Delimiter = '\t'
		}
		return o
	}
	if o.Delimiter == 0 {
		o.Delimiter = ','
	}
	if o.Quote == 0 {
		o.Quote = '"'
	}
	if o.Escape == 0 {
		o.Escape = o.Quote
	}
	return o
}

// safeColumns tells which types' text consists of digits, letters and " +-.:" only, so
// that neither the delimiter nor the quote nor the NULL text can occur in it.
func (o CopyOptions) safeColumns(types []vector.Type, columns []Column) []bool {
	safe := make([]bool, len(types))
	for _, special := range []byte{o.Delimiter, o.Quote} {
		if special != 0 && strings.IndexByte("\t,;|\"'~^", special) < 0 {
			return safe
		}
	}
	if o.Null != "" && o.Null[0] != '\\' {
		return safe
	}
	for i, t := range types {
		switch t.Kind {
		case vector.Bool, vector.Int16, vector.Int32, vector.Int64, vector.UInt8, vector.UInt16, vector.UInt32,
			vector.UInt64, vector.HugeInt, vector.Float32, vector.Float64, vector.Decimal, vector.Date, vector.Time,
			vector.Timestamp, vector.TimestampTZ, vector.UUID:
			safe[i] = columns[i].TypeOID != oidChar
		}
	}
	return safe
}

func (e *Encoder) textRow(dst []byte, c *vector.Chunk, i int) []byte {
	start := len(dst)
	dst = append(dst, 'd', 0, 0, 0, 0)
	table := e.escapes()
	for j, f := range e.cells {
		if j > 0 {
			dst = append(dst, e.spec.Copy.Delimiter)
		}
		v := &c.Columns[j]
		if f == nil || !v.Valid(i) {
			dst = append(dst, e.spec.Copy.Null...)
			continue
		}
		at := len(dst)
		if dst = f(&e.state, dst, v, i); !e.safe[j] {
			dst = table.escape(dst, at)
		}
	}
	return e.closeMessage(append(dst, '\n'), start)
}

func (e *Encoder) escapes() *escapeTable {
	if e.escapeTable == nil {
		t := makeEscapeTable(e.spec.Copy.Delimiter)
		e.escapeTable = &t
	}
	return e.escapeTable
}

func (e *Encoder) csvRow(dst []byte, c *vector.Chunk, i int) []byte {
	start := len(dst)
	dst = append(dst, 'd', 0, 0, 0, 0)
	force := e.spec.Copy.ForceQuote
	for j, f := range e.cells {
		if j > 0 {
			dst = append(dst, e.spec.Copy.Delimiter)
		}
		v := &c.Columns[j]
		if f == nil || !v.Valid(i) {
			dst = append(dst, e.spec.Copy.Null...)
			continue
		}
		at := len(dst)
		dst = f(&e.state, dst, v, i)
		if forced := j < len(force) && force[j]; forced || !e.safe[j] {
			dst = e.quoteCSV(dst, at, forced)
		}
	}
	return e.closeMessage(append(dst, '\n'), start)
}

// quoteCSV quotes dst[at:] in place where COPY does.
func (e *Encoder) quoteCSV(dst []byte, at int, force bool) []byte {
	o := &e.spec.Copy
	b := dst[at:]
	if !force && string(b) != o.Null && !(len(e.cells) == 1 && string(b) == `\.`) {
		special := false
		for _, c := range b {
			if c == o.Delimiter || c == o.Quote || c == '\n' || c == '\r' {
				special = true
				break
			}
		}
		if !special {
			return dst
		}
	}
	q := quoting{quote: o.Quote, a: o.Quote, b: o.Escape, prefixA: o.Escape, prefixB: o.Escape}
	return q.wrap(dst, at)
}

// copyHeader appends the line of column names as a message of its own.
func (e *Encoder) copyHeader(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 'd', 0, 0, 0, 0)
	for j, c := range e.spec.Columns {
		if j > 0 {
			dst = append(dst, e.spec.Copy.Delimiter)
		}
		at := len(dst)
		dst = append(dst, c.Name...)
		if e.spec.Kind == CopyCSV {
			dst = e.quoteCSV(dst, at, false)
		} else {
			dst = e.escapes().escape(dst, at)
		}
	}
	return e.closeMessage(append(dst, '\n'), start)
}

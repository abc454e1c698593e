package encode

import "github.com/skipprd/skipprd/lake/vector"

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
		dst = table.escape(f(&e.state, dst, v, i), at)
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
		dst = e.quoteCSV(f(&e.state, dst, v, i), at, j < len(force) && force[j])
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

package copyin

import (
	"bytes"
	"io"
)

// lineFormat is a format whose rows are lines, which split parts into fields.
type lineFormat struct {
	// split appends to d.fields those of the line, as many as there are columns, and
	// returns how many there were.
	split func(d *Decoder, line []byte) (int, error)
}

func (f lineFormat) next(d *Decoder) error {
	if !d.begun {
		d.begun = true
		if d.options.Header != HeaderNone {
			if err := f.header(d); err != nil {
				d.fields = d.fields[:0] // names are no values
				return err
			}
		}
	}
	if err := d.readLine(); err != nil {
		return err
	}
	if d.lines.done && len(d.text) == 0 {
		return io.EOF
	}
	count, err := f.splitLine(d)
	if err != nil {
		d.fields = d.fields[:0] // PostgreSQL has looked at none yet
		return err
	}
	if count > len(d.c.Columns) {
		d.fields = d.fields[:0]
		return badFormat("extra data after last expected column")
	}
	if d.options.Format == CSV {
		d.force()
	}
	if count < len(d.c.Columns) {
		return badFormat("missing data for column \"%s\"", d.c.Columns[count].Name)
	}
	return nil
}

// readLine reads the next line into d.text. The last one may be where the data ends,
// with nothing in it.
func (d *Decoder) readLine() error {
	d.text = nil
	d.in.advance(d.lines.used)
	d.lines.used = 0
	if d.lines.done {
		return io.EOF
	}
	d.line++
	var n int
	var err error
	if d.options.Format == CSV {
		n, err = d.lines.quoted(&d.in, &d.line)
	} else {
		n, err = d.lines.text(&d.in)
	}
	if err != nil {
		return err
	}
	if d.text = d.in.window()[:n]; d.text == nil {
		d.text = []byte{}
	}
	return nil
}

// splitLine makes fields of d.text. A copy without columns has empty lines.
func (f lineFormat) splitLine(d *Decoder) (int, error) {
	if len(d.c.Columns) == 0 {
		return min(len(d.text), 1), nil
	}
	d.scratch = d.scratch[:0]
	return f.split(d, d.text)
}

// header reads the line of names.
func (f lineFormat) header(d *Decoder) error {
	if err := d.readLine(); err != nil || d.options.Header == HeaderSkip {
		return err
	}
	count, err := f.splitLine(d)
	if err != nil {
		return err
	}
	if count != len(d.c.Columns) {
		return badFormat("wrong number of fields in header line: got %d, expected %d", count, len(d.c.Columns))
	}
	for i, c := range d.c.Columns {
		switch v := d.fields[i].Value; {
		case v == nil && !d.fields[i].Default:
			return badFormat("column name mismatch in header line field %d: got null value (\"%s\"), expected \"%s\"", i+1, *d.options.Null, c.Name)
		case string(v) != c.Name:
			return badFormat("column name mismatch in header line field %d: got \"%s\", expected \"%s\"", i+1, v, c.Name)
		}
	}
	d.fields = d.fields[:0]
	return nil
}

// add appends field i, whose bytes in the line are raw and whose value is v. bare says
// that raw may be a marker.
func (d *Decoder) add(i int, raw, v []byte, bare bool) error {
	f := Field{Value: v}
	switch {
	case bare && string(raw) == *d.options.Null:
		f.Value = nil
	case bare && d.options.Default != nil && i < len(d.c.Columns) && string(raw) == *d.options.Default:
		if !d.c.Columns[i].HasDefault {
			return badFormat("unexpected default marker in COPY data").
				WithDetail("Column \"%s\" has no default value.", d.c.Columns[i].Name)
		}
		f = Field{Default: true}
	}
	if i < len(d.c.Columns) {
		d.fields = append(d.fields, f)
	}
	return nil
}

// force applies FORCE_NOT_NULL and FORCE_NULL.
func (d *Decoder) force() {
	for i := range d.fields {
		f := &d.fields[i]
		switch {
		case f.Default:
		case f.Value == nil && d.notNull[i]:
			f.Value = []byte(*d.options.Null)
		case f.Value != nil && d.null[i] && string(f.Value) == *d.options.Null:
			f.Value = nil
		}
	}
}

// splitPlain splits a line that has only delimiters.
func (d *Decoder) splitPlain(line []byte) (int, error) {
	for i := 0; ; i++ {
		n := bytes.IndexByte(line, d.options.Delimiter)
		raw := line
		if n >= 0 {
			raw = line[:n]
		}
		if err := d.add(i, raw, raw, true); err != nil || n < 0 {
			return i + 1, err
		}
		line = line[n+1:]
	}
}

// scratchFor makes room for the values of a line, which are not longer than it.
func (d *Decoder) scratchFor(line []byte) {
	if cap(d.scratch) < len(line) {
		d.scratch = make([]byte, 0, len(line))
	}
}

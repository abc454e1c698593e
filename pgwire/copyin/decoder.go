package copyin

import (
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// rowBytesMax is the longest row where Config names no other limit: PostgreSQL's
// longest allocation.
const rowBytesMax = 1<<30 - 1

// Column is a column of the copy.
type Column struct {
	Name string
	// HasDefault says that the marker of the option DEFAULT may stand for it.
	HasDefault bool
}

// Config is what a copy is.
type Config struct {
	// Table is the name that contexts of errors show.
	Table string
	// Columns are those that the data has, in its order.
	Columns []Column
	Options Options
	// Stops says that nothing is read behind the end marker: the data is of a file or of a
	// program, which may have no end. What a client sends is read to its end.
	Stops bool
	// RowBytesMax bounds a row, in bytes of data; 0: 1 GiB - 1. A longer row is 54000.
	RowBytesMax int
}

// Field is one field of a row.
type Field struct {
	// Value is nil for NULL and for a default.
	Value []byte
	// Default says that the column's default is meant.
	Default bool
}

// Decoder reads rows. It is not safe for concurrent use.
type Decoder struct {
	c       Config
	options Options // with defaults
	in      input
	format  interface {
		// next fills in d.fields, with an error those before it.
		next(d *Decoder) error
	}
	// What FORCE_NOT_NULL and FORCE_NULL say of each column.
	notNull, null []bool

	fields  []Field
	scratch []byte // values that differ from their bytes in the line
	lines   lines
	begun   bool   // errors have a context
	line    uint64 // of the row, counting from 1; binary: the row's number
	text    []byte // the line, for contexts; nil while it is incomplete
	column  string // the binary field that is being read
	err     error  // ends the decoder
}

// New makes a decoder. The error is about a column that FORCE_NULL or FORCE_NOT_NULL
// names.
func New(data io.Reader, c Config) (*Decoder, error) {
	if c.RowBytesMax <= 0 || c.RowBytesMax > rowBytesMax {
		c.RowBytesMax = rowBytesMax
	}
	d := &Decoder{c: c, options: c.Options.WithDefaults()}
	d.in = input{source: data, max: c.RowBytesMax, utf8: c.Options.Format != Binary, stops: c.Stops}
	var err error
	if d.notNull, d.null, err = c.Options.flags(c.Columns); err != nil {
		return nil, err
	}
	d.fields = make([]Field, 0, len(c.Columns))
	switch c.Options.Format {
	case Text:
		d.lines, d.format = newLines(d.options), lineFormat{splitText}
	case CSV:
		d.lines, d.format = newLines(d.options), lineFormat{splitCSV}
	default:
		d.format = binaryFormat{}
	}
	return d, nil
}

// Next returns the next row, one field for each column; it is valid until the
// following call. The end of the data is io.EOF. An error in the data is a
// *pgerr.Error with PostgreSQL's code, message and context; one of the reader is
// returned as it is, with the context if it is a *pgerr.Error without one. After an
// error there are no more rows.
//
// Together with an error Next returns the fields before it. PostgreSQL converts fields
// while it reads a row, so a caller that wants its errors converts those first.
func (d *Decoder) Next() ([]Field, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.fields, d.text, d.column = d.fields[:0], nil, ""
	if err := d.format.next(d); err != nil {
		d.err = d.where(err)
		return d.fields, d.err
	}
	return d.fields, nil
}

// Line is the number of the row's line, counting from 1: of its last line, where
// quoted fields hold line ends. For binary it is the number of the row.
func (d *Decoder) Line() uint64 { return d.line }

// AppendText appends the text of the row's line as contexts show it: nothing for binary.
func (d *Decoder) AppendText(to []byte) []byte {
	if len(d.text) <= clipBytes {
		return append(to, d.text...)
	}
	return append(to, clip(d.text)...)
}

// Where is the context of an error about the value of column i of the row that Next
// returned.
func (d *Decoder) Where(i int) string {
	at := d.at() + ", column " + d.c.Columns[i].Name
	switch v := d.fields[i].Value; {
	case d.options.Format == Binary:
		return at
	case v == nil:
		return at + ": null input"
	default:
		return at + ": \"" + clip(v) + "\""
	}
}

func (d *Decoder) at() string { return fmt.Sprintf("COPY %s, line %d", d.c.Table, d.line) }

// where gives an error its context.
func (d *Decoder) where(err error) error {
	e, ok := pgerr.As(err)
	if !ok || e.Where != "" || !d.begun {
		return err
	}
	c := *e
	switch c.Where = d.at(); {
	case d.column != "":
		c.Where += ", column " + d.column
	case d.text != nil:
		c.Where += ": \"" + clip(d.text) + "\""
	}
	return &c
}

// clipBytes is how much of a text a context shows.
const clipBytes = 100

// clip shortens what a context shows.
func clip(b []byte) string {
	if len(b) <= clipBytes {
		return string(b)
	}
	n := clipBytes
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return string(b[:n]) + "..."
}

func badFormat(format string, args ...any) *pgerr.Error {
	return pgerr.New(codes.BadCopyFileFormat, format, args...)
}

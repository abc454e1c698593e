package copyin

import (
	"encoding/binary"
	"io"
)

// signature begins the binary format.
const signature = "PGCOPY\n\xff\r\n\x00"

// flagOIDs said that rows have an oid column, in servers that had those.
const flagOIDs = 1 << 16

// binaryFormat reads the binary format. The window begins at the row.
type binaryFormat struct{}

func (f binaryFormat) next(d *Decoder) error {
	if !d.begun {
		if err := f.header(&d.in); err != nil {
			return err
		}
		d.begun = true
	} else {
		d.in.advance(d.lines.used)
	}
	d.lines.used = 0
	d.line++
	if ok, err := d.in.need(2); !ok { // PostgreSQL takes an end here for the proper one
		return ended(err, io.EOF)
	}
	count := int16(binary.BigEndian.Uint16(d.in.window()))
	if count == -1 {
		ok, err := d.in.need(3)
		if ok {
			err = badFormat("received copy data after EOF marker")
		}
		return ended(err, io.EOF)
	}
	if int(count) != len(d.c.Columns) {
		return badFormat("row field count is %d, expected %d", count, len(d.c.Columns))
	}
	return f.fields(d)
}

// header reads the signature, the flags and the extension.
func (f binaryFormat) header(in *input) error {
	if ok, err := in.need(len(signature)); !ok || string(in.window()[:len(signature)]) != signature {
		return ended(err, badFormat("COPY file signature not recognized"))
	}
	in.advance(len(signature))
	if ok, err := in.need(4); !ok {
		return ended(err, badFormat("invalid COPY file header (missing flags)"))
	}
	flags := binary.BigEndian.Uint32(in.window())
	switch {
	case flags&flagOIDs != 0:
		return badFormat("invalid COPY file header (WITH OIDS)")
	case flags>>16 != 0:
		return badFormat("unrecognized critical flags in COPY file header")
	}
	in.advance(4)
	ok, err := in.need(4)
	if !ok || int32(binary.BigEndian.Uint32(in.window())) < 0 {
		return ended(err, badFormat("invalid COPY file header (missing length)"))
	}
	left := int(binary.BigEndian.Uint32(in.window()))
	for in.advance(4); left > 0; {
		if ok, err := in.need(1); !ok {
			return ended(err, badFormat("invalid COPY file header (wrong length)"))
		}
		n := min(left, len(in.window()))
		in.advance(n)
		left -= n
	}
	return nil
}

// fields reads a row's fields, which lie behind the count. A field's bytes are cut out
// when the row is whole, since the window moves while it grows.
func (f binaryFormat) fields(d *Decoder) error {
	at := 2
	cut := func(err error) error {
		begin := 2
		for i := range d.fields {
			w := d.in.window()
			n := int(int32(binary.BigEndian.Uint32(w[begin:])))
			if begin += 4; n >= 0 {
				d.fields[i].Value = w[begin : begin+n : begin+n]
				begin += n
			}
		}
		return err
	}
	for _, c := range d.c.Columns {
		d.column = c.Name
		if ok, err := d.in.need(at + 4); !ok {
			return cut(ended(err, badFormat("unexpected EOF in COPY data")))
		}
		n := int(int32(binary.BigEndian.Uint32(d.in.window()[at:])))
		at += 4
		switch {
		case n < -1:
			return cut(badFormat("invalid field size"))
		case n > d.in.max-at:
			return cut(d.in.tooLong())
		case n > 0:
			if ok, err := d.in.need(at + n); !ok {
				return cut(ended(err, badFormat("unexpected EOF in COPY data")))
			}
			at += n
		}
		d.fields = append(d.fields, Field{})
	}
	d.column, d.lines.used = "", at
	return cut(nil)
}

// ended is the error of reading, or what it means that the data has ended.
func ended(err, meaning error) error {
	if err != nil {
		return err
	}
	return meaning
}

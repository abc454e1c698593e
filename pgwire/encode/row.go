package encode

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/pgerr"
)

// AppendDataRow appends a DataRow for a row that the server makes itself, in the
// default formats (ISO dates in UTC). A value is nil for NULL, a string holding the
// type's text, bool, int, int32, int64, uint32, uint64, float64, []byte (bytea),
// time.Time, or a slice of them ([]string, []int64, []uint32). It panics for other
// types and for a value that its column's type cannot hold: the server chose both.
func AppendDataRow(dst []byte, cols []Column, values []any) []byte {
	dst, err := AppendRow(dst, DefaultFormat(), cols, values)
	if err != nil {
		panic(err)
	}
	return dst
}

// AppendRow is AppendDataRow in a session's formats, with errors returned. For many
// rows make a RowWriter.
func AppendRow(dst []byte, f Format, cols []Column, values []any) ([]byte, error) {
	w, err := NewRowWriter(f, cols)
	if err != nil {
		return dst, err
	}
	return w.Append(dst, values)
}

// RowWriter writes rows that the server makes itself. Not safe for concurrent use.
type RowWriter struct {
	cols    []Column
	session state
	plain   state // default formats, on the way to binary forms
}

// NewRowWriter makes a writer for rows of these columns. The error is 22023 for a bad
// format.
func NewRowWriter(f Format, cols []Column) (*RowWriter, error) {
	w := &RowWriter{cols: cols}
	if err := w.session.init(f); err != nil {
		return nil, err
	}
	return w, w.plain.init(DefaultFormat())
}

// Append appends a DataRow with values as AppendDataRow takes them.
func (w *RowWriter) Append(dst []byte, values []any) ([]byte, error) {
	if len(w.cols) != len(values) {
		return dst, fmt.Errorf("encode row: %d values for %d columns", len(values), len(w.cols))
	}
	start := len(dst)
	dst = append(dst, 'D', 0, 0, 0, 0, byte(len(values)>>8), byte(len(values)))
	for i, c := range w.cols {
		if values[i] == nil {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		at := len(dst)
		var err error
		if dst, err = w.appendValue(append(dst, 0, 0, 0, 0), c, values[i]); err != nil {
			return dst[:start], fmt.Errorf("encode column %s: %w", c.Name, err)
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return w.session.closeMessage(dst, start), w.session.err
}

func (w *RowWriter) appendValue(dst []byte, c Column, value any) ([]byte, error) {
	if c.Format == 0 || isTextual(c.TypeOID) {
		return w.session.appendGoText(dst, c.TypeOID, value)
	}
	parse := binaryFromText(c.TypeOID)
	if parse == nil {
		return dst, errNoBinary(c.TypeOID)
	}
	text, err := w.plain.appendGoText(nil, c.TypeOID, value)
	if err != nil {
		return dst, err
	}
	return parse(dst, text)
}

// appendGoText writes a Go value as the text of the type.
func (s *state) appendGoText(dst []byte, oid uint32, value any) ([]byte, error) {
	switch x := value.(type) {
	case string:
		return append(dst, x...), nil
	case bool:
		if oid != oidBool {
			return strconv.AppendBool(dst, x), nil
		}
		if x {
			return append(dst, 't'), nil
		}
		return append(dst, 'f'), nil
	case int:
		return strconv.AppendInt(dst, int64(x), 10), nil
	case int16:
		return strconv.AppendInt(dst, int64(x), 10), nil
	case int32:
		return strconv.AppendInt(dst, int64(x), 10), nil
	case int64:
		return strconv.AppendInt(dst, x, 10), nil
	case uint32:
		return strconv.AppendUint(dst, uint64(x), 10), nil
	case uint64:
		return strconv.AppendUint(dst, x, 10), nil
	case float32:
		return s.appendFloat(dst, float64(x), 32), nil
	case float64:
		return s.appendFloat(dst, x, 64), nil
	case []byte:
		return s.appendBytea(dst, x), nil
	case [16]byte:
		return appendUUID(dst, x), nil
	case time.Time:
		return s.appendGoTime(dst, oid, x), nil
	case time.Duration:
		return s.appendInterval(dst, engineInterval{micros: x.Microseconds()}), nil
	case []string:
		return appendGoArray(s, dst, oid, x)
	case []int64:
		return appendGoArray(s, dst, oid, x)
	case []int32:
		return appendGoArray(s, dst, oid, x)
	case []uint32:
		return appendGoArray(s, dst, oid, x)
	}
	return dst, pgerr.New(codes.Internal, "cannot send a Go %T", value)
}

func (s *state) appendGoTime(dst []byte, oid uint32, t time.Time) []byte {
	us := t.UnixMicro()
	switch oid {
	case oidDate:
		return s.appendDate(dst, microsToDate(us))
	case oidTime:
		return appendClock(dst, us-floorDiv(us, dayMicros)*dayMicros)
	case oidTimestamp:
		return s.appendTimestamp(dst, us)
	}
	return s.appendTimestampTZ(dst, us)
}

func appendGoArray[T any](s *state, dst []byte, oid uint32, values []T) ([]byte, error) {
	separator := byte(',')
	if isVector(oid) {
		separator = ' '
	} else {
		dst = append(dst, '{')
	}
	elem := ElementOID(oid)
	for i, v := range values {
		if i > 0 {
			dst = append(dst, separator)
		}
		at := len(dst)
		var err error
		if dst, err = s.appendGoText(dst, elem, v); err != nil {
			return dst, err
		}
		if separator == ',' && arrayNeedsQuotes(dst[at:], ',') {
			dst = arrayQuoting.wrap(dst, at)
		}
	}
	if separator == ',' {
		dst = append(dst, '}')
	}
	return dst, nil
}

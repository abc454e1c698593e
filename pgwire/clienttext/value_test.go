package clienttext

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/skipprd/skipprd/pgwire/charmap"
)

func latin1(t testing.TB) *charmap.Charmap {
	t.Helper()
	c, err := charmap.Of("LATIN1")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// arrayOf is an array of one dimension in binary form.
func arrayOf(element uint32, values ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1, 0, 0, 0, 0}, element)
	b = binary.BigEndian.AppendUint32(b, uint32(len(values)))
	b = binary.BigEndian.AppendUint32(b, 1)
	for _, v := range values {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

func recordOf(oid uint32, v []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 2}, oid)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	return append(binary.BigEndian.AppendUint32(b, 23), 0xff, 0xff, 0xff, 0xff)
}

// TestValue: texts in values are converted, in both directions, and nothing else.
func TestValue(t *testing.T) {
	c := latin1(t)
	u, l := []byte("é"), []byte("\xe9")
	for name, test := range map[string]struct {
		oid      uint32
		format   int16
		utf8, in []byte
	}{
		"text":            {25, 0, u, l},
		"number as text":  {23, 0, []byte("12"), []byte("12")},
		"binary text":     {25, 1, u, l},
		"bytea":           {17, 1, u, u},
		"int8":            {20, 1, []byte{0, 0, 0, 0, 0, 0, 0, 0xe9}, []byte{0, 0, 0, 0, 0, 0, 0, 0xe9}},
		"jsonb":           {3802, 1, append([]byte{1}, u...), append([]byte{1}, l...)},
		"array":           {1009, 1, arrayOf(25, u, []byte("x")), arrayOf(25, l, []byte("x"))},
		"array of bytea":  {1001, 1, arrayOf(17, u), arrayOf(17, u)},
		"record":          {2249, 1, recordOf(25, u), recordOf(25, l)},
		"nested":          {2249, 1, recordOf(1009, arrayOf(1043, u)), recordOf(1009, arrayOf(1043, l))},
		"label":           {20000, 1, u, l},
		"array of labels": {20001, 1, arrayOf(20000, u), arrayOf(20000, l)},
		"cut array":       {1009, 1, arrayOf(25, u)[:21], arrayOf(25, u)[:21]},
		"null":            {25, 0, nil, nil},
	} {
		if got, problem := Value(c, test.utf8, test.oid, test.format); problem != nil || !bytes.Equal(got, test.in) {
			t.Errorf("%s is sent as %x, want %x: %v", name, got, test.in, problem)
		}
		if got, problem := Parameter(c, test.in, test.oid, test.format); problem != nil || !bytes.Equal(got, test.utf8) {
			t.Errorf("%s is received as %x, want %x: %v", name, got, test.utf8, problem)
		}
	}
}

func dataRow(values ...[]byte) []byte {
	b := []byte{'D', 0, 0, 0, 0, 0, byte(len(values))}
	for _, v := range values {
		if v == nil {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	return b
}

// TestRows: rows before one that cannot be converted are there.
func TestRows(t *testing.T) {
	c := latin1(t)
	columns := []Column{{OID: 25}, {OID: 17, Format: 1}, {OID: 25}}
	good, want := dataRow([]byte("é"), []byte("é"), nil), dataRow([]byte("\xe9"), []byte("é"), nil)
	rows := append(bytes.Clone(good), good...)
	if got, err := Rows(nil, c, rows, columns); err != nil || !bytes.Equal(got, append(bytes.Clone(want), want...)) {
		t.Errorf("%x: %v", got, err)
	}
	got, err := Rows([]byte("x"), c, append(rows, dataRow([]byte("語"), nil, nil)...), columns)
	if problem := (*charmap.Error)(nil); !errors.As(err, &problem) || !bytes.Equal(got[1:], append(bytes.Clone(want), want...)) {
		t.Errorf("%x: %v", got, err)
	}
	for _, bad := range [][]byte{{0xff}, append(bytes.Clone(good[:9]), 0xff), append(bytes.Clone(good), 0xff), dataRow([]byte("é"))} {
		if _, err := Rows(nil, c, bad, columns); !errors.Is(err, errFrame) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// FuzzParameter: whatever a client sends in binary form, it is converted or left as it is.
func FuzzParameter(f *testing.F) {
	f.Add(arrayOf(25, []byte("\xe9")), uint32(1009))
	f.Add(recordOf(2249, recordOf(25, []byte("\xe9"))), uint32(2249))
	f.Add([]byte("\x01{}"), uint32(3802))
	f.Fuzz(func(t *testing.T, v []byte, oid uint32) {
		c := latin1(t)
		got, problem := Parameter(c, v, oid, 1)
		if problem != nil {
			return
		}
		back, problem := Value(c, got, oid, 1)
		if problem != nil || !bytes.Equal(back, v) {
			t.Fatalf("%x of %d: %x, back %x: %v", v, oid, got, back, problem)
		}
	})
}

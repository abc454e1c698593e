package encode_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func codeOf(err error) codes.Code {
	if e, ok := pgerr.As(err); ok {
		return e.Code
	}
	return ""
}

func TestOutOfRange(t *testing.T) {
	for _, test := range []struct {
		name    string
		v       vector.Vector
		oid     uint32
		message string
	}{
		{"int8 as int4", fixed(kind(vector.Int64), int64(1)<<31), 23, "integer out of range"},
		{"int8 as int2", fixed(kind(vector.Int64), int64(-32769)), 21, "smallint out of range"},
		{"negative as oid", fixed(kind(vector.Int32), int32(-1)), 26, "OID out of range"},
		{"uint8 as int8", fixed(kind(vector.UInt64), uint64(1)<<63), 20, "bigint out of range"},
		{"huge as int8", fixed(kind(vector.HugeInt), huge{0, 1}), 20, "bigint out of range"},
		{"unsigned huge as int8", fixed(kind(vector.UHugeInt), huge{1<<64 - 1, -1}), 20, "bigint out of range"},
		{"float8 as float4", fixed(kind(vector.Float64), 1e300), 700, "real out of range"},
		{"float8 as int4", fixed(kind(vector.Float64), 1e10), 23, "integer out of range"},
		{"decimal as int2", fixed(vector.Type{Kind: vector.Decimal, Width: 9, Scale: 1}, int32(327675)), 21, "smallint out of range"},
	} {
		for format := range int16(2) {
			_, err := encodeColumn(t, test.v, 1, test.oid, format, encode.DefaultFormat())
			e, _ := pgerr.As(err)
			if codeOf(err) != codes.NumericValueOutOfRange || e.Message != test.message {
				t.Errorf("%s, format %d: %v", test.name, format, err)
			}
		}
	}
}

func TestTextForms(t *testing.T) {
	person := structOf(fixed(kind(vector.Int32), int32(1), 2), withNulls(texts(vector.String, "a,b", "x"), 2, 1), texts(vector.String, "", `q"(\`))
	mapping := list(structOf(texts(vector.String, "k", "l"), fixed(kind(vector.Int32), int32(1), 2)), 2)
	mapping.Type = vector.Type{Kind: vector.Map, Elem: mapping.Type.Elem[0].Elem}
	enum := fixed(vector.Type{Kind: vector.Enum, Width: 1, Dict: []string{"sad", "ok"}}, uint8(1), 0)
	for _, test := range []struct {
		name string
		v    vector.Vector
		rows int
		oid  uint32
		want string
	}{
		{"struct", person, 2, 2249, `(1,"a,b","")|(2,,"q""(\\")`},
		{"list of structs", list(person, 2), 1, 2287, `{"(1,\"a,b\",\"\")","(2,,\"q\"\"(\\\\\")"}`},
		{"map", mapping, 1, 25, "{k=1, l=2}"},
		{"enum", enum, 2, 90000, "ok|sad"},
		{"bool as text", fixed(kind(vector.Bool), uint8(1), 0), 2, 25, "true|false"},
		{"null", vector.Vector{Type: kind(vector.Null)}, 1, 25, "NULL"},
		{"nulls", withNulls(fixed(kind(vector.Int32), int32(1), 2), 2, 0), 2, 23, "NULL|2"},
		{"decimal as int", fixed(vector.Type{Kind: vector.Decimal, Width: 9, Scale: 1}, int32(15), -15, 4, -4), 4, 23, "2|-2|0|0"},
		{"timestamp as date", fixed(kind(vector.Timestamp), int64(-1)), 1, 1082, "1969-12-31"},
		{"int as float", fixed(kind(vector.Int64), int64(1e15)), 1, 701, "1e+15"},
		{"char", fixed(kind(vector.Int8), int8('r')), 1, 18, "r"},
		{"list of nulls", list(vector.Vector{Type: kind(vector.Null)}, 2), 1, 1009, "{NULL,NULL}"},
		{"ragged", list(list(fixed(kind(vector.Int32), int32(1), 2, 3), 1, 2), 2), 1, 1007, "{{1},{2,3}}"},
	} {
		got, err := encodeColumn(t, test.v, test.rows, test.oid, 0, encode.DefaultFormat())
		var parts []string
		for _, b := range got {
			if b == nil {
				parts = append(parts, "NULL")
				continue
			}
			parts = append(parts, string(b))
		}
		if err != nil || strings.Join(parts, "|") != test.want {
			t.Errorf("%s: %s, %v, want %s", test.name, parts, err, test.want)
		}
	}
}

func TestNoBinaryForm(t *testing.T) {
	for name, test := range map[string]struct {
		v   vector.Vector
		oid uint32
	}{
		"tsquery": {texts(vector.String, "'a'"), 3615},
		"aclitem": {texts(vector.String, "=r/postgres"), 1033},
		"name":    {texts(vector.String, "pg_class"), 2205},
		"ragged":  {list(list(fixed(kind(vector.Int32), int32(1), 2, 3), 1, 2), 2), 1007},
	} {
		if _, err := encodeColumn(t, test.v, 1, test.oid, 1, encode.DefaultFormat()); codeOf(err) != codes.FeatureNotSupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := encodeColumn(t, texts(vector.String, "x"), 1, 1700, 1, encode.DefaultFormat()); codeOf(err) != codes.InvalidTextRepresentation {
		t.Errorf("text that is no number: %v", err)
	}
	if _, err := encodeColumn(t, texts(vector.String, "[1,x)"), 1, 3904, 1, encode.DefaultFormat()); codeOf(err) != codes.InvalidTextRepresentation {
		t.Errorf("range of no numbers: %v", err)
	}
}

// TestRowPairs: values are there as text and in binary; where one of a row has no binary form,
// the row has none, and goes on.
func TestRowPairs(t *testing.T) {
	spec := encode.Spec{Kind: encode.RowPairs, Columns: []encode.Column{{TypeOID: 23, TypMod: -1}, {TypeOID: 3904, TypMod: -1}, {TypeOID: 3615, TypMod: -1}}}
	numbers, ranges, queries := fixed(kind(vector.Int32), int32(7), 8), texts(vector.String, "[1,2)", "[x,y)"), texts(vector.String, "'a'", "'b'")
	e, err := encode.New(spec, []vector.Type{numbers.Type, ranges.Type, queries.Type})
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Chunk(nil, &vector.Chunk{Rows: 2, Columns: []vector.Vector{numbers, ranges, queries}})
	if err != nil {
		t.Fatal(err)
	}
	const null = "\xff\xff\xff\xff"
	want := "D\x00\x00\x00\x3c\x00\x06\x00\x00\x00\x017\x00\x00\x00\x05[1,2)\x00\x00\x00\x03'a'" +
		"\x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00\x11\x02\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00\x02" + null +
		"D\x00\x00\x00\x27\x00\x06\x00\x00\x00\x018\x00\x00\x00\x05[x,y)\x00\x00\x00\x03'b'" + null + null + null
	if string(got) != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestNoColumns: rows without columns, of an engine that has one.
func TestNoColumns(t *testing.T) {
	for kind, want := range map[encode.Kind]string{
		encode.Rows: "D\x00\x00\x00\x06\x00\x00D\x00\x00\x00\x06\x00\x00", encode.RowPairs: "D\x00\x00\x00\x06\x00\x00D\x00\x00\x00\x06\x00\x00",
		encode.CopyText: "d\x00\x00\x00\x05\nd\x00\x00\x00\x05\n",
	} {
		v := fixed(vector.Type{Kind: vector.Int32}, int32(0), 0)
		e, err := encode.New(encode.Spec{Kind: kind}, []vector.Type{v.Type})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Chunk(nil, &vector.Chunk{Rows: 2, Columns: []vector.Vector{v}}); err != nil || string(got) != want {
			t.Errorf("%d: %q, %v", kind, got, err)
		}
	}
}

func TestBadFormats(t *testing.T) {
	for _, f := range []encode.Format{
		{TimeZone: "Mars/Olympus"}, {DateStyle: "fancy"}, {IntervalStyle: "fancy"}, {ByteaOutput: "fancy"}, {TimeZone: "Local"}, {TimeZone: "../etc/passwd"},
	} {
		if _, err := encodeColumn(t, fixed(kind(vector.Bool), uint8(1)), 1, 16, 0, f); codeOf(err) != codes.InvalidParameterValue {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestAppendDataRow(t *testing.T) {
	cols := []encode.Column{{TypeOID: 25}, {TypeOID: 23, Format: 1}, {TypeOID: 16}, {TypeOID: 1009}, {TypeOID: 26, Format: 1}, {TypeOID: 30}}
	got := encode.AppendDataRow([]byte("x"), cols, []any{"a", 7, true, []string{"a b", "c"}, uint32(9), []uint32{1, 2}})
	want := "xD\x00\x00\x00\x34\x00\x06\x00\x00\x00\x01a\x00\x00\x00\x04\x00\x00\x00\x07\x00\x00\x00\x01t" +
		"\x00\x00\x00\x09{\"a b\",c}\x00\x00\x00\x04\x00\x00\x00\x09\x00\x00\x00\x031 2"
	if string(got) != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if _, err := encode.AppendRow(nil, encode.DefaultFormat(), cols[1:2], []any{int64(1) << 40}); err == nil || !errors.As(err, new(*pgerr.Error)) {
		t.Errorf("out of range: %v", err)
	}
}

func TestNoAllocationPerRow(t *testing.T) {
	chunk, columns := benchChunk(1000)
	for _, k := range []encode.Kind{encode.Rows, encode.CopyCSV, encode.CopyText, encode.CopyBinary} {
		for format := range int16(2) {
			for i := range columns {
				columns[i].Format = format
			}
			e := newEncoder(t, encode.Spec{Kind: k, Columns: columns, Format: encode.DefaultFormat()}, chunk)
			var buf []byte
			allocations := testing.AllocsPerRun(5, func() {
				var err error
				if buf, err = e.Chunk(buf[:0], chunk); err != nil {
					t.Fatal(err)
				}
			})
			if allocations > 5 {
				t.Errorf("kind %d, format %d: %v allocations for %d rows", k, format, allocations, chunk.Rows)
			}
		}
	}
}

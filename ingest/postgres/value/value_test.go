package value_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/ingest/postgres/value"
)

func decimal(p, s int32) schema.Type {
	return schema.Type{Kind: schema.Decimal, Precision: p, Scale: s}
}

func kind(k schema.Kind) schema.Type { return schema.Type{Kind: k} }

func list(elem schema.Type) schema.Type { return schema.Type{Kind: schema.List, Elem: &elem} }

// decode runs a decoder on one value and returns what was appended, as text.
func decode(t testing.TB, typ schema.Type, d value.Decoder, src []byte) (string, error) {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, schema.ArrowType(typ))
	defer b.Release()
	err := d(b, src)
	if b.Len() > 1 || (err == nil && b.Len() != 1) {
		t.Fatalf("%d values were appended, error %v", b.Len(), err)
	}
	value.Even([]array.Builder{b}, 1)
	a := b.NewArray()
	defer a.Release()
	return a.ValueStr(0), err
}

func TestText(t *testing.T) {
	cases := []struct {
		typ      schema.Type
		src      string
		want     string
		wantFail error
	}{
		{kind(schema.Bool), "t", "true", nil},
		{kind(schema.Bool), "x", "", value.ErrMalformed},
		{kind(schema.Int32), "-2147483648", "-2147483648", nil},
		{kind(schema.Int32), "2147483648", "", value.ErrRange},
		{kind(schema.Int64), "9223372036854775807", "9223372036854775807", nil},
		{kind(schema.Int64), "-9223372036854775808", "-9223372036854775808", nil},
		{kind(schema.Int64), "9223372036854775808", "", value.ErrRange},
		{kind(schema.Int64), "99999999999999999999", "", value.ErrMalformed},
		{kind(schema.Int64), "-", "", value.ErrMalformed},
		{kind(schema.Int64), "1x", "", value.ErrMalformed},
		{kind(schema.Float64), "NaN", "NaN", nil},
		{kind(schema.Float64), "1e-300", "1e-300", nil},
		{decimal(10, 2), "12345678.90", "12345678.9", nil},
		{decimal(10, 2), "-0.01", "-0.01", nil},
		{decimal(10, 2), "99999999.99", "99999999.99", nil},
		{decimal(10, 2), "100000000.00", "", value.ErrRange},
		{decimal(10, 2), "1.234", "", value.ErrScale},
		{decimal(10, 2), "1.230", "1.23", nil},
		{decimal(10, 2), "7", "7", nil},
		{decimal(10, 2), "NaN", "", value.ErrNaN},
		{decimal(10, 2), "-Infinity", "", value.ErrInfinity},
		{decimal(10, 2), ".", "", value.ErrMalformed},
		{decimal(10, 2), "1.2.3", "", value.ErrMalformed},
		{decimal(38, 0), "99999999999999999999999999999999999999", "99999999999999999999999999999999999999", nil},
		{decimal(38, 0), "100000000000000000000000000000000000000", "", value.ErrRange},
		{decimal(38, 0), "999999999999999999999999999999999999999999", "", value.ErrRange},
		{kind(schema.Date), "1970-01-01", "1970-01-01", nil},
		{kind(schema.Date), "2000-02-29", "2000-02-29", nil},
		{kind(schema.Date), "0001-01-01 BC", "0000-01-01", nil},
		{kind(schema.Date), "infinity", "", value.ErrInfinity},
		{kind(schema.Date), "-infinity", "", value.ErrInfinity},
		{kind(schema.Date), "2000-13-01", "", value.ErrMalformed},
		{kind(schema.Date), "2000-01-01 AD", "", value.ErrMalformed},
		{kind(schema.Time), "23:59:59.999999", "23:59:59.999999", nil},
		{kind(schema.Time), "03:04", "", value.ErrMalformed},
		{kind(schema.Time), "03:04:05.1234567", "", value.ErrScale},
		{kind(schema.Timestamp), "2026-01-02 03:04:05.5", "2026-01-02T03:04:05.5", nil},
		{kind(schema.TimestampTZ), "2026-01-02 03:04:05+09:30", "2026-01-01T17:34:05Z", nil},
		{kind(schema.TimestampTZ), "2026-01-02 03:04:05-00:00:01", "2026-01-02T03:04:06Z", nil},
		{kind(schema.Timestamp), "infinity", "", value.ErrInfinity},
		{kind(schema.Timestamp), "294276-12-31 23:59:59", "", value.ErrRange},
		{kind(schema.Timestamp), "2026-01-02", "", value.ErrMalformed},
		{kind(schema.String), "größe", "größe", nil},
		{kind(schema.String), "\xff", "", value.ErrEncoding},
		{kind(schema.Binary), `\xdeadbeef`, "3q2+7w==", nil},
		{kind(schema.Binary), `\x1`, "", value.ErrMalformed},
		{kind(schema.Binary), `deadbeef`, "", value.ErrMalformed},
		{kind(schema.UUID), "11111111-2222-3333-4444-55555555abcd", "ERERESIiMzNERFVVVVWrzQ==", nil},
		{kind(schema.UUID), "11111111-2222-3333-4444-55555555abcg", "", value.ErrMalformed},
		{kind(schema.UUID), "1111111122223333-4444-55555555abcd----", "", value.ErrMalformed},
		{list(kind(schema.Int32)), "{}", "[]", nil},
		{list(kind(schema.Int32)), "{1,NULL,-3}", "[1,null,-3]", nil},
		{list(kind(schema.String)), `{a,"NULL",NULL,"","x,y","\"\\"}`, `["a","NULL",null,"","x,y","\"\\"]`, nil},
		{list(kind(schema.Int32)), "{{1},{2}}", "", value.ErrDimensions},
		{list(kind(schema.Int32)), "[0:1]={1,2}", "", value.ErrLowerBound},
		{list(kind(schema.Int32)), "{1,}", "", value.ErrMalformed},
		{list(kind(schema.Int32)), "{1,x}", "", value.ErrMalformed},
		{list(kind(schema.String)), `{"a`, "", value.ErrMalformed},
		{list(kind(schema.String)), `{"a"b}`, "", value.ErrMalformed},
		{list(decimal(4, 1)), "{1.5,NaN}", "", value.ErrNaN},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d %s", c.typ.Kind, c.src), func(t *testing.T) {
			d, err := value.TextDecoder(c.typ)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(t, c.typ, d, []byte(c.src))
			if !errors.Is(err, c.wantFail) || (c.wantFail == nil) != (err == nil) {
				t.Fatalf("error %v, want %v", err, c.wantFail)
			}
			if err == nil && got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}

// numeric is numeric's binary form.
func numeric(weight int16, sign uint16, digits ...uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(digits)))
	b = binary.BigEndian.AppendUint16(b, uint16(weight))
	b = binary.BigEndian.AppendUint16(b, sign)
	b = binary.BigEndian.AppendUint16(b, 0)
	for _, d := range digits {
		b = binary.BigEndian.AppendUint16(b, d)
	}
	return b
}

func u64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

func TestBinary(t *testing.T) {
	intMax := u64(math.MaxInt64)
	cases := []struct {
		name     string
		oid      uint32
		typ      schema.Type
		src      []byte
		want     string
		wantFail error
	}{
		{"zero", 1700, decimal(10, 2), numeric(0, 0), "0", nil},
		{"one and a half", 1700, decimal(10, 2), numeric(0, 0, 1, 5000), "1.5", nil},
		{"minus hundredth", 1700, decimal(10, 2), numeric(-1, 0x4000, 100), "-0.01", nil},
		{"million", 1700, decimal(10, 2), numeric(1, 0, 100), "1000000", nil},
		{"too many places", 1700, decimal(10, 2), numeric(-1, 0, 10), "", value.ErrScale},
		{"too far down", 1700, decimal(10, 2), numeric(-3, 0, 1), "", value.ErrScale},
		{"too great", 1700, decimal(10, 2), numeric(2, 0, 1), "", value.ErrRange},
		{"far too great", 1700, decimal(38, 0), numeric(30000, 0, 1), "", value.ErrRange},
		{"38 digits", 1700, decimal(38, 1), numeric(9, 0, 1, 2345, 6789, 123, 4567, 8901, 2345, 6789, 123, 4567, 8000), "1234567890123456789012345678901234567.8", nil},
		{"nan", 1700, decimal(10, 2), numeric(0, 0xC000), "", value.ErrNaN},
		{"infinity", 1700, decimal(10, 2), numeric(0, 0xD000), "", value.ErrInfinity},
		{"bad sign", 1700, decimal(10, 2), numeric(0, 1), "", value.ErrMalformed},
		{"bad digit", 1700, decimal(10, 2), numeric(0, 0, 10000), "", value.ErrMalformed},
		{"cut", 1700, decimal(10, 2), numeric(0, 0, 1)[:9], "", value.ErrMalformed},
		{"int2", 21, kind(schema.Int32), []byte{0x80, 0}, "-32768", nil},
		{"oid", 26, kind(schema.Int64), u32(math.MaxUint32), "4294967295", nil},
		{"int4 cut", 23, kind(schema.Int32), []byte{1}, "", value.ErrMalformed},
		{"date", 1082, kind(schema.Date), u32(0), "2000-01-01", nil},
		{"date infinity", 1082, kind(schema.Date), u32(math.MaxInt32), "", value.ErrInfinity},
		{"timestamp", 1114, kind(schema.Timestamp), u64(0), "2000-01-01T00:00:00", nil},
		{"timestamp infinity", 1114, kind(schema.Timestamp), intMax, "", value.ErrInfinity},
		{"timestamp far", 1114, kind(schema.Timestamp), u64(math.MaxInt64 - 1), "", value.ErrRange},
		{"array", 1007, list(kind(schema.Int32)), hexed("00000001 00000001 00000017 00000002 00000001 00000004 00000005 ffffffff"), "[5,null]", nil},
		{"empty array", 1007, list(kind(schema.Int32)), hexed("00000000 00000000 00000017"), "[]", nil},
		{"matrix", 1007, list(kind(schema.Int32)), hexed("00000002 00000000 00000017 00000001 00000001 00000001 00000001 00000004 00000005"), "", value.ErrDimensions},
		{"lower bound", 1007, list(kind(schema.Int32)), hexed("00000001 00000000 00000017 00000001 00000002 00000004 00000005"), "", value.ErrLowerBound},
		{"array cut", 1007, list(kind(schema.Int32)), hexed("00000001 00000000 00000017 7fffffff 00000001 00000004 00000005"), "", value.ErrMalformed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, ok := value.BinaryDecoder(c.oid, c.typ)
			if !ok {
				t.Fatal("no decoder")
			}
			got, err := decode(t, c.typ, d, c.src)
			if !errors.Is(err, c.wantFail) || (c.wantFail == nil) != (err == nil) {
				t.Fatalf("error %v, want %v", err, c.wantFail)
			}
			if err == nil && got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
	for oid, typ := range map[uint32]schema.Type{114: kind(schema.String), 23: kind(schema.Int64), 18: kind(schema.String), 3807: list(kind(schema.String))} {
		if _, ok := value.BinaryDecoder(oid, typ); ok {
			t.Errorf("oid %d has a binary decoder", oid)
		}
	}
}

func hexed(text string) []byte {
	var out []byte
	var group string
	for _, c := range text + " " {
		if c != ' ' {
			group += string(c)
			continue
		}
		b, err := hex.DecodeString(group)
		if err != nil {
			panic(err)
		}
		out, group = append(out, b...), ""
	}
	return out
}

// Decoders do not allocate per value, but for the growth of their builder.
// NaN has the same bits from a copy, which sends PostgreSQL's, and from the stream, whose
// text is read: it may be in a key.
func TestNaNIsOne(t *testing.T) {
	d, err := value.TextDecoder(schema.Type{Kind: schema.Float64})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	defer b.Release()
	if err := d(b, []byte("NaN")); err != nil || math.Float64bits(b.Value(0)) != 0x7ff8_0000_0000_0000 {
		t.Errorf("%x, %v", math.Float64bits(b.Value(0)), err)
	}
}

func TestDecodersDoNotAllocate(t *testing.T) {
	for typ, src := range map[schema.Type]string{
		kind(schema.Int64): "123456", decimal(12, 2): "12345.67", kind(schema.TimestampTZ): "2026-01-02 03:04:05.123456+00",
		kind(schema.Float64): "3.25", kind(schema.Date): "2026-01-02", kind(schema.UUID): "11111111-2222-3333-4444-55555555abcd",
	} {
		d, err := value.TextDecoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewBuilder(memory.DefaultAllocator, schema.ArrowType(typ))
		b.Reserve(2000)
		in := []byte(src)
		if n := testing.AllocsPerRun(1000, func() { _ = d(b, in) }); n != 0 {
			t.Errorf("kind %d allocates %v times per value", typ.Kind, n)
		}
		b.Release()
	}
}

// Whatever the bytes, a decoder fails or appends one value; it never panics.
func FuzzDecoders(f *testing.F) {
	for _, seed := range []string{"{1,2}", "2026-01-02 03:04:05+00 BC", "-1.5", `\xff`, `{"a\"",NULL}`, "infinity"} {
		f.Add([]byte(seed))
	}
	f.Add(numeric(0, 0, 1, 5000))
	types := map[uint32]schema.Type{
		16: kind(schema.Bool), 20: kind(schema.Int64), 23: kind(schema.Int32), 701: kind(schema.Float64), 1700: decimal(20, 4), 1082: kind(schema.Date),
		1083: kind(schema.Time), 1114: kind(schema.Timestamp), 25: kind(schema.String), 17: kind(schema.Binary), 2950: kind(schema.UUID),
		1231: list(decimal(20, 4)), 1009: list(kind(schema.String)), 1115: list(kind(schema.Timestamp)),
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for oid, typ := range types {
			text, err := value.TextDecoder(typ)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = decode(t, typ, text, src)
			if d, ok := value.BinaryDecoder(oid, typ); ok {
				_, _ = decode(t, typ, d, src)
			}
		}
	})
}

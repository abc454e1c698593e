package encode_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/encode"
)

// paramCases are inputs with the text that the engine is given.
var paramCases = []struct {
	name     string
	oid      uint32
	in, want string
}{
	{"bool", 16, " yes ", "true"},
	{"bool", 16, "OFF", "false"},
	{"int4", 23, " -5 ", "-5"},
	{"int2", 21, "+7", "7"},
	{"oid", 26, "4294967295", "4294967295"},
	{"float8", 701, "-inf", "-Infinity"},
	{"float8", 701, "1e300", "1e+300"},
	{"float4", 700, "0.1", "0.1"},
	{"numeric", 1700, "-1.50e3", "-1500"},
	{"numeric", 1700, ".5e-3", "0.0005"},
	{"numeric", 1700, "NaN", "NaN"},
	{"numeric", 1700, "000012.00", "12.00"},
	{"date", 1082, "2024-02-29 00:00:00Z", "2024-02-29"},
	{"date", 1082, "January 8, 1999", "1999-01-08"},
	{"date", 1082, "0044-03-15 BC", "0044-03-15 (BC)"},
	{"timestamp", 1114, "2024-02-29T12:13:14.5+02:00", "2024-02-29 12:13:14.5"},
	{"timestamp", 1114, "infinity", "infinity"},
	{"timestamp", 1114, "2024-02-29 24:00:00", "2024-03-01 00:00:00"},
	{"timestamptz", 1184, "2024-07-01 12:00 Europe/Berlin", "2024-07-01 12:00:00+02:00"},
	{"timestamptz", 1184, "2024-02-29 12:13:14-08", "2024-02-29 12:13:14-08:00"},
	{"timetz", 1266, "04:05:06.789 PM +0530", "16:05:06.789+05:30"},
	{"interval", 1186, "1-2", "14 months 0 days 0 microseconds"},
	{"interval", 1186, "1h30m ago", "0 months 0 days -5400000000 microseconds"},
	{"interval", 1186, "P1Y2M3DT4H5M6.5S", "14 months 3 days 14706500000 microseconds"},
	{"uuid", 2950, "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	{"bytea", 17, `\xDEAD41`, `\xDE\xADA`},
	{"bytea", 17, `a\\b\000'`, `a\x5Cb\x00\x27`},
	{"int4[]", 1007, "{1,NULL,-3}", "[1, NULL, -3]"},
	{"int8[]", 1016, "{}", "[]"},
	{"text[]", 1009, `{a,"b c","NULL",NULL,"q\"x\\"}`, `[a, "b c", "NULL", NULL, "q\"x\\"]`},
	{"json", 114, `{"a": 1e2}`, `{"a": 1e2}`},
	{"text", 25, "ünï", "ünï"},
	{"inet", 869, "10.0.0.0/8", "10.0.0.0/8"},
}

func TestDecodeParam(t *testing.T) {
	for _, test := range paramCases {
		got, err := encode.DecodeParam(test.oid, 0, []byte(test.in))
		if err != nil || got != test.want {
			t.Errorf("%s %q: %q, %v, want %q", test.name, test.in, got, err, test.want)
		}
	}
}

// A binary parameter must give the same text as the same value in text.
func TestDecodeBinaryParam(t *testing.T) {
	c := postgres(t)
	set(t, c, "TimeZone", "UTC")
	for _, test := range paramCases {
		if test.name == "timestamptz" || test.name == "timetz" {
			continue // the offset is normalised on the way
		}
		b := ask(t, c, "SELECT $1::"+test.name, []byte(test.in), 0, 1)
		got, err := encode.DecodeParam(test.oid, 1, b)
		if err != nil || got != test.want {
			t.Errorf("%s %q: %q, %v, want %q", test.name, test.in, got, err, test.want)
		}
	}
}

func TestInput(t *testing.T) {
	berlin, err := encode.LoadZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2024, 6, 30, 22, 30, 1, 5000, time.UTC) // July 1st in Berlin
	for _, test := range []struct {
		in   encode.Input
		oid  uint32
		text string
		want string
	}{
		{encode.Input{}, 1082, "02/03/2024", "2024-02-03"},
		{encode.Input{Order: encode.DMY}, 1082, "02/03/2024", "2024-03-02"},
		{encode.Input{Order: encode.DMY}, 1082, "31.12.2024", "2024-12-31"},
		{encode.Input{Order: encode.YMD}, 1082, "24-03-02", "2024-03-02"},
		{encode.Input{}, 1082, `Jan"5 1999`, "1999-01-05"},
		{encode.Input{Order: encode.DMY}, 1082, "2024-03-02", "2024-03-02"},
		{encode.Input{Now: now, Zone: berlin}, 1082, "today", "2024-07-01"},
		{encode.Input{Now: now}, 1082, "Tomorrow", "2024-07-01"},
		{encode.Input{Now: now, Zone: berlin}, 1184, "yesterday", "2024-06-30 00:00:00+02:00"},
		{encode.Input{Now: now, Zone: berlin}, 1114, "now", "2024-07-01 00:30:01.000005"},
		{encode.Input{Now: now, Zone: berlin}, 1266, "now", "00:30:01.000005+02:00"},
		{encode.Input{}, 1082, "today", ""},
	} {
		got, perr := test.in.Decode(test.oid, 0, []byte(test.text))
		if got != test.want || (perr == nil) != (test.want != "") {
			t.Errorf("%+v %s: %q, %v, want %q", test.in, test.text, got, perr, test.want)
		}
	}
}

// badParams are refused, with PostgreSQL's code and message.
var badParams = []struct {
	name string
	oid  uint32
	in   string
}{
	{"bool", 16, "maybe"},
	{"bool", 16, ""},
	{"int4", 23, "x"},
	{"int4", 23, ""},
	{"int4", 23, "1.5"},
	{"int4", 23, "2147483648"},
	{"int2", 21, "-32769"},
	{"int8", 20, "9223372036854775808"},
	{"oid", 26, "4294967296"},
	{"float8", 701, "1e400"},
	{"float8", 701, "1e-400"},
	{"float8", 701, "1_0"},
	{"float4", 700, "1e40"},
	{"numeric", 1700, "1.2.3"},
	{"numeric", 1700, "1e"},
	{"date", 1082, "2024-02-30"},
	{"date", 1082, "2024-13-01"},
	{"date", 1082, "hello"},
	{"date", 1082, ""},
	{"timestamp", 1114, "2024-01-01 25:00:00"},
	{"timestamp", 1114, "12:00"},
	{"timestamptz", 1184, "2024-01-01 00:00:00 Mars/Olympus"},
	{"time", 1083, "24:00:01"},
	{"interval", 1186, "1 fortnight"},
	{"interval", 1186, "x"},
	{"uuid", 2950, "a0eebc99"},
	{"bytea", 17, `\xg0`},
	{"bytea", 17, `\x0`},
	{"bytea", 17, `\9`},
	{"json", 114, "{"},
	{"int4[]", 1007, "{1,"},
	{"int4[]", 1007, "1"},
	{"int4[]", 1007, "{x}"},
	{"int4[]", 1007, "{{1},{2,3}}"},
	{"inet", 869, "1.2.3.4.5"},
}

func TestBadParamsAgainstPostgres(t *testing.T) {
	c := postgres(t)
	for _, test := range badParams {
		_, err := encode.DecodeParam(test.oid, 0, []byte(test.in))
		r := c.ExecParams(context.Background(), "SELECT $1::"+test.name, [][]byte{[]byte(test.in)}, nil, nil, nil).Read()
		want, ok := r.Err.(*pgconn.PgError)
		switch {
		case !ok:
			t.Errorf("%s %q: PostgreSQL takes it", test.name, test.in)
		case err == nil:
			t.Errorf("%s %q: accepted, PostgreSQL says %s", test.name, test.in, want.Message)
		case string(err.Code) != want.Code || err.Message != want.Message:
			t.Errorf("%s %q: %v, PostgreSQL %s (%s)", test.name, test.in, err, want.Message, want.Code)
		}
	}
}

// The engine would take an inner array as the text of an element.
func TestArraysWithoutLike(t *testing.T) {
	list := func(dims, lower byte) []byte {
		b := []byte{0, 0, 0, dims, 0, 0, 0, 0, 0, 0, 0, 25}
		for range dims {
			b = append(b, 0, 0, 0, 1, 0, 0, 0, lower)
		}
		return append(b, 0, 0, 0, 1, 'a')
	}
	for _, test := range []struct {
		format int16
		in     []byte
	}{
		{0, []byte("{{a,b},{c,d}}")}, {0, []byte("[2:3]={a,b}")}, {0, []byte("[0:0]={a}")}, {1, list(2, 1)}, {1, list(1, 2)},
	} {
		if got, err := encode.DecodeParam(1009, test.format, test.in); err == nil || err.Code != codes.FeatureNotSupported {
			t.Errorf("%q: %q, %v", test.in, got, err)
		}
	}
	if got, err := encode.DecodeParam(1009, 1, list(1, 1)); err != nil || got != "[a]" {
		t.Errorf("one dimension: %q, %v", got, err)
	}
}

func TestBadBinaryParams(t *testing.T) {
	for name, test := range map[string]struct {
		oid uint32
		in  []byte
	}{
		"short int":        {23, []byte{1}},
		"long bool":        {16, []byte{1, 2}},
		"numeric header":   {1700, []byte{0, 1}},
		"numeric digits":   {1700, []byte{0, 9, 0, 0, 0, 0, 0, 0}},
		"array header":     {1007, []byte{0, 0}},
		"array dimensions": {1007, binary.BigEndian.AppendUint64([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23}, 1<<62)},
		"array element":    {1007, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25}},
		"jsonb version":    {3802, []byte("\x02{}")},
		"text":             {25, []byte{0xff}},
		"NUL":              {25, []byte{'a', 0}},
		"short point":      {600, make([]byte, 15)},
		"line without one": {628, make([]byte, 24)},
		"multirange":       {4451, make([]byte, 4)},
		"empty array":      {1007, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0}},
		"time":             {1083, binary.BigEndian.AppendUint64(nil, 1<<60)},
	} {
		if got, err := encode.DecodeParam(test.oid, 1, test.in); err == nil {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}

// Values made of others come as the text that PostgreSQL writes.
func TestCompoundBinaryParams(t *testing.T) {
	for _, test := range []struct {
		oid      uint32
		in, want string
	}{
		{600, "3ff00000000000004000000000000000", "(1,2)"},
		{790, "00000000000004d2", "$12.34"},
		{829, "08002b010203", "08:00:2b:01:02:03"},
		{3220, "00000016b374d848", "16/B374D848"},
		{3904, "0600000004000000010000000400000004", "[1,5)"},
		{3904, "18", "(,)"},
		{3912, "02000000040000223e000000040000225d", "[2024-01-01,2024-02-01)"},
		{3906, "020000000c00020000000000010001138800" + "00000c000200000000000100021388", "[1.5,2.5)"},
		{3908, "02000000080002b0de36ada800000000080002b34dd3c24800", `["2024-01-01 10:00:00","2024-02-01 10:00:00")`},
		{3910, "02000000080002b0de36ada800000000080002b34dd3c24800", `["2024-01-01 10:00:00+00","2024-02-01 10:00:00+00")`},
	} {
		in, err := hex.DecodeString(test.in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := encode.DecodeParam(test.oid, 1, in); err != nil || got != test.want {
			t.Errorf("%d: %q, %v; want %q", test.oid, got, err, test.want)
		}
	}
}

func FuzzDecodeParam(f *testing.F) {
	for _, test := range paramCases {
		f.Add(test.oid, int16(0), []byte(test.in))
	}
	f.Add(uint32(1007), int16(1), []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7})
	f.Add(uint32(1700), int16(1), []byte{0, 1, 0, 0, 0, 0, 0, 2, 0, 5})
	f.Fuzz(func(_ *testing.T, oid uint32, format int16, b []byte) {
		_, _ = encode.DecodeParam(oid, format, b) // must not panic
	})
}

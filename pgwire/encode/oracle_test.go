package encode_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// column is a vector with the type as which it is sent.
type column struct {
	name string // PostgreSQL's type
	oid  uint32
	rows int
	v    vector.Vector
}

// compare sends each value to PostgreSQL in our binary form and wants both of our
// forms back.
func compare(t *testing.T, c *pgconn.PgConn, col column, f encode.Format) {
	t.Helper()
	text, err := encodeColumn(t, col.v, col.rows, col.oid, 0, f)
	if err != nil {
		t.Fatalf("%s: %v", col.name, err)
	}
	bin, err := encodeColumn(t, col.v, col.rows, col.oid, 1, f)
	if err != nil {
		t.Fatalf("%s: %v", col.name, err)
	}
	bad := 0
	for i := range bin {
		if bin[i] == nil {
			continue
		}
		sql := "SELECT $1::" + col.name
		if want := ask(t, c, sql, bin[i], 1, 0); !bytes.Equal(text[i], want) {
			t.Errorf("%s text %q, PostgreSQL %q", col.name, text[i], want)
			bad++
		}
		if want := ask(t, c, sql, bin[i], 1, 1); !bytes.Equal(bin[i], want) {
			t.Errorf("%s binary %x, PostgreSQL %x (%s)", col.name, bin[i], want, text[i])
			bad++
		}
		if bad > 5 {
			return
		}
	}
}

func kind(k vector.Kind) vector.Type { return vector.Type{Kind: k} }

// scalarColumns are edge values and random ones of every scalar kind.
func scalarColumns(rnd *rand.Rand, n int) []column {
	f64 := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, 1e15, 1e14, 123456789012345, 1234567890123456, 1e-4, 1e-5, 9.99e-5, 1e20, 1e-320,
		math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, 9007199254740993, 1 << 62, 1 << 63, 9e15, 2e16,
	}
	f32 := []float32{0, 1, 0.1, 1e6, 999999, 1234567, 1e5, 1e-4, 1e-5, 1e20, math.MaxFloat32, math.SmallestNonzeroFloat32, 16777216, 3.4028235e38, float32(math.Inf(1))}
	for range n {
		f64 = append(f64, math.Float64frombits(rnd.Uint64()), float64(rnd.Int64N(1e18))*math.Pow(10, float64(rnd.IntN(30)-15)),
			float64(rnd.Int64N(1e6))*math.Pow(2, float64(rnd.IntN(80))), math.Round(rnd.Float64()*1e4)/100)
		f32 = append(f32, math.Float32frombits(rnd.Uint32()), float32(rnd.IntN(1e6))*float32(math.Pow(2, float64(rnd.IntN(60)))))
	}
	i64 := []int64{0, 1, -1, math.MaxInt64, math.MinInt64}
	i32 := []int32{0, 1, -1, math.MaxInt32, math.MinInt32}
	stamps := []int64{0, 1, -1, 999999, 1000000, math.MaxInt64, -math.MaxInt64, -62135596800e6, -62135596801e6, -62167219200e6 - 1, 253402300800e6, -210000000000e6}
	dates := []int32{0, 1, -1, math.MaxInt32, -math.MaxInt32, -719162, -719163, -719528, 2932897, -2440000, 11016, 19782}
	times := []int64{0, 1, 86399999999, 86400000000, 43200000000, 3661000001}
	zoned := []uint64{57599, 57599 - 3600, 57599 + 3600, 57599 - 5400 | 86399999999<<24, 57599 + 12345 | 1<<24}
	ivs := []interval{
		{},
		{1, 0, 0},
		{-1, 0, 0},
		{12, 1, 1},
		{14, 3, 14706500000},
		{-14, 3, -14706500000},
		{0, 0, -1},
		{0, -1, 1},
		{0, 1, -500000},
		{25, 0, 1e6},
		{-1, -1, -61000001},
		{0, 0, 360000e9},
		{0, 0, -1e6},
		{0, 0, 1e6},
		{11, -30, 60e6},
		{0, 0, -59999999},
		{-24, 0, 0},
		{0, 0, 86399e6},
	}
	bools := []uint8{0, 1}
	for range n {
		i64 = append(i64, int64(rnd.Uint64())>>rnd.IntN(64))
		i32 = append(i32, int32(rnd.Uint32())>>rnd.IntN(32))
		stamps = append(stamps, rnd.Int64N(4e15)-2e15, rnd.Int64N(400e15)-200e15)
		dates = append(dates, int32(rnd.IntN(4000000))-2000000, int32(rnd.IntN(40000))-10000)
		times = append(times, rnd.Int64N(86400e6))
		zoned = append(zoned, uint64(rnd.Int64N(86400e6))<<24|uint64(57599+(rnd.IntN(28)-14)*900))
		ivs = append(ivs, interval{int32(rnd.IntN(400) - 200), int32(rnd.IntN(100) - 50), rnd.Int64N(400e9) - 200e9})
	}
	uuids := []huge{{0, math.MinInt64}, {math.MaxUint64, math.MaxInt64}, {rnd.Uint64(), rnd.Int64()}}
	return []column{
		{"bool", 16, len(bools), fixed(kind(vector.Bool), bools...)},
		{"int8", 20, len(i64), fixed(kind(vector.Int64), i64...)},
		{"numeric", 1700, len(i64), fixed(kind(vector.Int64), i64...)},
		{"float8", 701, len(i64), fixed(kind(vector.Int64), i64...)},
		{"int4", 23, len(i32), fixed(kind(vector.Int32), i32...)},
		{"int8", 20, len(i32), fixed(kind(vector.Int32), i32...)},
		{"oid", 26, 3, fixed(kind(vector.Int64), int64(0), 1, math.MaxUint32)},
		{"int2", 21, 3, fixed(kind(vector.Int32), int32(0), math.MaxInt16, math.MinInt16)},
		{"int2", 21, 3, fixed(kind(vector.Int8), int8(0), math.MaxInt8, math.MinInt8)},
		{"int8", 20, 2, fixed(kind(vector.UInt64), uint64(0), math.MaxInt64)},
		{"float8", 701, len(f64), fixed(kind(vector.Float64), f64...)},
		{"float4", 700, len(f32), fixed(kind(vector.Float32), f32...)},
		{"float8", 701, len(f32), fixed(kind(vector.Float32), f32...)},
		{"date", 1082, len(dates), fixed(kind(vector.Date), dates...)},
		{"time", 1083, len(times), fixed(kind(vector.Time), times...)},
		{"timetz", 1266, len(zoned), fixed(kind(vector.TimeTZ), zoned...)},
		{"timestamp", 1114, len(stamps), fixed(kind(vector.Timestamp), stamps...)},
		{"timestamptz", 1184, len(stamps), fixed(kind(vector.TimestampTZ), stamps...)},
		{"timestamp", 1114, 3, fixed(kind(vector.TimestampS), int64(0), -1, 1700000000)},
		{"timestamp", 1114, 3, fixed(kind(vector.TimestampMS), int64(0), -1, 1700000000123)},
		{"timestamp", 1114, 3, fixed(kind(vector.TimestampNS), int64(0), -1, 1700000000123456789)},
		{"timestamp", 1114, 5, fixed(kind(vector.Date), dates[:5]...)},
		{"interval", 1186, len(ivs), fixed(kind(vector.Interval), ivs...)},
		{"uuid", 2950, len(uuids), fixed(kind(vector.UUID), uuids...)},
		{"bytea", 17, 4, texts(vector.Blob, "", "abc", "\x00\xff\\'\n~ ", "a longer one than twelve bytes")},
		{"text", 25, 3, texts(vector.String, "", "abc", "a longer one than twelve bytes: ü€😀")},
		{"varbit", 1562, 4, texts(vector.Bit, "\x00\xa5", "\x05\xf9", "\x03\xe5\x01", "\x07\xff")},
		{"jsonb", 3802, 2, texts(vector.String, `{"a": [1, 2.50, "x"]}`, "null")},
		{"json", 114, 2, texts(vector.String, `{"a":  1}`, "null")},
	}
}

func decimalColumns(rnd *rand.Rand, n int) []column {
	var out []column
	for _, scale := range []uint8{0, 1, 2, 3, 4, 5, 9, 10, 18} {
		var v64 []int64
		v64 = append(v64, 0, 1, -1, 999999999999999999, -999999999999999999, 10000, 100000000)
		for range n {
			v64 = append(v64, rnd.Int64N(1e18)>>rnd.IntN(60), -rnd.Int64N(1e18)>>rnd.IntN(60))
		}
		out = append(out, column{"numeric", 1700, len(v64), fixed(vector.Type{Kind: vector.Decimal, Width: 18, Scale: scale}, v64...)})
	}
	out = append(out,
		column{"numeric", 1700, 3, fixed(vector.Type{Kind: vector.Decimal, Width: 4, Scale: 2}, int16(0), 9999, -1)},
		column{"numeric", 1700, 3, fixed(vector.Type{Kind: vector.Decimal, Width: 9, Scale: 4}, int32(0), 999999999, -10)},
		column{"float8", 701, 3, fixed(vector.Type{Kind: vector.Decimal, Width: 9, Scale: 4}, int32(0), 999999999, -10)},
		column{"int4", 23, 4, fixed(vector.Type{Kind: vector.Decimal, Width: 9, Scale: 1}, int32(5), -5, 14, -15)})
	limit := huge{0x098a223fffffffff, 0x4b3b4ca85a86c47a} // 10^38-1
	for _, scale := range []uint8{0, 1, 7, 19, 20, 37, 38} {
		values := []huge{{0, 0}, {1, 0}, {math.MaxUint64, -1}, limit, {^limit.lo + 1, ^limit.hi}, {0, 1}, {5, 1 << 30}, {1e19, 0}}
		for range n {
			values = append(values, huge{rnd.Uint64(), rnd.Int64N(limit.hi) >> rnd.IntN(60)}, huge{rnd.Uint64(), -rnd.Int64N(limit.hi) >> rnd.IntN(60)})
		}
		out = append(out, column{"numeric", 1700, len(values), fixed(vector.Type{Kind: vector.Decimal, Width: 38, Scale: scale}, values...)})
	}
	hugeValues := []huge{{0, 0}, {math.MaxUint64, math.MaxInt64}, {0, math.MinInt64}, {1, math.MinInt64}, {math.MaxUint64, -1}}
	out = append(out,
		column{"numeric", 1700, len(hugeValues), fixed(kind(vector.HugeInt), hugeValues...)},
		column{"numeric", 1700, len(hugeValues), fixed(kind(vector.UHugeInt), hugeValues...)},
		column{"int8", 20, 2, fixed(kind(vector.HugeInt), huge{math.MaxInt64, 0}, huge{1 << 63, -1})})
	return out
}

func nestedColumns() []column {
	ints := withNulls(fixed(kind(vector.Int32), int32(1), 2, -3, 4, 5, 6), 6, 1)
	words := withNulls(texts(vector.String, "a", "", "null", "NULL", "a b", `q"\`, "{x}", "a,b", "t\t", "Ünï", "x"), 11, 10)
	return []column{
		{"int4[]", 1007, 4, list(ints, 0, 1, 2, 3)},
		{"text[]", 1009, 3, list(words, 5, 6, 0)},
		{"bool[]", 1000, 1, list(fixed(kind(vector.Bool), uint8(1), 0), 2)},
		{"float8[]", 1022, 1, list(fixed(kind(vector.Float64), 1.5, 1e20), 2)},
		{"timestamp[]", 1115, 1, list(fixed(kind(vector.Timestamp), int64(0), 1), 2)},
		{"numeric[]", 1231, 1, list(fixed(vector.Type{Kind: vector.Decimal, Width: 9, Scale: 2}, int32(150), -1), 2)},
		{"int8[]", 1016, 1, list(list(fixed(kind(vector.Int64), int64(1), 2, 3, 4), 2, 2), 2)},
		{"bytea[]", 1001, 1, list(texts(vector.Blob, "\x00a", ""), 2)},
		{"int2[]", 1005, 1, list(fixed(kind(vector.Int32), int32(1), 2), 2)},
		{"int2vector", 22, 2, list(fixed(kind(vector.Int32), int32(1), 2, 3), 1, 2)},
		{"oidvector", 30, 2, list(fixed(kind(vector.Int64), int64(1), 2, 3), 1, 2)},
	}
}

// exactTexts are columns whose values the engine keeps as PostgreSQL's text.
func exactTexts() []column {
	return []column{
		{"numeric", 1700, 9, texts(vector.String, "0", "NaN", "Infinity", "-Infinity", "-123456789012345678901234567890123456789012.000100",
			"0.00000000000000000001", "10000", "0.00", "100000000000000000000000000000000000000000")},
		{"interval", 1186, 3, texts(vector.String, "1 year 2 mons -3 days +04:05:06.5", "-00:00:01", "00:00:00")},
		{"timetz", 1266, 2, texts(vector.String, "04:05:06.789+05:30", "24:00:00-08")},
		{"money", 790, 3, texts(vector.String, "$1,234.56", "-$0.01", "$0.00")},
		{"inet", 869, 4, texts(vector.String, "192.168.0.1", "10.0.0.0/8", "::1", "2001:db8::/32")},
		{"cidr", 650, 2, texts(vector.String, "10.0.0.0/8", "2001:db8::/32")},
		{"macaddr", 829, 1, texts(vector.String, "08:00:2b:01:02:03")},
		{"macaddr8", 774, 1, texts(vector.String, "08:00:2b:01:02:03:04:05")},
		{"pg_lsn", 3220, 1, texts(vector.String, "16/B374D848")},
		{"bit varying", 1562, 2, texts(vector.String, "", "1010110")},
		{"xml", 142, 1, texts(vector.String, "<a>b</a>")},
		{"int4[]", 1007, 3, texts(vector.String, "{{1,2},{3,NULL}}", "{}", "[0:1]={1,2}")},
		{"text[]", 1009, 1, texts(vector.String, `{a,"b \"c\\",NULL,"null",""}`)},
		{"numeric[]", 1231, 1, texts(vector.String, "{1.50,NaN}")},
		{"timestamptz", 1184, 2, texts(vector.String, "2024-02-29 12:00:00+00", "0044-03-15 00:00:00+00 BC")},
		{"date", 1082, 4, texts(vector.String, "2024-02-29", "infinity", "5874897-12-31", "4714-11-24 BC")},
		{"timestamp", 1114, 2, texts(vector.String, "4714-11-24 00:00:00 BC", "-infinity")},
		{"bool", 16, 2, texts(vector.String, "t", "f")},
		{"uuid", 2950, 1, texts(vector.String, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")},
		{"bytea", 17, 1, texts(vector.String, `\x00ff`)},
		{"float8", 701, 2, texts(vector.String, "1e+20", "NaN")},
		{"int8", 20, 1, texts(vector.String, "-5")},
		{"regclass", 2205, 1, texts(vector.String, "1259")},
		{"money", 790, 2, texts(vector.String, "-$92,233,720,368,547,758.08", "$92,233,720,368,547,758.07")},
		{"interval", 1186, 4, texts(vector.String, "2562047788:00:54.775807", "-2562047788:00:54.775808", "178000000 years", "-1 years -1 mons -1 days -00:00:01.000001")},
		{"int4range", 3904, 5, texts(vector.String, "empty", "(,)", "[1,5)", "(,5)", "[-3,)")},
		{"numrange", 3906, 2, texts(vector.String, "(1.50,2.500]", "[0,NaN]")},
		{"tsrange", 3908, 2, texts(vector.String, `["2026-01-02 03:04:05","2026-01-02 03:04:05.5"]`, "[-infinity,infinity]")},
		{"daterange", 3912, 1, texts(vector.String, `["0044-03-15 BC",infinity)`)},
		{"int8multirange", 4536, 3, texts(vector.String, "{}", "{[1,2),[5,)}", "{(,)}")},
		{"tstzmultirange", 4534, 1, texts(vector.String, `{(,"2026-01-02 03:04:05+00"],["2027-01-02 03:04:05+00",)}`)},
		{"int4range[]", 3905, 1, texts(vector.String, `{"[1,5)",NULL,empty}`)},
		{"point", 600, 3, texts(vector.String, "(0,0)", "(1e+300,-0)", "(NaN,Infinity)")},
		{"lseg", 601, 1, texts(vector.String, "[(0,0),(1,1e-300)]")},
		{"path", 602, 2, texts(vector.String, "[(0,0),(1,1)]", "((0,0),(1,1),(2,0))")},
		{"box", 603, 1, texts(vector.String, "(3,5),(-1,-2)")},
		{"box[]", 1020, 1, texts(vector.String, "{(1,2),(0,0);(3,4),(1,1)}")},
		{"polygon", 604, 1, texts(vector.String, "((0,0),(1,1),(2,0))")},
		{"line", 628, 1, texts(vector.String, "{1,-1,0}")},
		{"circle", 718, 1, texts(vector.String, "<(1.5,-2),3>")},
		{"tid", 27, 2, texts(vector.String, "(0,0)", "(4294967295,65535)")},
		{"pg_snapshot", 5038, 2, texts(vector.String, "10:20:10,14,15", "1:1:")},
		{"txid_snapshot", 2970, 1, texts(vector.String, "10:20:10")},
		{"int2vector", 22, 1, texts(vector.String, "1 -2 32767")},
		{"oidvector", 30, 1, texts(vector.String, "1 4294967295")},
		{"tsvector", 3614, 3, texts(vector.String, "", `'a':1A,2B 'b' 'it''s':3C`, `'größe' 'x\\\\y':4`)},
	}
}

func TestAgainstPostgres(t *testing.T) {
	c := postgres(t)
	set(t, c, "TimeZone", "UTC")
	rnd := rand.New(rand.NewPCG(1, 2))
	columns := append(scalarColumns(rnd, 200), decimalColumns(rnd, 60)...)
	columns = append(append(columns, nestedColumns()...), exactTexts()...)
	for _, col := range columns {
		if col.name == "regclass" { // its text is a name
			continue
		}
		compare(t, c, col, encode.DefaultFormat())
	}
}

func TestFormatsAgainstPostgres(t *testing.T) {
	c := postgres(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	columns := scalarColumns(rnd, 25)
	dateLike := func(oid uint32) bool { return oid == 1082 || oid == 1114 || oid == 1184 || oid == 1266 || oid == 1083 }
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Australia/Lord_Howe", "<+02>-02", "-3.5", "america/new_york"} {
		for _, style := range []string{"ISO, MDY", "ISO, DMY", "SQL, MDY", "SQL, DMY", "Postgres, MDY", "Postgres, DMY", "German, DMY", "German, MDY"} {
			f := encode.DefaultFormat()
			f.TimeZone, f.DateStyle = zone, style
			set(t, c, "TimeZone", zone)
			set(t, c, "DateStyle", style)
			for _, col := range columns {
				if dateLike(col.oid) {
					compare(t, c, col, f)
				}
			}
			if t.Failed() {
				t.Fatalf("zone %s, style %s", zone, style)
			}
		}
	}
	set(t, c, "TimeZone", "UTC")
	set(t, c, "DateStyle", "ISO, MDY")
	for _, style := range []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"} {
		f := encode.DefaultFormat()
		f.IntervalStyle = style
		set(t, c, "IntervalStyle", style)
		for _, col := range columns {
			if col.oid == 1186 {
				compare(t, c, col, f)
			}
		}
	}
	set(t, c, "IntervalStyle", "postgres")
	set(t, c, "bytea_output", "escape")
	for _, digits := range []string{"3", "0", "-2", "-15"} {
		f := encode.DefaultFormat()
		f.ByteaOutput, f.ExtraFloatDigits = "escape", map[string]int{"3": 3, "0": 0, "-2": -2, "-15": -15}[digits]
		set(t, c, "extra_float_digits", digits)
		for _, col := range columns {
			if col.oid == 17 || col.oid == 700 || col.oid == 701 {
				compare(t, c, col, f)
			}
		}
	}
}

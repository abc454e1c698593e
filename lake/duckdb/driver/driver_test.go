package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/lake/vector"
)

func open(t testing.TB) (*DB, *Conn) {
	t.Helper()
	db, err := Open(map[string]string{"threads": "2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	c, err := db.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return db, c
}

// texts runs a query of VARCHAR columns.
func texts(t testing.TB, c *Conn, sql string) [][]string {
	t.Helper()
	s, err := c.Query(context.Background(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer s.Close()
	var out [][]string
	for {
		ch, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ch == nil {
			return out
		}
		for i := range ch.Rows {
			var row []string
			for k := range ch.Columns {
				v := &ch.Columns[k]
				if !v.Valid(i) {
					row = append(row, "∅")
					continue
				}
				row = append(row, string(v.Bytes(i)))
			}
			out = append(out, row)
		}
	}
}

// scanTypes are the types the scan takes, with the engine's type, JSON values as
// arrow-go reads them, and their text in the engine.
var scanTypes = []struct {
	typ    arrow.DataType
	engine string
	json   []string
	text   []string
}{
	{arrow.FixedWidthTypes.Boolean, "BOOLEAN", []string{"true", "false", "true"}, []string{"true", "false", "true"}},
	{arrow.PrimitiveTypes.Uint8, "UTINYINT", []string{"1", "255", "3"}, []string{"1", "255", "3"}},
	{arrow.PrimitiveTypes.Int16, "SMALLINT", []string{"-1", "32767", "3"}, []string{"-1", "32767", "3"}},
	{arrow.PrimitiveTypes.Int32, "INTEGER", []string{"-1", "2147483647", "3"}, []string{"-1", "2147483647", "3"}},
	{arrow.PrimitiveTypes.Int64, "BIGINT", []string{"-1", "9007199254740993", "3"}, []string{"-1", "9007199254740993", "3"}},
	{arrow.PrimitiveTypes.Float32, "FLOAT", []string{"-1.5", "0.25", "3"}, []string{"-1.5", "0.25", "3.0"}},
	{arrow.PrimitiveTypes.Float64, "DOUBLE", []string{"-1.5", "1e300", "3"}, []string{"-1.5", "1e+300", "3.0"}},
	{&arrow.Decimal128Type{Precision: 4, Scale: 2}, "DECIMAL(4,2)", []string{`"-1.50"`, `"99.99"`, `"0.01"`}, []string{"-1.50", "99.99", "0.01"}},
	{&arrow.Decimal128Type{Precision: 9, Scale: 2}, "DECIMAL(9,2)", []string{`"-1.50"`, `"9999999.99"`, `"0.01"`}, []string{"-1.50", "9999999.99", "0.01"}},
	{&arrow.Decimal128Type{Precision: 18, Scale: 0}, "DECIMAL(18,0)", []string{`"-1"`, `"999999999999999999"`, `"3"`}, []string{"-1", "999999999999999999", "3"}},
	{&arrow.Decimal128Type{Precision: 38, Scale: 10}, "DECIMAL(38,10)", []string{`"-1.5"`, `"1234567890123456789012345678.0123456789"`, `"3"`}, []string{"-1.5000000000", "1234567890123456789012345678.0123456789", "3.0000000000"}},
	{arrow.FixedWidthTypes.Date32, "DATE", []string{`"1969-12-31"`, `"2024-02-29"`, `"0044-03-15"`}, []string{"1969-12-31", "2024-02-29", "0044-03-15"}},
	{arrow.FixedWidthTypes.Time64us, "TIME", []string{`"00:00:00"`, `"23:59:59.999999"`, `"12:00:00"`}, []string{"00:00:00", "23:59:59.999999", "12:00:00"}},
	{&arrow.TimestampType{Unit: arrow.Microsecond}, "TIMESTAMP", []string{`"1969-12-31 23:59:59.999999"`, `"2024-02-29 12:00:00"`, `"1970-01-01"`}, []string{"1969-12-31 23:59:59.999999", "2024-02-29 12:00:00", "1970-01-01 00:00:00"}},
	{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, "TIMESTAMP WITH TIME ZONE", []string{`"1969-12-31T23:59:59Z"`, `"2024-02-29T12:00:00Z"`, `"1970-01-01T00:00:00Z"`}, []string{"1969-12-31 23:59:59+00", "2024-02-29 12:00:00+00", "1970-01-01 00:00:00+00"}},
	{arrow.BinaryTypes.String, "VARCHAR", []string{`"short"`, `"a string of more than twelve bytes"`, `""`}, []string{"short", "a string of more than twelve bytes", ""}},
	{arrow.BinaryTypes.LargeString, "VARCHAR", []string{`"short"`, `"a string of more than twelve bytes"`, `""`}, []string{"short", "a string of more than twelve bytes", ""}},
	{arrow.BinaryTypes.Binary, "BLOB", []string{`"AAEC"`, `"YWJjZGVmZ2hpamtsbW5vcA=="`, `""`}, []string{`\x00\x01\x02`, "abcdefghijklmnop", ""}},
	{&arrow.FixedSizeBinaryType{ByteWidth: 16}, "UUID", []string{`"ASNFZ4mrze8BI0VniavN7w=="`, `"/////////////////////w=="`, `"AAAAAAAAAAAAAAAAAAAAAA=="`}, []string{"01234567-89ab-cdef-0123-456789abcdef", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000000"}},
	{arrow.ListOf(arrow.PrimitiveTypes.Int64), "BIGINT[]", []string{"[1,null,3]", "[]", "[4]"}, []string{"[1, NULL, 3]", "[]", "[4]"}},
	{arrow.ListOf(arrow.BinaryTypes.String), "VARCHAR[]", []string{`["a",null]`, `["a string of more than twelve bytes"]`, "[]"}, []string{"[a, NULL]", "[a string of more than twelve bytes]", "[]"}},
	{arrow.ListOf(arrow.FixedWidthTypes.Boolean), "BOOLEAN[]", []string{"[true,false]", "[null]", "[true]"}, []string{"[true, false]", "[NULL]", "[true]"}},
	{arrow.ListOf(&arrow.Decimal128Type{Precision: 10, Scale: 1}), "DECIMAL(10,1)[]", []string{`["1.5"]`, `[null,"2.5"]`, "[]"}, []string{"[1.5]", "[NULL, 2.5]", "[]"}},
	{arrow.ListOf(&arrow.FixedSizeBinaryType{ByteWidth: 16}), "UUID[]", []string{`["ASNFZ4mrze8BI0VniavN7w=="]`, "[]", "[null]"}, []string{"[01234567-89ab-cdef-0123-456789abcdef]", "[]", "[NULL]"}},
}

// TestScanTypes sends every type through the scan: 5000 rows with nulls, seen whole,
// cut out of a longer record, and by row numbers.
func TestScanTypes(t *testing.T) {
	_, c := open(t)
	if err := c.Exec("SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	for _, typ := range scanTypes {
		t.Run(typ.typ.String(), func(t *testing.T) {
			rec, want := typedRecord(t, typ.typ, typ.json, typ.text, 5000)
			var odd []int32
			var oddWant []string
			for i := 1; i < 5000; i += 2 {
				odd, oddWant = append(odd, int32(i)), append(oddWant, want[i])
			}
			check := func(name string, rec arrow.RecordBatch, p Part, want []string) {
				block, err := NewBlock(rec)
				if err != nil {
					t.Fatal(err)
				}
				defer block.Release()
				p.Block = block
				src, err := NewSource(rec.Schema(), []Part{p})
				if err != nil {
					t.Fatal(err)
				}
				defer src.Close()
				sql := fmt.Sprintf("SELECT v::VARCHAR, typeof(v) FROM %s", src.SQL())
				got := texts(t, c, sql)
				if len(got) != len(want) {
					t.Fatalf("%s: %d rows, want %d", name, len(got), len(want))
				}
				for i := range want {
					if got[i][0] != want[i] || got[i][1] != typ.engine {
						t.Fatalf("%s: row %d is %q, want %q of %s", name, i, got[i], want[i], typ.engine)
					}
				}
			}
			check("whole", rec, Part{All: true}, want)
			check("cut", rec.NewSlice(13, 4001), Part{All: true}, want[13:4001])
			check("rows", rec, Part{Rows: odd}, oddWant)
			cut := rec.NewSlice(3, 5000)
			check("rows of a cut", cut, Part{Rows: []int32{0, 7, 4990}}, []string{want[3], want[10], want[4993]})
		})
	}
}

func typedRecord(t *testing.T, typ arrow.DataType, json, text []string, n int) (arrow.RecordBatch, []string) {
	t.Helper()
	var rows, want []string
	for i := range n {
		switch i % 4 {
		case 3:
			rows, want = append(rows, "null"), append(want, "∅")
		default:
			rows, want = append(rows, json[i%4]), append(want, text[i%4])
		}
	}
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: typ, Nullable: true}}, nil)
	return array.NewRecordBatch(schema, []arrow.Array{a}, int64(n)), want
}

func TestScanNullType(t *testing.T) {
	_, c := open(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.Null}}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{array.NewNull(3)}, 3)
	block, err := NewBlock(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer block.Release()
	src, err := NewSource(schema, []Part{{Block: block, All: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	got := texts(t, c, fmt.Sprintf("SELECT count(*)::VARCHAR, count(v)::VARCHAR FROM %s", src.SQL()))
	if got[0][0] != "3" || got[0][1] != "0" {
		t.Errorf("got %v", got)
	}
}

// TestScanProjection: columns are found whatever is selected, several batches run in
// parallel, and one source may stand in a statement twice.
func TestScanProjection(t *testing.T) {
	_, c := open(t)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.BinaryTypes.String},
		{Name: "c", Type: arrow.PrimitiveTypes.Float64},
	}, nil)
	var parts []Part
	for batch := range 4 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range 50_000 {
			b.Field(0).(*array.Int64Builder).Append(int64(batch*50_000 + i))
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("row number %d of the batch", i))
			b.Field(2).(*array.Float64Builder).Append(0.5)
		}
		block, err := NewBlock(b.NewRecordBatch())
		if err != nil {
			t.Fatal(err)
		}
		defer block.Release()
		parts = append(parts, Part{Block: block, All: true})
	}
	src, err := NewSource(schema, parts)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for sql, want := range map[string]string{
		"SELECT sum(c)::VARCHAR FROM %[1]s":                                               "100000.0",
		"SELECT sum(a)::VARCHAR FROM %[1]s":                                               "19999900000",
		"SELECT count(*)::VARCHAR FROM %[1]s":                                             "200000",
		"SELECT max(b) FROM %[1]s WHERE c > 0.1":                                          "row number 9999 of the batch",
		"SELECT count(*)::VARCHAR FROM %[1]s x JOIN %[1]s y ON x.a = y.a WHERE x.c=0.5":   "200000",
		"SELECT count(DISTINCT b)::VARCHAR FROM %[1]s WHERE a % 2 = 0 AND b LIKE '%%7%%'": "10000",
	} {
		sql = strings.ReplaceAll(sql, "a % 2", "a %% 2")
		got := texts(t, c, fmt.Sprintf(sql, src.SQL()))
		if !strings.Contains(sql, "DISTINCT") && got[0][0] != want {
			t.Errorf("%s = %s, want %s", sql, got[0][0], want)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	_, c := open(t)
	for sql, kind := range map[string]ErrorKind{
		"SELEC 1":                                  Syntax,
		"SELECT nope":                              Binder,
		"SELECT * FROM nope":                       Catalog,
		"SELECT nope(1)":                           Catalog,
		"SELECT 'abc'::INTEGER":                    InvalidText,
		"SELECT '99999999999'::INTEGER":            OutOfRange,
		"SELECT 99999999999::INTEGER":              OutOfRange,
		"SELECT 2147483647::INTEGER + 1::INTEGER":  OutOfRange,
		"SELECT 300::DECIMAL(3,1)":                 OutOfRange,
		"SELECT '2024-13-01'::DATE":                OutOfRange,
		"SELECT 'abc'::DATE":                       InvalidText,
		"SELECT error('division by zero')":         DivisionByZero,
		"SELECT error('x')":                        InvalidInput,
		"SELECT * FROM skippr_scan(4711::UBIGINT)": Binder,
		"SELECT * FROM read_parquet('/nope')":      IO,
	} {
		s, err := c.Query(context.Background(), sql)
		if err == nil {
			_, err = s.Next()
			s.Close()
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%s: %v, kind %v, want %d", sql, err, e, kind)
		}
	}
	for _, sql := range []string{"CREATE TABLE t(i INT)", "SET threads=1", "ATTACH 'x'", "COPY (SELECT 1) TO '/tmp/x'"} {
		if _, err := c.Query(context.Background(), sql); !errors.Is(err, ErrNotQuery) {
			t.Errorf("%s: %v, want ErrNotQuery", sql, err)
		}
	}
}

// A result that failed before it was read tells why in its second line.
func TestErrorOfAClosedResultIsItsCause(t *testing.T) {
	e := classify("Invalid Input Error: Attempting to execute an unsuccessful or closed pending query result\n" +
		"Error: Out of Memory Error: failed to allocate data of size 1 MiB")
	if !errors.Is(e, ErrOutOfMemory) || e.Message != "failed to allocate data of size 1 MiB" {
		t.Errorf("%+v", e)
	}
}

func TestInterruptLeavesConnectionUsable(t *testing.T) {
	_, c := open(t)
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		s, err := c.Query(ctx, "SELECT a.i FROM range(1000000) a(i), range(1000000) b(i) WHERE a.i + b.i >= 0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Next(); err != nil {
			t.Fatal(err)
		}
		cancel()
		for err == nil {
			_, err = s.Next()
		}
		s.Close()
		var e *Error
		if !errors.As(err, &e) || e.Kind != Interrupted {
			t.Fatalf("after cancel: %v", err)
		}
		if got := texts(t, c, "SELECT 'ok'"); got[0][0] != "ok" {
			t.Fatal(got)
		}
	}
}

// TestInterruptAtAnyMoment: a cancel is never forgotten, whenever it comes.
func TestInterruptAtAnyMoment(t *testing.T) {
	_, c := open(t)
	for i := range 100 {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Duration(i)*20*time.Microsecond, cancel)
		s, err := c.Query(ctx, "SELECT count(*) FROM range(10000000) a(i), range(10000000) b(i) WHERE a.i + b.i >= 0")
		if err == nil {
			_, err = s.Next()
			s.Close()
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != Interrupted {
			t.Fatalf("cancel %d: %v", i, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	_, c := open(t)
	cols, params, err := c.Describe(
		"SELECT CAST($1 AS BIGINT) a, 1.5::DECIMAL(10,2) b, [1::INTEGER] c, {'x': 'y'} d, NULL e WHERE CAST($2 AS DATE) > DATE '2000-01-01'")
	if err != nil {
		t.Fatal(err)
	}
	if len(cols) != 5 || cols[0].Type.Kind != vector.Int64 || cols[1].Type.Width != 10 || cols[1].Type.Scale != 2 ||
		cols[2].Type.Elem[0].Kind != vector.Int32 || cols[3].Type.Names[0] != "x" || cols[0].Name != "a" {
		t.Errorf("columns %+v", cols)
	}
	if len(params) != 2 || params[0].Kind != vector.Int64 || params[1].Kind != vector.Date {
		t.Errorf("params %+v", params)
	}
}

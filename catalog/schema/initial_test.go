package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/skipprd/skipprd/catalog/schema"
)

// Each initial value is what its text says, and gives the same text back.
func TestInitialColumn(t *testing.T) {
	list := func(k schema.Kind) schema.Type { return schema.Type{Kind: schema.List, Elem: &schema.Type{Kind: k}} }
	for _, tc := range []struct {
		typ          schema.Type
		text, value  string // as Arrow shows it
		engine, none string // none: a text that is no value of the type
	}{
		{schema.Type{Kind: schema.Bool}, "true", "true", "CAST('true' AS BOOLEAN)", "maybe"},
		{schema.Type{Kind: schema.Int32}, "-2147483648", "-2147483648", "CAST('-2147483648' AS INTEGER)", "2147483648"},
		{schema.Type{Kind: schema.Int64}, "9223372036854775807", "9223372036854775807", "CAST('9223372036854775807' AS BIGINT)", "1.5"},
		{schema.Type{Kind: schema.Float32}, "0.1", "0.1", "CAST('0.1' AS REAL)", "x"},
		{schema.Type{Kind: schema.Float64}, "NaN", "NaN", "CAST('NaN' AS DOUBLE)", ""},
		{schema.Type{Kind: schema.Decimal, Precision: 5, Scale: 2}, "-123.40", "-123.4", "CAST('-123.40' AS DECIMAL(5,2))", "1234.00"},
		{schema.Type{Kind: schema.Decimal, Precision: 5, Scale: 2}, "0.00", "0", "CAST('0.00' AS DECIMAL(5,2))", "0.001"},
		{schema.Type{Kind: schema.Date}, "19000", "2022-01-08", "CAST(DATE '1970-01-01' + CAST(19000 AS INTEGER) AS DATE)", "today"},
		{schema.Type{Kind: schema.Time}, "1000001", "00:00:01.000001", "", "noon"},
		{schema.Type{Kind: schema.Timestamp}, "-1", "1969-12-31T23:59:59.999999", "CAST(make_timestamp(CAST(-1 AS BIGINT)) AS TIMESTAMP)", ""},
		{schema.Type{Kind: schema.String}, "it's", "it's", "CAST('it''s' AS VARCHAR)", strings.Repeat("x", schema.InitialBytesMax+1)},
		{schema.Type{Kind: schema.String}, "", "", "CAST('' AS VARCHAR)", strings.Repeat("x", schema.InitialBytesMax+1)},
		{schema.Type{Kind: schema.Binary}, "00ff", "AP8=", "CAST(from_hex('00ff') AS BLOB)", "0"},
		{
			schema.Type{Kind: schema.UUID},
			"00112233445566778899aabbccddeeff", "ABEiM0RVZneImaq7zN3u/w==",
			"CAST('00112233-4455-6677-8899-aabbccddeeff' AS UUID)", "0011",
		},
		{list(schema.Int32), `["1",null]`, "[1,null]", "CAST([CAST('1' AS INTEGER), NULL] AS INTEGER[])", "1"},
		{list(schema.String), `["a,\"b"]`, `["a,\"b"]`, `CAST([CAST('a,"b' AS VARCHAR)] AS VARCHAR[])`, `[1]`},
		{list(schema.String), `[]`, `[]`, `CAST([] AS VARCHAR[])`, `{}`},
	} {
		t.Run(schema.EngineType(tc.typ), func(t *testing.T) {
			f := schema.Field{Name: "c", Type: tc.typ, Initial: &tc.text}
			col, err := schema.InitialColumn(f, 2)
			if err != nil {
				t.Fatal(err)
			}
			if col.Len() != 2 || col.ValueStr(1) != tc.value {
				t.Errorf("column is %s, a value %s", col, col.ValueStr(1))
			}
			again, err := schema.FormatInitial(tc.typ, col, 1)
			if err != nil || again == nil || *again != tc.text {
				t.Errorf("text again: %v, %v", again, err)
			}
			if got := schema.EngineInitial(f); tc.engine != "" && got != tc.engine {
				t.Errorf("in the engine's words %s", got)
			}
			bad := []schema.NewField{{Name: "c", Type: tc.typ, Initial: &tc.none}}
			if _, err := schema.New(bad, nil); !errors.Is(err, schema.ErrInitial) || !errors.Is(err, schema.ErrInvalid) {
				t.Errorf("%.20q was taken: %v", tc.none, err)
			}
		})
	}
}

func TestNoInitial(t *testing.T) {
	f := schema.Field{Name: "c", Type: int8}
	col, err := schema.InitialColumn(f, 3)
	if err != nil || col.NullN() != 3 || schema.EngineInitial(f) != "NULL" {
		t.Errorf("%v, %v, %s", col, err, schema.EngineInitial(f))
	}
	if text, err := schema.FormatInitial(int8, col, 0); text != nil || err != nil {
		t.Errorf("text of a null: %v, %v", text, err)
	}
}

// The initial value stays with the field, whatever the source says of it later, and
// keeps its meaning when the type is widened.
func TestInitialStays(t *testing.T) {
	float4, float8 := schema.Type{Kind: schema.Float32}, schema.Type{Kind: schema.Float64}
	list := func(t schema.Type) schema.Type { return schema.Type{Kind: schema.List, Elem: &t} }
	for _, tc := range []struct {
		from, to   schema.Type
		text, want string
	}{
		{int4, int8, "5", "5"},
		{float4, float8, "0.1", "0.10000000149011612"},
		{float4, float4, "0.1", "0.1"},
		{list(float4), list(float8), `["0.1",null]`, `["0.10000000149011612",null]`},
	} {
		table := newTable(t, "id int4 1", "id")
		add := schema.NewField{Name: "c", Type: tc.from, AttNum: 2, Initial: &tc.text}
		table, err := schema.Evolve(table, append(cols(t, "id int4 1"), add), []string{"id"})
		if err != nil {
			t.Fatal(err)
		}
		other := "7"
		add.Name, add.Type, add.Initial = "renamed", tc.to, &other
		if tc.to.Kind == schema.List {
			add.Initial = nil
		}
		table, err = schema.Evolve(table, append(cols(t, "id int4 1"), add), []string{"id"})
		if err != nil {
			t.Fatal(err)
		}
		f, _ := table.FieldByName("renamed")
		if f.Initial == nil || *f.Initial != tc.want {
			t.Errorf("%s: initial value is %v, want %s", schema.EngineType(tc.to), f.Initial, tc.want)
		}
		col, err := schema.InitialColumn(f, 1)
		if err != nil || !arrow.TypeEqual(col.DataType(), schema.ArrowType(tc.to)) {
			t.Errorf("column %v, %v", col, err)
		}
	}
}

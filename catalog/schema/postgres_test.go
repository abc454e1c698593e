package schema_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/wal/change"
)

func TestFromPostgres(t *testing.T) {
	numeric := func(p, s int32) int32 { return (p<<16 | s&0x7ff) + 4 }
	cases := []struct {
		name   string
		oid    uint32
		typmod int32
		ndims  int
		want   string // in the engine's words
		text   bool
	}{
		{"bool", 16, -1, 0, "BOOLEAN", false},
		{"bytea", 17, -1, 0, "BLOB", false},
		{"char", 18, -1, 0, "VARCHAR", false},
		{"name", 19, -1, 0, "VARCHAR", false},
		{"int8", 20, -1, 0, "BIGINT", false},
		{"int2", 21, -1, 0, "INTEGER", false},
		{"int4", 23, -1, 0, "INTEGER", false},
		{"text", 25, -1, 0, "VARCHAR", false},
		{"oid", 26, -1, 0, "BIGINT", false},
		{"float4", 700, -1, 0, "REAL", false},
		{"float8", 701, -1, 0, "DOUBLE", false},
		{"bpchar", 1042, 14, 0, "VARCHAR", false},
		{"varchar", 1043, 24, 0, "VARCHAR", false},
		{"date", 1082, -1, 0, "DATE", false},
		{"time", 1083, -1, 0, "TIME", false},
		{"timestamp", 1114, 3, 0, "TIMESTAMP", false},
		{"timestamptz", 1184, -1, 0, "TIMESTAMP WITH TIME ZONE", false},
		{"uuid", 2950, -1, 0, "UUID", false},
		{"numeric(10,2)", 1700, numeric(10, 2), 0, "DECIMAL(10,2)", false},
		{"numeric(38,38)", 1700, numeric(38, 38), 0, "DECIMAL(38,38)", false},
		{"numeric(39,0)", 1700, numeric(39, 0), 0, "VARCHAR", true},
		{"numeric(5,-2)", 1700, numeric(5, -2), 0, "VARCHAR", true},
		{"numeric(2,5)", 1700, numeric(2, 5), 0, "VARCHAR", true},
		{"numeric", 1700, -1, 0, "VARCHAR", true},
		{"json", 114, -1, 0, "VARCHAR", true},
		{"jsonb", 3802, -1, 0, "VARCHAR", true},
		{"interval", 1186, -1, 0, "VARCHAR", true},
		{"timetz", 1266, -1, 0, "VARCHAR", true},
		{"inet", 869, -1, 0, "VARCHAR", true},
		{"money", 790, -1, 0, "VARCHAR", true},
		{"bit", 1560, 3, 0, "VARCHAR", true},
		{"xml", 142, -1, 0, "VARCHAR", true},
		{"int4range", 3904, -1, 0, "VARCHAR", true},
		{"enum of the user", 16500, -1, 0, "VARCHAR", true},
		{"int4[]", 1007, -1, 1, "INTEGER[]", false},
		{"int4[] of a query", 1007, -1, 0, "INTEGER[]", false},
		{"int4[][]", 1007, -1, 2, "VARCHAR", true},
		{"text[]", 1009, -1, 1, "VARCHAR[]", false},
		{"numeric(10,2)[]", 1231, numeric(10, 2), 1, "DECIMAL(10,2)[]", false},
		{"numeric[]", 1231, -1, 1, "VARCHAR", true},
		{"jsonb[]", 3807, -1, 1, "VARCHAR", true},
		{"uuid[]", 2951, -1, 1, "UUID[]", false},
		{"int2vector", 22, -1, 1, "VARCHAR", true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, exact := schema.FromPostgres(tc.oid, tc.typmod, tc.ndims)
			if name := schema.EngineType(got); name != tc.want || exact != tc.text || !got.Valid() {
				t.Errorf("got %s, exact text %v", name, exact)
			}
		})
	}
}

// What Postgres 15's format_type gives.
func TestPostgresTypeName(t *testing.T) {
	cases := []struct {
		oid    uint32
		typmod int32
		want   string
	}{
		{0, -1, "-"},
		{16, -1, "boolean"},
		{18, -1, `"char"`},
		{20, -1, "bigint"},
		{21, -1, "smallint"},
		{23, -1, "integer"},
		{25, -1, "text"},
		{700, -1, "real"},
		{701, -1, "double precision"},
		{1042, -1, "bpchar"},
		{1042, 5, "character(1)"},
		{1042, 14, "character(10)"},
		{1043, -1, "character varying"},
		{1043, 24, "character varying(20)"},
		{1015, 24, "character varying(20)[]"},
		{1083, -1, "time without time zone"},
		{1083, 0, "time(0) without time zone"},
		{1114, -1, "timestamp without time zone"},
		{1114, 3, "timestamp(3) without time zone"},
		{1115, 3, "timestamp(3) without time zone[]"},
		{1184, 6, "timestamp(6) with time zone"},
		{1266, 2, "time(2) with time zone"},
		{1186, -1, "interval"},
		{1186, 0x7fff0003, "interval(3)"},
		{1186, 6<<16 | 0xffff, "interval year to month"},
		{1186, 0x1000<<16 | 2, "interval second(2)"},
		{1186, 0x1c08<<16 | 0xffff, "interval day to second"},
		{1560, -1, `"bit"`},
		{1560, 3, "bit(3)"},
		{1562, -1, "bit varying"},
		{1562, 3, "bit varying(3)"},
		{1700, -1, "numeric"},
		{1700, 10<<16 | 2 + 4, "numeric(10,2)"},
		{1700, 5<<16 | 0x7fe + 4, "numeric(5,-2)"},
		{1231, 10<<16 | 2 + 4, "numeric(10,2)[]"},
		{1007, -1, "integer[]"},
		{1002, -1, `"char"[]`},
		{22, -1, "int2vector"},
		{2276, -1, `"any"`},
		{2951, -1, "uuid[]"},
		{3802, -1, "jsonb"},
		{99999, -1, "???"},
	}
	for _, tc := range cases {
		t.Run(tc.want, func(t *testing.T) {
			if got := schema.PostgresTypeName(tc.oid, tc.typmod); got != tc.want {
				t.Errorf("%d with %d: got %q", tc.oid, tc.typmod, got)
			}
		})
	}
}

// lines are the lines of a file of testdata, without comments.
func lines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if line[0] != '#' {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// Names and types as PostgreSQL 15 itself gave them.
func TestAgainstPostgres(t *testing.T) {
	for _, line := range lines(t, "format_type.txt") {
		var oid uint32
		var typmod int32
		if _, err := fmt.Sscan(line, &oid, &typmod); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d %d %s", oid, typmod, schema.PostgresTypeName(oid, typmod)); got != line {
			t.Errorf("got %q, want %q", got, line)
		}
	}
	want := map[string]bool{}
	for _, line := range lines(t, "pg_type.txt") {
		want[line] = true
	}
	for _, b := range schema.BuiltinTypes() {
		got := fmt.Sprintf("%d %s %d %d %c %c", b.OID, b.Name, b.Array, b.Size, b.Category, b.Kind)
		if !want[got] {
			t.Errorf("Postgres does not have %s", got)
		}
		delete(want, got)
	}
	for line := range want {
		t.Errorf("missing: %s", line)
	}
}

// No oid or name appears twice, and each type is found by both.
func TestBuiltinTypes(t *testing.T) {
	oids, names := map[uint32]string{}, map[string]bool{}
	for _, b := range schema.BuiltinTypes() {
		if other, ok := oids[b.OID]; ok || names[b.Name] || b.OID == 0 || b.OID >= schema.OIDFirstUser {
			t.Errorf("%s has oid %d, as has %q", b.Name, b.OID, other)
		}
		oids[b.OID], names[b.Name] = b.Name, true
		if got, ok := schema.LookupType(b.OID); !ok || got != b {
			t.Errorf("%s by oid: %+v", b.Name, got)
		}
		if got, ok := schema.TypeByName(b.Name); !ok || got != b {
			t.Errorf("%s by name: %+v", b.Name, got)
		}
		if b.Array != 0 && schema.ElementOID(b.Array) != b.OID || schema.ArrayOID(b.OID) != b.Array {
			t.Errorf("%s: array %d", b.Name, b.Array)
		}
	}
	for oid, size := range map[uint32]int16{16: 1, 20: 8, 25: -1, 1007: -1, 2950: 16, 1186: 16, 99999: -1, 2275: -2} {
		if got := schema.TypeSize(oid); got != size {
			t.Errorf("size of %d: %d", oid, got)
		}
	}
}

// Every lake type that a Postgres type becomes goes back to one that becomes it.
func TestToPostgres(t *testing.T) {
	for _, want := range allTypes() {
		oid, typmod := schema.ToPostgres(want)
		ndims := 0
		if want.Kind == schema.List {
			ndims = 1
		}
		got, _ := schema.FromPostgres(oid, typmod, ndims)
		if !got.Equal(want) {
			t.Errorf("%s became %d, %d, then %s", schema.EngineType(want), oid, typmod, schema.EngineType(got))
		}
	}
}

func TestArrow(t *testing.T) {
	var fields []schema.NewField
	for _, typ := range allTypes() {
		fields = append(fields, schema.NewField{Name: schema.EngineType(typ), Type: typ, NotNull: true})
	}
	table, err := schema.New(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := table.Arrow()
	if got.NumFields() != change.SystemColumns+len(fields) {
		t.Fatalf("%d fields", got.NumFields())
	}
	want := map[string]string{
		change.ColOp: "uint8", change.ColToken: "int64", change.ColOrdinal: "int32",
		"BOOLEAN": "bool", "INTEGER": "int32", "BIGINT": "int64", "REAL": "float32", "DOUBLE": "float64",
		"DATE": "date32", "TIME": "time64[us]", "TIMESTAMP": "timestamp[us]",
		"TIMESTAMP WITH TIME ZONE": "timestamp[us, tz=UTC]", "VARCHAR": "utf8", "BLOB": "binary",
		"UUID": "fixed_size_binary[16]", "DECIMAL(9,2)": "decimal(9, 2)",
		"INTEGER[]": "list<element: int32, nullable>",
	}
	for _, f := range got.Fields() {
		if w, ok := want[f.Name]; ok && f.Type.String() != w {
			t.Errorf("%s is %s, want %s", f.Name, f.Type, w)
		}
		delete(want, f.Name)
	}
	for name := range want {
		t.Errorf("no field %s", name)
	}
	for i, f := range got.Fields() {
		if f.Nullable != (i >= change.SystemColumns) {
			t.Errorf("%s: nullable %v", f.Name, f.Nullable)
		}
	}
	// It is what a Builder expects.
	b := change.NewBuilder(memory.DefaultAllocator, 1, 1, got)
	defer b.Release()
	b.Add(change.Insert, 1, 0)
	for i := range table.Fields {
		b.Column(i).AppendNull()
	}
	batch := b.Batch()
	defer batch.Release()
	if batch.Rows() != 1 || !batch.Record.Schema().Equal(got) {
		t.Errorf("batch %v", batch.Record)
	}
}

func TestKeyFields(t *testing.T) {
	s := newTable(t, "a int4 1, b text 2, c int4 3", "c a")
	keys := s.KeyFields()
	if len(keys) != 2 || keys[0].Name != "c" || keys[1].Name != "a" || !s.HasKey() {
		t.Errorf("key %v", keys)
	}
	if _, ok := s.Field(9); ok || s.Index(9) != -1 {
		t.Error("field 9 found")
	}
	if f, ok := s.FieldByName("b"); !ok || f.ID != 2 {
		t.Errorf("b: %v", f)
	}
	if newTable(t, "a int4 1", "").HasKey() {
		t.Error("a key without columns")
	}
	o := newTable(t, "a int4 1, b text 2, c int4 3", "c a")
	if !s.Equal(o) || s.Equal(newTable(t, "a int4 1, b text 2, c int4 3", "a c")) {
		t.Error("equal")
	}
}

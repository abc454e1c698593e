package pgsql_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/lake/duckdb"
	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/planner/pgfunc"
	"github.com/skipprd/skipprd/planner/pgsql"
	"github.com/skipprd/skipprd/sqltests/pgtest"
	"github.com/skipprd/skipprd/wal/env"
)

// encoderFactory adapts pgwire/encode as cmd does.
func encoderFactory(o duckdb.Output, types []vector.Type) (duckdb.RowEncoder, error) {
	spec := encode.Spec{Kind: encode.Kind(o.Kind), Copy: encode.CopyOptions(o.Copy), Format: encode.Format(o.Format)}
	for _, c := range o.Columns {
		spec.Columns = append(spec.Columns, encode.Column(c))
	}
	return encode.New(spec, types)
}

func openEngine(t testing.TB) *duckdb.Pool {
	t.Helper()
	clock, _ := env.System()
	pool, err := duckdb.NewPool(duckdb.PoolConfig{
		InProcess: true,
		Worker:    duckdb.WorkerConfig{Threads: 1, MemoryLimit: 512 << 20, Prelude: pgsql.Prelude(), Functions: pgfunc.Functions()},
	}, duckdb.Deps{Clock: clock, Log: slog.New(slog.DiscardHandler), Encoder: encoderFactory})
	if err != nil {
		t.Fatalf("open engine: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// testColumns is the table t on both sides: name, PostgreSQL type, oid, modifier,
// engine type.
var testColumns = []struct {
	name, pgType string
	typ          pgsql.Type
	engine       string
	arrow        arrow.DataType
}{
	{"id", "int4", pgsql.Type{OID: 23, Mod: -1}, "INTEGER", arrow.PrimitiveTypes.Int32},
	{"i2", "int2", pgsql.Type{OID: 21, Mod: -1}, "INTEGER", arrow.PrimitiveTypes.Int32},
	{"i8", "int8", pgsql.Type{OID: 20, Mod: -1}, "BIGINT", arrow.PrimitiveTypes.Int64},
	{
		"n", "numeric(12,2)",
		pgsql.Type{OID: 1700, Mod: 12<<16 + 2 + 4},
		"DECIMAL(12,2)",
		&arrow.Decimal128Type{Precision: 12, Scale: 2},
	},
	{"nn", "numeric", pgsql.Type{OID: 1700, Mod: -1}, "VARCHAR", arrow.BinaryTypes.String},
	{"f8", "float8", pgsql.Type{OID: 701, Mod: -1}, "DOUBLE", arrow.PrimitiveTypes.Float64},
	{"s", "text", pgsql.Type{OID: 25, Mod: -1}, "VARCHAR", arrow.BinaryTypes.String},
	{"v", "varchar(10)", pgsql.Type{OID: 1043, Mod: 14}, "VARCHAR", arrow.BinaryTypes.String},
	{"c", "char(5)", pgsql.Type{OID: 1042, Mod: 9}, "VARCHAR", arrow.BinaryTypes.String},
	{"b", "bool", pgsql.Type{OID: 16, Mod: -1}, "BOOLEAN", arrow.FixedWidthTypes.Boolean},
	{"d", "date", pgsql.Type{OID: 1082, Mod: -1}, "DATE", arrow.FixedWidthTypes.Date32},
	{"ts", "timestamp", pgsql.Type{OID: 1114, Mod: -1}, "TIMESTAMP", &arrow.TimestampType{Unit: arrow.Microsecond}},
	{
		"tz", "timestamptz",
		pgsql.Type{OID: 1184, Mod: -1},
		"TIMESTAMP WITH TIME ZONE",
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	},
	{"iv", "interval", pgsql.Type{OID: 1186, Mod: -1}, "VARCHAR", arrow.BinaryTypes.String},
	{"j", "jsonb", pgsql.Type{OID: 3802, Mod: -1}, "VARCHAR", arrow.BinaryTypes.String},
	{"a", "int4[]", pgsql.Type{OID: 1007, Mod: -1}, "INTEGER[]", arrow.ListOf(arrow.PrimitiveTypes.Int32)},
}

// testRows are the rows in PostgreSQL's text; arrays also as JSON.
var testRows = [][]string{
	{
		"1", "10", "100", "1.50", "1.5", "1.5", "apple", "red", "x    ", "t", "2024-01-31", "2024-01-31 10:00:00",
		"2024-01-31 10:00:00+00", "1 day", `{"k": 1, "o": {"x": "y"}}`, "{1,2,3}",
	},
	{
		"2", "20", "200", "2.25", "10.25", "2.5", "Banana", "green", "yy   ", "f", "2024-02-29", "2024-02-29 23:59:59.5",
		"2024-02-29 23:59:59.5+00", "02:00:00", `{"k": null, "l": [1, 2]}`, "{4}",
	},
	{
		"3", "-5", "-300", "-3.75", "-0.125", "-0.5", "cher%ry", "red", "zzzzz", "t", "2023-12-25", "2023-12-25 00:00:00",
		"2023-12-25 00:00:00+00", "1 mon", `[]`, "{}",
	},
	{"4", "", "", "", "", "", "", "", "", "", "", "", "", "", "", ""},
	{
		"5", "20", "200", "100.00", "1000000.5", "1e+20", "it's", "blue", "x    ", "f", "2024-02-29",
		"2024-03-01 12:30:15.123456", "2024-03-01 12:30:15.123456+00", "-1 days", `{"k": "v"}`, "{5,NULL,6}",
	},
}

func testArrow(t testing.TB) []byte {
	t.Helper()
	fields := make([]arrow.Field, len(testColumns))
	for i, c := range testColumns {
		fields[i] = arrow.Field{Name: c.name, Type: c.arrow, Nullable: true}
	}
	schema := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, row := range testRows {
		for i, v := range row {
			f := b.Field(i)
			switch {
			case v == "":
				f.AppendNull()
				continue
			case testColumns[i].name == "a":
				v = strings.NewReplacer("{", "[", "}", "]", "NULL", "null").Replace(v)
				if err := f.UnmarshalJSON([]byte("[" + v + "]")); err != nil {
					t.Fatal(err)
				}
				continue
			case testColumns[i].name == "ts" || testColumns[i].name == "tz":
				v = strings.TrimSuffix(strings.Replace(v, " ", "T", 1), "+00")
				if testColumns[i].name == "tz" {
					v += "Z"
				}
			case testColumns[i].name == "b":
				v = map[string]string{"t": "true", "f": "false"}[v]
			}
			if err := f.AppendValueFromString(v); err != nil {
				t.Fatalf("column %s: %v", testColumns[i].name, err)
			}
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// oneTable is a resolver that knows public.t.
type oneTable struct{}

func (oneTable) HasSchema(name string) bool { return name == "public" || name == "pg_catalog" }

func (oneTable) Relation(schema, name string) (*pgsql.Relation, bool) {
	if schema != "public" || name != "t" {
		return nil, false
	}
	r := &pgsql.Relation{Schema: "public", Name: "t", OID: 20001, Key: []int{0}}
	for i, c := range testColumns {
		r.Columns = append(r.Columns, pgsql.RelationColumn{Name: c.name, Type: c.typ, Engine: c.engine, AttNum: int16(i +
			1)})
	}
	return r, true
}

// testZone is the session's time zone on both sides.
var testZone = "UTC"

// testDatabase is what current_database() says; set by the test that compares.
var testDatabase = "postgres"

func testEnv() *pgsql.Env {
	return &pgsql.Env{
		Resolver: oneTable{}, SearchPath: []string{"pg_catalog", "public"}, User: "postgres", SessionUser: "postgres",
		Database: testDatabase, Version: "15.8", PID: 42,
		Setting: func(name string) (string, bool) { return testZone, strings.EqualFold(name, "TimeZone") },
	}
}

// answer is a result in text: a line per row, values by |.
type answer struct {
	rows, types, names string
	err                *pgerr.Error
	engineErr          error
	sql                string
}

func runOurs(t testing.TB, pool *duckdb.Pool, inline []byte, sql string) answer {
	t.Helper()
	var a answer
	p, err := pgsql.Parse(sql)
	var an *pgsql.Analysis
	if err == nil {
		an, err = pgsql.Analyze(p, nil, testEnv())
	}
	if err != nil {
		e, ok := pgerr.As(err)
		if !ok {
			t.Fatalf("%s: not a statement error: %v", sql, err)
		}
		a.err = e
		return a
	}
	plan := &duckdb.Plan{
		SQL:      acted(an),
		Settings: map[string]string{"TimeZone": testZone},
		Output:   duckdb.Output{Kind: duckdb.OutputRows, Format: duckdb.Format(encode.DefaultFormat())},
	}
	plan.Output.Format.TimeZone = testZone
	a.sql = plan.SQL
	var types, names []string
	for _, c := range an.Columns {
		plan.Output.Columns = append(plan.Output.Columns, duckdb.OutputColumn{
			Name: c.Name, TypeOID: c.Type.OID,
			TypMod: c.Type.Mod,
		})
		types = append(types, typeText(c.Type.OID, c.Type.Mod))
		names = append(names, c.Name)
	}
	a.types, a.names = strings.Join(types, ","), strings.Join(names, ",")
	for _, u := range an.Uses {
		rel := duckdb.Relation{Name: u.Name, Inline: inline}
		for i, c := range u.Relation.Columns {
			name := c.Name
			for _, uc := range u.Columns {
				if uc.Index == i {
					name = uc.Name
				}
			}
			rel.Columns = append(rel.Columns, duckdb.Column{Name: name, EngineType: c.Engine})
		}
		plan.Relations = append(plan.Relations, rel)
	}
	ctx := context.Background()
	s, err := pool.Query(ctx, plan)
	if err != nil {
		a.engineErr = err
		return a
	}
	defer s.Close()
	var rows []string
	for {
		f, err := s.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			a.engineErr = err
			return a
		}
		for d := f.Data; len(d) > 0; {
			n := int(binary.BigEndian.Uint32(d[1:])) + 1
			rows = append(rows, rowText(d[7:n]))
			d = d[n:]
		}
	}
	a.rows = strings.Join(rows, "\n")
	return a
}

// typeText is a column's type as RowDescription has it: the oid and the modifier.
func typeText(oid uint32, mod int32) string {
	if mod < 0 {
		return fmt.Sprint(oid)
	}
	return fmt.Sprintf("%d(%d)", oid, mod)
}

func rowText(d []byte) string {
	var out []string
	for len(d) > 0 {
		n := int32(binary.BigEndian.Uint32(d))
		d = d[4:]
		if n < 0 {
			out = append(out, "∅")
			continue
		}
		out = append(out, string(d[:n]))
		d = d[n:]
	}
	return strings.Join(out, "|")
}

func runPostgres(t testing.TB, conn *pgx.Conn, sql string) answer {
	t.Helper()
	var a answer
	ctx := context.Background()
	mr := conn.PgConn().Exec(ctx, sql)
	var rows, types, names []string
	for mr.NextResult() {
		rr := mr.ResultReader()
		for _, f := range rr.FieldDescriptions() {
			types = append(types, typeText(f.DataTypeOID, f.TypeModifier))
			names = append(names, f.Name)
		}
		for rr.NextRow() {
			var vals []string
			for _, v := range rr.Values() {
				if v == nil {
					vals = append(vals, "∅")
					continue
				}
				vals = append(vals, string(v))
			}
			rows = append(rows, strings.Join(vals, "|"))
		}
	}
	if err := mr.Close(); err != nil {
		a.engineErr = err
		return a
	}
	a.rows, a.types, a.names = strings.Join(rows, "\n"), strings.Join(types, ","), strings.Join(names, ",")
	return a
}

// TestAgainstPostgres runs every query of testdata/diff.sql and testdata/semantics.sql, or of
// the file that PGSQL_FILE names, here and in a real PostgreSQL: rows, types (oids and modifiers) and column names must be equal, and what fails there
// must fail here with the same SQLSTATE. A query after "--known: reason" is a known
// difference; it must still differ, so that the list only shrinks.
func TestAgainstPostgres(t *testing.T) {
	server := pgtest.Start(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.CreateDatabase(t, "TEMPLATE template0", "LC_CTYPE 'C.UTF-8'"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	loadPostgres(t, conn)
	testDatabase = conn.Config().Database
	pool := openEngine(t)
	inline := testArrow(t)

	lines := readLines(t, "testdata/diff.sql", "testdata/semantics.sql")
	if own := os.Getenv("PGSQL_FILE"); own != "" {
		lines = readLines(t, own)
	}
	known, n := "", 0
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "--known:"); ok {
			known = strings.TrimSpace(rest)
			continue
		}
		if line == "" || strings.HasPrefix(line, "--") {
			continue
		}
		n++
		diff := compareAnswers(runPostgres(t, conn, line), runOurs(t, pool, inline, line))
		switch {
		case diff != "" && known == "":
			t.Errorf("%s\n%s", line, diff)
		case diff == "" && known != "":
			t.Errorf("%s\nno longer differs (%s): take it off the list", line, known)
		}
		known = ""
	}
	t.Logf("%d queries", n)
}

func readLines(t testing.TB, names ...string) (out []string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func loadPostgres(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	ctx := context.Background()
	var defs []string
	for _, c := range testColumns {
		def := c.name + " " + c.pgType
		if c.name == "id" {
			def += " PRIMARY KEY"
		}
		defs = append(defs, def)
	}
	stmts := []string{"SET TimeZone = 'UTC'", "SET lc_messages = 'C'", "CREATE TABLE t (" + strings.Join(defs, ", ") +
		")"}
	for _, row := range testRows {
		var vals []string
		for _, v := range row {
			if v == "" {
				vals = append(vals, "NULL")
				continue
			}
			vals = append(vals, "'"+strings.ReplaceAll(v, "'", "''")+"'")
		}
		stmts = append(stmts, "INSERT INTO t VALUES ("+strings.Join(vals, ", ")+")")
	}
	stmts = append(stmts, "SET TimeZone = '"+testZone+"'")
	for _, s := range stmts {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func compareAnswers(pgAnswer, ours answer) string {
	switch {
	case pgAnswer.engineErr != nil:
		var want string
		if e := pgx.ErrNoRows; pgAnswer.engineErr != e {
			want = pgAnswer.engineErr.Error()
		}
		if ours.err == nil && ours.engineErr == nil {
			return fmt.Sprintf("  postgres: %s\n  ours: no error: %q\n  sql: %s", want, ours.rows, ours.sql)
		}
		if ours.err != nil && !strings.Contains(want, string(ours.err.Code)) && ours.err.Code != "0A000" {
			return fmt.Sprintf("  postgres: %s\n  ours: %v", want, ours.err)
		}
		return ""
	case ours.err != nil:
		return fmt.Sprintf("  ours: %v\n  postgres: %q", ours.err, pgAnswer.rows)
	case ours.engineErr != nil:
		return fmt.Sprintf("  engine: %v\n  sql: %s\n  postgres: %q", ours.engineErr, ours.sql, pgAnswer.rows)
	}
	var out []string
	for _, p := range []struct{ what, a, b string }{
		{"rows", pgAnswer.rows, ours.rows}, {"types", pgAnswer.types, ours.types}, {"names", pgAnswer.names, ours.names},
	} {
		if p.a != p.b {
			out = append(out, fmt.Sprintf("  %s: postgres %q\n        ours %q", p.what, p.a, p.b))
		}
	}
	if len(out) > 0 {
		out = append(out, "  sql: "+ours.sql)
	}
	return strings.Join(out, "\n")
}

// acted is the SQL of an analysis at the tests' time, with the results of set_config.
func acted(an *pgsql.Analysis) string {
	sql := strings.ReplaceAll(an.SQL, pgsql.NowMark, "'2024-06-01 12:00:00+00'")
	for _, e := range an.Effects {
		if e.Kind == pgsql.EffectSetConfig {
			sql = strings.ReplaceAll(sql, e.Mark, quote.Text(e.Value))
		}
	}
	return sql
}

package values

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/catalog/schema"
	"github.com/skipprd/skipprd/pgwire/quote"
	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// result is a query's result in text, with what the client is told of its columns.
type result struct {
	names []string
	types [][2]int64 // oid and typmod
	rows  [][][]byte
}

// ask runs a query, whose values come as text.
func ask(ctx context.Context, conn *pgx.Conn, sql string) (*result, error) {
	return askAs(ctx, conn, sql, 0)
}

// askAs is ask for values in text (0) or in binary (1).
func askAs(ctx context.Context, conn *pgx.Conn, sql string, format int16) (*result, error) {
	rr := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, []int16{format})
	out := &result{}
	for _, f := range rr.FieldDescriptions() {
		out.names = append(out.names, f.Name)
		out.types = append(out.types, [2]int64{int64(f.DataTypeOID), int64(f.TypeModifier)})
	}
	for rr.NextRow() {
		row := make([][]byte, len(rr.Values()))
		for i, v := range rr.Values() {
			row[i] = bytes.Clone(v)
			if v != nil && row[i] == nil {
				row[i] = []byte{}
			}
		}
		out.rows = append(out.rows, row)
	}
	if _, err := rr.Close(); err != nil {
		return nil, fmt.Errorf("%.200s: %w", sql, err)
	}
	return out, nil
}

// connect opens a session with the settings under which texts are compared.
func connect(t testing.TB, dsn string) *pgx.Conn {
	conn := harness.Connect(t, dsn)
	for _, set := range []string{"SET TimeZone = 'UTC'", "SET DateStyle = 'ISO, MDY'", "SET extra_float_digits = 1"} {
		if _, err := conn.PgConn().Exec(t.Context(), set).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func show(v []byte) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%.80q", v)
}

// ownOID is below the numbers that types of a source's own have here.
const ownOID = 1 << 30

// textOnly says of a type that ours has no binary form of it: names of objects, whose numbers
// are not sent, and tsquery.
func textOnly(t typ) bool {
	return strings.HasPrefix(t.sql, "reg") || strings.HasPrefix(t.sql, "tsquery")
}

// checkBinary compares the values in binary: what PostgreSQL sends, ours sends too.
func (m *matrix) checkBinary(t *testing.T, a, b *pgx.Conn) {
	for i, ty := range m.types {
		if ty.own {
			continue // under other numbers
		}
		want, err := askAs(t.Context(), a, fmt.Sprintf("SELECT v FROM t%d ORDER BY id", i), 1)
		if err != nil {
			continue // the type has no binary form
		}
		got, err := askAs(t.Context(), b, fmt.Sprintf("SELECT v FROM m.t%d ORDER BY id", i), 1)
		var refused *pgconn.PgError
		if textOnly(ty) && errors.As(err, &refused) && refused.Code == "0A000" && refused.Hint != "" {
			continue
		}
		if err != nil {
			t.Errorf("%s in binary: %v", ty.name, err)
			continue
		}
		for k, row := range want.rows {
			if !bytes.Equal(row[0], got.rows[k][0]) {
				t.Errorf("%s in binary: %x, want %x", ty.name, got.rows[k][0], row[0])
				break
			}
		}
	}
}

// checkCast compares the values cast to text, and counted. XML casts to more than it shows,
// which is not kept; the text of some arrays is not there.
func (m *matrix) checkCast(t *testing.T, a, b *pgx.Conn) {
	for i, ty := range m.types {
		for _, q := range []string{"SELECT v::text FROM %s ORDER BY id", "SELECT count(v) FROM %s"} {
			if strings.HasPrefix(ty.sql, "xml") || strings.Contains(ty.sql, "[]") && m.text[i] { // text is text
				continue
			}
			want, err := ask(t.Context(), a, fmt.Sprintf(q, fmt.Sprintf("t%d", i)))
			if err != nil {
				continue // the source has no such thing either
			}
			got, err := ask(t.Context(), b, fmt.Sprintf(q, fmt.Sprintf("m.t%d", i)))
			var refused *pgconn.PgError
			if m.kept[i].Kind == schema.List && errors.As(err, &refused) && refused.Code == "0A000" {
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", ty.name, q, err)
				continue
			}
			for k, row := range want.rows {
				if strings.HasPrefix(string(row[0]), "294246-") && ty.sql == "timestamptz" {
					continue // the engine's calendar ends a little earlier
				}
				if !bytes.Equal(row[0], got.rows[k][0]) {
					t.Errorf("%s, %s: %s, want %s", ty.name, q, show(got.rows[k][0]), show(row[0]))
					break
				}
			}
		}
	}
}

// steps are how a row's value came: rows with ids of a thousand each.
var steps = []string{"backfill", "insert", "update", "unchanged"}

// matrix is what became of the values of each type.
type matrix struct {
	types []typ
	exact [][stepCount]bool
	kept  []schema.Type
	text  []bool // kept as exact text
	told  [][2]int64
}

const stepCount = 4

// TestMatrix has every type at its extremes through backfill and stream, and compares what
// a client gets from us with what it gets from the source: text, oid and typmod; before
// and after a compaction. What it found is the table in docs/postgres-source.md, which
// -rewrite writes.
func TestMatrix(t *testing.T) {
	m := &matrix{types: everyType()}
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, prelude...)
	tables, backfill, stream := m.statements()
	harness.Exec(t, source, strings.Join(tables, "; "), strings.Join(backfill, "; "))
	s := harness.New(t, t.TempDir(), "--commit-interval", "1h")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE m FROM POSTGRES "+quote.Text(source)+" FOR ALL TABLES", "SYNC PIPELINE m UNTIL CAUGHT UP")
	harness.Exec(t, source, strings.Join(stream, "; "))
	harness.Exec(t, s.DSN, "SYNC PIPELINE m UNTIL CAUGHT UP")
	a, b := connect(t, source), connect(t, s.DSN)
	m.check(t, a, b)
	live := agrees(t, s, "m")
	harness.Exec(t, s.DSN, "ALTER PIPELINE m COMPACT")
	m.check(t, a, b)
	if lake := agrees(t, s, "m"); live != len(m.types) || lake != len(m.types) {
		t.Errorf("VERIFY compared %d and %d of %d tables", live, lake, len(m.types))
	}
	m.checkBinary(t, a, b)
	m.checkCast(t, a, b)
	if !t.Failed() {
		checkDocument(t, "values", m.document())
	}
}

func (m *matrix) statements() (tables, backfill, stream []string) {
	for i, ty := range m.types {
		tables = append(tables, fmt.Sprintf("CREATE TABLE t%d (id int PRIMARY KEY, n int, v %s)", i, ty.sql))
		if slices.Contains(toastable, ty.sql) {
			tables = append(tables, fmt.Sprintf("ALTER TABLE t%d ALTER v SET STORAGE EXTERNAL", i))
		}
		for k, v := range append(slices.Clone(ty.values), "NULL") {
			if ty.sql == "amount" && v == "NULL" {
				continue
			}
			backfill = append(backfill, fmt.Sprintf("INSERT INTO t%d VALUES (%d, 0, %s), (%d, 0, %s), (%d, 0, %s)",
				i, k, v, 2000+k, ty.values[0], 3000+k, v))
			stream = append(stream, fmt.Sprintf("INSERT INTO t%d VALUES (%d, 1, %s)", i, 1000+k, v),
				fmt.Sprintf("UPDATE t%d SET v = %s WHERE id = %d", i, v, 2000+k), fmt.Sprintf("UPDATE t%d SET n = 3 WHERE id = %d", i, 3000+k))
		}
	}
	return tables, backfill, stream
}

// toastable are types whose large values are kept out of line, uncompressed if told so.
var toastable = []string{"text", "varchar", "citext", "bytea", "json", "jsonb"}

func (m *matrix) check(t *testing.T, a, b *pgx.Conn) {
	m.exact, m.kept, m.text, m.told = nil, nil, nil, nil
	for i, ty := range m.types {
		exact, told := checkType(t, a, b, i, ty)
		dims := strings.Count(ty.sql, "[]")
		kept, text := schema.FromPostgres(uint32(told[0]), int32(told[1]), dims)
		if ty.own || ty.sql == "intlist[][]" {
			text = true
		}
		m.exact, m.told = append(m.exact, exact), append(m.told, told)
		m.kept, m.text = append(m.kept, kept), append(m.text, text)
	}
}

// checkType compares the table of a type; it says for each step whether all is equal, and
// what a client is told of the type.
func checkType(t *testing.T, a, b *pgx.Conn, i int, ty typ) (exact [stepCount]bool, told [2]int64) {
	want, err := ask(t.Context(), a, fmt.Sprintf("SELECT id, n, v FROM t%d ORDER BY id", i))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask(t.Context(), b, fmt.Sprintf("SELECT id, n, v FROM m.t%d ORDER BY id", i))
	if err != nil {
		t.Errorf("%s: %v", ty.name, err)
		return exact, told
	}
	if ty.own && got.types[2][0] >= ownOID { // under a number of ours
		want.types[2][0] = got.types[2][0]
	}
	if got.types[2] != want.types[2] {
		t.Errorf("%s: announced as %v, at the source %v", ty.name, got.types[2], want.types[2])
	}
	if len(got.rows) != len(want.rows) {
		t.Errorf("%s: %d rows, want %d", ty.name, len(got.rows), len(want.rows))
		return exact, got.types[2]
	}
	exact = [stepCount]bool{true, true, true, true}
	for k, row := range want.rows {
		for c := range row {
			if have := got.rows[k][c]; !bytes.Equal(row[c], have) || (row[c] == nil) != (have == nil) {
				id, _ := strconv.Atoi(string(row[0]))
				exact[id/1000] = false
				t.Errorf("%s, %s: %s, want %s", ty.name, steps[id/1000], show(have), show(row[c]))
			}
		}
	}
	return exact, got.types[2]
}

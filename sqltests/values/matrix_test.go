package values

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

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
	rr := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil)
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

func quoted(dsn string) string { return "'" + strings.ReplaceAll(dsn, "'", "''") + "'" }

func show(v []byte) string {
	if v == nil {
		return "NULL"
	}
	return fmt.Sprintf("%.80q", v)
}

// steps are the columns of the matrix: the rows with an id of 1000·i and more came so.
var steps = []string{"backfill", "insert", "update", "unchanged"}

// largeFollow says that an update may leave a large value unchanged under the default
// replica identity.
const largeFollow = false

// TestMatrix has every type at its extremes through backfill and stream, and compares what
// a client gets from us with what it gets from the source: text, oid and typmod.
func TestMatrix(t *testing.T) {
	types := everyType()
	source := pgtest.Start(t).CreateDatabase(t)
	harness.Exec(t, source, prelude...)
	var tables, backfill, stream []string
	for i, ty := range types {
		tables = append(tables, fmt.Sprintf("CREATE TABLE t%d (id int PRIMARY KEY, n int, v %s)", i, ty.sql))
		for _, wide := range []string{"text", "varchar", "citext", "bytea", "json", "jsonb"} {
			if ty.sql == wide {
				tables = append(tables, fmt.Sprintf("ALTER TABLE t%d ALTER v SET STORAGE EXTERNAL", i))
			}
		}
		for k, v := range append(slices.Clone(ty.values), "NULL") {
			if ty.sql == "amount" && v == "NULL" {
				continue
			}
			first := ty.values[0]
			kept := v
			if strings.Contains(v, big) && !largeFollow {
				kept = "NULL"
			}
			backfill = append(backfill, fmt.Sprintf("INSERT INTO t%d VALUES (%d, 0, %s), (%d, 0, %s), (%d, 0, %s)", i, k, v, 2000+k, first, 3000+k, kept))
			stream = append(stream, fmt.Sprintf("INSERT INTO t%d VALUES (%d, 1, %s)", i, 1000+k, v),
				fmt.Sprintf("UPDATE t%d SET v = %s WHERE id = %d", i, v, 2000+k), fmt.Sprintf("UPDATE t%d SET n = 3 WHERE id = %d", i, 3000+k))
		}
	}
	harness.Exec(t, source, strings.Join(tables, "; "), strings.Join(backfill, "; "))
	s := harness.New(t, t.TempDir(), "--commit-interval", "1s")
	s.Start()
	harness.Exec(t, s.DSN, "CREATE PIPELINE m FROM POSTGRES "+quoted(source)+" FOR ALL TABLES", "SYNC PIPELINE m UNTIL CAUGHT UP")
	harness.Exec(t, source, strings.Join(stream, "; "))
	harness.Exec(t, s.DSN, "SYNC PIPELINE m UNTIL CAUGHT UP")
	a, b := connect(t, source), connect(t, s.DSN)
	for i, ty := range types {
		checkType(t, a, b, i, ty)
	}
}

func checkType(t *testing.T, a, b *pgx.Conn, i int, ty typ) {
	want, err := ask(t.Context(), a, fmt.Sprintf("SELECT id, n, v FROM t%d ORDER BY id", i))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask(t.Context(), b, fmt.Sprintf("SELECT id, n, v FROM m.t%d ORDER BY id", i))
	if err != nil {
		t.Errorf("%s: %v", ty.name, err)
		return
	}
	if ty.own {
		want.types[2] = [2]int64{25, -1}
	}
	if got.types[2] != want.types[2] {
		t.Errorf("%s: announced as %v, at the source %v", ty.name, got.types[2], want.types[2])
	}
	if len(got.rows) != len(want.rows) {
		t.Errorf("%s: %d rows, want %d", ty.name, len(got.rows), len(want.rows))
		return
	}
	for k, row := range want.rows {
		for c := range row {
			if have := got.rows[k][c]; !bytes.Equal(row[c], have) || (row[c] == nil) != (have == nil) {
				t.Errorf("%s, row %s, %s: %s, want %s", ty.name, row[0], got.names[c], show(have), show(row[c]))
			}
		}
	}
}

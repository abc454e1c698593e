package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Compare streams both queries, which must order their rows, and reports the first
// differing row and how many rows were equal.
func Compare(ctx context.Context, dsnA, sqlA, dsnB, sqlB string) (rows int, err error) {
	a, err := open(ctx, dsnA, sqlA)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", sqlA, err)
	}
	defer a.close()
	b, err := open(ctx, dsnB, sqlB)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", sqlB, err)
	}
	defer b.close()
	for {
		okA, okB := a.rr.NextRow(), b.rr.NextRow()
		if !okA || !okB {
			if err := a.err(); err != nil {
				return rows, fmt.Errorf("%s: %w", sqlA, err)
			}
			if err := b.err(); err != nil {
				return rows, fmt.Errorf("%s: %w", sqlB, err)
			}
			if okA != okB {
				return rows, fmt.Errorf("after %d equal rows: %s | %s", rows, show(a, okA), show(b, okB))
			}
			return rows, nil
		}
		va, vb := a.rr.Values(), b.rr.Values()
		if len(va) != len(vb) {
			return rows, fmt.Errorf("%d columns and %d columns", len(va), len(vb))
		}
		for i := range va {
			if (va[i] == nil) != (vb[i] == nil) || !bytes.Equal(va[i], vb[i]) {
				return rows, fmt.Errorf("row %d differs: %s | %s", rows+1, show(a, true), show(b, true))
			}
		}
		rows++
	}
}

type stream struct {
	conn *pgx.Conn
	rr   *pgconn.ResultReader
	fail error
}

func open(ctx context.Context, dsn, sql string) (*stream, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	for _, set := range []string{"SET TimeZone = 'UTC'", "SET DateStyle = 'ISO, MDY'", "SET extra_float_digits = 1"} {
		if _, err := conn.PgConn().Exec(ctx, set).ReadAll(); err != nil {
			_ = conn.Close(ctx)
			return nil, err
		}
	}
	return &stream{conn: conn, rr: conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil)}, nil
}

// err closes the reader and returns what ended it.
func (s *stream) err() error {
	if s.fail == nil {
		_, s.fail = s.rr.Close()
	}
	return s.fail
}

func (s *stream) close() { _ = s.conn.Close(context.Background()) }

func show(s *stream, ok bool) string {
	if !ok {
		return "(end)"
	}
	var parts []string
	for _, v := range s.rr.Values() {
		if v == nil {
			parts = append(parts, "NULL")
			continue
		}
		parts = append(parts, fmt.Sprintf("%.60s", v))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// CompareTables compares tables row by row. Each entry is a table's name and its
// ORDER BY list; source names are in public, ours in schema.
func CompareTables(t testing.TB, sourceDSN, ourDSN, schema string, tables map[string]string) {
	t.Helper()
	for name, order := range tables {
		rows, err := compareTable(sourceDSN, ourDSN, schema, name, order)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Logf("%s: %d rows equal", name, rows)
	}
}

// EqualTables is CompareTables for a caller that expects a difference: it returns the
// number of equal rows and every difference.
func EqualTables(sourceDSN, ourDSN, schema string, tables map[string]string) (rows int, err error) {
	var errs []error
	for name, order := range tables {
		n, err := compareTable(sourceDSN, ourDSN, schema, name, order)
		rows += n
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return rows, errors.Join(errs...)
}

func compareTable(sourceDSN, ourDSN, schema, name, order string) (rows int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for {
		rows, err = Compare(ctx,
			sourceDSN, fmt.Sprintf("SELECT * FROM public.%s ORDER BY %s", name, order),
			ourDSN, fmt.Sprintf("SELECT * FROM %s.%s ORDER BY %s", schema, name, order))
		if !TooOld(err) {
			return rows, err
		}
	}
}

// TooOld says whether a query here may be repeated because what it read was reclaimed under
// it several times, as on a machine that is slow for the query alone.
func TooOld(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "40001"
}

package encode_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// postgres connects to a real PostgreSQL, or skips the test.
func postgres(t testing.TB) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(context.Background(), pgtest.Start(t).DSN)
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// ask runs a query with one parameter, or none, and returns the first value.
func ask(t testing.TB, c *pgconn.PgConn, sql string, param []byte, paramFormat, resultFormat int16) []byte {
	t.Helper()
	var values [][]byte
	var formats []int16
	if param != nil {
		values, formats = [][]byte{param}, []int16{paramFormat}
	}
	r := c.ExecParams(context.Background(), sql, values, nil, formats, []int16{resultFormat}).Read()
	if r.Err != nil {
		t.Fatalf("%s: %v", sql, r.Err)
	}
	return r.Rows[0][0]
}

func set(t testing.TB, c *pgconn.PgConn, name, value string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), fmt.Sprintf("SET %s TO '%s'", name, value)).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

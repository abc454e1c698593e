package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// A database of a test's own is empty, writable and logical.
func TestCreateDatabase(t *testing.T) {
	s := pgtest.Start(t)
	dsn := s.CreateDatabase(t)
	s.Exec(t, dsn, "CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)")
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var n int
	var level string
	if err := conn.QueryRow(context.Background(),
		"SELECT (SELECT count(*) FROM a), current_setting('wal_level')").Scan(&n, &level); err != nil {
		t.Fatal(err)
	}
	if n != 2 || level != "logical" {
		t.Fatalf("got %d rows, wal_level %s", n, level)
	}
}

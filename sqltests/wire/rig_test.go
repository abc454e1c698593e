// Package wire sends a script of corners of the frontend/backend protocol to skipprd and
// to a PostgreSQL 15, and compares what comes back, byte for byte but for what differs
// between any two servers: process ids, keys, OIDs of tables, versions, and where in a
// server's source code an error arose. What skipprd does otherwise is in testdata/gaps,
// exactly.
package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// database is the name of skipprd's database, and of PostgreSQL's here.
const database = "lake"

// limit is how long a connection may take on a machine that does much else.
const limit = 4 * time.Minute

// schema is made on both servers.
var schema = []string{
	"CREATE SCHEMA shop",
	`CREATE TABLE shop.customers (id bigint PRIMARY KEY, name varchar(20) NOT NULL, paid boolean, d date, f4 real, f8 float8, i2 smallint,
		b bytea, ts timestamp(3), tz timestamptz, n numeric(12,2))`,
	"CREATE TABLE shop.orders (id int, line int, customer bigint NOT NULL, PRIMARY KEY (id, line))",
	"CREATE TABLE public.loads (id bigint PRIMARY KEY, v text, n numeric(10,2))",
	`INSERT INTO shop.customers VALUES
		(1, 'ada', true, '2024-02-29', 1.5, 1e300, -7, '\x00ff', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789+02', 1234567890.12),
		(2, 'Zoë', false, '0001-01-01', '-Infinity', 'NaN', 32767, '', '1970-01-01', '1900-01-01 00:00:00+00', -0.01),
		(3, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
	"INSERT INTO shop.orders VALUES (1, 1, 1), (1, 2, 1), (2, 1, 3)",
}

// target is a server to speak with.
type target struct {
	name string
	port int
}

func (s target) dsn() string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=%s sslmode=disable", s.port, database)
}

// servers starts skipprd and a PostgreSQL with the same tables.
func servers(t *testing.T) (ours, theirs target) {
	t.Helper()
	pg := pgtest.StartVersion(t, 15, "timezone = 'UTC'", "log_timezone = 'UTC'", "lc_messages = 'C'", "deadlock_timeout = '1h'")
	pg.Exec(t, pg.DSN, "CREATE DATABASE "+database)
	theirs = target{name: "postgresql", port: pg.Port}
	s := harness.New(t, t.TempDir())
	s.Start()
	ours = target{name: "skipprd", port: s.Port}
	for _, one := range []target{ours, theirs} {
		harness.Exec(t, one.dsn(), schema...)
	}
	return ours, theirs
}

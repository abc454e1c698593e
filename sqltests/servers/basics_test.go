package servers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/sqltests/harness"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// kinds are types with two values of each, beside null.
var kinds = [][3]string{
	{"smallint", "-32768", "32767"},
	{"integer", "-2147483648", "2147483647"},
	{"bigint", "-9223372036854775808", "9223372036854775807"},
	{"real", "1.5e-7", "Infinity"},
	{"double precision", "-0", "1.7976931348623157e308"},
	{"numeric", "NaN", "123456789012345678901234567890.000100"},
	{"numeric(10,2)", "-99999999.99", "0.01"},
	{"money", "-1.50", "92233720368547758.07"},
	{"boolean", "t", "f"},
	{"text", "", "é\t\\n'\"☃"},
	{"varchar(20)", "a", "x y "},
	{"char(5)", "ab", "ab   "},
	{"name", "n", "longer"},
	{"bytea", `\x`, `\x00ff5c`},
	{"date", "4713-01-01 BC", "5874897-12-31"},
	{"time", "00:00:00", "24:00:00"},
	{"timetz", "12:00:00.5+05:30", "00:00:00-15:59"},
	{"timestamp", "0001-01-01 00:00:00 BC", "2026-02-28 23:59:59.999999"},
	{"timestamptz", "1900-01-01 00:00:00+00", "2262-04-11 23:47:16.854775+00"},
	{"interval", "-1 year 2 mons -3 days 04:05:06.789", "178000000 years"},
	{"uuid", "00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	{"json", `{"a": [1, null]}`, `"x"`},
	{"jsonb", `{"b": 2, "a": 1}`, `[]`},
	{"inet", "192.168.0.1/24", "::1"},
	{"cidr", "10.0.0.0/8", "2001:db8::/32"},
	{"macaddr", "08:00:2b:01:02:03", "00:00:00:00:00:00"},
	{"bit(8)", "10101010", "00000000"},
	{"varbit", "", "101"},
	{"point", "(1,-2.5)", "(0,0)"},
	{"int4range", "[1,5)", "empty"},
	{"nummultirange", "{[1,2),[3.5,4)}", "{}"},
	{"tsvector", "'a':1 'b':2A", ""},
	{"pg_lsn", "0/0", "16/B374D848"},
	{"integer[]", "{}", "{1,NULL,-3}"},
	{"text[]", `{"a b",NULL,""}`, "{☃}"},
	{"mood", "sad", "happy"},
	{"pair", "(1,x)", `(,"a,b")`},
	{"posint", "1", "7"},
	{"oid", "0", "4294967295"},
}

// insertKinds inserts three rows of all kinds: both values, and nulls.
func insertKinds(first int) string {
	rows := make([]string, 3)
	for i := range rows {
		values := []string{fmt.Sprint(first + i)}
		for _, k := range kinds {
			if i == 2 {
				values = append(values, "NULL")
				continue
			}
			values = append(values, "'"+strings.ReplaceAll(k[i+1], "'", "''")+"'")
		}
		rows[i] = "(" + strings.Join(values, ", ") + ")"
	}
	return "INSERT INTO kinds VALUES " + strings.Join(rows, ", ")
}

// basicSchema is a table of all kinds and tables with each replica identity.
func basicSchema() []string {
	columns := []string{"id int PRIMARY KEY"}
	for i, k := range kinds {
		columns = append(columns, fmt.Sprintf("c%d %s", i, k[0]))
	}
	return []string{
		"CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TYPE pair AS (a int, b text); CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
		"CREATE TABLE kinds (" + strings.Join(columns, ", ") + ")", insertKinds(1),
		"CREATE TABLE keyed (id int PRIMARY KEY, v text, n int); ALTER TABLE keyed ALTER v SET STORAGE EXTERNAL",
		"INSERT INTO keyed SELECT i, repeat('t' || i, 2000), i FROM generate_series(1, 50) i",
		"CREATE TABLE whole (a int, b text); ALTER TABLE whole REPLICA IDENTITY FULL", "INSERT INTO whole SELECT i % 10, 'w' FROM generate_series(1, 100) i",
		"CREATE TABLE indexed (id int NOT NULL, v text); CREATE UNIQUE INDEX indexed_id ON indexed (id); ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_id",
		"CREATE TABLE none (a int)", "INSERT INTO none VALUES (1), (1)",
		"CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (100)",
		"CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (100) TO (200); INSERT INTO parts SELECT i, 'p' FROM generate_series(1, 150) i",
	}
}

var basicTables = map[string]string{"kinds": "id", "keyed": "id", "whole": "a, b", "indexed": "id", "none": "a", "parts": "id", "later": "id"}

// basicChanges is each kind of change: of rows, of tables, in transactions of each sort.
var basicChanges = []string{
	insertKinds(11),
	"UPDATE kinds SET c0 = 5 WHERE id IN (1, 12); UPDATE kinds SET id = id + 100 WHERE id = 2; DELETE FROM kinds WHERE id = 3",
	"ALTER TYPE mood ADD VALUE 'calm'", "UPDATE kinds SET c35 = 'calm' WHERE id = 11",
	"UPDATE keyed SET n = -n WHERE id % 2 = 0; UPDATE keyed SET id = id + 1000 WHERE id < 5; DELETE FROM keyed WHERE id = 50", // v stays out
	"DELETE FROM whole WHERE ctid IN (SELECT ctid FROM whole WHERE a = 1 LIMIT 3); UPDATE whole SET b = 'x' WHERE a = 2",
	"INSERT INTO indexed VALUES (1, 'a'), (2, 'b'); UPDATE indexed SET id = 3, v = 'c' WHERE id = 1",
	"INSERT INTO none VALUES (2), (2), (3)", "UPDATE parts SET id = id + 100 WHERE id < 20 AND id + 100 > 150; TRUNCATE indexed; INSERT INTO indexed VALUES (9, 'after')",
	"ALTER TABLE kinds ADD last text DEFAULT 'old'; INSERT INTO kinds (id) VALUES (50)", "BEGIN; ALTER TABLE keyed ADD w int DEFAULT 7, DROP n; INSERT INTO keyed VALUES (2000, 'new', 8); COMMIT",
	"ALTER TABLE keyed RENAME w TO x; UPDATE keyed SET x = 9 WHERE id = 10",
	"CREATE TABLE later (id int PRIMARY KEY, v int); INSERT INTO later VALUES (1, 1)", "UPDATE later SET v = 2",
	// Sent while it runs, with what is rolled back among it.
	"BEGIN; INSERT INTO keyed (id, v) SELECT i, repeat(md5(i::text), 10) FROM generate_series(3001, 5000) i; SAVEPOINT s; DELETE FROM keyed; ROLLBACK TO s; UPDATE keyed SET x = 1 WHERE id > 4990; COMMIT",
	"BEGIN; INSERT INTO none VALUES (7); UPDATE keyed SET x = 2 WHERE id = 11; PREPARE TRANSACTION 'kept_%[1]s'", "INSERT INTO none VALUES (8)",
	"BEGIN; INSERT INTO none VALUES (9); PREPARE TRANSACTION 'lost_%[1]s'", "COMMIT PREPARED 'kept_%[1]s'", "ROLLBACK PREPARED 'lost_%[1]s'",
}

// On each version rows of all kinds of types, and all kinds of changes, are the same here as
// at the source: copied, streamed, over a restart, in log and lake.
func TestBasics(t *testing.T) {
	for _, version := range pgtest.Versions([]int{16, 18}, 14, 17) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			p := pgtest.StartVersion(t, version)
			source := p.CreateDatabase(t)
			harness.Exec(t, source, basicSchema()...)
			s := harness.New(t, t.TempDir(), "--commit-interval", "300ms")
			s.Start()
			harness.Exec(t, s.DSN, "CREATE PIPELINE b FROM POSTGRES "+quoted(source+" options='-c logical_decoding_work_mem=64kB'")+" FOR ALL TABLES",
				"SYNC PIPELINE b")
			for i, sql := range basicChanges {
				harness.Exec(t, source, strings.ReplaceAll(sql, "%[1]s", fmt.Sprint(version)))
				if strings.Contains(sql, "ALTER TABLE") {
					harness.Exec(t, s.DSN, "SYNC PIPELINE b UNTIL CAUGHT UP")
				}
				if i == len(basicChanges)/2 {
					s.Kill()
					s.Start()
				}
			}
			harness.Exec(t, source, "INSERT INTO none VALUES (99)")
			if !harness.Until(harness.Patience, func() bool {
				n, err := harness.Text(s.DSN, "SELECT count(*)::text FROM b.later")
				return err == nil && n == "1"
			}) {
				t.Fatal("a table that was made later does not come")
			}
			harness.Exec(t, s.DSN, "SYNC PIPELINE b UNTIL CAUGHT UP")
			harness.CompareTables(t, source, s.DSN, "b", basicTables)
			harness.Exec(t, s.DSN, "ALTER PIPELINE b COMPACT")
			harness.CompareTables(t, source, s.DSN, "b", basicTables)
		})
	}
}

package wire

import (
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// corner is a step of the script on one session: what is sent, and how many
// ReadyForQuery end the answer, or a message of the kind until.
type corner struct {
	name  string
	send  []pgproto3.FrontendMessage
	ready int
	until string
}

type messages = []pgproto3.FrontendMessage

var corners = []corner{
	{"records and object ids in binary", messages{
		parse("", "SELECT (1, 'x'::text, NULL::int), ROW(ROW(1.50, 'a,\"b'), ARRAY[true, NULL]), 'pg_class'::regclass, pg_typeof(1), 'pg_catalog'::regnamespace"),
		&pgproto3.Bind{ResultFormatCodes: []int16{1}}, describe('P', ""), execute("", 0), sync,
		&pgproto3.Bind{ResultFormatCodes: []int16{0, 1, 0, 1, 0}}, execute("", 0), sync,
		query("SET DateStyle = 'SQL, DMY'"), parse("", "SELECT ROW('2024-02-01'::date, 0.1::float8)"), &pgproto3.Bind{ResultFormatCodes: []int16{1}}, execute("", 0), sync,
		query("RESET DateStyle"),
	}, 5, ""},
	{"simple", messages{query("SELECT 1 AS a, 'x' AS b, NULL AS c, 1.5, true, now() IS NULL")}, 1, ""},
	{"types", messages{query("SELECT id, name, paid, d, f4, f8, i2, b, ts, tz, n FROM shop.customers ORDER BY id")}, 1, ""},
	{"several statements", messages{query("SELECT 1; SELECT 2; BEGIN; SELECT 3; COMMIT")}, 1, ""},
	{"empty", messages{query(""), query(" ; ; "), query("-- nothing")}, 3, ""},
	{"error in the middle", messages{query("SELECT 1; SELECT * FROM nosuch; SELECT 2")}, 1, ""},
	{"a constant fails", messages{query("SELECT 1/0")}, 1, ""},
	{"syntax error", messages{query("SELECT 1; SELEC 2")}, 1, ""},
	{"error position", messages{query("SELECT 'é', nosuch FROM shop.orders")}, 1, ""},
	{"no rows", messages{query("SELECT id FROM shop.orders WHERE false")}, 1, ""},
	{"no columns", messages{query("SELECT FROM shop.customers")}, 1, ""},
	{"no columns, extended", messages{
		parse("s0", "SELECT FROM shop.orders WHERE id = $1"), describe('S', "s0"), bind("", "s0", "1"), describe('P', ""), execute("", 1), execute("", 0), sync,
		query("SELECT; SELECT WHERE false; PREPARE q0 AS SELECT; EXECUTE q0; DEALLOCATE q0"), query("COPY (SELECT FROM shop.orders) TO STDOUT"),
		query("SELECT UNION SELECT; SELECT FROM generate_series(1, 3) ORDER BY 1"), query("SELECT count(*) FROM (SELECT FROM shop.orders) q"),
		query("COPY (SELECT FROM shop.orders) TO STDOUT (FORMAT binary)"),
	}, 6, ""},
	{"aborted", messages{query("BEGIN"), query("SELECT * FROM nosuch"), query("SELECT 1"), query("COMMIT"), query("SELECT 2")}, 5, ""},
	{"warnings", messages{query("COMMIT"), query("BEGIN; BEGIN; ROLLBACK"), query("DROP TABLE IF EXISTS nosuch")}, 3, ""},
	{"set", messages{query("SET application_name = 'wire'; SET DateStyle = 'SQL, DMY'; SELECT d FROM shop.customers ORDER BY id; RESET DateStyle")}, 1, ""},
	{"set is undone", messages{query("BEGIN; SET TimeZone = 'Europe/Vienna'"), query("ROLLBACK"), query("SHOW TimeZone")}, 3, ""},
	{"set is undone by an error", messages{
		query("BEGIN; SET TimeZone = 'Europe/Vienna'"), query("SELECT * FROM nosuch"), query("SHOW TimeZone"), query("ROLLBACK"),
		query("SET application_name = 'undone'; SELECT * FROM nosuch"), query("SHOW application_name"),
		query("BEGIN; SET TimeZone = 'Europe/Vienna'; SAVEPOINT a; SET TimeZone = 'Asia/Tokyo'"), query("SELECT * FROM nosuch"),
		query("ROLLBACK TO a; SHOW TimeZone"), query("COMMIT; RESET TimeZone"),
	}, 10, ""},
	{"an open portal and an error", messages{
		query("BEGIN"), parse("", "SELECT i FROM generate_series(1, 5) AS i"), bind("p", ""), execute("p", 1), sync, query("SELECT * FROM nosuch"),
		describe('P', "p"), sync, execute("p", 1), sync, query("ROLLBACK"),
		query("BEGIN"), parse("", "SELECT i FROM generate_series(1, 5) AS i"), bind("p", ""), execute("p", 1), sync, query("SAVEPOINT a"),
		query("SELECT * FROM nosuch"), query("ROLLBACK TO a"), execute("p", 2), sync, query("COMMIT"),
	}, 13, ""},
	{"set local", messages{query("BEGIN; SET LOCAL application_name = 'local'; COMMIT; RESET application_name")}, 1, ""},
	{"reset all", messages{query("SET application_name = 'x'; SET IntervalStyle = iso_8601"), query("RESET ALL")}, 2, ""},
	{"discard all", messages{query("SET DateStyle = German"), query("DISCARD ALL")}, 2, ""},
	{"extended", messages{parse("", "SELECT $1::int + 1 AS a, $2::text AS b"), bind("", "", "41", "x"), describe('P', ""), execute("", 0), sync}, 1, ""},
	{"describe statement", messages{parse("s", "SELECT id, name FROM shop.customers WHERE id = $1"), describe('S', "s"), sync}, 1, ""},
	{"executed again", messages{bind("", "s", "1"), execute("", 0), bind("", "s", "2"), execute("", 0), sync}, 1, ""},
	{"exists already", messages{parse("s", "SELECT 1"), sync}, 1, ""},
	{"close", messages{closing('S', "s"), closing('S', "s"), closing('P', "nosuch"), sync}, 1, ""},
	{"of no statement", messages{bind("", "s", "1"), sync, describe('S', "s"), sync, describe('P', "p"), sync, execute("p", 0), sync}, 4, ""},
	{"pipeline", messages{
		parse("", "SELECT 1"), bind("", ""), execute("", 0), bind("", "nosuch"), execute("", 0),
		parse("", "SELECT 2"), bind("", ""), execute("", 0), sync, parse("", "SELECT 3"), bind("", ""), execute("", 0), sync,
	}, 2, ""},
	{"returning", messages{query("INSERT INTO loads VALUES (11) RETURNING id, v; DELETE FROM loads RETURNING 1/0; SELECT 1")}, 1, ""},
	{"pipeline of writes", messages{
		parse("", "INSERT INTO loads VALUES (1)"), bind("", ""), execute("", 0), parse("", "INSERT INTO loads VALUES (1)"), bind("", ""), execute("", 0),
		sync, query("SELECT count(*) FROM loads"),
	}, 2, ""},
	{"parse error in a pipeline", messages{parse("", "SELEC"), bind("", ""), describe('P', ""), execute("", 0), sync}, 1, ""},
	{"portal with a limit", messages{
		parse("", "SELECT i FROM generate_series(1, 5) AS i"), bind("p", ""), execute("p", 2), execute("p", 2), execute("p", 2), execute("p", 2), sync,
	}, 1, ""},
	{"exactly the limit", messages{parse("", "SELECT i FROM generate_series(1, 2) AS i"), bind("", ""), execute("", 2), execute("", 2), sync}, 1, ""},
	{"portals end with the transaction", messages{query("BEGIN"), parse("", "SELECT 1"), bind("p", ""), sync, query("COMMIT"), execute("p", 0), sync}, 4, ""},
	{"portal twice", messages{query("BEGIN"), parse("", "SELECT 1"), bind("p", ""), bind("p", ""), sync, query("ROLLBACK")}, 3, ""},
	{"cursor is a portal", messages{
		query("BEGIN; DECLARE c CURSOR FOR SELECT i FROM generate_series(1, 5) AS i"), describe('P', "c"), execute("c", 2), sync,
		query("FETCH 1 FROM c; MOVE 1 IN c"), execute("c", 0), closing('P', "c"), sync, query("FETCH 1 FROM c"), query("ROLLBACK"),
	}, 6, ""},
	{"portal is a cursor", messages{
		query("BEGIN"), parse("", "SELECT i FROM generate_series(1, 5) AS i"), bind("p", ""), execute("p", 1), sync, query("MOVE 2 IN p"), query("FETCH 1 FROM p"),
		execute("p", 0), sync, query("ROLLBACK"),
	}, 6, ""},
	{"flush", messages{parse("", "SELECT $1::int"), flush}, 1, "1"},
	{"flush of an error", messages{bind("", "", "x"), flush}, 1, "E"},
	{"skipped until sync", messages{bind("", "", "1"), execute("", 0), query("SELECT 1"), sync}, 1, ""},
	{"bad parameters", messages{parse("", "SELECT $1::int"), bind("", ""), sync, bind("", "", "1", "2"), sync}, 2, ""},
	{"bad formats", messages{
		parse("", "SELECT $1::int"), &pgproto3.Bind{ParameterFormatCodes: []int16{0, 1}, Parameters: [][]byte{[]byte("1")}}, sync,
		parse("", "SELECT $1::int"), &pgproto3.Bind{ParameterFormatCodes: []int16{2}, Parameters: [][]byte{[]byte("1")}}, sync,
	}, 2, ""},
	{"binary", messages{
		parse("", "SELECT id, name, paid, d, f4, f8, i2, b, ts, tz, n FROM shop.customers WHERE id = $1 ORDER BY id", 20),
		&pgproto3.Bind{ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{0, 0, 0, 0, 0, 0, 0, 1}}, ResultFormatCodes: []int16{1}},
		describe('P', ""), execute("", 0), sync,
	}, 1, ""},
	{"bad binary parameter", messages{
		parse("", "SELECT $1::int8"), &pgproto3.Bind{ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{1, 2, 3}}}, sync,
	}, 1, ""},
	{"nothing decided", messages{parse("", "SELECT $1"), describe('S', ""), sync, parse("", "SELECT $2"), sync}, 2, ""},
	{"empty, extended", messages{parse("", ""), bind("", ""), describe('P', ""), execute("", 0), sync}, 1, ""},
	{"several, extended", messages{parse("", "SELECT 1; SELECT 2"), sync}, 1, ""},
	{"simple forgets the unnamed", messages{parse("", "SELECT 1"), sync, query("SELECT 2"), bind("", ""), sync}, 3, ""},
	{"prepared by SQL", messages{query("PREPARE q AS SELECT 1 AS a"), bind("", "q"), describe('S', "q"), execute("", 0), sync, query("DEALLOCATE q")}, 3, ""},
	{"sync alone", messages{sync, sync}, 2, ""},
	{"copy out", messages{query("COPY shop.orders (id, line) TO STDOUT"), query("COPY (SELECT 1, NULL, 'a,b') TO STDOUT (FORMAT csv)")}, 2, ""},
	{"copy out, binary", messages{query("COPY (SELECT i, i::text FROM generate_series(1, 3) AS i) TO STDOUT (FORMAT binary)")}, 1, ""},
	{"copy out of nothing, binary", messages{query("COPY (SELECT 1 WHERE false) TO STDOUT (FORMAT binary)")}, 1, ""},
	{"copy in", messages{query("COPY loads FROM STDIN"), data("1\ta\t1\n2"), data("\tb\t\\N\n"), done, query("SELECT * FROM loads ORDER BY id; TRUNCATE loads")}, 2, ""},
	{"copy fails", messages{query("COPY loads FROM STDIN"), data("1\ta\t1\n"), &pgproto3.CopyFail{Message: "no more"}, query("SELECT count(*) FROM loads")}, 2, ""},
	{"copy of a bad row", messages{query("COPY loads FROM STDIN"), data("1\ta\t1\n2\tb\tx\n"), data("3\n"), done, query("SELECT count(*) FROM loads")}, 2, ""},
	{"copy in, extended", messages{
		parse("", "COPY loads FROM STDIN"), bind("", ""), describe('P', ""), execute("", 0), data("1\ta\t1\n"), sync, flush, done, sync,
		query("TRUNCATE loads"),
	}, 2, ""},
	{"copy error, extended", messages{
		parse("", "COPY loads FROM STDIN"), bind("", ""), execute("", 0), data("x\n"), done, sync, query("SELECT 1"),
	}, 2, ""},
	{"copy and more", messages{query("SELECT 1; COPY loads FROM STDIN; SELECT 2"), data("1\ta\t1\n"), done, query("TRUNCATE loads")}, 2, ""},
	{"stray copy", messages{data("x"), done, query("SELECT 1")}, 1, ""},
	{"function call", messages{&pgproto3.FunctionCall{Function: 1610}}, 1, ""},
	{"function calls", messages{
		&pgproto3.FunctionCall{Function: 2311, Arguments: [][]byte{[]byte("ÄbC")}},
		&pgproto3.FunctionCall{Function: 870, Arguments: [][]byte{nil}, ResultFormatCode: 1},
		&pgproto3.FunctionCall{Function: 481, ArgFormatCodes: []uint16{1}, Arguments: [][]byte{{0, 0, 0, 7}}, ResultFormatCode: 1},
		&pgproto3.FunctionCall{Function: 870}, &pgproto3.FunctionCall{Function: 1067}, &pgproto3.FunctionCall{Function: 2108},
		&pgproto3.FunctionCall{Function: 870, ArgFormatCodes: []uint16{0, 0}, Arguments: [][]byte{[]byte("a")}},
		&pgproto3.FunctionCall{Function: 870, ArgFormatCodes: []uint16{7}, Arguments: [][]byte{[]byte("a")}},
		query("BEGIN"), &pgproto3.FunctionCall{Function: 2880, Arguments: [][]byte{[]byte("8")}}, query("COMMIT"),
		query("SELECT pg_advisory_unlock(8)"), query("BEGIN"), &pgproto3.FunctionCall{Function: 1}, &pgproto3.FunctionCall{Function: 89}, query("ROLLBACK"),
	}, 16, ""},
	{"a null is no text", messages{parse("", "SELECT $1::text"), bind("", "", "a\x00b"), sync, bind("", "", "\xff"), sync}, 2, ""},
	{"portal of a savepoint", messages{
		query("BEGIN; SAVEPOINT a"), parse("", "SELECT i FROM generate_series(1, 3) AS i"), bind("p", ""), execute("p", 1), sync,
		query("ROLLBACK TO a"), execute("p", 1), sync, query("ROLLBACK"),
	}, 5, ""},
	{"portal before a savepoint", messages{
		query("BEGIN"), parse("", "SELECT i FROM generate_series(1, 3) AS i"), bind("p", ""), execute("p", 1), sync, query("SAVEPOINT a"),
		execute("p", 1), sync, query("ROLLBACK TO a"), execute("p", 1), sync, query("ROLLBACK"),
	}, 7, ""},
	{"portal that failed", messages{
		query("BEGIN"), parse("", "SELECT 1 / (1 - i) FROM generate_series(1, 3) AS i"), bind("p", ""), sync, query("SAVEPOINT a"),
		execute("p", 1), sync, query("ROLLBACK TO a"), execute("p", 1), sync, query("ROLLBACK"),
	}, 7, ""},
	{"portal of a released savepoint", messages{
		query("BEGIN; SAVEPOINT a; SAVEPOINT b"), parse("", "SELECT i FROM generate_series(1, 3) AS i"), bind("p", ""), execute("p", 1), sync,
		query("RELEASE b"), execute("p", 1), sync, query("ROLLBACK TO a"), execute("p", 1), sync, query("ROLLBACK"),
	}, 7, ""},
	{"error behind the limit", messages{
		query("BEGIN"), parse("", "SELECT 1 / (2 - i) FROM generate_series(1, 3) AS i"), bind("p", ""), execute("p", 1), sync, query("SAVEPOINT a"),
		execute("p", 1), sync, query("ROLLBACK TO a"), execute("p", 1), sync, query("ROLLBACK"),
	}, 7, ""},
	{"limit and no rows", messages{
		parse("", "SET application_name = 'x'"), bind("", ""), describe('P', ""), execute("", 1), sync,
		parse("", "INSERT INTO loads VALUES (5) RETURNING id"), bind("", ""), describe('P', ""), execute("", 1), execute("", 1), sync,
		query("TRUNCATE loads; RESET application_name"),
	}, 3, ""},
	{"binary results", messages{
		parse("", "SELECT 1::int2, 2::int4, 'x'::text, true, 1.5::float8"), &pgproto3.Bind{ResultFormatCodes: []int16{1, 0, 1, 1, 0}}, describe('P', ""), execute("", 0), sync,
		&pgproto3.Bind{ResultFormatCodes: []int16{1, 0}}, sync, &pgproto3.Bind{ResultFormatCodes: []int16{7}}, describe('P', ""), execute("", 0), sync,
	}, 3, ""},
	{"a constant fails, extended", messages{parse("", "SELECT 1/0"), describe('S', ""), bind("", ""), execute("", 0), sync}, 1, ""},
	{"transaction in a pipeline", messages{
		parse("", "BEGIN"), bind("", ""), execute("", 0), parse("", "INSERT INTO loads VALUES (6)"), bind("", ""), execute("", 0), sync,
		parse("", "INSERT INTO loads VALUES (7)"), bind("", ""), execute("", 0), parse("", "COMMIT"), bind("", ""), execute("", 0), sync,
		query("SELECT id FROM loads ORDER BY id; TRUNCATE loads"),
	}, 3, ""},
	{"explicit in implicit", messages{query("SELECT 1; BEGIN; INSERT INTO loads VALUES (8); SELECT nosuch"), query("ROLLBACK"), query("SELECT count(*) FROM loads")}, 3, ""},
	{"committed in the middle", messages{query("INSERT INTO loads VALUES (9); COMMIT; SELECT nosuch"), query("SELECT id FROM loads; TRUNCATE loads")}, 2, ""},
	{"long names", messages{parse(strings.Repeat("n", 70), "SELECT 1"), bind("", strings.Repeat("n", 70)), execute("", 0), closing('S', strings.Repeat("n", 70)), sync}, 1, ""},
	{"arrays and nulls", messages{
		parse("", "SELECT $1::int[], $2::text", 0, 25), &pgproto3.Bind{Parameters: [][]byte{[]byte("{1,NULL}"), nil}}, describe('P', ""), execute("", 0), sync,
	}, 1, ""},
	{"calls with parameters", messages{
		query("LISTEN n"), parse("", "SELECT pg_notify($1, $2)"), describe('S', ""), bind("", "", "n", "x"), execute("", 0), sync,
		parse("", "SELECT pg_notify('n', $1 || 'y'), 2 AS two"), bind("", "", "x"), execute("", 0), sync,
		parse("", "SELECT pg_try_advisory_lock($1, $2 + 1), pg_try_advisory_lock($3)"), describe('S', ""), bind("", "", "1", "2", "-9223372036854775808"), execute("", 0), sync,
		query("SELECT classid, objid, objsubid, mode FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1, 2"),
		query("SELECT pg_advisory_unlock_all(); UNLISTEN *"),
	}, 6, ""},
}

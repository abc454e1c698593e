package postgres

import (
	"slices"
	"strings"
	"testing"
)

// typesTable has a column of every kind of type.
var typesTable = []string{
	"CREATE TYPE mood AS ENUM ('sad', 'ok, \"fine\"')", "CREATE TYPE pair AS (x int, y text)",
	"CREATE DOMAIN positive AS numeric(8,3) CHECK (VALUE > 0)", "CREATE EXTENSION IF NOT EXISTS hstore",
	`CREATE TABLE a (id int PRIMARY KEY, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, n102 numeric(10,2), n380 numeric(38,0), n3838 numeric(38,38),
	  n500 numeric(50,0), nneg numeric(5,-2), dom positive, t text, vc varchar(20), ch char(5), nm name, c "char", by bytea, d date, tm time, ts timestamp, tz timestamptz, ttz timetz, iv interval,
	  u uuid, j json, jb jsonb, x xml, m money, ip inet, ci cidr, mac macaddr, bt bit(3), vb varbit, r int4range, mr int4multirange, pt point, e mood, p pair, o oid, rc regclass, ts_v tsvector, h hstore,
	  ab bool[], ai2 int2[], ai4 int4[], ai8 int8[], af8 float8[], an numeric(10,2)[], ann numeric[], at text[], avc varchar(5)[], aby bytea[], ad date[], atm time[], ats timestamp[], atz timestamptz[], au uuid[],
	  ae mood[], aj jsonb[], ach char(3)[], ai4x2 int[][], anm name[], bx box[])`,
}

var typesRows = []string{
	`INSERT INTO a (id) VALUES (0)`,
	`INSERT INTO a VALUES (1, true, -32768, -2147483648, -9223372036854775808, 1.5, 'NaN', 12345678901234567890.123456789, -12345678.90, 99999999999999999999999999999999999999, 0.00000000000000000000000000000000000001,
	  12345678901234567890123456789012345678901234567890, 12300, 12345.678, E'a\n"b\\c', 'größe', 'ab', 'name', 'c', '\xdeadbeef00', '2026-01-02', '03:04:05.123456', '2026-01-02 03:04:05.123456', '2026-01-02 03:04:05.123456+09', '03:04:05+09', '1 mon 2 days 03:04:05.6',
	  '11111111-2222-3333-4444-55555555abcd', '{"a": 1,  "b": [1, 2]}', '{"b": [1,  2], "a": "x"}', '<?xml version="1.0" encoding="UTF-8"?><a/>', 1234.5, '10.0.0.1', '10.0.0.0/8', '08:00:2b:01:02:03', B'101', B'10101', '[1,5)', '{[1,2),[5,7)}', '(1,2)', 'ok, "fine"', ROW(1, 'a,b'), 4294967295, 'pg_class', 'a fat cat', 'k=>v, n=>NULL',
	  '{t,f,NULL}', '{1,-2}', '{1,NULL,3}', '{1,9223372036854775807}', '{1.5,NaN,-Infinity}', '{1.10,-2.25,NULL}', '{1,1e40,NaN}', ARRAY['a', NULL, 'NULL', '', 'x,y', '"q"', E'\\', '{b}'], '{ab,cd}', ARRAY['\x00ff'::bytea, '\x'], '{2026-01-01,1999-12-31}', '{03:04:05,24:00:00}', '{"2026-01-02 03:04:05.5"}', '{"2026-01-02 03:04:05+09"}', '{11111111-2222-3333-4444-55555555abcd}',
	  '{sad,NULL}', ARRAY['{"a": 1}'::jsonb, NULL], '{a,bc}', '{{1,2},{3,4}}', '{a,b}', '{(1,2),(0,0);(3,4),(1,1)}')`,
	`INSERT INTO a (id, f4, f8, n, n102, d, tm, ts, tz, t, by, ab, at, i2, i4, i8, ip, p) VALUES (2, '-Infinity', 1e-300, 'NaN', 0, '0044-03-15 BC', '24:00', '0044-03-15 12:00 BC', '4713-01-01 00:00:00+00 BC', '', '', '{}', '{}', 32767, 2147483647, 9223372036854775807, '::1/64', ROW(NULL, NULL))`,
	`INSERT INTO a (id, f4, f8, n, n102, d, ts, tz, n380, ch, c, iv, dom) VALUES (3, 3.4028235e38, 0.1, 1e40, 99999999.99, '5874897-12-31', '294246-12-31 23:59:59.999999', '12345-06-07 08:09:10.5+00', -1, '', '', '-1 year -2 mons +3 days', 0.001)`,
	`INSERT INTO a (id, n, n102, n3838, d, ts, tz) VALUES (4, 0.00, -0.01, -0.5, '0001-01-01', '1969-12-31 23:59:59.999999', '1900-02-28 23:59:59.000001+00')`,
}

// Whatever the type, copy and stream bring the same, and for exact text it is what
// the server's output function writes.
func TestTypesThroughCopyAndStream(t *testing.T) {
	r := newRig(t, typesTable...)
	r.begin()
	k := r.stream(r.setup.Start, nil)
	r.exec(typesRows...)
	k.await("rows", func() bool { return len(k.mu.lines) >= len(typesRows) })
	if err := k.stop(); err != nil {
		t.Fatal(err)
	}
	_ = r.backfill().Close() // that of the slot
	rows := r.copy(r.backfill(), "a")
	if len(rows) != len(typesRows) {
		t.Fatalf("%d rows", len(rows))
	}
	table := r.table("a")
	for i, row := range rows {
		streamed := strings.TrimPrefix(k.mu.lines[i], "a insert ")
		if row == streamed {
			continue
		}
		copied, sent := strings.Split(row, "|"), strings.Split(streamed, "|")
		for c := range copied {
			if copied[c] != sent[c] {
				t.Errorf("row %d, column %s: copied %q, streamed %q", i, table.Columns[c].Name, copied[c], sent[c])
			}
		}
	}
	values := strings.Split(rows[1], "|")
	for name, want := range map[string]string{
		"n": "12345678901234567890.123456789", "n102": "-12345678.9", "n380": "99999999999999999999999999999999999999",
		"n500": "12345678901234567890123456789012345678901234567890", "nneg": "12300", "dom": "12345.678",
		"t": "a\n\"b\\c", "ch": "ab   ", "d": "2026-01-02", "tm": "03:04:05.123456",
		"ttz": "03:04:05+09", "iv": "1 mon 2 days 03:04:05.6", "j": `{"a": 1,  "b": [1, 2]}`, "jb": `{"a": "x", "b": [1, 2]}`,
		"ip": "10.0.0.1", "ci": "10.0.0.0/8", "bt": "101", "r": "[1,5)", "e": `ok, "fine"`, "p": `(1,"a,b")`, "rc": "pg_class",
		"m": "$1,234.50", "x": "<a/>", "ai4x2": "{{1,2},{3,4}}", "ann": "{1,10000000000000000000000000000000000000000,NaN}",
		"ae": "{sad,NULL}", "bx": "{(1,2),(0,0);(3,4),(1,1)}", "o": "4294967295", "ai4": "[1,null,3]", "at": `["a",null,"NULL","","x,y","\"q\"","\\","{b}"]`,
	} {
		i := slices.IndexFunc(table.Columns, func(c sourceColumn) bool { return c.Name == name })
		if values[i] != want {
			t.Errorf("column %s: %q, want %q", name, values[i], want)
		}
	}
	if p := strings.Split(rows[2], "|"); p[slices.IndexFunc(table.Columns, func(c sourceColumn) bool { return c.Name == "p" })] != "(,)" {
		t.Errorf("a composite of nulls is not null: %q", p)
	}
}

// Package values proves that every value of every type arrives as it is: a matrix of all
// types at their extremes, and tables drawn at random, under kill -9.
package values

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/skipprd/skipprd/pgwire/quote"
)

// typ is a column type of the source with values to try.
type typ struct {
	// name is what the matrix calls it; sql is the column's type.
	name, sql string
	// values are SQL expressions of the type's extremes and corners.
	values []string
	// draw makes an ordinary value, nil: one of values.
	draw func(r *rand.Rand) string
	// refused are values of the source's type that the type here cannot hold.
	refused []string
	// key says that values of the type can be a table's key.
	key bool
	// oid and typmod are what a client is told when that is not what the source tells: of a
	// type of the source's own.
	own bool
	// widens names a type that ALTER COLUMN TYPE may turn it to.
	widens string
}

// prelude makes the types of the source's own.
var prelude = []string{
	"CREATE SCHEMA other",
	"CREATE EXTENSION hstore", "CREATE EXTENSION citext", "CREATE EXTENSION ltree", "CREATE EXTENSION cube",
	`CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy, "very"', 'größe')`,
	"CREATE TYPE pair AS (x int, y text)",
	"CREATE TYPE nest AS (p pair, a int[], m mood, n numeric)",
	"CREATE DOMAIN posint AS int CHECK (VALUE > 0)",
	"CREATE DOMAIN short AS varchar(10)",
	"CREATE DOMAIN shorter AS short CHECK (length(VALUE) < 8)",
	"CREATE DOMAIN amount AS numeric(8,3) NOT NULL DEFAULT 1",
	"CREATE DOMAIN intlist AS int[]",
	"CREATE DOMAIN dpair AS pair",
	"CREATE DOMAIN dmood AS mood",
	"CREATE TYPE floatrange AS RANGE (subtype = float8)",
}

// list makes literals of a type of texts.
func list(typ string, texts ...string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = quote.Literal(s) + "::" + typ
	}
	return out
}

// big is a text that does not compress, so that it is kept out of line.
const big = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) i)"

func drawInt(typ string, most int64) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		return fmt.Sprintf("'%d'::%s", r.Int64N(2*most)-most, typ)
	}
}

func drawText(typ string, most int) func(r *rand.Rand) string {
	alphabet := []rune("aábc de\"'\\,{}()NULL\tß漢😀\n")
	return func(r *rand.Rand) string {
		out := make([]rune, r.IntN(most+1))
		for i := range out {
			out[i] = alphabet[r.IntN(len(alphabet))]
		}
		return quote.Literal(string(out)) + "::" + typ
	}
}

func drawDay(typ, suffix string) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		return fmt.Sprintf("'%04d-%02d-%02d%s'::%s", 1+r.IntN(9998), 1+r.IntN(12), 1+r.IntN(28), suffix, typ)
	}
}

// scalars are the types that are no arrays.
func scalars() []typ {
	var out []typ
	out = append(out, numbers()...)
	out = append(out, texts()...)
	out = append(out, times()...)
	out = append(out, objects()...)
	out = append(out, system()...)
	return append(out, owned()...)
}

func numbers() []typ {
	return []typ{
		{name: "smallint", sql: "int2", key: true, values: list("int2", "-32768", "0", "32767"), draw: drawInt("int2", 100), widens: "int4"},
		{name: "integer", sql: "int4", key: true, values: list("int4", "-2147483648", "-1", "2147483647"), draw: drawInt("int4", 1000), widens: "int8"},
		{name: "bigint", sql: "int8", key: true, values: list("int8", "-9223372036854775808", "0", "9223372036854775807"), draw: drawInt("int8", 1<<40)},
		{name: "real", sql: "float4", widens: "float8", values: list("float4", "NaN", "Infinity", "-Infinity", "-0", "1e-45", "3.4028235e38", "0.1", "1e6", "1e7", "16777217")},
		{name: "double precision", sql: "float8", values: list("float8", "NaN", "Infinity", "-Infinity", "-0", "5e-324", "1.7976931348623157e308", "0.1",
			"123456789012345", "1e15", "1e16", "9007199254740993", "-2.2250738585072011e-308")},
		{
			name: "numeric", sql: "numeric", key: true,
			values: append(list("numeric", "NaN", "Infinity", "-Infinity", "0", "0.00", "-0.0", "1e40", "1e-1000", "-123.4500", "12345678901234567890.123456789", "17.685"),
				"repeat('9', 3000)::numeric", "('0.' || repeat('12', 2000))::numeric"),
			draw: func(r *rand.Rand) string {
				return fmt.Sprintf("'%d.%0*d'::numeric", r.Int64N(1e9), 1+r.IntN(9), r.IntN(10))
			},
		},
		{name: "numeric(10,2)", sql: "numeric(10,2)", key: true, values: list("numeric", "-99999999.99", "0.00", "-0.01", "99999999.99"), refused: list("numeric", "NaN"), widens: "numeric(14,2)"},
		{name: "numeric(38,0)", sql: "numeric(38,0)", values: list("numeric", strings.Repeat("9", 38), "-"+strings.Repeat("9", 38), "0"), refused: list("numeric", "NaN")},
		{name: "numeric(38,38)", sql: "numeric(38,38)", values: list("numeric", "0."+strings.Repeat("9", 38), "-1e-38", "0"), refused: list("numeric", "NaN")},
		{name: "numeric(50,20)", sql: "numeric(50,20)", values: list("numeric", strings.Repeat("9", 30)+"."+strings.Repeat("9", 20), "-0.00000000000000000001", "NaN")},
		{name: "numeric(1000,500)", sql: "numeric(1000,500)", values: list("numeric", strings.Repeat("1", 500)+".5", "-1e-500", "NaN")},
		{name: "numeric(5,-2)", sql: "numeric(5,-2)", values: list("numeric", "9999900", "-123449", "49", "NaN")},
		{name: "numeric(3,5)", sql: "numeric(3,5)", values: list("numeric", "0.00999", "-0.00001", "0", "NaN")},
		{name: "money", sql: "money", key: true, values: list("money", "-92233720368547758.08", "92233720368547758.07", "0", "1234.5")},
		{name: "boolean", sql: "bool", values: list("bool", "t", "f")},
		{name: "oid", sql: "oid", key: true, values: list("oid", "0", "1259", "4294967295")},
	}
}

func texts() []typ {
	odd := []string{"", " ", "NULL", `\N`, "a\tb\r\n\\c", "größe 漢字 😀 \u202eא", "\x01\x7f", `"'`, "{}", "\ufeff", "\u00a0"}
	return []typ{
		{name: "text", sql: "text", key: true, values: append(list("text", odd...), big), draw: drawText("text", 30)},
		{name: "varchar", sql: "varchar", key: true, values: append(list("varchar", odd...), big), draw: drawText("varchar", 30), widens: "text"},
		{name: "varchar(20)", sql: "varchar(20)", key: true, values: list("varchar", append(odd, "ßßßßßßßßßßßßßßßßßßßß", "trailing  ")...), draw: drawText("varchar", 20), widens: "varchar(30)"},
		{name: "char(5)", sql: "char(5)", key: true, values: list("char(5)", "", "ab", "ß漢😀", "12345", " x")},
		{name: `"char"`, sql: `"char"`, key: true, values: append(list(`"char"`, "", "a", "~", `\`), `(-1)::"char"`)},
		{name: "name", sql: "name", key: true, values: list("name", "", "pg_class", strings.Repeat("n", 63), "größe")},
		{name: "citext", sql: "citext", key: true, own: true, values: append(list("citext", odd...), big), draw: drawText("citext", 10)},
		{name: "bytea", sql: "bytea", key: true, values: []string{
			`'\x'::bytea`, `'\x00'::bytea`, `'\xdeadbeef00ff5c27'::bytea`, "decode((SELECT string_agg(lpad(to_hex(i), 2, '0'), '') FROM generate_series(0, 255) i), 'hex')",
			"decode(" + big + ", 'hex')",
		}},
		{name: "json", sql: "json", values: append(list("json", `{"a": 1,  "a": [2,null ]}`, "null", `"\u00e4 ä"`, "[]", "1e400", `{"": ""}`), "to_json("+big+")")},
		{name: "jsonb", sql: "jsonb", key: true, values: append(list("jsonb", `{"b": [1,  2], "a": "x"}`, "null", `"\u00e4 \\ \" \n"`, "[]", "{}", "1e40", "-0.10", "true"), "to_jsonb("+big+")")},
		{name: "jsonpath", sql: "jsonpath", values: list("jsonpath", `$.a[*] ? (@ > 1.5 && @.b like_regex "^x")`, "strict $")},
		{name: "xml", sql: "xml", values: list("xml", "<a/>", "", "text & more"[:5], `<?xml version="1.0" encoding="UTF-8"?><a b="1">ß</a>`, "<!-- c --><x/>")},
		{name: "tsvector", sql: "tsvector", key: true, values: list("tsvector", "", "a:1A,2B b 'it''s':3C", `'x\y' größe`)},
		{name: "tsquery", sql: "tsquery", key: true, values: list("tsquery", "", "a & !b | 'it''s':*AB", "x <2> y")},
		{
			name: "uuid", sql: "uuid", key: true, values: list("uuid", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
			draw: func(r *rand.Rand) string {
				return fmt.Sprintf("'11111111-2222-3333-4444-%012x'::uuid", r.Int64N(1<<40))
			},
		},
	}
}

func times() []typ {
	days := []string{"0001-01-01", "0001-12-31 BC", "4714-11-24 BC", "0044-03-15 BC", "1969-12-31", "1970-01-01", "1582-10-10", "2000-02-29", "9999-12-31", "10000-01-01"}
	stamp := func(suffix string) []string {
		var out []string
		for _, d := range days {
			day, bc, _ := strings.Cut(d, " ")
			out = append(out, strings.TrimSpace(day+" 00:00:00"+suffix+" "+bc), strings.TrimSpace(day+" 23:59:59.999999"+suffix+" "+bc))
		}
		return append(out, "294246-12-31 23:59:59.999999"+suffix)
	}
	return []typ{
		{name: "date", sql: "date", key: true, values: list("date", append(days, "5874897-12-31")...), refused: list("date", "infinity", "-infinity"), draw: drawDay("date", "")},
		{name: "time", sql: "time", key: true, values: list("time", "00:00", "24:00:00", "23:59:59.999999", "03:04:05.1")},
		{name: "time(2)", sql: "time(2)", values: list("time", "00:00", "23:59:59.99", "03:04:05.126"), widens: "time(4)"},
		{name: "timetz", sql: "timetz", key: true, values: list("timetz", "00:00+15:59:59", "24:00-15:59:59", "12:00:00.5+05:30", "03:04:05+00")},
		{name: "timestamp", sql: "timestamp", key: true, values: list("timestamp", stamp("")...), refused: list("timestamp", "infinity", "-infinity", "294276-12-31 23:59:59.999999"), draw: drawDay("timestamp", " 01:02:03.5")},
		{name: "timestamp(0)", sql: "timestamp(0)", values: list("timestamp", "2026-01-02 03:04:05.6"), refused: list("timestamp", "infinity"), widens: "timestamp(3)"},
		{
			name: "timestamptz", sql: "timestamptz", key: true, values: append(list("timestamptz", stamp("+00")...), list("timestamptz", "2026-01-02 03:04:05.123456+09", "1900-01-01 00:00:00-11:30")...),
			refused: list("timestamptz", "infinity", "-infinity", "294276-12-31 23:59:59.999999+00"), draw: drawDay("timestamptz", " 01:02:03.5+03:30"),
		},
		{name: "timestamptz(3)", sql: "timestamptz(3)", values: list("timestamptz", "2026-01-02 03:04:05.9996+00"), refused: list("timestamptz", "-infinity")},
		{name: "interval", sql: "interval", key: true, values: list("interval", "0", "178000000 years", "-178000000 years", "1 year -2 mons +3 days -04:05:06.789", "-1 day +23:59:59.999999",
			"00:00:00.000001", "-00:00:00.5", "1 mon -1 day", "2562047788:00:54.775807", "-1 year -1 mon -1 day -00:00:01")},
		{name: "interval year to month", sql: "interval year to month", values: list("interval", "1 year 2 mons", "-3 mons")},
		{name: "interval day to second(2)", sql: "interval day to second(2)", values: list("interval", "3 days 04:05:06.789", "-1.005 s")},
	}
}

func objects() []typ {
	return []typ{
		{name: "inet", sql: "inet", key: true, values: list("inet", "0.0.0.0/0", "10.0.0.1", "10.0.0.1/8", "::1/64", "::ffff:1.2.3.4", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127")},
		{name: "cidr", sql: "cidr", key: true, values: list("cidr", "10.0.0.0/8", "10.1.2.3", "::/0", "2001:db8::/32")},
		{name: "macaddr", sql: "macaddr", key: true, values: list("macaddr", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "08:00:2b:01:02:03")},
		{name: "macaddr8", sql: "macaddr8", key: true, values: list("macaddr8", "08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03")},
		{name: "bit", sql: "bit", key: true, values: []string{"B'0'", "B'1'"}},
		{name: "bit(67)", sql: "bit(67)", key: true, values: []string{"repeat('10', 34)::bit(67)", "repeat('0', 67)::bit(67)"}},
		{name: "varbit", sql: "varbit", key: true, values: []string{"B''::varbit", "B'1'::varbit", "B'0001'::varbit", "repeat('01', 500)::varbit"}},
		{name: "varbit(10)", sql: "varbit(10)", values: []string{"B''::varbit", "B'1111111111'::varbit"}},
		{name: "point", sql: "point", values: list("point", "(0,0)", "(1e300,-0)", "(NaN,Infinity)", "(0.1,-1.5)")},
		{name: "lseg", sql: "lseg", values: list("lseg", "[(0,0),(1,1e-300)]")},
		{name: "box", sql: "box", values: list("box", "(0,0),(1,1)", "(-1,5),(3,-2)")},
		{name: "path", sql: "path", values: list("path", "[(0,0),(1,1)]", "((0,0),(1,1),(2,0))")},
		{name: "polygon", sql: "polygon", values: list("polygon", "((0,0),(1,1),(2,0))")},
		{name: "line", sql: "line", values: list("line", "{1,-1,0}", "{0,0.5,3}")},
		{name: "circle", sql: "circle", values: list("circle", "<(0,0),0>", "<(1.5,-2),3>")},
		{name: "int4range", sql: "int4range", key: true, values: list("int4range", "empty", "(,)", "[1,5)", "(,5]", "[-2147483648,2147483647)")},
		{name: "int8range", sql: "int8range", key: true, values: list("int8range", "empty", "[1,)")},
		{name: "numrange", sql: "numrange", values: list("numrange", "(1.50,2.500]", "[0,NaN]", "(,1e40)")},
		{name: "daterange", sql: "daterange", values: list("daterange", "[2026-01-01,infinity]", "(0044-03-15 BC,]", "empty")},
		{name: "tsrange", sql: "tsrange", values: list("tsrange", `["2026-01-02 03:04:05","2026-01-02 03:04:05.5"]`, "[-infinity,infinity]")},
		{name: "tstzrange", sql: "tstzrange", values: list("tstzrange", `["2026-01-02 03:04:05+09",)`)},
		{name: "int4multirange", sql: "int4multirange", values: list("int4multirange", "{}", "{[1,2),[5,7)}", "{(,)}")},
		{name: "int8multirange", sql: "int8multirange", values: list("int8multirange", "{}", "{[1,2),[5,)}")},
		{name: "nummultirange", sql: "nummultirange", values: list("nummultirange", "{[1.0,2.50),[5,7]}")},
		{name: "datemultirange", sql: "datemultirange", values: list("datemultirange", "{[2026-01-01,2026-02-01)}")},
		{name: "tsmultirange", sql: "tsmultirange", values: list("tsmultirange", `{["2026-01-02 03:04:05",infinity)}`)},
		{name: "tstzmultirange", sql: "tstzmultirange", values: list("tstzmultirange", `{[,"2026-01-02 03:04:05+09")}`)},
	}
}

func system() []typ {
	return []typ{
		{name: "pg_lsn", sql: "pg_lsn", key: true, values: list("pg_lsn", "0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF")},
		{name: "txid_snapshot", sql: "txid_snapshot", values: list("txid_snapshot", "10:20:10,14,15", "1:1:")},
		{name: "pg_snapshot", sql: "pg_snapshot", values: list("pg_snapshot", "10:20:10,14,15")},
		{name: "xid", sql: "xid", values: list("xid", "0", "4294967295")},
		{name: "xid8", sql: "xid8", values: list("xid8", "0", "18446744073709551615")},
		{name: "cid", sql: "cid", values: list("cid", "0", "4294967295")},
		{name: "tid", sql: "tid", values: list("tid", "(0,0)", "(4294967295,65535)")},
		{name: "regclass", sql: "regclass", values: list("regclass", "pg_class", "-", "999999")},
		{name: "regtype", sql: "regtype", values: list("regtype", "int4", "timestamp with time zone", "0", "int4[]")},
		{name: "regproc", sql: "regproc", values: list("regproc", "now", "-", "999999")},
		{name: "regprocedure", sql: "regprocedure", values: list("regprocedure", "abs(int4)", "0")},
		{name: "regoper", sql: "regoper", values: list("regoper", "0", "!~~*")[:1]},
		{name: "regoperator", sql: "regoperator", values: list("regoperator", "+(int4,int4)", "0")},
		{name: "regrole", sql: "regrole", values: list("regrole", "postgres", "0", "999999")},
		{name: "regnamespace", sql: "regnamespace", values: list("regnamespace", "pg_catalog", "0")},
		{name: "regconfig", sql: "regconfig", values: list("regconfig", "english", "0")},
		{name: "regdictionary", sql: "regdictionary", values: list("regdictionary", "simple", "0")},
		{name: "regcollation", sql: "regcollation", values: list("regcollation", `"C"`, "0")},
		{name: "refcursor", sql: "refcursor", values: list("refcursor", "", "<unnamed portal 1>")},
		{name: "int2vector", sql: "int2vector", values: list("int2vector", "", "1 -2 32767")},
		{name: "oidvector", sql: "oidvector", key: true, values: list("oidvector", "", "1 4294967295")},
		{name: "aclitem", sql: "aclitem", values: list("aclitem", "postgres=arwdDxt/postgres", "=r*/postgres")},
	}
}

func owned() []typ {
	return []typ{
		{name: "enum", sql: "mood", key: true, own: true, values: list("mood", "sad", "ok", `happy, "very"`, "größe")},
		{name: "domain over integer", sql: "posint", key: true, values: list("posint", "1", "2147483647")},
		{name: "domain over varchar(10)", sql: "short", key: true, values: list("short", "", "größe 漢字")},
		{name: "domain over a domain", sql: "shorter", values: list("shorter", "", "abc")},
		{name: "domain over numeric(8,3)", sql: "amount", values: list("amount", "0.001", "-12345.678")},
		{name: "domain over integer[]", sql: "intlist", values: list("intlist", "{}", "{1,NULL,-3}"), refused: list("intlist", "{{1,2},{3,4}}")},
		{name: "domain over a composite", sql: "dpair", own: true, values: []string{"ROW(1, 'a,b')::pair::dpair"}},
		{name: "domain over an enum", sql: "dmood", own: true, values: list("dmood", "sad")},
		{name: "composite", sql: "pair", own: true, values: []string{"ROW(1, 'a,b')::pair", "ROW(NULL, NULL)::pair", "ROW(-1, '')::pair", `ROW(0, E'"\\')::pair`}},
		{name: "composite, nested", sql: "nest", own: true, values: []string{"ROW(ROW(1, '(\"x\")'), '{1,NULL}', 'ok', 'NaN')::nest", "ROW(NULL, '{}', NULL, 1.50)::nest"}},
		{name: "range of the user's", sql: "floatrange", own: true, values: list("floatrange", "[0.1,NaN]", "empty")},
		{name: "multirange of the user's", sql: "floatmultirange", own: true, values: list("floatmultirange", "{[0.1,0.2],[1e300,)}")},
		{name: "hstore", sql: "hstore", own: true, values: list("hstore", "", `"k"=>"v", "n"=>NULL, "q\"\\"=>"a,b", ""=>""`)},
		{name: "ltree", sql: "ltree", key: true, own: true, values: list("ltree", "", "Top.Science.Astronomy")},
		{name: "cube", sql: "cube", own: true, values: list("cube", "(1,2,3)", "(0),(1.5)")},
	}
}

// arrays are array types of others: of one dimension, and of several.
func arrays(of []typ) []typ {
	var out []typ
	for _, t := range of {
		if strings.HasPrefix(t.name, "domain") || strings.HasPrefix(t.sql, "interval ") {
			continue // a domain's arrays are of the user's own
		}
		a, b := t.values[0], t.values[len(t.values)-1]
		flat := typ{name: t.name + "[]", sql: t.sql + "[]", own: t.own, key: t.key && len(t.values) < 12}
		flat.values = []string{
			"'{}'::" + t.sql + "[]", fmt.Sprintf("ARRAY[%s, NULL, %s]::%s[]", a, b, t.sql),
			fmt.Sprintf("ARRAY[%s]::%s[]", strings.Join(t.values, ", "), t.sql), fmt.Sprintf("ARRAY[NULL]::%s[]", t.sql),
		}
		deep := typ{name: t.name + "[][]", sql: t.sql + "[][]", own: t.own}
		deep.values = []string{
			fmt.Sprintf("ARRAY[[%s, NULL], [%s, %s]]::%s[]", a, b, a, t.sql),
			fmt.Sprintf("array_fill(%s, ARRAY[1,2,2], ARRAY[-1,0,5])::%s[]", a, t.sql),
			fmt.Sprintf("ARRAY[%s]::%s[]", b, t.sql), "'{}'::" + t.sql + "[]",
		}
		out = append(out, flat, deep)
	}
	return out
}

// everyType are all types with their values.
func everyType() []typ { return append(scalars(), arrays(scalars())...) }

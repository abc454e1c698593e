package wire

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/skipprd/skipprd/pgwire/charmap"
)

// samples are characters of which every encoding has some; second bytes that are a backslash, or
// a delimiter, in encodings that no database can have, are among them.
const samples = "éßęŁřñЖяαώשجกทđ日本語表ソ申|構功一乙丁한국글둣ァｱ〜￥か゚💩丏𠀋"

// nameBytes is what a name may have.
const nameBytes = 64

// encodings is a client of each encoding: its own bytes in all that it can say, and back.
func encodings(t *testing.T) []corner {
	t.Helper()
	names := []string{
		"BIG5", "EUC_CN", "EUC_JIS_2004", "EUC_JP", "EUC_KR", "EUC_TW", "GB18030", "GBK", "JOHAB", "SHIFT_JIS_2004", "SJIS", "UHC",
		"LATIN1", "LATIN2", "LATIN5", "LATIN9", "WIN1250", "WIN1251", "WIN1252", "WIN1255", "WIN874", "KOI8R", "ISO_8859_5", "ISO_8859_6",
	}
	var out []corner
	for _, name := range names {
		c, err := charmap.Of(name)
		if err != nil || c == nil {
			t.Fatal(name, err)
		}
		var text []byte
		missing, size := "", 0
		for _, r := range samples {
			one, problem := c.Encode(nil, []byte(string(r)))
			if problem != nil {
				missing = fmt.Sprintf(`U&'a\+%06X'`, r)
			} else if again, problem := c.Decode(nil, one); problem == nil && string(again) == string(r) && size+len(again) < nameBytes {
				text, size = append(text, one...), size+len(again)
			}
		}
		out = append(out, encodingCorners(name, string(text), missing)...)
	}
	return append(out, encodingRules()...)
}

func encodingCorners(name, v, missing string) []corner {
	set := query("SET client_encoding = '" + name + "'")
	formats := func(code int16, values ...string) *pgproto3.Bind {
		b := bind("", v, values...)
		b.ParameterFormatCodes, b.ResultFormatCodes = []int16{code}, []int16{code}
		return b
	}
	out := []corner{
		{name + " simple", messages{
			set, query("SELECT '" + v + "' AS \"" + v + "\", ARRAY['" + v + "', 'x'], 'ascii', length('" + v + "')"),
			query("SELECT * FROM \"" + v + "\""), query("DROP TABLE IF EXISTS \"" + v + "\""), query("SELECT '" + v + "', nosuch"),
			query("SHOW client_encoding; SELECT pg_client_encoding()"),
		}, 6, ""},
		{name + " extended", messages{
			parse(v, "SELECT $1 AS \""+v+"\", $2::text[], $3::jsonb, ROW($1, 1, ARRAY[$1]), '"+v+"'::bytea IS NULL", 25), describe('S', v),
			formats(0, v, "{"+v+"}", `{"`+v+`": 1}`), execute("", 0),
			closing('S', v), sync, describe('S', v), sync, query("SELECT 1"),
		}, 3, ""},
		{name + " binary", messages{
			parse(v, "SELECT $1 AS a, ARRAY[$1, 'x'], jsonb_build_object('k', $1), ARRAY[$1, NULL], '\\xff'::bytea, $1::varchar(40), $1::name", 25),
			formats(1, v), execute("", 0), closing('S', v), sync,
		}, 1, ""},
		{name + " copy", messages{
			query("CREATE TEMP TABLE enc (n int, v text)"), query("COPY enc FROM STDIN"), data("1\t" + v), data("\n2\tx\\\\" + v + "\n"), &pgproto3.CopyDone{},
			query("COPY enc FROM STDIN (FORMAT csv, DELIMITER '|', QUOTE '\\')"), data("3|\\" + v + "|\\\n4|\\" + v[:1]), data(v[1:] + "\\\n"), &pgproto3.CopyDone{},
			query("COPY (SELECT * FROM enc ORDER BY n) TO STDOUT"), query("COPY (SELECT n AS \"" + v + "\", v FROM enc ORDER BY n) TO STDOUT (FORMAT csv, HEADER)"),
			query("COPY (SELECT * FROM enc ORDER BY n) TO STDOUT (ENCODING 'utf8')"), query("COPY (SELECT n, ARRAY[v], v FROM enc ORDER BY n) TO STDOUT (FORMAT binary)"),
			query("COPY enc FROM STDIN (FORMAT binary)"),
			data("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00" + string(rune(len(v)&0x7f)) + v[:len(v)&0x7f] + "\xff\xff"),
			&pgproto3.CopyDone{}, query("COPY (SELECT n, v FROM enc WHERE n = 5) TO STDOUT (ENCODING 'utf8')"),
			query("DROP TABLE enc"),
		}, 10, ""},
		{name + " notify", messages{query("LISTEN \"" + v + "\""), query("NOTIFY \"" + v + "\", '" + v + "'"), query("UNLISTEN *")}, 3, ""},
		{name + " invalid", messages{
			query("SELECT '\xff'"), query("SELECT '" + v + "\x81"), parse("\xfe", "SELECT 1"), sync, parse("", "SELECT $1::text"), bind("", "", "\x80"), sync,
			query("COPY (SELECT 1) TO STDOUT (NULL '\xff')"), query("CREATE TEMP TABLE enc (v text)"), query("COPY enc FROM STDIN"), data("a\nb\xff"), &pgproto3.CopyDone{},
			query("COPY enc FROM STDIN"), &pgproto3.CopyFail{Message: v}, query("COPY enc FROM STDIN"), &pgproto3.CopyFail{Message: "\xff"}, query("DROP TABLE enc"),
		}, 10, ""},
	}
	if missing != "" {
		out = append(out, corner{name + " no equivalent", messages{
			query("SELECT 'a', " + missing), query("SELECT 1 AS " + missing[:2] + `"` + missing[3:len(missing)-1] + `"`),
			query("SELECT " + missing + "::int"), query("COPY (SELECT 'first' UNION ALL SELECT " + missing + ") TO STDOUT"),
			query("COPY (SELECT " + missing + ") TO STDOUT (FORMAT binary)"), parse("", "SELECT "+missing), bind("", ""), execute("", 0), sync,
			query("SELECT 'still here'"),
		}, 7, ""})
	}
	return append(out, corner{name + " reset", messages{query("RESET client_encoding"), query("SHOW client_encoding")}, 2, ""})
}

// encodingRules are what of client_encoding is of no one encoding.
func encodingRules() []corner {
	return []corner{
		{"encoding names", messages{
			query("SET client_encoding = 'unicode'"), query("SET client_encoding = 'UNICODE'"), query("SHOW client_encoding"), query("SET client_encoding = 'mule_internal'"),
			query("SET client_encoding = 'foo'"), query("SET client_encoding = ''"), query("SET NAMES 'iso-8859-1'"), query("SELECT set_config('client_encoding', 'win', false)"),
			query("SET NAMES DEFAULT"), query("SET client_encoding TO sql_ascii"), query("SELECT 'é'"), query("SELECT '\xe9'"), query("RESET client_encoding"),
		}, 13, ""},
		{"encoding rolled back", messages{
			query("BEGIN; SET client_encoding = latin1"), query("SELECT '\xe9'"), query("SAVEPOINT s; SET client_encoding = win1251"), query("SELECT '\xe9'"),
			query("ROLLBACK TO s"), query("SELECT '\xe9'"), query("SELECT '\xe9'::int"), query("ROLLBACK"), query("SELECT 'é'"),
		}, 9, ""},
		{"encoding of one transaction", messages{
			query("BEGIN; SET LOCAL client_encoding = latin1; SELECT U&'\\00e9'"), query("SELECT '\xe9'"), query("COMMIT"), query("SELECT 'é'"),
		}, 4, ""},
		{"encoding in a failed string", messages{
			query("SET client_encoding = latin1; SELECT U&'\\00e9' AS \"e\"; SELECT 1/0"), query("SHOW client_encoding"),
			query("SET client_encoding = latin1; SELECT U&'\\4e00'"), query("SHOW client_encoding"),
		}, 4, ""},
		{"encoding of a pipeline", messages{
			parse("", "SET client_encoding = latin1"), bind("", ""), execute("", 0), parse("", "SELECT '\xe9'"), bind("", ""), execute("", 0), sync,
			parse("", "SELECT '\xe9', $1::text"), bind("", "", "\xe9"), execute("", 0), parse("", "SET client_encoding = utf8"), bind("", ""), execute("", 0), sync,
		}, 2, ""},
		{"encoding of a cursor", messages{
			query("BEGIN; DECLARE ce CURSOR FOR SELECT U&'\\00e9' AS v FROM generate_series(1, 4)"), query("FETCH 1 FROM ce"), query("SET client_encoding = latin1"),
			query("FETCH 1 FROM ce"), execute("ce", 1), sync, query("COMMIT; RESET client_encoding"),
			query("BEGIN; DECLARE cb BINARY CURSOR FOR SELECT U&'\\00e9' AS v, 1 AS n"), query("SET LOCAL client_encoding = latin1; FETCH 1 FROM cb; COMMIT"),
		}, 8, ""},
		{"encoding of a prepared statement", messages{
			parse("pe", "SELECT 'é', $1::text"), sync, query("SET client_encoding = latin1"), bind("", "pe", "\xe9"), execute("", 0), sync,
			query("PREPARE pf AS SELECT '\xe9'; RESET client_encoding; EXECUTE pf; DEALLOCATE pf; DEALLOCATE pe"),
		}, 4, ""},
		{"encoding of a function call", messages{
			query("SET client_encoding = latin1"), &pgproto3.FunctionCall{Function: 1317, ArgFormatCodes: []uint16{0}, Arguments: [][]byte{[]byte("\xe9\xe9")}},
			query("RESET client_encoding"),
		}, 3, ""},
		{"conversions", messages{
			query("SELECT convert_to('é', 'latin1'), convert_from('\\xe9', 'latin1'), convert('\\xe9', 'latin1', 'utf8'), convert('\\xc3a9', 'utf8', 'latin9'), convert('\\xff', 'sql_ascii', 'latin1')"),
			query("SELECT length('\\x8ea1'::bytea, 'eucjp'), length('\\x95'::bytea || '\\x5c'::bytea, 'sjis'), length('\\xff'::bytea, 'sql_ascii')"),
			query("SELECT pg_encoding_to_char(n), pg_char_to_encoding(pg_encoding_to_char(n)) FROM generate_series(-2, 45) AS n ORDER BY n"),
			query("SELECT length('\\x8e'::bytea, 'eucjp') FROM generate_series(1, 1)"), query("SELECT length(''::bytea, 'foo') FROM generate_series(1, 1)"), query("SELECT convert('\\xe9', 'latin1', 'koi8r') FROM generate_series(1, 1)"),
			query("SELECT convert('\\xe9', 'foo', 'utf8') FROM generate_series(1, 1)"), query("SELECT convert('\\xe9', 'utf8', 'foo') FROM generate_series(1, 1)"), query("SELECT convert_from('\\xe9', 'foo') FROM generate_series(1, 1)"),
			query("SELECT convert_to('é', 'foo') FROM generate_series(1, 1)"), query("SELECT convert_from('\\xe9', 'sql_ascii') FROM generate_series(1, 1)"), query("SELECT convert_from('\\xe9', 'mule_internal') FROM generate_series(1, 1)"),
			query("SELECT convert_to('一', 'latin1') FROM generate_series(1, 1)"), query("SELECT convert('\\x00', 'latin1', 'utf8') FROM generate_series(1, 1)"), query("SELECT convert('', 'koi8r', 'latin1'), convert_to('', 'mule_internal')"),
		}, 15, ""},
	}
}

// freshEncodings are connections that begin in an encoding.
var freshEncodings = []freshCorner{
	{"starts in latin1", func(t *testing.T, s target) string {
		w, out := login(t, s, protocol30, "client_encoding", "latin1")
		w.send(encoded(t, query("SELECT '\xe9' AS \"\xe9\"")))
		return out + w.read(t, 1, "")
	}},
	{"starts in an encoding by options", func(t *testing.T, s target) string {
		w, out := login(t, s, protocol30, "options", "-c client_encoding=sjis")
		w.send(encoded(t, query("SELECT '\x95\x5c'")))
		return out + w.read(t, 1, "")
	}},
	{"starts in no encoding", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30, "client_encoding", "nothing")
		return out
	}},
	{"starts in mule_internal", func(t *testing.T, s target) string {
		_, out := login(t, s, protocol30, "client_encoding", "mule_internal")
		return out
	}},
	{"a role's encoding", func(t *testing.T, s target) string {
		w, _ := login(t, s, protocol30)
		w.send(encoded(t, query("CREATE ROLE latin LOGIN SUPERUSER"), query("ALTER ROLE latin SET client_encoding = 'latin2'"),
			query("ALTER ROLE latin SET client_encoding = 'mule_internal'"), query("ALTER ROLE latin SET client_encoding = 'nothing'")))
		out := w.read(t, 4, "")
		w = dial(t, s)
		w.send(startUp(protocol30, "user", "latin", "database", database))
		out += w.read(t, 1, "E")
		w.send(encoded(t, query("SELECT '\xb1'; SET client_encoding = utf8; RESET client_encoding; SHOW client_encoding")))
		out += w.read(t, 1, "")
		w = dial(t, s)
		w.send(startUp(protocol30, "user", "latin", "database", database, "client_encoding", "win1250"))
		return out + w.read(t, 1, "E")
	}},
}

// TestSamples: there is something to compare in each encoding.
func TestSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range encodings(t) {
		seen[c.name] = true
	}
	if n := len(seen); n < 150 {
		t.Errorf("%d corners: %v", n, slices.Sorted(maps.Keys(seen)))
	}
}

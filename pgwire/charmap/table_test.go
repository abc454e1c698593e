package charmap

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

var update = flag.Bool("update", false, "write the tables as the server has them")

// serverTables are functions of ours at the server. decoded: a sequence in UTF-8; null, when UTF-8
// has none; nothing, when it is not of the encoding. encoded: the sequences of the code points of
// a range that have one.
var serverTables = []string{`
CREATE FUNCTION decoded(codes bytea[], name text) RETURNS TABLE (code bytea, utf8 bytea) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH code IN ARRAY codes LOOP
    BEGIN
      utf8 := convert(code, name, 'UTF8');
      RETURN NEXT;
    EXCEPTION
      WHEN untranslatable_character THEN utf8 := NULL; RETURN NEXT;
      WHEN character_not_in_repertoire THEN NULL;
    END;
  END LOOP;
END $$`, `
CREATE FUNCTION encoded(first int, last int, name text) RETURNS TABLE (point int, code bytea) LANGUAGE plpgsql AS $$
BEGIN
  FOR p IN first..last LOOP
    CONTINUE WHEN p BETWEEN 55296 AND 57343;
    point := p;
    BEGIN
      code := convert_to(chr(point), name);
      RETURN NEXT;
    EXCEPTION
      WHEN untranslatable_character THEN NULL;
    END;
  END LOOP;
END $$`}

// supplement is the first code point that no table has, but for GB18030, which counts them.
const supplement = 0x30000

// TestTables: every sequence that the server takes for one of an encoding, and every code point,
// is here what it is there, or has no equivalent here and there. SKIPPRD_PG=18 asks another
// version. The code points that an encoding has not are compared in parts, another one for each;
// with -short, so are its sequences.
func TestTables(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.CreateDatabase(t)
	server.Exec(t, dsn, serverTables...)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for n, name := range slices.Sorted(maps.Keys(forms)) {
		there := decoded(ctx, t, conn, name)
		if *update {
			back := encoded(ctx, t, conn, name, high, supplement-1)
			if err := os.WriteFile("tables/"+name, pack(t, name, there, back), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		c, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		compareDecoded(t, c, there)
		compareEncoded(ctx, t, conn, c, n)
	}
}

func compareDecoded(t *testing.T, c *Charmap, there []entry) {
	t.Helper()
	none, wrong := 0, 0
	for _, e := range there {
		code := e.bytes()
		here, err := c.Decode(nil, code)
		size, as := c.Size(code)
		if size != len(code) || as != len(here) {
			t.Errorf("%s: size of %x is %d, %d as UTF-8 %x", c.name, code, size, as, here)
		}
		if e.text == "" {
			none++
		}
		if (string(here) != e.text || (err != nil) != (e.text == "")) && wrong < 10 {
			wrong++
			t.Errorf("%s: %x is %x, at the server %x: %v", c.name, code, here, e.text, err)
		}
	}
	t.Logf("%s: %d of %d sequences have no equivalent", c.name, none, len(there))
}

// compareEncoded compares all code points that are encoded here, and n-th parts of those that are
// not.
func compareEncoded(ctx context.Context, t *testing.T, conn *pgx.Conn, c *Charmap, n int) {
	t.Helper()
	var text, want []byte
	for r := rune(high); r < supplement; r++ {
		if c.code(r) != 0 {
			text, want = append(text, string(r)+" "...), append(appendCode(want, c.code(r)), ' ')
		}
	}
	for pair := range c.joined {
		text, want = append(text, string(pair[:])+" "...), append(appendCode(want, c.joined[pair]), ' ')
	}
	var got []byte
	if err := conn.QueryRow(ctx, "SELECT convert($1, 'UTF8', $2)", text, c.name).Scan(&got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes are %d bytes, here %d: %v", c.name, len(text), len(got), len(want), err)
	}
	if here, err := c.Encode(nil, text); err != nil || !bytes.Equal(here, want) {
		t.Errorf("%s: %v", c.name, err)
	}
	const parts = 40
	step := rune(supplement / parts)
	for at := rune(n%parts) * step; at < supplement; at += parts * step {
		for point, code := range encoded(ctx, t, conn, c.name, max(at, high), at+step-1) {
			if c.code(point) != code {
				t.Errorf("%s: U+%04X is %x, at the server %x", c.name, point, c.code(point), code)
			}
		}
	}
}

// TestErrors: what cannot be converted is told as the server tells it.
func TestErrors(t *testing.T) {
	dsn := pgtest.Start(t).CreateDatabase(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	texts := [][]byte{
		[]byte("a\x80"), []byte("\x8e"), []byte("\x8e\xa1"), []byte("\x8e\xa8\xa1\xa1"), []byte("\x8e\xa1\xa1\x41"), []byte("\x8f\xa1"), []byte("\x8f\xa1\x41"),
		[]byte("\x8f\xa1\xa1"), []byte("\xa1"), []byte("\xa1A"), []byte("\xff\xff"), []byte("\x81\x30"), []byte("\x81\x30\x81"), []byte("\x81\x30\x81\x41"),
		[]byte("\x84\x31\xa4\x37"), []byte("\xfe\x39\xfe\x39"), []byte("\xe3\x32\x9a\x35"), []byte("\xe3\x32\x9a\x36"), []byte("\x90\x30\x81\x30"), []byte("\x81\x7f"),
		[]byte("\xfd\x40"), []byte("\xa0"), []byte("\x80\x40"), []byte("\xc9\xfe"), []byte("ok"), []byte("\xa4\xf7"), []byte("\x82\xf5"), []byte("\xd8\xa1"), []byte("\xff"),
		[]byte("€"), []byte("é"), []byte("語"), []byte("\xe8\xaa"), []byte("\xc3("), []byte("\xf0\x9f\x98\x80"), []byte("\xf4\x90\x80\x80"), []byte("\xed\xa0\x80"),
		[]byte("か\xe3\x82"), []byte("か゚"), []byte("か゚x"), []byte("æ̀"), []byte("か(か"),
	}
	for name := range forms {
		c, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			compareOne(ctx, t, conn, text, name, UTF8, c.Check, c.Decode)
			compareOne(ctx, t, conn, text, UTF8, name, CheckUTF8, c.Encode)
		}
	}
}

func compareOne(ctx context.Context, t *testing.T, conn *pgx.Conn, text []byte, from, to string, check func([]byte) *Error, convert func(dst, src []byte) ([]byte, *Error)) {
	t.Helper()
	var want []byte
	said := ""
	var e *pgconn.PgError
	if err := conn.QueryRow(ctx, "SELECT convert($1, $2, $3)", text, from, to).Scan(&want); errors.As(err, &e) {
		said = e.Message
	} else if err != nil {
		t.Fatal(err)
	}
	got, problem := convert(nil, text)
	if invalid := check(text); invalid != nil { // which the server's function looks for first
		problem = invalid
	}
	here := ""
	if problem != nil {
		here, got = problem.Error(), nil
	}
	if !bytes.Equal(got, want) || here != said {
		t.Errorf("%x from %s to %s: %x %s, at the server %x %s", text, from, to, got, here, want, said)
	}
}

// decoded is what the server makes of sequences that it knows; "" for what UTF-8 does not have.
func decoded(ctx context.Context, t *testing.T, conn *pgx.Conn, name string) []entry {
	t.Helper()
	var codes [][]byte
	forms[name].each(func(code []byte) {
		if len(code) == 1 || !testing.Short() || code[0]%8 == 1 {
			codes = append(codes, bytes.Clone(code))
		}
	})
	rows, err := conn.Query(ctx, "SELECT code, utf8 FROM decoded($1, $2)", codes, name)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	var code, text []byte
	_, err = pgx.ForEachRow(rows, []any{&code, &text}, func() error {
		out = append(out, entry{number(code), string(text)})
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	slices.SortFunc(out, func(a, b entry) int { return int(int64(a.code) - int64(b.code)) })
	return out
}

func number(code []byte) (out uint32) {
	for _, b := range code {
		out = out<<8 | uint32(b)
	}
	return out
}

// encoded is what the server makes of code points.
func encoded(ctx context.Context, t *testing.T, conn *pgx.Conn, name string, first, last rune) map[rune]uint32 {
	t.Helper()
	rows, err := conn.Query(ctx, "SELECT point, code FROM encoded($1, $2, $3)", first, last, name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[rune]uint32{}
	var point int32
	var code []byte
	_, err = pgx.ForEachRow(rows, []any{&point, &code}, func() error {
		out[point] = number(code)
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// pack writes a table.
func pack(t *testing.T, name string, entries []entry, there map[rune]uint32) []byte {
	t.Helper()
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.text == "" })
	var plain []byte
	var last entry
	var point rune
	for _, e := range entries {
		points := append([]rune(e.text), 0)
		plain = binary.AppendUvarint(plain, uint64(e.code-last.code))
		plain = binary.AppendVarint(plain, int64(points[0]-point))
		plain = binary.AppendUvarint(plain, uint64(points[1]))
		last, point = e, points[0]
	}
	plain = append(plain, 0)
	c, err := build(name, forms[name], entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	point = 0
	for r := rune(high); r < supplement; r++ {
		if code := there[r]; code != c.code(r) {
			plain = binary.AppendUvarint(plain, uint64(r-point))
			plain = binary.AppendUvarint(plain, uint64(code))
			point = r
		}
	}
	var b bytes.Buffer
	b.WriteByte(tableVersion)
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

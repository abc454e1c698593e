package charset

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/skipprd/skipprd/sqltests/pgtest"
)

var update = flag.Bool("update", false, "write the tables as the server has them")

// serverTable is a function of ours at the server: a sequence in UTF-8; null, when UTF-8 has
// none; nothing, when it is not of the encoding.
const serverTable = `
CREATE FUNCTION conversions(codes bytea[], name text) RETURNS TABLE (code bytea, utf8 bytea) LANGUAGE plpgsql AS $$
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
END $$`

// TestTables: every sequence that the server takes for one of an encoding is here what it is
// there, or has no equivalent here and there. SKIPPRD_PG=18 asks another version.
func TestTables(t *testing.T) {
	server := pgtest.Start(t)
	dsn := server.CreateDatabase(t)
	server.Exec(t, dsn, serverTable)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		c := &Charset{name: name, form: forms[name]}
		var codes [][]byte
		for first := high; first <= 0xFF; first++ {
			c.each([]byte{byte(first)}, func(code ...byte) { codes = append(codes, bytes.Clone(code)) })
		}
		there := ask(ctx, t, conn, codes, name)
		if *update {
			if err := os.WriteFile("tables/"+name, pack(there), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if c, err = Of(name); err != nil {
			t.Fatal(err)
		}
		none, wrong := 0, 0
		for _, e := range there {
			code := e.bytes()
			here := c.Append(nil, code)
			if e.text == "" {
				none++
				e.text = string(append([]byte{Mark}, code...))
			}
			if string(here) != e.text && wrong < 10 {
				wrong++
				t.Errorf("%s: %x is %x, at the server %x", name, code, here, e.text)
			}
		}
		text, want := c.Sample()
		var got []byte
		if err := conn.QueryRow(ctx, "SELECT convert($1, $2, 'UTF8')", text, name).Scan(&got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the sample is %d bytes, at the server %d: %v", name, len(want), len(got), err)
		}
		t.Logf("%s: %d of %d sequences have no equivalent", name, none, len(there))
	}
}

// ask is what the server makes of sequences that it knows; "" for what UTF-8 does not have.
func ask(ctx context.Context, t *testing.T, conn *pgx.Conn, codes [][]byte, name string) []entry {
	t.Helper()
	rows, err := conn.Query(ctx, "SELECT code, utf8 FROM conversions($1, $2)", codes, name)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	var code, text []byte
	_, err = pgx.ForEachRow(rows, []any{&code, &text}, func() error {
		e := entry{text: string(text)}
		for _, b := range code {
			e.code = e.code<<8 | uint32(b)
		}
		out = append(out, e)
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	slices.SortFunc(out, func(a, b entry) int { return int(int64(a.code) - int64(b.code)) })
	return out
}

// pack writes a table.
func pack(entries []entry) []byte {
	var plain []byte
	var last entry
	var point rune
	for _, e := range entries {
		if e.text == "" {
			continue
		}
		points := append([]rune(e.text), 0)
		plain = binary.AppendUvarint(plain, uint64(e.code-last.code))
		plain = binary.AppendVarint(plain, int64(points[0]-point))
		plain = binary.AppendUvarint(plain, uint64(points[1]))
		last, point = e, points[0]
	}
	var b bytes.Buffer
	b.WriteByte(tableVersion)
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

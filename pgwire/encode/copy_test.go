package encode_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/lake/vector"
	"github.com/skipprd/skipprd/pgwire/encode"
)

// copyChunk is a table of awkward values: (int4, text, bytea, bool, timestamptz, text[]).
func copyChunk() (*vector.Chunk, []encode.Column) {
	words := []string{"plain", "", "tab\there", "new\nline\r", `back\slash`, `say "hi"`, "a,b;c|d", `\N`, `\.`, "null", "\b\f\v\x01", "ünï 😀", "'single'"}
	n := len(words)
	ints := make([]int32, n)
	stamps := make([]int64, n)
	for i := range ints {
		ints[i], stamps[i] = int32(i)-3, int64(i)*86399999999
	}
	arrays := texts(vector.String, append(append([]string{}, words...), words...)...)
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = i % 3
	}
	chunk := &vector.Chunk{Rows: n, Columns: []vector.Vector{
		withNulls(fixed(kind(vector.Int32), ints...), n, 2), withNulls(texts(vector.String, words...), n, n-1),
		texts(vector.Blob, words...), fixed(kind(vector.Bool), make([]uint8, n)...),
		fixed(kind(vector.TimestampTZ), stamps...), list(arrays, lengths...),
	}}
	return chunk, []encode.Column{
		{Name: "n", TypeOID: 23},
		{Name: "t, \"x\"", TypeOID: 25},
		{Name: "b", TypeOID: 17},
		{Name: "o", TypeOID: 16},
		{Name: "z", TypeOID: 1184},
		{Name: "a", TypeOID: 1009},
	}
}

// copyOut runs an encoder and strips the CopyData framing.
func copyOut(t *testing.T, spec encode.Spec, c *vector.Chunk) []byte {
	t.Helper()
	var types []vector.Type
	for _, v := range c.Columns {
		types = append(types, v.Type)
	}
	spec.Format = encode.DefaultFormat()
	e, err := encode.New(spec, types)
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Chunk(e.Header(nil), c)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for b = e.Trailer(b); len(b) > 0; {
		if b[0] != 'd' {
			t.Fatalf("message %q in a copy", b[0])
		}
		n := int(be32(b[1:]))
		out = append(out, b[5:1+n]...)
		b = b[1+n:]
	}
	return out
}

func TestCopyAgainstPostgres(t *testing.T) {
	c := postgres(t)
	ctx := context.Background()
	set(t, c, "TimeZone", "UTC")
	if _, err := c.Exec(ctx, `CREATE TEMP TABLE x (n int4, "t, ""x""" text, b bytea, o bool, z timestamptz, a text[])`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	chunk, columns := copyChunk()
	own := copyOut(t, encode.Spec{Kind: encode.CopyBinary, Columns: columns}, chunk)
	if _, err := c.CopyFrom(ctx, bytes.NewReader(own), "COPY x FROM STDIN (FORMAT binary)"); err != nil {
		t.Fatal(err)
	}
	all := []bool{true, true, true, true, true, true}
	for _, test := range []struct {
		options string
		kind    encode.Kind
		copy    encode.CopyOptions
	}{
		{"FORMAT binary", encode.CopyBinary, encode.CopyOptions{}},
		{"FORMAT text", encode.CopyText, encode.CopyOptions{Null: `\N`}},
		{"FORMAT text, HEADER", encode.CopyText, encode.CopyOptions{Null: `\N`, Header: true}},
		{"FORMAT text, DELIMITER ',', NULL 'nothing'", encode.CopyText, encode.CopyOptions{Delimiter: ',', Null: "nothing"}},
		{"FORMAT csv", encode.CopyCSV, encode.CopyOptions{}},
		{"FORMAT csv, HEADER, NULL 'null'", encode.CopyCSV, encode.CopyOptions{Header: true, Null: "null"}},
		{"FORMAT csv, DELIMITER '|', QUOTE '''', ESCAPE '\\'", encode.CopyCSV, encode.CopyOptions{Delimiter: '|', Quote: '\'', Escape: '\\'}},
		{"FORMAT csv, FORCE_QUOTE *", encode.CopyCSV, encode.CopyOptions{ForceQuote: all}},
	} {
		var want bytes.Buffer
		if _, err := c.CopyTo(ctx, &want, "COPY x TO STDOUT ("+test.options+")"); err != nil {
			t.Fatal(err)
		}
		got := copyOut(t, encode.Spec{Kind: test.kind, Columns: columns, Copy: test.copy}, chunk)
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s:\n%q\nPostgreSQL:\n%q", test.options, got, want.Bytes())
		}
	}
}

// A column alone on its line quotes the end-of-data marker.
func TestCopySingleColumn(t *testing.T) {
	v := texts(vector.String, `\.`, `\.x`)
	chunk := &vector.Chunk{Rows: 2, Columns: []vector.Vector{v}}
	got := copyOut(t, encode.Spec{Kind: encode.CopyCSV, Columns: []encode.Column{{Name: "a", TypeOID: 25}}}, chunk)
	if want := "\"\\.\"\n\\.x\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := copyOut(t, encode.Spec{Kind: encode.CopyBinary, Columns: []encode.Column{{TypeOID: 25}}}, &vector.Chunk{Columns: chunk.Columns}); !strings.HasPrefix(string(got), "PGCOPY\n\xff\r\n\x00") || len(got) != 21 {
		t.Errorf("empty binary copy: %q", got)
	}
}

// COPY BINARY is a message a row: the header is in that of the first row, in that of the
// trailer when there is none, and once however the rows come in chunks.
func TestCopyBinaryMessages(t *testing.T) {
	const head = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	const row = "\x00\x01\x00\x00\x00\x01"
	chunk := func(values ...string) *vector.Chunk {
		return &vector.Chunk{Rows: len(values), Columns: []vector.Vector{texts(vector.String, values...)}}
	}
	none := &vector.Chunk{Columns: chunk("x").Columns}
	for _, c := range []struct {
		chunks []*vector.Chunk
		want   []string
	}{
		{nil, []string{head + "\xff\xff"}},
		{[]*vector.Chunk{none}, []string{head + "\xff\xff"}},
		{[]*vector.Chunk{chunk("a")}, []string{head + row + "a", "\xff\xff"}},
		{[]*vector.Chunk{none, chunk("a", "b"), chunk("c")}, []string{head + row + "a", row + "b", row + "c", "\xff\xff"}},
	} {
		e, err := encode.New(encode.Spec{
			Kind: encode.CopyBinary, Columns: []encode.Column{{Name: "a", TypeOID: 25}}, Format: encode.DefaultFormat(),
		}, []vector.Type{none.Columns[0].Type})
		if err != nil {
			t.Fatal(err)
		}
		b := e.Header(nil)
		for _, chunk := range c.chunks {
			if b, err = e.Chunk(b, chunk); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for b = e.Trailer(b); len(b) > 0; {
			n := 1 + int(be32(b[1:]))
			got = append(got, string(b[5:n]))
			b = b[n:]
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

package copyin_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/pgwire/pgerr"
)

func ptr(s string) *string { return &s }

func columns(names string) []copyin.Column {
	var out []copyin.Column
	for _, n := range strings.Fields(names) {
		name, def := strings.CutSuffix(n, "=")
		out = append(out, copyin.Column{Name: name, HasDefault: def})
	}
	return out
}

// decode renders all rows and the error: "a|NULL|" a line, fields quoted.
func decode(t testing.TB, r io.Reader, c copyin.Config) string {
	t.Helper()
	c.Table = "t"
	d, err := copyin.New(r, c)
	if err != nil {
		return problem(err)
	}
	var b strings.Builder
	for {
		row, err := d.Next()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			if _, again := d.Next(); !errors.Is(again, err) {
				t.Errorf("after %v: %v", err, again)
			}
			return b.String() + problem(err)
		}
		if len(row) != len(c.Columns) {
			t.Fatalf("%d fields of %d columns", len(row), len(c.Columns))
		}
		for _, f := range row {
			switch {
			case f.Default:
				b.WriteString("DEFAULT|")
			case f.Value == nil:
				b.WriteString("NULL|")
			default:
				fmt.Fprintf(&b, "%q|", f.Value)
			}
		}
		b.WriteByte('\n')
	}
}

func problem(err error) string {
	e, ok := pgerr.As(err)
	if !ok {
		return "not a statement error: " + err.Error()
	}
	return strings.ReplaceAll(strings.Join([]string{string(e.Code), e.Message, e.Detail, e.Hint, e.Where}, " / "), "\n", "\\n")
}

// readers cut the data in different ways.
func readers(data string) map[string]io.Reader {
	return map[string]io.Reader{
		"whole": strings.NewReader(data), "bytes": iotest.OneByteReader(strings.NewReader(data)),
		"halves": iotest.HalfReader(strings.NewReader(data)), "end with data": iotest.DataErrReader(strings.NewReader(data)),
	}
}

// What PostgreSQL 15 does not have.
func TestLaterOptions(t *testing.T) {
	for _, test := range []struct {
		name, columns, data, want string
		options                   copyin.Options
	}{
		{"default", "a= b= c", "D\t\\D\tx\nDD\tD\ty\n", "DEFAULT|\"D\"|\"x\"|\n\"DD\"|DEFAULT|\"y\"|\n", copyin.Options{Default: ptr("D")}},
		{"default with a backslash", "a= b=", "\\D\tD\n", "DEFAULT|\"D\"|\n", copyin.Options{Default: ptr(`\D`)}},
		{"no default", "a= b", "D\tx\nx\tD\n", "DEFAULT|\"x\"|\n22P04 / unexpected default marker in COPY data / Column \"b\" has no default value. /  / COPY t, line 2: \"x\tD\"", copyin.Options{Default: ptr("D")}},
		{"csv default", "a= b=", "D,\"D\"\n", "DEFAULT|\"D\"|\n", copyin.Options{Format: copyin.CSV, Default: ptr("D")}},
		{"force null all", "a b", "\"\",\"x\"\n", "NULL|\"x\"|\n", copyin.Options{Format: copyin.CSV, ForceNullAll: true}},
		{"force not null all", "a b", ",x\n", "\"\"|\"x\"|\n", copyin.Options{Format: copyin.CSV, ForceNotNullAll: true}},
	} {
		if got := decode(t, strings.NewReader(test.data), copyin.Config{Columns: columns(test.columns), Options: test.options}); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// A row of the longest length is a row, however the data is cut, and one byte more is
// an error.
func TestRowLimit(t *testing.T) {
	const most = 100
	long := "54000 / out of memory / A row of COPY data is longer than 100 bytes. /  / COPY t, line 2"
	x := strings.Repeat("x", most)
	binary := func(n int) string {
		return "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00" + fmt.Sprintf("\x00\x01\x00\x00\x00%c", n) + strings.Repeat("x", n)
	}
	for _, test := range []struct {
		name, data, want string
		format           copyin.Format
	}{
		{"text", x + "\r\n" + x + "\r\n", fmt.Sprintf("%[1]q|\n%[1]q|\n", x), copyin.Text},
		{"text too long", x + "\n" + x + "x\n", fmt.Sprintf("%q|\n", x) + long, copyin.Text},
		{"text without an end", "\n" + strings.Repeat("x", 1<<20), "\"\"|\n" + long, copyin.Text},
		{"bad bytes behind the limit", "\n" + x + "x\xff", "\"\"|\n" + long, copyin.Text},
		{"csv", x[2:] + "\n\"" + x[2:] + "\"\n", fmt.Sprintf("%[1]q|\n%[1]q|\n", x[2:]), copyin.CSV},
		{"csv quotes", "\n\"" + x[1:] + "\"\n", "NULL|\n" + long, copyin.CSV},
		{"binary", binary(most - 6), fmt.Sprintf("%q|\n", x[6:]), copyin.Binary},
		{"binary too long", binary(most - 5), strings.Replace(long, "2", "1, column a", 1), copyin.Binary},
	} {
		for cut, r := range readers(test.data) {
			c := copyin.Config{Columns: columns("a"), Options: copyin.Options{Format: test.format}, RowBytesMax: most}
			if got := decode(t, r, c); got != test.want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", test.name, cut, got, test.want)
			}
		}
	}
}

// What the reader says ends the decoder, with the place where it happened.
func TestReaderErrors(t *testing.T) {
	fail := pgerr.New("57014", "COPY from stdin failed: no")
	for _, test := range []struct {
		name, data, want string
		format           copyin.Format
	}{
		{"text", "a\nb", "\"a\"|\n57014 / COPY from stdin failed: no /  /  / COPY t, line 2", copyin.Text},
		{"behind the marker", "a\n\\.\nb", "\"a\"|\n57014 / COPY from stdin failed: no /  /  / COPY t, line 2", copyin.Text},
		{"csv", "a\n\"b\r\n", "\"a\"|\n57014 / COPY from stdin failed: no /  /  / COPY t, line 3", copyin.CSV},
		{"binary header", "PGCOPY", "57014 / COPY from stdin failed: no /  /  / ", copyin.Binary},
	} {
		r := io.MultiReader(strings.NewReader(test.data), iotest.ErrReader(fail))
		if got := decode(t, r, copyin.Config{Columns: columns("a"), Options: copyin.Options{Format: test.format}}); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
	d, err := copyin.New(iotest.ErrReader(io.ErrUnexpectedEOF), copyin.Config{Columns: columns("a")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a lost client: %v", err)
	}
	stuck, _ := copyin.New(stuckReader{}, copyin.Config{Columns: columns("a")})
	if _, err := stuck.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that reads nothing: %v", err)
	}
}

type stuckReader struct{}

func (stuckReader) Read([]byte) (int, error) { return 0, nil }

// A caller that converts fields can tell an earlier one's error first, and where.
// TestStops: of data that is no client's nothing is read behind the end marker.
func TestStops(t *testing.T) {
	broken := iotest.ErrReader(pgerr.New("57014", "read on"))
	for _, stops := range []bool{true, false} {
		for _, format := range []copyin.Format{copyin.Text, copyin.CSV} {
			got := decode(t, io.MultiReader(strings.NewReader("a\n\\.\n\xff\n"), broken), copyin.Config{
				Columns: columns("x"), Options: copyin.Options{Format: format}, Stops: stops,
			})
			want := "\"a\"|\n"
			if !stops {
				want += "57014 / read on /  /  / COPY t, line 2"
			}
			if got != want {
				t.Errorf("%v, %v: %q, want %q", format, stops, got, want)
			}
		}
	}
}

func TestWhere(t *testing.T) {
	long := strings.Repeat("é", 60)
	d, err := copyin.New(strings.NewReader("1\t\\N\t"+long+"\n2\tx\n"), copyin.Config{Table: "t", Columns: columns("a b c")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Next(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"column a: \"1\"", "column b: null input", "column c: \"" + strings.Repeat("é", 50) + "...\""} {
		if got := d.Where(i); got != "COPY t, line 1, "+want {
			t.Errorf("%q", got)
		}
	}
	row, err := d.Next()
	if err == nil || len(row) != 2 || d.Line() != 2 || d.Where(1) != "COPY t, line 2, column b: \"x\"" {
		t.Errorf("%d fields, line %d, %v", len(row), d.Line(), err)
	}
}

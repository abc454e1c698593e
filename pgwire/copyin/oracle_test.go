package copyin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jeroenrinzema/psql-wire/codes"

	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/pgwire/pgerr"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

// dialect is a way to write data: SQL for PostgreSQL, options for us.
type dialect struct {
	sql     string
	options []copyin.Option
}

func with(sql string, options ...copyin.Option) dialect { return dialect{sql, options} }

func value(name, v string) copyin.Option { return copyin.Option{Name: name, Value: v} }

// corners are the lines and files that have ever been read in two ways.
var corners = []struct {
	columns  string
	dialects []dialect
	data     []string
}{
	{"a b", []dialect{
		with("(FORMAT text)"),
		with("(DELIMITER '|', NULL '')", value("delimiter", "|"), value("null", "")),
		with("(DELIMITER ',', NULL 'nil')", value("delimiter", ","), value("null", "nil")),
		with("(HEADER)", copyin.Option{Name: "header", Alone: true}),
		with("(HEADER match)", value("header", "match")),
		with("(NULL 'x\\')", value("null", `x\`)),
	}, []string{
		"", "\n", "a\tb\n", "a\tb", "a|b\n", "a,b\n", "a\tb\nc\td\n", "a\tb\n\n", "a\n", "a\tb\tc\n", "\t\n", "\\N\t\\N\n", "nil,\n", "nil|x\n",
		"|\n", ",\n", "\\\\N\tx\n", "\\NN\tx\n", "a\\tb\tx\\ny\\r\\b\\f\\v\n", "a\\\tb\tc\n", "a\\\nb\tc\n", "a\\|b|c\n", "a\\,b,c\n",
		"\\101\\7\\1018\t\\x41\\x4\\x4g\\xg\\x\n", "\\777\tx\n", "\\x00\tx\n", "\\0\tx\n", "\\303\\244\tx\n", "\\xc3\tx\n", "\\xe2\\x82\tx\n", "\\xe2\\x82\\xac\tx\n",
		"x\\\tx\n", "x\\", "a\tx\\", "a\t\\", "a|\\", "a,nil\\", "a\tb\r\nc\td\r\n", "a\tb\rc\td\r", "a\tb\r\nc\td\n", "a\tb\nc\td\r\n", "a\tb\rc\td\n", "a\tb\r\nc\rd\te\r\n",
		"a\tb\r\nc\td\r", "a\tb\r", "a\tb\r\n", "a\tb\n\\.\n", "a\tb\n\\.", "a\tb\n\\.x\n", "a\tb\n\\.\r\n", "a\tb\r\n\\.\r\n", "a\tb\r\n\\.\n", "a\tb\r\n\\.\r", "a\tb\r\n\\.\rx",
		"a\tb\r\n\\.", "a\tb\r\n\\.x", "a\tb\r\\.\r", "a\tb\r\\.\n", "\\.\n", "\\.\r\n", "\\.\r", "\\.", "a\tb\n\\.\nrest\xff\n", "a\tb\\.\n", "a\tb\\.\nc\td\n", "a\\.\n",
		"a\tb\n\\\\.\tx\n", "a\tb\xff\n", "\xff", "a\tb\nc\xe2\x82\n", "a\tb\nc\xe2\x82", "a\tb\n\xed\xa0\x80\n", "a\tb\n\xf4\x90\x80\x80\n", "a\tb\n\xc0\x80\n", "a\tb\nx\x00y\tz\n",
		"a\tb\nx\xe2\x00y\tz\n", "a\tb\n\xf0\x9f\x98\x80\tö\n", "a\xc3\n\tb\n", "a\tb\nc\r\xff", "b\ta\n", "a\t\\N\n", "A\tb\n", "a\tb\tc\nx\ty\n", "a\nx\ty\n", "a\tb\\\n\tc\n",
		"a\tb\n" + strings.Repeat("é", 70) + "\n", "a\tb\n" + strings.Repeat("x", 100) + "\n", "a\tb\n" + strings.Repeat("x", 101) + "\n", "\\\xc3\xa4\tx\n",
	}},
	{"a", []dialect{
		with("(FORMAT text)"), with("(FORMAT csv)", value("format", "csv")),
		with("(FORMAT csv, NULL 'x')", value("format", "csv"), value("null", "x")),
	}, []string{"\n", "\n\n", "a\n\nb\n", "x\n", "\"x\"\n", "\\N\n", "\"\"\n", "\\.\n", "\"\\.\"\n", "\\.x\n", "a\\.\n", ",\n", "\t\n", "\r\n\r\n", "\r\r", "\\\\.\n", "\\", "\"a\n\\.\nb\"\n"}},
	{"", []dialect{with("(FORMAT text)"), with("(FORMAT csv)", value("format", "csv"))}, []string{"", "\n", "\n\n", "x\n", ",\n", "\t\n", "\r\n", "\\.\n"}},
	{"a b", []dialect{
		with("(FORMAT csv)", value("format", "csv")),
		with("(FORMAT csv, HEADER)", value("format", "csv"), copyin.Option{Name: "header", Alone: true}),
		with("(FORMAT csv, HEADER match)", value("format", "csv"), value("header", "match")),
		with("(FORMAT csv, ESCAPE '\\')", value("format", "csv"), value("escape", `\`)),
		with("(FORMAT csv, QUOTE '\\')", value("format", "csv"), value("quote", `\`)),
		with("(FORMAT csv, QUOTE '''', DELIMITER ';', NULL 'nil')", value("format", "csv"), value("quote", "'"), value("delimiter", ";"), value("null", "nil")),
		with("(FORMAT csv, DELIMITER '\\')", value("format", "csv"), value("delimiter", `\`)),
		with("(FORMAT csv, FORCE_NOT_NULL (a))", value("format", "csv"), copyin.Option{Name: "force_not_null", List: []string{"a"}}),
		with("(FORMAT csv, FORCE_NULL (a, b))", value("format", "csv"), copyin.Option{Name: "force_null", List: []string{"a", "b"}}),
		with("(FORMAT csv, FORCE_NULL (a), FORCE_NOT_NULL (a), NULL 'n')", value("format", "csv"), copyin.Option{Name: "force_null", List: []string{"a"}}, copyin.Option{Name: "force_not_null", List: []string{"a"}}, value("null", "n")),
	}, []string{
		"", "\n", "a,b\n", "a,b", "a\n", "a,b,c\n", ",\n", "\"\",\"\"\n", "\"a,b\",c\n", "\"a\"\"b\",\"\"\"\"\n", "\"a\nb\",c\n", "a,b\n\"a\n\nb\",c\nd\n", "\"a\r\nb\",c\r\nd\r\n", "\"a\rb\",c\rd\r",
		"a,b\r\n\"a\r\nb\",c\r\nd\r\n", "a,b\n\"a\r\nb\",c\nd\n", "a,b\r\"a\rb\",c\rd\r", "a,\"b\n", "a,\"b", "a,\"b\"c\"d\"\n", "x\"y\"z,\"\"w\n", "'a;b';c\n", "'a''b';nil\n", "'nil';x\n", "n,x\n", "\"n\",x\n",
		"\"a\\\"b\",c\n", "\"a\\\\\",c\n", "\"a\\\\\"b\",c\n", "\"a\\nb\",c\n", "a\\\"b,c\n", "\"a\\\nb\",c\n", "\\a\\,b\n", "\\a\\\\b\\,b\n", "\\.\n", "a,b\n\\.\n", "a,b\n\\.", "a,b\n\\.x,y\n", "a,b\n\\.\r\n", "a,b\r\n\\.\r\n",
		"a,b\r\n\\.\n", "a,b\r\n\\.\r", "a,b\r\n\\.x,y\r\n", "a,b\r\n\\.", "a,b\r\\.\r", "a,b\r\\.\n", "a,b\n\\.\nrest\xff", "a,\\.\n", "\"\\.\",b\n", "a,b\nc\r,d\n", "a,b\r\nc\n,d\r\n", "a,b\rc\n,d\r",
		"a,b\r\nc,d\r", "a,b\nc\rd\n", "a,b\r\nc\rd,e\r\n", "a,\xff\n", "a,b\n\"x\n\xff", "a,b\n\"x\r\xff", "a,b\nx\x00\n", "\"a,b\n\xc3", "b,a\n", "\"a\",\"b\"\nx,y\n", "a,\nx,y\n", "a,b,c\nx,y\n", "\"a\n\"\",b\n", "a b\n", " a , \"b\" \n",
		"\"a\",b\"\n", "a,b\n" + strings.Repeat("é", 70) + ",\"", "a;b\n", "ab\\cd\n", "a\\b\n",
	}},
	{"a b", []dialect{with("(FORMAT binary)", value("format", "binary"))}, binaryCorners()},
}

func binaryCorners() []string {
	const signature = "PGCOPY\n\xff\r\n\x00"
	const plain = signature + "\x00\x00\x00\x00\x00\x00\x00\x00"
	const row = "\x00\x02\x00\x00\x00\x01x\xff\xff\xff\xff"
	return []string{
		"", "PGCOPY", "PGCOPY\n\xff\r\n\x01\x00\x00\x00\x00\x00\x00\x00\x00", signature, signature + "\x00\x00", signature + "\x00\x01\x00\x00\x00\x00\x00\x00", signature + "\x00\x02\x00\x00\x00\x00\x00\x00",
		signature + "\x80\x00\x00\x00\x00\x00\x00\x00", signature + "\x00\x00\xff\xff\x00\x00\x00\x00" + row, signature + "\x00\x00\x00\x00", signature + "\x00\x00\x00\x00\x00\x00", signature + "\x00\x00\x00\x00\xff\xff\xff\xff",
		signature + "\x00\x00\x00\x00\x00\x00\x00\x05abc", signature + "\x00\x00\x00\x00\x00\x00\x00\x05abcde" + row, plain, plain + "\x00", plain + "\xff\xff", plain + "\xff\xff\x00", plain + row, plain + row + "\xff\xff", plain + row + row + "\x00",
		plain + row + "\xff\xffx", plain + "\x00\x01\x00\x00\x00\x01x", plain + "\x00\x00", plain + "\xff\xfe", plain + "\x00\x03", plain + row + "\x00\x02\x00\x00\x00", plain + row + "\x00\x02\x00\x00\x00\x05abc", plain + row + "\x00\x02\x00\x00\x00\x01x",
		plain + row + "\x00\x02\x00\x00\x00\x01x\x00\x00", plain + "\x00\x02\xff\xff\xff\xfe", plain + "\x00\x02\x00\x00\x00\x01x\x80\x00\x00\x00", plain + "\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00",
		plain + row + "\x00\x02\x00\x00\x00\x01x\x7f\xff\xff\xff",
	}
}

// Every corner is read as PostgreSQL reads it: rows, or code, message and place.
func TestAgainstPostgres(t *testing.T) {
	c, err := pgconn.Connect(context.Background(), pgtest.Start(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	ran := 0
	for _, group := range corners {
		var typed []string
		for _, n := range strings.Fields(group.columns) {
			typed = append(typed, n+" text")
		}
		ask(t, c, "DROP TABLE IF EXISTS t")
		ask(t, c, "CREATE TEMP TABLE t ("+strings.Join(typed, ", ")+")")
		for _, d := range group.dialects {
			options, err := copyin.Parse(d.options)
			if err != nil {
				t.Fatalf("%s: %v", d.sql, err)
			}
			for _, data := range group.data {
				if twice(d.sql, data) {
					continue
				}
				want := fromPostgres(t, c, d.sql, data)
				for cut, r := range readers(data) {
					got := decode(t, r, copyin.Config{Columns: columns(group.columns), Options: options})
					if e := strings.LastIndex(got, "\n"); strings.Contains(want, " / ") {
						got = got[e+1:] // PostgreSQL's rows before an error are not to be seen
					}
					if !same(got, want) {
						t.Errorf("%s %q, %s:\n%s\nPostgreSQL:\n%s", d.sql, data, cut, got, want)
					}
				}
				ran++
			}
		}
	}
	t.Logf("%d copies", ran)
}

// twice is where PostgreSQL looks at a quote twice, since its buffer ends behind it.
func twice(sql, data string) bool {
	return sql == `(FORMAT csv, QUOTE '\')` && data == "a,b\r\n\\.\r"
}

// same compares what is to be equal: of a field beyond the limit, the code.
func same(got, want string) bool {
	const large = "54000 / "
	return got == want || strings.HasPrefix(got, large) && strings.HasPrefix(want, large)
}

func ask(t *testing.T, c *pgconn.PgConn, sql string) *pgconn.Result {
	t.Helper()
	r, err := c.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return r[0]
}

func fromPostgres(t *testing.T, c *pgconn.PgConn, options, data string) string {
	t.Helper()
	ask(t, c, "TRUNCATE t")
	_, err := c.CopyFrom(context.Background(), strings.NewReader(data), "COPY t FROM STDIN "+options)
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return problem(&pgerr.Error{Code: codes.Code(e.Code), Message: e.Message, Detail: e.Detail, Hint: e.Hint, Where: e.Where})
	}
	if err != nil {
		t.Fatalf("COPY %s of %q: %v", options, data, err)
	}
	var b strings.Builder
	for _, row := range ask(t, c, "SELECT * FROM t ORDER BY ctid").Rows {
		for _, f := range row {
			if f == nil {
				b.WriteString("NULL|")
			} else {
				fmt.Fprintf(&b, "%q|", f)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

package copyin_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/copyin"
	"github.com/skipprd/skipprd/sqltests/pgtest"
)

func alone(name string) copyin.Option { return copyin.Option{Name: name, Alone: true} }

func star(name string) copyin.Option { return copyin.Option{Name: name, Star: true} }

func list(name string, names ...string) copyin.Option {
	return copyin.Option{Name: name, List: names}
}

// Options are accepted and refused as PostgreSQL does.
func TestOptionsAgainstPostgres(t *testing.T) {
	c, err := pgconn.Connect(context.Background(), pgtest.Start(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	ask(t, c, "CREATE TEMP TABLE t (a text, b text)")
	csv, binary := value("format", "csv"), value("format", "binary")
	for _, d := range []dialect{
		with("(FORMAT text)", value("format", "text")), with("(FORMAT xml)", value("format", "xml")),
		with("(FORMAT csv, FORMAT csv)", csv, csv),
		with("(NULL 'a', NULL 'b')", value("null", "a"), value("null", "b")),
		with("(nonsense 'a')", value("nonsense", "a")),
		with("(FREEZE off)", value("freeze", "off")), with("(FREEZE maybe)", value("freeze", "maybe")),
		with("(HEADER on)", value("header", "on")), with("(HEADER 1)", value("header", "1")), with("(HEADER 2)", value("header", "2")),
		with("(HEADER 'MATCH')", value("header", "MATCH")), with("(HEADER yes)", value("header", "yes")), with("(HEADER False)", value("header", "false")),
		with("(FORMAT binary, HEADER)", binary, alone("header")), with("(FORMAT binary, HEADER false)", binary, value("header", "false")),
		with("(FORMAT binary, DELIMITER ',')", binary, value("delimiter", ",")), with("(FORMAT binary, NULL '')", binary, value("null", "")),
		with("(FORMAT binary, QUOTE '\"')", binary, value("quote", `"`)), with("(FORMAT binary, FORCE_NULL (a))", binary, list("force_null", "a")),
		with("(DELIMITER '')", value("delimiter", "")), with("(DELIMITER 'ab')", value("delimiter", "ab")), with("(DELIMITER 'ä')", value("delimiter", "ä")),
		with("(DELIMITER E'\\n')", value("delimiter", "\n")), with("(DELIMITER E'\\r')", value("delimiter", "\r")),
		with("(DELIMITER 'a')", value("delimiter", "a")), with("(DELIMITER 'A')", value("delimiter", "A")), with("(DELIMITER '0')", value("delimiter", "0")),
		with("(DELIMITER '.')", value("delimiter", ".")), with("(DELIMITER '\\')", value("delimiter", `\`)),
		with("(FORMAT csv, DELIMITER 'a')", csv, value("delimiter", "a")), with("(FORMAT csv, DELIMITER '\"')", csv, value("delimiter", `"`)),
		with("(FORMAT csv, QUOTE ',')", csv, value("quote", ",")), with("(FORMAT csv, QUOTE '')", csv, value("quote", "")),
		with("(FORMAT csv, QUOTE E'\\n')", csv, value("quote", "\n")),
		with("(QUOTE '''')", value("quote", "'")), with("(ESCAPE '''')", value("escape", "'")),
		with("(FORMAT csv, ESCAPE 'ab')", csv, value("escape", "ab")), with("(FORMAT csv, ESCAPE ',')", csv, value("escape", ",")),
		with("(NULL E'a\\n')", value("null", "a\n")), with("(NULL E'a\\tb')", value("null", "a\tb")), with("(FORMAT csv, NULL ',')", csv, value("null", ",")),
		with("(FORMAT csv, NULL 'a\"')", csv, value("null", `a"`)), with("(NULL 'a\"')", value("null", `a"`)),
		with("(FORCE_NULL (a))", list("force_null", "a")), with("(FORCE_NOT_NULL (a))", list("force_not_null", "a")), with("(FORCE_QUOTE (a))", list("force_quote", "a")),
		with("(FORMAT csv, FORCE_QUOTE *)", csv, star("force_quote")), with("(FORMAT csv, FORCE_QUOTE (a))", csv, list("force_quote", "a")),
		with("(FORMAT csv, FORCE_NULL 'a')", csv, value("force_null", "a")), with("(FORMAT csv, FORCE_NOT_NULL)", csv, alone("force_not_null")),
		with("(FORMAT csv, FORCE_NULL (a, b), FORCE_NOT_NULL (a))", csv, list("force_null", "a", "b"), list("force_not_null", "a")),
		with("(ENCODING 'utf8')", value("encoding", "utf8")), with("(ENCODING 'UTF-8')", value("encoding", "UTF-8")), with("(ENCODING 'unicode')", value("encoding", "unicode")), with("(ENCODING 'no such')", value("encoding", "no such")),
	} {
		options, err := copyin.Parse(d.options)
		if err == nil {
			_, err = copyin.New(strings.NewReader(""), copyin.Config{Columns: columns("a b"), Options: options})
		}
		got := ""
		if err != nil {
			got = problem(err)
		}
		if want := refusal(t, c, "COPY t FROM STDIN "+d.sql); got != want {
			t.Errorf("%s:\n%s\nPostgreSQL:\n%s", d.sql, got, want)
		}
		got = ""
		if _, err := copyin.ParseTo(d.options); err != nil {
			got = problem(err)
		}
		if want := refusal(t, c, "COPY t TO STDOUT "+d.sql); got != want {
			t.Errorf("to, %s:\n%s\nPostgreSQL:\n%s", d.sql, got, want)
		}
	}
}

// refusal is the code and message of PostgreSQL's error before any data, or nothing.
func refusal(t *testing.T, c *pgconn.PgConn, sql string) string {
	t.Helper()
	var err error
	if strings.Contains(sql, " TO ") {
		_, err = c.CopyTo(context.Background(), io.Discard, sql)
	} else {
		_, err = c.CopyFrom(context.Background(), strings.NewReader(""), sql)
	}
	var e *pgconn.PgError
	switch {
	case err == nil || errors.As(err, &e) && (strings.Contains(e.Message, "signature") || strings.Contains(e.Message, "header line")):
		return ""
	case e == nil:
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join([]string{e.Code, e.Message, e.Detail, e.Hint, ""}, " / ")
}

// Options that PostgreSQL 15 does not have, or that we refuse.
func TestOtherOptions(t *testing.T) {
	csv := value("format", "csv")
	for _, test := range []struct {
		options []copyin.Option
		want    string
	}{
		{[]copyin.Option{value("default", "D")}, ""},
		{[]copyin.Option{value("default", "\n")}, "22023 / COPY default representation cannot use newline or carriage return"},
		{[]copyin.Option{value("default", "\t")}, "0A000 / COPY delimiter must not appear in the DEFAULT specification"},
		{[]copyin.Option{csv, value("default", `"`)}, "0A000 / CSV quote character must not appear in the DEFAULT specification"},
		{[]copyin.Option{csv, value("default", "")}, "0A000 / NULL specification and DEFAULT specification cannot be the same"},
		{[]copyin.Option{value("format", "binary"), value("default", "D")}, "42601 / cannot specify DEFAULT in BINARY mode"},
		{[]copyin.Option{csv, star("force_null"), star("force_not_null")}, ""},
		{[]copyin.Option{value("encoding", "latin1")}, ""},
		{[]copyin.Option{csv, list("force_null", "c")}, "42P10 / FORCE_NULL column \"c\" not referenced by COPY"},
		{[]copyin.Option{csv, list("force_not_null", "c")}, "42P10 / FORCE_NOT_NULL column \"c\" not referenced by COPY"},
	} {
		options, err := copyin.Parse(test.options)
		if err == nil {
			_, err = copyin.New(strings.NewReader(""), copyin.Config{Columns: columns("a b"), Options: options})
		}
		got := ""
		if err != nil {
			got = problem(err)
		}
		if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%v: %s, want %s", test.options, got, test.want)
		}
	}
}

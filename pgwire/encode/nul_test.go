package encode_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/skipprd/skipprd/pgwire/encode"
)

// TestNulAgainstPostgres: no text has the byte 0, in whatever form and for whatever type it
// comes; of bytes it is one like others. The errors are PostgreSQL's. (The engine reads what a
// jsonb escapes.)
func TestNulAgainstPostgres(t *testing.T) {
	c := postgres(t)
	const one = "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x19\x00\x00\x00\x01\x00\x00\x00\x01" // an array of one text
	for _, test := range []struct {
		name   string
		oid    uint32
		format int16
		value  string
	}{
		{"text", 25, 0, "a\x00b"},
		{"text", 25, 0, "\x00"},
		{"text", 25, 1, "a\x00b"},
		{"text", 25, 1, "a\x00"},
		{"varchar", 1043, 1, "\x00"},
		{"bpchar", 1042, 1, "\x00"},
		{"name", 19, 1, "a\x00b"},
		{"text[]", 1009, 0, "{a\x00b}"},
		{"text[]", 1009, 1, one + "\x00\x00\x00\x03a\x00b"},
		{"int4", 23, 0, "1\x00"},
		{"json", 114, 0, "\"\x00\""},
		{"json", 114, 1, "\"\x00\""},
		{"json", 114, 0, `"\u0000"`},
		{"jsonb", 3802, 0, "\"\x00\""},
		{"jsonb", 3802, 1, "\x01\"\x00\""},
		{"jsonb", 3802, 0, `"\\u0000"`},
		{"bytea", 17, 0, "a\x00b"},
		{"bytea", 17, 0, `\x610062`},
		{"bytea", 17, 0, `a\000b`},
		{"bytea", 17, 1, "a\x00b"},
	} {
		r := c.ExecParams(context.Background(), "SELECT $1::"+test.name, [][]byte{[]byte(test.value)}, []uint32{test.oid}, []int16{test.format}, nil).Read()
		_, err := encode.DecodeParam(test.oid, test.format, []byte(test.value))
		var want *pgconn.PgError
		switch {
		case !errors.As(r.Err, &want) && r.Err != nil:
			t.Fatal(r.Err)
		case (want == nil) != (err == nil):
			t.Errorf("%s %d %q: %v, PostgreSQL: %v", test.name, test.format, test.value, err, r.Err)
		case want != nil && (string(err.Code) != want.Code || err.Message != want.Message):
			t.Errorf("%s %d %q: %s %q, PostgreSQL: %s %q", test.name, test.format, test.value, err.Code, err.Message, want.Code, want.Message)
		}
	}
}

package encode_test

import (
	"context"
	"testing"

	"github.com/skipprd/skipprd/pgwire/encode"
)

// oddInputs are texts that a human may write and a parser may trip over.
var oddInputs = []struct {
	name  string
	oid   uint32
	texts []string
}{
	{"date", 1082, []string{"2024-2-9", "99-01-08", "Jan-08-1999", "08-Jan-99", "990108", "1999.008", "J2451187", "1999-Jan-08", "19990108T040506", "2024/02/29", "2024.02.29", "12.31.2024", "8 Jan 1999 AD", "1999 Jan 8", "Jan 8 99", "monday 2024-02-29", "0001-01-01", "0000-01-01", "2024-02-29 BC", "4713-01-01 BC", "4714-01-01 BC", "5874897-12-31", "5874898-01-01", "12024-01-01", "2024-02-29abc", "2024-02", "2024", "20240230", "1/1/24", "1-1-24", "1-1-2024", "24-1-1", "2024-1-1 junk", "now now", "+2024-01-01", "-2024-01-01", "2024-01-01,", "Jan\"5 1999", "Jan'5 99", "5;Jan;1999", "[1999-01-05]", "1999-01-05|bc", ";", "1999-01;05", "Jan é5 1999", "1999;01;05"}},
	{"timestamp", 1114, []string{"2024-02-29 04:05:06 AM", "20240229T040506", "20240229 040506", "Thu Jan 08 04:05:06 1999 PST", "2024-02-29T04:05", "2024-02-29 4:5", "2024-02-29 4:05:6", "2024-02-29 04:05:06.", "2024-02-29 04:05:06,5", "2024-02-29 12:00 AM", "2024-02-29 13:00 PM", "2024-02-29 allballs", "2024-02-29 04:05:60", "2024-02-29 04:60", "04:05 2024-02-29", "2024-02-29 04:05 +02", "2024-02-29 04:05+2:30", "2024-02-29 04:05+0230", "2024-02-29 04:05-15:59:59", "2024-02-29 04:05-16", "294276-12-31 23:59:59", "294277-01-01", "2024-02-29 T 04:05", "2024-02-29 04:05:06.999999999", "2024-02-29 24:00:01", "2024-02-29t04:05:06z", "1999-01-08 04:05:06 -8:00", "1999-01-08 04:05:06-08:00:00", "2024-02-29 04", "2024-02-29 04:05:06 utc", "2024-02-29 04:05:06 UTC+3", "2024-02-29 04:05:06 America/New_York", "2024-02-29 04:05:06 cest", "2024-02-29 04:05:06 foo", "2024-02-29;04:05:06", "2024-02-29 04:05:06 (America/New_York)", "2024-02-29 -;3", "2024-02-29 04;05"}},
	{"time", 1083, []string{"040506", "04:05:06 PM", "4:5", "0405", "allballs", "now1", "2024-01-01 04:05:06", "2024-01-01", "04:05:06-08", "25:00", "T040506", "04:05:06.5 pst", "1:02:03.4567891"}},
	{"interval", 1186, []string{"1 day 1 day", "1 years 2 months", "1.5 years", "0.5 mons", "1.25 weeks", "-1.5 days", "1 d 2 h 3 m 4 s", "P0001-02-03T04:05:06", "P1.5D", "PT1.5H", "-P1D", "P-1D", "1 day -2 hours", "+1 day", "1:02", "1:02:03.5", "-1:02", "1 day 1:02", "2:30.5", "1000000 hours", "1 mil", "1 century 1 decade", "ago", "", "day", "1 day 1", "infinity", "1e3 days", "1 day 2:03 ago", "'1 day'", "1 quarter", "-1-2", "+1-2 -3 +4:05:06", "1 us", "1.5 ms", "0.0000015 s", "1 month 0.5 day", "P1M", "P1Y", "PT36H", "PT", "P"}},
	{"numeric", 1700, []string{"+1", "1.", ".1", ".", "-", "1e", "1e+", "1e+5", "1e-5", " 1 ", "1 2", "0x10", "nan", "-nan", "+nan", "inf", "infinit", "1_000", "1e131072", "1e-16384", "1e131071"}},
	{"float8", 701, []string{"+1", "1.", ".1", ".", "0x10", "nan", "-nan", "inf", "infin", "1e308", "1e309", "1d5", "1f", "1e-400", "-0"}},
	{"bool", 16, []string{"o", "onn", "TRUE ", "ye", "n", "2", "10", "\tt"}},
	{"int4", 23, []string{"+ 1", "--1", "0x1", "1e3", "00012", "1 ", "\n1", "1_0"}},
	{"uuid", 2950, []string{"a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0eebc-999c0b4ef8bb6d6bb9bd380a11"}},
	{"int4[]", 1007, []string{"{1,2", "{1,,2}", "{,}", "{ }", "[1:2]={1,2}", "[1:3]={1,2}", "{{1,2},3}", "{{},{}}", "{1}x", "{\"1\"}", "{null}", "{{null}}", "{1;2}", "{{{1}}}"}},
	{"text[]", 1009, []string{`{a b}`, `{a"b}`, `{"a"b}`, `{a\"b}`, `{"a\\b"}`, `{ a , b }`, `{nul\l}`, `{a}}`, `{"a}`, "{\"\"}"}},
	{"bytea", 17, []string{`\x 0`, `\X00`, `\000`, `\400`, `\\`, `a\b`, `\x00 01`}},
	{"json", 114, []string{`{"a":1,}`, `nul`, ` null `, `"\u0000"`, `[1,2]`, `01`, `1.`, ``}},
	{"inet", 869, []string{"10.0.0.1/24", "10.0", "::ffff:1.2.3.4", "10.0.0.1/33", "fe80::1%eth0", "10.0.0.1 "}},
}

// knownDeviations are inputs that we read otherwise than PostgreSQL, knowingly.
var knownDeviations = map[string]string{
	"1999.008": "day of the year", "J2451187": "Julian day", "monday 2024-02-29": "weekdays are not checked",
	"04:05 2024-02-29": "order of the fields", "294276-12-31 23:59:59": "beyond the engine's range",
	"2024-02-29 04:05:06 UTC+3": "POSIX zone", "1 day 1 day": "a unit twice adds up", "P0001-02-03T04:05:06": "ISO alternative form",
	"'1 day'": "stray quotes", "0.0000015 s": "rounding of half a microsecond", "PT": "empty ISO interval", "0x10": "hexadecimal float",
	"-nan": "signed NaN", "{{},{}}": "empty sub-arrays", "1999;01;05": "three numbers in fields of their own",
	"{{null}}": "two dimensions", "{{{1}}}": "three dimensions",
}

// Both must accept or refuse, and accepted values must be the same.
func TestOddInputsAgainstPostgres(t *testing.T) {
	c := postgres(t)
	set(t, c, "TimeZone", "UTC")
	for _, test := range oddInputs {
		for _, text := range test.texts {
			if knownDeviations[text] != "" {
				continue
			}
			r := c.ExecParams(context.Background(), "SELECT $1::"+test.name, [][]byte{[]byte(text)}, nil, nil, []int16{1}).Read()
			got, err := encode.DecodeParam(test.oid, 0, []byte(text))
			switch {
			case (r.Err == nil) != (err == nil):
				t.Errorf("%s %q: %q, %v, PostgreSQL: %v", test.name, text, got, err, r.Err)
			case r.Err == nil:
				if want, err := encode.DecodeParam(test.oid, 1, r.Rows[0][0]); err != nil || want != got {
					t.Errorf("%s %q: %q, PostgreSQL %q, %v", test.name, text, got, want, err)
				}
			}
		}
	}
}

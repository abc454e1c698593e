package recode

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/skipprd/skipprd/pgwire"
)

// TestReader: whatever pieces the data comes in, all before what cannot be converted is read.
func TestReader(t *testing.T) {
	c, err := Of("WIN1252", true)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("\x80\xe9x", chunkBytes)
	for _, test := range []struct{ in, want, problem string }{
		{"", "", ""},
		{"a\xe9\n", "aé\n", ""},
		{long, strings.Repeat("€éx", chunkBytes), ""},
		{"a\xe9\x81b", "aé", `character with byte sequence 0x81 in encoding "WIN1252" has no equivalent in encoding "UTF8"`},
		{"a\x00b", "a", `invalid byte sequence for encoding "WIN1252": 0x00`},
	} {
		for name, from := range map[string]io.Reader{
			"whole": strings.NewReader(test.in), "halves": iotest.HalfReader(strings.NewReader(test.in)),
			"end with data": iotest.DataErrReader(strings.NewReader(test.in)),
		} {
			got, err := io.ReadAll(iotest.OneByteReader(c.Reader(from)))
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if string(got) != test.want || !strings.Contains(problem, test.problem) || (problem == "") != (test.problem == "") {
				t.Errorf("%s: %.20q: %.20q, %s", name, test.in, got, problem)
			}
		}
	}
}

type collected struct {
	pgwire.Sink
	data string
}

func (c *collected) CopyData(messages []byte, _ int) error {
	c.data += string(messages)
	return nil
}

func TestSink(t *testing.T) {
	c, err := Of("LATIN9", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ in, want, problem string }{
		{"d\x00\x00\x00\x06a\n", "d\x00\x00\x00\x06a\n", ""},
		{"d\x00\x00\x00\x08a€d\x00\x00\x00\x05b", "d\x00\x00\x00\x06a\xa4d\x00\x00\x00\x05b", ""},
		{"d\x00\x00\x00\x07語", "", `character with byte sequence 0xe8 0xaa 0x9e in encoding "UTF8" has no equivalent in encoding "LATIN9"`},
		{"d\x00\x00\x00\x09é", "", "unexpected EOF"},
		{"d\x00\x00\x00\x02é", "", "unexpected EOF"},
		{"\xffd", "", "unexpected EOF"},
	} {
		out := &collected{}
		err := c.Sink(out).CopyData([]byte(test.in), 1)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if out.data != test.want || !strings.Contains(problem, test.problem) || (problem == "") != (test.problem == "") {
			t.Errorf("%q: %q, %s", test.in, out.data, problem)
		}
	}
}

// TestOf: what PostgreSQL does not convert is refused in its words, and what it takes as it is is
// not converted.
func TestOf(t *testing.T) {
	if _, err := Of("MULE_INTERNAL", true); err == nil || !strings.Contains(err.Error(), `default conversion function for encoding "MULE_INTERNAL" to "UTF8" does not exist`) {
		t.Error(err)
	}
	for _, name := range []string{"UTF8", "SQL_ASCII"} {
		if c, err := Of(name, true); c != nil || err != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

// TestReaderCut: characters of several bytes are whole wherever the data is cut.
func TestReaderCut(t *testing.T) {
	for _, test := range []struct{ encoding, in, want, problem string }{
		{"EUC_JP", "\xc6\xfc\xcb\xdc\x8f\xb0\xa1x", "日本丂x", ""},
		{"GB18030", "\x90\x30\x81\x30a\x81\x30\x84\x36", "\U00010000a¥", ""},
		{"SJIS", "\x95\x5c\n\x83\x5c", "表\nソ", ""},
		{"SJIS", "a\x95", "a", `invalid byte sequence for encoding "SJIS": 0x95`},
		{"GB18030", "a\x81\x30\x84", "a", `invalid byte sequence for encoding "GB18030": 0x81 0x30 0x84`},
		{"EUC_JP", "a\xc6(", "a", `invalid byte sequence for encoding "EUC_JP": 0xc6 0x28`},
	} {
		c, err := Of(test.encoding, true)
		if err != nil {
			t.Fatal(err)
		}
		for name, from := range map[string]io.Reader{
			"whole": strings.NewReader(test.in), "bytes": iotest.OneByteReader(strings.NewReader(test.in)),
			"end with data": iotest.DataErrReader(iotest.OneByteReader(strings.NewReader(test.in))),
		} {
			got, err := io.ReadAll(c.Reader(from))
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if string(got) != test.want || !strings.Contains(problem, test.problem) || (problem == "") != (test.problem == "") {
				t.Errorf("%s %s: %q: %q, %s", test.encoding, name, test.in, got, problem)
			}
		}
	}
}

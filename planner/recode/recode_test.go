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
	c, err := Of("WIN1252")
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
	c, err := Of("LATIN9")
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

// TestOf: characters of several bytes are refused, by the name that was asked for.
func TestOf(t *testing.T) {
	for _, name := range []string{"EUC_JP", "SJIS", "GB18030", "MULE_INTERNAL"} {
		if _, err := Of(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

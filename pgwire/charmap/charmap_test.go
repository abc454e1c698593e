package charmap

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIsASCII(t *testing.T) {
	for n := range 20 {
		b := []byte(strings.Repeat("\x7f", n))
		if !IsASCII(b) {
			t.Errorf("%d bytes are not ASCII", n)
		}
		for i := range b {
			b[i] = 0x80
			if IsASCII(b) {
				t.Errorf("%d bytes with 0x80 at %d are ASCII", n, i)
			}
			b[i] = 'x'
		}
	}
}

// FuzzDecode: what is decoded is UTF-8; where there is an error, what is before it converts by
// itself, and a text that may have been cut does not become another one.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("a\x8e\xa1\xa1\xa1\xff"))
	f.Add([]byte("\x8f\xa1"))
	f.Add([]byte("\x90\x30\x81\x30x"))
	f.Add([]byte("か゚x"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range []string{"EUC_TW", "EUC_JIS_2004", "JOHAB", "SJIS", "UHC", "GB18030", "WIN1252"} {
			c, err := Of(name)
			if err != nil {
				t.Fatal(err)
			}
			out, problem := c.Decode(nil, in)
			if !utf8.Valid(out) {
				t.Fatalf("%s: %x: %x", name, in, out)
			}
			if problem != nil {
				again, other := c.Decode(nil, in[:problem.At])
				if !bytes.Equal(again, out) || other != nil || !bytes.HasPrefix(in[problem.At:], problem.Bytes) {
					t.Fatalf("%s: %x: %x, %+v", name, in, again, problem)
				}
			}
			if size, _ := c.Size(append(in[:len(in):len(in)], 'x')); size < 1 {
				t.Fatalf("%s: %x: size %d", name, in, size)
			}
			coded, problem := c.Encode(nil, in)
			if problem == nil && !utf8.Valid(in) || problem != nil && problem.Invalid && utf8.Valid(in) && !bytes.Contains(in, []byte{0}) {
				t.Fatalf("%s: %x: %x, %v", name, in, coded, problem)
			}
		}
	})
}

func TestOf(t *testing.T) {
	for _, name := range []string{UTF8, "SQL_ASCII", "MULE_INTERNAL", ""} {
		if c, err := Of(name); c != nil || err != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

func TestParse(t *testing.T) {
	for _, packed := range []string{"", "\x01", "\x02", "\x02\xff\xff"} {
		if _, _, err := parse([]byte(packed)); err == nil {
			t.Errorf("%x was read", packed)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, text := range map[string]string{"EUC_JP": strings.Repeat("日本", 25), "LATIN1": strings.Repeat("größe", 20)} {
		c, err := Of(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var out []byte
			for b.Loop() {
				out, _ = c.Encode(out[:0], []byte(text))
			}
		})
	}
}

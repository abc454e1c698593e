package charset_test

import (
	"strings"
	"testing"

	"github.com/skipprd/skipprd/ingest/deadletter"
	"github.com/skipprd/skipprd/ingest/postgres/charset"
)

func of(t testing.TB, name string) *charset.Charset {
	t.Helper()
	c, err := charset.Of(name)
	if err != nil || c == nil {
		t.Fatalf("%s: %v, %v", name, c, err)
	}
	return c
}

func TestOf(t *testing.T) {
	for _, name := range []string{"UTF8", "SQL_ASCII", "MULE_INTERNAL", "SJIS", ""} {
		if c, err := charset.Of(name); c != nil || err != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, c := range []struct{ encoding, in, want, name, why string }{
		{"LATIN1", "", "", "", ""},
		{"LATIN1", "gr\xf6\xdfe", "größe", "größe", ""},
		{"WIN1252", "\x80", "€", "€", ""},
		{"WIN1252", "a\x81\xe9", "\xffa\x81\xe9", "a\uFFFDé", "0x81 of encoding WIN1252"},
		{"WIN1252", "\xc2\x81", "\xff\xc2\x81", "Â\uFFFD", "0x81 of"}, // as bytes it is UTF-8
		{"EUC_JP", "\xc6\xfc\xcb\xdc\x8e\xc3x", "日本ﾃx", "日本ﾃx", ""},
		{"EUC_JP", "\x8f\xb0\xa1", "丂", "丂", ""},
		{"EUC_JP", "\xa1\xa2\xa9\xa1", "\xff\xa1\xa2\xa9\xa1", "、\uFFFD", "0xa9a1 of"},
		{"EUC_JP", "x\xc6", "\xffx\xc6", "x\uFFFD", "0xc6 of"},        // cut
		{"EUC_JP", "\x8f\xb0", "\xff\x8f\xb0", "\uFFFD", "0x8fb0 of"}, // cut
		{"EUC_JP", "\xc6xy", "\xff\xc6xy", "\uFFFDxy", "0xc6 of"},     // not of the encoding
		{"EUC_JIS_2004", "\xa4\xf7", "か゚", "か゚", ""},                  // two code points
		{"EUC_TW", "\x8e\xa1\xc4\xe3\xc4\xe3", "中中", "中中", ""},
		{"EUC_TW", "\x8e\xa8\xa1\xa1", "\xff\x8e\xa8\xa1\xa1", "\uFFFD\uFFFD\uFFFD", "0x8e of"},
	} {
		e := of(t, c.encoding)
		got := e.Append([]byte("before "), []byte(c.in))
		if string(got) != "before "+c.want {
			t.Errorf("%s %x: %q, want %q", c.encoding, c.in, got, c.want)
		}
		if name := e.String(c.in); name != c.name {
			t.Errorf("%s %x as a name: %q, want %q", c.encoding, c.in, name, c.name)
		}
		if c.why != "" {
			if why := e.Explain([]byte(c.want)); !strings.Contains(why.Class, c.why) || why.Code != deadletter.CodeNoUTF8 {
				t.Errorf("%s %x: %+v", c.encoding, c.in, why)
			}
		}
	}
}

func TestLonger(t *testing.T) {
	for _, c := range []struct{ encoding, text string }{
		{"WIN1252", "\x80\x80x"},
		{"EUC_JP", "\xc6\xfc\xcb\xdc\x8e\xc3x"},
		{"EUC_JIS_2004", "\xa4\xf7"},
		{"EUC_TW", "\x8e\xa1\xc4\xe3y"},
		{"LATIN1", "\xf6\xdf"},
		{"LATIN1", "plain"},
	} {
		e := of(t, c.encoding)
		n := len(e.Append(nil, []byte(c.text)))
		if e.Longer([]byte(c.text), n) || !e.Longer([]byte(c.text), n-1) {
			t.Errorf("%s %x: it has %d bytes", c.encoding, c.text, n)
		}
	}
}

// FuzzAppend: whatever the bytes, the result is UTF-8, or the bytes behind the mark.
func FuzzAppend(f *testing.F) {
	all := []*charset.Charset{of(f, "EUC_TW"), of(f, "EUC_JIS_2004"), of(f, "EUC_KR"), of(f, "WIN1252")}
	f.Add([]byte("a\x8e\xa1\xa1\xa1\xff"))
	f.Add([]byte("\x8f\xa1"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, c := range all {
			out := c.Append(nil, in)
			if len(out) > 0 && out[0] == charset.Mark {
				if string(out[1:]) != string(in) {
					t.Fatalf("%x: %x", in, out)
				}
				_ = c.Explain(out)
			} else if strings.ToValidUTF8(string(out), "") != string(out) {
				t.Fatalf("%x: %x", in, out)
			}
			_ = c.String(string(in))
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for name, text := range map[string]string{"EUC_JP": strings.Repeat("\xc6\xfc\xcb\xdc", 25), "LATIN1": strings.Repeat("gr\xf6\xdfe", 20)} {
		c := of(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var out []byte
			for b.Loop() {
				out = c.Append(out[:0], []byte(text))
			}
		})
	}
}

func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		of(b, "EUC_TW")
	}
}

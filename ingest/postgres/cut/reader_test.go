package cut

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// message is one of the server's, of a type.
func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

// value is a value with its length.
func value(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestReader(t *testing.T) {
	const (
		omitted = "\xff\xff\xff\xfe"
		null    = "\xff\xff\xff\xff"
		rel     = "\x00\x00\x40\x01"
		xid     = "\x00\x00\x02\x07"
	)
	wal := "w" + strings.Repeat("\x01", 24)
	long := strings.Repeat("x", keepMost+1)
	most := strings.Repeat("y", keepMost)
	ambiguous := wal + "I" + rel + "N\x00\x01tN\x00\x01t" + value(long) + long // whatever it is
	for name, test := range map[string]struct{ in, want string }{
		"short":          {message('d', "any"), ""},
		"other types":    {message('D', long+long), ""},
		"no row":         {message('d', wal+"R"+long+long), ""},
		"text":           {message('d', "Zlong"+long+long), ""},
		"read both ways": {message('d', ambiguous), ""},
		"copied":         {message('d', "\x00\x03"+value(long)+null+value(most)), message('d', "\x00\x03"+omitted+null+value(most))},
		"copied, the first": {
			message('d', copyHead+"\x00\x02"+value("k")+value(long)), message('d', copyHead+"\x00\x02"+value("k")+omitted),
		},
		"insert": {message('d', wal+"I"+rel+"N\x00\x02t"+value("k")+"t"+value(long)), message('d', wal+"I"+rel+"N\x00\x02t"+value("k")+"x")},
		"insert of a transaction that runs": {
			message('d', wal+"I"+xid+rel+"N\x00\x02t"+value("k")+"t"+value(long)), message('d', wal+"I"+xid+rel+"N\x00\x02t"+value("k")+"x"),
		},
		"update": {
			message('d', wal+"U"+rel+"O\x00\x02nt"+value(long)+"N\x00\x02ut"+value("small")), message('d', wal+"U"+rel+"O\x00\x02nxN\x00\x02ut"+value("small")),
		},
		"delete": {message('d', wal+"D"+rel+"O\x00\x01t"+value(long)), message('d', wal+"D"+rel+"O\x00\x01x")},
	} {
		if test.want == "" {
			test.want = test.in
		}
		around := message('d', "before") + "%" + message('Z', "I")
		in, want := strings.Replace(around, "%", test.in, 1), strings.Replace(around, "%", test.want, 1)
		for how, from := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
		} {
			got, err := io.ReadAll(NewReader(from(strings.NewReader(in)), 4096, keepMost+20))
			if err != nil || string(got) != want {
				t.Errorf("%s, %s: %d bytes, want %d: %v", name, how, len(got), len(want), err)
			}
			got, err = io.ReadAll(iotest.OneByteReader(NewReader(from(strings.NewReader(in)), 4096, keepMost+20)))
			if err != nil || string(got) != want {
				t.Errorf("%s, %s, read by bytes: %d bytes, want %d: %v", name, how, len(got), len(want), err)
			}
		}
	}
}

// TestReaderMalformed: a row whose lengths do not fit ends the stream.
func TestReaderMalformed(t *testing.T) {
	long := strings.Repeat("x", keepMost+1)
	for name, in := range map[string]string{
		"a value beyond the end": message('d', "\x00\x01"+strings.Replace(value(long), "\x00\x00", "\x7f\xff", 1)),
		"bytes that are left":    message('d', "\x00\x01"+value(long)+"more"),
		"it ends":                message('d', "\x00\x01"+value(long))[:keepMost],
	} {
		r := NewReader(strings.NewReader(in), 4096, keepMost)
		if got, err := io.ReadAll(r); err == nil {
			t.Errorf("%s: %d bytes and no error", name, len(got))
		} else if _, again := r.Read(make([]byte, 1)); again == nil {
			t.Errorf("%s: it goes on after %v", name, err)
		}
	}
}

// FuzzReader: whatever comes, what is not too long is passed on as it is, and nothing panics.
func FuzzReader(f *testing.F) {
	f.Add([]byte(message('d', "\x00\x01"+value("abc"))))
	f.Add([]byte(message('d', "w"+strings.Repeat("\x01", 24)+"I\x00\x00\x40\x01N\x00\x01t"+value(strings.Repeat("x", 100)))))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := io.ReadAll(NewReader(bytes.NewReader(in), 64, 1<<30))
		if err != nil || !bytes.HasPrefix(in, got) || len(in)-len(got) >= headBytes {
			t.Errorf("%d of %d bytes: %v", len(got), len(in), err)
		}
		_, _ = io.ReadAll(NewReader(bytes.NewReader(in), 64, 16)) // any error
	})
}

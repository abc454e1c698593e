package copyin_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/skipprd/skipprd/pgwire/copyin"
)

// cuts reads in pieces whose lengths a seed gives.
type cuts struct {
	data []byte
	rand *rand.Rand
}

func (c *cuts) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:1+c.rand.IntN(min(len(c.data), 20))])
	c.data = c.data[n:]
	return n, nil
}

// fuzz decodes data whole and in pieces: both must give the same, and no field may be
// longer than the data.
func fuzz(t *testing.T, data []byte, seed uint64, c copyin.Config) {
	t.Helper()
	whole := decode(t, bytes.NewReader(data), c)
	pieces := decode(t, &cuts{data, rand.New(rand.NewPCG(seed, 0))}, c)
	if whole != pieces {
		t.Errorf("whole:\n%s\nin pieces (seed %d):\n%s", whole, seed, pieces)
	}
	if strings.Contains(whole, "not a statement error") {
		t.Error(whole)
	}
	c.Table = "t"
	d, err := copyin.New(bytes.NewReader(data), c)
	for err == nil {
		var row []copyin.Field
		row, err = d.Next()
		n := 0
		for _, f := range row {
			n += len(f.Value)
		}
		if c.RowBytesMax > 0 && n > c.RowBytesMax+len(row) { // NULL's text may be forced into columns that have none
			t.Errorf("a row of %d bytes", n)
		}
	}
}

// seeds adds the corners that PostgreSQL was asked about.
func seeds(f *testing.F, format string) {
	for _, group := range corners {
		for _, d := range group.dialects {
			if strings.Contains(d.sql, format) {
				for _, data := range group.data {
					f.Add([]byte(data), uint64(len(data)), uint8(len(d.sql)))
				}
				break
			}
		}
	}
}

var headers = []copyin.Header{copyin.HeaderNone, copyin.HeaderSkip, copyin.HeaderMatch, copyin.HeaderNone}

func FuzzText(f *testing.F) {
	seeds(f, "text")
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, o uint8) {
		options := copyin.Options{Header: headers[o&3], Null: []*string{nil, ptr(""), ptr("x"), ptr(`x\`)}[o>>2&3], Delimiter: "\t,|\t"[o>>4&3]}
		if o&64 != 0 {
			options.Default = ptr("D")
		}
		fuzz(t, data, seed, copyin.Config{Columns: columns("a b= c")[:1+o>>7*2], Options: options, RowBytesMax: 80})
	})
}

func FuzzCSV(f *testing.F) {
	seeds(f, "csv")
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, o uint8) {
		options := copyin.Options{Format: copyin.CSV, Header: headers[o&3], Quote: "\"'\\\""[o>>2&3], Escape: "\x00\\'\""[o>>4&3], ForceNull: []string{"a"}}
		if o&64 != 0 {
			options.Null, options.Default = ptr("x"), ptr("D")
		}
		fuzz(t, data, seed, copyin.Config{Columns: columns("a b= c")[:1+o>>7*2], Options: options, RowBytesMax: 80})
	})
}

func FuzzBinary(f *testing.F) {
	seeds(f, "binary")
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, o uint8) {
		fuzz(t, data, seed, copyin.Config{Columns: columns("a b c")[:o%4], Options: copyin.Options{Format: copyin.Binary}, RowBytesMax: 80})
	})
}

// The options of a copy are taken or refused; what is taken decodes.
func FuzzOptions(f *testing.F) {
	f.Add("csv", "match", ";", "'", "nil", "D")
	f.Add("text", "true", "|", "", `\N`, "")
	f.Add("binary", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, format, header, delimiter, quote, null, def string) {
		var given []copyin.Option
		for i, v := range []string{format, header, delimiter, quote, quote, null, def} {
			if v != "" {
				given = append(given, value([]string{"format", "header", "delimiter", "quote", "escape", "null", "default"}[i], v))
			}
		}
		options, err := copyin.Parse(given)
		if err != nil {
			if p := problem(err); strings.HasPrefix(p, "not") {
				t.Error(p)
			}
			return
		}
		for _, data := range corners[0].data {
			fuzz(t, []byte(data), 1, copyin.Config{Columns: columns("a= b"), Options: options})
		}
	})
}

// The memory that decoding takes follows the data that came, and its bound is the row's.
func TestAllocations(t *testing.T) {
	const most = 8 << 20
	announced := "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x3f\xff\xff\x00" + "abc"
	for _, test := range []struct {
		name  string
		data  io.Reader
		limit uint64
		c     copyin.Config
	}{
		{"a length that was announced", strings.NewReader(announced), 1 << 20, copyin.Config{Options: copyin.Options{Format: copyin.Binary}}},
		{"a line without an end", endless('x'), 4 * most, copyin.Config{RowBytesMax: most}},
		{"a quote without an end", endless('"'), 4 * most, copyin.Config{RowBytesMax: most, Options: copyin.Options{Format: copyin.CSV}}},
		{"escapes", io.LimitReader(endless('\\'), most), 4 * most, copyin.Config{RowBytesMax: most}},
		{"fields", io.LimitReader(endless('\t'), most), 4 * most, copyin.Config{RowBytesMax: most}},
		{"short rows", io.LimitReader(endless('\n'), most), 1 << 20, copyin.Config{}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		test.c.Columns = columns("a")
		d, err := copyin.New(test.data, test.c)
		for err == nil {
			_, err = d.Next()
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > test.limit {
			t.Errorf("%s: %d bytes, until %v", test.name, n, err)
		}
	}
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func BenchmarkDecode(b *testing.B) {
	plain := strings.Repeat("12345\tsome text here\t2026-01-02 03:04:05.678\t3.14159\n", 1000)
	bin := "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("\x00\x04\x00\x00\x00\x0412345\x00\x00\x00\x0esome text here\x00\x00\x00\x0812345678\x00\x00\x00\x0812345678", 1000)
	bin = strings.ReplaceAll(bin, "\x0412345", "\x0412ab")
	for _, x := range []struct {
		name, data string
		format     copyin.Format
	}{
		{"text", plain, copyin.Text},
		{"text with escapes", strings.ReplaceAll(plain, "some text", `some\ntext`), copyin.Text},
		{"csv", strings.ReplaceAll(plain, "\t", ","), copyin.CSV},
		{"csv quoted", strings.ReplaceAll(strings.ReplaceAll(plain, "\t", ","), "some text here", `"some, ""text"" here"`), copyin.CSV},
		{"binary", bin, copyin.Binary},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(int64(len(x.data)))
			b.ReportAllocs()
			for b.Loop() {
				d, err := copyin.New(strings.NewReader(x.data), copyin.Config{Columns: columns("a b c d"), Options: copyin.Options{Format: x.format}})
				for err == nil {
					_, err = d.Next()
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
		})
	}
}

package pgoutput_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/skipprd/skipprd/ingest/postgres/pgoutput"
)

// message builds messages.
type message []byte

func (m message) u8(v byte) message    { return append(m, v) }
func (m message) u16(v uint16) message { return binary.BigEndian.AppendUint16(m, v) }
func (m message) u32(v uint32) message { return binary.BigEndian.AppendUint32(m, v) }
func (m message) u64(v uint64) message { return binary.BigEndian.AppendUint64(m, v) }
func (m message) str(v string) message { return append(append(m, v...), 0) }

// tuple writes values; "-" is null and "~" an unchanged one.
func (m message) tuple(values ...string) message {
	m = m.u16(uint16(len(values)))
	for _, v := range values {
		switch v {
		case "-":
			m = m.u8('n')
		case "~":
			m = m.u8('u')
		default:
			m = append(m.u8('t').u32(uint32(len(v))), v...)
		}
	}
	return m
}

// text renders a tuple as it was written.
func text(t pgoutput.Tuple) []string {
	var out []string
	for i, kind := range t.Kinds {
		out = append(out, map[byte]string{'n': "-", 'u': "~", 't': string(t.Values[i])}[kind])
	}
	return out
}

func TestRows(t *testing.T) {
	var row pgoutput.Row
	cases := []struct {
		name     string
		in       message
		form     byte
		old, new []string
	}{
		{"insert", message{}.u8('I').u32(7).u8('N').tuple("1", "-"), 0, nil, []string{"1", "-"}},
		{"update", message{}.u8('U').u32(7).u8('N').tuple("1", "~", ""), 0, nil, []string{"1", "~", ""}},
		{"key update", message{}.u8('U').u32(7).u8('K').tuple("1", "-").u8('N').tuple("2", "b"), 'K', []string{"1", "-"}, []string{"2", "b"}},
		{"full update", message{}.u8('U').u32(7).u8('O').tuple("1", "a").u8('N').tuple("1", "~"), 'O', []string{"1", "a"}, []string{"1", "~"}},
		{"delete", message{}.u8('D').u32(7).u8('K').tuple("1"), 'K', []string{"1"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := pgoutput.ParseRow(c.in, &row); err != nil {
				t.Fatal(err)
			}
			if row.Relation != 7 || row.OldForm != c.form {
				t.Fatalf("%+v", row)
			}
			if c.old != nil && !slices.Equal(text(row.Old), c.old) || c.new != nil && !slices.Equal(text(row.New), c.new) {
				t.Fatalf("old %q, new %q", text(row.Old), text(row.New))
			}
			// Every shorter message, and a longer one, is refused.
			for n := range len(c.in) {
				if err := pgoutput.ParseRow(c.in[:n], &row); !errors.Is(err, pgoutput.ErrMalformed) {
					t.Fatalf("%d bytes: %v", n, err)
				}
			}
			if err := pgoutput.ParseRow(c.in.u8(0), &row); !errors.Is(err, pgoutput.ErrMalformed) {
				t.Fatalf("longer: %v", err)
			}
		})
	}
	if kind, v := (&pgoutput.Row{}).OldValue(0); kind != pgoutput.Unchanged || v != nil {
		t.Fatalf("old value of nothing: %q %q", kind, v)
	}
}

func TestRelation(t *testing.T) {
	in := message{}.u8('R').u32(9).str("").str("t").u8('d').u16(2).
		u8(1).str("id").u32(23).u32(0xffffffff).u8(0).str("v").u32(25).u32(10)
	got, err := pgoutput.ParseRelation(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []pgoutput.Column{{Identity: true, Name: "id", OID: 23, TypMod: -1}, {Name: "v", OID: 25, TypMod: 10}}
	if got.ID != 9 || got.Namespace != "pg_catalog" || got.Name != "t" || got.Identity != 'd' || !slices.Equal(got.Columns, want) {
		t.Fatalf("%+v", got)
	}
	for n := range len(in) {
		if _, err := pgoutput.ParseRelation(in[:n]); !errors.Is(err, pgoutput.ErrMalformed) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestTransaction(t *testing.T) {
	begin, err := pgoutput.ParseBegin(message{}.u8('B').u64(1).u64(2).u32(3))
	if err != nil || begin != (pgoutput.Begin{FinalLSN: 1, CommittedAt: 2, XID: 3}) {
		t.Fatalf("%+v, %v", begin, err)
	}
	commit, err := pgoutput.ParseCommit(message{}.u8('C').u8(0).u64(1).u64(2).u64(3))
	if err != nil || commit != (pgoutput.Commit{CommitLSN: 1, EndLSN: 2, CommittedAt: 3}) {
		t.Fatalf("%+v, %v", commit, err)
	}
	var truncate pgoutput.Truncate
	if err := pgoutput.ParseTruncate(message{}.u8('T').u32(2).u8(0).u32(5).u32(6), &truncate); err != nil || !slices.Equal(truncate.Relations, []uint32{5, 6}) {
		t.Fatalf("%+v, %v", truncate, err)
	}
	if err := pgoutput.ParseTruncate(message{}.u8('T').u32(1<<31).u8(0), &truncate); !errors.Is(err, pgoutput.ErrMalformed) {
		t.Fatal(err)
	}
}

// A change costs no allocation.
func TestParseRowDoesNotAllocate(t *testing.T) {
	in := message{}.u8('U').u32(7).u8('K').tuple("1", "-").u8('N').tuple("2", "b")
	var row pgoutput.Row
	if n := testing.AllocsPerRun(100, func() { _ = pgoutput.ParseRow(in, &row) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// Whatever the bytes, nothing panics and nothing unbounded is allocated.
func FuzzParse(f *testing.F) {
	f.Add([]byte(message{}.u8('I').u32(7).u8('N').tuple("1", "-")))
	f.Add([]byte(message{}.u8('U').u32(7).u8('O').tuple("1", "a").u8('N').tuple("1", "~")))
	f.Add([]byte(message{}.u8('R').u32(9).str("").str("t").u8('d').u16(1).u8(1).str("id").u32(23).u32(1)))
	f.Add([]byte(message{}.u8('T').u32(2).u8(0).u32(5).u32(6)))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var row pgoutput.Row
		var truncate pgoutput.Truncate
		_ = pgoutput.ParseRow(b, &row)
		_ = pgoutput.ParseTruncate(b, &truncate)
		_, _ = pgoutput.ParseRelation(b)
		_, _ = pgoutput.ParseBegin(b)
		_, _ = pgoutput.ParseCommit(b)
	})
}

package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/skipprd/skipprd/catalog"
	"github.com/skipprd/skipprd/wal/change"
)

// The codes of letters: those that PostgreSQL gives such errors.
const (
	CodeOutOfRange  = "22003" // a number that the type here does not hold
	CodeDateTime    = "22008" // a moment that the type here does not hold
	CodeEncoding    = "22021"
	CodeNoUTF8      = "22P05" // a text of another encoding, which UTF-8 does not have
	CodeMalformed   = "22P02"
	CodeArray       = "2202E"
	CodeRowTooLarge = "54000"
)

const (
	// RowBytesMax is the longest row that is kept with a letter. The letter of a longer
	// one says so and cannot be retried.
	RowBytesMax = 6 << 20
	// rowBytesSmall is the longest row that is kept however many others there are.
	rowBytesSmall = 64 << 10
	// OpenMax is how many open letters a table may have, unless the pipeline says another
	// number: then it stops.
	OpenMax = 10_000
	// OpenBytesMax is how many bytes the rows of a table's open letters may have.
	OpenBytesMax = 64 << 20
	// GroupBytesMax is how many bytes of letters one transaction, or one chunk of a copy,
	// may have: they travel in the state of one group, of 16 MiB.
	GroupBytesMax = 8 << 20
	// ClosedKept is how many closed letters of a table are remembered.
	ClosedKept = 1_000
)

// Refused is a change that a source cannot take in.
type Refused struct {
	Op      change.Op
	Token   int64
	Ordinal int32
	// Key is Text of the key's values, "" for a table without a key.
	Key string
	// Row is Row of the values, "" when they are more than RowBytesMax, or one is known to
	// nobody. What it leaves out is what the table has of the key.
	Row    string
	Column string // that is the trouble, "" for the whole row
	Reason string // a clause
	Hint   string // a sentence naming what helps, if the table stops for it
	Code   string
	// Chunk is the piece of a copy that a row without a key is of.
	Chunk string
}

// Text renders a key's values, in the source's text, as a JSON array.
func Text(values ...string) string {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(&b, v)
	}
	b.WriteByte(']')
	return b.String()
}

// Value is a column of a row in the source's text. One that is left out was not sent.
type Value struct {
	Name string
	Text *string // nil: null
}

// Row renders a row as a JSON object, in the order of its columns; "" when it is longer
// than RowBytesMax. Texts that are not UTF-8 are in it as bytes are: \x, and digits.
func Row(values []Value) string {
	size := 0
	for _, v := range values {
		if v.Text != nil {
			size += len(*v.Text)
		}
	}
	if size > RowBytesMax {
		return ""
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(&b, v.Name)
		b.WriteByte(':')
		if v.Text == nil {
			b.WriteString("null")
			continue
		}
		writeString(&b, *v.Text)
	}
	b.WriteByte('}')
	if b.Len() > RowBytesMax {
		return ""
	}
	return b.String()
}

// ParseRow reads what Row has rendered: a nil value is null.
func ParseRow(row string) (map[string]*string, error) {
	var out map[string]*string
	if err := json.Unmarshal([]byte(row), &out); err != nil {
		return nil, fmt.Errorf("read row of a dead letter: %w", err)
	}
	return out, nil
}

// writeString writes a string, or the bytes of one that is not UTF-8 as the source writes
// bytes, so that none is taken for another.
func writeString(b *bytes.Buffer, s string) {
	if !utf8.ValidString(s) {
		s = `\x` + hex.EncodeToString([]byte(s))
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // a string into memory
	b.Truncate(b.Len() - 1) // its newline
}

// letter is r as it is kept. nth tells apart equal rows of one chunk.
func (r *Refused) letter(t *Table, version uint32, copied bool, nth int) *catalog.DeadLetter {
	l := &catalog.DeadLetter{
		Table: t.id, Generation: t.generation, SchemaVersion: version, Op: r.Op, Copied: copied,
		Key: r.Key, Row: r.Row, Column: r.Column, Reason: r.Reason, Code: r.Code,
	}
	l.Token, l.Ordinal = r.Token, r.Ordinal
	l.ID = r.id(t, copied, nth)
	return l
}

// id is the same whenever the same change is refused again. Copied rows have one token,
// so that they are told apart by what they are and, without a key, where they were read:
// equal rows are counted within a chunk only.
func (r *Refused) id(t *Table, copied bool, nth int) uint64 {
	h := sha256.New()
	var b []byte
	b = binary.BigEndian.AppendUint32(b, uint32(t.id))
	b = binary.BigEndian.AppendUint32(b, t.generation)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Token))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Ordinal))
	if copied {
		b = binary.BigEndian.AppendUint32(b, uint32(nth))
		b = binary.BigEndian.AppendUint32(b, uint32(len(r.Key)))
		b = append(append(b, r.Key...), r.Row...)
		if r.Key == "" {
			b = append(append(b, 0), r.Chunk...)
		}
	}
	h.Write(b)
	return max(binary.BigEndian.Uint64(h.Sum(nil))>>1, 1)
}

package segment_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var header = segment.Header{
	Epoch: 3, Pipeline: 7, Seq: 42, Writer: [16]byte{1, 2, 3}, FirstGroup: 100,
	CreatedNanos: 1_700_000_000_000_000_000, Previous: sha256.Sum256([]byte("before")), Salt: 99,
}

var schema = arrow.NewSchema([]arrow.Field{
	{Name: change.ColOp, Type: arrow.PrimitiveTypes.Uint8},
	{Name: change.ColToken, Type: arrow.PrimitiveTypes.Int64},
	{Name: change.ColOrdinal, Type: arrow.PrimitiveTypes.Int32},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func batch(table change.TableID, ids ...int64) *change.Batch {
	b := change.NewBuilder(memory.DefaultAllocator, table, 2, schema)
	defer b.Release()
	for i, id := range ids {
		b.Add(change.Op(1+i%3), id*10, int32(i))
		b.Column(0).(*array.Int64Builder).Append(id)
		b.Column(1).(*array.StringBuilder).Append(fmt.Sprint("name ", id))
	}
	return b.Batch()
}

// groups are what the golden body holds.
func groups() []*change.Group {
	backfill := batch(2, 7, 8)
	backfill.Backfill = true
	return []*change.Group{
		{
			Batches:  []*change.Batch{batch(1, 1, 2, 3), {Table: 2, SchemaVersion: 5, Truncate: true}, batch(1, 4)},
			Position: "0/16B3748", CommittedAt: time.Unix(1_700_000_001, 5).UTC(),
			State: []byte("chunk 3"),
		},
		{Position: "0/16B3800"}, // a position alone
		{Batches: []*change.Batch{backfill}, State: []byte{0}},
	}
}

// build places gs and returns the body without a footer.
func build(t testing.TB, b *segment.Builder, gs []*change.Group) ([]byte, []segment.Group) {
	t.Helper()
	head := b.Header().Encode()
	body := append([]byte(nil), head[:]...)
	e := segment.NewEncoder()
	var placed []segment.Group
	for _, g := range gs {
		x, err := e.Encode(g)
		if err != nil {
			t.Fatal(err)
		}
		room := b.Room(x)
		var p segment.Group
		synced := uint32(len(body))
		body, p = b.Append(body, x, synced)
		if int(p.End) != len(body) || int64(len(body)) > room {
			t.Fatalf("group ends at %d, body at %d, promised %d", p.End, len(body), room)
		}
		placed = append(placed, p)
		e.Release(x)
	}
	return body, placed
}

// seal appends a footer and makes the marker.
func seal(b *segment.Builder, body []byte) ([]byte, segment.Marker) {
	body = append(body, b.Footer(sha256.Sum256(body))...)
	return body, segment.Marker{
		Groups: uint16(b.Groups()), Epoch: 3, Length: uint32(len(body)), Seq: 42,
		Digest: sha256.Sum256(body),
	}
}

func collect(into *[]segment.Group) func(segment.Group) error {
	return func(g segment.Group) error { *into = append(*into, g); return nil }
}

func TestBodyReadsBackWhatWasPlaced(t *testing.T) {
	b := segment.NewBuilder(header)
	open, placed := build(t, b, groups())
	var got []segment.Group
	end, err := segment.WalkGroups(header, append(open, make([]byte, 4096)...), collect(&got))
	if err != nil || int(end) != len(open) {
		t.Fatalf("walk ended at %d of %d: %v", end, len(open), err)
	}
	if !equal(got, placed) {
		t.Errorf("walked\n%+v\nplaced\n%+v", got, placed)
	}
	body, m := seal(b, open)
	got = nil
	if _, err := segment.WalkSealed(header, m, body, collect(&got)); err != nil || !equal(got, placed) {
		t.Errorf("sealed: %v\n%+v", err, got)
	}
	at, ok := segment.FooterStart(body[len(body)-16:])
	if !ok || int(at) != len(open) {
		t.Fatalf("footer at %d, %v", at, ok)
	}
	f, err := segment.ParseFooter(body[at:], header.Seed(), at)
	if err != nil || len(f.Slices) != 4 || f.Groups != 3 || f.Chain != sha256.Sum256(open) {
		t.Errorf("footer %+v, %v", f, err)
	}
	if f.Slices[0].Rows != 3 || !f.Slices[1].Truncate || !f.Slices[3].Backfill {
		t.Errorf("index %+v", f.Slices)
	}
}

// equal compares groups; an absent state and an empty one are the same.
func equal(a, b []segment.Group) bool {
	for _, gs := range [][]segment.Group{a, b} {
		for i := range gs {
			if len(gs[i].State) == 0 {
				gs[i].State = nil
			}
			if len(gs[i].Slices) == 0 {
				gs[i].Slices = nil
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

func TestSliceIsReadAlone(t *testing.T) {
	body, placed := build(t, segment.NewBuilder(header), groups())
	s := placed[0].Slices[2] // its schema stands before another slice
	_, message, err := segment.ParseSlice(body[s.Start:s.Start+s.Length], header.Seed(), s.Start)
	if err != nil {
		t.Fatal(err)
	}
	n, err := segment.RecordBytes(body[s.Schema:])
	if err != nil {
		t.Fatal(err)
	}
	schemaMessage, err := segment.ParseSchema(body[s.Schema:int(s.Schema)+n], header.Seed(), s.Schema)
	if err != nil {
		t.Fatal(err)
	}
	d, err := segment.NewDecoder(schemaMessage)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a decoder serves many slices
		rec, err := d.Decode(message)
		if err != nil {
			t.Fatal(err)
		}
		if rec.NumRows() != 1 || rec.Column(3).(*array.Int64).Value(0) != 4 ||
			rec.Column(4).(*array.String).Value(0) != "name 4" {
			t.Errorf("rows %v", rec)
		}
		rec.Release()
	}
}

func TestSchemaIsWrittenOncePerVersion(t *testing.T) {
	b := segment.NewBuilder(header)
	one, _ := build(t, b, groups()[:1])
	_, placed := build(t, segment.NewBuilder(header), []*change.Group{groups()[0], groups()[0]})
	second := placed[1].End - placed[1].Start
	if first := uint32(len(one) - segment.HeaderBytes); second >= first {
		t.Errorf("second group takes %d bytes, the first %d", second, first)
	}
	if placed[1].Slices[0].Schema != placed[0].Slices[0].Schema {
		t.Error("schemas differ")
	}
}

func TestEncodeRefuses(t *testing.T) {
	e := segment.NewEncoder()
	other := arrow.NewSchema(schema.Fields()[:4], nil)
	b := change.NewBuilder(memory.DefaultAllocator, 1, 2, other)
	b.Add(change.Insert, 1, 0)
	b.Column(0).(*array.Int64Builder).Append(1)
	if _, err := e.Encode(&change.Group{Batches: []*change.Batch{batch(1, 1)}}); err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*change.Group{
		"no table":    {Batches: []*change.Batch{batch(0, 1)}},
		"two schemas": {Batches: []*change.Batch{b.Batch()}},
		"state":       {State: make([]byte, segment.StateBytesMax+1)},
		"position":    {Position: change.Position(strings.Repeat("x", segment.PositionBytesMax+1))},
	} {
		if _, err := e.Encode(g); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Every damaged bit of a group is noticed, and damage is a torn tail exactly when no
// later group promises the bytes.
func TestDamage(t *testing.T) {
	body, placed := build(t, segment.NewBuilder(header), groups())
	for at := segment.HeaderBytes; at < len(body); at++ {
		bad := bytes.Clone(body)
		bad[at] ^= 0x10
		var got []segment.Group
		end, err := segment.WalkGroups(header, bad, collect(&got))
		n := 0
		for n < len(placed) && uint32(at) >= placed[n].End {
			n++
		}
		var corrupt *segment.CorruptError
		promised := n < len(placed)-1
		if padding := at-int(placed[n].End) >= -8; padding && len(got) > n {
			continue // the padding of a record is not covered
		}
		if len(got) != n || promised != errors.As(err, &corrupt) || !promised && end != placed[n].Start {
			t.Fatalf("byte %d, in group %d: %d groups, end %d, error %v", at, n, len(got), end, err)
		}
	}
}

func TestBytesOfAnEarlierUseDoNotValidate(t *testing.T) {
	old := header
	old.Seq, old.Salt = 41, 98
	body, _ := build(t, segment.NewBuilder(old), groups())
	head := header.Encode()
	copy(body, head[:])
	n := 0
	end, err := segment.WalkGroups(header, body, func(segment.Group) error { n++; return nil })
	if n != 0 || end != segment.HeaderBytes || err != nil {
		t.Errorf("%d groups of another segment accepted, end %d, %v", n, end, err)
	}
	if old.Seed() == header.Seed() {
		t.Error("two headers with one seed")
	}
}

func TestSealedBodyMustBeWhole(t *testing.T) {
	b := segment.NewBuilder(header)
	open, _ := build(t, b, groups())
	body, m := seal(b, open)
	none := func(segment.Group) error { return nil }
	var corrupt *segment.CorruptError
	for name, c := range map[string]struct {
		m    segment.Marker
		body []byte
	}{
		"short":       {m, body[:len(body)-8]},
		"groups":      {segment.Marker{Groups: 2, Length: m.Length, Seq: 42}, body},
		"no footer":   {segment.Marker{Groups: 3, Length: m.Length, Seq: 42, Flags: segment.SealedByRecovery}, body},
		"footer lost": {segment.Marker{Groups: 3, Length: uint32(len(open)) + 64, Seq: 42}, append(bytes.Clone(open), make([]byte, 64)...)},
	} {
		if _, err := segment.WalkSealed(header, c.m, c.body, none); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cut := segment.Marker{Groups: 3, Length: uint32(len(open)), Seq: 42, Flags: segment.SealedByRecovery}
	if _, err := segment.WalkSealed(header, cut, open, none); err != nil {
		t.Errorf("cut body: %v", err)
	}
}

func TestMarkerAndHeaderRejectAnyChange(t *testing.T) {
	m := segment.Marker{Groups: 3, Epoch: 3, Length: 4096, Seq: 42, Digest: sha256.Sum256([]byte("body"))}
	mb := m.Encode()
	if got, err := segment.ParseMarker(mb[:], 42); err != nil || got != m {
		t.Errorf("marker %+v, %v", got, err)
	}
	if _, err := segment.ParseMarker(mb[:], 43); !errors.Is(err, segment.ErrIdentity) {
		t.Errorf("marker of another segment: %v", err)
	}
	hb := header.Encode()
	if got, err := segment.ParseHeader(hb[:]); err != nil || got != header {
		t.Errorf("header %+v, %v", got, err)
	}
	for bit := range 8 * len(mb) {
		mb[bit/8] ^= 1 << (bit % 8)
		if _, err := segment.ParseMarker(mb[:], 42); err == nil {
			t.Fatalf("marker with bit %d changed accepted", bit)
		}
		mb[bit/8] ^= 1 << (bit % 8)
	}
	for bit := range 8 * len(hb) {
		hb[bit/8] ^= 1 << (bit % 8)
		if _, err := segment.ParseHeader(hb[:]); err == nil {
			t.Fatalf("header with bit %d changed accepted", bit)
		}
		hb[bit/8] ^= 1 << (bit % 8)
	}
	take := segment.Marker{Flags: segment.Takeover, Epoch: 4, Seq: 42, Digest: sha256.Sum256(nil)}
	tb := take.Encode()
	if _, err := segment.ParseMarker(tb[:], 42); err != nil {
		t.Errorf("takeover marker: %v", err)
	}
}

// The golden files are what earlier releases wrote: they must be read for ever. That
// today's bytes equal them only says whether the format has moved.
func TestGolden(t *testing.T) {
	b := segment.NewBuilder(header)
	open, placed := build(t, b, groups())
	body, m := seal(b, open)
	mb := m.Encode()
	wantBody := golden(t, "body_v1.hex", body)
	wantMarker := golden(t, "marker_v1.hex", mb[:])
	gm, err := segment.ParseMarker(wantMarker, 42)
	if err != nil {
		t.Fatal(err)
	}
	gh, err := segment.ParseHeader(wantBody)
	if err != nil {
		t.Fatal(err)
	}
	var got []segment.Group
	if _, err := segment.WalkSealed(gh, gm, wantBody, collect(&got)); err != nil {
		t.Fatal(err)
	}
	if gm.Digest != sha256.Sum256(wantBody) {
		t.Error("digest")
	}
	if len(got) != 3 || got[0].Position != "0/16B3748" || len(got[0].Slices) != 3 {
		t.Errorf("groups %+v", got)
	}
	if !bytes.Equal(wantBody, body) || !equal(got, placed) {
		t.Error("today's bytes differ from the golden ones: a new format version, or a new Arrow")
	}
	if !bytes.Equal(wantMarker, mb[:]) {
		t.Error("today's marker differs from the golden one")
	}
}

// golden returns the bytes of a file of hex, 32 a line, writing it when asked to.
func golden(t *testing.T, name string, now []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		var out strings.Builder
		for i := 0; i < len(now); i += 32 {
			fmt.Fprintf(&out, "%08x  %x\n", i, now[i:min(i+32, len(now))])
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return readGolden(t, path)
}

func readGolden(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for line := range strings.Lines(string(text)) {
		_, digits, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

package catalog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skipprd/skipprd/wal"
	"github.com/skipprd/skipprd/wal/change"
	"github.com/skipprd/skipprd/wal/segment"
)

func goldenSlice() Slice {
	return Slice{
		Slice: wal.Slice{
			Length: 0x11, Table: 0x12, SchemaVersion: 0x13, Rows: 0x14, Truncate: true, Backfill: true,
			Counts: change.Counts{Inserts: 1, Updates: 2, Deletes: 3, MinToken: -4, MaxToken: 5},
		},
		Pipeline: 0x15, Generation: 0x16, Compacted: "c1",
		PublishedAt: time.Unix(1, 2).UTC(), CommittedAt: time.Unix(3, 4).UTC(),
	}
}

func goldenRows() map[string][]byte {
	slice := goldenSlice()
	return map[string][]byte{
		"slice": appendSliceRow(nil, &slice),
		"offset": appendOffsetRow(nil, &Offset{
			Pipeline: 1, Position: "0/16B3748", Seq: 2, End: 3,
			CommittedAt: time.Unix(1, 0), PublishedAt: time.Time{},
		}),
		"segment":  appendSegmentRow(nil, &Segment{End: 1, Slices: 2, Live: 3}),
		"live key": liveKey(nil, 1, segment.SliceRef{Seq: 2, Start: 3}),
		"done key": doneKey(nil, 1, segment.SliceRef{Seq: 2, Start: 3}),
	}
}

// The durable bytes of hot rows do not change by accident.
func TestGoldenRows(t *testing.T) {
	file, err := os.ReadFile("testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if name, row, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name[0] != '#' {
			want[name] = strings.ReplaceAll(row, " ", "")
		}
	}
	for name, row := range goldenRows() {
		if got := hex.EncodeToString(row); got != want[name] {
			t.Errorf("%s: got %s, want %s", name, got, want[name])
		}
	}
}

func TestSliceRow(t *testing.T) {
	want := goldenSlice()
	row := appendSliceRow(nil, &want)
	var got Slice
	if err := decodeSliceRow(row, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for n := range row {
		if err := decodeSliceRow(row[:n], &got); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestRefs(t *testing.T) {
	for _, refs := range [][]segment.SliceRef{
		nil, {{Seq: 1, Start: 0}}, {{Seq: 1, Start: 5}, {Seq: 1, Start: 9}, {Seq: 1 << 60, Start: 1<<32 - 1}},
	} {
		got, err := unpackRefs(packRefs(refs))
		if err != nil || !reflect.DeepEqual(got, refs) {
			t.Errorf("%v: got %v, %v", refs, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, row := range goldenRows() {
		f.Add(row)
	}
	f.Add(packRefs([]segment.SliceRef{{Seq: 1, Start: 5}}))
	f.Fuzz(func(t *testing.T, row []byte) {
		var s Slice
		if decodeSliceRow(row, &s) == nil {
			if again := appendSliceRow(nil, &s); !bytes.Equal(again, row) {
				t.Errorf("slice row %x became %x", row, again)
			}
		}
		if o, err := decodeOffsetRow(row); err == nil {
			if again := appendOffsetRow(nil, &o); !bytes.Equal(again, row) {
				t.Errorf("offset row %x became %x", row, again)
			}
		}
		var seg Segment
		if decodeSegmentRow(row, &seg) == nil {
			if again := appendSegmentRow(nil, &seg); !bytes.Equal(again, row) {
				t.Errorf("segment row %x became %x", row, again)
			}
		}
		if refs, err := unpackRefs(row); err == nil {
			if again, err := unpackRefs(packRefs(refs)); err != nil || !reflect.DeepEqual(again, refs) {
				t.Errorf("refs %v became %v, %v", refs, again, err)
			}
		}
	})
}

package duckdb

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skipprd/skipprd/wal/change"
)

// ownRows is the changes of a record as a transaction's own: without token and ordinal.
func ownRows(t *testing.T, rec arrow.RecordBatch) []byte {
	t.Helper()
	var fields []arrow.Field
	var columns []arrow.Array
	for i, f := range rec.Schema().Fields() {
		if i == 1 || i == 2 {
			continue
		}
		fields, columns = append(fields, f), append(columns, rec.Column(i))
	}
	s := arrow.NewSchema(fields, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(s), ipc.WithAllocator(memory.DefaultAllocator))
	if err := w.Write(array.NewRecordBatch(s, columns, rec.NumRows())); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestOwnChanges: what a transaction has changed comes over each pin as if it were the
// log's newest slice.
func TestOwnChanges(t *testing.T) {
	for _, key := range [][]string{{"id"}, {"id", "part"}} {
		t.Run(fmt.Sprint(key), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(key)), 11))
			h := randomHistory(r, key, 9, false, true)
			h.compact(t, t.TempDir())
			p := newTestPool(t, PoolConfig{InProcess: true, MaxQueries: 2}, h.log)
			own := 0
			for n := 4; n <= len(h.slices); n++ { // those have the newer schema
				last := n - 1
				for c := range n {
					rel := h.lakes[c]
					if last > c {
						rel.Live = &Live{Dir: "log", Table: 1, Slices: h.live[c:last], Fields: liveFields}
					}
					rel.Own = &Own{Truncated: h.live[last].Truncate, Fields: liveFields[2], Deletes: true}
					newest := map[string]row{}
					for _, r := range h.slices[last] {
						newest[h.keyOf(r)] = r
					}
					var rows []row
					for _, r := range newest {
						rows = append(rows, r)
					}
					if len(rows) > 0 {
						rel.Own.Rows = ownRows(t, liveRecord(2, rows))
						own++
					}
					plan := &Plan{
						SQL:       `SELECT t.id::VARCHAR, t.part, t.name, t.note FROM "T 1" AS t`,
						Relations: []Relation{rel}, Output: rowsOutput(4),
					}
					got := mustRun(t, p, plan)
					sort.Strings(got)
					if want := h.fold(n); !slices.Equal(got, want) {
						t.Fatalf("pin (%d..%d] and its own\n got %v\nwant %v", c, last, got, want)
					}
				}
			}
			if own == 0 {
				t.Error("no pin had changes of its own")
			}
		})
	}
}

// TestOwnWholeRows: of equal rows of a table without a key an own delete takes one away.
func TestOwnWholeRows(t *testing.T) {
	c := newCountedTable(t)
	log := &memorySlices{recs: map[uint64]arrow.RecordBatch{1: c.record(t, change.Insert, 0, 1), 2: c.record(t, change.Delete, 0)}}
	p := newTestPool(t, PoolConfig{InProcess: true}, log)
	file := c.file(t, filepath.Join(t.TempDir(), "data.parquet"), 0, 0, 1, 0, 1)
	var ids []int32
	for _, f := range c.fields {
		ids = append(ids, f.ID)
	}
	table := uint32(10)
	read := func(own *Own, live ...uint64) string {
		t.Helper()
		table++
		r := Relation{Name: "T", WholeRow: true, Columns: c.columns, Files: []File{file}, Own: own}
		if live != nil {
			r.Live = &Live{Dir: "log", Table: table, Fields: map[uint32][]int32{1: ids}}
		}
		for _, seq := range live {
			r.Live.Slices = append(r.Live.Slices, LiveSlice{Seq: seq, Start: 64, SchemaVersion: 1, Rows: log.recs[seq].NumRows()})
		}
		return mustRun(t, p, &Plan{
			SQL:       `SELECT count(t."c2")::VARCHAR, count(*)::VARCHAR FROM "T" t`,
			Relations: []Relation{r}, Output: rowsOutput(2),
		})[0]
	}
	inserts := ownRows(t, c.record(t, change.Insert, 0, 1))
	deletes := ownRows(t, c.record(t, change.Delete, 0, 0, 1))
	for _, w := range []struct {
		what      string
		got, want string // rows of values, all rows
	}{
		{"inserts", read(&Own{Rows: inserts, Fields: ids}), "4|7"},
		{"inserts over the log", read(&Own{Rows: inserts, Fields: ids}, 1, 2), "4|8"},
		{"deletes", read(&Own{Rows: deletes, Fields: ids, Deletes: true}), "1|2"},
		{"deletes over the log", read(&Own{Rows: deletes, Fields: ids, Deletes: true}, 1, 2), "1|3"},
		{"a truncate", read(&Own{Truncated: true}), "0|0"},
		{"a truncate and inserts", read(&Own{Truncated: true, Rows: inserts, Fields: ids}, 1), "1|2"},
	} {
		if w.got != w.want {
			t.Errorf("%s: %s, want %s", w.what, w.got, w.want)
		}
	}
}

// Own rows that a relation cannot be read with are refused.
func TestOwnRefused(t *testing.T) {
	rel := Relation{Name: "T", Key: []string{"id"}, Columns: []Column{{Name: "id", FieldID: 1, EngineType: "BIGINT"}}}
	rows := ownRows(t, liveRecord(2, []row{{op: change.Insert, id: 1}}))
	p := newTestPool(t, PoolConfig{InProcess: true}, nil)
	for what, own := range map[string]*Own{
		"no such field":   {Rows: rows, Fields: []int32{9, 2, 3, 4}},
		"too few fields":  {Rows: rows, Fields: []int32{1}},
		"no Arrow stream": {Rows: []byte("rows"), Fields: []int32{1}},
	} {
		rel.Own = own
		plan := &Plan{SQL: `SELECT id::VARCHAR FROM "T" t`, Relations: []Relation{rel}, Output: rowsOutput(1)}
		if _, err := run(t.Context(), p, plan); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

package iceberg

import (
	"testing"

	"github.com/apache/iceberg-go/table"

	"github.com/skipprd/skipprd/catalog/schema"
)

// A table's metadata is read or refused, whatever is in the file: other engines write it too.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"/l","last-sequence-number":1,
"last-updated-ms":1602638573590,"last-column-id":1,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[
{"id":1,"name":"x","required":true,"type":"long"}]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],
"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],
"properties":{"` + keyInitial + `":"[{\"id\":1,\"name\":\"x\",\"initial\":\"1\"}]"},"current-snapshot-id":-1,"snapshots":[]}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		meta, err := table.ParseMetadataBytes(b)
		if err != nil {
			return
		}
		_ = boundKinds(meta.CurrentSchema())
		_, _ = initialValues(meta) // an error is an answer
		_, _, _ = nextInitial(meta, &schema.Table{Version: 1})
	})
}

// The bounds of a column are read or passed over, at any width.
func FuzzBounds(f *testing.F) {
	f.Add(uint8(boundInt), []byte{1, 2, 3, 4}, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(uint8(boundBytes), []byte("a"), []byte("b"))
	f.Fuzz(func(t *testing.T, kind uint8, low, high []byte) {
		b, ok := decodeBounds(boundKind(kind), low, high)
		if ok && b.IsInt != (boundKind(kind) == boundInt) {
			t.Errorf("kind %d reads as %+v", kind, b)
		}
	})
}

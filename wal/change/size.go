package change

import "github.com/apache/arrow-go/v18/arrow"

// RecordBytes is how much memory the buffers of a record have, those shared with others
// too.
func RecordBytes(rec arrow.RecordBatch) int64 {
	var n int64
	for _, c := range rec.Columns() {
		n += DataBytes(c.Data())
	}
	return n
}

// DataBytes is RecordBytes of one array.
func DataBytes(d arrow.ArrayData) int64 {
	var n int64
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += DataBytes(c)
	}
	return n
}

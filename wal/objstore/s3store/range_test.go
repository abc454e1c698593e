package s3store

import (
	"fmt"
	"testing"

	"github.com/skipprd/skipprd/wal/objstore"
)

// A store's Content-Range is what was asked for, or an error.
func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-9/100", int64(0), int64(10))
	f.Add("bytes 5-9/10", int64(5), int64(100))
	f.Add("bytes */100", int64(0), int64(1))
	f.Add("bytes 0--1/-1", int64(0), int64(0))
	f.Fuzz(func(t *testing.T, text string, start, end int64) {
		if start < 0 || end <= start {
			t.Skip()
		}
		length, size, err := parseContentRange(text, objstore.Range{Start: start, End: end})
		if err == nil && (length <= 0 || length > end-start || start+length > size) {
			t.Errorf("%q of [%d, %d) has %d bytes of %d", text, start, end, length, size)
		}
		whole := fmt.Sprintf("bytes %d-%d/%d", start, end-1, end)
		if length, _, err := parseContentRange(whole, objstore.Range{Start: start, End: end}); err != nil || length != end-start {
			t.Errorf("%q has %d bytes, %v", whole, length, err)
		}
	})
}

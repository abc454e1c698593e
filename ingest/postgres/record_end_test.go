package postgres

import "testing"

// TestRecordEnd: an insert position behind a fresh page's header is the page's start.
func TestRecordEnd(t *testing.T) {
	for in, want := range map[LSN]LSN{
		0x19E9488:                    0x19E9488,
		8192*1000 + 24:               8192 * 1000,
		8192*1000 + 40:               8192*1000 + 40, // the rest of a record that began before
		3*(16<<20) + 40:              3 * (16 << 20),
		3*(16<<20) + 24:              3*(16<<20) + 24,
		8192 * 7:                     8192 * 7,
		LSN(5)<<32 + 8192*3 + 24:     LSN(5)<<32 + 8192*3,
		LSN(5)<<32 + 8192*3 + 24 + 8: LSN(5)<<32 + 8192*3 + 24 + 8,
	} {
		if got := in.recordEnd(); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
